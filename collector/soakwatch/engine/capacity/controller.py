"""The controller of a search: MLRsearch (RFC 9971) as a pure function of the trials so far.

The library calls its measurer and waits for it. Here the whole search is played again from its trials each time: it
has no clock and no chance in it, so that it asks for the same loads in the same order, and the first trial that it
asks for and that nobody has made is the next one. So a search needs no thread, can be cut at any time, and its bounds
are known after each trial. A replay of 100 trials takes some tens of milliseconds.

Source: Konstantynowicz and Polak, RFC 9971 (Multiple Loss Ratio Search), and the authors' library MLRsearch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal

from soakwatch.judge.capacity import GoalBounds, Trial
from soakwatch.plan.capacity import CapacityPlan

_FULL = 1_000_000.0  # loads per second that the library is told for level 1: it rounds them
_FOREVER_S = 1e9  # the longest time is kept by whoever makes the trials


@dataclass(frozen=True, slots=True)
class Wanted:
    """The next trial: level and trial duration in seconds. ``warmup``: its result is not counted."""

    level: float
    seconds: float
    warmup: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """Where a search stands: the trial that it needs next, None when it is over, and the bounds of its goals."""

    wanted: Wanted | None
    goals: tuple[GoalBounds, ...]


class _NextTrialError(Exception):
    def __init__(self, load: float, seconds: float) -> None:
        super().__init__("the next trial")
        self.load, self.seconds = load, seconds


class _Replay(AbstractMeasurer):  # type: ignore[misc] # no type stubs are published
    """Gives the trials that were made, in order, and then says which one is asked for next."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self._trials = iter(trials)

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        """See AbstractMeasurer. Raises _NextTrialError."""
        trial = next(self._trials, None)
        if trial is None:
            raise _NextTrialError(intended_load, intended_duration)
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=round(trial.offered),
            loss_count=min(max(round(trial.lost), 0), round(trial.offered)),
            offered_duration=max(trial.sent_s, intended_duration),
        )


def step(goal: CapacityPlan, trials: Sequence[Trial]) -> Step:
    """What a search does after these trials, which it has asked for in this order.

    Raises RuntimeError if the library finds a contradiction in them.

    >>> step(CapacityPlan.model_validate({"at_most": "1h"}), []).wanted
    Wanted(level=1.0, seconds=2.0, warmup=True)
    """
    goals = [
        SearchGoal(
            loss_ratio=loss,
            exceed_ratio=goal.exceed,
            relative_width=goal.width,
            initial_trial_duration=goal.first_trial_s,
            final_trial_duration=goal.trial_s,
            duration_sum=goal.sum_s,
            fail_fast=False,
        )
        for loss in goal.loss
    ]
    config = Config()
    config.goals = goals
    config.min_load = goal.lowest * _FULL  # first: it has to be below the one of the defaults
    config.max_load = goal.highest * _FULL
    config.search_duration_max, config.warmup_duration = _FOREVER_S, goal.first_trial_s
    search = MultipleLossRatioSearch(config=config)
    wanted: Wanted | None = None
    try:
        search.search(_Replay(trials), debug=_quiet)
    except _NextTrialError as asked:
        wanted = Wanted(asked.load / _FULL, asked.seconds, warmup=not trials)
    counted = [trial for trial in trials if not trial.warmup]
    return Step(wanted, tuple(_bounds(search, each, counted) for each in goals))


def _bounds(search: MultipleLossRatioSearch, goal: SearchGoal, trials: Sequence[Trial]) -> GoalBounds:
    bounds = search.database.get_relevant_bounds(search.scaling.goal_to_final_target[goal])
    loss = float(goal.loss_ratio)
    upper = None if bounds.chi is None else float(bounds.chi) / _FULL
    if bounds.clo is None:
        return _provisional(loss, upper, trials)
    lower = float(bounds.clo) / _FULL
    stat = next(iter(bounds.clo.target_to_stat.values()))
    kept = 1.0 - float(stat.pessimistic_loss_ratio)
    return GoalBounds(loss, lower, upper, lower * kept, _rate_at(lower, trials) * kept)


def _provisional(loss: float, upper: float | None, trials: Sequence[Trial]) -> GoalBounds:
    bad = min((trial.level for trial in trials if trial.loss > loss), default=float("inf"))
    good = [trial for trial in trials if trial.level < bad]
    if not good:
        return GoalBounds(loss, None, upper)
    lower = max(trial.level for trial in good)
    kept = 1.0 - max(trial.loss for trial in good if trial.level == lower)
    return GoalBounds(loss, lower, upper, lower * kept, _rate_at(lower, trials) * kept, provisional=True)


def _rate_at(level: float, trials: Sequence[Trial]) -> float:
    """What was sent per second at this load, over all of its trials."""
    at = [trial for trial in trials if abs(trial.level - level) <= 1e-9 * level]
    sent_s = sum(trial.sent_s for trial in at)
    return sum(trial.rate * trial.sent_s for trial in at) / sent_s if sent_s else 0.0


def _quiet(_: str) -> None:
    """The library's own account of what it does: the trials say the same."""
