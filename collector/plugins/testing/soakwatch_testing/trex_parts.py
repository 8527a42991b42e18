"""Ports, packet groups and latency histogram of the simulated TRex."""

from __future__ import annotations

from dataclasses import dataclass, field

Answered = dict[str, object]


@dataclass
class Port:
    """One port; ``pps`` is the rate of its streams at factor 1."""

    pps: float = 1000.0
    state: str = "STREAMS"
    owner: str = ""
    session: int = 0
    handler: str = ""
    factor: float = 1.0
    excess: float = 1.0  # what it really sends of that
    up: bool = True
    counters: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("opackets", "ipackets", "obytes", "ibytes", "oerrors", "ierrors"), 0)
    )

    @property
    def sends(self) -> float:
        """Packets per second now."""
        return self.pps * self.factor * self.excess if self.state == "TX" else 0.0


@dataclass
class Group:
    """One packet group, sent by port 0 and received at port 1; ``latency`` is in µs for each packet, or None."""

    pps: float = 100.0
    latency: float | None = None
    version: int = 1
    sent: int = 0
    received: int = 0
    lost: int = 0
    disordered: int = 0
    histogram: dict[int, int] = field(default_factory=dict)
    last_max: int = 0
    total_max: int = 0


def bucket(latency_us: float) -> int | None:
    """The bucket of TRex's histogram; None from one second on.

    >>> bucket(3), bucket(14), bucket(159), bucket(999_999), bucket(1e6)
    (0, 10, 100, 900000, None)
    """
    digits = str(int(latency_us))
    if len(digits) > 6:
        return None
    return 0 if len(digits) < 2 else int(digits[0]) * 10 ** (len(digits) - 1)


def latency_json(group: Group) -> Answered:
    """The latency of one group in TRex's JSON."""
    histogram = {str(key): many for key, many in group.histogram.items()}
    return {
        "average": group.latency,
        "last_max": group.last_max,
        "total_max": group.total_max,
        **({"histogram": histogram} if histogram else {}),
    }
