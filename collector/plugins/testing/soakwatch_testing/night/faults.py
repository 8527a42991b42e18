"""The faults of a night: drawn from its seed, each with a description and the rule that must find it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from soakwatch.core.units import show_seconds

INTERVAL_S = 10.0
HOUR_S = 3600.0
_GROWTH_HOURS = 3.0


class Kind(StrEnum):
    """The kinds of faults: of the monitor, then of the path to a target, then of a target."""

    KILL = "kill"  # the monitor dies at any moment and is resumed
    CLOCK = "clock"  # the wall clock is set
    DISK = "disk"  # the record's disk is full for a while
    SLOW = "slow"  # a target answers late, partly beyond the timeout
    GARBLED = "garbled"  # a target answers garbage, or its poller breaks
    SILENCE = "silence"  # a target does not answer
    LOSS = "loss"  # a device loses a share of the packets for a while
    RESTART = "restart"  # a watched process is restarted
    LEAK = "leak"  # a watched process grows to the end


OF_MONITOR = frozenset({Kind.KILL, Kind.CLOCK, Kind.DISK})
OF_DEVICE = frozenset({Kind.LOSS, Kind.RESTART, Kind.LEAK})


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One fault, from ``begin_s`` to ``end_s`` seconds of the night. ``size`` is the downtime of a kill, the step of a
    clock (s), the delay of answers (s), the lost share of packets, or the growth of a leak over the night.

    A kill strikes ``steps`` turns of the event loop, or statements of the record, after its time; with ``torn`` below 1
    it strikes in the next write after that, of which only this share reaches the disk.
    """

    begin_s: float
    end_s: float
    kind: Kind
    target: str = ""
    size: float = 0.0
    steps: int = 0
    torn: float = 1.0

    def active(self, second: float) -> bool:
        """Whether it is in force at a second."""
        return self.begin_s <= second < self.end_s

    @property
    def words(self) -> str:
        """A description in one line."""
        at, lasts = clock(self.begin_s), show_seconds(self.end_s - self.begin_s)
        match self.kind:
            case Kind.KILL:
                how = "" if self.torn >= 1 else f" in its next write, of which {self.torn:.0%} is on the disk"
                return f"{at} the monitor is killed {self.steps} steps later{how}, resumed after {self.size:g} s"
            case Kind.CLOCK:
                return f"{at} the wall clock is set by {self.size:+g} s"
            case Kind.DISK:
                return f"{at} the disk is full for {lasts}"
            case Kind.SLOW:
                return f"{at} {self.target} answers up to {self.size:g} s late for {lasts}"
            case Kind.GARBLED:
                return f"{at} {self.target} answers with garbage for {lasts}"
            case Kind.SILENCE:
                return f"{at} {self.target} does not answer for {lasts}"
            case Kind.LOSS:
                return f"{at} {self.target} loses {self.size:.1%} of its packets for {lasts}"
            case Kind.RESTART:
                return f"{at} the process of {self.target} is restarted"
            case Kind.LEAK:
                return f"{at} the process of {self.target} begins to grow, by {self.size:.0%} to the end"


def rule_of(kind: Kind) -> str:
    """The rule that must fail if a device has such a fault; "" for faults of other things."""
    match kind:
        case Kind.LOSS:
            return "loss"
        case Kind.RESTART:
            return "process_restart"
        case Kind.LEAK:
            return "growth"
        case _:
            return ""


@dataclass(frozen=True, slots=True)
class Night:
    """One night: its length, its number of targets, its faults, and when it ends."""

    seed: int
    hours: float
    targets: int
    faults: tuple[Fault, ...]
    interval_s: float = INTERVAL_S
    decided: bool = False  # its plan ends it once all is decided, growth from a fifth of it on

    @property
    def seconds(self) -> float:
        """Its length in s."""
        return self.hours * HOUR_S

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices under test; one target of the night is their generator."""
        return tuple(f"dut-{number}" for number in range(1, self.targets))

    def of(self, *kinds: Kind) -> tuple[Fault, ...]:
        """The faults of these kinds."""
        return tuple(fault for fault in self.faults if fault.kind in kinds)

    def without(self, fault: Fault) -> Night:
        """The same night without one fault."""
        return replace(self, faults=tuple(other for other in self.faults if other is not fault))


GENERATOR = "generator"


def clock(second: float) -> str:
    """A time of the night.

    >>> clock(93784.5)
    '26:03:04.500'
    """
    whole = int(second)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}.{round(second % 1 * 1000) % 1000:03d}"


def draw(seed: int, hours: float, targets: int, kinds: Sequence[Kind]) -> Night:
    """The night of a seed. Only some of the kinds are drawn, so that each occurs alone and together with others."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    night = Night(seed, hours, targets, ())
    faults: list[Fault] = []
    taken: set[str] = set()
    for kind in Kind:  # in a fixed order, whatever the order of the arguments
        share = 0.7 if kind in OF_MONITOR else 0.25
        many = chance.choice((1, 1, 2, 3)) if chance.random() < share else 0
        for _ in range(1 if kind in OF_DEVICE and many else many):
            fault = _DRAWN[kind](chance, night)
            if kind in OF_DEVICE:
                # Two faults of one device at once are for other tests, and growth is judged from 2 h on.
                if fault.target in taken or (kind is Kind.LEAK and hours < _GROWTH_HOURS):
                    continue
                taken.add(fault.target)
            if kind in kinds:
                faults.append(fault)
    return replace(night, faults=tuple(sorted(faults)))


def _kill(chance: random.Random, night: Night) -> Fault:
    begin_s = chance.uniform(0, night.seconds + 2)  # also while the end is made
    down_s = chance.choice((0.0, 0.3, 2.0, 12.0, chance.uniform(20, 300)))
    torn = chance.random() if chance.random() < 0.4 else 1.0
    steps = chance.choice((0, 1, 3, chance.randrange(40), chance.randrange(200)))
    return Fault(begin_s, begin_s, Kind.KILL, size=round(down_s, 3), steps=steps, torn=round(torn, 3))


def _clock(chance: random.Random, night: Night) -> Fault:
    begin_s = chance.uniform(0.02, 0.98) * night.seconds
    step_s = chance.choice((-1, 1)) * chance.choice((0.5, 3, 60, 3600, 86400))
    return Fault(begin_s, begin_s, Kind.CLOCK, size=step_s)


def _stretch(chance: random.Random, night: Night, least_s: float, most_s: float) -> tuple[float, float]:
    length_s = min(chance.uniform(least_s, most_s), night.seconds / 4)
    begin_s = chance.uniform(0, night.seconds - length_s)
    return begin_s, begin_s + length_s


def _disk(chance: random.Random, night: Night) -> Fault:
    return Fault(*_stretch(chance, night, 1, 600), Kind.DISK)


def _slow(chance: random.Random, night: Night) -> Fault:
    begin_s, end_s = _stretch(chance, night, 30, 600)
    return Fault(begin_s, end_s, Kind.SLOW, _any(chance, night), chance.choice((4.0, 9.0, 25.0)))


def _garbled(chance: random.Random, night: Night) -> Fault:
    return Fault(*_stretch(chance, night, 30, 600), Kind.GARBLED, _any(chance, night))


def _silence(chance: random.Random, night: Night) -> Fault:
    long = chance.random() < 0.5
    stretch = _stretch(chance, night, *((0.1 * night.seconds, 0.2 * night.seconds) if long else (20, 120)))
    return Fault(*stretch, Kind.SILENCE, _any(chance, night))


def _loss(chance: random.Random, night: Night) -> Fault:
    return Fault(
        *_stretch(chance, night, 600, 1800), Kind.LOSS, chance.choice(night.devices), chance.choice((0.05, 0.2, 0.9))
    )


def _restart(chance: random.Random, night: Night) -> Fault:
    begin_s = chance.uniform(0.1, 0.9) * night.seconds
    return Fault(begin_s, begin_s, Kind.RESTART, chance.choice(night.devices))


def _leak(chance: random.Random, night: Night) -> Fault:
    begin_s = chance.uniform(0.1, 0.3) * night.seconds
    return Fault(begin_s, night.seconds, Kind.LEAK, chance.choice(night.devices), chance.choice((0.3, 0.6, 1.2)))


def _any(chance: random.Random, night: Night) -> str:
    return chance.choice((*night.devices, GENERATOR))


_DRAWN: Mapping[Kind, Callable[[random.Random, Night], Fault]] = {
    Kind.KILL: _kill,
    Kind.CLOCK: _clock,
    Kind.DISK: _disk,
    Kind.SLOW: _slow,
    Kind.GARBLED: _garbled,
    Kind.SILENCE: _silence,
    Kind.LOSS: _loss,
    Kind.RESTART: _restart,
    Kind.LEAK: _leak,
}
