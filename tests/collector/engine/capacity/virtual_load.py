"""A generator and the device behind it in virtual time, and whole runs with them: hours of search in a second."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from soakwatch.engine.live_judging import LiveJudging
from soakwatch.engine.machine import HERE
from soakwatch.engine.soak import Soak
from soakwatch.engine.start import begin, resume
from soakwatch.judge.capacity import CapacitySearch, recorded_searches
from soakwatch.judge.record_verdict import judge_record
from soakwatch.judge.verdict import Verdict
from soakwatch.plan import plan_from_text
from soakwatch.record import RecordFullError, RecordView
from soakwatch.sources.abc import Poller, SourceConfig, SourceContext, SourceError
from soakwatch.sources.loads import command
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Sample
from soakwatch_testing.virtual import VirtualTime

S = 10**9
FULL = 10_000.0
GOAL = "{loss: 0, at_most: 20m, width: 2%, trial: 4s, first_trial: 2s, sum: 8s, settle: 1s}"
PLAN = """
name: capacity
phases: {phases}
targets:
  dut: {{role: dut, sources: [{{command: {{run: [dut], interval: 1s}}}}]}}
  gen: {{role: generator, sources: [{{command: {{run: [gen], drive: true, full: 10000, interval: 500ms}}}}]}}
web: false
"""


@dataclass
class VirtualLoad:
    """Sends ``level`` times 10,000 packets a second; ``capacity`` a second come back, scattered from poll to poll.

    ``most`` is what it can send itself; ``strays`` is what it sends of what it is asked for, at each of its starts.
    ``silent`` says at which second of the run polls fail, ``deaf`` when it does not follow. ``tells`` are the metrics
    that it reports; ``drops`` how many packets are lost of the whole of a start. ``first`` is the share that its port 0
    sends to port 1, where both send. ``late`` is how many seconds after its time the n-th poll of a start is read.
    """

    now_ns: Callable[[], int]
    capacity: float = 6234.0
    most: float = float("inf")
    noise: float = 0.0
    tells: tuple[str, ...] = ("load.tx.packets", "load.rx.packets")
    silent: Callable[[float], bool] = lambda _: False
    deaf: Callable[[float], bool] = lambda _: False
    strays: Callable[[int], float] = lambda _: 1.0
    drops: Callable[[int], int] = lambda _: 0
    first: float | None = None
    late: Callable[[int, int], float] = lambda _start, _poll: 0.0
    levels: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._begin_ns = self._last_ns = self.now_ns()
        self._level = self._sent = self._back = 0.0
        self._begun = -1
        self._polls = 0
        self._chance = random.Random(11)

    async def drive(self, level: float) -> None:
        """Send at this level."""
        self._count()
        if self.deaf(self._second):
            raise SourceError("it does not follow")
        self._begun, self._polls = self._begun + (level > 0), 0
        self._back -= self.drops(self._begun) if level > 0 else 0
        self._level = level
        self.levels.append((self._second, level))

    async def poll(self, now_ns: int) -> Answer:
        """What was counted."""
        self._polls += 1
        await asyncio.sleep(self.late(self._begun, self._polls))
        self._count()
        if self.silent(self._second):
            raise SourceError("no answer from 198.51.100.7")
        lost = round(self._sent) - round(self._back)
        counts = {
            "load.tx.packets": round(self._sent),
            "load.rx.packets": round(self._back),
            "load.lost.packets": lost,
            "load.requests": round(self._back),
            "load.failures": lost,
            "load.tx.packet.rate": self._sends,
            "load.rx.packet.rate": min(self._sends, self.capacity),
            "load.offered.packet.rate": self._level * FULL,
        }
        samples = [Sample(name, "", counts[name], now_ns) for name in self.tells]
        for port, other, share in () if self.first is None else (("0", "1", self.first), ("1", "0", 1 - self.first)):
            samples.append(Sample("load.port.tx.packets", f"port={port}", round(self._sent * share), now_ns))
            samples.append(Sample("load.port.rx.packets", f"port={other}", round(self._back * share), now_ns))
        return Answer(tuple(samples), (), ())

    @property
    def _sends(self) -> float:
        return min(self._level * FULL * self.strays(self._begun), self.most)

    @property
    def _second(self) -> float:
        return (self.now_ns() - self._begin_ns) / S

    def _count(self) -> None:
        now_ns = self.now_ns()
        seconds, self._last_ns = (now_ns - self._last_ns) / S, now_ns
        out = self._sends * seconds
        carried = self.capacity * (1 + self._chance.gauss(0, self.noise)) * seconds
        self._sent, self._back = self._sent + out, self._back + min(out, carried)


class Still:
    """A device of which one reading is known."""

    async def poll(self, now_ns: int) -> Answer:
        """One reading."""
        return Answer((Sample("system.cpu.utilization", "", 0.2, now_ns),), (), ())


@dataclass
class Ran:
    """What a run left."""

    folder: Path
    load: VirtualLoad

    @property
    def searches(self) -> tuple[CapacitySearch, ...]:
        """The searches in its record."""
        with RecordView.open(self.folder) as view:
            return recorded_searches(view)

    @property
    def search(self) -> CapacitySearch:
        """The only one."""
        (search,) = self.searches
        return search

    def events(self, kind: str) -> list[Event]:
        """Its events of a kind."""
        with RecordView.open(self.folder) as view:
            return [stored.event for stored in view.events() if stored.event.kind == kind]

    def words(self, kind: str) -> list[str]:
        """What they say."""
        return [event.detail["words"] for event in self.events(kind)]

    def verdict(self) -> Verdict:
        """What it comes to."""
        with RecordView.open(self.folder) as view:
            return judge_record(view, ended=True)

    def phases(self) -> list[tuple[str, float]]:
        """Its phases with their lengths in seconds."""
        with RecordView.open(self.folder) as view:
            return [(phase.name, round(phase.window.seconds, 1)) for phase in view.phases()]


def run(
    folder: Path,
    patch: pytest.MonkeyPatch,
    phases: str = f"[{{capacity: {GOAL}}}, {{soak: {{for: 60s, load: 80% of capacity}}}}]",
    *,
    stop_after_s: float | None = None,
    kill_after_s: float | None = None,
    again: bool = False,
    ceilings: Mapping[str, float] | None = None,
    **load: Any,
) -> Ran:
    """One run in virtual time. ``stop_after_s`` ends it properly, ``kill_after_s`` leaves it as a dead monitor does;
    ``again`` resumes it."""
    time = VirtualTime()
    if again:
        with RecordView.open(folder) as view:
            time.stall((view.window().end_ns - time.now_ns()) / S + 20)
    made = VirtualLoad(time.now_ns, **load)

    async def start(config: SourceConfig, site: SourceContext, stack: AsyncExitStack) -> Poller:
        return made if site.target == "gen" else Still()

    async def nothing(self: LiveJudging) -> None:
        return None

    patch.setattr(command, "start", start)
    patch.setattr(LiveJudging, "judge_when_due", nothing)

    async def main() -> None:
        if again:
            context, record, _ = resume(folder, stop_on_fail=False)
        else:
            plan = plan_from_text(PLAN.format(phases=phases), "")
            context, record = begin(plan, folder, time, ["run"], stop_on_fail=False)
        context = replace(context, ceilings=ceilings or {})
        soak = Soak(context, record, time, machine=replace(HERE, threaded=False))
        task = asyncio.create_task(soak.watch())
        if kill_after_s is not None:
            await asyncio.sleep(kill_after_s)
            patch.setattr(record, "set_meta", _refuse)
            patch.setattr(record, "add_event", _refuse)
            task.cancel()
            await asyncio.wait([task])
            record.close()
            return
        if stop_after_s is not None:
            await asyncio.sleep(stop_after_s)
            soak.stop()
        await task
        record.finish()

    time.run(main())
    return Ran(folder, made)


def _refuse(*_: object, **__: object) -> None:
    raise Gone("the monitor is dead")


class Gone(RecordFullError):  # noqa: N818 - nothing that a user sees
    """The monitor is dead: nothing is written any more."""
