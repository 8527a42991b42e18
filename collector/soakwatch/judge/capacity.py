"""What a search for the capacity found, as a record keeps it: its trials, its bounds, and what limited it.

The words are those of RFC 9971 (MLRsearch). Loads are levels: 1 is the full rate of the driven generators. The record
holds all searches of a run as JSON in the meta ``capacity``; it is written again after each trial.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Protocol

from pydantic import TypeAdapter

from soakwatch.core.units import show_seconds
from soakwatch.plan.capacity import loss_words
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.flow import CAPACITY, CEILING, PACKETS, REQUESTS
from soakwatch_model.metric import flows
from soakwatch_model.window import Window
from soakwatch_rules.detectors.overload_loss import OverloadLoss
from soakwatch_rules.rule import Rule
from soakwatch_rules.wording.words import percent, quantity

META = "capacity"
"""The meta of a record that holds the searches, as JSON."""
SOURCE = "capacity"
"""The source under which the capacities stand in a record."""
LEVEL = "load.capacity.level"
_UNITS = {"packet": PACKETS, "request": REQUESTS}
RATES = {unit: flows(CAPACITY, what)[0] for unit, what in _UNITS.items()}
"""The metric of a capacity, by what is counted."""
CEILINGS = {unit: flows(CEILING, what)[0] for unit, what in _UNITS.items()}
"""The metric of the generator's own ceiling, by what is counted."""
FOUND, AT_LEAST = "found", "at least"
"""The label ``bound`` of a capacity: found between two bounds, or only that it is no lower."""
TRIAL, REPEATED, RESULT, LOAD = "capacity.trial", "capacity.repeated", "capacity.result", "capacity.load"
"""Kinds of events: a trial, one that is repeated, the result of a search, and the load of a phase that follows."""
NEAR_CEILING = 0.98
"""From this share of the generator's ceiling on it is not known whose limit it is."""
ATTAINED = 0.97
"""A generator that sends less of what it is asked for is at its own limit."""
RULE = "capacity"
_DEFINITION = "a search for the capacity that the plan asks for ends with its bounds as close as the plan wants them"


class SearchState(StrEnum):
    """How a search stands."""

    RUNNING = "running"
    FOUND = "found"
    CUT = "not finished"


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial, from rest to rest. ``asked_s`` is the trial duration that the search asked for, ``sent_s`` how long
    was sent. ``offered`` and ``lost`` are counts; ``rate`` is what was sent per second, ``wanted_rate`` what the
    generator said that it was set to, None where it does not say. ``warmup``: not counted. ``repeats``: how often it
    had to be repeated."""

    begin_ns: int
    level: float
    asked_s: float
    sent_s: float
    offered: float
    lost: float
    rate: float
    wanted_rate: float | None = None
    warmup: bool = False
    repeats: int = 0

    @property
    def loss(self) -> float:
        """The trial loss ratio."""
        return min(max(self.lost / self.offered, 0.0), 1.0) if self.offered > 0 else 0.0


@dataclass(frozen=True, slots=True)
class GoalBounds:
    """What is known for one goal loss ratio: relevant lower and upper bound as levels, None where there is none yet.

    ``throughput`` is the conditional throughput as a level, ``rate`` the same in packets or requests per second.
    ``provisional``: the lower bound is the highest load without a bad trial below all bad ones, and not yet confirmed
    by enough trials. ``limit``: why the value is no capacity of the device but a least value; "" where it is one.
    """

    loss: float
    lower: float | None = None
    upper: float | None = None
    throughput: float | None = None
    rate: float | None = None
    provisional: bool = False
    limit: str = ""

    def bound(self, state: SearchState) -> str | None:
        """What the value is: found between two bounds, or only a least value; None where there is none."""
        if self.lower is None or self.throughput is None or self.rate is None:
            return None
        sure = state is SearchState.FOUND and not self.limit and not self.provisional
        return FOUND if sure else AT_LEAST


@dataclass(frozen=True, slots=True)
class CapacitySearch:
    """One search. ``unit`` is what is counted (packet, request), ``basis`` says how loss is counted; ``reason`` is why
    it did not finish."""

    begin_ns: int
    end_ns: int | None = None
    state: SearchState = SearchState.RUNNING
    unit: str = ""
    basis: str = ""
    reason: str = ""
    goals: tuple[GoalBounds, ...] = ()
    trials: tuple[Trial, ...] = ()
    notes: tuple[str, ...] = ()

    def goal(self, loss: float | None) -> GoalBounds | None:
        """What is known for a loss ratio; of None for the lowest."""
        return next((goal for goal in self.goals if loss is None or goal.loss == loss), None)


class MetaReader(Protocol):
    """The part of a record that is needed here."""

    def meta(self, key: str) -> str | None:
        """A text that the run stored under ``key``, or None."""
        ...


_SEARCHES = TypeAdapter(tuple[CapacitySearch, ...])


def stated_capacity(rule: Rule, record: MetaReader) -> Rule:
    """The rule ``overload_loss`` with the capacity that the run's last search found at its lowest loss, where the plan
    states none; other rules as they are.

    The capacity is the middle between the bounds, its error that of a uniform distribution over them. Nothing is taken
    from a search that did not finish, that only gave a least value, or that counted requests.
    """
    searches = searches_of(record)
    if not isinstance(rule, OverloadLoss) or rule.capacity > 0 or not searches or searches[-1].unit != "packet":
        return rule
    goal = min(searches[-1].goals, key=lambda goal: goal.loss, default=None)
    if goal is None or goal.bound(searches[-1].state) != FOUND or not goal.rate or not goal.lower or not goal.upper:
        return rule
    width = (goal.upper - goal.lower) / goal.lower
    return replace(rule, capacity=goal.rate * (1 + width / 2), error=width / (2 + width) / 3**0.5)


def searches_text(searches: Sequence[CapacitySearch]) -> str:
    """How the record keeps them, under ``META``."""
    return json.dumps([asdict(search) for search in searches], allow_nan=False)


def searches_of(record: MetaReader) -> tuple[CapacitySearch, ...]:
    """The searches of a run in order; () where its plan asks for none, or none has begun."""
    text = record.meta(META)
    return () if text is None else _SEARCHES.validate_json(text)


def attained(trial: Trial, full_rate: float | None) -> float | None:
    """The share that was sent of what was asked; None where neither the generator nor other trials tell.

    ``full_rate`` is what is sent per second at level 1 by trials that were not at any limit.
    """
    wanted = trial.wanted_rate or (None if full_rate is None else full_rate * trial.level)
    return trial.rate / wanted if wanted else None


def full_rate_of(trials: Sequence[Trial]) -> float | None:
    """The rate at level 1 by the slope of the lower half of the levels tried; None for fewer than two levels."""
    levels = sorted({trial.level for trial in trials})
    if len(levels) < 2:
        return None
    low = set(levels[: max(1, len(levels) // 2)])
    slopes = sorted(trial.rate / trial.level for trial in trials if trial.level in low and trial.rate > 0)
    return slopes[len(slopes) // 2] if slopes else None


def limit_of(
    goal: GoalBounds, trials: Sequence[Trial], highest: float, unit: str, ceilings: Mapping[str, float]
) -> str:
    """Why a value is not the device's but the generator's limit, in words; "" where it is the device's.

    ``ceilings`` are the generators' measured ceilings by metric (``soakwatch calibrate``).
    """
    if goal.lower is None:
        return ""
    if goal.upper is None and goal.lower >= highest * (1 - 1e-9):
        return f"no more than {loss_words(goal.loss)} was lost at the highest load of the search, {100 * highest:.4g} %"
    full_rate = full_rate_of(trials)
    at = {bound: [t for t in trials if t.level == bound] for bound in (goal.lower, goal.upper) if bound is not None}
    ceiling = ceilings.get(CEILINGS.get(unit, ""))
    tops = [trial.rate for trial in at.get(goal.upper if goal.upper is not None else goal.lower, [])]
    if ceiling and tops and max(tops) >= NEAR_CEILING * ceiling:
        return f"the bounds reach the generator's own ceiling of {rate_words(ceiling, unit)}"
    shares = [share for t in at.get(goal.lower, []) if (share := attained(t, full_rate)) is not None]
    if shares and min(shares) < ATTAINED:
        return f"the generator sent only {100 * min(shares):.0f} % of what it was asked for"
    return ""


def rate_words(rate: float, unit: str) -> str:
    """A rate in whole packets or requests per second; small ones with their digits.

    >>> rate_words(7383070.2, "packet"), rate_words(3.14159, "request")
    ('7,383,070 packets/s', '3.14 requests/s')
    """
    return f"{rate:,.0f} {unit}s/s" if rate >= 100 else quantity(rate, f"{{{unit}}}/s")


def goal_words(goal: GoalBounds, unit: str) -> str:
    """What is known of a goal, in a few words.

    >>> goal_words(GoalBounds(0.0, 0.5, 0.505, 0.5, 1000.0), "packet")
    'capacity at loss 0: 1,000 packets/s (50.00 % of full, bounds 50.00 to 50.50 %)'
    """
    head = f"at loss {loss_words(goal.loss)}"
    if goal.lower is None or goal.throughput is None or goal.rate is None:
        upper = "" if goal.upper is None else f", below {100 * goal.upper:.2f} % of full"
        return f"no capacity {head}: no load was without more loss{upper}"
    value = f"{rate_words(goal.rate, unit)} ({100 * goal.throughput:.2f} % of full"
    bounds = "" if goal.upper is None else f", bounds {100 * goal.lower:.2f} to {100 * goal.upper:.2f} %"
    if goal.limit:
        return f"at least {value}{bounds}) {head}: the generator's limit, not the device's capacity ({goal.limit})"
    if goal.provisional:
        return f"at least {value}{bounds}) {head}, not confirmed by enough trials"
    return f"capacity {head}: {value}{bounds})"


def trial_words(trial: Trial, unit: str) -> str:
    """One trial in a few words."""
    lost = "nothing lost" if trial.lost <= 0 else f"{percent(trial.loss)} lost"
    warmup = ", warm-up" if trial.warmup else ""
    sent = f"{rate_words(trial.rate, unit)} for {show_seconds(round(trial.sent_s, 1))}"
    return f"trial at {100 * trial.level:.2f} %: {sent}, {lost}{warmup}"


def capacity_findings(record: MetaReader, window: Window, targets: Sequence[str]) -> list[Finding]:
    """What keeps a run from passing: a search that did not finish; () for a run without one."""
    found = []
    for search in searches_of(record):
        if search.state is SearchState.FOUND:
            continue
        going_on = search.state is SearchState.RUNNING
        found.append(
            Finding(
                rule=RULE,
                version=1,
                outcome=Outcome.INCONCLUSIVE,
                target=targets[0] if targets else "",
                metric="",
                object="",
                window=Window(search.begin_ns, window.end_ns if search.end_ns is None else search.end_ns),
                definition=_DEFINITION,
                reason="the search for the capacity goes on" if going_on else _unfinished(search),
                samples=len(search.trials),
                why=InconclusiveReason.PENDING,
                settle="wait for its end" if going_on else "give it more time (at_most), or a greater width",
            )
        )
    return found


def _unfinished(search: CapacitySearch) -> str:
    known = "; ".join(goal_words(goal, search.unit) for goal in search.goals if goal.lower is not None)
    return f"the capacity was not found: {search.reason}" + (f"; so far {known}" if known else "")
