"""Parameters of rules: a default, a unit, a meaning and where the default comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import NamedTuple

Former = Mapping[str, Mapping[str, str]]
"""Names that a parameter had, each with its words of then and what they are now: plans in records have them."""
_NONE: Former = {}


class Parameter(NamedTuple):
    """One parameter of a rule as ``soakwatch rules NAME`` shows it; ``unit`` is UCUM (``s``, ``1`` = ratio).

    Of one that chooses between ``words``, the value is the place of the word.
    """

    name: str
    default: float
    unit: str
    about: str
    origin: str
    words: tuple[str, ...] = ()
    former: Former = _NONE

    @property
    def shown(self) -> str:
        """The default as a plan writes a choice, "" for a number."""
        return self.words[int(self.default)] if self.words else ""


def parameter(
    default: float, unit: str, about: str, origin: str = "", words: tuple[str, ...] = (), former: Former = _NONE
) -> float:
    """A field of a rule's dataclass that a plan may set; typed as its default's type."""
    reported = {"unit": unit, "about": about, "origin": origin, "words": words, "former": former}
    value: float = field(default=default, metadata=reported)
    return value


def parameters(rule: type) -> tuple[Parameter, ...]:
    """The parameters of a rule's class, in order.

    Raises TypeError if ``rule`` is not a dataclass.
    """
    return tuple(
        Parameter(f.name, f.default, *(f.metadata[key] for key in ("unit", "about", "origin", "words", "former")))  # type: ignore[arg-type]
        for f in fields(rule)
        if "unit" in f.metadata
    )
