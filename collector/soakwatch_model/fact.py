"""Facts: what a finding says to code, each of one kind with named fields; what it says to people is its sentence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartOfRun:
    """What is judged was there for a part of the stretch only: ``lived_s`` seconds."""

    lived_s: float


Fact = PartOfRun
"""Any of them."""
