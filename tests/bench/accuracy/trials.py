"""What is tried on real data: a case, the rule for it, and what is known to be true of it.

Files are divided in two: one half may be looked at while a rule is made, the other half is reported.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from soakwatch_model.case import Case
from soakwatch_model.series import Series, Trait
from soakwatch_model.window import Phase, Window

S = 10**9
Floats = NDArray[np.float64]
Truth = Literal["ill", "well", "unknown"]


@dataclass(frozen=True, slots=True)
class Trial:
    """One rule on one case. ``truth`` is of the case as a whole; with ``labels`` its marks are counted against them.

    ``labels`` are the stretches (ns) in which something is known to have happened; None where the verdict counts.
    Where the labels are not ``whole`` (only the worst has one), a mark outside of them is no false alarm.
    ``lasted_s`` is how long it was out, where the data tell it: the marks have to add up to it.
    """

    data: str
    file: str
    rule: str
    case: Case
    truth: Truth = "unknown"
    labels: tuple[tuple[int, int], ...] | None = None
    whole: bool = True
    lasted_s: float | None = None
    more: Mapping[str, float] = field(default_factory=dict)
    note: str = ""  # of the set
    detail: str = ""  # of this file


def half(which: str, files: Iterable[str]) -> frozenset[str]:
    """The files of a half: every second one in the order of the SHA-256 of their names, from the first for "tuning"
    and from the second for "reported"; or "all"."""
    order = sorted(set(files), key=lambda file: hashlib.sha256(file.encode()).digest())
    return frozenset(order if which == "all" else order[which == "reported" :: 2])


def opened(path: Path) -> TextIO:
    """A text file, packed or not."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", errors="replace", newline="")
    return path.open(encoding="utf-8", errors="replace", newline="")


def rows(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a CSV with a head, by column; a hash before the head's first word is taken off."""
    with opened(path) as file:
        reader = csv.DictReader(file)
        reader.fieldnames = [name.lstrip("#") for name in reader.fieldnames or []]
        yield from reader


def number(text: str | None) -> float:
    """A cell as a number; NaN where it holds none."""
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")


def columns(path: Path, *names: str) -> tuple[Floats, ...]:
    """Columns of a CSV as numbers."""
    cells = [[number(row.get(name)) for name in names] for row in rows(path)]
    return tuple(np.array(cells, dtype=np.float64).reshape(-1, len(names)).T)


def epoch(text: str, form: str | None = None) -> float:
    """A time in UTC as seconds since 1970."""
    parsed = datetime.strptime(text, form) if form else datetime.fromisoformat(text)  # noqa: DTZ007 - set below
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def series(
    metric: str,
    seconds: ArrayLike,
    value: ArrayLike,
    trait: Trait,
    *,
    object_: str = "",
    cadence_s: float | None = None,
) -> Series:
    """Readings in order of time, one a moment (the last wins), numbers only."""
    time_s, read = np.asarray(seconds, dtype=np.float64), np.asarray(value, dtype=np.float64)
    good = np.isfinite(time_s) & np.isfinite(read)
    order = np.argsort(time_s[good], kind="stable")
    time_ns, read = np.round(time_s[good][order] * S).astype(np.int64), read[good][order]
    last = np.append(np.diff(time_ns) > 0, [True] * bool(time_ns.size)).astype(bool)
    return Series("dut", metric, object_, trait, time_ns[last], read[last], cadence_s)


MEMORY = Trait("By", "gauge", "up", 0.0, None, None, 4096.0)
BUSY = Trait("1", "gauge", None, 0.0, 1.0)
RATE = Trait("{request}/s", "gauge", None, 0.0)


def alone(line: Series) -> Case:
    """A series in a run that is all soak."""
    window = Window(int(line.time_ns[0]), int(line.time_ns[-1]) + round(S * (line.cadence_s or 1.0)))
    return Case("dut", line.object, window, (line,), phases=(Phase("soak", window),))


def carried(line: Series) -> Case:
    """What a generator got back, in a run that is all soak."""
    return replace(alone(line), series=(), load=(line,), object="")


def days(case: Case) -> float:
    """The days that a case covers."""
    return case.window.seconds / 86400
