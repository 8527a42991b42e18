"""A scenario: a kind of seeded signal, with the truth about each signal that it makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from soakwatch_model.case import Case


@dataclass(frozen=True, slots=True)
class Truth:
    """The truth about a signal; what is not set does not occur.

    ``growth`` is the growth at the end in unit per second, ``spikes`` and ``pauses`` are intervals (begin, end) in
    seconds, ``steps`` lasting changes of level (second, height), ``deaths`` the seconds of restarts and reboots.
    ``period_s`` is the period of recurring things; ``full_s`` is when the ceiling would be reached, in seconds after
    the end. ``back_s`` is when a disturbed level has recovered, in seconds after the disturbance, inf if it does not.
    ``residue``, ``lost`` and ``change`` are ratios: the lasting part of a disturbance, packets lost beyond what had to
    be lost, and the level compared with earlier runs.
    """

    growth: float = 0.0
    spikes: tuple[tuple[float, float], ...] = ()
    pauses: tuple[tuple[float, float], ...] = ()
    steps: tuple[tuple[float, float], ...] = ()
    deaths: tuple[float, ...] = ()
    period_s: float | None = None
    full_s: float | None = None
    back_s: float | None = None
    residue: float = 0.0
    lost: float = 0.0
    change: float = 0.0


@dataclass(frozen=True, slots=True)
class Signal:
    """A case and the truth about it."""

    case: Case
    truth: Truth


@dataclass(frozen=True, slots=True)
class Scenario:
    """A kind of signal: ``make(seed, hours, cadence_s)`` gives one, always the same for the same seed.

    Rules are tried on families of scenarios. ``hours`` and ``cadence_s`` are the default length and interval.
    """

    family: str
    name: str
    make: Callable[[int, float, float], Signal]
    hours: float = 24.0
    cadence_s: float = 10.0

    def signal(self, seed: int, hours: float | None = None, cadence_s: float | None = None) -> Signal:
        """One signal of this kind."""
        return self.make(seed, self.hours if hours is None else hours, cadence_s or self.cadence_s)
