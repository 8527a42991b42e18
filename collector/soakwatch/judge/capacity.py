"""What a capacity search found, as the record keeps it: its trials, its bounds, and what limited it.

The terms are those of RFC 9971 (MLRsearch). Loads are levels: 1 is the full rate of the driven generators. The record
holds all searches of a run as JSON in the meta ``capacity``, rewritten after each trial.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Protocol

from pydantic import TypeAdapter

from soakwatch.core.units import show_seconds
from soakwatch.plan.capacity_plan import loss_words
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.flow import CAPACITY, CEILING, PACKETS, PORT, REQUESTS
from soakwatch_model.metric import flows
from soakwatch_model.window import Window
from soakwatch_rules.detectors.overload_loss import OverloadLoss
from soakwatch_rules.rule import Rule
from soakwatch_rules.wording.quantities import percent, quantity

META = "capacity"
"""Record meta: the searches as JSON."""
SOURCE = "capacity"
"""The record's source of the capacities."""
LEVEL = "load.capacity.level"
_UNITS = {"packet": PACKETS, "request": REQUESTS}
RATES = {unit: flows(CAPACITY, what)[0] for unit, what in _UNITS.items()}
"""The metric of a capacity, by unit."""
CEILINGS = {unit: flows(CEILING, what)[0] for unit, what in _UNITS.items()}
"""The metric of the generator's ceiling, by unit."""
FOUND, AT_LEAST = "found", "at least"
"""Label ``bound`` of a capacity: found between two bounds, or only a lower bound."""
TRIAL, REPEATED, RESULT, LOAD = "capacity.trial", "capacity.repeated", "capacity.result", "capacity.load"
"""Kinds of events: a trial, a repeated trial, the result of a search, and the load of a phase that uses the result."""
NEAR_CEILING = 0.98
"""From this share of the generator's ceiling on, the limit may be the generator's."""
ATTAINED, OVERSENT = 0.97, 1.03
"""A trial whose generator sent less or more than these shares of what it was asked for is no trial of that load."""
RULE = "capacity"
_DEFINITION = "a search for the capacity that the plan asks for ends with its bounds as close as the plan wants them"


class SearchState(StrEnum):
    RUNNING = "running"
    FOUND = "found"
    CUT = "not finished"


WAYS = flows(CAPACITY, PACKETS, scope=PORT)[0]
"""The metric of the capacity of a direction."""


@dataclass(frozen=True, slots=True)
class Way:
    """What one port sent in a trial, and lost, None where that is not known. ``to`` is the port that received it: known
    where two ports send to each other, else ""."""

    port: str
    to: str
    offered: float
    lost: float | None

    @property
    def words(self) -> str:
        """Which direction this is."""
        return f"from port {self.port} to port {self.to}" if self.to else f"from port {self.port}"


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial, from idle to idle. ``asked_s`` is the trial duration of the search, ``sent_s`` how long the generator
    sent; ``offered`` and ``lost`` are counts; ``rate`` is what was sent per second, ``wanted_rate`` the rate that the
    generator reports as set (None if it does not). ``warmup``: not counted. ``repeats``: how often it had to be
    repeated, ``retries``: how many of these because it lost too much and the plan wants another try. ``attained`` is
    the share of the command that was sent, None where it is not known to 3 %. ``ways`` are its directions, none where
    ports are not counted."""

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
    retries: int = 0
    attained: float | None = None
    ways: tuple[Way, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether the generator sent so much less or more than its command that this is no trial of the load."""
        return self.attained is not None and strays(self.attained)

    @property
    def loss(self) -> float:
        """The trial loss ratio."""
        return min(max(self.lost / self.offered, 0.0), 1.0) if self.offered > 0 else 0.0


@dataclass(frozen=True, slots=True)
class GoalBounds:
    """What is known for one goal loss ratio: its relevant lower and upper bound as levels, None where not yet known.

    ``throughput`` is the conditional throughput as a level, ``rate`` the same in packets or requests per second.
    ``provisional``: the lower bound is the highest load without a bad trial below all bad ones, but too few trials
    confirm it. ``limit``: why the value is only a lower bound of the device's capacity; "" if it is the capacity.
    ``ways`` are its directions, ``offered`` of each being its part of ``rate``; none where ports are not counted.
    """

    loss: float
    lower: float | None = None
    upper: float | None = None
    throughput: float | None = None
    rate: float | None = None
    provisional: bool = False
    limit: str = ""
    ways: tuple[Way, ...] = ()

    def bound(self, state: SearchState) -> str | None:
        """Whether the value was found between two bounds or is only a lower bound; None without a value."""
        if self.lower is None or self.throughput is None or self.rate is None:
            return None
        sure = state is SearchState.FOUND and not self.limit and not self.provisional
        return FOUND if sure else AT_LEAST


@dataclass(frozen=True, slots=True)
class CapacitySearch:
    """One search. ``unit`` is what is counted (packet, request), ``basis`` how loss is counted, ``reason`` why it did
    not finish."""

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
        """The bounds for a loss ratio; for None those of the lowest one."""
        return next((goal for goal in self.goals if loss is None or goal.loss == loss), None)


class MetaReader(Protocol):
    """What this module reads of a record."""

    def meta(self, key: str) -> str | None:
        """A text that the run stored under ``key``, or None."""
        ...


_SEARCHES = TypeAdapter(tuple[CapacitySearch, ...])


def stated_capacity(rule: Rule, record: MetaReader) -> Rule:
    """The rule ``overload_loss`` with the capacity that the run's last search found at its lowest loss, where the plan
    states none; other rules as they are.

    The capacity is the middle between the bounds, its error that of a uniform distribution over them. A search that did
    not finish, found only a lower bound, or counted requests is ignored.
    """
    searches = recorded_searches(record)
    if not isinstance(rule, OverloadLoss) or rule.capacity > 0 or not searches or searches[-1].unit != "packet":
        return rule
    goal = min(searches[-1].goals, key=lambda goal: goal.loss, default=None)
    if goal is None or goal.bound(searches[-1].state) != FOUND or not goal.rate or not goal.lower or not goal.upper:
        return rule
    width = (goal.upper - goal.lower) / goal.lower
    return replace(rule, capacity=goal.rate * (1 + width / 2), error=width / (2 + width) / 3**0.5)


def searches_text(searches: Sequence[CapacitySearch]) -> str:
    """As JSON for the record, under ``META``."""
    return json.dumps([asdict(search) for search in searches], allow_nan=False)


def recorded_searches(record: MetaReader) -> tuple[CapacitySearch, ...]:
    """The searches of a run in order; () if it has none."""
    text = record.meta(META)
    return () if text is None else _SEARCHES.validate_json(text)


def strays(share: float) -> bool:
    """Whether a generator that sent this share of its command did not follow it."""
    return not ATTAINED <= share <= OVERSENT


def commanded_rate(level: float, wanted_rate: float | None, trials: Sequence[Trial]) -> float | None:
    """The rate that a load at this level should have: as the generator reports it, else by the trials so far; None if
    neither gives it."""
    full_rate = None if wanted_rate else full_rate_of(trials)
    return wanted_rate or (None if full_rate is None else full_rate * level)


def full_rate_of(trials: Sequence[Trial]) -> float | None:
    """The rate at level 1 by what was sent: the highest on which a third of the trials agree, of two levels or more.

    A generator at its own limit sends less at high levels, one that strays sends more now and then; neither makes a
    third of the trials agree. None where no trials agree.
    """
    sent = sorted(((trial.rate / trial.level, trial.level) for trial in trials if trial.rate > 0), reverse=True)
    for most, _ in sent:
        like = [(rate, level) for rate, level in sent if ATTAINED * most <= rate <= most]
        if len({level for _, level in like}) > 1 and 3 * len(like) >= len(sent):
            return like[len(like) // 2][0]
    return None


def limit_of(
    goal: GoalBounds, trials: Sequence[Trial], highest: float, unit: str, ceilings: Mapping[str, float]
) -> str:
    """Why a value is the generator's limit and not the device's, in words; "" if it is the device's.

    ``ceilings`` are the generators' measured ceilings by metric (``soakwatch calibrate``).
    """
    if refusal := _refusal(goal, trials):
        return refusal
    if goal.lower is None:
        return ""
    if goal.upper is None and goal.lower >= highest * (1 - 1e-9):
        return f"no more than {loss_words(goal.loss)} was lost at the highest load of the search, {100 * highest:.4g} %"
    bound = goal.lower if goal.upper is None else goal.upper
    tops = [trial.rate for trial in trials if trial.level == bound]
    ceiling = ceilings.get(CEILINGS.get(unit, ""))
    if ceiling and tops and max(tops) >= NEAR_CEILING * ceiling:
        return f"the bounds reach the generator's own ceiling of {rate_words(ceiling, unit)}"
    return ""


def _refusal(goal: GoalBounds, trials: Sequence[Trial]) -> str:
    """What the generator sent of its command, where a bound rests on trials in which it did not follow it."""
    full_rate = full_rate_of(trials)
    below, above = [], []
    for trial in trials:
        share = trial.attained
        if share is None and full_rate is not None and not trial.wanted_rate and trial.sent_s > 0:
            # Polls that are read late make the rate between them wrong, and what was counted is not.
            rates = (trial.rate, trial.offered / trial.sent_s)
            share = min((rate / (full_rate * trial.level) for rate in rates), key=lambda share: abs(share - 1))
        if share is None or not strays(share):
            continue
        if trial.level == goal.lower:
            below.append(share)
        elif trial.level == goal.upper and (share > 1 or trial.loss <= goal.loss):
            above.append(share)  # one that lost too much though it sent too little bounds the load all the same
    if not below + above:
        return ""
    worst = max(below or above, key=lambda share: abs(share - 1))
    only = "only " if worst < 1 else ""
    return f"the generator sent {only}{100 * worst:.0f} % of what it was asked for"


def rate_words(rate: float, unit: str) -> str:
    """A rate in packets or requests per second: whole from 100 on, smaller ones with digits.

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
        if goal.limit:
            return f"no capacity {head}: {goal.limit}"
        upper = "" if goal.upper is None else f", below {100 * goal.upper:.2f} % of full"
        return f"no capacity {head}: no load was without more loss{upper}"
    ways = ", ".join(f"{way.offered:,.0f} {way.words}" for way in goal.ways)
    each = f" in all, {ways}" if len(goal.ways) > 1 else ""
    value = f"{rate_words(goal.rate, unit)}{each} ({100 * goal.throughput:.2f} % of full"
    bounds = "" if goal.upper is None else f", bounds {100 * goal.lower:.2f} to {100 * goal.upper:.2f} %"
    if goal.limit:
        return f"at least {value}{bounds}) {head}: the generator's limit, not the device's capacity ({goal.limit})"
    if goal.provisional:
        return f"at least {value}{bounds}) {head}, not confirmed by enough trials"
    return f"capacity {head}: {value}{bounds})"


def trial_words(trial: Trial, unit: str) -> str:
    """One trial in words."""
    lost = "nothing lost" if trial.lost <= 0 else f"{percent(trial.loss)} lost"
    warmup = ", warm-up" if trial.warmup else ""
    sent = f"{rate_words(trial.rate, unit)} for {show_seconds(round(trial.sent_s, 1))}"
    return f"trial at {100 * trial.level:.2f} %: {sent}, {lost}{warmup}"


def capacity_findings(record: MetaReader, window: Window, targets: Sequence[str]) -> list[Finding]:
    """An inconclusive finding for each search that did not finish, which blocks a pass."""
    found = []
    for search in recorded_searches(record):
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
