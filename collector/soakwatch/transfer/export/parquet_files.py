"""Parquet by pyarrow: the same column types for every run, dictionary-encoded text, facts of the run as file metadata.
A row group has about half a million rows, series after series."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.installation import to_add_package
from soakwatch.record import RecordView, SeriesKey
from soakwatch.record.frames import Selection, SeriesTable, chosen_keys, run_labels, tables
from soakwatch.transfer.export.readings import Columns, Run, exact_texts, wide_names, wide_parts
from soakwatch.transfer.export.staging import ExportError
from soakwatch.transfer.export.tables import Cell, SmallTable, Type
from soakwatch_model.sample import object_labels

if TYPE_CHECKING:
    import pyarrow as pa

_GROUP = 500_000  # rows
_SMALL = 50_000


def needs_pyarrow() -> None:
    """Raises ExportError if pyarrow is not installed."""
    try:
        import pyarrow.parquet  # noqa: F401 - only checks that it is there
    except ImportError:
        raise ExportError(f"Parquet files need pyarrow: {to_add_package('pyarrow')}") from None


def _type(kind: Type) -> pa.DataType:
    import pyarrow as pa

    if kind == "text":
        return pa.dictionary(pa.int32(), pa.string())
    return {"time": pa.timestamp("ns", tz="UTC"), "float": pa.float64(), "int": pa.int64()}[kind]


def _metadata(run: Run, view: RecordView) -> dict[bytes, bytes]:
    facts = {
        "soakwatch.version": metadata.version("soakwatch"),
        "soakwatch.run": run.name,
        "soakwatch.name": view.meta("run") or run.name,
        "soakwatch.labels": json.dumps(run_labels(view)),
        "soakwatch.verdict": view.meta("verdict") or "",
        "soakwatch.start_ns": view.meta("start_ns") or "",
    }
    return {key.encode(): text.encode() for key, text in facts.items()}


def long_schema(columns: Columns, facts: Mapping[bytes, bytes]) -> pa.Schema:
    """The columns of the long form; ``exact`` is the integer if ``value`` had to round it, else null."""
    import pyarrow as pa

    fields: list[tuple[str, pa.DataType]] = [("time", _type("time"))]
    fields += [(name, _type("text")) for name in ("run", "target", "metric", "object")]
    fields += [("value", pa.float64()), ("exact", pa.string()), ("unit", _type("text")), ("phase", _type("text"))]
    fields += [(f"object_{name}", _type("text")) for name in columns.objects]
    fields += [(f"label_{name}", _type("text")) for name in columns.labels]
    return pa.schema(fields, metadata=dict(facts))


def write_long(path: Path, view: RecordView, run: Run, columns: Columns, selection: Selection) -> int:
    """Writes a run's readings, a row each, series after series; returns the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    units = {key.metric: series_unit(view, key) for key in chosen_keys(view, selection)}
    schema = long_schema(columns, {**_metadata(run, view), b"soakwatch.units": json.dumps(units).encode()})
    texts = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    rows = 0
    packed = {"time": "DELTA_BINARY_PACKED"}  # times of a series are evenly spaced
    with pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=texts, column_encoding=packed) as writer:
        for group in _groups(tables(view, selection)):
            writer.write_table(_long_table(schema, group, view, run, columns), row_group_size=2 * _GROUP)
            rows += sum(table.time_ns.size for table in group)
    return rows


def series_unit(view: RecordView, key: SeriesKey) -> str:
    """The unit of a series, without decoding its readings."""
    return view.series(key, 0, 0).trait.unit


def _groups(found: Iterable[SeriesTable]) -> Iterator[list[SeriesTable]]:
    """Groups series into row groups."""
    group: list[SeriesTable] = []
    for table in found:
        group.append(table)
        if sum(each.time_ns.size for each in group) >= _GROUP:
            yield group
            group = []
    if group:
        yield group


def _long_table(
    schema: pa.Schema, group: Sequence[SeriesTable], view: RecordView, run: Run, columns: Columns
) -> pa.Table:
    import pyarrow as pa

    sizes = [table.time_ns.size for table in group]
    labels = run_labels(view)
    own = [object_labels(table.key.object) for table in group]

    def repeated(texts: Sequence[str | None]) -> pa.Array:
        known = list(dict.fromkeys(text for text in texts if text is not None))
        places = {text: number for number, text in enumerate(known)}
        codes = np.repeat(np.array([-1 if text is None else places[text] for text in texts], dtype=np.int32), sizes)
        return _dictionary(codes, known)

    time_ns = np.concatenate([table.time_ns for table in group])
    exact = [exact_texts(table) or [None] * table.time_ns.size for table in group]
    phase = np.concatenate([table.phase for table in group])
    arrays = [
        pa.array(time_ns, pa.int64()).cast(schema.field("time").type),
        repeated([run.name] * len(group)),
        repeated([table.key.target for table in group]),
        repeated([table.key.metric for table in group]),
        repeated([table.key.object for table in group]),
        pa.array(np.concatenate([table.value.astype(np.float64) for table in group])),
        pa.array([text for texts in exact for text in texts], pa.string())
        if any(any(texts) for texts in exact)
        else pa.nulls(time_ns.size, pa.string()),
        repeated([table.unit for table in group]),
        _dictionary(phase.astype(np.int32), list(group[0].phases)),
        *(repeated([labels_of.get(name) for labels_of in own]) for name in columns.objects),
        *(repeated([labels.get(name)] * len(group)) for name in columns.labels),
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _dictionary(codes: NDArray[np.int32], texts: Sequence[str]) -> pa.Array:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(texts, pa.string()))


def write_wide(path: Path, view: RecordView, run: Run, selection: Selection) -> int:
    """Writes a row per time and a column per series, with target, metric, object and unit as its metadata; returns the
    number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    keys = chosen_keys(view, selection)
    fields = [pa.field("time", _type("time")), pa.field("phase", _type("text"))]
    for key, name in zip(keys, wide_names(keys), strict=True):
        about = {"target": key.target, "metric": key.metric, "object": key.object, "unit": series_unit(view, key)}
        fields.append(pa.field(name, pa.float64(), metadata=about))
    schema = pa.schema(fields, metadata=_metadata(run, view))
    rows = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for part in wide_parts(view, keys, selection):
            values = [part.values[:, number] for number in range(len(keys))]
            arrays = [
                pa.array(part.time_ns, pa.int64()).cast(schema.field("time").type),
                _dictionary(part.phase.astype(np.int32), part.phases),
                *(pa.array(value, pa.float64(), from_pandas=True) for value in values),
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            rows += part.time_ns.size
    return rows


def write_small(path: Path, view: RecordView, run: Run, table: SmallTable) -> int:
    """Writes one of the other tables; returns the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields = [(name, _type(kind)) for name, kind in table.columns]
    schema = pa.schema([*fields, ("run", _type("text"))], metadata=_metadata(run, view))
    source, count = table.rows(view), 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        while rows := list(islice(source, _SMALL)):
            columns: list[list[Cell]] = [list(column) for column in zip(*rows, strict=True)]
            arrays = [_small_array(column, kind) for column, (_, kind) in zip(columns, table.columns, strict=True)]
            arrays.append(_dictionary(np.zeros(len(rows), dtype=np.int32), [run.name]))
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            count += len(rows)
    return count


def _small_array(column: Sequence[Cell], kind: Type) -> pa.Array:
    import pyarrow as pa

    if kind == "time":
        return pa.array(column, pa.int64()).cast(_type("time"))
    return pa.array(column, pa.string()).dictionary_encode() if kind == "text" else pa.array(column, _type(kind))
