"""What a source kept is fetched after the last due poll: a network that is back just before the end loses nothing."""

from __future__ import annotations

import asyncio
import io
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from rich.console import Console
from tests.collector.engine.poll_list import PollList

from soakwatch.cli.display.progress import Lines, panel
from soakwatch.core.clock import SteadyClock
from soakwatch.engine.backfill import HURRIED_S, MAX_POLLS, MAX_S, SENTENCE, backfill
from soakwatch.engine.polling import PolledSource, SourceSpec
from soakwatch.engine.scheduler import Timers
from soakwatch.engine.soak import Soak
from soakwatch.engine.start import begin
from soakwatch.plan import plan_from_text
from soakwatch.record import RecordView
from soakwatch.runs.run_status import Status
from soakwatch.sources.abc import BackfilledPoll, Poller, SourceError, timing
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_testing.agents import LocalAgent, Relay
from soakwatch_testing.records import SECOND, T0
from soakwatch_testing.virtual import VirtualTime

END_S = 60


def answer_at(second: int) -> Answer:
    """One reading with the time at which the device took it."""
    return Answer((Sample("system.processes", "", second % 100, T0 + second * SECOND + 1000),), (), ())


@dataclass
class Keeping:
    """A device that polls each second by itself and hands over at most ``batch`` old polls at a time.

    It is reached when ``reached`` says so, by the second; a poll of its brings the newest poll if that is not too old.
    """

    time: VirtualTime
    reached: Callable[[int], bool]
    batch: int = 500
    handed: int = -1  # the last reading that was handed over, or waits to be
    waiting: list[int] = field(default_factory=list)
    polls: int = 0

    async def poll(self, now_ns: int) -> Answer:
        """The newest poll; older ones wait for ``recovered``."""
        self.polls += 1
        now_s = (self.time.now_ns() - T0) // SECOND
        if not self.reached(now_s):
            raise SourceError("the network is cut: mend it")
        last = min(now_s, self.handed + self.batch)
        self.waiting += range(self.handed + 1, last + 1)
        self.handed = last
        if not self.waiting or self.waiting[-1] < (now_ns - T0) // SECOND:
            raise SourceError("no look of this due time yet")
        return answer_at(self.waiting.pop())

    def recovered(self) -> Iterable[BackfilledPoll]:
        """What waits."""
        waiting, self.waiting = self.waiting, []
        return [BackfilledPoll(T0 + second * SECOND + 1000, 5, answer_at(second)) for second in waiting]


@dataclass
class Ended:
    """A run of one source that has come to its end."""

    time: VirtualTime
    polls: list[Poll] = field(default_factory=list)
    opened: int = 0
    kept: int = 0
    room: bool = True
    took_s: float = 0.0

    def watch(
        self,
        poller: Poller,
        *,
        end_s: int = END_S,
        resumed: bool = False,
        stop_after_s: float | None = None,
        refuses_s: int = 0,
    ) -> Counter[int]:
        """Poll it to the end, catch up, and count the answers of each second; it cannot be opened before a second."""

        async def connect(_: AsyncExitStack) -> Poller:
            if self.time.now_ns() < T0 + refuses_s * SECOND:
                raise SourceError("no route to host")
            self.opened += 1
            return poller

        async def keep() -> bool:
            self.kept += 1
            return self.room

        async def main() -> None:
            spec = SourceSpec(1, "dut/agent", timing(T0, 1.0, 5.0))
            source = PolledSource(spec, connect, self.time, PollList(self.polls))
            async with source:
                async with Timers(self.time) as timers:
                    timers.poll(source)
                    await asyncio.sleep(end_s - 0.1)
                end_ns = T0 + end_s * SECOND - SECOND // 10
                source.close_account(end_ns)
                begin_ns = self.time.now_ns()
                if source.may_be_behind(resumed=resumed):
                    stop = asyncio.Event()
                    if stop_after_s == 0:
                        stop.set()
                    elif stop_after_s is not None:
                        asyncio.get_running_loop().call_later(stop_after_s, stop.set)
                    await backfill([source], end_ns, keep, stop, resumed=resumed)
                self.took_s = (self.time.now_ns() - begin_ns) * 1e-9
            assert len(asyncio.all_tasks()) == 1

        self.time.run(main())
        return Counter(poll.due_ns // SECOND - T0 // SECOND for poll in self.polls if poll.outcome is PollOutcome.OK)


def test_a_network_that_comes_back_just_before_the_end_loses_nothing() -> None:
    """Cut for 56 of the last 57 seconds, and held back when the network came back: each second has its one poll."""
    ended = Ended(VirtualTime(T0))
    poller = Keeping(ended.time, lambda second: not 3 <= second < END_S - 1, batch=7)
    assert ended.watch(poller) == Counter(range(END_S))
    assert ended.kept >= 8  # each batch is in the record before the next is fetched
    assert ended.took_s <= 1.0


def test_a_source_that_was_never_lost_is_not_asked_again() -> None:
    """The end of an ordinary run costs nothing."""
    ended = Ended(VirtualTime(T0))
    poller = Keeping(ended.time, lambda _: True)
    assert ended.watch(poller) == Counter(range(END_S))
    assert (poller.polls, ended.kept) == (END_S, 0)


def test_a_network_that_stays_cut_is_tried_twice_and_what_comes_after_the_end_is_dropped() -> None:
    """Dead for good it costs a second; back within that second, it brings the run's polls and none of later."""
    dead, late = Ended(VirtualTime(T0)), Ended(VirtualTime(T0))
    cut = Keeping(dead.time, lambda second: second < 3)
    assert dead.watch(cut) == Counter(range(3))
    assert dead.took_s == pytest.approx(1.0)
    assert late.watch(Keeping(late.time, lambda second: not 3 <= second < END_S)) == Counter(range(END_S))


def test_a_resumed_run_that_never_reached_its_agent_tries_to_open_it() -> None:
    """Only then: a new run has nothing in an agent that it never spoke to."""
    for resumed, seconds in ((True, range(END_S)), (False, range(0))):
        ended = Ended(VirtualTime(T0))
        poller = Keeping(ended.time, lambda _: True)
        assert ended.watch(poller, resumed=resumed, refuses_s=END_S - 1) == Counter(seconds)
        assert ended.opened == resumed


@pytest.mark.parametrize(
    ("stop_after_s", "took_s"), [(None, MAX_S), (0.0, HURRIED_S), (4.0, 4.0)], ids=["end", "ctrl-c", "meanwhile"]
)
def test_the_last_chance_is_bounded(stop_after_s: float | None, took_s: float) -> None:
    """A source that never comes to its end is left after 30 s, 10 s of an interrupted run, at once when asked to."""

    class Endless(Keeping):
        async def poll(self, now_ns: int) -> Answer:
            if self.time.now_ns() > T0 + END_S * SECOND - SECOND // 2:
                await asyncio.sleep(1)
            return await super().poll(now_ns)

        def recovered(self) -> Iterable[BackfilledPoll]:
            return [BackfilledPoll(T0 + SECOND // 2, 5, answer_at(0))]

    ended = Ended(VirtualTime(T0))
    ended.watch(Endless(ended.time, lambda _: True), stop_after_s=stop_after_s)
    assert ended.took_s == pytest.approx(took_s, abs=0.01)


def test_whoever_gives_up_waits_for_nothing() -> None:
    """A second Ctrl-C cancels the run: the poll under way ends with it, what it had fetched is handed in."""
    time = VirtualTime(T0)
    polls: list[Poll] = []

    class Hanging(Keeping):
        async def poll(self, now_ns: int) -> Answer:
            if self.time.now_ns() < T0 + 2 * SECOND:
                raise SourceError("the network is cut: mend it")
            self.waiting = [0, 1]
            await asyncio.Event().wait()
            raise AssertionError

    async def connect(_: AsyncExitStack) -> Poller:
        return Hanging(time, lambda _: True)

    async def keep() -> bool:
        return True

    async def main() -> float:
        spec = SourceSpec(1, "dut/agent", timing(T0, 1.0, 20.0))
        async with PolledSource(spec, connect, time, PollList(polls)) as source:
            for _ in range(2):
                await source.tick()
                await asyncio.sleep(1)
            stop = asyncio.Event()
            stop.set()
            ending = asyncio.create_task(backfill([source], T0 + 2 * SECOND, keep, stop, resumed=False))
            await asyncio.sleep(3)
            begin_ns = time.now_ns()
            ending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await ending
        assert len(asyncio.all_tasks()) == 1
        return (time.now_ns() - begin_ns) * 1e-9

    assert time.run(main()) == 0
    assert [poll.due_ns for poll in polls if poll.outcome is PollOutcome.OK] == [T0, T0 + SECOND]


def test_no_more_polls_than_sixty_and_none_without_room() -> None:
    """A source that answers at once and always has more is asked 60 times; one whose polls find no room, once."""

    class Endless(Keeping):
        def recovered(self) -> Iterable[BackfilledPoll]:
            return [BackfilledPoll(T0 + SECOND // 2, 5, answer_at(0))]

    for room, polls in ((True, MAX_POLLS), (False, 1)):
        ended = Ended(VirtualTime(T0), room=room)
        poller = Endless(ended.time, lambda _: True)
        ended.watch(poller)
        assert poller.polls - END_S == polls


def test_waiters_are_notified() -> None:
    """Lines and panel say what the run is still doing after its end."""
    status = Status("run", "soak", 60.0, 0.0, (), {}, (), None, (), None)
    target = io.StringIO()
    lines = Lines(Console(file=target, width=200))
    lines.show(status)
    assert SENTENCE not in target.getvalue()
    for _ in range(2):
        lines.show(Status("run", "soak", 60.0, 0.0, (), {}, (), None, (), None, SENTENCE))
    assert target.getvalue().count(SENTENCE) == 1
    Console(file=target, width=120).print(panel(Status("run", "", 60.0, 0.0, (), {}, (), None, (), None, SENTENCE)))
    assert target.getvalue().count(SENTENCE) == 2


PLAN = """
duration: 6s
targets: {dut: {sources: [{agent: {socket: SOCKET, interval: 500ms, timeout: 1s, probes: [load]}}]}}
"""


def test_a_real_agent_behind_a_cut_network_that_is_mended_at_the_last_moment(tmp_path: Path) -> None:
    """The whole run with a real agent: cut at 2 s, mended at 5.9 s of 6, while the source is held back."""
    agent = LocalAgent(tmp_path / "agent", ("--no-recorder",))
    agent.start()
    clock = SteadyClock()
    run = tmp_path / "run"
    doing: set[str] = set()

    async def main() -> int:
        async with Relay(tmp_path / "relay", agent.socket) as relay:
            plan = plan_from_text(PLAN.replace("SOCKET", str(relay.here)), "plan.yaml")
            course, record = begin(plan, run, clock, ["test"], stop_on_fail=False)
            with record:
                soak = Soak(course, record, clock)
                watching = asyncio.create_task(soak.watch())
                while not watching.done():
                    elapsed_s = soak.status().elapsed_s
                    if 2 <= elapsed_s < 5.9 and relay.open:
                        relay.cut()
                    elif elapsed_s >= 5.9 and not relay.open:
                        relay.mend()
                    doing.add(soak.status().doing)
                    await asyncio.sleep(0.002)  # what the catching up takes at least
                return await watching

    try:
        end_ns = asyncio.run(main())
    finally:
        agent.kill()
    with RecordView.open(run) as view:
        (ledger,) = [ledger for ledger in view.ledgers(view.window()) if ledger.target == "dut"]
        times = view.series(view.keys(["system.cpu.load"])[0]).time_ns
    assert (ledger.got, ledger.lost) == (ledger.due, {})
    assert 11 <= ledger.due <= 13
    assert ledger.recovered >= 6
    assert len(times) == ledger.due
    assert times.max() <= end_ns
    assert SENTENCE in doing
