"""The rows of one group on one device: which OID each column has, which rows count, and what they are called."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from sys import intern

from soakwatch.sources.profiles.device_survey import NameSource
from soakwatch.sources.profiles.evaluate import valid
from soakwatch.sources.profiles.label_template import Template, index_part
from soakwatch.sources.profiles.profile_model import Condition, Join, MetricGroup, MetricLine, TableColumn
from soakwatch.sources.profiles.value import Value, number, text
from soakwatch_model.sample import object_text

WalkedValues = Mapping[str, Mapping[str, Value]]
"""The values of each walked OID by the rest of their OIDs."""


def by_column(bases: Iterable[str], values: Mapping[str, Value]) -> dict[str, dict[str, Value]]:
    """Walked values by column and index."""
    tree: dict[str, dict[str, Value]] = {base: {} for base in bases}
    lengths = sorted({base.count(".") for base in tree})
    for oid, value in values.items():
        arcs = oid.split(".")
        for length in lengths:
            column = tree.get(".".join(arcs[: length + 1]))
            if column is not None and len(arcs) > length + 1 and "".join(arcs).isdecimal():
                column[".".join(arcs[length + 1 :])] = value
    return tree


def index_key(index: str) -> tuple[int, ...]:
    """Rows in the order of the device, by number."""
    return tuple(int(arc) for arc in index.split(".") if arc)


@dataclass(slots=True)
class GroupRows:
    """The rows of a group; made of what was walked, then of what the joins bring."""

    group: MetricGroup
    tree: WalkedValues
    scalars: Mapping[str, Value]
    kept: Collection[str] = ()  # OIDs that an earlier survey chose among several
    columns: dict[str, TableColumn] = field(default_factory=dict)
    places: dict[str, NameSource] = field(default_factory=dict)  # of the scalars that the device has
    choices: dict[str, str] = field(default_factory=dict)  # column -> the OID that this device has
    indexes: list[str] = field(default_factory=list)
    joined: dict[str, dict[str, NameSource]] = field(default_factory=dict)  # join -> index of the row -> cell
    joined_values: dict[str, Value] = field(default_factory=dict)  # values of joins by OID
    rendered: dict[str, dict[str, str]] = field(default_factory=dict)  # template -> index -> text, once all is walked
    doubted: set[str] = field(default_factory=set)  # OIDs that stand at 0 while a twin of theirs counts
    active: set[str] = field(default_factory=set)  # columns of several OIDs that count in some row
    distrusted: set[str] = field(default_factory=set)  # columns of which that is so, and which count in no row

    def settle(self, before: Mapping[tuple[str, str], str]) -> None:
        """Chooses among alternatives (what was chosen ``before`` stays, if it is there) and lists the rows."""
        rows: dict[str, None] = {}
        self.columns = {column.name: column for column in self.group.columns}
        for column in self.group.columns:
            kept = before.get((self.group.name, column.name))
            bases = ((kept,) if kept in column.oids else ()) + column.oids
            chosen = next((base for base in bases if base and self.tree.get(base)), column.oids[0])
            self.choices[column.name] = chosen
            if column.per_row and kept in column.oids:
                earlier = column.oids[: column.oids.index(kept)]
                self.distrusted |= {base for base in earlier if self.tree.get(base) and not self._counts(base)}
            if column.per_row:
                self.active |= {base for base in column.oids if self._counts(base)}
            for base in column.oids if column.per_row else (chosen,):
                rows |= dict.fromkeys(self.tree.get(base, ()))
        for scalar in self.group.scalars:
            having = [oid for oid in scalar.oids if oid in self.scalars]
            oid = next((oid for oid in having if oid in self.kept), having[0] if having else None)
            if oid is not None:
                self.places[scalar.name] = NameSource(scalar.name, oid, scalar)
        if self.group.columns:
            self.indexes = sorted(rows, key=index_key)
        elif self.places:
            self.indexes = [""]

    def contradictions(self) -> list[str]:
        """The OIDs that say 0 in a row where a later alternative of their column is above 0.

        Some agents have 64-bit counters that never count beside 32-bit counters that do. A column for which an earlier
        survey took the later alternative is decided already and not listed.
        """
        found: list[str] = []
        for column in self.group.columns:
            for number_of, base in enumerate(column.oids if column.per_row else ()):
                later = column.oids[number_of + 1 :]
                found += [
                    f"{base}.{index}"
                    for index, value in self.tree.get(base, {}).items()
                    if value == 0
                    and any(_above_zero(self.tree.get(other, {}).get(index)) for other in later)
                    and not any(f"{other}.{index}" in self.kept for other in later)
                ]
        return found

    def doubt(self, suspects: Iterable[str], again: Mapping[str, Value]) -> None:
        """Takes second readings of the contradictions: what is still 0 is not believed."""
        self.doubted |= {oid for oid in suspects if again.get(oid) == 0}
        for column in self.group.columns if self.doubted else ():
            for base in column.oids if column.per_row else ():
                wrong = any(f"{base}.{index}" in self.doubted for index in self.tree.get(base, ()))
                if wrong and not self._counts(base):
                    self.distrusted.add(base)
            believed = [base for base in column.oids if self.tree.get(base) and base not in self.distrusted]
            if self.choices[column.name] in self.distrusted and believed:
                self.choices[column.name] = believed[0]

    def _counts(self, base: str) -> bool:
        return any(_above_zero(value) for value in self.tree.get(base, {}).values())

    def cell(self, name: str, index: str) -> NameSource | None:
        """Where a name is read in a row; None if the device does not have it there, or has a counter that is not
        believed."""
        column = self.columns.get(name)
        if column is None:
            return self.places.get(name) or self.joined.get(name, {}).get(index)
        bases = column.oids if column.per_row else (self.choices[name],)
        having = [base for base in bases if index in self.tree.get(base, ())]
        if not having:
            return None
        if len(bases) == 1:  # nothing to choose from
            oid = intern(f"{having[0]}.{index}")
            doubted = oid in self.doubted and oid in self.kept
            return None if doubted else NameSource(name, oid, column, self._twin(column, having[0], index))
        sound = [base for base in having if _numeric(self.tree[base][index])] if len(having) > 1 else having
        best = next((base for base in sound if f"{base}.{index}" in self.kept), None)
        if best is not None and f"{best}.{index}" in self.doubted:
            return None  # a counter does not change its column: the jump would be read as traffic
        if best is None:
            trusted = (b for b in sound if b not in self.distrusted and f"{b}.{index}" not in self.doubted)
            best = next(trusted, (sound or having)[0])
        return NameSource(name, intern(f"{best}.{index}"), column, self._twin(column, best, index))

    def _twin(self, column: TableColumn, base: str, index: str) -> str | None:
        """The 32-bit counter that stands at 0 beside a 64-bit one that does too, on a device whose 64-bit column never
        counts; None where there is none."""
        if not column.per_row or base in self.active or self.tree[base].get(index) != 0:
            return None
        later = column.oids[column.oids.index(base) + 1 :]
        return next((f"{other}.{index}" for other in later if self.tree.get(other, {}).get(index) == 0), None)

    def value(self, name: str, index: str) -> Value | None:
        """The value of a name in a row."""
        cell = self.cell(name, index)
        if cell is None:
            return None
        if name in self.columns:
            return self.tree[cell.oid[: -len(index) - 1]].get(index)
        return self.scalars.get(cell.oid) if name in self.places else self.joined_values.get(cell.oid)

    def text(self, name: str, index: str) -> str:
        """The text of a name in a row, empty where there is none."""
        cell, value = self.cell(name, index), self.value(name, index)
        if cell is None or value is None or not valid(cell.column, value):
            return ""
        return text(value, cell.column.form)

    def wanted(self, join: Join) -> dict[str, list[str]]:
        """Of each row the OIDs that a join may find its value at."""
        wanted: dict[str, list[str]] = {}
        for index in self.indexes:
            other = join.index.render(index, lambda name, index=index: self.text(name, index))  # type: ignore[misc]
            if other and all(arc.isdigit() for arc in other.split(".")):
                wanted[index] = [f"{oid}.{other}" for oid in join.column.oids]
        return wanted

    def put(self, join: Join, wanted: Mapping[str, Sequence[str]], values: Mapping[str, Value]) -> None:
        """Takes the values of a join."""
        cells = self.joined.setdefault(join.column.name, {})
        for index, oids in wanted.items():
            oid = next((oid for oid in oids if oid in values), None)
            if oid is not None:
                cells[index] = NameSource(join.column.name, oid, join.column)
                self.joined_values[oid] = values[oid]

    def narrow(self) -> None:
        """Drops the rows that the group does not want."""
        self.indexes = [
            index
            for index in self.indexes
            if all(self._holds(condition, index) for condition in self.group.where)
            and not any(self._holds(condition, index) for condition in self.group.where_not)
        ]

    def _holds(self, condition: Condition, index: str) -> bool:
        if condition.name.split(".")[0] == "index":
            words = index_part(index, condition.name)
        else:
            words = self.text(condition.name, index)
        if condition.pattern is not None:
            return condition.pattern.search(words) is not None
        try:
            number(words.encode())
        except ValueError:
            return False
        return True

    def of_line(self, line: MetricLine) -> list[str]:
        """The rows that have a line."""
        if not line.where:
            return self.indexes
        return [index for index in self.indexes if all(self._holds(condition, index) for condition in line.where)]

    def labels(self, line: MetricLine) -> dict[str, dict[str, str]]:
        """The labels of each row for a line: a text that two rows share gets `` #<index>`` from the second on."""
        built: dict[str, dict[str, str]] = {}
        seen: set[tuple[str, ...]] = set()
        for index in self.of_line(line):
            labels = {label: self._render(template, index) for label, template in line.labels}
            if tuple(labels.values()) in seen:
                changing = [label for label, template in line.labels if not _literal(template)]
                for label in changing[:1] or list(labels)[:1]:
                    labels[label] = f"{labels[label]} #{index}"
            seen.add(tuple(labels.values()))
            built[index] = labels
        return built

    def _render(self, template: Template, index: str) -> str:
        known = self.rendered.setdefault(template.text, {})  # the lines of a table have most of their labels in common
        if index not in known:
            known[index] = template.render(index, lambda name: self.text(name, index)) or index or "all"
        return known[index]

    def objects(self, line: MetricLine) -> dict[str, str]:
        """The object of each row for a line."""
        return {index: object_text(**labels) for index, labels in self.labels(line).items()}


def _numeric(value: Value) -> bool:
    if isinstance(value, int):
        return True
    try:
        number(value)
    except ValueError:
        return False
    return True


def _above_zero(value: Value | None) -> bool:
    return isinstance(value, int) and value > 0


def _literal(template: Template) -> bool:
    return all(isinstance(part, str) for part in template.parts)


def columns_of(group: MetricGroup) -> tuple[str, ...]:
    """Every OID that may have to be walked for a group."""
    return tuple(dict.fromkeys(oid for column in group.columns for oid in column.oids))


def scalars_of(group: MetricGroup) -> tuple[str, ...]:
    """Every OID that may have to be got for a group."""
    extra = (group.changed,) if group.changed else ()
    return tuple(dict.fromkeys((*(oid for scalar in group.scalars for oid in scalar.oids), *extra)))
