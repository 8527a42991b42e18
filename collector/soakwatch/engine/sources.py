"""The sources of a run, each under its wrapper: made known to the record, with the holes that a dead monitor left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.clock import Clock, aligned
from soakwatch.core.errors import RecordError
from soakwatch.core.roles import DUT, GENERATOR, MONITOR
from soakwatch.engine.context import RunContext
from soakwatch.engine.first_polls import OPENS_S, FirstPolls
from soakwatch.engine.load_driver import LoadController
from soakwatch.engine.polling import Connect, Looked, PolledSource
from soakwatch.engine.recorded_polls import RecordedPolls
from soakwatch.engine.recorder_triggers import RecorderTriggers
from soakwatch.engine.self_monitor import INTERVAL_S, LoopLag, SelfWatch
from soakwatch.plan import SourcePlan
from soakwatch.plan.sources import labelled
from soakwatch.record import Record, RecordView, Source
from soakwatch.record.queue import Committer
from soakwatch.sources.abc import Poller, SourceContext, Timing, timing
from soakwatch.sources.registry import poller_module
from soakwatch_agent.sample import NOTHING, Poll, PollOutcome

LONGEST_ALIGNMENT_NS = 1_000_000_000  # an hourly poll does not wait for the full hour to begin


class Sources:
    """All sources of one run. ``roles`` and ``interval_ns`` are by the number that the record gave a source."""

    def __init__(
        self, course: RunContext, record: Record, committer: Committer, clock: Clock, put: Callable[[Poll], None]
    ) -> None:
        self._course, self._record, self._committer, self._clock, self._put = course, record, committer, clock, put
        self.opening, self.closer = FirstPolls(), RecorderTriggers(course.unwatched_ns)
        self.polled: list[PolledSource] = []
        self.roles: dict[int, str] = {}
        self.interval_ns: dict[int, int] = {}

    async def open(self, stack: AsyncExitStack, lag: LoopLag, throttle: LoadController, end_ns: int) -> None:
        """Make them known, those of the plan and the monitor's own; nothing is asked yet."""
        course, begin_ns = self._course, max(self._clock.now_ns(), self._course.start_ns)
        for target in course.plan.targets:
            await self._committer.call(self._record.target, target.name, target.role)
            for label, planned in labelled(target.sources):
                config = planned.config
                source = await self._committer.call(
                    self._record.source,
                    target.name,
                    planned.poller,
                    label,
                    round(config.interval * 1e9),
                    config.required,
                )
                self.roles[source.id] = target.role
                site = SourceContext(
                    target.name,
                    target.role,
                    target.processes,
                    target.interfaces,
                    course.folder,
                    self._clock.now_ns,
                    config.interval,
                )
                when = timing(_anchor(begin_ns, config.interval), config.interval, config.timeout)
                # A run that was planned for the weekend begins without its generator, and says so.
                insist = target.role == GENERATOR and config.required and course.plan.start is None
                looked = None if course.resumed else self.opening.expect(target.name, label, planned, insist=insist)
                drives = target.role == GENERATOR and bool(getattr(config, "drive", False))
                connect = _connector(planned, site, throttle if drives else None)
                timed = config.asks_management and target.role == DUT
                opens_s = OPENS_S if target.role == GENERATOR and config.timeout is None else 0.0
                await self._add(stack, source, when, connect, end_ns, looked, timed=timed, opens_s=opens_s)
        await self._committer.call(self._record.target, MONITOR, MONITOR)
        own = await self._committer.call(
            self._record.source, MONITOR, "monitor", "monitor", round(INTERVAL_S * 1e9), required=False
        )
        watch = SelfWatch(self._clock, course.folder, lag, lambda: [source.outcomes for source in self.polled])

        async def connect_own(_: AsyncExitStack) -> Poller:
            return watch

        await self._add(stack, own, timing(_anchor(begin_ns, INTERVAL_S), INTERVAL_S), connect_own, end_ns)

    async def _add(
        self,
        stack: AsyncExitStack,
        source: Source,
        when: Timing,
        connect: Connect,
        end_ns: int,
        looked: Looked | None = None,
        *,
        timed: bool = False,
        opens_s: float = 0.0,
    ) -> None:
        for lost in self._gap(source, min(when.anchor_ns, end_ns)):
            self._committer.take(lost)
        label = f"{source.target}/{source.label}"

        async def tell(cadences: Mapping[str, float]) -> bool:
            try:
                await self._committer.call(self._record.cadences, source.id, cadences)
            except RecordError:
                return False  # the disk is full for the moment
            return True

        async def read() -> NDArray[np.int64]:
            return await self._committer.call(_answered_ns, self._course.folder, source.id)

        known = RecordedPolls(read, when.anchor_ns, when.interval_ns) if self._course.resumed else None
        polled = PolledSource(
            source.id, label, when, connect, self._clock, self._put, tell, looked, known, timed=timed, opens_s=opens_s
        )
        self.polled.append(await stack.enter_async_context(polled))
        self.interval_ns[source.id] = when.interval_ns
        self.closer.add(source.target, polled)

    def _gap(self, source: Source, until_ns: int) -> Sequence[Poll]:
        """The polls that were due while no monitor ran: each is a hole in the account, with its reason."""
        if self._course.last_due_ns is None:
            return ()
        last_ns = self._course.last_due_ns.get(source.id)
        first_ns = (
            _anchor(self._course.start_ns, source.interval_ns * 1e-9)
            if last_ns is None
            else last_ns + source.interval_ns
        )
        return [
            Poll(source.id, due_ns, due_ns, 0, PollOutcome.GAP, "the monitor was not running", NOTHING)
            for due_ns in range(first_ns, until_ns, source.interval_ns)
        ]


def _anchor(begin_ns: int, interval_s: float) -> int:
    return aligned(begin_ns, min(round(interval_s * 1e9), LONGEST_ALIGNMENT_NS))


def _answered_ns(folder: Path, source: int) -> NDArray[np.int64]:
    try:
        with RecordView.open(folder) as view:
            return view.answered_ns(source)
    except RecordError:
        return np.zeros(0, dtype=np.int64)  # a look that is kept twice does less harm than one that is lost


def _connector(planned: SourcePlan, site: SourceContext, throttle: LoadController | None) -> Connect:
    module = poller_module(planned.poller)

    async def connect(stack: AsyncExitStack) -> Poller:
        poller = await module.start(planned.config, site, stack)
        if throttle is None:
            return poller
        driven = throttle.attached(poller)
        stack.callback(throttle.detached, driven)
        return driven

    return connect
