"""The observer's effect: the device's busy share while it is left alone against the share while it is looked at."""

from __future__ import annotations

from soakwatch_agent.context import SECOND, ProbeAnswer
from soakwatch_agent.probes.cpu import busy_share

Ticks = tuple[int, ...]


class Observer:
    """On request, once at the start: the first look, a rest of ``for_s`` without any, then looks for as long."""

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
        """Whether the device is left alone, or only polled, for the measurement: nothing else may be asked of it."""
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
