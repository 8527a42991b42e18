"""One capacity search during a run: makes its trials with the driven loads, one after the other.

A trial begins and ends at rest (level 0): counters are read ``settle`` after the loads stopped and once they no longer
change, so nothing is in flight. If a poll failed, the loads did not follow, or nothing was sent, the trial is repeated:
it never counts as one without loss.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from soakwatch.core.units import show_seconds
from soakwatch.engine.capacity.controller import NextTrial, SearchStep, step
from soakwatch.engine.capacity.counts import Counted, TrialCounts, UncountedError
from soakwatch.engine.load_driver import LoadController
from soakwatch.judge.capacity import CapacitySearch, GoalBounds, SearchState, Trial, limit_of
from soakwatch.plan.capacity_plan import CapacityPlan

POLLS = 2.0  # a trial lasts this many polls at least
_FOLLOW_S = 5.0  # time for loads to reach a level
_PATIENCE_S, _PATIENCE_POLLS = 10.0, 5.0  # how long to wait for polls of loads at rest: the longer of both
_MOST_READS = 5  # of counters that still change at rest: other traffic may come in


@dataclass(frozen=True, slots=True)
class SearchContext:
    """What a search needs: the loads, their counts, the run's clock, and the generators' measured ceilings.

    ``tell`` is awaited with each new state of the search, and a sentence if a trial is repeated, else "".
    """

    loads: LoadController
    counts: TrialCounts
    now_ns: Callable[[], int]
    ceilings: Mapping[str, float]
    tell: Callable[[CapacitySearch, str], Awaitable[None]]


class SearchRun:
    """Makes the trials of one search; ``state`` holds its results so far."""

    def __init__(self, goal: CapacityPlan, begin_ns: int, around: SearchContext) -> None:
        self._goal, self._around = goal, around
        self.state = CapacitySearch(begin_ns)
        self._told = False  # whether its end was told

    async def go(self) -> None:
        """Searches to the end. May be cancelled at any time; call ``cut`` then to say why."""
        self._around.counts.basis = None
        step_ = self._step()
        try:
            while step_.next_trial is not None:
                trial = await self._trial(step_.next_trial)
                self.state = replace(self.state, trials=(*self.state.trials, trial))
                step_ = self._step()
                await self._around.tell(self.state, "")
            await self._end(SearchState.FOUND, "")
        except UncountedError as refused:
            await self._end(SearchState.CUT, str(refused))
        except RuntimeError as contradiction:
            await self._end(SearchState.CUT, f"the trials contradict each other ({contradiction})")
        finally:
            self._around.counts.watching = False
            self._around.loads.level = 0.0

    async def cut(self, reason: str) -> None:
        """Ends the search early and keeps its results so far."""
        if self.state.state is SearchState.RUNNING:
            await self._end(SearchState.CUT, reason)
        elif not self._told:
            await self._around.tell(self.state, "")

    async def _end(self, state: SearchState, reason: str) -> None:
        self.state = replace(self.state, state=state, reason=reason, end_ns=self._around.now_ns())
        await self._around.tell(self.state, "")
        self._told = True

    def _step(self) -> SearchStep:
        taken = step(self._goal, self.state.trials)
        basis = self._around.counts.basis
        unit, words = ("", "") if basis is None else (basis.unit, basis.words)
        goals = tuple(self._limited(goal, unit) for goal in taken.goals) if self.state.trials else ()
        self.state = replace(self.state, goals=goals, unit=unit, basis=words)
        return taken

    def _limited(self, goal: GoalBounds, unit: str) -> GoalBounds:
        counted = [trial for trial in self.state.trials if not trial.warmup]
        return replace(goal, limit=limit_of(goal, counted, self._goal.highest, unit, self._around.ceilings))

    async def _trial(self, wanted: NextTrial) -> Trial:
        repeats = 0
        while True:
            try:
                return await self._attempt(wanted, repeats)
            except UncountedError as failure:
                if failure.final:
                    raise
                repeats += 1
                if repeats & (repeats - 1) == 0:  # tell the 1st, 2nd, 4th, 8th ... time: a load may be away for long
                    often = f" ({repeats} times now)" if repeats > 1 else ""
                    await self._around.tell(
                        self.state, f"the trial at {wanted.level:.2%} is repeated{often}: {failure}"
                    )
                await asyncio.sleep(max(self._goal.settle_s, self._around.counts.interval_s))

    async def _attempt(self, wanted: NextTrial, repeats: int) -> Trial:
        around = self._around
        await self._rest()
        shortest_s = POLLS * around.counts.interval_s
        if wanted.seconds < shortest_s:
            self.note(
                f"trials of less than {show_seconds(round(shortest_s, 1))} last as long, which is two polls of the load"
            )
        around.counts.restart()
        begin_ns = around.now_ns()
        await around.loads.set_level(wanted.level, _FOLLOW_S)
        started_ns = around.now_ns()
        await asyncio.sleep(max(wanted.seconds, shortest_s))
        end_ns = around.now_ns()
        await self._rest()
        counted = around.counts.counted(wanted.level, begin_ns, end_ns)
        return _made(wanted, counted, begin_ns, (end_ns - started_ns) * 1e-9, repeats)

    async def _rest(self) -> None:
        """Stops the loads and waits until their counters are final. Raises UncountedError."""
        around = self._around
        await around.loads.set_level(0.0, _FOLLOW_S)
        since_ns = around.now_ns()
        await asyncio.sleep(self._goal.settle_s)
        before: object = None
        for _ in range(_MOST_READS):
            await self._polled(around.now_ns(), since_ns)
            standing = around.counts.standing()
            if standing == before:
                return
            before = standing

    async def _polled(self, after_ns: int, since_ns: int) -> None:
        counts = self._around.counts
        patience_s = max(_PATIENCE_S, _PATIENCE_POLLS * counts.interval_s)
        try:
            async with asyncio.timeout(patience_s):
                await counts.polled(after_ns, self._around.loads.count)
        except TimeoutError:
            why = counts.failure_since(since_ns)
            text = f"the load was not polled at rest for {show_seconds(round(patience_s))}"
            raise UncountedError(f"{text}: {why}" if why else text) from None

    def note(self, text: str) -> None:
        """Adds a sentence about the search to its state."""
        if text not in self.state.notes:
            self.state = replace(self.state, notes=(*self.state.notes, text))


def _made(wanted: NextTrial, counted: Counted, begin_ns: int, sent_s: float, repeats: int) -> Trial:
    return Trial(
        begin_ns,
        wanted.level,
        wanted.seconds,
        sent_s,
        counted.offered,
        counted.lost,
        counted.rate,
        counted.wanted_rate,
        wanted.warmup,
        repeats,
    )
