"""Parameters of rules: a default, a unit, a meaning and where the default comes from."""

from __future__ import annotations

from dataclasses import field, fields
from typing import NamedTuple


class Parameter(NamedTuple):
    """One parameter of a rule as ``soakwatch rules NAME`` shows it; ``unit`` is UCUM (``s``, ``1`` = ratio)."""

    name: str
    default: float
    unit: str
    about: str
    origin: str


def parameter(default: float, unit: str, about: str, origin: str = "") -> float:
    """A field of a rule's dataclass that a plan may set; typed as its default's type."""
    made: float = field(default=default, metadata={"unit": unit, "about": about, "origin": origin})
    return made


def parameters(rule: type) -> tuple[Parameter, ...]:
    """The parameters of a rule's class, in order.

    Raises TypeError if ``rule`` is not a dataclass.
    """
    return tuple(
        Parameter(f.name, f.default, f.metadata["unit"], f.metadata["about"], f.metadata["origin"])  # type: ignore[arg-type]
        for f in fields(rule)
        if "unit" in f.metadata
    )
