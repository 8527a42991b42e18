"""The columns of a growing table: as the plan maps them, else by name, as ``soakwatch judge`` reads them.

During a run the readings cannot show a column's unit, so a column without a unit in its header is not sampled unless
the plan maps it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from soakwatch.core.suggest import hint
from soakwatch.sources.mapping import check_mapping
from soakwatch.sources.tables.columns import naming
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.options import Meaning, Options
from soakwatch.sources.tables.units import into
from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import object_text

FIELD = re.compile(r"\{([^{}]+)\}")


class ColumnMap(BaseModel):
    """The meaning of a column. ``{Name}`` in a label is replaced by the cell of column ``Name`` in the same line."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: Annotated[str, Field(description="metric of the catalogue")]
    labels: Annotated[dict[str, str], Field(default_factory=dict, description="labels of the object")]
    unit: Annotated[str | None, Field(default=None, description="unit of its cells; default: what the header names")]
    total: Annotated[bool, Field(default=False, description="add up the lines of one time")]

    @model_validator(mode="after")
    def _possible(self) -> Self:
        check_mapping(self.metric, self.labels, None)
        if self.unit is not None:
            into(self.unit, BY_NAME[self.metric].unit, self.metric)
        return self


@dataclass(frozen=True, slots=True)
class PlacedColumn:
    """A column to read: its index and meaning, the factor to the metric's unit, and how its objects are named
    (``fields`` are the columns that labels need)."""

    index: int
    name: str
    metric: str
    scale: float
    labels: Mapping[str, str]
    fields: Mapping[str, int]
    fixed: str | None  # the object, if it is the same in all lines
    total: bool

    def object(self, cells: Sequence[str]) -> str:
        """The object of a line."""
        if self.fixed is not None:
            return self.fixed
        filled = {
            label: FIELD.sub(lambda match: cells[self.fields[match[1]]].strip(), text)[:200]
            for label, text in self.labels.items()
        }
        return object_text(**filled)


def column_index(columns: Sequence[str], name: str, who: str) -> int:
    """The index of a column by name or by number from 1 on. Raises DataError, with the nearest name."""
    if name in columns:
        return columns.index(name)
    if name.isdecimal() and 1 <= int(name) <= len(columns):
        return int(name) - 1
    raise DataError(f"{who}: there is no column {name!r}{hint(name, columns)}")


def mapped(columns: Sequence[str], wanted: Mapping[str, ColumnMap], target: str) -> tuple[PlacedColumn, ...]:
    """The columns that the plan maps. Raises DataError."""
    placed = []
    for name, meaning in wanted.items():
        index = column_index(columns, name, "columns")
        entry = BY_NAME[meaning.metric]
        labels = {label: meaning.labels[label] for label in entry.labels}
        fields = {
            field: column_index(columns, field, f"columns: {name}")
            for text in labels.values()
            for field in FIELD.findall(text)
        }
        options = Options(meanings={columns[index]: Meaning(meaning.metric, labels, meaning.unit)})
        named = naming(columns[index], target, options, {})
        fixed = None if fields else named.object
        placed.append(
            PlacedColumn(
                index, columns[index], meaning.metric, named.scale or 1.0, labels, fields, fixed, meaning.total
            )
        )
    return tuple(placed)


def guessed(
    columns: Sequence[str], left: frozenset[int], target: str
) -> tuple[tuple[PlacedColumn, ...], tuple[str, ...]]:
    """The columns identified by their names, and notes on these and on those not sampled."""
    placed: dict[tuple[str, str], PlacedColumn] = {}
    unknown, unsure = [], []
    for index, column in enumerate(columns):
        if index in left:
            continue
        named = naming(column, target, Options(), {})
        if named.imported:
            unknown.append(column)
        elif named.scale is None:
            unsure.append(column)
        else:
            key = named.metric, named.object
            placed.setdefault(
                key, PlacedColumn(index, column, named.metric, named.scale, {}, {}, named.object, total=False)
            )
    notes = [f"{column.name} is {column.metric}" for column in placed.values()]
    if unknown:
        notes.append(f"not sampled, because their names are unknown: {', '.join(unknown[:12])} (map them in columns)")
    if unsure:
        notes.append(f"not sampled, because their headers name no unit: {', '.join(unsure[:12])} (map them in columns)")
    return tuple(placed.values()), tuple(notes)
