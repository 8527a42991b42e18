r"""Line protocol: names, texts and numbers as InfluxDB 2 reads them back.

InfluxDB cannot escape a backslash in a tag: one at the end of a value would swallow what follows. No tag or measurement
can contain a line end. These few characters are replaced by look-alikes. Numbers are always floats, as the first line
fixes the type of a field; a number without a point is one, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import compress

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from soakwatch.record.follow import Table, Words
from soakwatch.transfer.sinks.block import NO_LINES, Block

RESERVED = frozenset({"run", "target", "role", "phase", "time", "_field", "_measurement", "_value", "_time", "value"})
"""Tag names with a meaning of their own; a label of the same name is prefixed with ``object_``."""
LONGEST = 8_000  # characters of a name or value; InfluxDB refuses keys of 65,535 bytes
_PIECE = 1_000  # lines made at once
_ENDS = (0x85, 0x2028, 0x2029)  # Unicode line ends
_ODD: dict[int, int | str] = {
    **{number: 0x2400 + number for number in range(32)},
    **dict.fromkeys(_ENDS, 0x2424),
    127: 0x2421,
}
_TAG: dict[int, int | str] = {**_ODD, ord(","): "\\,", ord("="): "\\=", ord(" "): "\\ "}
_MEASUREMENT: dict[int, int | str] = {**_ODD, ord(","): "\\,", ord(" "): "\\ "}
_TEXT: dict[int, int | str] = {ord("\\"): "\\\\", ord('"'): '\\"', ord("\n"): " ", ord("\r"): " ", 0: "\u2400"}
_INSTEAD = "\u2216"  # ∖ for a trailing backslash

Value = float | str | None
Numbers = NDArray[np.float64] | NDArray[np.int64] | NDArray[np.uint64]


@lru_cache(1024)  # the same few names recur
def tag(text: str) -> str:
    r"""Escape a tag's name or value.

    >>> tag("a b,c=d"), tag("C:\\"), tag("x\ny")
    ('a\\ b\\,c\\=d', 'C:∖', 'x␊y')
    """
    return _end(text[:LONGEST]).translate(_TAG)


def measurement(text: str) -> str:
    """Escape a measurement's name; a leading # (a comment) becomes a look-alike.

    >>> measurement("a b"), measurement("#x")
    ('a\\\\ b', '＃x')
    """
    name = _end(text[:LONGEST]) or "_"
    return ("＃" + name[1:] if name.startswith("#") else name).translate(_MEASUREMENT)


def _end(text: str) -> str:
    bare = text.rstrip("\\")
    return bare + _INSTEAD * (len(text) - len(bare))


def key(name: str, tags: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """Measurement and sorted tags; tags without a value are left out.

    >>> key("a.b", {"run": "r 1", "phase": ""}, {"core": "0"})
    'a.b,core=0,run=r\\\\ 1'
    """
    own = {f"object_{label}" if label in RESERVED else label: value for label, value in labels.items()}
    all_tags = {name: value for name, value in {**own, **tags}.items() if name and value}
    shown = sorted((tag(name), tag(value)) for name, value in all_tags.items())
    return ",".join([measurement(name), *(f"{name}={value}" for name, value in shown)])


def text(value: str) -> str:
    r"""Quote a text field, on one line.

    >>> text('say "a\\b"\n')
    '"say \\"a\\\\b\\" "'
    """
    return f'"{value[:LONGEST].translate(_TEXT)}"'


def line(head: str, fields: Mapping[str, Value], time_ns: int) -> bytes:
    """One line without fields that are None or not finite; empty if none is left."""
    shown = []
    for name, value in fields.items():
        if isinstance(value, str):
            shown.append(f"{tag(name)}={text(value)}")
        elif value is not None and math.isfinite(value):
            shown.append(f"{tag(name)}={float(value)!r}")
    return f"{head} {','.join(shown)} {time_ns}".encode(errors="replace") if shown else b""


def milliseconds(time_ns: int) -> float:
    """UTC ns to whole UTC ms."""
    return float(time_ns // 1_000_000)


def alike(table: Table) -> tuple[Table, ...]:
    """Split a table into tables of one number type each."""
    if len(set(table.kinds)) < 2:
        return (table,)
    tables = []
    for kind in sorted(set(table.kinds)):
        columns = [column for column, own_kind in enumerate(table.kinds) if own_kind == kind]
        words = np.ascontiguousarray(table.words[:, columns])
        tables.append(
            Table(tuple([table.series[column] for column in columns]), kind * len(columns), table.time_ns, words)
        )
    return tuple(tables)


def table_block(heads: Sequence[bytes], table: Table, begin: int, end: int) -> Block:
    """Rows of a table of one number type as lines; ``heads`` are the keys of its series. Readings that are not finite
    are left out; integers are written as they are, and the database rounds those beyond 2**53 to a float."""
    words = table.words[begin:end]
    if not words.size:
        return NO_LINES
    (kind,) = set(table.kinds)
    rows = numbers(words, kind)
    finite = np.isfinite(rows) if kind == "d" else np.ones(rows.shape, dtype=np.bool_)
    starts = [head + b" value=" for head in heads]
    times = table.time_ns[begin:end].tolist()
    step = max(1, _PIECE // len(heads))
    parts = [
        _rows(starts, rows[low : low + step], times[low : low + step], finite[low : low + step])
        for low in range(0, len(times), step)
    ]
    count = int(finite.sum())
    return Block(b"".join(parts)[:-1], count) if count else NO_LINES


def _rows(starts: Sequence[bytes], rows: Numbers, times: Sequence[int], finite: NDArray[np.bool_]) -> bytes:
    """Lines with line ends. Joining one list of pieces is ten times faster than a call per line; so few pieces stay in
    the cache of a core that the server uses too."""
    ends = [b" %d\n" % time for time in times]
    if len(starts) > 1:
        ends = [end for end in ends for _ in starts]
    pieces = [b""] * (3 * rows.size)
    pieces[0::3], pieces[1::3], pieces[2::3] = list(starts) * len(times), decimals(rows), ends
    if not finite.all():
        pieces = list(compress(pieces, np.repeat(finite.ravel(), 3).tolist()))
    return b"".join(pieces)


def numbers(words: Words, kind: str) -> Numbers:
    """View words as float64 (d), int64 (q) or uint64 (Q)."""
    words = np.ascontiguousarray(words)
    if kind == "Q":
        return words
    return words.view(np.float64) if kind == "d" else words.view(np.int64)


def decimals(values: Numbers) -> list[bytes]:
    """Integers, and floats as the shortest decimals that round-trip, row by row.

    pydantic's JSON writer takes a fifth of the time of ``repr``.
    """
    return to_json(values.ravel().tolist())[1:-1].split(b",") if values.size else []
