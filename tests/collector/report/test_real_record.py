"""The report over a record on disk."""

from __future__ import annotations

from pathlib import Path

from soakwatch.judge.verdict import Verdict, fold
from soakwatch.record import Record, RecordView
from soakwatch.record.source import ReportSource
from soakwatch.report.html import render_html
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.sample import NOTHING, Answer, Fault, Poll, PollOutcome, Sample
from soakwatch_model.window import Window

BEGIN = 1_795_200_000 * 10**9
SECOND = 10**9
PROCESS = "process=httpd,instance=0"


def written(folder: Path) -> Path:
    """A record of ten minutes: a process, the load, a silence of a minute, a restart and a fault."""
    with Record.create(folder) as record:
        record.set_meta("run", "real")
        record.set_meta("plan", "name: real\n")
        record.target("dut", "dut")
        record.target("tg", "generator")
        local = record.source("dut", "local", "local", SECOND, True)
        load = record.source("tg", "command", "command", SECOND, True)
        record.begin_phase("soak", BEGIN)
        for second in range(600):
            now = BEGIN + second * SECOND
            samples = (
                Sample("process.memory.usage", PROCESS, 2**20 * (50 + second // 60), now),
                Sample("system.network.packets", "interface=eth0,direction=receive", second * 1000, now),
            )
            event = Event("process.restart", "", PROCESS, now, None, {"pid": "12"})
            fault = Fault("process.memory.pss", PROCESS, "PSS may not be read")
            answer = Answer(samples, (event,) if second == 300 else (), (fault,))
            good = Poll(local.id, now, now, 1000, PollOutcome.OK, None, answer)
            lost = Poll(local.id, now, now, SECOND, PollOutcome.TIMEOUT, "timed out after 1 s", NOTHING)
            rate = Answer((Sample("load.request.rate", "", 500.0 + second % 7, now),), (), ())
            record.put(
                [lost if 100 <= second < 160 else good, Poll(load.id, now, now, 1000, PollOutcome.OK, None, rate)]
            )
        record.end_phase(BEGIN + 600 * SECOND)
        record.finish()
    return folder


def judged(view: RecordView) -> Verdict:
    """A verdict with one failing finding over the record."""
    window = view.window()
    finding = Finding(
        "memory_growth",
        1,
        Outcome.FAIL,
        "dut",
        "process.memory.usage",
        PROCESS,
        window,
        "Any growth fails.",
        "memory grew by 18 %",
        540,
        expected=600,
        measured=59 * 2.0**20,
        limit=55 * 2.0**20,
        unit="By",
    )
    return fold("real", window, view.roles(), [finding], view.ledgers(window), view.phases())


def test_a_record_on_disk_is_a_source(tmp_path: Path) -> None:
    """A report over a real record shows its load, events, faults, gap and plan, and is the same when read again."""
    folder = written(tmp_path / "run")
    with RecordView.open(folder) as view:
        source: ReportSource = view
        page = render_html(source, judged(view))
    for part in (
        "memory grew by 18 %",
        "process.restart",
        "PSS may not be read",
        "timed out after 1 s",
        "name: real",
        "answered 503 requests/s (500 to 506 requests/s)",
        "failures were not recorded; latency was not recorded",
        "60 timed out, ",
        "540 of 600",
    ):
        assert part in page
    with RecordView.open(folder) as again:
        assert render_html(again, judged(again)) == page


def test_a_run_that_goes_on_has_a_report(tmp_path: Path) -> None:
    """The report can be made while the record is still being written."""
    with Record.create(tmp_path / "run") as record:
        record.target("dut", "dut")
        source = record.source("dut", "local", "local", SECOND, True)
        answer = Answer((Sample("system.cpu.utilization", "", 0.5, BEGIN),), (), ())
        record.put([Poll(source.id, BEGIN, BEGIN, 1000, PollOutcome.OK, None, answer)])
        with RecordView.open(tmp_path / "run") as view:
            verdict = fold("now", Window(BEGIN, BEGIN + SECOND), view.roles(), [], [], view.phases())
            assert "inconclusive" in render_html(view, verdict)
