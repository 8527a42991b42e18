"""Sections come from their folder and from plug-ins, and say the same in every format."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from tests.collector.report.conftest import MemoryRecord

from soakwatch.core.errors import PlanError
from soakwatch.core.formatting import quantity
from soakwatch.core.registry import PluginFolder
from soakwatch.judge.verdict import Verdict
from soakwatch.report.html import render_html
from soakwatch.report.markdown import render_markdown
from soakwatch.report.section import SECTIONS, all_sections
from soakwatch.report.terminal import print_verdict
from soakwatch_rules.wording import quantities

Night = tuple[MemoryRecord, Verdict]
FOREIGN = '''
"""Temperatures of the rack, from a plug-in."""

from soakwatch.report.blocks import Curves, Folded, Preformatted, ReportCell, ReportColumn, Table, Text
from soakwatch_model.finding import Outcome

ORDER = 40
TITLE = "Rack temperatures"


def blocks(page):
    key = page.source.keys(["system.cpu.utilization"])[0]
    rows = [["inlet <b>", "21.5 °C"], [ReportCell("outlet", outcome=Outcome.WARN), ReportCell("48 °C", "bad")]]
    return [
        Text("Measured by the rack's own sensors.", label="note"),
        Table("Temperatures", (ReportColumn("sensor", "name"), ReportColumn("highest", "number")), rows),
        Curves("fan speed", (page.source.series(key),), ("fan 1",)),
        Folded("2 sensors were calm", (Text("door: 20 °C"), Text("floor: 19 °C"))),
        Preformatted("raw answer", ("a  b", "1  2")),
    ]
'''
FAULTY = "ORDER = 41\nTITLE = 'Faulty'\n\n\ndef blocks(page):\n    return [1 / 0]\n"
NOT_A_SECTION = "ORDER = 42\n"


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution with three entry points of the group of sections: one works, one fails, one is no section."""
    modules = {"rack_section": FOREIGN, "faulty_section": FAULTY, "no_section": NOT_A_SECTION}
    info = tmp_path / "rack-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rack\nVersion: 1.0\n")
    points = "".join(f"{name} = {name}\n" for name in modules)
    (info / "entry_points.txt").write_text(f"[soakwatch.sections]\n{points}")
    for name, text in modules.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in modules:
        sys.modules.pop(name, None)


def printed(night: Night, *, terminal: bool, width: int = 120) -> str:
    """The report on a console, without the codes of colours."""
    target = io.StringIO()
    print_verdict(*night, Console(file=target, width=width, force_terminal=terminal, legacy_windows=False))
    return re.sub(r"\x1b\[[0-9;]*m", "", target.getvalue())


@pytest.mark.usefixtures("plugin")
def test_a_section_of_a_plug_in_is_in_every_format(night: Night) -> None:
    """Its sentence, table, curve and folded list are drawn by each format; its text is no markup."""
    assert "rack_section" in SECTIONS.names()
    record = replace(night[0], data=[each for each in night[0].data if each.metric == "system.cpu.utilization"][:1])
    shown = record, night[1]
    page = render_html(*shown)
    section = page.partition('<section id="rack_section">')[2].partition("</section>")[0]
    texts = {
        "html": section,
        "markdown": render_markdown(*shown),
        "terminal": printed(shown, terminal=True),
        "narrow": printed(shown, terminal=True, width=60),
        "text": printed(shown, terminal=False),
    }
    for form, text in texts.items():
        wanted = ("own sensors", "inlet", "21.5 °C", "outlet", "48 °C", "fan speed", "door: 20 °C", "raw answer")
        assert [word for word in wanted if word not in text] == [], form
        assert "Rack temperatures" in text, form
    assert "inlet &lt;b&gt;" in section
    assert "<b>note</b>" in section
    assert 'class="plot"' in section
    assert "| inlet &lt;b&gt; | 21.5 °C |" in texts["markdown"]
    assert "**note**" in texts["markdown"]
    assert re.search(r"[▁▂▃▄▅▆▇█]{10}", texts["text"].partition("fan speed")[2])
    assert len(texts["markdown"].splitlines()) <= 75


@pytest.mark.usefixtures("plugin")
def test_a_faulty_plug_in_costs_its_section_and_not_the_report(plain: Night) -> None:
    """What fails, and what is no section, says so in its place; everything else of the report is there."""
    for text in (render_html(*plain), printed(plain, terminal=False)):
        assert "the section faulty_section failed: ZeroDivisionError: division by zero" in text
        assert "needs ORDER (a number), TITLE (text) and blocks(page)" in text
        assert "httpd restarted once" in text


@pytest.mark.usefixtures("plugin")
def test_a_pull_request_is_short_whatever_plug_ins_say(eventful: Night) -> None:
    """Markdown drops sections of plug-ins that do not fit into 75 lines, and counts them."""
    record, verdict = eventful
    crowd = copy(record)
    many = tuple(replace(verdict.ledgers[0], source=f"leaker/s{n}") for n in range(20))
    causes = verdict.causes * 3
    text = render_markdown(crowd, replace(verdict, ledgers=many, causes=causes))
    assert len(text.splitlines()) <= 75
    assert "Rack temperatures" in text or "more sections in the report" in text


def test_a_broken_module_of_the_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own folder holds nothing but sections."""
    folder = tmp_path / "rooms"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "half.py").write_text("ORDER = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PlanError, match=r"the section 'half' .* needs ORDER"):
        all_sections(PluginFolder("rooms", "section"))


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (50.43 * 2**20, "By", "50.4 MiB"),
        (940.14, "{request}/s", "940 requests/s"),
        (0.05, "1", "5 %"),
        (5400.0, "s", "1 h 30 min"),
        (1.0, "{restart}", "1 restart"),
    ],
)
def test_a_quantity_reads_the_same_everywhere(plain: Night, value: float, unit: str, text: str) -> None:
    """Terminal, pipe, Markdown and page, and the sentences of the rules, have one style for a number with its unit."""
    assert quantity(value, unit) == quantities.quantity(value, unit) == text
    record, before = plain
    first = replace(before.findings[0], measured=value, limit=2 * value, unit=unit)
    verdict = replace(before, findings=(first, *before.findings[1:]))
    for shown in (
        printed((record, verdict), terminal=True),
        printed((record, verdict), terminal=False),
        render_markdown(record, verdict),
        render_html(record, verdict),
    ):
        assert text in " ".join(shown.split())


def test_a_duration_reads_the_same_everywhere(plain: Night) -> None:
    """The length of the run is said in one way, and never in the syntax of a plan."""
    for shown in (printed(plain, terminal=True), render_markdown(*plain)):
        assert "UTC, 8 h\n" in shown
        assert not re.search(r"\b8h\b", shown)
    assert "<dt>duration</dt><dd>8 h</dd>" in render_html(*plain)
