"""Lines that mean that something happened, by the patterns of a profile: crashes, failovers, links, reboots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from soakwatch.sources.profiles.model import LogPattern
from soakwatch.sources.receivers.literal import literal_of
from soakwatch.sources.receivers.syslog_line import SEVERITIES, LogLine
from soakwatch.sources.receivers.text import LINE, WORD, shown
from soakwatch_model.event import Event
from soakwatch_model.sample import object_text

_SEARCHED = 600  # characters: a pattern may cost their square on a line that was written for it
_OBJECT_GROUPS = ("interface", "process")  # groups of a pattern that name what the event is about


@dataclass(frozen=True, slots=True)
class SearchPattern:
    """A pattern, and what a line must contain for it to match."""

    pattern: LogPattern
    literal: str


def prepare_patterns(patterns: Iterable[LogPattern]) -> tuple[SearchPattern, ...]:
    """Patterns prepared for searching, in their order."""
    return tuple(SearchPattern(pattern, literal_of(pattern.match)) for pattern in patterns)


def event_of(line: LogLine, address: str, time_ns: int, patterns: Sequence[SearchPattern]) -> Event | None:
    """The event of the first pattern that is found in a line; None if there is none."""
    text = line.text[:_SEARCHED]
    for log_pattern in patterns:
        if log_pattern.literal not in text:
            continue
        pattern = log_pattern.pattern
        match = pattern.match.search(text)
        if match is None:
            continue
        groups = {name: shown(value, WORD) for name, value in match.groupdict().items() if value}
        detail = {**groups, "line": shown(line.text, LINE), "address": address}
        if line.host:
            detail["host"] = shown(line.host, WORD)
        severity = pattern.severity or (None if line.severity is None else SEVERITIES[line.severity])
        if severity is not None:
            detail["severity"] = severity
        return Event(pattern.kind, "", _label(groups), time_ns, None, detail)
    return None


def _label(groups: Mapping[str, str]) -> str:
    return next((object_text(**{name: groups[name]}) for name in _OBJECT_GROUPS if name in groups), "")
