"""The path of a test's packets (sender, path, device, path, receiver), and where on it they were lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from soakwatch_model.case import Case
from soakwatch_model.fact import Stage
from soakwatch_model.label import label
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.sampling import spacing
from soakwatch_rules.stats.tally import Tally
from soakwatch_rules.wording.quantities import digits

PORTS = "system.network.packets"
DROPPED = ("system.network.packet.dropped", "queue.dropped", "system.softnet.dropped", "system.forwarding.dropped")
OF_GENERATORS = (PORTS, "system.network.packet.dropped", "system.softnet.dropped", "system.udp.receive_errors")
"""Counters of the generators' machines."""
_CARRIES = 0.01  # share of what was sent: a port with less does not carry the load
_OWN = 0.1  # share of a loss that may be other traffic
_MAX_COMBINED_PORTS = 10  # ports of which every combination is tried
_NEAR = 0.05
_TWICE = 1.5  # share of what was sent: taking in more means that some ports count the same packets twice
_SEEN = 0.8
_READINGS = 3
_MOST = 0.5  # share of a loss that names its stage
_NAMED = 2  # drop counters that a sentence names


WORDS: Mapping[Stage, str] = {
    Stage.SENDER: "by the generator's sender",
    Stage.WAY_IN: "on the path to the device",
    Stage.BEFORE: "by the generator's sender or on the path to the device",
    Stage.DEVICE: "by the device",
    Stage.WAY_OUT: "on the path from the device",
    Stage.RECEIVER: "by the generator's receiver",
    Stage.BEHIND: "on the path from the device or by the generator's receiver",
}
BEHIND: Mapping[Stage, str] = {Stage.WAY_OUT: "on the path back", Stage.RECEIVER: "by the generator's receiver"}
"""Where packets were lost after leaving the device."""


@dataclass(frozen=True, slots=True)
class PathLedger:
    """What was counted at each stage while ``sent`` was sent and ``back`` came back.

    ``left`` and ``arrived`` are what the generators' own ports sent and received, ``dropped`` what the device counted
    as dropped, ``missed`` what the generators' machines dropped on receive; each None if not polled. ``dropped_by``
    names the largest of the device's drop counters.
    """

    sent: float
    taken_in: float
    let_out: float
    back: float
    dropped: float | None
    left: float | None = None
    arrived: float | None = None
    missed: float | None = None
    dropped_by: tuple[str, ...] = ()

    @property
    def lost(self) -> float:
        """What did not come back."""
        return self.sent - self.back

    @property
    def lost_at(self) -> Mapping[Stage, float]:
        """Packets lost at each stage: counted before it minus counted behind it.

        A port does not count packets for which its ring or backlog had no room, but a drop counter does. Drops of the
        device beyond in - out therefore happened at its own ports; likewise at a receiver. Packets are not tracked:
        other traffic through the same ports shifts the difference by its amount.
        """
        before = self.sent if self.left is None else self.left
        within = max(0.0, self.taken_in - self.let_out)
        at_the_door = min(max(0.0, before - self.taken_in), max(0.0, (self.dropped or 0.0) - within))
        lost = {Stage.DEVICE: within + at_the_door}
        gap = before - self.taken_in - at_the_door
        if self.left is None:
            lost[Stage.BEFORE] = gap
        else:
            lost |= {Stage.SENDER: self.sent - self.left, Stage.WAY_IN: gap}
        if self.arrived is None:
            lost[Stage.BEHIND] = self.let_out - self.back
        else:
            missed = min(max(0.0, self.let_out - self.arrived), self.missed or 0.0)
            lost[Stage.WAY_OUT] = self.let_out - self.arrived - missed
            lost[Stage.RECEIVER] = self.arrived - self.back + missed
        return {stage: max(0.0, amount) for stage, amount in lost.items()}

    @property
    def stage(self) -> Stage | None:
        """The stage that lost most of it; None if no stage lost half of it, or if the device's drops are not polled, so
        that a loss before it may be one at its own ports."""
        stage, most = max(self.lost_at.items(), key=lambda entry: entry[1])
        if not most >= _MOST * self.lost > 0:
            return None
        if stage in {Stage.WAY_IN, Stage.BEFORE} and self.dropped is None:
            return None
        return Stage.BEHIND if stage is Stage.WAY_OUT and self.missed is None else stage

    @property
    def clear(self) -> bool:
        """Whether the device lost at most a tenth of the loss: in = out, and nothing dropped."""
        return self.lost_at[Stage.DEVICE] <= _OWN * self.lost

    @property
    def behind(self) -> bool:
        """Whether at least half of it was lost after leaving the device."""
        return self.let_out - self.back >= _MOST * self.lost

    @property
    def numbers(self) -> dict[str, float]:
        """The counts of the stages that were read, and the drops."""
        numbers = {"sent": self.sent, "device_in": self.taken_in, "device_out": self.let_out, "received": self.back}
        more = {"left_generator": self.left, "device_dropped": self.dropped, "reached_generator": self.arrived}
        return numbers | {name: value for name, value in more.items() if value is not None}

    @property
    def text(self) -> str:
        """The counts in one clause, in the order of the path."""
        stages = [
            ("sent", self.sent),
            ("left the generator", self.left),
            ("device in", self.taken_in),
            ("device out", self.let_out),
            ("reached the generator", self.arrived),
            ("received", self.back),
        ]
        text = " → ".join(f"{name} {digits(value)}" for name, value in stages if value is not None)
        if self.dropped is None:
            return text
        where = f" ({', '.join(self.dropped_by)})" if self.dropped_by else ""
        return f"{text}; the device dropped {digits(self.dropped)}{where}"


class Ports:
    """The interfaces of a device that carry a load, and those of the generators if they are polled."""

    def __init__(self, case: Case, sent: float) -> None:
        self._window = case.window
        own = _Side(case.series, case.window, sent)
        self.read = own.read
        """Whether any interface of the device is read."""
        self.names = own.names
        self.apart_s = own.apart_s
        self._own = own
        dropped = [s for s in case.series if s.metric in DROPPED and len(s.finite()) > 1]
        self._dropped = [(f"{s.metric} {s.object}".strip(), Tally([s])) for s in dropped]
        self._generators = _Side(case.load, case.window, sent)
        missed = [s for s in case.load if s.metric in OF_GENERATORS and s.metric != PORTS and len(s.finite()) > 1]
        missed = [s for s in missed if label(s.object, "direction") != "transmit"]
        self._missed = Tally(missed) if missed else None

    def crossing(self, window: Window, sent: float, back: float) -> PathLedger | None:
        """The counts of a stretch; None if the device's ports were not read for most of it."""
        if not self.names or (crossed := self._own.between(window)) is None:
            return None
        taken_in, let_out = crossed
        counts = [(tally.counted(window.begin_ns, window.end_ns), name) for name, tally in self._dropped]
        dropped = sum(count for count, _ in counts) if counts else None
        named = tuple(name for count, name in sorted(counts, key=lambda entry: -entry[0])[:_NAMED] if count > 0)
        arrived, left = self._generators.between(window) or (None, None)
        if left is not None and left < _CARRIES * sent:
            left = None  # the machine that is polled is not the one that sends
        if arrived is not None and arrived < _CARRIES * back:
            arrived = None
        missed = None if self._missed is None else self._missed.counted(window.begin_ns, window.end_ns)
        return PathLedger(sent, taken_in, let_out, back, dropped, left, arrived, missed, named)


class _Side:
    """The interfaces of one side that carry the load: at least 1 % of what was sent."""

    def __init__(self, series: Iterable[Series], window: Window, sent: float) -> None:
        ways: dict[str, dict[str, Series]] = {}
        for one in series:
            if one.metric == PORTS and len(one.finite()) >= _READINGS:
                name = f"{one.target} {label(one.object, 'interface') or ''}"
                ways.setdefault(name, {})[label(one.object, "direction") or ""] = one
        both = {
            name: own
            for name, own in ways.items()
            if {"receive", "transmit"} <= own.keys() and not name.endswith(" lo")
        }
        counts: dict[str, tuple[float, float]] = {}
        for name, own in both.items():
            taken, let = (
                Tally([own[direction]]).counted(window.begin_ns, window.end_ns) for direction in ("receive", "transmit")
            )
            if max(taken, let) >= _CARRIES * sent > 0:
                counts[name] = (taken, let)
        self.read = bool(both)
        self.names = _chosen(counts, sent)
        self._in = Tally([both[name]["receive"] for name in self.names])
        self._out = Tally([both[name]["transmit"] for name in self.names])
        self.apart_s = max((spacing(both[n][w].finite()) or 0.0 for n in self.names for w in both[n]), default=0.0)

    def between(self, window: Window) -> tuple[float, float] | None:
        """Packets in and out; None if they were not read for most of the stretch."""
        if not self.names:
            return None
        (one, one_s), (two, two_s) = (side.between(window.begin_ns, window.end_ns) for side in (self._in, self._out))
        return None if min(one_s, two_s) < _SEEN * window.seconds else (one, two)


def _chosen(counts: dict[str, tuple[float, float]], sent: float) -> tuple[str, ...]:
    """The ports that carry the load: all, or, if some count the same packets twice (a bridge, a bond, a VLAN), the
    fewest that took in about what was sent."""
    names = tuple(sorted(counts, key=lambda name: -sum(counts[name])))
    if not names or _took(counts, names) <= _TWICE * sent or len(names) > _MAX_COMBINED_PORTS:
        return names
    choices: Iterable[tuple[str, ...]] = (c for k in range(1, len(names)) for c in combinations(names, k))
    return min(choices, key=lambda c: (round(abs(_took(counts, c) - sent) / sent / _NEAR), len(c)), default=names)


def _took(counts: dict[str, tuple[float, float]], names: Sequence[str]) -> float:
    return sum(counts[name][0] for name in names)
