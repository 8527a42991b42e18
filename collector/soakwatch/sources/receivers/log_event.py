"""Log lines that are events, by the patterns of a profile: crashes, failovers, links, reboots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from soakwatch.sources.profiles.model import LogPattern
from soakwatch.sources.receivers.literal import literal_of
from soakwatch.sources.receivers.syslog_line import SEVERITIES, LogLine
from soakwatch.sources.receivers.text import LINE, WORD, shown
from soakwatch_model.event import Event
from soakwatch_model.sample import object_text

_SEARCHED = 600  # characters: a hostile line may make a pattern quadratic
_OBJECT_GROUPS = ("interface", "process")  # groups that name the event's object


@dataclass(frozen=True, slots=True)
class SearchPattern:
    """A pattern, and the literal text that a match must contain."""

    pattern: LogPattern
    literal: str


def prepare_patterns(patterns: Iterable[LogPattern]) -> tuple[SearchPattern, ...]:
    """Prepares patterns for searching, in their order."""
    return tuple(SearchPattern(pattern, literal_of(pattern.match)) for pattern in patterns)


def event_of(line: LogLine, address: str, time_ns: int, patterns: Sequence[SearchPattern]) -> Event | None:
    """The event of the first pattern found in a line; None if there is none."""
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
