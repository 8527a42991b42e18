"""Lua tables as text, as ``prints`` of Pktgen's own library and its look-alikes write them; bounded and tolerant.

``prints("portStats", t)`` writes ``portStats = {``, an entry ``[key] = value,`` a line, and ``}``. Versions differ in
commas, in line breaks before braces, and in what they do not quote (addresses). What is no table is passed over: a
banner, an error message of the interpreter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = "str | int | float | bool | Table | None"
Table: TypeAlias = "dict[str | int, Value]"

_DEEPEST = 16
_MOST_ENTRIES = 50_000
_NAMED = re.compile(r"^[ \t]*([A-Za-z_]\w{0,63})[ \t]*=\s*(?=\{)", re.MULTILINE)
_BETWEEN = re.compile(r"[\s,;]*")
_EQUALS = re.compile(r"\s*=\s*")
_WORD = re.compile(r"[A-Za-z_]\w{0,63}")
_RAW = re.compile(r"[^,;\n{}]{1,200}")
_RAW_KEY = re.compile(r"[^\]\n]{1,200}")
_WHOLE = re.compile(r"-?[0-9]{1,20}")
_REAL = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{0,40})?(?:[eE][-+]?[0-9]{1,3})?")
_QUOTED = {
    '"': re.compile(r'"((?:[^"\\]|\\.){0,4096})"', re.DOTALL),
    "'": re.compile(r"'((?:[^'\\]|\\.){0,4096})'", re.DOTALL),
}
_ESCAPE = re.compile(r"\\(\d{1,3}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


@dataclass(frozen=True, slots=True)
class Said:
    """The tables of an answer by name, and why others could not be read."""

    tables: dict[str, Table]
    unread: dict[str, str]


class _BrokenError(Exception):
    """A table that cannot be read: why."""


def read_tables(text: str) -> Said:
    """Every table with a name at the begin of a line; the last of a name counts.

    >>> read_tables('Lua 5.4\\nlinks = {\\n  [0] = "<UP-10000-FD>",\\n  ["n"] = 1,\\n}\\n').tables
    {'links': {0: '<UP-10000-FD>', 'n': 1}}
    >>> read_tables('a = {\\n  [0] = {').unread
    {'a': 'it ends amid a table'}
    """
    said = Said({}, {})
    budget = [_MOST_ENTRIES]
    at = 0
    while (match := _NAMED.search(text, at)) is not None:
        name = match[1]
        try:
            said.tables[name], at = _table(text, match.end() + 1, 1, budget)
            said.unread.pop(name, None)
        except _BrokenError as broken:
            said.tables.pop(name, None)
            said.unread[name] = str(broken)
            at = match.end()
            if budget[0] <= 0:
                break
    return said


def _table(text: str, at: int, depth: int, budget: list[int]) -> tuple[Table, int]:
    """The table whose brace was opened before ``at``, and where it ends."""
    if depth > _DEEPEST:
        raise _BrokenError(f"it is nested over {_DEEPEST} deep")
    table: Table = {}
    while True:
        at = _skip(_BETWEEN, text, at)
        if at >= len(text):
            raise _BrokenError("it ends amid a table")
        if text[at] == "}":
            return table, at + 1
        budget[0] -= 1
        if budget[0] < 0:
            raise _BrokenError(f"it has over {_MOST_ENTRIES} entries")
        key, at = _key(text, at)
        equals = _EQUALS.match(text, at)
        if equals is None:
            raise _BrokenError(f"a key without a value: {str(key)[:40]!r}")
        table[key], at = _value(text, equals.end(), depth, budget)


def _key(text: str, at: int) -> tuple[str | int, int]:
    if text[at] != "[":
        word = _WORD.match(text, at)
        if word is None:
            raise _BrokenError(f"no key: {text[at : at + 20]!r}")
        return word[0], word.end()
    at += 1
    key: str | int
    if text[at : at + 1] in _QUOTED:
        key, at = _string(text, at)
    else:
        raw = _RAW_KEY.match(text, at)
        if raw is None:
            raise _BrokenError("a key that does not end")
        key, at = raw[0].strip(), raw.end()
        if _WHOLE.fullmatch(key):
            key = int(key)
    if text[at : at + 1] != "]":
        raise _BrokenError("a key that does not end")
    return key, at + 1


def _value(text: str, at: int, depth: int, budget: list[int]) -> tuple[Value, int]:
    sign = text[at : at + 1]
    if sign == "{":
        return _table(text, at + 1, depth + 1, budget)
    if sign in _QUOTED:
        return _string(text, at)
    raw = _RAW.match(text, at)
    if raw is None:
        raise _BrokenError("it ends amid a value" if not sign else f"no value: {text[at : at + 20]!r}")
    return _plain(raw[0].strip()), raw.end()


def _string(text: str, at: int) -> tuple[str, int]:
    match = _QUOTED[text[at]].match(text, at)
    if match is None:
        raise _BrokenError("a string that does not end")
    return _ESCAPE.sub(_unescaped, match[1]), match.end()


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if code.isdecimal() and code.isascii():
        return chr(min(int(code), 255))
    return _ESCAPED.get(code, code)


def _plain(raw: str) -> Value:
    """A value without quotes: a number, a truth, nil, or its text (``1A:6B:…``, ``table: 0x55…``)."""
    if _WHOLE.fullmatch(raw):
        return int(raw)
    if _REAL.fullmatch(raw):
        return float(raw)
    return {"true": True, "false": False, "nil": None}.get(raw, raw)


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return at if match is None else match.end()
