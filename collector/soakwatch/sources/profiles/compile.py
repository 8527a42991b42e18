"""From a profile's shape to its model: expressions parsed, names, labels and metrics checked, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from soakwatch.core.regex import Pattern
from soakwatch.core.suggest import hint
from soakwatch.core.yaml import Document, Path, Problem
from soakwatch.sources.profiles.expression import SECONDS, Expression
from soakwatch.sources.profiles.expression import parse as parse_expression
from soakwatch.sources.profiles.label_template import Template
from soakwatch.sources.profiles.label_template import parse as parse_template
from soakwatch.sources.profiles.profile_keys import ColumnShape, GroupShape, LineShape
from soakwatch.sources.profiles.profile_model import Condition, Join, MetricGroup, MetricLine, TableColumn
from soakwatch_model.metric import BY_NAME, COUNTER, Metric

NUMBER = "number"
GIVEN: Mapping[str, frozenset[str]] = {"process": frozenset({"process", "instance"})}
"""Labels that a watch fills by itself; ``process`` may be given: it is the name that the watch looks for."""
NAMED = "process"


@dataclass(slots=True)
class Checker:
    """Turns the groups of one file into the model and notes what is wrong with them."""

    document: Document
    problems: list[Problem] = field(default_factory=list)

    def group(self, path: Path, name: str, shape: GroupShape) -> MetricGroup:
        """A group; problems are noted and leave a part of it out."""
        columns = tuple(self._column(key, column) for key, column in shape.columns.items())
        scalars = tuple(self._column(key, column) for key, column in shape.scalars.items())
        known = set(shape.columns) | set(shape.scalars)
        for twice in shape.columns.keys() & shape.scalars.keys() | shape.joins.keys() & known:
            self._tell(path, f"the name {twice!r} is given twice in the group {name}: rename one")
        joins = []
        for key, join in shape.joins.items():
            index = self._template((*path, "joins", key, "index"), join.index, known)
            if index is not None:
                joins.append(Join(self._column(key, join), index))
            known.add(key)
        if not columns and not scalars:
            self._tell(path, f"the group {name} has neither columns nor scalars: there is nothing to read")
        if shape.watch == "process" and not columns:
            self._tell(path, f"the group {name} watches processes: it needs columns whose index is the pid")
        if shape.watch == "process" and joins:
            self._tell((*path, "joins"), "a group that watches processes cannot join another table")
        lines = [
            self._line((*path, "metrics", number), line, shape, known, counters=self._widths(shape))
            for number, line in enumerate(shape.metrics)
        ]
        return MetricGroup(
            name,
            columns,
            scalars,
            tuple(joins),
            self._conditions((*path, "where"), shape.where, known),
            self._conditions((*path, "where_not"), shape.where_not, known),
            tuple(shape.unless),
            shape.watch,
            shape.every,
            shape.refresh,
            shape.changed,
            shape.optional,
            tuple(line for line in lines if line is not None),
            self.document.where(path),
            shape.returning,
        )

    def _widths(self, shape: GroupShape) -> Mapping[str, int | None]:
        return {key: column.bits for key, column in {**shape.columns, **shape.scalars, **shape.joins}.items()}

    def _column(self, name: str, shape: ColumnShape) -> TableColumn:
        invalid = frozenset(str(reading) for reading in shape.invalid)
        return TableColumn(name, tuple(shape.oid), shape.bits, invalid, shape.form, shape.per == "row")

    def _conditions(self, path: Path, given: Mapping[str, Pattern], known: set[str]) -> tuple[Condition, ...]:
        built = []
        for name, pattern in given.items():
            if name not in known and not re.fullmatch(r"index(\.-?\d+|\.text)?", name):
                self._tell((*path, name), f"unknown name {name!r}{hint(name, {*known, 'index'})}", key=True)
            built.append(Condition(name, None if pattern.pattern == NUMBER else pattern))
        return tuple(built)

    def _template(self, path: Path, words: str, known: Iterable[str]) -> Template | None:
        try:
            return parse_template(words, known)
        except ValueError as error:
            self._tell(path, str(error))
            return None

    def _line(
        self, path: Path, shape: LineShape, group: GroupShape, known: set[str], *, counters: Mapping[str, int | None]
    ) -> MetricLine | None:
        metric = BY_NAME.get(shape.metric)
        if metric is None:
            self._tell((*path, "metric"), f"unknown metric {shape.metric!r}{hint(shape.metric, BY_NAME)}")
            return None
        change = shape.of == "change"
        try:
            value = parse_expression(str(shape.value), {*known, SECONDS} if change else known)
        except ValueError as error:
            self._tell((*path, "value"), f"value: {error}")
            return None
        self._check(path, shape, metric, value, counters)
        labels = self._labels(path, shape, group, metric, known)
        if labels is None:
            return None
        values, default = None, None
        if shape.values is not None:
            values = {key: number for key, number in shape.values.items() if key != "default"}
            default = shape.values.get("default")
        return MetricLine(
            shape.metric,
            value,
            shape.scale,
            labels,
            shape.over,
            change,
            values,
            default,
            shape.match,
            shape.optional,
            self.document.where(path),
            self._conditions((*path, "where"), shape.where, set(known)),
            shape.lost,
        )

    def _check(
        self, path: Path, shape: LineShape, metric: Metric, value: Expression, counters: Mapping[str, int | None]
    ) -> None:
        change = shape.of == "change"
        wide = all(counters.get(name) == 64 for name in value.names) and set(value.text) <= _SUM
        if metric.kind == COUNTER and (change or shape.over or not (value.plain or wide)):
            text = f"{metric.name} is a counter: it is one column as the device keeps it, or a sum of 64-bit columns"
            self._tell((*path, "value"), text)
        if (shape.values is not None or shape.match is not None) and not value.plain:
            self._tell((*path, "value"), "'values' and 'match' read one column: the value must be a name")
        if change and (shape.values is not None or shape.match is not None):
            self._tell(path, "a change of what 'values' or 'match' read has no meaning: remove one")
        if shape.match is not None and shape.match.groups < 1:
            self._tell((*path, "match"), "the regular expression has no group: put ( ) around the number")
        if shape.lost is not None and (change or shape.over or metric.kind == COUNTER):
            self._tell((*path, "lost"), "'lost' is the reading of a single gauge: remove 'of', 'over' or 'lost'")
        if shape.scale == 0:
            self._tell((*path, "scale"), "a scale of 0 makes every value 0")

    def _labels(
        self, path: Path, shape: LineShape, group: GroupShape, metric: Metric, known: set[str]
    ) -> tuple[tuple[str, Template], ...] | None:
        given = GIVEN.get(group.watch or "", frozenset())
        needed = [label for label in metric.labels if label not in given]
        names = known if shape.over is None else set()
        extra = [NAMED] if NAMED in given and NAMED in shape.labels else []
        for label in shape.labels:
            if label not in needed and label not in extra:
                text = "is filled by the watch" if label in given else f"is not a label of {metric.name}"
                self._tell((*path, "labels", label), f"{label!r} {text}{hint(label, needed)}", key=True)
        missing = [label for label in needed if label not in shape.labels]
        if missing:
            self._tell(path, f"{metric.name} needs the label {', '.join(missing)}")
            return None
        built = []
        for label in (*extra, *needed):
            template = self._template((*path, "labels", label), str(shape.labels[label]), names)
            if template is None:
                return None
            built.append((label, template))
        return tuple(built)

    def _tell(self, path: Path, words: str, *, key: bool = False) -> None:
        self.problems.append(self.document.problem(path, words, key=key))


_SUM = frozenset("abcdefghijklmnopqrstuvwxyz_0123456789+ ")
