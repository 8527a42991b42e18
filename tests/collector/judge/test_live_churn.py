"""The live judge of processes that come and go: its memory stays bounded, and it says what it has forgotten."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from tests.bench.churn import SECOND, STAY, T0, Churn, asked_judge, begun, written

from soakwatch.core.event_kinds import LIVE_FORGOT
from soakwatch.engine.context import RunContext
from soakwatch.engine.live_judging import LiveJudging
from soakwatch.engine.machine import Machine
from soakwatch.engine.run_record import EventFeed, RunRecord, run_record
from soakwatch.judge.live import changes, kept_events, table_sets
from soakwatch.judge.live.answers import evaluator_of
from soakwatch.judge.live.changes import Changes
from soakwatch.judge.live.evaluator import LiveEvaluator
from soakwatch.judge.live.kept_events import KeptEvents
from soakwatch.record import SeriesKey, StoredEvent
from soakwatch.record.follow import Table
from soakwatch.runs.watching import event_words, worth_showing
from soakwatch_model.event import Event
from soakwatch_model.sample import object_text
from soakwatch_testing.records import small_record

INTERVAL_S = 2.0
MOST_MB = 150


def of_those_that_stay(evaluator: LiveEvaluator) -> set[tuple[str, str, str, str, str, float | None]]:
    """What is found of everything but the processes that come and go."""
    stay = {object_text(process="worker0", instance=n) for n in range(STAY)}
    said = (f for f in evaluator.findings if f.object in {"", *stay})
    return {(f.rule, f.metric, f.object, f.outcome.value, f.reason, f.measured) for f in said}


def test_what_is_forgotten_is_said_and_changes_nothing_that_is_healthy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven minutes of processes that come and go, followed with and without bounds."""
    found = {}
    for name, most_sets, most_events in (("all", 10**6, 10**6), ("bounded", 4, 16)):
        monkeypatch.setattr(table_sets, "MAX_SETS", most_sets)
        monkeypatch.setattr(kept_events, "MAX_EVENTS", most_events)
        record, source = begun(tmp_path / name, 0.2, INTERVAL_S)
        churn = Churn(12)
        with record:
            evaluator = evaluator_of(tmp_path / name, lambda: 0.0)
            for minute in range(7):
                written(record, source, churn, minute, INTERVAL_S)
                evaluator.evaluate()
        found[name] = of_those_that_stay(evaluator)
        assert len(churn.layouts) > 20
        assert bool(evaluator.forgot) == (name == "bounded")
    assert found["all"] == found["bounded"]
    assert len(found["all"]) > STAY
    assert "of the oldest events" in evaluator.forgot
    told = StoredEvent(1, "monitor", Event(LIVE_FORGOT, "", "", T0, T0, {"text": evaluator.forgot}))
    assert worth_showing(told)
    assert evaluator.forgot in event_words(told)


def test_only_the_newest_events_of_what_has_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What happened seldom stays; a process whose events were forgotten is judged from its next start on."""
    monkeypatch.setattr(kept_events, "MAX_EVENTS", 40)
    often, seldom = object_text(process="often", instance=0), object_text(process="seldom", instance=0)
    kept, number = KeptEvents(), 0
    for second in range(300):
        kind = ("process.exit", "process.start")[second % 2]
        happened = [(kind, often)]
        happened += [("process.restart", seldom)] if second in {3, 250} else []
        happened += [("config.change", "")] if second == 1 else []
        for what, name in happened:
            number += 1
            kept.add(StoredEvent(number, "probe", Event(what, "dut", name, T0 + second, None)))
    left = [stored.event for stored in kept.in_order()]
    assert len(left) <= 40
    assert kept.forgotten == number - len(left)
    assert [event.begin_ns - T0 for event in left if event.object == seldom] == [3, 250]
    assert [event.kind for event in left].count("config.change") == 1
    own = [event for event in left if event.object == often]
    assert own[0].kind == "process.start"
    assert kept.begin_ns(SeriesKey("dut", "process.start_time", often)) == own[0].begin_ns
    assert kept.begin_ns(SeriesKey("dut", "process.start_time", seldom)) == 0
    assert kept.begin_ns(SeriesKey("dut", "system.boot.id", "")) == 0


def test_series_that_change_all_the_time_share_a_bounded_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the series with the most changes every second one is forgotten; one that changes seldom loses none."""
    monkeypatch.setattr(changes, "_MAX_READINGS", 2000)
    monkeypatch.setattr(changes, "_READINGS_OF_EACH", 1)
    kept, seldom = Changes(), 4
    for second in range(0, 6000, 2):
        more = (5,) if second % 4 else (5, 6)  # with each poll another set of series
        words = np.array([[second % 4, 1 + second % 8, second, second // 1500, *more]], np.uint64)
        kept.add(1, Table((1, 2, 3, seldom, *more), "q" * words.size, np.array([T0 + second * SECOND]), words))
    assert kept.forgotten
    assert kept.nbytes <= 2000 * 16 * 1.2
    times, values = kept.read(seldom)
    assert np.flatnonzero(np.diff(values)).size == 3
    assert (np.diff(times) > 0).all()


class Forgetful:
    """A live judge that has forgotten something."""

    async def look(self) -> list[str] | str:
        """Nothing new, but for what it forgot."""
        return [json.dumps({"forgot": "forgotten 7 of the oldest events"}), json.dumps({"rates": []})]

    async def close(self) -> None:
        """Does nothing."""


def test_the_run_records_once_what_its_judge_forgot_and_shows_it(tmp_path: Path) -> None:
    """One event, among those that the terminal shows, however often the judge says it."""
    context = cast("RunContext", SimpleNamespace(stop_on_fail=False, stop_rules=frozenset(), folder=tmp_path))
    minute = [0]

    async def judged(out: RunRecord) -> tuple[str, ...]:
        live = LiveJudging(context, out, lambda: T0 + minute[0] * 60 * SECOND, Machine(judge=lambda _: Forgetful()))
        for minute[0] in range(1, 5):
            judged_ns = await live.judge_when_due()
            assert judged_ns is not None
            await live.record(judged_ns)
        feed = EventFeed(out, 0)
        await feed.read()
        return feed.shown

    with small_record(tmp_path / "run") as record:
        shown = asyncio.run(judged(run_record(record, lambda: T0, threaded=False)))
        assert [words.partition(" ")[2] for words in shown] == ["forgotten 7 of the oldest events"]
        assert [stored.event.kind for stored in record.events_after(0)] == [LIVE_FORGOT]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_day_of_processes_that_come_and_go_takes_bounded_memory(tmp_path: Path) -> None:
    """24 virtual hours through the live judge as a process: tens of thousands of sets of series, and of events."""
    record, source = begun(tmp_path / "run", 24.0, INTERVAL_S)
    churn, resident = Churn(40), list[float]()
    with record, asked_judge(tmp_path / "run") as judge:
        for minute in range(24 * 60):
            written(record, source, churn, minute, INTERVAL_S)
            if minute % 4 == 3:
                judge.look()
            if minute % 60 == 59:
                resident.append(judge.figure("VmRSS"))
        assert judge.figure("VmHWM") <= MOST_MB
        assert judge.forgot
    assert len(churn.layouts) > 20_000
    assert resident[-1] < 1.1 * resident[11], f"it grew in the second half of the day: {resident}"
