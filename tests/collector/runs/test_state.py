"""How a run stands, by its record alone: the same counts as its ledgers, however often it is asked."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from soakwatch.cli.display.panel import RunPicture
from soakwatch.judge.rates import META as SO_FAR
from soakwatch.judge.rates import LiveSnapshot, Rate, snapshot_text
from soakwatch.record import Record, RecordView
from soakwatch.runs.mark_event import moment_text
from soakwatch.runs.run_state import StateReader
from soakwatch.runs.watching import status_of
from soakwatch.web.json_state import state_data
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample

SECOND = 10**9
BEGIN = 1_780_000_000 * SECOND
PLAN = """\
name: night
duration: 10m
phases: [{baseline: 2m}, {soak: 8m}]
targets: {dut: {role: dut, sources: [{local: {interval: 1s}}]}}
events: [{kind: failover, at: 5m}, {kind: flap, at: 1m, every: 3m}]
"""


def poll(source: int, index: int, outcome: PollOutcome) -> Poll:
    """A poll that was due so many seconds after the begin."""
    due = BEGIN + index * SECOND
    samples = (Sample("system.uptime", "", 1000.0 + index, due),) if outcome is PollOutcome.OK else ()
    why = None if outcome is PollOutcome.OK else "no answer"
    return Poll(source, due, due, 1, outcome, why, Answer(samples, (), ()))


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """An empty run of the plan that is being written."""
    record = Record.create(tmp_path / "run")
    for key, text in {"run": "night", "start_ns": str(BEGIN), "plan": PLAN}.items():
        record.set_meta(key, text)
    record.target("dut", "dut")
    return record


def test_the_counts_are_those_of_the_ledger(record: Record, tmp_path: Path) -> None:
    """Asked again and again while polls come, some of them lost, some late, and while they are compacted."""
    chooser = random.Random(5)
    source = record.source("dut", "local", "local", SECOND, required=True)
    record.begin_phase("baseline", BEGIN)
    reader = StateReader(tmp_path / "run")
    outcomes = [PollOutcome.OK] * 8 + [PollOutcome.TIMEOUT, PollOutcome.FAILED]
    with record:
        for index in range(0, 400, 10):
            record.put([poll(source.id, n, chooser.choice(outcomes)) for n in range(index, index + 10)])
            if index % 100 == 90:
                record.compact(final=False)
            (state,) = reader.read(BEGIN + index * SECOND).sources
            with RecordView.open(tmp_path / "run") as view:
                outcomes_read = view.poll_outcomes(source.id)
            assert Counter(state.outcomes) == Counter(outcomes_read.words[n] for n in outcomes_read.outcome)
            well = outcomes_read.due_ns[outcomes_read.outcome == 0]
            assert state.last_ok_ns == (int(well[-1]) if well.size else None)
            behind = outcomes_read.due_ns[outcomes_read.due_ns > (state.last_ok_ns or 0)]
            assert state.failing_since_ns == (int(behind[0]) if behind.size else None)
        assert (state.due, state.interval_s, state.role) == (400, 1.0, "dut")


def test_phases_and_what_comes_next(record: Record, tmp_path: Path) -> None:
    """The phase that goes on, its end, and the next thing that was planned; afterwards nothing comes."""
    source = record.source("dut", "local", "local", SECOND, required=True)
    record.begin_phase("baseline", BEGIN)
    reader = StateReader(tmp_path / "run")
    with record:
        record.put([poll(source.id, 0, PollOutcome.OK)])
        early = reader.read(BEGIN - 5 * SECOND)
        assert (early.standing, early.elapsed_s, early.left_s) == ("waiting", 0.0, 600.0)
        now = reader.read(BEGIN + 30 * SECOND)
        assert (now.standing, round(now.elapsed_s), round(now.left_s)) == ("running", 30, 570)
        assert now.phase is not None
        assert (now.phase.name, now.phase.end_ns) == ("baseline", BEGIN + 120 * SECOND)
        assert [(phase.name, phase.state) for phase in now.phases] == [("baseline", "now"), ("soak", "planned")]
        coming = [reader.read(BEGIN + index * SECOND).coming for index in (30, 90, 200, 290, 400, 590)]
        assert [(item.what, (item.at_ns - BEGIN) // SECOND) for item in coming if item is not None] == [
            ("flap", 60),
            ("soak", 120),
            ("flap", 240),
            ("failover", 300),
            ("flap", 420),
            ("end of the run", 600),
        ]
    lost = reader.read(BEGIN + 700 * SECOND)
    assert (lost.standing, lost.left_s, lost.coming, lost.phase) == ("broken off", 0.0, None, None)


def test_what_the_monitor_says_of_itself(record: Record, tmp_path: Path) -> None:
    """The newest of each figure, and none that is older than some minutes."""
    source = record.source("monitor", "self", "self", SECOND, required=False)
    with record:
        for index, metric in ((0, "monitor.loop.lag"), (300, "monitor.memory.usage"), (310, "monitor.memory.usage")):
            due = BEGIN + index * SECOND
            answer = Answer((Sample(metric, "", float(index), due),), (), ())
            record.put([Poll(source.id, due, due, 1, PollOutcome.OK, None, answer)])
        own = StateReader(tmp_path / "run").read(BEGIN + 311 * SECOND).own
    assert own == {("monitor.memory.usage", ""): 310.0}


def test_the_newest_evaluation_is_shown_though_nothing_new_was_found(record: Record, tmp_path: Path) -> None:
    """Findings are written when they change; the time of the last evaluation, and what grows, is always kept."""
    source = record.source("dut", "local", "local", SECOND, required=True).id
    record.begin_span(BEGIN)
    record.begin_phase("soak", BEGIN)
    record.put([poll(source, index, PollOutcome.OK) for index in range(200)])
    record.put_findings([], live=True, judged_ns=BEGIN + 60 * SECOND)
    rate = Rate("dut", "process.memory.usage", "process=svc", "By", BEGIN, 5e7, 4e7, 6e7, 4e9, 7200.0, 6000.0, 9000.0)
    record.set_meta(SO_FAR, snapshot_text(LiveSnapshot(BEGIN + 180 * SECOND, (rate,))))
    reader = StateReader(tmp_path / "run")
    state = reader.read(BEGIN + 190 * SECOND)
    assert state.judged_ns == BEGIN + 180 * SECOND
    assert state.rates == (rate,)
    shown = state_data(state, report=False)
    assert shown["rates"] == [
        {
            "target": "dut",
            "metric": "process.memory.usage",
            "object": "process=svc",
            "unit": "By",
            "since": moment_text(BEGIN),
            "per_hour": 5e7,
            "low": 4e7,
            "high": 6e7,
            "limit": 4e9,
            "limit_s": 7200.0,
            "soonest_s": 6000.0,
            "latest_s": 9000.0,
            "change": None,
            "words": rate.words,
        }
    ]
    lines = [line.plain for line in RunPicture(status_of(state)).lines(160, 40)]
    assert any(line.startswith("findings  judged 10 s ago") for line in lines)
    assert f"growing   {rate.words}" in lines
    record.set_meta(SO_FAR, "of another version")
    assert reader.read(BEGIN + 190 * SECOND).rates == ()
    record.set_meta(SO_FAR, snapshot_text(LiveSnapshot(BEGIN + 180 * SECOND, (rate,))))
    record.finish()
    record.close()
    assert reader.read(BEGIN + 190 * SECOND).rates == (), "nobody runs it: nothing goes on"


def test_what_has_grown_much_is_told_beside_the_verdict_so_far(record: Record, tmp_path: Path) -> None:
    """A page is not green at +170 %; one of 5 % is a figure among others."""
    source = record.source("dut", "local", "local", SECOND, required=True).id
    record.begin_span(BEGIN)
    record.begin_phase("soak", BEGIN)
    record.put([poll(source, index, PollOutcome.OK) for index in range(200)])
    reader, told = StateReader(tmp_path / "run"), []
    for seconds, change in ((180, 0.05), (185, 1.7)):
        rate = Rate("dut", "process.memory.usage", "process=svc", "By", BEGIN, 5e7, 4e7, 6e7, change=change)
        record.set_meta(SO_FAR, snapshot_text(LiveSnapshot(BEGIN + seconds * SECOND, (rate,))))
        shown = state_data(reader.read(BEGIN + 190 * SECOND), report=False)
        told.append((shown["growing"], shown["line"]))
    assert told[0] == (False, "No failure so far.")
    assert told[1][0] is True
    assert "memory of svc on dut has changed by +170 % so far (+47.7 MiB/h), which may be a warm-up" in str(told[1][1])
