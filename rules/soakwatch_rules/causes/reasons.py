"""Findings grouped by reason: those undecided for the same reason make one row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_rules.wording.quantities import first_few

_NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?(?:\s?(?:ms|s|min|h|hours?|d|days?)\b)?")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s?(ms|s|min|h|hours?|d|days?)\b")
_SECONDS = {
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "hours": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
    "days": 86400.0,
}


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """Findings of one rule that are undecided, or not applicable, for one reason; ``indexes`` are theirs, in order.

    ``why`` is the reason's keyword, or the whole sentence for a single finding (or without a keyword); ``settle`` is
    the most that any of them needs.
    """

    rule: str
    outcome: Outcome
    why: str
    settle: str
    indexes: tuple[int, ...]
    subjects: tuple[str, ...]
    targets: tuple[str, ...]

    @property
    def words(self) -> str:
        """One row: ``growth: 14 series: too short; needs 2 h more``."""
        settle = f"; {self.settle}" if self.settle else ""
        if len(self.indexes) == 1:
            return f"{self.rule}: {self.why}{settle}"
        return f"{self.rule}: {self.count}: {self.why}{settle}"

    @property
    def count(self) -> str:
        """How many series or findings."""
        noun = "series" if any("." in subject for subject in self.subjects) else "findings"
        where = f" of {len(self.targets)} targets" if len(self.targets) > 1 else ""
        return f"{len(self.indexes)} {noun}{where}"

    @property
    def about(self) -> str:
        """The first few subjects."""
        return first_few(list(self.subjects))


def rows_by_reason(findings: Sequence[Finding], indexes: Iterable[int]) -> tuple[ReasonRow, ...]:
    """The findings at these indexes in rows, ordered by their first.

    Findings share a row if rule, outcome, ``why`` and ``settle`` (apart from numbers) are equal.
    """
    rows: dict[tuple[str, ...], list[int]] = {}
    for index in indexes:
        f = findings[index]
        same = f.sentence if f.why is None else f.why.value
        rows.setdefault((f.rule, f.outcome.value, same, _NUMBER.sub("#", f.settle)), []).append(index)
    return tuple(_row(findings, indexes) for indexes in rows.values())


def _row(findings: Sequence[Finding], indexes: list[int]) -> ReasonRow:
    own = [findings[index] for index in indexes]
    first = own[0]
    single = len(own) == 1 or first.why is InconclusiveReason.UNREAD
    why = first.sentence if single or first.why is None else first.why.value
    settles = list(dict.fromkeys(f.settle for f in own))
    settle = max(settles, key=_asked)
    if len(settles) > 1:
        settle += " (at most)"
    subjects = dict.fromkeys(" ".join(part for part in (f.metric, f.object) if part) for f in own)
    return ReasonRow(
        first.rule,
        first.outcome,
        why,
        settle,
        tuple(indexes),
        tuple(s for s in subjects if s),
        tuple(dict.fromkeys(f.target for f in own)),
    )


def _asked(settle: str) -> tuple[float, ...]:
    """The size of what a sentence asks for: its time in seconds, then its numbers.

    >>> _asked("needs 1 h 30 min more") > _asked("needs 45 min more")
    True
    """
    spans = sum(float(number) * _SECONDS[unit] for number, unit in _SPAN.findall(settle))
    return (spans, *(float(number) for number in re.findall(r"\d+(?:\.\d+)?", settle)))
