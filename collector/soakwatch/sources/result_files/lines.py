"""What readers of result files share: times, numbers, and CSV rows with line ends in quotes."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIZES = ((1e17, 1), (1e14, 10**3), (1e11, 10**6), (1e8, 10**9))  # nano- to seconds of any year since 1973
_LATEST_NS = 2**62
MAX_JOINED_LINES = 200
"""Maximum lines of one row: a quote that is never closed must not swallow the file."""


def epoch_ns(text: str) -> int:
    """Parses s, ms, µs or ns since 1970, told apart by size, or RFC 3339 with its zone. Raises ValueError.

    >>> epoch_ns("1795259336"), epoch_ns("1795259336123"), epoch_ns("2026-11-21T11:08:56.123456789Z")
    (1795259336000000000, 1795259336123000000, 1795259336123456000)
    """
    if text.isdecimal() and len(text) < 20:
        number = int(text)
        factor = next((factor for lowest, factor in _SIZES if number >= lowest), None)
        if factor is None or number * factor > _LATEST_NS:
            raise ValueError(f"{text!r} is not a time")
        return number * factor
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"the time {text!r} has no time zone")
    time_ns = (moment - _EPOCH) // timedelta(microseconds=1) * 1000
    if not 0 <= time_ns <= _LATEST_NS:
        raise ValueError(f"{text!r} is not a time")
    return time_ns


def positive(text: object) -> float:
    """Parses a finite number >= 0. Raises ValueError.

    >>> positive("0.5")
    0.5
    """
    if not isinstance(text, str | int | float):
        raise ValueError(f"{text!r} is not a number")
    number = float(text)
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{text!r} is not a finite number from 0 on")
    return number


def cells_of(row: str, sign: str = ",") -> list[str]:
    r"""The cells of a CSV row; empty if its quotes are invalid.

    >>> cells_of('a,"b,c"'), cells_of('a"\n"b"')
    (['a', 'b,c'], [])
    """
    try:
        return next(csv.reader([row], delimiter=sign, skipinitialspace=sign != "\t"), [])
    except csv.Error:
        return []


def lines_in(row: str) -> int:
    """The number of lines of a row."""
    return row.count("\n") + 1


class Rows:
    """Joins lines of a CSV file whose line ends are in quotes."""

    def __init__(self) -> None:
        self._held: list[str] = []
        self._open = False

    def whole(self, lines: Sequence[str]) -> tuple[list[str], list[str]]:
        """The rows that are complete now, and lines that form none.

        >>> rows = Rows()
        >>> rows.whole(['a,"b', 'c",d', '"e']), rows.whole(['f"'])
        ((['a,"b\\nc",d'], []), (['"e\\nf"'], []))
        """
        if not self._held and not any('"' in line for line in lines):
            return [line for line in lines if line.strip()], []
        rows: list[str] = []
        torn: list[str] = []
        for line in lines:
            if not self._held and not line.strip():
                continue
            self._held.append(line)
            self._open ^= line.count('"') % 2 == 1
            if not self._open:
                rows.append("\n".join(self._held))
                self._held = []
            elif len(self._held) >= MAX_JOINED_LINES:
                torn += self._held
                self._held, self._open = [], False
        return rows, torn
