"""Findings by reason: what cannot be judged for the same reason makes one row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_rules.wording.words import some

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
    """Findings of one rule that are undecided, or do not apply, for one reason; ``indexes`` are theirs, in order.

    ``why`` is the word of the reason, or the whole reason of a single one (or of those without a word); ``settle``
    is the most that it takes to settle any of them.
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
        """How many, of what."""
        noun = "series" if any("." in subject for subject in self.subjects) else "findings"
        where = f" of {len(self.targets)} targets" if len(self.targets) > 1 else ""
        return f"{len(self.indexes)} {noun}{where}"

    @property
    def about(self) -> str:
        """The first few that it is about."""
        return some(list(self.subjects))


def rows_by_reason(findings: Sequence[Finding], indexes: Iterable[int]) -> tuple[ReasonRow, ...]:
    """The findings at these indexes in rows, in the order of their first.

    Two share a row if rule, outcome, ``why`` and what would settle them are the same but for the numbers.
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
