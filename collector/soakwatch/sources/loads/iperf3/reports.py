"""What iperf3 reports of a test in any form of output: start, interval, end, and what could not be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

MAX_STREAMS = 128  # iperf3's own bound
MAX_COUNT = 1 << 63
MAX_SECONDS = 366 * 86400.0


@dataclass(frozen=True, slots=True)
class Share:
    """What was sent (``sender``) or received, by one stream or by all, in an interval or in the whole test.

    ``packets`` of a receiver are those that the sender sent as far as the receiver knows, the lost ones included; of
    TCP none are counted. ``lost`` may be negative: a datagram that was counted as lost and came late after all.
    """

    sender: bool
    seconds: float
    bytes: int | None = None
    packets: int | None = None
    lost: int | None = None
    disordered: int | None = None
    jitter_s: float | None = None
    retransmits: int | None = None
    rtt_s: float | None = None

    @property
    def received(self) -> int | None:
        """Packets that arrived (of a receiver)."""
        return None if self.packets is None else max(0, self.packets - (self.lost or 0))


@dataclass(frozen=True, slots=True)
class Began:
    """A test started. ``offered_bits`` is the target rate of all its streams together, per second."""

    udp: bool | None = None
    streams: int | None = None
    length: int | None = None  # bytes of a datagram or block
    offered_bits: float | None = None
    server: bool | None = None  # whose output it is
    version: str = ""
    late: bool = False  # reported when the test was over: whether another is under way by now is not known


@dataclass(frozen=True, slots=True)
class IntervalReport:
    """One interval of a test; times are seconds since the test began. ``whole`` has one share a direction."""

    begin_s: float
    end_s: float
    whole: tuple[Share, ...]
    streams: tuple[Share, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """A test ended. ``totals`` are of all of it, ``cpu`` the busy share of one core, ``error`` iperf3's message."""

    totals: tuple[Share, ...] = ()
    cpu: float | None = None
    disordered: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """A line that could not be read, and why."""

    text: str


Report = Began | IntervalReport | Ended | Unread


class Reader(Protocol):
    """Takes the lines of an output one by one, without their ends."""

    def feed(self, line: str) -> list[Report]:
        """The reports that this line completes. Never raises."""
        ...

    def done(self) -> list[Report]:
        """The reports that were still open when the output ended."""
        ...


def readable(text: str, most: int = 120) -> str:
    """A bounded text without control characters, for sentences.

    >>> readable("a\\tb" + "x" * 200, 8)
    'a bxxxxx…'
    """
    plain = "".join(char if char.isprintable() else " " for char in text[: most + 1])
    return plain if len(plain) <= most else plain[:most] + "…"
