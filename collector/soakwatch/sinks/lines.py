r"""Line protocol: names, texts and numbers as InfluxDB 2 reads them back.

InfluxDB knows no escape for a backslash in a tag: a value that ends with one would swallow what follows, and no tag
or measurement can hold a line's end. These few characters are replaced by look-alikes; all others come back as they
were. Numbers are always floats, for the first line fixes the type of a field.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from soakwatch.record.tail import Table, Words

RESERVED = frozenset({"run", "target", "role", "phase", "time", "_field", "_measurement", "_value", "_time", "value"})
"""Names of tags that mean something else already; a label of the same name gets ``object_`` before it."""
LONGEST = 8_000  # characters of a name or value; InfluxDB refuses keys of 65,535 bytes
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
    shown = [
        f"{tag(name)}={text(value) if isinstance(value, str) else repr(float(value))}"
        for name, value in fields.items()
        if isinstance(value, str) or (value is not None and math.isfinite(value))
    ]
    return f"{head} {','.join(shown)} {time_ns}".encode(errors="replace") if shown else b""


def table_lines(heads: Sequence[str], table: Table, begin: int, end: int) -> bytes:
    """Some rows of a table as lines, each with a line's end; ``heads`` are the keys of its series.

    A row is one formatting with a template, for a call a line would cost four times as much.
    """
    columns = floats(table.words[begin:end], table.kinds)
    if not columns:
        return b""
    template = "".join([f"{head.replace('%', '%%')} value=%r \0\n" for head in heads])
    times = table.time_ns[begin:end].tolist()
    rows = zip(*[column.tolist() for column in columns], strict=True)
    whole = "".join([(template % row).replace("\0", str(time)) for row, time in zip(rows, times, strict=True)])
    if not all(bool(np.isfinite(column).all()) for column in columns):
        odd = (" value=nan ", " value=inf ", " value=-inf ")
        whole = "".join([f"{one}\n" for one in whole.split("\n")[:-1] if not any(word in one for word in odd)])
    return whole.encode(errors="replace")


def floats(words: Words, kinds: str) -> list[NDArray[np.float64]]:
    """The columns of a table as floats, shape (n,) each."""
    types = {"d": np.float64, "q": np.int64, "Q": np.uint64}
    return [
        np.ascontiguousarray(words[:, at]).view(types[kind]).astype(np.float64, copy=False)
        for at, kind in enumerate(kinds)
    ]
