"""The literal text that a regular expression requires: a cheap search before the match."""

from __future__ import annotations

import re

_LETTERS = frozenset("AbBdDsSwWZ0123456789")  # after a backslash: a class, an anchor, or a group number


def literal_of(pattern: re.Pattern[str]) -> str:
    r"""The longest text that every match of a pattern contains; "" if none is certain.

    Only text outside groups and classes counts, so the result may be too short but is never wrong.

    >>> literal_of(re.compile(r"(?P<process>\S+) invoked oom-kille?r"))
    ' invoked oom-kill'
    >>> literal_of(re.compile(r"link (up|down)|reload"))
    ''
    """
    if pattern.flags & (re.IGNORECASE | re.VERBOSE) or "(?i" in pattern.pattern:
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
