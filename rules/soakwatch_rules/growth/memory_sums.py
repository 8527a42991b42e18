"""Memory sums: a machine's memory is judged by what its processes do not explain of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.metric_entry import HOST_MEMORY
from soakwatch_model.metric_queries import telling
from soakwatch_model.series import Floats, Ints, Series
from soakwatch_rules.rule import Rule
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.robust_level import net_change
from soakwatch_rules.wording.growth_words import near_limit
from soakwatch_rules.wording.quantities import counted, quantity
from soakwatch_rules.wording.series_names import thing_in

PARTS: Final = ("process.memory.pss", "process.memory.usage")
"""Measures of a process's memory, the one that counts shared pages least first."""

_COMMITTED: Final = "system.memory.committed"
SUMS: Final[Mapping[str, tuple[float, float]]] = {
    name: (0.7, 2.0 if name == _COMMITTED else 1.2) for name in telling(HOST_MEMORY)
}
"""How many bytes of a sum one byte of its processes makes, at least and at most: shared pages count in each process,
page tables and kernel memory in none, and memory is committed before it is used. The least-squares slope is limited to
this range, so that a kernel leak beside a rising process is not attributed to the process."""

_LIMIT: Final = "system.memory.limit"
_GAP: Final = 3.0  # median distances: a process may have been dead in a longer gap
_LIFE: Final = frozenset({"process.start", "process.restart", "process.exit", "reboot"})
_NAMED: Final = 0.25  # share of the sum's change from which a process is named


@dataclass(frozen=True, slots=True, eq=False)
class Residue:
    """A sum minus its parts, at the sum's level; ``changes`` are those of the parts over the run, largest first."""

    series: Series
    parts: int
    change: float
    changes: tuple[tuple[str, float], ...]


def residue(whole: Series, parts: Sequence[Series], events: Iterable[Event], limit: float | None) -> Residue | None:
    """What remains of a sum without its parts; None without parts or with too few readings.

    Parts are interpolated at the sum's times; a part is 0 before its first and after its last reading, and in a gap in
    which it ended or started. ``limit`` converts bytes to a share.
    """
    low, high = SUMS[whole.metric]
    scale = 1.0
    if whole.trait.unit == "1":
        if limit is None or not limit > 0:
            return None
        scale = 1.0 / limit
    chosen = [series for series in _best(parts) if len(series) > 1]
    if len(whole) < 3 or not chosen:
        return None
    deaths = [e for e in events if e.kind in _LIFE]
    positions = whole.time_ns
    columns = [_on(positions, series, deaths) * scale for series in chosen]
    sign = -1.0 if whole.trait.growth == "down" else 1.0
    value, total = sign * whole.values, np.sum(columns, axis=0)
    off = total - total.mean()
    square = float(off @ off)
    each = float(off @ value) / square if square > 0 else 1.0
    left = value - min(max(each, low), high) * (total - median(total))
    # the limits are those of the sum, not of what remains of it
    trait = replace(whole.trait, quantum=None, ceiling=None, high=None)
    changes = [(series.object, net_change(column)) for series, column in zip(chosen, columns, strict=True)]
    changes.sort(key=lambda item: -item[1])
    return Residue(
        replace(whole, value=sign * left, trait=trait),
        len(chosen),
        net_change(value),
        tuple(changes),
    )


@dataclass(frozen=True, slots=True)
class WithoutParts:
    """The finding on a sum without its parts, the outcome that follows for the sum, and its words."""

    finding: Finding
    outcome: Outcome
    text: str


def by_parts(rule: Rule, case: Case, parts: Sequence[Series], own: frozenset[str]) -> WithoutParts | None:
    """Judges a sum without its parts by the same rule; None if too little of either was read.

    ``own`` are the objects of the parts that fail by themselves; their growth makes the sum a warning.
    """
    whole = case.series[0].finite()
    with np.errstate(all="ignore"):
        left = residue(whole, parts, case.events, case.facts.stated.get(_LIMIT))
    if left is None:
        return None
    judged = rule.judge(replace(case, series=(left.series,)))[0]
    unit, texts, outcome = whole.trait.unit, [], judged.outcome
    if judged.outcome is Outcome.PASS:
        texts = near_limit(whole, case.facts.stated)
        outcome = Outcome.WARN if texts else Outcome.PASS
        named = [(name, change) for name, change in left.changes if change > _NAMED * max(left.change, 0.0)][:2]
        if named:
            culprits = ", ".join(f"{thing_in(name) or name} ({_signed(change, unit)})" for name, change in named)
            texts = [
                *texts,
                f"{culprits} explain{'s' * (len(named) == 1)} the change of {_signed(left.change, unit)} in the run",
            ]
            outcome = Outcome.WARN if any(name in own for name, _ in named) else outcome
    numbers = {**judged.numbers, "parts": float(left.parts), "change_of_sum": left.change}
    text = "; ".join([*texts, f"without its {counted(left.parts, 'process')}"])
    return WithoutParts(replace(judged, numbers=numbers), outcome, text)


def _best(parts: Sequence[Series]) -> list[Series]:
    """One series for each process, all in one measure."""
    by_metric = {metric: [series for series in parts if series.metric == metric] for metric in PARTS}
    objects = {series.object for series in parts}
    for metric in PARTS:
        if {series.object for series in by_metric[metric]} == objects:
            return by_metric[metric]
    return by_metric[PARTS[-1]]


def _on(positions: Ints, part: Series, deaths: Sequence[Event]) -> Floats:
    """A part at the sum's times; 0 while it did not exist."""
    part = part.finite()
    if len(part) < 2:
        return np.zeros(positions.size)
    result: Floats = np.interp(positions.astype(np.float64), part.time_ns.astype(np.float64), part.values)
    slack = round(_GAP * median(np.diff(part.time_ns)))
    result[(positions < part.time_ns[0] - slack) | (positions > part.time_ns[-1] + slack)] = 0.0
    mine = sorted(e.begin_ns for e in deaths if e.object in {"", part.object})
    for index in np.flatnonzero(np.diff(part.time_ns) > slack).tolist():
        begin, end = int(part.time_ns[index]), int(part.time_ns[index + 1])
        if any(begin < when <= end for when in mine):
            result[(positions > begin) & (positions < end)] = 0.0
    return result


def _signed(value: float, unit: str) -> str:
    return f"{'+' if value > 0 else ''}{quantity(value, unit)}"
