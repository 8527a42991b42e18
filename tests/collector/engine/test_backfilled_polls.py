"""Polls that a source made by itself while nobody could fetch it: they stand for the polls that were lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.collector.engine.poll_list import PollList

from soakwatch.core.event_kinds import IDENTITY
from soakwatch.engine.polling import PolledSource, SourceSpec
from soakwatch.engine.recorded_polls import RecordedPolls
from soakwatch.engine.scheduler import Timers
from soakwatch.judge.live.changes import Changes
from soakwatch.judge.live.run_follower import RunFollower
from soakwatch.record import Record, RecordView, SeriesKey
from soakwatch.record.follow import Tail
from soakwatch.sources.abc import BackfilledPoll, Facts, Poller, SourceError, timing
from soakwatch_model.case import Case, Ledger
from soakwatch_model.event import Event
from soakwatch_model.finding import Outcome
from soakwatch_model.sample import NOTHING, Answer, Poll, PollOutcome, Sample
from soakwatch_model.series import Series, trait_of
from soakwatch_model.window import Window
from soakwatch_rules.detectors.coverage import Coverage
from soakwatch_rules.events.explanations import explanations
from soakwatch_testing.records import SECOND, T0
from soakwatch_testing.virtual import VirtualTime

PROCESSES = SeriesKey("dut", "system.processes", "")
SWITCHES = SeriesKey("dut", "system.context_switches", "")


def answer_at(time_ns: int) -> Answer:
    """A gauge and a counter that tell when they were read."""
    second = (time_ns - T0) // SECOND
    return Answer(
        (
            Sample("system.processes", "", second % 100, time_ns),
            Sample("system.context_switches", "", 1000 * second, time_ns),
        ),
        (),
        (),
    )


@dataclass
class Spooling:
    """A device that polls once a second by itself; from ``cut_s`` to ``mended_s`` nobody reaches it.

    At most ``batch`` looks are handed in at once.
    """

    cut_s: int
    mended_s: int
    batch: int = 100
    spool: list[BackfilledPoll] = field(default_factory=list)
    next_s: int = 0

    async def poll(self, now_ns: int) -> Answer:
        """One poll, unless the network is cut."""
        now_s = (now_ns - T0) // SECOND
        cut = self.cut_s <= now_s < self.mended_s
        for missed in range(self.next_s, now_s if not cut else now_s + 1):
            time_ns = T0 + missed * SECOND + 1000
            self.spool.append(BackfilledPoll(time_ns, 5, answer_at(time_ns)))
        self.next_s = now_s + 1
        if cut:
            raise SourceError("the network is cut: mend it")
        return answer_at(now_ns)

    def recovered(self) -> Iterable[BackfilledPoll]:
        """The oldest polls that could not be fetched."""
        given, self.spool = self.spool[: self.batch], self.spool[self.batch :]
        return given


def soaked(
    poller: Poller, seconds: int, anchor_ns: int = T0, interval_s: float = 1.0, known: RecordedPolls | None = None
) -> list[Poll]:
    """The polls of a source in some seconds of virtual time."""
    time, polls = VirtualTime(anchor_ns), list[Poll]()

    async def connect(_: AsyncExitStack) -> Poller:
        return poller

    async def main() -> None:
        spec = SourceSpec(1, "dut/agent", timing(anchor_ns, interval_s))
        source = PolledSource(spec, connect, time, PollList(polls), known)
        async with source:
            async with Timers(time) as timers:
                timers.poll(source)
                await asyncio.sleep(seconds - 0.5)
            source.close_account(anchor_ns + seconds * SECOND)

    time.run(main())
    return polls


def new_record(folder: Path, interval_s: float = 1.0) -> Record:
    """A record of one source, in its soak phase."""
    record = Record.create(folder)
    record.target("dut", "dut")
    record.source("dut", "agent", "agent", round(interval_s * SECOND), required=True)
    record.begin_span(T0)
    record.begin_phase("soak", T0)
    return record


def whole(folder: Path) -> tuple[Ledger, list[int], list[int]]:
    """The account of a run, and the times (seconds) and readings of the counter."""
    with RecordView.open(folder) as view:
        (ledger,) = view.ledgers(view.window())
        series = view.series(SWITCHES)
        assert len(view.series(PROCESSES)) == len(series)
        outcomes = view.poll_outcomes(1)
        assert int((outcomes.outcome == 0).sum()) == ledger.got
        assert outcomes.due_ns.size == ledger.due == view.counts().polls
        return ledger, ((series.time_ns - T0) // SECOND).tolist(), series.value.tolist()


@pytest.mark.parametrize("final", [False, True])
def test_a_network_that_is_cut_for_five_minutes_loses_nothing(tmp_path: Path, *, final: bool) -> None:
    """300 s without the device: every poll of its spool is in the record under its due time, and none is lost."""
    polls = soaked(Spooling(600, 900), 1500)
    with new_record(tmp_path) as record:
        for begin in range(0, len(polls), 60):
            record.put(polls[begin : begin + 60])
            if final and begin % 360 == 0:
                record.compact(final=True)  # the lost polls are compacted before the late polls arrive
    ledger, seconds, values = whole(tmp_path)
    assert (ledger.due, ledger.got, ledger.lost, ledger.errors) == (1500, 1500, {}, ())
    lost = sum(poll.outcome is not PollOutcome.OK for poll in polls)
    assert ledger.recovered == lost >= 300  # a source that failed is asked less often for a while
    assert ledger.longest_gap is not None
    assert ledger.longest_gap.seconds < 1.1
    assert ledger.silences == ()
    assert seconds == list(range(1500))
    assert values == [1000 * second for second in range(1500)]
    (finding,) = Coverage().judge(Case("dut", "", Window(T0, T0 + 1500 * SECOND), ledgers=(ledger,)))
    assert finding.outcome is Outcome.PASS
    assert f"{lost} of them delivered late" in finding.sentence


def test_without_a_spool_the_same_cut_is_a_gap(tmp_path: Path) -> None:
    """The test above can fail: with nothing recovered, the polls stay lost."""
    polls = soaked(Spooling(600, 900, batch=0), 1500)
    with new_record(tmp_path) as record:
        record.put(polls)
    ledger, seconds, _ = whole(tmp_path)
    assert (ledger.due, ledger.recovered) == (1500, 0)
    assert ledger.got == len(seconds) < 1201
    assert ledger.longest_gap is not None
    assert ledger.longest_gap.seconds >= 300


def test_a_source_that_samples_more_often_adds_readings_and_no_polls(tmp_path: Path) -> None:
    """Looks between two polls are finer readings: they are kept, and the account stays that of the due times."""

    class Finer(Spooling):
        def recovered(self) -> Sequence[BackfilledPoll]:
            begin_ns = T0 + (self.next_s - 1) * SECOND
            times = [begin_ns - tenth * SECOND // 10 for tenth in range(9, 0, -1) if begin_ns > T0]
            return [BackfilledPoll(time_ns, 5, answer_at(time_ns)) for time_ns in times]

    polls = soaked(Finer(10**6, 10**6), 60)
    with new_record(tmp_path) as record:
        record.put(polls)
    ledger, seconds, _ = whole(tmp_path)
    assert (ledger.due, ledger.got, ledger.recovered) == (60, 60, 0)
    assert len(seconds) == 60 + 59 * 9


def test_polls_from_the_future_and_from_before_the_run_are_not_part_of_it(tmp_path: Path) -> None:
    """A spool that holds older polls, or a clock that is ahead, adds no due times to the account."""

    class Confused(Spooling):
        def recovered(self) -> Sequence[BackfilledPoll]:
            times = [T0 - 500 * SECOND, T0 + 10**6 * SECOND] if self.next_s == 30 else []
            return [BackfilledPoll(time_ns, 5, answer_at(time_ns)) for time_ns in times]

    polls = soaked(Confused(10**6, 10**6), 60)
    with new_record(tmp_path) as record:
        for poll in polls:
            record.put([poll])
    ledger, seconds, _ = whole(tmp_path)
    assert (ledger.due, ledger.got) == (60, 60)
    assert seconds == list(range(60))


@pytest.mark.parametrize("interval_s", [1, 10])
def test_what_a_killed_monitor_missed_is_made_up_for_after_it_resumes(tmp_path: Path, interval_s: int) -> None:
    """The next life of the monitor has another grid; the polls of the gap still stand for its due times."""
    every = interval_s * SECOND
    gap = PollOutcome.GAP
    second_life = T0 + 300 * SECOND + (0 if interval_s == 1 else 7 * SECOND)
    with new_record(tmp_path, interval_s) as record:
        record.put(_ok(due, due) for due in range(T0, T0 + 100 * SECOND, every))
        record.compact(final=True)
    with Record.open(tmp_path) as record:
        lost = range(T0 + 100 * SECOND, second_life, every)
        record.put(Poll(1, due, due, 0, gap, "the monitor was not running", NOTHING) for due in lost)
        record.put([_ok(second_life, second_life)])
        for due in lost:
            start_ns = due + 1_500_000_000 if interval_s > 1 else due + 5  # the device's polls keep to no grid of ours
            record.put([_ok(second_life + (start_ns - second_life) // every * every, start_ns)])
        record.put(_ok(due, due) for due in range(second_life + every, T0 + 500 * SECOND, every))
    ledger, seconds, _ = whole(tmp_path)
    due = len(range(T0, second_life, every)) + len(range(second_life, T0 + 500 * SECOND, every))
    assert (ledger.due, ledger.got, ledger.lost) == (due, due, {})
    assert ledger.recovered == len(lost)
    assert len(seconds) == due
    with RecordView.open(tmp_path) as view:
        (part,) = view.ledgers(Window(T0 + 150 * SECOND, T0 + 200 * SECOND))
        assert (part.due, part.got, part.recovered) == (50 // interval_s,) * 3


def test_what_a_killed_monitor_recorded_and_could_not_acknowledge_is_not_kept_twice(tmp_path: Path) -> None:
    """The spool hands in again what was not acknowledged: those of the last polls that are in the record, and the gap.

    Its clock was measured anew, so that a poll seems to have been made some microseconds earlier or later.
    """
    with new_record(tmp_path) as record:
        record.put(_ok(due, due + 1000 + due // SECOND % 2 * 37_000) for due in range(T0, T0 + 100 * SECOND, SECOND))
    second_life = T0 + 130 * SECOND

    async def read() -> NDArray[np.int64]:
        with RecordView.open(tmp_path) as view:
            return view.answered_ns(1)

    polls = soaked(Spooling(0, 0, next_s=95), 60, second_life, known=RecordedPolls(read, second_life, SECOND))
    with Record.open(tmp_path) as record:
        lost = range(T0 + 100 * SECOND, second_life, SECOND)
        record.put(Poll(1, due, due, 0, PollOutcome.GAP, "the monitor was not running", NOTHING) for due in lost)
        record.put(polls)
    ledger, seconds, _ = whole(tmp_path)
    assert (ledger.due, ledger.got, ledger.recovered) == (190, 190, 30)
    assert seconds == list(range(190))


def _ok(due_ns: int, start_ns: int) -> Poll:
    return Poll(1, due_ns, start_ns, 5, PollOutcome.OK, None, answer_at(start_ns))


def test_whoever_follows_the_run_counts_the_same_polls(tmp_path: Path) -> None:
    """The live accounts equal those of the end after every poll, and no reading is there twice."""
    polls = soaked(Spooling(1000, 1300, batch=70), 4000)
    with new_record(tmp_path) as record:
        following = RunFollower(tmp_path, (Coverage(),), {})
        rounds = 0
        for begin in range(0, len(polls), 90):
            record.put(polls[begin : begin + 90])
            if begin == 1800:
                record.compact(final=True)
            following.read()
            with RecordView.open(tmp_path) as view:
                assert following.through("whole").ledgers(following.window) == view.ledgers(view.window())
                recent = Window(max(T0, following.window.end_ns - 600 * SECOND), following.window.end_ns)
                assert following.through("recent").ledgers(recent) == view.ledgers(recent)
            rounds += 1
        assert rounds > 40
        record.begin_phase("recovery", T0 + 3900 * SECOND)
    following.read()
    lost = sum(poll.outcome is not PollOutcome.OK for poll in polls)
    assert lost >= 300
    assert sum(following.accounts.ledger(s, "", {}, following.window).recovered for s in following.sources) == lost


def test_late_readings_are_where_they_belong_in_every_view_of_a_live_judge(tmp_path: Path) -> None:
    """The last hour, minutes and changes have readings that come late: in order of time, none twice, none lost."""
    record = new_record(tmp_path)
    missing = range(100, 400)
    with record:
        following, changes, tail = RunFollower(tmp_path, (Coverage(),), {}), Changes(), Tail(tmp_path, lambda _: True)
        batches = [
            [_ok(T0 + second * SECOND, T0 + second * SECOND) for second in range(600) if second not in missing],
            [_ok(T0 + second * SECOND, T0 + second * SECOND) for second in missing if second < 250],
            [_ok(T0 + second * SECOND, T0 + second * SECOND) for second in (600, *missing[150:], 601)],
        ]
        for batch in batches:
            record.put(batch)
            following.read()
            for news in tail.news().batches:
                for table in news.tables:
                    changes.add(news.source, table)
    counter, gauge = sorted(following.known)
    readings = following.through("recent").series(counter)
    assert ((readings.time_ns - T0) // SECOND).tolist() == list(range(602))
    assert readings.value.tolist() == [1000 * second for second in range(602)]
    lasts, means = (following.through("minutes").series(key, 0, 2**62).values for key in (counter, gauge))
    expected: dict[int, list[int]] = {}
    for second in range(602):
        expected.setdefault((T0 + second * SECOND) // (60 * SECOND), []).append(second)
    kept = [some for _, some in sorted(expected.items())]
    assert means.size == lasts.size == len(kept)
    assert means.tolist() == pytest.approx([sum(second % 100 for second in some) / len(some) for some in kept])
    assert all(value / 1000 in some for value, some in zip(lasts.tolist(), kept, strict=True))
    changed_ns, _ = changes.read(2)
    assert bool((changed_ns[1:] > changed_ns[:-1]).all())


def test_a_source_tells_what_it_is_once_and_again_when_it_changes() -> None:
    """The identity is an event of the first answer after connecting, and of the first one after a change."""

    class Device:
        version = "1"

        async def poll(self, now_ns: int) -> Answer:
            self.version = "2" if (now_ns - T0) // SECOND >= 5 else "1"
            return NOTHING

        def facts(self) -> Facts:
            return Facts({"system": "box", "version": self.version}, notes=("slow", "old"))

    identities = [event for poll in soaked(Device(), 20) for event in poll.answer.events]
    assert [(event.kind, event.object, (event.begin_ns - T0) // SECOND) for event in identities] == [
        (IDENTITY, "dut/agent", 0),
        (IDENTITY, "dut/agent", 5),
    ]
    assert dict(identities[0].detail) == {"system": "box", "version": "1", "notes": "slow; old"}
    assert identities[1].detail["changed"] == "version was 1, is 2"


def test_a_spool_that_breaks_fails_the_poll_and_quotes_nothing() -> None:
    """A defect of the poller is a failed poll with its type, as everywhere; the run goes on."""

    class Broken(Spooling):
        def recovered(self) -> Iterable[BackfilledPoll]:
            raise ValueError("password=geheim")

    polls = soaked(Broken(10**6, 10**6), 3)
    assert {poll.outcome for poll in polls} == {PollOutcome.FAILED}
    assert {poll.error for poll in polls} == {"the dut/agent poller raised ValueError"}


def test_the_first_word_of_a_source_explains_nothing_and_a_change_does() -> None:
    """What a device is, is no cause of what happens then; that it became another one is."""
    with_time = [
        Event(IDENTITY, "dut", "dut/agent", T0, None, detail)
        for detail in ({"version": "1"}, {"version": "2", "changed": "version was 1, is 2"})
    ]
    window = Window(T0 - 60 * SECOND, T0 + 60 * SECOND)
    series = _flat()
    reasons = [
        explanations(Case("dut", "", window, (series,), events=(event,)), series, T0, 5 * SECOND, 0.1, 30.0)
        for event in with_time
    ]
    assert reasons[0] == []
    assert reasons[1] == [f"{IDENTITY} of dut/agent within 1 s"]


def _flat() -> Series:
    times = T0 + np.arange(-60, 60) * SECOND
    return Series("dut", "system.processes", "", trait_of("system.processes", "1", "gauge"), times, np.ones(120))
