"""Storms: of many events of one kind and object within a short time the first are kept, the rest counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from soakwatch_model.event import Event

STORM = "log.storm"
_HOUR_NS = 3_600_000_000_000
_SECOND_NS = 1_000_000_000
_MAX_KINDS = 64  # more than any profile has; further kinds count as one
_OTHERS = "others"

Key = tuple[str, str]
StormLimit = Annotated[
    int, Field(default=20, ge=1, le=10_000, description="events of one kind and object that are kept a minute")
]
"""The key ``storm`` of a source that listens."""


@dataclass(slots=True)
class _Seen:
    """When the last kept events came and, in a storm, since when and how many were suppressed."""

    kept: deque[int]
    last_ns: int = 0
    storm_ns: int | None = None
    suppressed: int = 0
    reported: bool = False  # True once the running storm was reported


@dataclass(slots=True)
class _Kind:
    """The budget that a kind of events has left, and when that was computed."""

    left: float
    at_ns: int


@dataclass(slots=True)
class Storm:
    """Admits ``most`` events of one kind and object within ``window_s``; more are a storm.

    A storm ends after a window without such events and is reported by one event. One that goes on is reported after a
    window, then each hour, since the run may end first. All objects of a kind together may bring ``most_of_kind``
    events at once and as many more per hour: enough for all ports of a large chassis. Beyond that, or beyond
    ``most_keys`` objects, the objects of a kind count as one, so that memory and record stay bounded.
    """

    most: int = 20
    window_s: float = 60.0
    most_of_kind: int = 4096
    most_keys: int = 16384
    _seen: dict[Key, _Seen] = field(default_factory=dict)
    _kinds: dict[str, _Kind] = field(default_factory=dict)

    def admits(self, kind: str, label: str, now_ns: int) -> bool:
        """True if this event is kept."""
        if kind not in self._kinds and len(self._kinds) >= _MAX_KINDS:
            kind, label = _OTHERS, ""
        budget = self._kinds.get(kind)
        if budget is None:
            budget = self._kinds[kind] = _Kind(float(self.most_of_kind), now_ns)
        more = self.most_of_kind * max(0, now_ns - budget.at_ns) / _HOUR_NS
        budget.left, budget.at_ns = min(float(self.most_of_kind), budget.left + more), now_ns
        key = kind, label
        if key not in self._seen and (budget.left < 1 or len(self._seen) >= self.most_keys):
            key = kind, ""
        seen = self._seen.setdefault(key, _Seen(deque(maxlen=self.most)))
        seen.last_ns = now_ns
        if seen.storm_ns is None:
            if budget.left >= 1 and (len(seen.kept) < self.most or now_ns - seen.kept[0] >= self._window_ns):
                budget.left -= 1
                seen.kept.append(now_ns)
                return True
            seen.storm_ns = now_ns
        seen.suppressed += 1
        return False

    def over(self, now_ns: int, *, end: bool = False) -> Iterator[Event]:
        """The storms to report, each as one event; with ``end`` also those still going on."""
        for key, seen in list(self._seen.items()):
            quiet = now_ns - seen.last_ns >= self._window_ns
            due_ns = _HOUR_NS if seen.reported else self._window_ns
            if seen.storm_ns is not None and (end or quiet or now_ns - seen.storm_ns >= due_ns):
                yield self._storm_event(key, seen.storm_ns, seen)
                seen.storm_ns, seen.suppressed, seen.reported = (None if quiet or end else now_ns), 0, True
            if quiet or end:
                del self._seen[key]

    @property
    def _window_ns(self) -> int:
        return round(self.window_s * _SECOND_NS)

    def _storm_event(self, key: Key, begin_ns: int, seen: _Seen) -> Event:
        kind, label = key
        detail = {"of": kind, "suppressed": str(seen.suppressed), "kept": str(len(seen.kept))}
        return Event(STORM, "", label, begin_ns, seen.last_ns, detail)
