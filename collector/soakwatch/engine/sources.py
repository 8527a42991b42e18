"""The sources of a run, each with its wrapper: registered in the record, with the gap that a dead monitor left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.clock import Clock, aligned
from soakwatch.core.errors import RecordError
from soakwatch.core.fingerprints import MONITOR_HOST
from soakwatch.engine.context import RunContext
from soakwatch.engine.fingerprints import Reporter
from soakwatch.engine.first_polls import OPENS_S, FirstPolls
from soakwatch.engine.load_driver import LoadController
from soakwatch.engine.machine import Machine
from soakwatch.engine.polling import Connect, PolledSource, SourceSpec
from soakwatch.engine.recorded_polls import RecordedPolls
from soakwatch.engine.recorder_triggers import RecorderTriggers
from soakwatch.engine.run_record import RunRecord
from soakwatch.engine.self_monitor import INTERVAL_S
from soakwatch.engine.source_sink import PollObservers, SourceSink
from soakwatch.plan import SourcePlan, TargetPlan
from soakwatch.plan.source_plan import labelled
from soakwatch.record import RecordView, Source
from soakwatch.sources.abc import Poller, SourceContext, timing
from soakwatch.sources.source_modules import poller_module
from soakwatch_model.roles import DUT, GENERATOR, MONITOR
from soakwatch_model.sample import NOTHING, Poll, PollOutcome

MAX_ALIGNMENT_NS = 1_000_000_000  # an hourly poll does not wait for the full hour
TOGETHER = 25
"""So many sources of a plan are due at the same moment: twice as many and more are spread over their interval. All at
once they would wait for each other; each on its own would cost the monitor half as much again."""
MAX_SPREAD_NS = 10 * 10**9  # the first poll of none is later than this
_STEP_NS = 10_000_000


@dataclass(frozen=True, slots=True)
class Turn:
    """The place of a source among all those of a plan."""

    number: int
    count: int

    def offset_ns(self, interval_ns: int) -> int:
        """How much later than the first it is due: a fleet spreads its polls, so that neither the monitor nor a path
        that the devices share has to carry them all at once.

        >>> [Turn(number, 100).offset_ns(10**9) / 1e9 for number in (0, 24, 25, 99)], Turn(30, 49).offset_ns(10**9)
        ([0.0, 0.0, 0.25, 0.75], 0)
        """
        groups = self.count // TOGETHER
        if groups < 2:
            return 0
        group = min(self.number // TOGETHER, groups - 1)
        return group * min(interval_ns, MAX_SPREAD_NS) // groups // _STEP_NS * _STEP_NS


ALONE = Turn(0, 1)


class Sources:
    """All sources of one run: once open, ``polled`` has those of the plan and the monitor's own."""

    def __init__(
        self, context: RunContext, out: RunRecord, clock: Clock, observers: PollObservers, machine: Machine
    ) -> None:
        self._context, self._out, self._clock, self._observers = context, out, clock, observers
        self._machine = machine
        self.first_polls, self.triggers = FirstPolls(), RecorderTriggers(context.unwatched_ns)
        self.polled: list[PolledSource] = []
        self._turns: dict[int, Turn] = {}  # by the source's id
        self.reporters: list[Reporter] = []

    async def open(self, stack: AsyncExitStack, loads: LoadController, end_ns: int) -> None:
        """Registers them in the record; nothing is polled yet. Raises RecordError."""
        begin_ns = max(self._clock.now_ns(), self._context.start_ns)
        targets, number = self._context.plan.targets, 0
        count = sum(len(target.sources) for target in targets)
        for target in targets:
            await self._out.queue.call(self._out.record.target, target.name, target.role)
            for label, planned in labelled(target.sources):
                turn = Turn(number, count) if target.role != GENERATOR else ALONE
                await self._open(stack, target, label, planned, loads, begin_ns, end_ns, turn)
                number += 1
        await self._open_own(stack, begin_ns, end_ns)

    async def _open(
        self,
        stack: AsyncExitStack,
        target: TargetPlan,
        label: str,
        planned: SourcePlan,
        loads: LoadController,
        begin_ns: int,
        end_ns: int,
        turn: Turn,
    ) -> None:
        context, config, generator = self._context, planned.config, target.role == GENERATOR
        interval_ns = round(config.interval * 1e9)
        source = await self._out.queue.call(
            self._out.record.source, target.name, planned.poller, label, interval_ns, config.required
        )
        self._turns[source.id] = turn
        site = SourceContext(
            target.name,
            target.role,
            target.processes,
            target.interfaces,
            context.folder,
            self._clock.now_ns,
            config.interval,
            unpolled_ns=None if context.last_due_ns is None else self._first_open_ns(source, context.last_due_ns),
        )
        spec = SourceSpec(
            source.id,
            f"{source.target}/{source.label}",
            timing(self._grid_begin_ns(source, begin_ns), config.interval, config.timeout),
            timed=config.asks_management and config.asks_device and target.role == DUT,
            opens_s=OPENS_S if generator and config.timeout is None else 0.0,
            silent=config.resting == "silent" and config.asks_device,
        )
        # A run with a planned start may begin before its generator is up: its findings say so.
        insist = generator and config.required and context.plan.start is None
        first = None if context.resumed else self.first_polls.expect(target.name, label, planned, insist=insist)
        drives = generator and bool(getattr(config, "drive", False))
        sink = SourceSink(source, target.role, self._out, self._observers, first)
        await self._add(stack, spec, _connector(planned, site, loads if drives else None), sink, end_ns)

    async def _open_own(self, stack: AsyncExitStack, begin_ns: int, end_ns: int) -> None:
        """Adds the source of the monitor itself."""
        call, record = self._out.queue.call, self._out.record
        await call(record.target, MONITOR, MONITOR)
        own = await call(record.source, MONITOR, MONITOR, MONITOR, round(INTERVAL_S * 1e9), required=False)
        here = any(_is_here(planned) for target in self._context.plan.targets for planned in target.sources)

        async def connect(opened: AsyncExitStack) -> Poller:
            folder, polled = self._context.folder, self.polled
            return await self._machine.own(
                self._clock, folder, lambda: [source.outcomes for source in polled], opened, tells=not here
            )

        spec = SourceSpec(own.id, f"{own.target}/{own.label}", timing(self._grid_begin_ns(own, begin_ns), INTERVAL_S))
        await self._add(stack, spec, connect, SourceSink(own, "", self._out, self._observers), end_ns)

    async def _add(
        self, stack: AsyncExitStack, spec: SourceSpec, connect: Connect, sink: SourceSink, end_ns: int
    ) -> None:
        source, when = sink.source, spec.when
        for lost in self._gap(source, min(when.anchor_ns, end_ns)):
            self._out.queue.take(lost)

        async def read() -> NDArray[np.int64]:
            return await self._out.queue.call(_answered_ns, self._context.folder, source.id)

        recorded = RecordedPolls(read, when.anchor_ns, when.interval_ns) if self._context.resumed else None
        polled = PolledSource(spec, connect, self._clock, sink, recorded)
        self.polled.append(await stack.enter_async_context(polled))
        self.triggers.add(source.target, polled)
        self.reporters.append(
            Reporter(MONITOR_HOST if source.target == MONITOR else source.target, source.label, polled)
        )

    def _grid_begin_ns(self, source: Source, begin_ns: int) -> int:
        """The first due time from ``begin_ns`` on; in a resumed run on the source's former grid."""
        if self._context.last_due_ns is None:
            return self._anchor_ns(source, begin_ns)
        first_ns = self._first_open_ns(source, self._context.last_due_ns)
        return first_ns + max(0, -(-(begin_ns - first_ns) // source.interval_ns)) * source.interval_ns

    def _first_open_ns(self, source: Source, last_due_ns: Mapping[int, int]) -> int:
        """The first due time without a poll in the record."""
        last_ns = last_due_ns.get(source.id)
        if last_ns is None:
            return self._anchor_ns(source, self._context.start_ns)
        return last_ns + source.interval_ns

    def _anchor_ns(self, source: Source, begin_ns: int) -> int:
        aligned_ns = aligned(begin_ns, min(source.interval_ns, MAX_ALIGNMENT_NS))
        return aligned_ns + self._turns.get(source.id, ALONE).offset_ns(source.interval_ns)

    def _gap(self, source: Source, until_ns: int) -> Sequence[Poll]:
        """The polls that were due while no monitor ran, as gaps with their reason."""
        if self._context.last_due_ns is None:
            return ()
        first_ns = self._first_open_ns(source, self._context.last_due_ns)
        return [
            Poll(source.id, due_ns, due_ns, 0, PollOutcome.GAP, "the monitor was not running", NOTHING)
            for due_ns in range(first_ns, until_ns, source.interval_ns)
        ]


def _is_here(planned: SourcePlan) -> bool:
    """True if a source is this machine, so that its fingerprint is the monitor's as well."""
    return planned.poller == "local" and getattr(planned.config, "root", "/") == "/"


def _answered_ns(folder: Path, source: int) -> NDArray[np.int64]:
    try:
        with RecordView.open(folder) as view:
            return view.answered_ns(source)
    except RecordError:
        return np.zeros(0, dtype=np.int64)  # a poll stored twice does less harm than a lost one


def _connector(planned: SourcePlan, site: SourceContext, loads: LoadController | None) -> Connect:
    module = poller_module(planned.poller)

    async def connect(stack: AsyncExitStack) -> Poller:
        poller = await module.start(planned.config, site, stack)
        if loads is None:
            return poller
        driven = loads.attached(poller)
        stack.callback(loads.detached, driven)
        return driven

    return connect
