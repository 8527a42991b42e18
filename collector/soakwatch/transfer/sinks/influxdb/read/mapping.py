"""Maps foreign measurements and fields to metrics of the catalogue, for Telegraf and by a file.

A file of ``--map`` has the form of ``telegraf.yaml`` next to this one, and takes precedence::

    app:                                  # the measurement
      - fields: [heap_used]               # one field, or several that are added up ('-field' is taken away)
        metric: process.memory.usage      # of the catalogue, or imported.NAME
        unit: MB                          # of the field; or scale: 0.01
        labels: {process: "{service}", instance: "{pid|=0}"}
        where: {env: "prod*"}             # only these tags
        target: "{host}"
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from soakwatch.core.errors import PlanError
from soakwatch.core.suggest import hint
from soakwatch.core.validation import problems
from soakwatch.core.yaml import Document, Problem, parse, plan_error, read_text
from soakwatch.sources.tables.columns import IMPORTED
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.options import meaning
from soakwatch.sources.tables.units import into, unit
from soakwatch_model.metric import BY_NAME, GAUGE
from soakwatch_model.roles import Role

ANY = "*"
HOST = "{agent_host|host|source|=host}"
_SHIPPED = Path(__file__).with_name("telegraf.yaml")
_PLACE = re.compile(r"\{([^{}]*)\}")
_SUFFIXES = (".yaml", ".yml")


class Entry(BaseModel):
    """One mapping: which fields make a reading, and of which series."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    fields: Annotated[tuple[str, ...], Field(min_length=1, description="added up; '-field' is taken away")]
    metric: Annotated[str, Field(description="metric of the catalogue, or imported.NAME")]
    labels: Annotated[
        dict[str, str], Field(default_factory=dict, description="labels of the object; {tag} is the value of a tag")
    ]
    where: Annotated[dict[str, str], Field(default_factory=dict, description="globs of tags; 'a|b' is either tag")]
    target: Annotated[str, Field(default=HOST, description="name of the target")]
    role: Annotated[Role | None, Field(default=None, description="role of it")]
    unit: Annotated[str | None, Field(default=None, description="unit of the field, such as % or KB")]
    scale: Annotated[float | None, Field(default=None, description="factor to the metric's unit, instead of unit")]
    one: Annotated[tuple[str, ...], Field(default=(), description="values that are 1; all others are 0")]
    kind: Annotated[Literal["gauge", "counter", "state"] | None, Field(default=None, description="of imported.NAME")]
    growth: Annotated[Literal["up", "down"] | None, Field(default=None, description="bad direction of imported.NAME")]

    @model_validator(mode="after")
    def _possible(self) -> Self:
        known = BY_NAME.get(self.metric)
        if known is None and not self.metric.startswith(IMPORTED):
            raise ValueError(f"unknown metric {self.metric!r}{hint(self.metric, BY_NAME)}")
        if known is not None:
            for label in self.labels:
                if label not in known.labels:
                    raise ValueError(
                        f"{self.metric} has no label {label!r}; its labels: {', '.join(known.labels) or 'none'}"
                    )
            if self.kind is not None or self.growth is not None:
                raise ValueError(f"{self.metric} is in the catalogue, which knows its kind and growth: leave them out")
            if self.unit is not None:
                into(self.unit, known.unit, self.metric)
        if self.scale is not None and (self.unit is not None or not math.isfinite(self.scale) or self.scale == 0):
            raise ValueError("scale is a number other than 0, and replaces unit")
        return self

    @property
    def factor(self) -> float:
        """Factor from the field's unit to the metric's."""
        if self.scale is not None:
            return self.scale
        if self.unit is None:
            return 1.0
        known = BY_NAME.get(self.metric)
        return unit(self.unit).scale if known is None else into(self.unit, known.unit, self.metric)

    @property
    def trait(self) -> tuple[str, str, str | None]:
        """Unit, kind and growth of the metric."""
        known = BY_NAME.get(self.metric)
        if known is not None:
            return known.unit, known.kind, known.growth
        return unit(self.unit).name if self.unit else "{unit}", self.kind or GAUGE, self.growth

    def fits(self, tags: Mapping[str, str]) -> bool:
        """Whether the entry applies to a set of tags."""
        return all(
            any(name in tags and fnmatchcase(tags[name], glob) for name in names.split("|"))
            for names, glob in self.where.items()
        )

    def names(self) -> Iterator[tuple[str, float]]:
        """The fields, each with 1 (added) or -1 (subtracted)."""
        for name in self.fields:
            yield (name[1:], -1.0) if name.startswith("-") and len(name) > 1 else (name, 1.0)


@dataclass(frozen=True, slots=True)
class FieldMap:
    """Entries by measurement, those of ``*`` for all; the first one that makes a series wins."""

    entries: Mapping[str, tuple[Entry, ...]]

    def of(self, measurement: str) -> tuple[Entry, ...]:
        """The entries for a measurement, most specific first."""
        return (*self.entries.get(measurement, ()), *self.entries.get(ANY, ()))


def mapping_of(given: Sequence[str]) -> FieldMap:
    """The ``given`` mappings, then those for Telegraf. Given are files, or texts
    ``MEASUREMENT.FIELD=METRIC[,LABEL=VALUE][:UNIT]``.

    Raises DataError that names the place in the file, or the option.
    """
    parts = [*(_given(item) for item in given), _read(_SHIPPED)]
    every: dict[str, list[Entry]] = {}
    for part in parts:
        for measurement, entries in part.items():
            every.setdefault(measurement, []).extend(entries)
    return FieldMap({name: tuple(entries) for name, entries in every.items()})


def _given(text: str) -> dict[str, list[Entry]]:
    if "=" not in text or (text.lower().endswith(_SUFFIXES) and Path(text).exists()):
        if not text.lower().endswith(_SUFFIXES):
            raise DataError(f"--map {text}: write MEASUREMENT.FIELD=METRIC, or name a file that ends in .yaml")
        return _read(Path(text))
    column, meant = meaning(text)
    measurement, dot, name = column.rpartition(".")
    if not dot or not measurement or not name:
        raise DataError(f"--map {text}: write MEASUREMENT.FIELD=METRIC, such as app.heap=process.memory.usage:MB")
    try:
        entry = Entry.model_validate(
            {"fields": (name,), "metric": meant.metric, "labels": dict(meant.labels), "unit": meant.unit}
        )
    except ValidationError as error:
        reason = str(error.errors()[0].get("ctx", {}).get("error", error.errors()[0]["msg"]))
        raise DataError(f"--map {text}: {reason}") from None
    return {measurement: [entry]}


def _read(path: Path) -> dict[str, list[Entry]]:
    try:
        document = parse(read_text(path), str(path))
        return _entries(document)
    except PlanError as error:
        raise DataError(str(error)) from None


def _entries(document: Document) -> dict[str, list[Entry]]:
    """The entries of a file by measurement. Raises PlanError with every problem."""
    wrong: list[Problem] = []
    entries_of: dict[str, list[Entry]] = {}
    data = document.data if isinstance(document.data, dict) else {}
    if not data:
        wrong.append(document.problem((), "expected measurements, each with a list of entries"))
    for measurement, entries in data.items():
        entries_of[measurement] = []
        if not isinstance(entries, list):
            wrong.append(document.problem((measurement,), f"{measurement}: expected a list of entries"))
            continue
        for number, entry in enumerate(entries):
            try:
                entries_of[measurement].append(Entry.model_validate(entry))
            except ValidationError as error:
                wrong += problems(document, (measurement, number), Entry, error)
    if wrong:
        raise plan_error(document.origin, wrong)
    return entries_of


def filled(template: str, tags: Mapping[str, str]) -> str | None:
    """Fill tag values into a template; None if one of them is missing.

    >>> filled("{pid|=0}", {}), filled("{cpu#cpu}", {"cpu": "cpu3"}), filled("{a|b}:{c}", {"b": "x"})
    ('0', '3', None)
    """
    missing = False

    def put(match: re.Match[str]) -> str:
        nonlocal missing
        for choice in match[1].split("|"):
            if choice.startswith("="):
                return choice[1:]
            name, _, before = choice.partition("#")
            if name in tags:
                return tags[name].removeprefix(before)
        missing = True
        return ""

    text = _PLACE.sub(put, template)
    return None if missing else text
