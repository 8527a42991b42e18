"""Log lines that are events, by the patterns of a profile: crashes, failovers, links, reboots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from soakwatch.core.regex import Pattern
from soakwatch.sources.profiles.profile_model import LogPattern
from soakwatch.sources.receivers.syslog_line import SEVERITIES, LogLine
from soakwatch.sources.receivers.text import LINE, WORD, shown
from soakwatch_model.event import Event
from soakwatch_model.sample import object_text

_SEARCHED = 600  # characters: a hostile line may make a pattern quadratic
_OBJECT_GROUPS = ("interface", "process")  # groups that name the event's object
_LOOSE = re.compile(r"\(\?[a-zA-Z-]*[ix]")  # letters of any case, or blanks that do not count
_LETTERS = frozenset("AbBdDsSwWZ0123456789")  # after a backslash: a class, an anchor, or a group number


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


def literal_of(pattern: Pattern) -> str:
    r"""The longest text that every match of a pattern contains; "" if none is certain.

    Only text outside groups and classes counts, so the result may be too short but is never wrong.

    >>> literal_of(re.compile(r"(?P<process>\S+) invoked oom-kille?r"))
    ' invoked oom-kill'
    >>> literal_of(re.compile(r"link (up|down)|reload"))
    ''
    """
    if _LOOSE.search(pattern.pattern):
        return ""
    runs, run, depth, index, text = [""], "", 0, 0, pattern.pattern
    while index < len(text):
        char, size = text[index], 1
        plain = ""
        if char == "\\":
            size = 2
            plain = (
                ""
                if text[index + 1 : index + 2] in _LETTERS or text[index + 1 : index + 2].isalpha()
                else text[index + 1]
            )
        elif char == "[":
            size = _class(text, index)
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "|" and not depth:
            return ""
        elif char not in ".^$*+?{}|":
            plain = char
        following = text[index + size : index + size + 1]
        if plain and not depth and following not in {"*", "?", "{"}:
            run += plain
            if following == "+":
                runs, run = [*runs, run], ""
        else:
            runs, run = [*runs, run], ""
        if char == "{" and not depth:
            size = max(1, text.find("}", index) - index + 1)
        index += size
    return max((*runs, run), key=len)


def _class(text: str, start: int) -> int:
    """The length of the character class that begins here."""
    end = start + 1
    if text[end : end + 1] == "^":
        end += 1
    if text[end : end + 1] == "]":
        end += 1
    while end < len(text) and text[end] != "]":
        end += 2 if text[end] == "\\" else 1
    return end - start + 1
