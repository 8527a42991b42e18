"""Reads the account of a run that ``soakwatch.transfer.sinks.account`` wrote, and checks that it is complete."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from soakwatch.core.suggest import hint
from soakwatch.sources.tables.errors import DataError
from soakwatch.transfer.sinks.account import MEASUREMENT, VERSION
from soakwatch.transfer.sinks.influxdb.read.asking import Influx, quoted, text

_MAX_CHARACTERS = 256 * 2**20  # characters: an account of a million series


@dataclass(frozen=True, slots=True)
class Account:
    """All of a run besides its readings and polls; each field as ``account_of`` makes it."""

    meta: Mapping[str, str]
    targets: Mapping[str, str]
    sources: tuple[tuple[int, str, str, str, int, bool, int], ...]
    series: tuple[tuple[str, str, str, int, str, str, bool, int], ...]
    phases: tuple[tuple[str, int, int | None], ...]
    spans: tuple[tuple[int, int], ...]
    events: tuple[tuple[Any, ...], ...]
    faults: tuple[tuple[int, str, str, str, int, int, int], ...]
    errors: tuple[str, ...]
    left_out: Mapping[int, tuple[int, ...]]
    grain_ns: int = 1  # sample times were rounded down to multiples of this

    @property
    def readings(self) -> int:
        """The number of readings."""
        return sum(series[7] for series in self.series)

    @property
    def polls(self) -> int:
        """The number of due times that the polls account for."""
        return sum(source[6] for source in self.sources)


def read_account(influx: Influx, run: str) -> Account:
    """The account of a run. Raises DataError if the run is missing or incomplete."""
    where, parts, size = influx.database.shown, dict[int, str](), 0
    asked = f'SELECT "text", "part", "parts", "digest" FROM {quoted(MEASUREMENT)} WHERE "run" = {text(run)}'  # noqa: S608
    total, digest = 0, ""
    for chunk in influx.chunks(asked):
        columns = [chunk.columns.index(name) for name in ("text", "part", "parts", "digest")]
        for row in chunk.rows:
            content, part, parts_, row_digest = (row[column] for column in columns)
            if not isinstance(content, str) or not isinstance(part, int | float) or not isinstance(parts_, int | float):
                raise DataError(_torn(where, run))
            if not parts:
                total, digest = int(parts_), str(row_digest)
            parts[int(part)] = content
            size += len(content)
            if size > _MAX_CHARACTERS:
                raise DataError(f"{where}: the account of the run {run!r} is longer than any written by Soakwatch")
    if not parts:
        raise DataError(_absent(influx, run))
    joined = "".join(parts.get(number, "") for number in range(total))
    if hashlib.sha256(joined.encode()).hexdigest() != digest:
        raise DataError(_torn(where, run))
    return _account(json.loads(joined), where, run)


def _account(data: dict[str, Any], where: str, run: str) -> Account:
    if data.get("version") != VERSION:
        raise DataError(
            f"{where}: the run {run!r} was written by another version of Soakwatch: send it again with "
            "soakwatch sink RUN --to …, or read it with that version"
        )

    def rows(name: str) -> tuple[Any, ...]:
        return tuple(tuple(row) for row in data[name])

    return Account(
        data["meta"],
        data["targets"],
        rows("sources"),
        rows("series"),
        rows("phases"),
        rows("spans"),
        rows("events"),
        rows("faults"),
        tuple(data["errors"]),
        {number: tuple(times) for number, times in data["left_out"]},
        int(data.get("grain_ns", 1)),
    )


def _torn(where: str, run: str) -> str:
    return (
        f"{where}: the account of the run {run!r} is incomplete: send the run again with soakwatch sink RUN --to …; "
        "writes are idempotent"
    )


def _absent(influx: Influx, run: str) -> str:
    where = influx.database.shown
    runs = influx.names('SHOW TAG VALUES WITH KEY = "run"', "value")
    if run in runs:
        return (
            f"{where}: the run {run!r} is still running, or was not sent completely: wait for it, or send it with "
            "soakwatch sink RUN --to …"
        )
    return f"{where} holds no run {run!r}{hint(run, runs)}"
