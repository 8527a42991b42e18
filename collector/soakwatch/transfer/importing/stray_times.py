"""Refuses times that cannot belong to one run: a line with 0 or a broken clock must not make a window of decades."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from soakwatch.sources.tables.errors import DataError
from soakwatch_model.window import Window

MAX_GAP_NS = 366 * 86400 * 10**9
"""A longer gap than any run has: times beyond it are mistakes."""


@dataclass(frozen=True, slots=True)
class TimeCluster:
    """Times without a gap over ``MAX_GAP_NS``, from first to last, and the first line that has one of them."""

    window: Window
    lines: int
    first_line: int


@dataclass(slots=True)
class TimeSpread:
    """Where the times of a table lie, collected by chunk."""

    stretches: list[TimeCluster] = field(default_factory=list)

    def add(self, time_ns: NDArray[np.int64], line: NDArray[np.int64]) -> None:
        """Adds the times of some lines, in any order."""
        if not time_ns.size:
            return
        order = np.argsort(time_ns, kind="stable")
        time_ns, line = time_ns[order], line[order]
        edges = [0, *(np.flatnonzero(np.diff(time_ns) > MAX_GAP_NS) + 1).tolist(), time_ns.size]
        new = [
            TimeCluster(Window(int(time_ns[begin]), int(time_ns[end - 1])), end - begin, int(line[begin:end].min()))
            for begin, end in pairwise(edges)
        ]
        self.stretches = _joined([*self.stretches, *new])

    def check(self, where: str) -> None:
        """Raises DataError if some times are years from the others, naming the first line of the smallest cluster."""
        if len(self.stretches) < 2:
            return
        stray = min(self.stretches, key=lambda stretch: stretch.lines)
        rest = max(self.stretches, key=lambda stretch: stretch.lines)
        apart_ns = max(stray.window.begin_ns - rest.window.end_ns, rest.window.begin_ns - stray.window.end_ns)
        raise DataError(
            f"{where}: the time in line {stray.first_line}, {_day(stray.window.begin_ns)}, is {_years(apart_ns)} from"
            f" {rest.lines} other {'line' if rest.lines == 1 else 'lines'} at {_day(rest.window.begin_ns)}: correct or"
            " remove such lines, or give the format of the times with --time-format"
        )


def _joined(stretches: list[TimeCluster]) -> list[TimeCluster]:
    joined: list[TimeCluster] = []
    for stretch in sorted(stretches, key=lambda stretch: stretch.window.begin_ns):
        before = joined[-1] if joined else None
        if before is None or stretch.window.begin_ns - before.window.end_ns > MAX_GAP_NS:
            joined.append(stretch)
            continue
        joined[-1] = replace(
            before,
            window=Window(before.window.begin_ns, max(before.window.end_ns, stretch.window.end_ns)),
            lines=before.lines + stretch.lines,
            first_line=min(before.first_line, stretch.first_line),
        )
    return joined


def _day(time_ns: int) -> str:
    return f"{datetime.fromtimestamp(time_ns // 10**9, UTC):%Y-%m-%d %H:%M}Z"


def _years(length_ns: int) -> str:
    years = length_ns / (365.25 * 86400e9)
    return f"{years:.1f} years"
