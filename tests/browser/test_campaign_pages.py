"""The page of a campaign in a browser: on disk and on a server, for everybody, and fresh while runs wait."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.browser.conftest import Opens
from tests.browser.records import HOSTILE
from tests.browser.tab import luminance
from tests.collector.campaign.tables.folders import PLAN, SECOND, T0, Ran, campaign_folder, record

from soakwatch.campaign.campaign_state import read_state
from soakwatch.campaign.ledger import BEGIN, END, open_ledger
from soakwatch.campaign.tables.campaign_report import beside, render_html
from soakwatch.campaign.tables.result import result_of, spec_of
from soakwatch.plan.web import WebPlan
from soakwatch.web.access import Token, one_time_code
from soakwatch.web.run_folder import RunFolder
from soakwatch.web.server import serve

TOKEN = Token("a-token-of-a-test-0123456789")
YAML = f"""\
name: cube
{PLAN}matrix:
  device: {{set: targets.gen.sources.0.command.run.1, values: [cable, fw-a]}}
  config: {{set: targets.gen.sources.0.command.run.2, values: [bridge, ips]}}
exclude: [{{device: cable, config: ips}}]
repeat: 6
figures: [{{figure: load.rx.packet.rate, name: received}}]
tables: [{{rows: device, columns: config, rivals: [device, config]}}]
limits: [{{figure: received, at_least: 700k, where: {{device: fw-a}}}}]
"""
STEPS = (0.99, 0.995, 1.0, 1.001, 1.002, 1.01)


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign whose last run waits; a reason attacks."""
    runs: dict[tuple[str, ...], list[Ran]] = {
        ("cable", "bridge"): [Ran(figures={"load.rx.packet.rate": 1e6 * step}) for step in STEPS],
        ("fw-a", "bridge"): [Ran("fail", {"load.rx.packet.rate": 8e5 * step}, HOSTILE[1]) for step in STEPS],
        ("fw-a", "ips"): [Ran(figures={"load.rx.packet.rate": 6e5 * step}) for step in STEPS[:5]],
    }
    folder = tmp_path_factory.mktemp("matrix") / "campaigns"
    campaign_folder(folder / "cube", YAML, runs)
    return folder


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of a folder, and a way in."""
    with serve(WebPlan(listen="127.0.0.1:0"), TOKEN, RunFolder(folder)) as server:
        yield f"{server.url}/enter/{one_time_code(TOKEN, time.time() + 600)}"


def test_the_report_is_for_everybody(campaigns: Path, offline_report: Path, tabs: Opens) -> None:
    """Offline, light and dark, on a telephone and on paper; marks and bars beside the colours; names are text."""
    tab = tabs(offline=True)
    tab.open(offline_report)
    assert tab.barriers() == []
    head = tab.page.locator("#verdict").inner_text()
    assert "FAILS SO FAR" in head
    assert "cube" in head
    assert "1 run not run yet, in 1 cell: device=fw-a,config=ips" in head
    assert tab.page.locator("td.fig .tag").all_inner_texts() == ["best", "worst"]
    assert tab.page.locator("td.step5").count() == 1
    assert tab.page.locator("svg.chart rect.bar").count() == 3
    heights = tab.page.locator("svg.chart rect.bar").evaluate_all("bars => bars.map(bar => bar.getBBox().height)")
    assert [height / heights[0] for height in heights] == pytest.approx([1.0, 0.8, 0.6], abs=0.02)
    assert tab.style("svg.chart rect.bar.s0", "fill") != tab.style("svg.chart rect.bar.s1", "fill")
    assert tab.page.locator("td.fig.none").all_inner_texts() == ["excluded", "excluded"]
    assert HOSTILE[1] in tab.page.locator("#runs").inner_text()
    assert tab.count("main img, main script") == 0
    tab.page.emulate_media(color_scheme="dark")
    assert luminance(tab.style("body", "backgroundColor")) < 0.2
    assert tab.barriers() == []
    tab.page.set_viewport_size({"width": 390, "height": 844})
    assert tab.too_wide() == []
    assert tab.barriers() == []
    tab.page.set_viewport_size({"width": 720, "height": 1000})
    tab.page.emulate_media(media="print")
    assert tab.too_wide() == []
    href = tab.page.locator("#runs tbody a").first.get_attribute("href") or ""
    assert (offline_report.parent / href).is_file()


@pytest.fixture
def offline_report(campaigns: Path) -> Path:
    """Its report on disk."""
    file = campaigns / "cube.html"
    state = read_state(campaigns / "cube")
    file.write_text(render_html(result_of(state, spec_of(state)), beside(file)), encoding="utf-8")
    return file


def test_the_server_shows_campaigns(tabs: Opens, campaigns: Path) -> None:
    """From the page of all runs to the list, to the tables, to the page of a run."""
    with served(campaigns) as link:
        tab = tabs()
        tab.page.goto(link)
        tab.page.get_by_role("link", name="Campaigns").click()
        assert "fails so far" in tab.page.locator("main").inner_text()
        assert tab.barriers() == []
        tab.page.get_by_role("link", name="cube").click()
        tab.page.locator(".pivot").first.wait_for()
        assert tab.barriers() == []
        tab.page.emulate_media(color_scheme="dark")
        assert tab.barriers() == []
        tab.page.set_viewport_size({"width": 390, "height": 844})
        assert tab.too_wide() == []
        tab.page.locator("#runs tbody a").first.click()
        tab.page.wait_for_url("**/runs/cube%3Acable-bridge-r1/")
        tab.page.locator("#badge", has_text="PASS").wait_for()


def test_the_page_follows_the_campaign(tabs: Opens, campaigns: Path, tmp_path: Path) -> None:
    """When the last run has ended the page says so without a reload, and what was unfolded stays so."""
    own = shutil.copytree(campaigns, tmp_path / "campaigns")
    with served(own) as link:
        tab = tabs()
        tab.page.goto(link)
        tab.page.goto(f"{link.partition('/enter/')[0]}/campaigns/cube")
        assert "FAILS SO FAR" in tab.page.locator("#verdict").inner_text()
        tab.page.locator("#how summary").click()
        folder = own / "cube"
        place = "runs/fw-a-ips-r6"
        record(folder / place, Ran(figures={"load.rx.packet.rate": 6e5}), T0, {})
        cell = "device=fw-a,config=ips"
        with open_ledger(folder) as ledger:
            ledger.add(T0, BEGIN, cell=cell, repetition=6, attempt=1, folder=place, testbed="")
            ledger.add(T0 + SECOND, END, cell=cell, repetition=6, attempt=1, verdict="pass", reason="")
        tab.page.locator("#verdict h1", has_text="fail").wait_for()
        tab.page.locator("#verdict .badge", has_text="so far").wait_for(state="detached")
        assert tab.page.locator("#how details").get_attribute("open") is not None
        assert "1 run not run yet" not in tab.page.locator("#verdict").inner_text()


def test_campaigns_of_their_own_folder(campaigns: Path, tabs: Opens) -> None:
    """The folder of a campaign's runs serves them by their own names."""
    with served(campaigns / "cube" / "runs") as link:
        tab = tabs()
        tab.page.goto(link)
        tab.page.goto(f"{link.partition('/enter/')[0]}/campaigns/cube")
        assert tab.page.locator("#runs tbody a").first.get_attribute("href") == "/runs/cable-bridge-r1/"
        tab.forgive("status of 404")
        status = tab.page.evaluate("async () => (await fetch('/api/campaigns/other')).status")
        assert status == 404
        names = tab.page.evaluate("async () => (await (await fetch('/api/campaigns')).json()).campaigns[0].campaign")
        assert names == "cube"
