"""Causes, forecasts, passes and withdrawn warnings as people read them, in every format."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import jsonschema
from rich.console import Console
from tests.collector.report.conftest import MemoryRecord

from soakwatch.judge.verdict import Verdict, fold
from soakwatch.report.json import render_json, verdict_schema
from soakwatch.report.markdown import render_markdown
from soakwatch.report.terminal import print_verdict

RecordedVerdict = tuple[MemoryRecord, Verdict]


def printed(night: RecordedVerdict) -> list[str]:
    """The lines that are printed in a pipe."""
    target = io.StringIO()
    print_verdict(*night, Console(file=target, width=60))
    return target.getvalue().splitlines()


def test_the_terminal_tells_causes_and_not_rows(eventful: RecordedVerdict) -> None:
    """A reboot with its witnesses is one entry with its time line; fourteen inconclusive findings are one entry."""
    lines = printed(eventful)
    start = lines.index("✗ fail  twin  reboot  one incident, 3 related findings, confidence over 99 %")
    assert lines[start + 1] == "    1 reboot; with it: cpu_spike, gap"
    assert lines[start + 2] == "    2026-11-21 00:12:20  cpu_spike: 100 % for 50 s"
    assert lines[start + 3].split() == ["+1", "min", "reboot:", "new", "boot", "id"]
    assert lines[start + 4].split() == ["+1", "min", "2", "s", "gap", "local:", "silent"]
    assert "    ! warn  gap local: 97 s of silence" in lines
    assert "    forecast: system.memory.limit (3.80 GiB) reached in 31 h ± 6 h (90 %)" in lines
    assert "? inconclusive  leaker  growth: 14 series: too short; needs 2 more hours (not required)" in lines
    assert "✓ pass  memory_growth: 1 check passed; smallest detectable 5 %" in lines
    assert sum(line.startswith("withdrawn: twin growth system.memory.usage: warn withdrawn at") for line in lines) == 1
    assert sum("process=w,instance" in line for line in lines) == 1


def test_an_owner_and_an_event_are_named(eventful: RecordedVerdict, page_of_eventful: str) -> None:
    """The process that owns the host's growth, and the failover before the step, stand in the headlines."""
    for text in ("\n".join(printed(eventful)), page_of_eventful):
        assert "process httpd accounts for 92 % of it" in text
        assert "after failover at 2026-11-20 22:00:00 UTC: it rose" in text


def test_markdown_tells_causes_in_a_line_each(eventful: RecordedVerdict) -> None:
    """Chain, confidence, forecast and withdrawn warnings are in it; it keeps its 75 lines."""
    text = render_markdown(*eventful)
    assert len(text.splitlines()) <= 75
    assert (
        "100 % for 50 s → +1 min reboot: new boot id → +1 min 2 s gap local: silent (one cause with over 99 %" in text
    )
    assert "reached in 31 h ± 6 h (90 %)" in text
    assert "1 withdrawn during the run" in text
    assert text.count("growth: 14 series") == 1
    crowd = replace(eventful[0], gone=list(eventful[0].withdrawn()) * 50)
    assert len(render_markdown(crowd, eventful[1]).splitlines()) <= 75


def test_verdict_json_has_causes_by_place(eventful: RecordedVerdict) -> None:
    """The causes name findings by their place, keep the schema, and withdrawn warnings are no part of a verdict."""
    document = json.loads(render_json(eventful[1]))
    jsonschema.Draft202012Validator(json.loads(verdict_schema())).validate(document)
    reboot = next(entry for entry in document["causes"] if entry["kind"] == "incident" and entry["target"] == "twin")
    assert [document["findings"][index]["rule"] for index in reboot["findings"]] == ["reboot", "cpu_spike", "gap"]
    assert [mark["start"][11:19] for mark in reboot["timeline"]] == ["00:12:20", "00:13:20", "00:13:22"]
    owned = next(entry for entry in document["causes"] if entry["owner"])
    assert (owned["owner"], round(owned["share"], 2)) == ("httpd", 0.92)
    assert "warm-up" not in render_json(eventful[1])
    held = {index for entry in document["causes"] for index in entry["findings"]}
    listed = {n for n, entry in enumerate(document["findings"]) if entry["outcome"] in {"fail", "warn", "inconclusive"}}
    assert listed <= held


def test_the_page_folds_findings_under_their_cause(page_of_eventful: str) -> None:
    """A cause has a frame with its time line; what follows is on top; inconclusive and withdrawn in rows."""
    page = page_of_eventful
    frame = page[page.index("one incident, 3 related findings") :]
    assert "<b>+1 min 2 s</b>" in frame[: frame.index("</ol>")]
    assert page.index("What broke first") < page.index('<section id="findings">') < page.index("first failure (UTC)")
    assert "14 findings of this cause" in page
    assert "14 series: " in page[page.index('<section id="unjudged">') :]
    assert "it may be a warm-up" in page[page.index('<section id="withdrawn">') :]
    assert "why undecided" not in page[: page.index('<section id="findings">')]


def test_a_page_without_withdrawn_warnings_has_no_such_section(page_of_night: str) -> None:
    """What did not happen has no heading."""
    assert '<section id="withdrawn">' not in page_of_night


def test_two_hundred_findings_stay_readable(eventful: RecordedVerdict) -> None:
    """Where 200 series fail by themselves the terminal tells a dozen and counts the others."""
    verdict = eventful[1]
    bad = [replace(verdict.findings[0], rule="own", object=f"interface=e{n}", marks=()) for n in range(200)]
    crowd = fold("bad", verdict.window, {"leaker": "dut", "twin": "dut"}, bad, verdict.ledgers, ())
    lines = printed((eventful[0], crowd))
    assert "… and 188 more causes (188 findings) in the report" in lines
    assert len(lines) < 110  # with the timeline, headroom, coverage, load and set-up of the record
