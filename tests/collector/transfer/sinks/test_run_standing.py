"""What a database says of a run that goes on, was killed, was resumed, was imported; and when a sink was killed."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tests.collector.transfer.sinks.memory_sink import MemorySink, feed_of
from tests.collector.transfer.sinks.test_influxdb_outage import plan_of
from tests.commands import start, wait_until

from soakwatch.record import Record
from soakwatch.transfer.importing.files import import_files
from soakwatch.transfer.importing.timeline import ImportOptions
from soakwatch.transfer.sinks.influxdb import Influxdb
from soakwatch.transfer.sinks.timeline import SILENCE_NS
from soakwatch_model.finding import Finding, Mark, Outcome
from soakwatch_model.sample import NOTHING, Answer, Poll, PollOutcome, Sample
from soakwatch_model.window import Window
from soakwatch_testing.influxd import Influxd
from soakwatch_testing.records import SECOND, T0, small_poll

PLAN = """\
name: night
phases: [{baseline: 100s}, {soak: 900s}]
targets: {dut: {sources: [{local: {interval: 30s}}]}}
"""


def after(seconds: float) -> int:
    return T0 + round(seconds * SECOND)


def a_finding(
    rule: str, outcome: Outcome, begin: float, end: float, marks: Sequence[tuple[float, float | None]] = ()
) -> Finding:
    """Of a window in seconds after the begin of the run, which points at some moments."""
    made = tuple(
        Mark(T0 + round(low * SECOND), None if high is None else T0 + round(high * SECOND), "died")
        for low, high in marks
    )
    window = Window(T0 + round(begin * SECOND), T0 + round(end * SECOND))
    return Finding(rule, 1, outcome, "dut", "", "", window, "", f"{rule} {outcome}", 60, marks=made)


def a_run(folder: Path, polls: int = 200) -> Record:
    """A run of the plan that goes on: so many seconds of it, in two phases."""
    record = Record.create(folder)
    for name, value in {"run": "night", "plan": PLAN, "start_ns": str(T0)}.items():
        record.set_meta(name, value)
    record.target("dut", "dut")
    record.begin_span(T0)
    source = record.source("dut", "local", "dut/local", 30 * SECOND, required=True)
    record.source("dut", "snmp", "dut/snmp", 300 * SECOND, required=False)
    record.begin_phase("baseline", T0)
    record.put([small_poll(source.id, second) for second in range(min(polls, 100))])
    record.begin_phase("soak", T0 + 100 * SECOND)
    record.put([small_poll(source.id, second) for second in range(100, polls)])
    return record


def grow(record: Record, begin: int, end: int, outcome: PollOutcome = PollOutcome.OK) -> None:
    polls = [small_poll(1, second) for second in range(begin, end)]
    if outcome is not PollOutcome.OK:
        polls = [Poll(1, poll.due_ns, poll.due_ns, 0, outcome, "lost", NOTHING) for poll in polls]
    record.put(polls)
    record.heartbeat(T0 + end * SECOND)


def conclude(record: Record, end: int, findings: Sequence[Finding], verdict: str) -> None:
    """As the end of a run does it."""
    record.end_phase(T0 + end * SECOND)
    record.set_meta("ended_ns", str(T0 + end * SECOND))
    record.put_findings(findings, live=False, judged_ns=T0 + end * SECOND)
    record.set_meta("verdict", verdict)
    record.set_meta("reason", f"it is {verdict}")


def live(feed_sink: tuple[object, MemorySink]) -> None:
    """What a sink does each few seconds, without waiting for its half minute."""
    feed, _ = feed_sink
    feed._findings_s = -1e9  # type: ignore[attr-defined]
    for _ in range(2):
        feed.step()  # type: ignore[attr-defined]


def test_a_run_that_goes_on_says_until_when_and_when_it_is_stale(tmp_path: Path) -> None:
    sink = MemorySink()
    with a_run(tmp_path / "run") as record:
        grow(record, 200, 260, PollOutcome.TIMEOUT)
        live((feed_of(tmp_path / "run", sink, beside_run=True), sink))
        told = sink.verdict()
        assert (told["verdict"], told["rank"], told["severity"]) == ("running", -1, -1)
        assert (told["phase"], told["name"], told["failing_rules"]) == ("soak", "night", "")
        assert told["last_ms"] == T0 / 1e6 + 199_000
        assert told["stale_after_ms"] == 90_000
        assert told["planned_end_ms"] == T0 / 1e6 + 1_000_000
        assert "labels" not in told
        assert sink.states("phase", T0) == [(0, "baseline"), (100, "soak"), (400, "no reading")]
        other = MemorySink()
        feed_of(tmp_path / "run", other).finish()  # by the command: somebody writes the record
        assert other.verdict()["verdict"] == "running"


def test_the_phase_of_a_run_whose_processes_all_died_ends(tmp_path: Path) -> None:
    """Nobody writes after ``kill -9``: "soak" went on until now. The end of what is known is written ahead, at a
    multiple of five minutes; a process that begins anew, and the end of the run, put right what came too early."""
    assert T0 % SILENCE_NS == 200 * SECOND
    sink = MemorySink()
    with a_run(tmp_path / "run", 200) as record:
        live((feed_of(tmp_path / "run", sink, beside_run=True), sink))
        assert sink.states("phase", T0)[-1] == (400, "no reading")
        grow(record, 200, 800)
        other = feed_of(tmp_path / "run", sink, beside_run=True)
        live((other, sink))
        assert sink.states("phase", T0) == [(0, "baseline"), (100, "soak"), (1000, "no reading")]
    other = feed_of(tmp_path / "run", sink)
    other.finish()
    assert sink.states("phase", T0) == [(0, "baseline"), (100, "soak"), (800, "ended")]


def test_nothing_failed_is_what_a_run_says_while_nothing_has(tmp_path: Path) -> None:
    """Half of the wall said "4 samples of max latency; 18 needed": a check that is undecided yet is no headline."""
    sink = MemorySink()
    early = [a_finding("latency", Outcome.INCONCLUSIVE, 0, 100), a_finding("gap", Outcome.PASS, 0, 100)]
    with a_run(tmp_path / "run") as record:
        record.put_findings(early, live=True, judged_ns=T0 + 100 * SECOND)
        live(told := (feed_of(tmp_path / "run", sink, beside_run=True), sink))
        assert sink.verdict()["headline"] == "nothing failed so far; 1 check passed; 1 check cannot be decided yet"
        warned = a_finding("cpu_spike", Outcome.WARN, 0, 100)
        record.put_findings([*early, warned], live=True, judged_ns=T0 + 130 * SECOND)
        live(told)
        assert sink.verdict()["headline"] == "cpu_spike warn"


def test_a_killed_run_that_is_sent_later_is_not_judged(tmp_path: Path) -> None:
    sink = MemorySink()
    with a_run(tmp_path / "run") as record:
        grow(record, 200, 260)
        failing = a_finding("memory_growth", Outcome.FAIL, 0, 250)
        record.put_findings([failing], live=True, judged_ns=T0 + 250 * SECOND)
    feed_of(tmp_path / "run", sink).finish()
    told = sink.verdict()
    assert (told["verdict"], told["rank"], told["severity"], told["phase"]) == ("not judged", -2, -2, "")
    assert told["headline"] == "broke off at 22:17 UTC: not judged; run `soakwatch judge`"
    assert (told["failed"], told["failing_rules"]) == (1, "memory_growth")
    assert sink.states("phase", T0) == [(0, "baseline"), (100, "soak"), (260, "ended")]


def test_a_run_that_was_not_judged_at_its_end_says_so(tmp_path: Path) -> None:
    with a_run(tmp_path / "run") as record:
        record.set_meta("ended_ns", str(T0 + 200 * SECOND))
    sink = MemorySink()
    feed_of(tmp_path / "run", sink).finish()
    assert str(sink.verdict()["headline"]).startswith("ended at 22:1")


@pytest.mark.parametrize("judged", [False, True], ids=["not judged", "judged"])
def test_an_imported_record(judged: bool, tmp_path: Path) -> None:
    table = tmp_path / "fw.csv"
    table.write_text("time,heap\n" + "".join(f"{1_767_225_600 + 10 * at},{100 + at}\n" for at in range(100)))
    import_files([str(table)], tmp_path / "run", "fw", ImportOptions(growth="up"))
    if judged:
        with Record.open(tmp_path / "run") as record:
            record.set_meta("verdict", "pass")
            record.set_meta("reason", "all is well")
    sink = MemorySink()
    feed_of(tmp_path / "run", sink).finish()
    told = sink.verdict()
    assert "planned_end_ms" not in told
    assert told["last_ms"] == 1_767_225_600_000 + 990_000
    expected = ("pass", 0, "all is well") if judged else ("not judged", -2, "imported, not judged")
    assert (told["verdict"], told["rank"], told["headline"]) == expected


def test_a_resumed_run_goes_on_and_ends_with_its_verdict(tmp_path: Path) -> None:
    """Killed and sent, resumed beside a sink, ended: in one database."""
    sink = MemorySink()
    failing = a_finding("memory_growth", Outcome.FAIL, 0, 190)
    with a_run(tmp_path / "run") as record:
        grow(record, 200, 201)
        record.put_findings([failing], live=True, judged_ns=T0 + 190 * SECOND)
    feed_of(tmp_path / "run", sink).finish()
    assert sink.states("phase", T0)[-1] == (201, "ended")
    assert sink.states("memory_growth", T0) == [(0, "fail"), (190, "ok")]
    with Record.open(tmp_path / "run") as record:
        record.begin_span(T0 + 300 * SECOND)
        grow(record, 300, 400)
        feed = feed_of(tmp_path / "run", sink, beside_run=True)
        live((feed, sink))
        assert sink.verdict()["verdict"] == "running"
        assert sink.states("phase", T0) == [(0, "baseline"), (100, "soak"), (700, "no reading")]
        assert sink.states("memory_growth", T0) == [(0, "fail")]
        grow(record, 400, 1000)
        final = replace(failing, window=Window(T0 + 100 * SECOND, T0 + 1000 * SECOND))
        conclude(record, 1000, [final, a_finding("gap", Outcome.PASS, 0, 1000)], "fail")
        feed.finish()
    told = sink.verdict()
    assert (told["verdict"], told["rank"], told["phase"], told["headline"]) == ("fail", 3, "", "it is fail")
    assert sink.states("phase", T0) == [(0, "baseline"), (100, "soak"), (1000, "ended")]
    assert sink.states("memory_growth", T0) == [(0, "ok"), (100, "fail"), (1000, "ok")]
    assert sink.states("gap", T0) == [(0, "ok")]


def test_findings_are_dated_as_the_report_dates_them(tmp_path: Path) -> None:
    with a_run(tmp_path / "run") as record:
        crash = a_finding("core_dump", Outcome.FAIL, 0, 200, [(150.5, None), (170, 172)])
        growth = a_finding("memory_growth", Outcome.WARN, 0, 200, [(50, 60)])  # where it looked
        short = a_finding("gap", Outcome.INCONCLUSIVE, 100, 200)
        conclude(record, 200, [crash, growth, short], "fail")
        record.finish()
    sink = MemorySink()
    feed_of(tmp_path / "run", sink).finish()
    dated = {
        rule: [
            (f["rank"], (float(f["at_ms"]) - T0 / 1e6) / 1e3, f["moment"])
            for _, f in sink.of("soakwatch_finding", rule=rule)
        ]
        for rule in ("core_dump", "memory_growth", "gap")
    }
    assert dated == {"core_dump": [(3, 150.5, 1)], "memory_growth": [(2, 0, 0)], "gap": [(1, 100, 0)]}
    assert sink.states("core_dump", T0) == [
        (0, "ok"),
        (150.5, "fail"),
        (pytest.approx(151.5), "ok"),  # a two-hundredth of the run
        (170, "fail"),
        (172, "ok"),
    ]
    assert sink.states("gap", T0) == [(0, "ok"), (100, "inconclusive"), (200, "ok")]


@pytest.mark.parametrize("killed", [False, True], ids=["one life", "a sink that is killed in between"])
def test_live_findings_that_go_away_leave_no_state(killed: bool, tmp_path: Path) -> None:
    sink = MemorySink()
    with a_run(tmp_path / "run") as record:
        spike = a_finding("cpu_spike", Outcome.WARN, 100, 200)
        early = a_finding("step_change", Outcome.INCONCLUSIVE, 0, 200)
        record.put_findings([spike, early], live=True, judged_ns=T0 + 200 * SECOND)
        feed = feed_of(tmp_path / "run", sink, beside_run=True)
        live((feed, sink))
        assert sink.states("cpu_spike", T0) == [(0, "ok"), (100, "warn")]
        assert sink.states("step_change", T0) == [(0, "inconclusive")]
        grow(record, 200, 300)
        record.put_findings([a_finding("step_change", Outcome.PASS, 0, 300)], live=True, judged_ns=T0 + 300 * SECOND)
        if killed:
            feed = feed_of(tmp_path / "run", sink, feed.state.cursor, beside_run=True)
        live((feed, sink))
        assert sink.states("cpu_spike", T0) == [(0, "ok")]
        assert sink.states("step_change", T0) == [(0, "ok")]
        conclude(record, 300, [a_finding(rule, Outcome.PASS, 0, 300) for rule in ("cpu_spike", "step_change")], "pass")
        feed.finish()
    whole = MemorySink()
    feed_of(tmp_path / "run", whole).finish()
    for row in ("phase", "cpu_spike", "step_change"):
        assert sink.states(row, T0) == whole.states(row, T0)
    assert {fields["rank"] for _, fields in sink.of("soakwatch_finding")} == {0.0}


def load_poll(source: int, second: float, metrics: dict[str, float]) -> Poll:
    due_ns = T0 + round(second * SECOND)
    samples = tuple(Sample(metric, "", value, due_ns) for metric, value in metrics.items())
    return Poll(source, due_ns, due_ns, 1, PollOutcome.OK, None, Answer(samples, (), ()))


@pytest.mark.parametrize("killed", [False, True], ids=["one life", "a sink that is killed in between"])
def test_the_load_is_written_live_and_the_same_again_by_another_feed(killed: bool, tmp_path: Path) -> None:
    """Of each generator the best metric, of other targets none; a counter that began anew gives no rate."""
    sink = MemorySink()
    with Record.create(tmp_path / "run") as record:
        sources = {}
        for target, role in (("tg", "generator"), ("web", "generator"), ("dut", "dut")):
            record.target(target, role)
            sources[target] = record.source(target, "command", target, SECOND, required=True).id
        feed = feed_of(tmp_path / "run", sink, beside_run=True)
        total = 0.0
        for second in range(60):
            total = 0.0 if second == 30 else total + 1000
            record.put(
                [
                    load_poll(sources["tg"], second, {"load.users": 7.0, "load.tx.bytes": total}),
                    load_poll(sources["web"], second, {"load.requests": 50.0 * second, "load.request.rate": 49.0}),
                    load_poll(sources["dut"], second, {"load.request.rate": 1.0}),
                ]
            )
            if second % 7 == 0:
                if killed:
                    feed = feed_of(tmp_path / "run", sink, feed.state.cursor, beside_run=True)
                live((feed, sink))
        record.set_meta("verdict", "pass")
        feed.finish()
    whole = MemorySink()
    feed_of(tmp_path / "run", whole).finish()
    assert sink.of("soakwatch_load") == whole.of("soakwatch_load")
    bits = sink.of("soakwatch_load", target="tg", what="bits", role="generator")
    assert [float(fields["value"]) for _, fields in bits] == pytest.approx([8000.0] * 58)
    assert T0 + 30 * SECOND not in {time_ns for time_ns, _ in bits}
    assert [fields["value"] for _, fields in sink.of("soakwatch_load", target="web", what="requests")] == [49.0] * 60
    assert sink.of("soakwatch_load", target="dut") == []


def test_what_is_beside_a_verdict_that_was_refused_is_not_written(tmp_path: Path) -> None:
    with a_run(tmp_path / "run") as record:
        record.put([load_poll(1, 200, {"system.cpu.utilization": 0.5})])
        record.finish()
    for refuses, expected in ((b"soakwatch_verdict", False), (b"soakwatch_poll", True)):
        sink = MemorySink(refuses=refuses)
        feed_of(tmp_path / "run", sink).finish()
        assert bool(sink.of("soakwatch_aligned")) is expected


@pytest.mark.slow
def test_a_collector_that_is_killed_is_seen_in_the_database_at_once(
    tmp_path: Path, own_influxd: Influxd, address: Influxdb
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(plan_of(address).replace("duration: 1m", "duration: 1h"))
    words = ("run", plan, "--into", tmp_path / "run", "--no-web")
    process = start(words, tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def said() -> object:
        with suppress(KeyError, IndexError):
            return own_influxd.influxql("SELECT verdict FROM soakwatch_verdict")[0]["verdict"]
        return None

    try:
        wait_until(lambda: said() == "running", "the run is not there")
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: said() == "not judged", "the run goes on for ever")
    (row,) = own_influxd.influxql("SELECT headline, rank FROM soakwatch_verdict")
    assert str(row["headline"]).startswith("broke off at ")
    assert row["rank"] == -2
