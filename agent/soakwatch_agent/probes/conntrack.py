"""Connection tracking: entries in the table and its size."""

from __future__ import annotations

from soakwatch_agent.place import Notes, Place, Turn, why
from soakwatch_agent.procfs import read_text
from soakwatch_agent.sample import Answer

METRICS = ("system.conntrack.count", "system.conntrack.limit")


class ConntrackProbe:
    """Reads /proc/sys/net/netfilter/nf_conntrack_count and _max; tells once that a machine has no tracking."""

    def __init__(self, place: Place) -> None:
        self._count = place.path("/proc/sys/net/netfilter/nf_conntrack_count")
        self._limit = place.path("/proc/sys/net/netfilter/nf_conntrack_max")
        self._notes = Notes()
        self._slow = Turn(10)

    def read(self, now_ns: int) -> Answer:
        """The count each look, the limit every 10 s."""
        self._notes.begin(now_ns)
        self._one("system.conntrack.count", self._count)
        if self._slow.due(now_ns):
            self._one("system.conntrack.limit", self._limit)
        return self._notes.answer()

    def _one(self, metric: str, path: str) -> None:
        try:
            value = int(read_text(path))
        except FileNotFoundError:
            self._notes.fault(metric, "", "this machine tracks no connections (nf_conntrack is not loaded)")
        except OSError as error:
            self._notes.fault(metric, "", f"the connection table cannot be read: {why(error)}")
        else:
            self._notes.sample(metric, "", value)
            self._notes.mended(metric, "")

    def close(self) -> None:
        """Nothing stays open."""


def open_probe(place: Place) -> ConntrackProbe:
    """The probe of a place."""
    return ConntrackProbe(place)
