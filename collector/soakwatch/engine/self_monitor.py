"""The monitor watches itself: memory, descriptors, lateness, free disk space, and steps of its clock."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol

import psutil

from soakwatch.core.clock import Clock
from soakwatch.core.daemon_thread import in_daemon_thread
from soakwatch.core.event_kinds import CLOCK_STEP
from soakwatch.sources.abc import Poller
from soakwatch_agent.context import HostContext, ProcAt
from soakwatch_agent.fingerprint import fingerprint
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, PollOutcome, Sample, object_text
from soakwatch_model.tree import Tree
from soakwatch_model.window import Window

CLOCK_STEP_S = 0.25
STANDSTILL_S = 5.0
"""A run that did nothing at all for so long stood still: it or its machine was suspended, stopped or starved."""
STOOD_STILL = "the monitor stood still: it or its machine was suspended, stopped or overloaded"
INTERVAL_S = 5.0


class LoopLag:
    """How late the event loop runs, measured by a heartbeat on the run's clock, which counts suspend.

    A beat is a plain call of the loop: it costs a hundredth of a poll. How late each poll began is in the record.
    """

    _BEAT_S = 0.5

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._worst_s = 0.0
        self._standstills: list[Window] = []

    def measure(self) -> Callable[[], None]:
        """Measures from now on; returns what ends it."""
        loop = asyncio.get_running_loop()
        handle: asyncio.TimerHandle

        def arm(before_ns: int) -> None:
            nonlocal handle
            handle = loop.call_later(self._BEAT_S, beat, before_ns)

        def beat(before_ns: int) -> None:
            now_ns = self._now_ns()
            self.late(before_ns, now_ns)
            arm(now_ns)

        arm(self._now_ns())
        return lambda: handle.cancel()  # noqa: PLW0108 - the newest one, not this

    def late(self, before_ns: int, now_ns: int) -> None:
        """Takes one beat, from which time to which."""
        late_s = (now_ns - before_ns) * 1e-9 - self._BEAT_S
        self._worst_s = max(self._worst_s, late_s)
        if late_s >= STANDSTILL_S:
            self._standstills.append(Window(before_ns, now_ns))

    def standstills(self) -> tuple[Window, ...]:
        """The times since the last call in which nothing ran."""
        found, self._standstills = tuple(self._standstills), []
        return found

    def worst_s(self) -> float:
        """The worst lateness since the last call, seconds."""
        worst, self._worst_s = self._worst_s, 0.0
        return worst


Outcomes = Callable[[], Sequence[Counter[PollOutcome]]]


class OpensOwn(Protocol):
    """Opens the poller of the monitor itself; ``outcomes`` returns those of its sources so far.

    If ``tells``, it also reports a fingerprint: no target is this machine.
    """

    async def __call__(
        self, clock: Clock, folder: Path, outcomes: Outcomes, stack: AsyncExitStack, *, tells: bool
    ) -> Poller:
        """Opens it; enters what it opens into the stack."""
        ...


async def watch_self(
    clock: Clock, folder: Path, outcomes: Outcomes, stack: AsyncExitStack, *, tells: bool
) -> SelfWatch:
    """Opens the poller of this process and starts its heartbeat."""
    lag = LoopLag(clock.now_ns)
    stack.callback(lag.measure())
    return SelfWatch(clock, folder, lag, outcomes, tells=tells)


def own_readings(outcomes: Outcomes, offset_s: float) -> list[tuple[str, str, float]]:
    """A run's poll counts and clock offset as (metric, object, value)."""
    counts = outcomes()
    polls: list[tuple[str, str, float]]
    polls = [("monitor.polls", object_text(outcome=o.value), sum(count[o] for count in counts)) for o in PollOutcome]
    return [*polls, ("monitor.clock.offset", "", offset_s)]


class ClockSteps:
    """Detects that the wall clock was set, by its offset from the steady one."""

    def __init__(self) -> None:
        self._offset_s: float | None = None

    def events(self, now_ns: int, offset_s: float) -> tuple[Event, ...]:
        """The event of a step since the last call, if there was one."""
        before, self._offset_s = self._offset_s, offset_s
        if before is None or abs(offset_s - before) < CLOCK_STEP_S:
            return ()
        return (Event(CLOCK_STEP, "", "", now_ns, now_ns, {"seconds": f"{offset_s - before:+.3f}"}),)


class SelfWatch:
    """The poller ``monitor``, which every run has."""

    def __init__(
        self,
        clock: Clock,
        folder: Path,
        lag: LoopLag,
        outcomes: Outcomes,
        *,
        tells: bool = True,
    ) -> None:
        self._tells = tells
        self._clock, self._folder, self._lag, self._outcomes = clock, folder, lag, outcomes
        self._process = psutil.Process()
        self._here = HostContext()
        self._steps = ClockSteps()

    async def poll(self, now_ns: int) -> Answer:
        """One poll of this process."""
        with ProcAt(self._here), self._process.oneshot():  # another source may point psutil at another root
            cpu = self._process.cpu_times()
            readings: list[tuple[str, str, float]] = [
                ("monitor.cpu.time", "", cpu.user + cpu.system),
                ("monitor.memory.usage", "", self._process.memory_info().rss),
                ("monitor.threads", "", self._process.num_threads()),
                ("monitor.open_files", "", self._process.num_fds()),
            ]
        readings += [
            ("monitor.loop.lag", "", self._lag.worst_s()),
            ("monitor.disk.free", "", shutil.disk_usage(self._folder).free),
            ("monitor.record.size", "", sum(f.stat().st_size for f in self._folder.glob("record.sqlite*"))),
        ]
        offset_s = (self._clock.wall_ns() - self._clock.now_ns()) * 1e-9
        readings += own_readings(self._outcomes, offset_s)
        samples = tuple(Sample(m, o, value, now_ns) for m, o, value in readings)
        gaps = tuple(
            Event("gap", "", "", still.begin_ns, still.end_ns, {"cause": STOOD_STILL})
            for still in self._lag.standstills()
        )
        return Answer(samples, (*gaps, *self._steps.events(now_ns, offset_s)), ())

    async def fingerprint(self) -> Mapping[str, Tree]:
        """The fingerprint of the machine that Soakwatch runs on."""
        return await in_daemon_thread(fingerprint, "soakwatch-fingerprint") if self._tells else {}
