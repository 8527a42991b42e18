"""Facts: what a finding says to code, each of one kind with named fields; what it says to people is its sentence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartOfRun:
    """What is judged was there for a part of the stretch only: ``lived_s`` seconds."""

    lived_s: float


@dataclass(frozen=True, slots=True)
class Aside:
    """Readings of a series of it were set aside, for they cannot be: ``text`` says which and why in one sentence,
    ``undecided`` why nothing passes by what is left; empty where it may."""

    text: str
    undecided: str


Fact = PartOfRun | Aside
"""Any of them."""
