"""What the looks cost the device: CPU time as it counts it itself, and its busy share with and without them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from soakwatch_agent.context import SECOND, ProbeAnswer
from soakwatch_agent.probes.cpu import busy_share

Ticks = tuple[int, ...]
_TIME = re.compile(r"(\d+)m(\d+(?:[.,]\d+)?)s")


def shell_seconds(text: str) -> float | None:
    """CPU time in seconds of a shell and its children, from the builtin ``times``; None if that prints nothing.

    >>> shell_seconds("0m0.01s 0m0.02s\\n1m0.10s 0m0.20s\\n")
    60.33
    """
    reported = _TIME.findall(text)
    if len(reported) < 4:
        return None
    return round(sum(int(minutes) * 60 + float(seconds.replace(",", ".")) for minutes, seconds in reported[:4]), 6)


def clock_s(text: str) -> tuple[float, float] | None:
    """The device's wall clock and how exact it is, from ``date +%s.%N``; busybox knows whole seconds only.

    >>> clock_s("1700000000.250000000\\n"), clock_s("1700000000.%N\\n")
    ((1700000000.25, 0.0), (1700000000.5, 0.5))
    """
    whole, _, part = text.strip().partition(".")
    if not whole.isdecimal() or len(whole) > 12:
        return None
    if part.isdecimal():
        return float(f"{whole}.{part}"), 0.0
    return int(whole) + 0.5, 0.5


@dataclass
class Cost:
    """CPU time of the device for our looks: the shell with its children, and the sshd that serves this connection.

    Both begin anew with a connection; the sum goes on. Children are counted when they have ended. The privileged half
    of sshd, which sleeps during a session, is not in it.
    """

    before_s: float = 0.0
    shell_s: float = 0.0
    server_s: float = 0.0
    generation: int = -1

    def take(self, generation: int, shell_s: float | None, server_s: float | None) -> float | None:
        """The sum so far; None if the device does not tell."""
        if generation != self.generation:
            self.before_s += self.shell_s + self.server_s
            self.shell_s = self.server_s = 0.0
            self.generation = generation
        if shell_s is None:
            return None
        self.shell_s = max(self.shell_s, shell_s)
        self.server_s = max(self.server_s, server_s or 0.0)
        return self.before_s + self.shell_s + self.server_s


class Observer:
    """The device's busy share while it is left alone against the share while it is looked at.

    On request, once at the start: the first look, a rest of ``for_s`` without any, then looks for as long."""

    def __init__(self, for_s: float | None) -> None:
        self._for_ns = None if for_s is None else int(for_s * SECOND)
        self._begun: tuple[int, Ticks] | None = None  # time and CPU of the first look
        self._rested: tuple[int, Ticks] | None = None  # ... and of the first after the rest
        self._alone: float | None = None
        self._reported = ""

    def resting(self, now_ns: int) -> bool:
        """True while the device is left alone."""
        if self._for_ns is None or self._begun is None or self._rested is not None:
            return False
        return now_ns - self._begun[0] < self._for_ns

    @property
    def measuring(self) -> bool:
        """Whether the measurement goes on: until it ends nothing but polls may be asked of the device."""
        return self._for_ns is not None and not self._reported

    def seen(self, now_ns: int, cpu: Ticks | None, notes: ProbeAnswer) -> None:
        """A look: the device's CPU ticks by mode since boot."""
        if self._for_ns is None or self._reported or cpu is None:
            return
        if self._begun is None:
            self._begun = now_ns, cpu
            notes.event("observer.rest", "", seconds=self._for_ns / SECOND)
        elif self._rested is None:
            self._alone = busy_share(self._begun[1], cpu)
            self._rested = now_ns, cpu
        elif now_ns - self._rested[0] >= self._for_ns:
            watched = busy_share(self._rested[1], cpu)
            if watched is None or self._alone is None:
                self._reported = "observer effect: unknown, because the device's CPU time did not advance"
                return
            self._reported = (
                f"observer effect: all cores were {self._alone:.2%} busy while the device was left alone for "
                f"{self._for_ns / SECOND:g} s and {watched:.2%} while it was polled for as long: "
                f"{(watched - self._alone) * 100:+.2f} points"
            )
            notes.event(
                "observer.effect", "", text=self._reported, alone=f"{self._alone:.6f}", watched=f"{watched:.6f}"
            )

    def notes(self) -> tuple[str, ...]:
        """The result, once it is there."""
        return (self._reported,) if self._reported else ()
