"""A scenario: a kind of signal, seeded, and what is true of each that it makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from soakwatch_model.case import Case


@dataclass(frozen=True, slots=True)
class Truth:
    """What a signal holds, as it was made: what is not said is not there.

    ``growth`` is the growth at the end in unit per second, ``spikes`` and ``pauses`` are stretches (begin, end) in
    seconds, ``steps`` lasting changes of level (second, height), ``deaths`` the seconds of restarts and reboots.
    ``period_s`` is the period of what comes again and again, ``full_s`` when the ceiling is reached, in seconds after
    the end, if it goes on like this. ``back_s`` is when a disturbed level is back, in seconds
    after the disturbance, inf where it does not come back. ``residue``, ``lost`` and ``change`` are ratios: what stays
    of a disturbance, packets lost beyond what had to be lost, and the level against earlier runs.
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
    """A case and what is true of it."""

    case: Case
    truth: Truth


@dataclass(frozen=True, slots=True)
class Scenario:
    """A kind of signal: ``make(seed, hours, cadence_s)`` gives one of it, always the same for the same seed.

    Rules are tried on families of scenarios. ``hours`` and ``cadence_s`` are how long and how finely it is looked at
    unless asked otherwise.
    """

    family: str
    name: str
    make: Callable[[int, float, float], Signal]
    hours: float = 24.0
    cadence_s: float = 10.0

    def signal(self, seed: int, hours: float | None = None, cadence_s: float | None = None) -> Signal:
        """One signal of this kind."""
        return self.make(seed, self.hours if hours is None else hours, cadence_s or self.cadence_s)
