"""What the columns of a growing table are: as the plan says, or else by their names, as ``soakwatch judge`` takes them.

Live nobody can look at a whole column before its unit is told, so a column whose header names none is left out unless
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
from soakwatch_agent.metric import BY_NAME
from soakwatch_agent.sample import object_text

FIELD = re.compile(r"\{([^{}]+)\}")


class ColumnMap(BaseModel):
    """What one column is. ``{Name}`` in a label stands for the cell of the column ``Name`` in the same line."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: Annotated[str, Field(description="metric of the catalogue")]
    labels: Annotated[dict[str, str], Field(default_factory=dict, description="labels of our object")]
    unit: Annotated[str | None, Field(default=None, description="unit of its cells; default: what the header names")]
    total: Annotated[bool, Field(default=False, description="add up the lines of one time")]

    @model_validator(mode="after")
    def _possible(self) -> Self:
        check_mapping(self.metric, self.labels, None)
        if self.unit is not None:
            into(self.unit, BY_NAME[self.metric].unit, self.metric)
        return self


@dataclass(frozen=True, slots=True)
class Placed:
    """A column that is read: where it stands, what it is, the factor to the metric's unit, and how its objects are
    named (``fields`` are the labels with the columns that they need)."""

    at: int
    name: str
    metric: str
    scale: float
    labels: Mapping[str, str]
    fields: Mapping[str, int]
    fixed: str | None  # the object, where it is the same in all lines
    total: bool

    def object(self, cells: Sequence[str]) -> str:
        """The object that a line is about."""
        if self.fixed is not None:
            return self.fixed
        filled = {
            label: FIELD.sub(lambda match: cells[self.fields[match[1]]].strip(), text)[:200]
            for label, text in self.labels.items()
        }
        return object_text(**filled)


def place(columns: Sequence[str], name: str, who: str) -> int:
    """Where a column is, by its name or its number from 1 on. Raises DataError, with the nearest name."""
    if name in columns:
        return columns.index(name)
    if name.isdecimal() and 1 <= int(name) <= len(columns):
        return int(name) - 1
    raise DataError(f"{who}: there is no column {name!r}{hint(name, columns)}")


def mapped(columns: Sequence[str], wanted: Mapping[str, ColumnMap], target: str) -> tuple[Placed, ...]:
    """The columns that the plan names. Raises DataError."""
    made = []
    for name, meant in wanted.items():
        at = place(columns, name, "columns")
        entry = BY_NAME[meant.metric]
        labels = {label: meant.labels[label] for label in entry.labels}
        fields = {
            field: place(columns, field, f"columns: {name}")
            for text in labels.values()
            for field in FIELD.findall(text)
        }
        told = Options(meanings={columns[at]: Meaning(meant.metric, labels, meant.unit)})
        found = naming(columns[at], target, told, {})
        fixed = None if fields else found.object
        made.append(Placed(at, columns[at], meant.metric, found.scale or 1.0, labels, fields, fixed, meant.total))
    return tuple(made)


def guessed(columns: Sequence[str], left: frozenset[int], target: str) -> tuple[tuple[Placed, ...], tuple[str, ...]]:
    """The columns that their names tell, and what is to be said of those that are left out."""
    made: dict[tuple[str, str], Placed] = {}
    unknown, unsure = [], []
    for at, column in enumerate(columns):
        if at in left:
            continue
        found = naming(column, target, Options(), {})
        if found.imported:
            unknown.append(column)
        elif found.scale is None:
            unsure.append(column)
        else:
            key = found.metric, found.object
            made.setdefault(key, Placed(at, column, found.metric, found.scale, {}, {}, found.object, total=False))
    notes = [f"{one.name} is {one.metric}" for one in made.values()]
    if unknown:
        notes.append(f"not sampled, for their names tell nothing: {', '.join(unknown[:12])} (map them in columns)")
    if unsure:
        notes.append(f"not sampled, for no unit is told: {', '.join(unsure[:12])} (map them in columns)")
    return tuple(made.values()), tuple(notes)
