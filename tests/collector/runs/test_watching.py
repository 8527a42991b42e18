"""A run as displays see it, by its record: the same words as of a run in this process."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from soakwatch.cli.display.follow import RecordedRun, follow, show_outcome, show_snapshot
from soakwatch.plan import plan_from_text
from soakwatch.plan.planned_phases import stretches
from soakwatch.record import Record
from soakwatch.runs.run_state import NextPlanned, PhaseState, StateReader
from soakwatch.runs.run_status import RunSnapshot
from soakwatch.runs.watching import coming_words, course_words, phase_position_words, status_of
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Forecast, Outcome
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_model.window import Window

SECOND = 10**9
BEGIN = 1_780_000_000 * SECOND
PLAN = """\
name: night
duration: 10m
phases: [{baseline: 2m}, {soak: 8m}]
targets:
  dut: {role: dut, sources: [{local: {interval: 1s}}]}
  tg: {role: generator, sources: [{local: {interval: 1s}}]}
events: [{kind: failover, at: 5m}]
"""
FORECAST = Forecast("system.memory.limit (3.80 GiB)", 31 * 3600, 25 * 3600, 37 * 3600)


def polled(source: int, second: int, outcome: PollOutcome, *samples: tuple[str, float]) -> Poll:
    """A poll that was due so many seconds after the begin."""
    due = BEGIN + second * SECOND
    readings = tuple(Sample(metric, "", value, due) for metric, value in samples)
    why = None if outcome is PollOutcome.OK else "no answer"
    return Poll(source, due, due, 1, outcome, why, Answer(readings, (), ()))


def record_of(folder: Path) -> Record:
    """A minute of a device that fell silent after half of it, under a load, with a warning and an event."""
    record = Record.create(folder)
    for key, text in {"run": "night", "start_ns": str(BEGIN), "plan": PLAN}.items():
        record.set_meta(key, text)
    record.target("dut", "dut")
    record.target("tg", "generator")
    dut = record.source("dut", "local", "local", SECOND, required=True)
    tg = record.source("tg", "local", "local", SECOND, required=True)
    record.begin_phase("baseline", BEGIN)
    ok, lost = PollOutcome.OK, PollOutcome.TIMEOUT
    record.put(
        [
            polled(dut.id, second, ok if second < 30 else lost, *([("system.uptime", second)] if second < 30 else []))
            for second in range(60)
        ]
    )
    record.put([polled(tg.id, second, ok, ("load.tx.packet.rate", 2e6)) for second in range(60)])
    warned = Finding(
        "growth",
        1,
        Outcome.WARN,
        "dut",
        "system.memory.usage",
        "",
        Window(BEGIN, BEGIN + 50 * SECOND),
        "d",
        "it rises",
        9,
        forecast=FORECAST,
    )
    record.put_findings((warned,), live=True, judged_ns=BEGIN + 50 * SECOND)
    record.add_event("dut", Event("failover", "dut", "", BEGIN + 40 * SECOND, None), "told")
    return record


def test_the_record_tells_what_a_display_needs(tmp_path: Path) -> None:
    """Phase, time left, what comes, load, the source that is silent and since when, findings, events."""
    with record_of(tmp_path / "run"):
        status = status_of(StateReader(tmp_path / "run").read(BEGIN + 60 * SECOND))
        assert (status.run, status.phase, status.phase_position, status.standing) == (
            "night",
            "baseline",
            "1 of 2",
            "running",
        )
        assert (round(status.elapsed_s), round(status.left_s)) == (60, 540)
        assert status.coming == "phase soak in 1 min"
        (dut, tg) = status.sources
        assert (dut.due, dut.got, dut.failed) == (60, 30, 30)
        assert dut.silent_s is not None
        assert round(dut.silent_s, 3) == 30
        assert (tg.due, tg.got, tg.silent_s) == (60, 60, None)
        assert sum(status.load.values()) == 2e6
        assert status.judged_at_s == 50.0
        assert status.events == ("20:27:20 failover dut",)
        target = io.StringIO()
        show_snapshot(RecordedRun(tmp_path / "run", lambda: BEGIN + 60 * SECOND).read(), Console(file=target, width=60))
    for words in (
        "phase baseline (1 of 2)",
        "2 M packets/s sent",
        "no answer for 30 s",
        "WARN memory in use on dut (growth)",
        "reached in 31 h ± 6 h (90 %)",
        "20:27:20 failover dut",
    ):
        assert words in target.getvalue()


def test_a_run_is_shown_until_its_verdict_is_there(tmp_path: Path) -> None:
    """First it runs, then it is judged, then it is over; the exit codes are those of the verdict, or of none yet."""
    snapshots: list[RunSnapshot] = []
    with record_of(tmp_path / "run") as record:
        watched = RecordedRun(tmp_path / "run", lambda: BEGIN + 60 * SECOND)
        target = io.StringIO()
        console = Console(file=target, width=80)
        assert (watched.read().over, watched.read().exit_code) == (False, 3)

        def pause(_seconds: float) -> None:
            snapshots.append(watched.read())
            if len(snapshots) == 2:
                record.set_meta("ended_ns", str(BEGIN + 60 * SECOND))
            if len(snapshots) == 4:
                record.set_meta("verdict", "fail")
                record.set_meta("reason", "dut failed\x1b[2J growth")

        last = follow(watched, console, pause=pause)
    assert [snapshot.status.doing != "" for snapshot in snapshots] == [False, False, True, True]
    assert (last.over, last.verdict, last.exit_code) == (True, "fail", 1)
    show_outcome(last, "run", console)
    lines = target.getvalue().splitlines()
    assert any("being judged" in line for line in lines)
    assert lines[-3:] == ["✗ FAIL  night", "dut failed[2J growth", "full report: soakwatch report run"]


def test_a_run_that_was_left_while_it_was_judged_is_broken_off(tmp_path: Path) -> None:
    """Its end is recorded, its verdict is not, and nobody writes any more."""
    with record_of(tmp_path / "run") as record:
        record.set_meta("ended_ns", str(BEGIN + 60 * SECOND))
    recorded = RecordedRun(tmp_path / "run", lambda: BEGIN + 70 * SECOND).read()
    assert (recorded.over, recorded.verdict, recorded.status.standing, recorded.exit_code) == (
        True,
        None,
        "broken off",
        4,
    )


def test_what_comes_next_by_the_plan_alone() -> None:
    """For the display of the run's own process: place and what is next, from its phases as they are now."""
    plan = plan_from_text(PLAN, "plan.yaml")
    known = stretches(plan.phases, BEGIN)
    assert course_words(known, plan, BEGIN + 60 * SECOND) == ("1 of 2", "phase soak in 1 min")
    assert course_words(known, plan, BEGIN + 200 * SECOND) == ("2 of 2", "event failover in 1 min 40 s")
    assert course_words(known, plan, BEGIN + 400 * SECOND) == ("2 of 2", "")
    assert phase_position_words([PhaseState("soak", 0, 1, "now")]) == ""
    assert phase_position_words([PhaseState("a", 0, 1, "over"), PhaseState("b", 1, 2, "over")]) == ""
    assert coming_words(NextPlanned("end", "end of the run", 5), 0) == ""
