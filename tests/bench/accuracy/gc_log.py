"""Collections of a HotSpot log of Java 5 to 8: when, the heap after it and its size, the pause, and whether full."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tests.bench.accuracy.trials import Floats, opened

_STAMP = re.compile(r"^(?:\d{4}-\d\d-\d\dT[\d:.]+[+-]\d{4}: )?(\d+\.\d{3}): ")
_GENERATION = re.compile(r"\[[A-Za-z][^\[\]]*: \d+K->\d+K\(\d+K\)[^\[\]]*\]")
_HEAP = re.compile(r"(\d+)K->(\d+)K\((\d+)K\)")
_SECONDS = re.compile(r"(\d+[.,]\d+) secs\]")
_REAL = re.compile(r"real=(\d+\.\d+)")


class Collections(NamedTuple):
    """Arrays of one length: uptime in seconds, bytes after it and of the heap (NaN: unknown), seconds, full or not."""

    time_s: Floats
    heap: Floats
    ceiling: Floats
    pause: Floats
    full: NDArray[np.bool_]


def collections(path: Path) -> Collections:
    """The collections that stopped the program, in order of their uptime."""
    collected = [row for uptime, text in _entries(path) if (row := _read(uptime, text)) is not None]
    table = np.array(collected, dtype=np.float64).reshape(-1, 5)
    table = table[np.argsort(table[:, 0], kind="stable")]
    return Collections(table[:, 0], table[:, 1], table[:, 2], table[:, 3], table[:, 4] > 0)


def _entries(path: Path) -> Iterator[tuple[float, str]]:
    """The lines that belong to one stamp."""
    uptime, text = None, ""
    with opened(path) as file:
        for line in file:
            stamp = _STAMP.match(line)
            if stamp:
                if uptime is not None:
                    yield uptime, text
                uptime, text = float(stamp[1]), line
            else:
                text += line
    if uptime is not None:
        yield uptime, text


def _read(uptime: float, text: str) -> tuple[float, float, float, float, float] | None:
    if "CMS-concurrent" in text and "Full" not in text and "remark" not in text:
        return None
    real, seconds = _REAL.findall(text), _SECONDS.findall(text)
    if not ("GC" in text or "remark" in text) or not (real or seconds):
        return None
    pause = float(real[-1]) if real else float(seconds[-1].replace(",", "."))
    heap = _HEAP.findall(_GENERATION.sub("", text))
    after, size = (1024.0 * int(heap[-1][1]), 1024.0 * int(heap[-1][2])) if heap else (float("nan"), float("nan"))
    return uptime, after, size, pause, float("Full GC" in text or "concurrent mode failure" in text)
