"""The newest reading of every subscribed series, from a stream of updates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from soakwatch.sources.mapping import check_mapping
from soakwatch.sources.profiles.profile_model import GnmiPath
from soakwatch.sources.session_state import context_of, family_of
from soakwatch_gnmi.paths import Element, Plain, bare, matches, named_keys, parse_path
from soakwatch_gnmi.values import BadValueError, number
from soakwatch_model.event import Event
from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import Fault, Sample, object_text

_FIELD = re.compile(r"\{([^{}]+)\}")
_NATIVE = re.compile(r"/(Cisco-IOS-X[\w-]{1,60}):")
_MAX_SERIES = 50_000
_MAX_EVENTS = 1000
_MAX_FAULTS = 100
_LINK = "system.network.up"


@dataclass(frozen=True, slots=True)
class PathQuery:
    """A parsed path of a profile. ``gate`` is the leaf that decides whether it is sampled, if any; ``module`` is the
    native YANG module of a Cisco system, without which it finds nothing."""

    line: GnmiPath
    steps: tuple[Element, ...]
    gate: tuple[Element, ...] = ()
    module: str = ""

    @property
    def on_change(self) -> bool:
        """Whether the device sends it only when it changes."""
        return self.line.mode == "on_change"


def path_queries(lines: Iterable[GnmiPath]) -> tuple[PathQuery, ...]:
    """Parse the paths. Raises ValueError for a malformed path, or labels that are not the metric's."""
    parsed = []
    for line in lines:
        try:
            check_mapping(line.metric, line.labels, line.scale)
        except ValueError as error:
            raise ValueError(f"{line.path}: {error}") from None
        if line.mode not in {"sample", "on_change"}:
            raise ValueError(f"{line.path}: the mode {line.mode!r} is neither sample nor on_change")
        steps = parse_path(line.path)
        gate = (*steps[:-1], *parse_path(line.when.leaf)) if line.when else ()
        native = _NATIVE.match(line.path)
        parsed.append(PathQuery(line, steps, gate, native[1] if native else ""))
    return tuple(parsed)


@dataclass(slots=True)
class _Reading:
    value: float
    came_ns: int
    lasting: bool  # sent on change: valid until the next update
    line: GnmiPath
    fresh: bool = True


class Latest:
    """The newest readings of the stream: ``take`` each update, ``drain`` at each poll."""

    def __init__(self, lines: Sequence[PathQuery]) -> None:
        self._lines = lines
        self._readings: dict[tuple[str, str], _Reading] = {}
        self._faults: dict[tuple[str, str], str] = {}
        self._events: list[Event] = []
        self._words: dict[tuple[str, str], str] = {}  # of the gate leaves
        self.unmatched = 0

    def take(self, path: Sequence[Element], value: Plain, came_ns: int) -> None:
        """Store one update."""
        matched = False
        for each in self._lines:
            for keys, leaf in matches(each.steps, path, value):
                matched = True
                self._store(each, keys, leaf, came_ns)
            for keys, leaf in matches(each.gate, path, value) if each.gate else ():
                matched = True
                if len(self._words) < _MAX_SERIES:
                    self._words[each.line.metric, _label(each.line, keys)] = bare(str(leaf)).lower()
        self.unmatched += not matched

    def refuse(self, path: Sequence[Element], text: str) -> None:
        """Report an update with an unreadable value as a fault of every metric that the path may belong to."""
        for each in self._lines:
            alike = all(p.name == s.name for p, s in zip(path, each.steps, strict=False))
            if alike and len(self._faults) < _MAX_FAULTS:
                self._faults[each.line.metric, ""] = f"{each.line.path}: {text}"

    def forget(self, path: Sequence[Element]) -> None:
        """Drop the readings below a path that the device deleted."""
        for each in self._lines:
            if len(path) > len(each.steps) or any(p.name != s.name for p, s in zip(path, each.steps, strict=False)):
                continue
            keys = named_keys(path)
            order = BY_NAME[each.line.metric].labels
            if all(name in keys for label in order for name in _FIELD.findall(each.line.labels[label])):
                self._readings.pop((each.line.metric, _label(each.line, keys)), None)
                self._words.pop((each.line.metric, _label(each.line, keys)), None)

    def forget_all(self) -> None:
        """Drop everything: the stream broke, so values sent on change are no longer known."""
        self._readings.clear()
        self._words.clear()
        self._faults.clear()

    def drain(self) -> tuple[tuple[Sample, ...], tuple[Event, ...], tuple[Fault, ...]]:
        """The readings since the last call, and values sent on change with the time at which they arrived."""
        samples = []
        for (metric, label), reading in self._readings.items():
            if (reading.fresh or reading.lasting) and self._open(reading.line, metric, label):
                value = reading.value
                if reading.line.ago:
                    value = max(0.0, reading.came_ns * 1e-9 - value)
                samples.append(Sample(metric, label, value, reading.came_ns))
            reading.fresh = False
        faults = tuple(Fault(metric, label, text) for (metric, label), text in self._faults.items())
        events, self._events = tuple(self._events), []
        self._faults.clear()
        return tuple(samples), events, faults

    def _open(self, line: GnmiPath, metric: str, label: str) -> bool:
        """Whether the gate leaf lets a reading be sampled; a gate that never arrived excludes nothing."""
        if line.when is None:
            return True
        word = self._words.get((metric, label))
        return (word in line.when.words) is not line.when.excluded

    def renew(self, now_ns: int) -> None:
        """While the stream is alive, values sent on change are valid now."""
        for reading in self._readings.values():
            if reading.lasting:
                reading.came_ns = max(reading.came_ns, now_ns)

    def _store(self, each: PathQuery, keys: dict[str, str], leaf: Plain, came_ns: int) -> None:
        key = each.line.metric, _label(each.line, keys)
        if leaf is None and key[0].startswith("network."):
            return  # a subtree of sessions contains only what the device knows of each
        try:
            value = number(leaf, each.line.values, each.line.scale)
        except BadValueError as bad:
            if len(self._faults) < _MAX_FAULTS:
                self._faults[key] = f"{each.line.path}: {bad}"
            return
        before = self._readings.get(key)
        if before is None and len(self._readings) >= _MAX_SERIES:
            self._faults[each.line.metric, ""] = (
                f"the device sends more than {_MAX_SERIES} series: subscribe to fewer paths"
            )
            return
        if key[0] == _LINK and before is not None and before.value != value and len(self._events) < _MAX_EVENTS:
            kind = "link.up" if value else "link.down"
            self._events.append(Event(kind, "", key[1], came_ns, None, {"source": "gnmi"}))
        self._readings[key] = _Reading(value, came_ns, each.on_change, each.line)


def _label(line: GnmiPath, keys: dict[str, str]) -> str:
    order = BY_NAME[line.metric].labels
    labels = {name: _FIELD.sub(lambda match: keys.get(match[1], ""), line.labels[name])[:200] for name in order}
    if "family" in labels:
        labels["family"] = family_of(bare(labels["family"]))
    if line.metric.startswith("network."):
        labels["context"] = context_of(labels["context"])
    return object_text(**labels)
