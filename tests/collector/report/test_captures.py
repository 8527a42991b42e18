"""Flight-recorder captures in the reports: the curves are drawn, with the reasons for the capture."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import pytest
from rich.console import Console
from tests.collector.report.conftest import BEGIN, LENGTH, MemoryRecord, finding, series_of

from soakwatch.core.event_kinds import capture_reason, key_of
from soakwatch.judge.verdict import Verdict, fold
from soakwatch.record.model import StoredEvent
from soakwatch.report.captures import captures_of
from soakwatch.report.html import render_html
from soakwatch.report.markdown import render_markdown
from soakwatch.report.terminal import print_verdict
from soakwatch_model.event import Event
from soakwatch_model.finding import Mark, Outcome

S = 10**9
MINUTE = BEGIN + 3600 * S
HOSTILE = "</script><img src=x onerror=alert(1)> $$x$$"


def window(minute: int, why: str, **more: str) -> Event:
    """The event that says that samples are there."""
    middle = MINUTE + minute * 60 * S
    detail = {"reason": why, "at_ns": " ".join([str(middle)] * (why.count("; ") + 1)), "every_s": "0.1", **more}
    return Event("recorder.window", "dut", "", middle - 30 * S, middle + 30 * S, detail)


def recorded(*windows: Event) -> tuple[MemoryRecord, Verdict]:
    """A device with four cores, of which one is pinned for ten seconds; packets drop, sockets rest."""
    t = np.arange(3570.0, 3630.0, 0.1)
    burst = (t >= 3600) & (t < 3610)
    record = MemoryRecord(names={"dut": "dut"})
    record.data = [
        series_of("dut", "system.cpu.utilization", "", np.arange(0.0, LENGTH, 10), np.full(LENGTH // 10, 0.1))
    ]
    for core in range(4):
        share = np.where(burst & (core == 2), 1.0, 0.1)
        record.data.append(series_of("dut", "recorder.cpu.utilization", f"core={core}", t, share))
    record.data += [
        series_of("dut", "recorder.cpu.utilization", "core=all", t, np.where(burst, 0.325, 0.1)),
        series_of("dut", "recorder.dropped", "place=softnet", t, np.cumsum(burst * 3.0)),
        series_of("dut", "recorder.dropped", "place=receive", t, t * 0.0),
        series_of("dut", "recorder.queue.usage", "queue=tcp", t, t * 0.0 + 8192),
    ]
    happened = Event("link.down", "dut", "interface=eth0", MINUTE + 2 * S, None)
    record.stored = [StoredEvent(n, "probe", event) for n, event in enumerate((happened, *windows), 1)]
    fails = finding(Outcome.FAIL, "dut", "cpu_spike", "system.cpu.utilization", marks=(Mark(MINUTE, None, "spike"),))
    passes = finding(Outcome.PASS, "dut", "growth", "system.cpu.utilization")
    return record, fold("captures", record.window(), record.names, [fails, passes], (), ())


def section(page: str, name: str) -> str:
    """One section of the page."""
    return page.partition(f'<section id="{name}">')[2].partition("</section>")[0]


def test_the_curves_are_drawn_with_what_caused_the_capture() -> None:
    """CPU with its pinned core and drops as plots of a minute; what rests in words; the cause as a mark."""
    record, verdict = recorded(window(0, "link.down interface=eth0; fail: cpu_spike system.cpu.utilization", more="4"))
    page = render_html(record, verdict)
    markup = section(page, "captures")
    assert markup.count('class="plot"') == 2
    assert re.search(r"<ol.*<b>link.down interface=eth0</b>.*<b>fail: cpu_spike system.cpu.utilization</b>", markup)
    assert "and 4 more events in this time" in markup
    assert "no packet was dropped (receive)" in markup
    assert "queues of TCP: 8 KiB throughout" in markup
    pieces = re.findall(r'class="plot-piece" data-element="[^"]+">(.*?)</script>', page, re.DOTALL)
    document = "".join(pieces)
    for words in ("all cores", "core 2", "softnet", '"words":"reason for the capture"', "link.down interface=eth0"):
        assert words in document
    axes = [json.loads(piece)["time"] for piece in pieces]
    assert ((MINUTE - 30 * S) // 10**6, (MINUTE + 30 * S) // 10**6 + 1) in [
        (axis["begin"], axis["end"]) for axis in axes
    ]


def test_a_finding_and_its_capture_name_each_other() -> None:
    """The failure whose moment lies in the stretch links there, and back; one that names no moment there does not."""
    record, verdict = recorded(window(0, "link.down interface=eth0"), window(30, "rollout"))
    page = render_html(record, verdict)
    card = section(page, "findings").partition("<article")[2].partition("</article>")[0]
    assert '<a href="#capture-1">' in card
    assert '<a href="#capture-2">' not in card
    assert 'href="#finding-1">cpu_spike</a>' in section(page, "captures")
    assert "recorder.window" not in section(page, "findings")


def test_many_captures_are_a_table_behind_the_first() -> None:
    """Twelve have a card, that of the failure among them; none is without its line."""
    windows = [window(minute, "rollout") for minute in range(-40, 0, 2)] + [window(0, "link.down")]
    record, verdict = recorded(*windows)
    record.data = [series for series in record.data if series.metric == "recorder.dropped"]  # one plot each
    markup = section(render_html(record, verdict), "captures")
    assert len(re.findall(r'<div class="card" id="capture-\d+"', markup)) == 12
    assert len(re.findall(r'<tr id="capture-\d+"', markup)) == len(windows) - 12
    assert '<div class="card" id="capture-21"' in markup


def test_without_a_capture_there_is_no_section() -> None:
    """Nothing is said of what nobody has."""
    record, verdict = recorded()
    assert section(render_html(record, verdict), "captures") == ""
    assert "flight-recorder capture" not in render_markdown(record, verdict)


def test_terminal_and_markdown_name_it_in_a_line() -> None:
    """How many, where, and why of the first few."""
    windows = [window(minute, "link.down") for minute in range(5)]
    record, verdict = recorded(*windows)
    target = io.StringIO()
    print_verdict(record, verdict, Console(file=target, width=60))
    (line,) = [line for line in target.getvalue().splitlines() if "flight-recorder capture" in line]
    assert line.startswith("5 flight-recorder captures in the report: dut at 2026-11-20 ")
    assert line.endswith("(link.down) and 2 more")
    text = render_markdown(record, verdict)
    assert sum("5 flight-recorder captures" in line for line in text.splitlines()) == 1


@pytest.mark.parametrize(
    "detail",
    [
        {},
        {"reason": HOSTILE, "at_ns": "noon"},
        {"at_ns": "1 2 3"},
        {"reason": "a; b; c", "at_ns": "5"},
        {"reason": HOSTILE, "at_ns": str(MINUTE), "more": "-1"},
        {"reason": HOSTILE, "at_ns": str(MINUTE), "findings": HOSTILE},
        {"reason": HOSTILE, "at_ns": str(MINUTE), "findings": '[1, ["a"], {"b": []}]'},
    ],
)
def test_a_window_that_tells_nonsense_is_shown_as_text(detail: dict[str, str]) -> None:
    """Whatever an agent says: a page, and nothing in it is a tag."""
    event = Event("recorder.window", "dut", "", MINUTE - 30 * S, MINUTE + 30 * S, detail)
    open_ended = Event("recorder.window", "dut", "", MINUTE, None, detail)
    record, verdict = recorded(event, open_ended)
    record.data = [series for series in record.data if series.metric == "recorder.dropped" and "more" in detail]
    page = render_html(record, verdict)
    assert section(page, "captures").count("<article") == 0
    assert '<div class="card" id="capture-1"' in page
    assert "<img" not in page


def test_a_capture_names_the_finding_it_was_made_for_by_more_than_words() -> None:
    """Two series whose long names begin alike are told apart; words alone name none."""
    near, far = (f"process={'a' * 150},instance={number}" for number in (0, 1))
    findings = [finding(Outcome.FAIL, "dut", "growth", "process.memory.rss", name) for name in (near, far)]
    why = capture_reason(findings[0], Outcome.WARN)
    assert why == capture_reason(findings[1], Outcome.WARN)
    keyed = window(0, f"rollout; {why}", findings=json.dumps([None, key_of(findings[0])]))
    for event, related in ((keyed, [True, False]), (window(0, why), [False, False])):
        (capture,) = captures_of([StoredEvent(1, "agent", event)])
        assert [capture.shows(item) for item in findings] == related
