"""The newest reading of every subscribed series, taken out of a stream of updates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from soakwatch.sources.mapping import check_mapping
from soakwatch.sources.pollers.gnmi.paths import Element, Plain, found, parse_path
from soakwatch.sources.pollers.gnmi.values import BadValueError, number
from soakwatch.sources.profiles.model import GnmiPath
from soakwatch_agent.metric import BY_NAME
from soakwatch_agent.sample import Event, Fault, Sample, object_text

_FIELD = re.compile(r"\{([^{}]+)\}")
_MAX_SERIES = 50_000
_MAX_EVENTS = 1000
_MAX_FAULTS = 100
_LINK = "system.network.up"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A path of a profile, parsed."""

    line: GnmiPath
    steps: tuple[Element, ...]

    @property
    def on_change(self) -> bool:
        """Whether the device tells it only when it changes."""
        return self.line.mode == "on_change"


def wanted(lines: Iterable[GnmiPath]) -> tuple[Wanted, ...]:
    """The paths, parsed. Raises ValueError for one that is none, or whose labels are not those of its metric."""
    made = []
    for line in lines:
        try:
            check_mapping(line.metric, line.labels, line.scale)
        except ValueError as error:
            raise ValueError(f"{line.path}: {error}") from None
        if line.mode not in {"sample", "on_change"}:
            raise ValueError(f"{line.path}: the mode {line.mode!r} is neither sample nor on_change")
        made.append(Wanted(line, parse_path(line.path)))
    return tuple(made)


@dataclass(slots=True)
class _Reading:
    value: float
    came_ns: int
    lasting: bool  # told on change: it holds until told otherwise
    fresh: bool = True


class Latest:
    """What the stream said last. ``take`` is called for each update, ``drain`` at each poll."""

    def __init__(self, lines: Sequence[Wanted]) -> None:
        self._lines = lines
        self._at: dict[tuple[str, str], _Reading] = {}
        self._faults: dict[tuple[str, str], str] = {}
        self._events: list[Event] = []
        self.unmatched = 0

    def take(self, path: Sequence[Element], value: Plain, came_ns: int) -> None:
        """One update."""
        matched = False
        for each in self._lines:
            for keys, leaf in found(each.steps, path, value):
                matched = True
                self._store(each, keys, leaf, came_ns)
        self.unmatched += not matched

    def refuse(self, path: Sequence[Element], text: str) -> None:
        """An update whose value cannot be read: a fault of every metric that the path could have held."""
        for each in self._lines:
            alike = all(p.name == s.name for p, s in zip(path, each.steps, strict=False))
            if alike and len(self._faults) < _MAX_FAULTS:
                self._faults[each.line.metric, ""] = f"{each.line.path}: {text}"

    def forget(self, path: Sequence[Element]) -> None:
        """The device deleted what lies at a path: its readings hold no longer."""
        for each in self._lines:
            if len(path) > len(each.steps) or any(p.name != s.name for p, s in zip(path, each.steps, strict=False)):
                continue
            keys = {key: text for part in path for key, text in part.keys.items()}
            order = BY_NAME[each.line.metric].labels
            if all(name in keys for label in order for name in _FIELD.findall(each.line.labels[label])):
                self._at.pop((each.line.metric, _thing(each.line, keys)), None)

    def forget_all(self) -> None:
        """The stream broke: what was told on change is not known any more."""
        self._at.clear()
        self._faults.clear()

    def drain(self) -> tuple[tuple[Sample, ...], tuple[Event, ...], tuple[Fault, ...]]:
        """What came since the last time, and what holds since it was told, with the time at which it came."""
        samples = []
        for (metric, thing), reading in self._at.items():
            if reading.fresh or reading.lasting:
                samples.append(Sample(metric, thing, reading.value, reading.came_ns))
            reading.fresh = False
        faults = tuple(Fault(metric, thing, text) for (metric, thing), text in self._faults.items())
        events, self._events = tuple(self._events), []
        self._faults.clear()
        return tuple(samples), events, faults

    def renew(self, now_ns: int) -> None:
        """What is told on change holds now as well, while the stream is alive."""
        for reading in self._at.values():
            if reading.lasting:
                reading.came_ns = max(reading.came_ns, now_ns)

    def _store(self, each: Wanted, keys: dict[str, str], leaf: Plain, came_ns: int) -> None:
        key = each.line.metric, _thing(each.line, keys)
        try:
            value = number(leaf, each.line.values, each.line.scale)
        except BadValueError as bad:
            if len(self._faults) < _MAX_FAULTS:
                self._faults[key] = f"{each.line.path}: {bad}"
            return
        before = self._at.get(key)
        if before is None and len(self._at) >= _MAX_SERIES:
            self._faults[each.line.metric, ""] = f"the device sends more than {_MAX_SERIES} series: name fewer paths"
            return
        if key[0] == _LINK and before is not None and before.value != value and len(self._events) < _MAX_EVENTS:
            kind = "link.up" if value else "link.down"
            self._events.append(Event(kind, key[1], came_ns, None, {"told by": "gnmi"}))
        self._at[key] = _Reading(value, came_ns, each.on_change)


def _thing(line: GnmiPath, keys: dict[str, str]) -> str:
    order = BY_NAME[line.metric].labels
    return object_text(
        **{name: _FIELD.sub(lambda match: keys.get(match[1], ""), line.labels[name])[:200] for name in order}
    )
