"""Crossing a device: what its own interfaces took in and let out of a load, and what it says it dropped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from soakwatch_model.case import Case
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.sampling import spacing
from soakwatch_rules.stats.tally import Tally
from soakwatch_rules.wording.words import whole

PORTS = "system.network.packets"
DROPPED = ("system.network.packet.dropped", "queue.dropped", "system.softnet.dropped", "system.forwarding.dropped")
_CARRIES = 0.01  # of what was sent: a port with less has no part in the load
_OWN = 0.1  # of a loss: what may be other traffic
_MAX_COMBINED_PORTS = 10  # ports of which every choice is tried
_NEAR = 0.05
_TWICE = 1.5  # of what was sent: more is only taken in where packets are shown twice
_SEEN = 0.8
_READINGS = 3


@dataclass(frozen=True, slots=True)
class Crossing:
    """What a device took in, let out and dropped while ``sent`` was sent and ``back`` came back."""

    sent: float
    taken_in: float
    let_out: float
    back: float
    dropped: float | None

    @property
    def lost(self) -> float:
        """What did not come back."""
        return self.sent - self.back

    @property
    def clear(self) -> bool:
        """Whether all that came in went out again: in = out, and nothing was dropped, but for a tenth of the loss."""
        return self.taken_in - self.let_out <= _OWN * self.lost and (self.dropped or 0.0) <= _OWN * self.lost

    @property
    def behind(self) -> bool:
        """Whether most of it was lost after it had left the device."""
        return self.let_out - self.back >= 0.5 * self.lost

    @property
    def numbers(self) -> dict[str, float]:
        """The four numbers, and what was dropped."""
        numbers = {"sent": self.sent, "device_in": self.taken_in, "device_out": self.let_out, "received": self.back}
        return numbers if self.dropped is None else numbers | {"device_dropped": self.dropped}

    @property
    def text(self) -> str:
        """The four numbers in one clause."""
        text = f"sent {whole(self.sent)} → device in {whole(self.taken_in)} → device out {whole(self.let_out)} → "
        text += f"received {whole(self.back)}"
        return text if self.dropped is None else f"{text}; the device dropped {whole(self.dropped)}"


class Ports:
    """The interfaces of a device that carry a load."""

    def __init__(self, case: Case, sent: float) -> None:
        ways: dict[str, dict[str, Series]] = {}
        for series in case.series:
            if series.metric == PORTS and len(series.finite()) >= _READINGS:
                labels = dict(part.partition("=")[::2] for part in series.object.split(","))
                ways.setdefault(labels.get("interface", ""), {})[labels.get("direction", "")] = series
        whole = {name: own for name, own in ways.items() if {"receive", "transmit"} <= own.keys() and name != "lo"}
        window = case.window
        counts: dict[str, tuple[float, float]] = {}
        for name, own in whole.items():
            taken, let = (
                Tally([own[direction]]).between(window.begin_ns, window.end_ns)[0]
                for direction in ("receive", "transmit")
            )
            if max(taken, let) >= _CARRIES * sent > 0:
                counts[name] = (taken, let)
        self.read = bool(whole)
        """Whether any interface is read."""
        names = _chosen(counts, sent)
        self.names = names
        self._in = Tally([whole[name]["receive"] for name in names])
        self._out = Tally([whole[name]["transmit"] for name in names])
        self.apart_s = max((spacing(whole[n][w].finite()) or 0.0 for n in names for w in whole[n]), default=0.0)
        dropped = [s for s in case.series if s.metric in DROPPED and len(s.finite()) > 1]
        self._dropped = Tally(dropped) if dropped else None

    def crossing(self, window: Window, sent: float, back: float) -> Crossing | None:
        """What crossed in a stretch; None where the ports were not read for most of it."""
        if not self.names:
            return None
        (value, one_s), (two, two_s) = (side.between(window.begin_ns, window.end_ns) for side in (self._in, self._out))
        if min(one_s, two_s) < _SEEN * window.seconds:
            return None
        lost = None if self._dropped is None else self._dropped.between(window.begin_ns, window.end_ns)[0]
        return Crossing(sent, value, two, back, lost)


def _chosen(counts: dict[str, tuple[float, float]], sent: float) -> tuple[str, ...]:
    """The ports that carry the load: all of them, or where some show the same packets twice (a bridge, a bond, a VLAN)
    the fewest that took in what was sent."""
    names = tuple(sorted(counts, key=lambda name: -sum(counts[name])))
    if not names or _took(counts, names) <= _TWICE * sent or len(names) > _MAX_COMBINED_PORTS:
        return names
    choices: Iterable[tuple[str, ...]] = (c for k in range(1, len(names)) for c in combinations(names, k))
    return min(choices, key=lambda c: (round(abs(_took(counts, c) - sent) / sent / _NEAR), len(c)), default=names)


def _took(counts: dict[str, tuple[float, float]], names: tuple[str, ...]) -> float:
    return sum(counts[name][0] for name in names)
