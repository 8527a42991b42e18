"""CSV: UTF-8 with a header, ISO 8601 times in UTC to the ns, missing values as empty cells.

Text that a spreadsheet would run as a formula gets an apostrophe in front, as OWASP advises ("CSV injection"); control
characters are escaped. Numbers stay numbers, integers of any size exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import IO

import numpy as np
from pydantic_core import to_json

from soakwatch.core.formatting import no_formula
from soakwatch.core.tables import harmless
from soakwatch.record import RecordView
from soakwatch.record.frames import Selection, chosen_keys, run_labels, tables
from soakwatch.record.model import Ints, Values
from soakwatch.transfer.export.readings import Columns, Run, wide_names, wide_parts
from soakwatch.transfer.export.tables import Cell, SmallTable, Type
from soakwatch_model.sample import object_labels

_PIECE = 20_000  # rows rendered at once
_FIXED = ("time", "run", "target", "metric", "object", "value", "unit", "phase")


def cell(text: str) -> str:
    r"""Text as a CSV cell.

    >>> cell("eth0"), cell("=1+1"), cell("-5"), cell("a,b"), cell("@x\n")
    ('eth0', "'=1+1", '-5', '"a,b"', "'@x\\n")
    """
    safe = no_formula(harmless(text))
    if any(sign in safe for sign in ',"') or safe != safe.strip():
        quoted = safe.replace('"', '""')
        return f'"{quoted}"'
    return safe


def times(time_ns: Ints) -> list[str]:
    """Times as ISO 8601 text.

    >>> times(np.array([1_700_000_000_000_000_001]))
    ['2023-11-14T22:13:20.000000001Z']
    """
    texts: list[str] = np.datetime_as_string(time_ns.view("datetime64[ns]"), unit="ns").tolist()
    return [f"{text}Z" for text in texts]


def _values(value: Values) -> list[str]:
    if not value.size:
        return []
    texts = to_json(value.tolist())[1:-1].decode().split(",")
    if value.dtype.kind == "f" and not np.isfinite(value).all():
        return ["" if math.isnan(number) else text for number, text in zip(value.tolist(), texts, strict=True)]
    return texts


def write_long(file: IO[str], view: RecordView, run: Run, columns: Columns, selection: Selection, *, head: bool) -> int:
    """Writes a row per reading, series after series; returns the number of rows."""
    labels = run_labels(view)
    if head:
        names = [
            *_FIXED,
            *(f"object_{name}" for name in columns.objects),
            *(f"label_{name}" for name in columns.labels),
        ]
        file.write(",".join(map(cell, names)) + "\n")
    of_run = "".join(f",{cell(labels.get(name, ''))}" for name in columns.labels)
    rows = 0
    for table in tables(view, selection):
        key = table.key
        own = object_labels(key.object)
        before = f",{cell(run.name)},{cell(key.target)},{cell(key.metric)},{cell(key.object)},"
        behind = "".join(f",{cell(own.get(name, ''))}" for name in columns.objects) + of_run
        ends = [f",{cell(table.unit)},{cell(phase)}{behind}\n" for phase in table.phases]
        for low in range(0, table.time_ns.size, _PIECE):
            part = slice(low, low + _PIECE)
            clock, value, phase = times(table.time_ns[part]), _values(table.value[part]), table.phase[part].tolist()
            pieces = [""] * (4 * len(clock))
            pieces[0::4], pieces[1::4], pieces[2::4] = clock, [before] * len(clock), value
            pieces[3::4] = [ends[number] for number in phase]
            file.write("".join(pieces))
        rows += table.time_ns.size
    return rows


def write_wide(file: IO[str], view: RecordView, selection: Selection) -> int:
    """Writes a row per time and a column per series; returns the number of rows."""
    keys = chosen_keys(view, selection)
    file.write(",".join(["time", "phase", *map(cell, wide_names(keys))]) + "\n")
    rows = 0
    for part in wide_parts(view, keys, selection):
        phases = [cell(name) for name in part.phases]
        columns = [_values(part.values[:, number]) for number in range(len(keys))]
        named = [phases[number] for number in part.phase.tolist()]
        for row in zip(times(part.time_ns), named, *columns, strict=True):
            file.write(",".join(row) + "\n")
        rows += part.time_ns.size
    return rows


def write_small(file: IO[str], view: RecordView, run: Run, table: SmallTable, *, head: bool = True) -> int:
    """Writes one of the other tables; returns the number of rows."""
    if head:
        file.write(",".join([*(name for name, _ in table.columns), "run"]) + "\n")
    name, rows = cell(run.name), 0
    types = [kind for _, kind in table.columns]
    for row in table.rows(view):
        file.write(",".join([*_cells(row, types), name]) + "\n")
        rows += 1
    return rows


def _cells(row: Sequence[Cell], types: Sequence[Type]) -> list[str]:
    shown = []
    for value, kind in zip(row, types, strict=True):
        if value is None or (isinstance(value, float) and math.isnan(value)):
            shown.append("")
        elif kind == "time":
            shown.append(times(np.array([value], dtype=np.int64))[0])
        else:
            shown.append(cell(value) if isinstance(value, str) else repr(value))
    return shown
