"""The wrapper and the timers, in virtual time: every due poll leaves exactly one Poll, whatever happens."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import pairwise

import pytest
from tests.collector.engine.poll_list import PollList

from soakwatch.core.errors import PlanError
from soakwatch.engine.polling import PolledSource, SourceSpec
from soakwatch.engine.scheduler import Timers
from soakwatch.sources.abc import LoginRefusedError, Poller, RequestsLostError, SourceError, timing
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_testing.virtual import VirtualTime

HOUR = 3600.0
PollFunction = Callable[[int], Awaitable[Answer]]


class Scripted:
    """A poller whose poll is a function."""

    def __init__(self, answer: PollFunction) -> None:
        self._answer = answer

    async def poll(self, now_ns: int) -> Answer:
        """Whatever the function does."""
        return await self._answer(now_ns)


def one_sample(now_ns: int) -> Answer:
    """An answer with one sample."""
    return Answer((Sample("system.processes", "", 1, now_ns),), (), ())


async def at_once(now_ns: int) -> Answer:
    """A poll that takes no time."""
    return one_sample(now_ns)


def soak(
    time: VirtualTime,
    answer: PollFunction,
    *,
    interval_s: float,
    hours: float,
    timeout_s: float | None = None,
    sources: int = 1,
    busy_s: float = 0,
) -> list[Poll]:
    """Run pollers for some hours of virtual time, with a monitor that is busy at the start; all their polls."""
    polls: list[Poll] = []

    async def connect(_: AsyncExitStack) -> Poller:
        return Scripted(answer)

    async def main() -> None:
        start_ns = time.now_ns()
        when = timing(start_ns, interval_s, timeout_s)
        async with AsyncExitStack() as stack:
            watched = [
                await stack.enter_async_context(
                    PolledSource(SourceSpec(n, f"source {n}", when), connect, time, PollList(polls))
                )
                for n in range(sources)
            ]
            time.stall(busy_s)
            async with Timers(time) as timers:
                for source in watched:
                    timers.poll(source)
                await asyncio.sleep(hours * HOUR - busy_s - 0.001)  # what is due at the end itself is none of it
            for source in watched:
                source.close_account(start_ns + round(hours * HOUR * 1e9))

    time.run(main())
    return polls


def outcomes(polls: list[Poll]) -> Counter[PollOutcome]:
    """How the polls ended."""
    return Counter(poll.outcome for poll in polls)


def assert_complete(polls: list[Poll], interval_s: float, hours: float) -> None:
    """Every due time of the grid has exactly one Poll, in order."""
    due = [poll.due_ns for poll in polls]
    step = round(interval_s * 1e9)
    assert due == list(range(due[0], due[0] + len(due) * step, step))
    assert len(due) == round(hours * HOUR / interval_s)


@pytest.mark.slow
def test_72_hours_of_20_pollers_run_on_the_grid() -> None:
    """A 72 h soak of 20 pollers brings every poll at its due time."""
    polls = soak(VirtualTime(), at_once, interval_s=60, hours=72, sources=20)
    assert outcomes(polls) == {PollOutcome.OK: 20 * 72 * 60}
    assert all(poll.start_ns == poll.due_ns for poll in polls)


def test_the_fastest_interval_does_not_drift() -> None:
    """Polls every 200 ms for six minutes stay on the grid to the nanosecond."""
    polls = soak(VirtualTime(), at_once, interval_s=0.2, hours=0.1)
    assert_complete(polls, 0.2, 0.1)
    assert outcomes(polls) == {PollOutcome.OK: 1800}
    assert all(0 <= poll.start_ns - poll.due_ns < 10**6 for poll in polls)


def test_an_overrun_is_skipped_and_counted_never_stacked() -> None:
    """A poll of 2.5 s under an interval of 1 s takes every third due time; the others are overruns."""
    running = 0

    async def slow(now_ns: int) -> Answer:
        nonlocal running
        running += 1
        assert running == 1
        await asyncio.sleep(2.5)
        running -= 1
        return one_sample(now_ns)

    polls = soak(VirtualTime(), slow, interval_s=1, hours=0.2, timeout_s=10)
    counted = outcomes(polls)
    assert counted[PollOutcome.OVERRUN] == 2 * counted[PollOutcome.OK]
    assert_complete(polls[: 3 * counted[PollOutcome.OK]], 1, counted[PollOutcome.OK] * 3 / HOUR)


def test_a_poll_that_hangs_is_abandoned_and_reported() -> None:
    """A source that never answers gives timeouts, each a Poll with its sentence."""

    async def hangs(_: int) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError

    polls = soak(VirtualTime(), hangs, interval_s=10, hours=0.1, timeout_s=2)
    assert polls[0].outcome is PollOutcome.TIMEOUT
    assert polls[0].error == "no answer within 2 s"
    assert polls[0].duration_ns == 2_000_000_000
    assert_complete(polls, 10, 0.1)


@pytest.mark.slow
def test_a_failing_source_is_asked_less_and_complained_about_once(caplog: pytest.LogCaptureFixture) -> None:
    """Six hours of failures cost few polls and few log lines; the recovery is reported and the pace returns."""
    time = VirtualTime()
    well_from_ns = time.now_ns() + round(6 * HOUR * 1e9)
    asked = 0

    async def dark(now_ns: int) -> Answer:
        nonlocal asked
        asked += now_ns < well_from_ns
        if now_ns < well_from_ns:
            raise SourceError("connection refused by 127.0.0.1:161")
        return one_sample(now_ns)

    with caplog.at_level(logging.WARNING, logger="soakwatch"):
        polls = soak(time, dark, interval_s=1, hours=8)
    assert_complete(polls, 1, 8)
    assert 1400 < asked < 1500  # four a minute
    assert len(caplog.records) < 20
    assert "recovered" in caplog.records[-1].getMessage()
    assert outcomes(polls[-3600:]) == {PollOutcome.OK: 3600}


@pytest.mark.parametrize(("interval_s", "pause_s"), [(1, 15), (5, 15), (10, 10), (60, 60)])
def test_a_device_that_is_gone_is_asked_each_15_seconds_or_at_its_interval(interval_s: int, pause_s: int) -> None:
    """However long it was gone: what an outage costs on top of itself is less than that."""

    async def gone(_: int) -> Answer:
        raise SourceError("no route to host")

    asked = [
        poll.due_ns
        for poll in soak(VirtualTime(), gone, interval_s=interval_s, hours=1)
        if poll.outcome is PollOutcome.FAILED
    ]
    assert max(later - earlier for earlier, later in pairwise(asked)) == pause_s * 10**9


def test_a_source_that_answers_in_part_is_asked_at_each_due_time() -> None:
    """Lost requests are no reason to ask less: each poll has its own outcome, and none is held back."""

    async def lossy(_: int) -> Answer:
        raise RequestsLostError("request lost")

    assert outcomes(soak(VirtualTime(), lossy, interval_s=1, hours=0.1)) == {PollOutcome.LOSSY: 360}


def test_a_refused_login_is_tried_so_rarely_that_no_account_is_locked() -> None:
    """After 1, 5, 15 and then each 30 minutes, and the sentence says so; a login that works brings the pace back."""
    time = VirtualTime()
    mended_ns = time.now_ns() + round(2 * HOUR * 1e9)

    async def refuses(now_ns: int) -> Answer:
        if now_ns < mended_ns:
            raise LoginRefusedError("ops@dut:22 denied the login")
        return one_sample(now_ns)

    polls = soak(time, refuses, interval_s=10, hours=3)
    assert_complete(polls, 10, 3)
    asked = [poll for poll in polls if poll.outcome is PollOutcome.FAILED]
    pauses = [round((later.due_ns - earlier.due_ns) * 1e-9 / 60) for earlier, later in pairwise(asked)]
    assert pauses == [1, 5, 15, 30, 30, 30]
    assert asked[0].error == "ops@dut:22 denied the login; tried again in 1 min, so that the account is not locked"
    assert asked[-1].error == "ops@dut:22 denied the login; tried again in 30 min, so that the account is not locked"
    assert outcomes(polls[-180:]) == {PollOutcome.OK: 180}


def test_a_cut_network_does_not_hurry_the_next_login_after_a_refused_one() -> None:
    """What was refused stays refused until a login works; a poll that did not get there is asked again as ever."""
    time = VirtualTime()
    count = 0

    async def refuses(_: int) -> Answer:
        nonlocal count
        count += 1
        if count == 2:
            raise SourceError("no route to host")
        raise LoginRefusedError("ops@dut:22 denied the login")

    polls = soak(time, refuses, interval_s=1, hours=0.3)
    asked = [poll for poll in polls if poll.outcome is PollOutcome.FAILED]
    pauses = [round((later.due_ns - earlier.due_ns) * 1e-9) for earlier, later in pairwise(asked)]
    assert pauses[0] == 60
    assert pauses[1] <= 15
    assert pauses[2] == 300


def test_a_stalled_monitor_records_what_it_missed() -> None:
    """When the monitor itself stands still for 30 s, 29 polls are missed and the late one shows how late it was."""
    time = VirtualTime()
    count = 0

    async def stalls_once(now_ns: int) -> Answer:
        nonlocal count
        count += 1
        if count == 100:
            asyncio.get_running_loop().call_later(0.5, time.stall, 30.2)
        return one_sample(now_ns)

    polls = soak(time, stalls_once, interval_s=1, hours=0.1)
    assert_complete(polls, 1, 0.1)
    assert outcomes(polls)[PollOutcome.MISSED] == 29
    assert {poll.error for poll in polls if poll.outcome is PollOutcome.MISSED} == {"the monitor was late"}
    assert max(poll.start_ns - poll.due_ns for poll in polls) == pytest.approx(0.7e9, rel=0.01)


@pytest.mark.parametrize(("busy_s", "missed"), [(0.3, 0), (2.3, 2)])
def test_a_monitor_that_is_late_with_its_first_poll_polls_at_once(busy_s: float, missed: int) -> None:
    """A first due time that passed while the monitor opened its sources is kept late, not missed."""
    polls = soak(VirtualTime(), at_once, interval_s=1, hours=0.1, busy_s=busy_s)
    assert_complete(polls, 1, 0.1)
    assert [poll.outcome for poll in polls[: missed + 1]] == [PollOutcome.MISSED] * missed + [PollOutcome.OK]
    assert outcomes(polls)[PollOutcome.MISSED] == missed
    assert polls[missed].start_ns - polls[missed].due_ns == pytest.approx(0.3e9, rel=0.01)


@pytest.mark.parametrize("step_s", [-3600, 3600])
def test_a_step_of_the_wall_clock_neither_stops_nor_hurries_the_polls(step_s: float) -> None:
    """With the wall clock set an hour back or forth, not one poll is lost or doubled."""
    time = VirtualTime()
    count = 0

    async def steps_once(now_ns: int) -> Answer:
        nonlocal count
        count += 1
        if count == 50:
            time.step_wall(step_s)
        return one_sample(now_ns)

    polls = soak(time, steps_once, interval_s=1, hours=0.1)
    assert_complete(polls, 1, 0.1)
    assert outcomes(polls) == {PollOutcome.OK: 360}


def test_a_defect_in_a_poller_is_a_failed_poll_without_its_text() -> None:
    """An unforeseen exception never ends the run, and its text, which may hold a secret, is not kept."""

    async def defect(_: int) -> Answer:
        raise KeyError("password=hunter2")

    polls = soak(VirtualTime(), defect, interval_s=60, hours=1)
    assert polls[0].outcome is PollOutcome.FAILED
    assert polls[0].error == "the source 0 poller raised KeyError"
    assert "hunter2" not in repr(polls)


def test_a_source_that_cannot_be_opened_is_tried_again() -> None:
    """A device that is off when the run begins fails its polls until it is there; nothing half opened stays."""
    time = VirtualTime()
    polls: list[Poll] = []
    opened: list[str] = []

    async def connect(stack: AsyncExitStack) -> Poller:
        opened.append("half")
        stack.callback(opened.remove, "half")
        if len(polls) < 2:
            raise SourceError("no route to host")
        return Scripted(at_once)

    async def main() -> None:
        start_ns = time.now_ns()
        source = PolledSource(SourceSpec(1, "dut/snmp", timing(start_ns, 10)), connect, time, PollList(polls))
        async with source, Timers(time) as timers:
            timers.poll(source)
            await asyncio.sleep(100)
            assert opened == ["half"]
        assert not opened

    time.run(main())
    assert [poll.outcome for poll in polls[:4]] == [PollOutcome.FAILED] * 2 + [PollOutcome.OK] * 2
    assert polls[0].error == "no route to host"


def test_only_the_first_poll_reports_why_it_failed(caplog: pytest.LogCaptureFixture) -> None:
    """What ends the run is reported by whoever takes it, and not logged; what goes wrong later is a failed poll."""
    errors: dict[str, list[Exception]] = {
        "wrong": [PlanError("dut: there is no os 'x'"), SourceError("no route to host")],
        "later": [SourceError("no route to host"), PlanError("dut: the secret's file is gone")],
    }
    failures: dict[str, list[str]] = {name: [] for name in errors}
    polls: list[Poll] = []

    class Sink(PollList):
        def first_poll(self, failure: Exception | None) -> bool:
            failures[name].append(str(failure))
            return isinstance(failure, PlanError)

    async def main(name: str, time: VirtualTime) -> None:
        async def connect(_: AsyncExitStack) -> Poller:
            raise errors[name][min(len(polls), 1)]

        start_ns = time.now_ns()
        when = timing(start_ns, 10)
        source = PolledSource(SourceSpec(1, "dut/ssh", when), connect, time, Sink(polls))
        async with source, Timers(time) as timers:
            timers.poll(source)
            await asyncio.sleep(15)

    with caplog.at_level(logging.WARNING, logger="soakwatch"):
        for name in errors:
            polls.clear()
            time = VirtualTime()
            time.run(main(name, time))
            assert [poll.outcome for poll in polls] == [PollOutcome.FAILED] * 2
    assert failures == {"wrong": ["dut: there is no os 'x'"], "later": ["no route to host"]}
    assert polls[1].error == "the secret's file is gone"  # the target is said by the record already
    assert [record.getMessage() for record in caplog.records] == ["dut/ssh: no route to host"] * 2


def test_timers_leave_nothing_behind() -> None:
    """A poll that is under way when the run ends is given up after the grace, and no task remains."""
    time = VirtualTime()

    async def hangs(_: int) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError

    async def connect(_: AsyncExitStack) -> Poller:
        return Scripted(hangs)

    async def main() -> int:
        source = PolledSource(SourceSpec(1, "x", timing(time.now_ns(), 10, 1000)), connect, time, PollList())
        async with source, Timers(time) as timers:
            timers.poll(source)
            await asyncio.sleep(5)
        return len(asyncio.all_tasks())

    assert time.run(main()) == 1


def test_a_job_that_raises_is_begun_again_and_said_once_for_each_reason() -> None:
    """A defect in what is done each second costs that second: nothing that follows is lost for it."""
    raised: list[BaseException] = []
    time = VirtualTime(unhandled=raised.append)
    begun: list[float] = []

    async def each_second() -> None:
        begun.append(time.seconds())
        if len(begun) < 6:
            raise ZeroDivisionError("a" if len(begun) < 4 else "b")

    async def main() -> None:
        async with Timers(time) as timers:
            timers.every(1, each_second)
            await asyncio.sleep(10.5)

    time.run(main())
    assert begun == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert list(map(repr, raised)) == ["ZeroDivisionError('a')", "ZeroDivisionError('b')"]


def test_how_long_the_device_took_is_a_sample_of_each_answered_poll() -> None:
    """Under the source's label, at the poll's begin; a poll that failed took no known time."""
    time, polls = VirtualTime(), list[Poll]()

    async def slower(now_ns: int) -> Answer:
        if len(polls) == 2:
            raise SourceError("no answer")
        await asyncio.sleep(0.1 * (1 + len(polls)))
        return one_sample(now_ns)

    async def connect(_: AsyncExitStack) -> Poller:
        return Scripted(slower)

    async def main() -> None:
        when = timing(time.now_ns(), 10)
        source = PolledSource(SourceSpec(1, "dut/snmp-2", when, timed=True), connect, time, PollList(polls))
        async with source, Timers(time) as timers:
            timers.poll(source)
            await asyncio.sleep(35)

    time.run(main())
    took = [[s for s in poll.answer.samples if s.metric == "source.poll.duration"] for poll in polls]
    assert [[(s.object, round(s.value, 3)) for s in samples] for samples in took] == [
        [("source=snmp-2", 0.1)],
        [("source=snmp-2", 0.2)],
        [],
        [("source=snmp-2", 0.4)],
    ]
    assert took[0][0].time_ns == polls[0].start_ns
