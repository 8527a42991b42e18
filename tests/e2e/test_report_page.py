"""The report in a real browser without a network: nothing is complained of, and names stay text."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.needs import needs_chromium

from soakwatch.judge.record_verdict import judge_record
from soakwatch.record import Record, RecordView
from soakwatch.report.html import render_html
from soakwatch_model.event import Event
from soakwatch_model.sample import NOTHING, Answer, Poll, PollOutcome, Sample, object_text

BEGIN = 1_795_200_000 * 10**9
SECOND = 10**9
LENGTH, RESTART, SILENT = 900, 500, range(700, 720)
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)> $$x^2$$ \\(y\\) 🔥"
ARABIC = "خدمة \u202eevil\u202c"
PLAN = "name: browser\nduration: 15m\n# </script><b>plan</b>\n"


@dataclass(frozen=True, slots=True)
class Opened:
    """What a browser made of a page: its document after all scripts ran, and what it complained of."""

    document: str
    console: tuple[str, ...]
    page: str


def written(folder: Path) -> Path:
    """A record of fifteen minutes: a leak, a restart, lost polls, phases, and a load that fails for a while."""
    noise = np.random.default_rng(11)
    leaking, calm = object_text(process=HOSTILE, instance=0), object_text(process=ARABIC, instance=0)
    with Record.create(folder) as record:
        record.set_meta("run", HOSTILE)
        record.set_meta("plan", PLAN)
        record.target("dut", "dut")
        record.target(HOSTILE, "generator")
        device = record.source("dut", "local", "local", SECOND, True)
        load = record.source(HOSTILE, "command", "command", SECOND, True)
        for second in range(LENGTH):
            now = BEGIN + second * SECOND
            if second in {0, 120, 780}:
                if second:
                    record.end_phase(now)
                record.begin_phase({0: "baseline", 120: "soak", 780: "recovery"}[second], now)
            life = second if second < RESTART else second - RESTART
            born = BEGIN * 1e-9 - 60 if second < RESTART else BEGIN * 1e-9 + RESTART
            samples = (
                Sample("process.memory.usage", leaking, 2**20 * 40 + 2**17 * life, now),
                Sample("process.start_time", leaking, born, now),
                Sample("process.up", leaking, 1, now),
                Sample("process.memory.usage", calm, 2**20 * 50 + 4096 * int(noise.integers(0, 9)), now),
                Sample("process.up", calm, 1, now),
                Sample("system.cpu.utilization", "", float(noise.uniform(0.1, 0.2)), now),
            )
            event = Event("process.restart", "", leaking, now, None, {"reason": HOSTILE})
            answer = Answer(samples, (event,) if second == RESTART else (), ())
            took = Poll(device.id, now, now, 1000, PollOutcome.OK, None, answer)
            if second in SILENT:
                took = Poll(device.id, now, now, SECOND, PollOutcome.TIMEOUT, HOSTILE, NOTHING)
            failed = 5.0 if RESTART <= second < RESTART + 3 else 0.0
            load_samples = (
                Sample("load.request.rate", "", 400.0 - failed, now),
                Sample("load.offered.rate", "", 400.0, now),
                Sample("load.failure.rate", "", failed, now),
                Sample("load.latency", "quantile=p50", float(noise.uniform(0.001, 0.002)), now),
                Sample("load.latency", "quantile=p99", float(noise.uniform(0.01, 0.2)), now),
            )
            record.put([took, Poll(load.id, now, now, 1000, PollOutcome.OK, None, Answer(load_samples, (), ()))])
        record.end_phase(BEGIN + LENGTH * SECOND)
        record.finish()
    return folder


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """The judged record's report, opened from disk by headless Chromium with every name unresolvable."""
    browser = needs_chromium()
    folder = tmp_path_factory.mktemp("page")
    with RecordView.open(written(folder / "run")) as view:
        page = render_html(view, judge_record(view))
    file = folder / "report.html"
    file.write_text(page, encoding="utf-8")
    done = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--disable-dev-shm-usage",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={folder / 'profile'}",
            "--enable-logging=stderr",
            "--v=0",
            "--window-size=1400,8000",
            "--virtual-time-budget=20000",
            "--dump-dom",
            file.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    complaints = tuple(
        line for line in done.stderr.splitlines() if "CONSOLE" in line and "setting log level" not in line
    )
    return Opened(done.stdout, complaints, page)


def test_the_console_is_silent(opened: Opened) -> None:
    """No script fails, nothing is refused by the page's policy, and nothing is looked up in a network."""
    assert opened.console == ()


def test_the_load_is_shown_and_has_plots(opened: Opened) -> None:
    """The section on the load has three plots, its failures and its latency."""
    section = opened.document.split('<section id="load">', 1)[1].split("</section>", 1)[0]
    assert section.count('aria-label="Plot: ') == 3
    assert "failed requests" in section or "failed, of all" in section
    assert "latency p99" in section


def test_lost_polls_are_on_the_strip(opened: Opened) -> None:
    """The twenty seconds without an answer are a stretch of their own on the strip of their source."""
    assert re.search(r'<span class="timeout"[^>]*title="20 timed out, ', opened.document)


def test_the_leak_and_the_restart_are_found(opened: Opened) -> None:
    """The page judges what the record holds: the leaking process fails for both, by name."""
    for rule in ("memory_growth", "process_restart"):
        assert re.search(rf'<article class="card fail".*?</span> {rule}\b', opened.document, re.DOTALL)


def test_hostile_names_stay_text(opened: Opened) -> None:
    """Names that try to end a script, load a picture, be a formula or turn the text around do none of these."""
    assert "FAIL: &lt;/script&gt;" in re.findall(r"<title>(.*?)</title>", opened.document, re.DOTALL)[0]
    assert "<img" not in opened.document
    plots = opened.page.count('<script type="application/json" class="plot-piece"')
    assert opened.page.count("<script") == 4 + plots  # the page's, uPlot, the plots' and what they share
    assert opened.document.count("<script") == 4 + opened.document.count('class="plot-piece"')
    assert "mjx-container" not in opened.document
    assert "\u202e" not in opened.document
    assert "خدمة" in opened.document
    assert "🔥" in opened.document
