"""One capacity search during a run: makes its trials with the driven loads, one after the other.

A trial begins and ends at rest (level 0): counters are read ``settle`` after the loads stopped and once they no longer
change, so nothing is in flight. If a poll failed, the loads did not follow, or nothing was sent, the trial is repeated:
it never counts as one without loss. A trial whose generator did not send what it was asked for is repeated twice and
then refused: it holds no load.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from soakwatch.core.units import show_seconds
from soakwatch.engine.capacity.controller import NextTrial, SearchStep, step
from soakwatch.engine.capacity.counts import Counted, TrialCounts, UncountedError
from soakwatch.engine.load_driver import LoadController
from soakwatch.judge.capacity import (
    ATTAINED,
    OVERSENT,
    CapacitySearch,
    GoalBounds,
    SearchState,
    Trial,
    commanded_rate,
    limit_of,
    strays,
)
from soakwatch.plan.capacity_plan import CapacityPlan
from soakwatch_rules.wording.quantities import counted, percent

POLLS = 2.0  # a trial lasts this many polls at least
_FOLLOW_S = 5.0  # time for loads to reach a level
_PATIENCE_S, _PATIENCE_POLLS = 10.0, 5.0  # how long to wait for polls of loads at rest: the longer of both
_STRAYS = 2  # how often a trial is repeated whose generator did not follow its command
_FEW = 200  # packets or requests: one of fewer is more than half a percent, so the rate is not known well enough
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
        self._strayed: list[float] = []  # what the generator sent of its command in trials that were repeated for it

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
        if self._strayed:
            self.note(_strayed_words(self._strayed, sum(trial.refused for trial in self.state.trials)))
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
        repeats = failures = strayed = retries = 0
        while True:
            try:
                trial, share, sure = await self._attempt(wanted)
            except UncountedError as failure:
                if failure.final:
                    raise
                repeats, failures = repeats + 1, failures + 1
                if failures & (failures - 1) == 0:  # tell the 1st, 2nd, 4th, 8th ... time: a load may be away for long
                    often = f" ({failures} times now)" if failures > 1 else ""
                    await self._repeated(wanted, f"is repeated{often}: {failure}")
                await asyncio.sleep(max(self._goal.settle_s, self._around.counts.interval_s))
                continue
            loses = trial.loss > self._goal.loss[-1]
            # What lost too much at less than its load loses at the load itself.
            if share is not None and strays(share) and strayed < _STRAYS and not (loses and share < 1):
                repeats, strayed = repeats + 1, strayed + 1
                self._strayed.append(share)
                await self._repeated(
                    wanted, f"is repeated: the generator sent {100 * share:.1f} % of what it was asked for"
                )
            elif not wanted.warmup and trial.loss > self._goal.loss[0] and retries < self._goal.retry:
                repeats, retries = repeats + 1, retries + 1
                await self._repeated(wanted, f"lost {percent(trial.loss)} and is tried once more")
            else:
                return replace(trial, repeats=repeats, retries=retries, attained=share if sure else None)

    async def _repeated(self, wanted: NextTrial, why: str) -> None:
        await self._around.tell(self.state, f"the trial at {wanted.level:.2%} {why}")

    async def _attempt(self, wanted: NextTrial) -> tuple[Trial, float | None, bool]:
        """One try: the trial, the share of the command that was sent if that is known, and whether it is sure."""
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
        stopped_ns = await self._rest()
        found = around.counts.counted(wanted.level, begin_ns, end_ns, started_ns=started_ns, stopped_ns=stopped_ns)
        command = commanded_rate(wanted.level, found.wanted_rate, self.state.trials)
        share, sure = (None, False) if command is None or found.offered < _FEW else _followed(found, command)
        rate = found.rate if sure or share is None else min(max(found.rate, found.least), found.most)
        trial = Trial(
            begin_ns,
            wanted.level,
            wanted.seconds,
            (end_ns - started_ns) * 1e-9,
            found.offered,
            found.lost,
            rate,
            found.wanted_rate,
            wanted.warmup,
            ways=found.ways,
        )
        return trial, share, sure

    async def _rest(self) -> int:
        """Stops the loads and waits until their counters are final; returns when they had stopped. Raises
        UncountedError."""
        around = self._around
        await around.loads.set_level(0.0, _FOLLOW_S)
        since_ns = around.now_ns()
        await asyncio.sleep(self._goal.settle_s)
        before: object = None
        for _ in range(_MOST_READS):
            await self._polled(around.now_ns(), since_ns)
            standing = around.counts.standing()
            if standing == before:
                break
            before = standing
        return since_ns

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


def _followed(found: Counted, command: float) -> tuple[float, bool]:
    """The share of the command that was sent, and whether what was counted bears it out: polls of a busy machine come
    late, and a rate between two of them is then wrong where the counts are right."""
    share = found.rate / command
    if share > OVERSENT:
        return share, found.least > OVERSENT * command
    return share, share >= ATTAINED or found.most < ATTAINED * command


def _strayed_words(shares: Sequence[float], refused: int) -> str:
    low, high = f"{100 * min(shares):.0f}", f"{100 * max(shares):.0f}"
    span = low if low == high else f"{low} to {high}"
    words = (
        f"{counted(len(shares), 'trial')} repeated: the generator sent less than 97 % or more than 103 % of what "
        f"it was asked for ({span} %)"
    )
    return f"{words}; {refused} refused" if refused else words
