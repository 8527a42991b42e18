"""Parameters of rules: default, unit, range, meaning, and the origin of the default."""

from __future__ import annotations

import math
import operator
from dataclasses import field, fields
from typing import ClassVar, NamedTuple

from soakwatch_rules.wording.quantities import duration

_RELATIONS = {"<": operator.lt, "<=": operator.le}


class Range(NamedTuple):
    """The finite numbers from ``low`` to ``high``, including an end if it is ``closed`` there.

    >>> within = Range.of("(0, 1]")
    >>> 1 in within, 0 in within, float("nan") in within
    (True, False, False)
    """

    low: float
    high: float
    closed: tuple[bool, bool]

    @classmethod
    def of(cls, text: str) -> Range:
        """A range in mathematical notation: ``[0, 1)`` is from 0 to below 1, ``(0, inf)`` is above 0."""
        low, high = (float(part) for part in text[1:-1].split(","))
        return cls(low, high, (text[0] == "[", text[-1] == "]"))

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, int | float) or not math.isfinite(value):
            return False
        return (value > self.low or (self.closed[0] and value == self.low)) and (
            value < self.high or (self.closed[1] and value == self.high)
        )


class Parameter(NamedTuple):
    """One parameter of a rule as ``soakwatch rules NAME`` shows it; ``unit`` is UCUM (``s``, ``1`` = ratio).

    The value of a choice between ``words`` is the index of the word.
    """

    name: str
    default: float
    unit: str
    about: str
    origin: str = ""
    words: tuple[str, ...] = ()
    within: Range = Range.of("[0, inf)")

    @property
    def shown(self) -> str:
        """The default word of a choice; "" for a number."""
        return self.words[int(self.default)] if self.words else ""

    @property
    def allowed(self) -> str:
        """The allowed values in words.

        >>> Parameter("loss", 0.05, "1", "allowed loss", within=Range.of("[0, 1)")).allowed
        'a share from 0 to below 100%'
        >>> Parameter("outage", 0.0, "s", "longest outage").allowed, Parameter("times", 1.0, "", "how often").allowed
        ('a duration of 0 or more', '0 or more')
        """
        if self.words:
            return " or ".join(self.words)
        noun = "a share " if self._is_share else {"s": "a duration "}.get(self.unit, "")
        low, high, (from_low, to_high) = self._number(self.within.low), self.within.high, self.within.closed
        if math.isinf(high):
            return f"{noun}{'of ' if noun else ''}{low} or more" if from_low else f"{noun or 'a number '}above {low}"
        top = self._number(high) if to_high else f"below {self._number(high)}"
        if from_low:
            return f"{noun or 'a number '}from {low} to {top}"
        return f"{noun or 'a number '}above {low} and {'up to ' if to_high else ''}{top}"

    @property
    def _is_share(self) -> bool:
        return self.unit == "1" and self.within.high <= 1

    def _number(self, value: float) -> str:
        if self.unit == "s" and value:
            return duration(value).replace(" ", "")
        return f"{100 * value:g}%" if self._is_share and value else f"{value:g}"

    def wrong(self, value: float) -> str:
        """Why this value is not allowed, and what to write instead; empty if it is allowed."""
        if value in self.within:
            return ""
        if self._is_share and 2 < value <= 100:
            return f"{self.name} is a share and cannot be {value:g}: write {value:g}%"
        such = f", such as {self._number(self.default)}" if self.default and not self.words else ""
        return f"{self.name} is {value:g}: use {self.allowed}{such}"


def parameter(
    default: float,
    unit: str,
    about: str,
    origin: str = "",
    words: tuple[str, ...] = (),
    within: str = "[0, inf)",
) -> float:
    """A field of a rule's dataclass that a plan may set, with the type of its default; ``within`` is its range."""
    limits = Range.of(f"[0, {len(words) - 1}]" if words else within)
    value: float = field(
        default=default, metadata={"parameter": Parameter("", default, unit, about, origin, words, limits)}
    )
    return value


def parameters(rule: type) -> tuple[Parameter, ...]:
    """The parameters of a rule's class, in order.

    Raises TypeError if ``rule`` is not a dataclass.
    """
    return tuple(f.metadata["parameter"]._replace(name=f.name) for f in fields(rule) if "parameter" in f.metadata)


class Parameters:
    """Base of a rule: keeps parameters in their ranges and in the ``order`` of relations such as ``leave <= enter``."""

    __slots__ = ()
    name: ClassVar[str]
    order: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        """Raises ValueError for parameters outside of their ranges."""
        for each in parameters(type(self)):
            if wrong := each.wrong(getattr(self, each.name)):
                raise ValueError(f"{self.name}: {wrong}")
        for relation in self.order:
            first, sign, second = relation.split()
            low, high = getattr(self, first), getattr(self, second)
            if not _RELATIONS[sign](low, high):
                raise ValueError(f"{self.name}: {first} is {low:g} and {second} is {high:g}: use {relation}")
