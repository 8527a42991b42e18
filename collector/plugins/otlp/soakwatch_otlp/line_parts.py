"""Lines of the line protocol, as a sink is given them, in parts: measurement, tags, fields and time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

_ESCAPED = re.compile(r"\\([,= ])")
_TEXT = re.compile(r'\\(["\\])')
_COMMA = re.compile(r"(?<!\\),")
_EQUALS = re.compile(r"(?<!\\)=")
_FIELD = re.compile(r'((?:[^=\\]|\\.)+)=("(?:[^"\\]|\\.)*"|[^,]+)(?:,|$)')


@dataclass(frozen=True, slots=True)
class LineParts:
    """One line; fields that are texts are str, all others float, or int where they are whole."""

    name: str
    tags: Mapping[str, str]
    fields: Mapping[str, float | str]
    time_ns: int


def parts_of(line: bytes) -> LineParts:
    r"""The parts of a line.

    >>> parts_of(b'a.b,core=0,run=r\\ 1 value=3 12')
    LineParts(name='a.b', tags={'core': '0', 'run': 'r 1'}, fields={'value': 3}, time_ns=12)
    >>> parts_of(b'p,t=x ok=1.0,error="no \\"way\\", a=b" 7').fields
    {'ok': 1.0, 'error': 'no "way", a=b'}
    """
    text = line.decode("utf-8", "replace")
    head_end = _space(text)
    head, rest = text[:head_end], text[head_end + 1 :]
    fields, _, time_ns = rest.rpartition(" ")
    name, tags = _head(head)
    return LineParts(name, tags, dict(_fields(fields)), int(time_ns))


def _space(text: str) -> int:
    at = text.index(" ")
    while text[at - 1] == "\\":
        at = text.index(" ", at + 1)
    return at


@lru_cache(20_000)  # one for each series
def _head(head: str) -> tuple[str, Mapping[str, str]]:
    name, *tags = _COMMA.split(head)
    pairs = (_EQUALS.split(tag, maxsplit=1) for tag in tags)
    return _plain(name), {_plain(key): _plain(value) for key, value in pairs}


def _fields(text: str) -> Iterator[tuple[str, float | str]]:
    for match in _FIELD.finditer(text):
        value = match[2]
        yield _plain(match[1]), _TEXT.sub(r"\1", value[1:-1]) if value.startswith('"') else _number(value)


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)
