"""The controller of a search: MLRsearch (RFC 9971) as a pure function of the trials so far.

The library calls a measurer and blocks until it returns. Here the search is replayed from its trials each time: it is
deterministic, so it asks for the same loads in the same order, and the first load without a trial is the next one. So a
search needs no thread, can be cut at any time, and its bounds are known after each trial. A replay of 100 trials takes
some tens of milliseconds.

Source: Konstantynowicz and Polak, RFC 9971 (Multiple Loss Ratio Search), and the authors' library MLRsearch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal

from soakwatch.judge.capacity import GoalBounds, Trial, Way
from soakwatch.plan.capacity_plan import CapacityPlan

_FULL = 1_000_000.0  # the library's load for level 1; large, because the library rounds loads
_NEAREST = 7  # trials that say how much is sent at a load
_FOREVER_S = 1e9  # the caller limits the search's time


@dataclass(frozen=True, slots=True)
class NextTrial:
    """The next trial: level and duration in seconds. The result of a ``warmup`` is not counted."""

    level: float
    seconds: float
    warmup: bool = False


@dataclass(frozen=True, slots=True)
class SearchStep:
    """State of a search: its next trial, None when it is over, and the bounds of its goals."""

    next_trial: NextTrial | None
    goals: tuple[GoalBounds, ...]


class _NextTrialError(Exception):
    def __init__(self, load: float, seconds: float) -> None:
        super().__init__("the next trial")
        self.load, self.seconds = load, seconds


class _Replay(AbstractMeasurer):  # type: ignore[misc] # no type stubs are published
    """Replays the given trials in order, then raises for the next one."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self._trials = iter(trials)

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        """See AbstractMeasurer. Raises _NextTrialError."""
        trial = next(self._trials, None)
        if trial is None:
            raise _NextTrialError(intended_load, intended_duration)
        # The library takes what was not sent, or sent too much, for lost: a refused trial holds no load.
        intended = round(trial.offered / trial.attained) if trial.refused and trial.attained else None
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=round(trial.offered),
            loss_count=min(max(round(trial.lost), 0), round(trial.offered)),
            offered_duration=max(trial.sent_s, intended_duration),
            intended_count=intended,
        )


def step(goal: CapacityPlan, trials: Sequence[Trial]) -> SearchStep:
    """The next step of a search after these trials, given in the order it asked for them.

    Raises RuntimeError if the library finds them contradictory.

    >>> step(CapacityPlan.model_validate({"at_most": "1h"}), []).next_trial
    NextTrial(level=1.0, seconds=2.0, warmup=True)
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
    config.min_load = goal.lowest * _FULL  # set before max_load, which must exceed it
    config.max_load = goal.highest * _FULL
    config.search_duration_max, config.warmup_duration = _FOREVER_S, goal.first_trial_s
    search = MultipleLossRatioSearch(config=config)
    wanted: NextTrial | None = None
    try:
        search.search(_Replay(trials), debug=_quiet)
    except _NextTrialError as asked:
        wanted = NextTrial(asked.load / _FULL, asked.seconds, warmup=not trials)
    counted = [trial for trial in trials if not trial.warmup]
    return SearchStep(wanted, tuple(_bounds(search, each, counted) for each in goals))


def _bounds(search: MultipleLossRatioSearch, goal: SearchGoal, trials: Sequence[Trial]) -> GoalBounds:
    bounds = search.database.get_relevant_bounds(search.scaling.goal_to_final_target[goal])
    loss = float(goal.loss_ratio)
    upper = None if bounds.chi is None else float(bounds.chi) / _FULL
    if bounds.clo is None:
        return _provisional(loss, upper, trials)
    lower = float(bounds.clo) / _FULL
    stat = next(iter(bounds.clo.target_to_stat.values()))
    kept = 1.0 - float(stat.pessimistic_loss_ratio)
    rate = _rate_at(lower, trials) * kept
    return GoalBounds(loss, lower, upper, lower * kept, rate, ways=_ways_at(lower, rate, trials))


def _provisional(loss: float, upper: float | None, trials: Sequence[Trial]) -> GoalBounds:
    bad = min((trial.level for trial in trials if trial.refused or trial.loss > loss), default=float("inf"))
    good = [trial for trial in trials if trial.level < bad]
    if not good:
        return GoalBounds(loss, None, upper)
    lower = max(trial.level for trial in good)
    kept = 1.0 - max(trial.loss for trial in good if trial.level == lower)
    rate = _rate_at(lower, trials) * kept
    return GoalBounds(loss, lower, upper, lower * kept, rate, provisional=True, ways=_ways_at(lower, rate, trials))


def _rate_at(level: float, trials: Sequence[Trial]) -> float:
    """Rate sent at this level, per second: by the median of the trials nearest to it that sent what they should.

    The rate of one trial is known to a few polls; what a generator sends of its full rate does not depend on the load
    while it follows its command.
    """
    sure = [trial for trial in trials if trial.attained is not None or not trial.wanted_rate]
    followed = [trial for trial in sure if not trial.refused and trial.rate > 0] or trials
    nearest = sorted(followed, key=lambda trial: abs(trial.level - level))[:_NEAREST]
    return median(trial.rate / trial.level for trial in nearest) * level


def _ways_at(level: float, rate: float, trials: Sequence[Trial]) -> tuple[Way, ...]:
    """The directions of a rate, by what came through in each of them in the trials at its level."""
    at = [trial for trial in trials if abs(trial.level - level) <= 1e-9 * level and trial.ways]
    through: dict[tuple[str, str], float] = {}
    for way in (way for trial in at for way in trial.ways):
        through[way.port, way.to] = through.get((way.port, way.to), 0.0) + way.offered - (way.lost or 0.0)
    total = sum(through.values())
    return tuple(Way(port, to, rate * part / total, None) for (port, to), part in through.items()) if total else ()


def _quiet(_: str) -> None:
    """Discards the library's debug output: the trials say the same."""
