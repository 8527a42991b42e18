r"""Line protocol: names, texts and numbers as InfluxDB 2 reads them back.

InfluxDB knows no escape for a backslash in a tag: a value that ends with one would swallow what follows, and no tag
or measurement can hold a line's end. These few characters are replaced by look-alikes; all others come back as they
were. Numbers are always floats, for the first line fixes the type of a field; a number without a point is one, too.
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
from soakwatch.sinks.block import NO_LINES, Block

RESERVED = frozenset({"run", "target", "role", "phase", "time", "_field", "_measurement", "_value", "_time", "value"})
"""Names of tags that mean something else already; a label of the same name gets ``object_`` before it."""
LONGEST = 8_000  # characters of a name or value; InfluxDB refuses keys of 65,535 bytes
_PIECE = 1_000  # lines that are made at once
_ENDS = (0x85, 0x2028, 0x2029)  # ends of lines to those who read Unicode
_ODD: dict[int, int | str] = {
    **{number: 0x2400 + number for number in range(32)},
    **dict.fromkeys(_ENDS, 0x2424),
    127: 0x2421,
}
_TAG: dict[int, int | str] = {**_ODD, ord(","): "\\,", ord("="): "\\=", ord(" "): "\\ "}
_MEASUREMENT: dict[int, int | str] = {**_ODD, ord(","): "\\,", ord(" "): "\\ "}
_TEXT: dict[int, int | str] = {ord("\\"): "\\\\", ord('"'): '\\"', ord("\n"): " ", ord("\r"): " ", 0: "\u2400"}
_INSTEAD = "\u2216"  # ∖ for a backslash at an end

Value = float | str | None
Numbers = NDArray[np.float64] | NDArray[np.int64] | NDArray[np.uint64]


@lru_cache(1024)  # the same few names come again and again
def tag(text: str) -> str:
    r"""A tag's name or value.

    >>> tag("a b,c=d"), tag("C:\\"), tag("x\ny")
    ('a\\ b\\,c\\=d', 'C:∖', 'x␊y')
    """
    return _end(text[:LONGEST]).translate(_TAG)


def measurement(text: str) -> str:
    """A measurement's name; one that would be a comment begins with a look-alike.

    >>> measurement("a b"), measurement("#x")
    ('a\\\\ b', '＃x')
    """
    name = _end(text[:LONGEST]) or "_"
    return ("＃" + name[1:] if name.startswith("#") else name).translate(_MEASUREMENT)


def _end(text: str) -> str:
    bare = text.rstrip("\\")
    return bare + _INSTEAD * (len(text) - len(bare))


def key(name: str, tags: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """Measurement and tags, sorted as InfluxDB likes them; tags without a value are left out.

    >>> key("a.b", {"run": "r 1", "phase": ""}, {"core": "0"})
    'a.b,core=0,run=r\\\\ 1'
    """
    own = {f"object_{label}" if label in RESERVED else label: value for label, value in labels.items()}
    all_tags = {name: value for name, value in {**own, **tags}.items() if name and value}
    shown = sorted((tag(name), tag(value)) for name, value in all_tags.items())
    return ",".join([measurement(name), *(f"{name}={value}" for name, value in shown)])


def text(value: str) -> str:
    r"""A text field, on one line.

    >>> text('say "a\\b"\n')
    '"say \\"a\\\\b\\" "'
    """
    return f'"{value[:LONGEST].translate(_TEXT)}"'


def line(head: str, fields: Mapping[str, Value], time_ns: int) -> bytes:
    """One line; fields that are None or no finite number are left out, and without any field there is no line."""
    shown = []
    for name, value in fields.items():
        if isinstance(value, str):
            shown.append(f"{tag(name)}={text(value)}")
        elif value is not None and math.isfinite(value):
            shown.append(f"{tag(name)}={float(value)!r}")
    return f"{head} {','.join(shown)} {time_ns}".encode(errors="replace") if shown else b""


def milliseconds(time_ns: int) -> float:
    """A time in UTC ns as a field holds it: UTC ms, whole."""
    return float(time_ns // 1_000_000)


def alike(table: Table) -> tuple[Table, ...]:
    """The same readings as tables of one kind of number each."""
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
    """Some rows of a table of one kind of number; ``heads`` are the keys of its series. A reading that is no finite
    number has no line; an integer is written as it is, and beyond 2**53 the database rounds it to a float."""
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
    """Some lines, each with its end. Their pieces are put into one list and joined once: a call a line would cost ten
    times as much. They are so few that they stay in the cache of a core on which the server works as well."""
    ends = [b" %d\n" % time for time in times]
    if len(starts) > 1:
        ends = [end for end in ends for _ in starts]
    pieces = [b""] * (3 * rows.size)
    pieces[0::3], pieces[1::3], pieces[2::3] = list(starts) * len(times), decimals(rows), ends
    if not finite.all():
        pieces = list(compress(pieces, np.repeat(finite.ravel(), 3).tolist()))
    return b"".join(pieces)


def numbers(words: Words, kind: str) -> Numbers:
    """The readings that words of one kind are: float64 (d), int64 (q) or uint64 (Q)."""
    words = np.ascontiguousarray(words)
    if kind == "Q":
        return words
    return words.view(np.float64) if kind == "d" else words.view(np.int64)


def decimals(values: Numbers) -> list[bytes]:
    """Integers, and floats as the shortest decimals that mean the same float, row by row.

    pydantic's writer of JSON makes them in a fifth of the time that ``repr`` takes.
    """
    return to_json(values.ravel().tolist())[1:-1].split(b",") if values.size else []
