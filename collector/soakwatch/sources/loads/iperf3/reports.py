"""What iperf3 reports of a test, in whatever format: start, interval, end, and unreadable lines."""

from __future__ import annotations

from dataclasses import dataclass

MAX_STREAMS = 128  # iperf3's own limit
MAX_COUNT = 1 << 63
MAX_SECONDS = 366 * 86400.0


@dataclass(frozen=True, slots=True)
class Share:
    """What was sent (``sender``) or received, by one stream or all, in an interval or the whole test.

    A receiver's ``packets`` include lost ones; TCP has no count. ``lost`` may be negative: a datagram that was counted
    as lost came late.
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
        """Packets that arrived, of a receiver."""
        return None if self.packets is None else max(0, self.packets - (self.lost or 0))


@dataclass(frozen=True, slots=True)
class Began:
    """A test started. ``offered_bits`` is its target rate, per second, all streams together."""

    udp: bool | None = None
    streams: int | None = None
    length: int | None = None  # bytes of a datagram or block
    offered_bits: float | None = None
    server: bool | None = None  # True if the server wrote the output
    version: str = ""
    late: bool = False  # reported at the end of the test, so whether another runs now is unknown


@dataclass(frozen=True, slots=True)
class IntervalReport:
    """One interval of a test, in seconds since the test began. ``whole`` has one share per direction."""

    begin_s: float
    end_s: float
    whole: tuple[Share, ...]
    streams: tuple[Share, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """A test ended. ``totals`` are of the whole test, ``cpu`` is the busy share of one core, ``error`` iperf3's
    message."""

    totals: tuple[Share, ...] = ()
    cpu: float | None = None
    disordered: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """A line that could not be read, and why."""

    text: str


Report = Began | IntervalReport | Ended | Unread


def readable(text: str, most: int = 120) -> str:
    """Shortens text and replaces control characters, for sentences.

    >>> readable("a\\tb" + "x" * 200, 8)
    'a bxxxxx…'
    """
    plain = "".join(char if char.isprintable() else " " for char in text[: most + 1])
    return plain if len(plain) <= most else plain[:most] + "…"
