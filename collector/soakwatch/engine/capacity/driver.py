"""Runs the capacity searches of a run: starts each with its phase, records it, and sets loads that depend on it.

The record has a search's state after each trial, so a resumed run knows the capacities found; a search that was running
starts again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from soakwatch.engine.capacity.counts import TrialCounts
from soakwatch.engine.context import RunContext
from soakwatch.engine.load_driver import LoadController
from soakwatch.engine.run_record import RunRecord
from soakwatch.judge.capacity import (
    LEVEL,
    LOAD,
    META,
    RATES,
    REPEATED,
    RESULT,
    SOURCE,
    TRIAL,
    WAYS,
    CapacitySearch,
    SearchState,
    goal_words,
    searches_text,
    trial_words,
)
from soakwatch.plan.capacity_plan import CapacityShare, loss_words
from soakwatch.plan.planned_phases import PlannedPhase
from soakwatch.record import RecordFullError
from soakwatch.record.model import MONITOR_ORIGIN
from soakwatch_model.event import Event
from soakwatch_model.roles import GENERATOR
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample, object_text

if TYPE_CHECKING:
    from soakwatch.engine.capacity.search import SearchRun

AT_MOST = "its longest time (at_most) was over"
RUN_ENDED = "the run was ended"
INTERRUPTED = "the monitor was interrupted; the search began again"


class CapacityDriver:
    """All searches of one run. ``counts`` must be given every poll of the generators."""

    def __init__(self, context: RunContext, out: RunRecord, now_ns: Callable[[], int], loads: LoadController) -> None:
        self.counts = TrialCounts()
        self._plan, self._ceilings = context.plan, context.ceilings
        self._out, self._now_ns, self._loads = out, now_ns, loads
        self._searches = list(context.searches)
        self._run: SearchRun | None = None
        self._task: asyncio.Task[None] | None = None
        self._phase: PlannedPhase | None = None

    @property
    def searching(self) -> bool:
        """True while a search drives the loads."""
        return self._task is not None and not self._task.done()

    async def begin_due(self, now: PlannedPhase | None) -> bool:
        """Starts the search of the current phase and cuts that of an earlier phase.

        Returns True if the search of this phase is over, so that the phase may end.
        """
        if self._phase is not None and (now is None or now.window.begin_ns != self._phase.window.begin_ns):
            await self.cut(AT_MOST)
        if now is None or now.search is None:
            return False
        if self._phase is None:
            earlier = self._of(now.window.begin_ns)
            if earlier is not None and earlier.state is not SearchState.RUNNING:
                return True
            self._begin(now, again=earlier is not None)
        return not self.searching

    async def cut(self, reason: str) -> None:
        """Ends the running search, if any, and keeps its results so far."""
        run, task, self._phase = self._run, self._task, None
        if run is None or task is None:
            return
        task.cancel()
        await asyncio.wait([task])
        self._run = self._task = None
        await run.cut(reason)

    async def close(self) -> None:
        """The run ends: cuts the running search."""
        await self.cut(RUN_ENDED)

    def level_of(self, load: CapacityShare) -> tuple[float | None, str]:
        """The level of a load given as a share of the capacity, and how it came about; None if no capacity is known."""
        search = self._searches[-1] if self._searches else None
        goal = None if search is None else search.goal(load.loss)
        if search is None or goal is None or goal.throughput is None:
            return None, f"{load}: no capacity is known, so nothing is sent"
        level = load.share * goal.throughput
        return level, f"{load} is {level:.2%} of full: {goal_words(goal, search.unit)}"

    async def note_load(self, phase: PlannedPhase, words: str) -> None:
        """Records the load of a phase as an event."""
        await self._event(LOAD, phase.window.begin_ns, f"{phase.name}: {words}")

    def _begin(self, phase: PlannedPhase, *, again: bool) -> None:
        # Imported here: the library takes 0.25 s of CPU to load, and few runs search for a capacity.
        from soakwatch.engine.capacity.search import SearchContext, SearchRun

        assert phase.search is not None
        around = SearchContext(self._loads, self.counts, self._now_ns, self._ceilings, self._tell)
        self._phase, self._run = phase, SearchRun(phase.search, phase.window.begin_ns, around)
        if again:
            self._run.note(INTERRUPTED)
        self._task = asyncio.create_task(self._run.go())

    def _of(self, begin_ns: int) -> CapacitySearch | None:
        return next((search for search in self._searches if search.begin_ns == begin_ns), None)

    async def _tell(self, search: CapacitySearch, repeated: str) -> None:
        self._searches = [*(s for s in self._searches if s.begin_ns != search.begin_ns), search]
        with contextlib.suppress(RecordFullError):  # the queue says so, and the next state is written whole
            await self._out.queue.call(self._out.record.set_meta, META, searches_text(self._searches))
            if repeated:
                await self._event(REPEATED, self._now_ns(), repeated)
            elif search.state is SearchState.RUNNING:
                trial = search.trials[-1]
                await self._event(TRIAL, trial.begin_ns, trial_words(trial, search.unit))
            else:
                await self._tell_result(search)

    async def _tell_result(self, search: CapacitySearch) -> None:
        if search.state is SearchState.CUT:
            await self._event(RESULT, self._now_ns(), f"capacity not found: {search.reason}")
        for goal in search.goals:
            if search.state is SearchState.FOUND or goal.lower is not None:
                await self._event(RESULT, self._now_ns(), goal_words(goal, search.unit))
        samples = self._samples(search)
        target = next(
            t
            for t in self._plan.targets
            if t.role == GENERATOR and any(getattr(source.config, "drive", False) for source in t.sources)
        )
        if samples:
            # One poll only: the next due time is after the run's end.
            interval_ns = max(10**9, round(self._plan.duration_s * 1e9))
            call, record = self._out.queue.call, self._out.record
            source = await call(record.source, target.name, SOURCE, SOURCE, interval_ns, required=False)
            now_ns = self._now_ns()
            poll = Poll(source.id, now_ns, now_ns, 0, PollOutcome.OK, None, Answer(samples, (), ()))
            await call(record.put, [poll])

    def _samples(self, search: CapacitySearch) -> tuple[Sample, ...]:
        """The capacities found, and their lower bounds, as samples of the generator."""
        now_ns, samples = self._now_ns(), []
        for goal in search.goals:
            if goal.lower is None or goal.throughput is None or goal.rate is None:
                continue
            labels = object_text(loss=loss_words(goal.loss), bound=goal.bound(search.state))
            samples.append(Sample(LEVEL, labels, goal.throughput, now_ns))
            if search.unit in RATES:
                samples.append(Sample(RATES[search.unit], labels, goal.rate, now_ns))
            for way in goal.ways:
                port = object_text(loss=loss_words(goal.loss), bound=goal.bound(search.state), port=way.port)
                samples.append(Sample(WAYS, port, way.offered, now_ns))
        return tuple(samples)

    async def _event(self, kind: str, begin_ns: int, words: str) -> None:
        event = Event(kind, "", "", begin_ns, begin_ns, {"words": words})
        await self._out.queue.call(self._out.record.add_event, "", event, MONITOR_ORIGIN)
