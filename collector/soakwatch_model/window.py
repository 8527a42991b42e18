"""Time windows, and the phases of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """A time span, begin <= t < end, in ns since 1970 UTC."""

    begin_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        """Its length in seconds."""
        return (self.end_ns - self.begin_ns) * 1e-9


@dataclass(frozen=True, slots=True)
class Phase:
    """A named part of the run: baseline, ramp, soak, stress, spike, recovery, cooldown."""

    name: str
    window: Window
