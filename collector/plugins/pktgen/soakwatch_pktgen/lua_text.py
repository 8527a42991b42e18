"""Parses Lua tables as ``prints`` of Pktgen's library and similar functions write them; bounded and tolerant.

``prints("portStats", t)`` writes ``portStats = {``, one ``[key] = value,`` a line, and ``}``. Versions differ in
commas, in line breaks before braces, and in what they leave unquoted (addresses). Anything but tables is skipped: a
banner, an error message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = "str | int | float | bool | Table | None"
Table: TypeAlias = "dict[str | int, Value]"

_MAX_DEPTH = 16
_MAX_ENTRIES = 50_000
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
class LuaTables:
    """The tables in an answer by name, and why others are unreadable."""

    tables: dict[str, Table]
    unread: dict[str, str]


class _BrokenError(Exception):
    """Why a table is unreadable."""


def read_tables(text: str) -> LuaTables:
    """Every table with a name at the start of a line; of several with the same name the last one.

    >>> read_tables('Lua 5.4\\nlinks = {\\n  [0] = "<UP-10000-FD>",\\n  ["n"] = 1,\\n}\\n').tables
    {'links': {0: '<UP-10000-FD>', 'n': 1}}
    >>> read_tables('a = {\\n  [0] = {').unread
    {'a': 'it ends in the middle of a table'}
    """
    tables = LuaTables({}, {})
    budget = [_MAX_ENTRIES]
    index = 0
    while (match := _NAMED.search(text, index)) is not None:
        name = match[1]
        try:
            tables.tables[name], index = _table(text, match.end() + 1, 1, budget)
            tables.unread.pop(name, None)
        except _BrokenError as broken:
            tables.tables.pop(name, None)
            tables.unread[name] = str(broken)
            index = match.end()
            if budget[0] <= 0:
                break
    return tables


def _table(text: str, index: int, depth: int, budget: list[int]) -> tuple[Table, int]:
    """The table whose brace was opened before ``index``, and the index behind it."""
    if depth > _MAX_DEPTH:
        raise _BrokenError(f"it is nested more than {_MAX_DEPTH} deep")
    table: Table = {}
    while True:
        index = _skip(_BETWEEN, text, index)
        if index >= len(text):
            raise _BrokenError("it ends in the middle of a table")
        if text[index] == "}":
            return table, index + 1
        budget[0] -= 1
        if budget[0] < 0:
            raise _BrokenError(f"it has more than {_MAX_ENTRIES} entries")
        key, index = _key(text, index)
        equals = _EQUALS.match(text, index)
        if equals is None:
            raise _BrokenError(f"a key without a value: {str(key)[:40]!r}")
        table[key], index = _value(text, equals.end(), depth, budget)


def _key(text: str, index: int) -> tuple[str | int, int]:
    if text[index] != "[":
        word = _WORD.match(text, index)
        if word is None:
            raise _BrokenError(f"not a key: {text[index : index + 20]!r}")
        return word[0], word.end()
    index += 1
    key: str | int
    if text[index : index + 1] in _QUOTED:
        key, index = _string(text, index)
    else:
        raw = _RAW_KEY.match(text, index)
        if raw is None:
            raise _BrokenError("a key that does not end")
        key, index = raw[0].strip(), raw.end()
        if _WHOLE.fullmatch(key):
            key = int(key)
    if text[index : index + 1] != "]":
        raise _BrokenError("a key that does not end")
    return key, index + 1


def _value(text: str, index: int, depth: int, budget: list[int]) -> tuple[Value, int]:
    sign = text[index : index + 1]
    if sign == "{":
        return _table(text, index + 1, depth + 1, budget)
    if sign in _QUOTED:
        return _string(text, index)
    raw = _RAW.match(text, index)
    if raw is None:
        raise _BrokenError(
            "it ends in the middle of a value" if not sign else f"not a value: {text[index : index + 20]!r}"
        )
    return _plain(raw[0].strip()), raw.end()


def _string(text: str, index: int) -> tuple[str, int]:
    match = _QUOTED[text[index]].match(text, index)
    if match is None:
        raise _BrokenError("a string that does not end")
    return _ESCAPE.sub(_unescaped, match[1]), match.end()


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if code.isdecimal() and code.isascii():
        return chr(min(int(code), 255))
    return _ESCAPED.get(code, code)


def _plain(raw: str) -> Value:
    """An unquoted value: a number, a boolean, nil, or text (``1A:6B:…``, ``table: 0x55…``)."""
    if _WHOLE.fullmatch(raw):
        return int(raw)
    if _REAL.fullmatch(raw):
        return float(raw)
    return {"true": True, "false": False, "nil": None}.get(raw, raw)


def _skip(pattern: re.Pattern[str], text: str, index: int) -> int:
    match = pattern.match(text, index)
    return index if match is None else match.end()
