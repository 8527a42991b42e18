"""From the rows of a group to its series, and to what a poll has to ask for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from sys import intern

from soakwatch.sources.profiles.device_survey import FoldedSeries, NameSource, Survey, SurveyedTable, WantedSeries
from soakwatch.sources.profiles.evaluate import FaultError, level, raw, valid
from soakwatch.sources.profiles.expression import SECONDS, Expression, MissingError, UndefinedError
from soakwatch.sources.profiles.profile_model import MetricGroup, MetricLine
from soakwatch.sources.profiles.rows import GroupRows
from soakwatch.sources.profiles.value import Number, Value
from soakwatch_model.sample import object_text

MAX_GETS_OF_A_COLUMN = 7  # more rows than this are read by a walk of the column ...
MIN_SHARE = 3  # ... if they are at least a third of it
MAX_RETURNING = 5000
INTERFACE = "interface"
LONG_S = 1e9

Key = tuple[str, str]
"""Metric and object of a series."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A group's series before it is known which group brings which: those that answered well, and the others."""

    group: MetricGroup
    sound: tuple[WantedSeries | FoldedSeries, ...]
    faulty: tuple[WantedSeries | FoldedSeries, ...]
    rows: int
    changed: Value | None


def watch_interfaces(rows: GroupRows, globs: Sequence[str]) -> None:
    """Keeps the rows whose label ``interface`` one of the globs matches; a group without that label keeps all."""
    line = next((line for line in rows.group.lines if any(label == INTERFACE for label, _ in line.labels)), None)
    if line is None:
        return
    names = {index: labels[INTERFACE] for index, labels in rows.labels(line).items()}
    rows.indexes = [index for index in rows.indexes if any(fnmatchcase(names[index], glob) for glob in globs)]


def draft(rows: GroupRows, values: Mapping[str, Value]) -> Draft:
    """The series of a group. ``values`` is everything that the device has answered."""
    sound: list[WantedSeries | FoldedSeries] = []
    faulty: list[WantedSeries | FoldedSeries] = []
    objects: dict[tuple[str, ...], Mapping[str, str]] = {}
    cells: dict[str, dict[str, NameSource]] = {}
    chosen: dict[tuple[str, tuple[int, ...]], Expression] = {}
    for line in rows.group.lines:
        key = (
            *(f"{label}={template.text}" for label, template in line.labels),
            *(f"{each.name}~{each.pattern.pattern if each.pattern else ''}" for each in line.where),
        )
        if key not in objects:
            objects[key] = rows.objects(line) if line.over is None else {}
        names = [name for name in line.value.names if name != SECONDS]
        for name in names:
            if name not in cells:
                cells_of_rows = ((index, rows.cell(name, index)) for index in rows.indexes)
                cells[name] = {index: cell for index, cell in cells_of_rows if cell is not None}
        folded: list[tuple[WantedSeries, bool]] = []
        for index in rows.of_line(line):
            object_label = intern(objects[key].get(index, "") if line.over is None else _fixed(line))
            want = WantedSeries(
                line,
                object_label,
                tuple(cells[name][index] for name in names if index in cells[name]),
                line.value,
            )
            standing = _standing(want, values)
            if standing is None:
                continue
            if line.value.firsts:
                want = _chosen(want, values, chosen)
            if line.over is not None:
                folded.append((want, standing))
            else:
                (sound if standing else faulty).append(want)
        if folded:
            fold = FoldedSeries(line, _fixed(line), tuple(want for want, _ in folded))
            (sound if all(standing for _, standing in folded) else faulty).append(fold)
    changed = values.get(rows.group.changed) if rows.group.changed else None
    return Draft(rows.group, tuple(sound), tuple(faulty), len(rows.indexes), changed)


def _fixed(line: MetricLine) -> str:
    return object_text(**{label: template.text for label, template in line.labels})


def _chosen(
    want: WantedSeries, values: Mapping[str, Value], built: dict[tuple[str, tuple[int, ...]], Expression]
) -> WantedSeries:
    """A series computed from those alternatives that the device has; a poll in which one of them is missing has no
    value."""
    there: dict[str, Number | None] = {SECONDS: 1}
    for cell in want.cells:
        value = values.get(cell.oid)
        there[cell.name] = 1 if value is not None and valid(cell.column, value) else None
    line, picks = want.line, want.line.value.picks(there)
    if (line.value.text, picks) not in built:
        built[line.value.text, picks] = line.value.fixed(picks)
    fixed = built[line.value.text, picks]
    return WantedSeries(line, want.object, tuple(cell for cell in want.cells if cell.name in fixed.names), fixed, picks)


def _standing(want: WantedSeries, values: Mapping[str, Value]) -> bool | None:
    """True if the device answers with a value, False if with nonsense, None if it does not answer."""
    try:
        if want.line.change:
            # The counters since their begin stand for a change: those that never moved will bring no value.
            want.value.run({**raw(want, values), SECONDS: LONG_S})
        else:
            level(want, values)
    except (MissingError, UndefinedError):
        return None
    except FaultError:
        return False
    return True


def share_out(drafts: Sequence[Draft], totals: Mapping[str, int]) -> list[SurveyedTable]:
    """The tables, each series in one of them: of those that bring it in the first that answered well, or else in the
    first."""
    owner: dict[Key, int] = {}
    for number, each in enumerate(part for d in drafts for part in d.sound):
        owner.setdefault((each.line.metric, each.object), number)
    taken = set(owner)
    tables, number = [], 0
    for one_draft in drafts:
        kept: list[WantedSeries | FoldedSeries] = []
        for part in one_draft.sound:
            if owner[part.line.metric, part.object] == number:
                kept.append(part)
            number += 1
        for part in one_draft.faulty:
            if (part.line.metric, part.object) not in taken:
                taken.add((part.line.metric, part.object))
                kept.append(part)
        tables.append(_table(one_draft, kept, totals))
    return tables


def _table(each: Draft, kept: Iterable[WantedSeries | FoldedSeries], totals: Mapping[str, int]) -> SurveyedTable:
    wants = tuple(part for part in kept if isinstance(part, WantedSeries))
    folds = tuple(part for part in kept if isinstance(part, FoldedSeries))
    gets, walks = asks((*wants, *(row for fold in folds for row in fold.rows)), totals)
    if each.group.changed is not None and each.changed is not None and (gets or walks):
        gets = tuple(dict.fromkeys((*gets, each.group.changed)))
    return SurveyedTable(each.group, wants, folds, gets, walks, each.rows, each.changed)


def with_returning(
    before: Survey | None, tables: Sequence[SurveyedTable], totals: Mapping[str, int]
) -> list[SurveyedTable]:
    """The tables, with series of an earlier survey that this one may miss without their being gone.

    These are series of groups whose rows come back (sessions of routing: while one is down its row is not there), and
    series that can be lost (light: that a survey does not find it is the reading that matters).
    """
    result = list(tables)
    brought = {(part.line.metric, part.object) for table in tables for part in table.parts}
    for old in before.tables if before is not None else ():
        waited = [want for want in old.wants if old.group.returning or want.line.lost is not None]
        gone = [want for want in waited if (want.line.metric, want.object) not in brought][:MAX_RETURNING]
        if not gone:
            continue
        index = next((i for i, table in enumerate(result) if table.group is old.group), None)
        now = result[index] if index is not None else replace(old, wants=(), folds=(), gets=(), walks=(), rows=0)
        wants = (*now.wants, *gone)
        gets, walks = asks(wants, totals)
        away = frozenset(oid for want in gone for oid in want.oids)
        table = replace(now, wants=wants, gets=gets, walks=walks, away=away)
        result = [*result, table] if index is None else [*result[:index], table, *result[index + 1 :]]
    return result


def asks(wants: Iterable[WantedSeries], totals: Mapping[str, int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """OIDs to get one by one, and columns to walk, for some series; ``totals`` counts the rows of each column."""
    by_base: dict[str, dict[str, None]] = {}
    gets: dict[str, None] = {}
    for want in wants:
        for cell in want.cells:
            for oid in (cell.oid,) if cell.twin is None else (cell.oid, cell.twin):
                base = next((base for base in cell.column.oids if oid.startswith(base + ".")), None)
                if base is None or base not in totals:
                    gets[oid] = None
                else:
                    by_base.setdefault(base, {})[oid] = None
    walks = []
    for base, oids in by_base.items():
        if len(oids) > MAX_GETS_OF_A_COLUMN and len(oids) * MIN_SHARE >= totals[base]:
            walks.append(base)
        else:
            gets |= oids
    return tuple(gets), tuple(walks)
