"""The ready questions: one file of SQL each in the folder ``questions``, asked with filters.

The first line of a file is its title. ``needs:`` names an option without which it cannot be asked, ``metrics:`` what is
asked where no metric is named ($drops: the counters that the rule ``drops`` judges), ``in unit:`` the columns whose
values are in the unit that the column ``unit`` names. Rows with a text in the column ``_unknown`` are no part of the
answer: what is not known is told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path

from soakwatch.core.labels import has_labels
from soakwatch.core.registry import rule_class
from soakwatch.core.suggest import hint
from soakwatch.transfer.archive._database import NO_FILTERS, Answer, Database, Filters, Parameters, opened
from soakwatch.transfer.archive.state import Archive, ArchiveError, load_whole
from soakwatch.transfer.archive.tables import INDEX, READINGS, TABLES, Value

UNIT = "unit"
"""The column of the unit of those that are in the unit of their row."""
_UNKNOWN = "_unknown"
_DROPS, _RULE_OF_DROPS = "$drops", "drops"
_RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Question:
    """A ready question: its name, title and SQL; see the module for the rest."""

    name: str
    title: str
    sql: str
    needs: str
    metrics: tuple[str, ...]
    in_unit: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for: releases and ``others`` (of --not-in) as they were named, a trailing * is any rest; the rest
    as in ``Filters``."""

    releases: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    filters: Filters = NO_FILTERS


@dataclass(frozen=True, slots=True)
class Found:
    """The answer: columns, those of them that are in the unit of their row, and rows as they come. ``unknown`` gets the
    sentences on what could not be answered while the rows are read."""

    columns: tuple[str, ...]
    in_unit: frozenset[str]
    rows: Iterator[tuple[Value, ...]]
    unknown: list[str]


@cache
def questions() -> dict[str, Question]:
    """The ready questions by their names."""
    folder = files("soakwatch.transfer.archive").joinpath("questions")
    names = sorted(file.name.removesuffix(".sql") for file in folder.iterdir() if file.name.endswith(".sql"))
    return {name: _read(name, folder.joinpath(f"{name}.sql").read_text(encoding="utf-8")) for name in names}


def _read(name: str, text: str) -> Question:
    head = [line.removeprefix("-- ") for line in text.splitlines() if line.startswith("-- ")]
    said = dict(re.findall(r"^-- (needs|metrics|in unit): (.+)$", text, re.MULTILINE))

    def words(key: str) -> tuple[str, ...]:
        return tuple(word.strip() for word in said.get(key, "").split(",") if word.strip())

    return Question(name, head[0], text, said.get("needs", ""), words("metrics"), words("in unit"))


@contextmanager
def answer(folder: Path, question: Question, asked: Asked) -> Iterator[Found]:
    """What the archive in a folder answers. Raises ArchiveError."""
    if question.needs == "--metric" and not asked.filters.metrics:
        raise ArchiveError(f"query {question.name} asks about a metric: name it, such as --metric 'process.memory.*'")
    if asked.others and "$others" not in question.sql:
        raise ArchiveError(f"--not-in is for a question that compares releases (query grew), not for {question.name}")
    filters = asked.filters
    if not filters.metrics:
        filters = replace(filters, metrics=_metrics(question))
    if filters.phase is None:
        filters = replace(filters, phase="")
    with _database(folder, asked, filters, readings=False) as (database, parameters):
        used = {name: value for name, value in parameters.items() if f"${name}" in question.sql}
        answered = database.ask(question.sql, used)
        yield _found(answered, question.in_unit)


@contextmanager
def answer_sql(folder: Path, statement: str, asked: Asked) -> Iterator[Found]:
    """What the archive in a folder answers to a SELECT of the user; what ``asked`` leaves out the tables do not have.

    Raises ArchiveError, also for a statement that would do more than read the tables.
    """
    if asked.others:
        raise ArchiveError("--not-in is for the ready question grew, not for --sql")
    readings = re.search(rf"\b{READINGS.name}\b", statement, re.IGNORECASE) is not None
    with _database(folder, asked, asked.filters, readings=readings) as (database, _):
        database.require_select(statement)
        yield _found(database.ask(statement), ())


def _found(answered: Answer, in_unit: Sequence[str]) -> Found:
    unknown: list[str] = []
    if _UNKNOWN not in answered.columns:
        return Found(answered.columns, frozenset(in_unit), answered.rows, unknown)
    place = answered.columns.index(_UNKNOWN)
    columns = (*answered.columns[:place], *answered.columns[place + 1 :])

    def known() -> Iterator[tuple[Value, ...]]:
        for row in answered.rows:
            if row[place] is None:
                yield (*row[:place], *row[place + 1 :])
            else:
                unknown.append(str(row[place]))

    return Found(columns, frozenset(in_unit), known(), unknown)


def _metrics(question: Question) -> tuple[str, ...]:
    if question.metrics == (_DROPS,):
        return tuple(rule_class(_RULE_OF_DROPS).metrics)
    return question.metrics


@contextmanager
def _database(folder: Path, asked: Asked, filters: Filters, *, readings: bool) -> Iterator[tuple[Database, Parameters]]:
    """The tables with the wanted rows, and the parameters of a question."""
    archive = load_whole(folder, frozenset(INDEX))
    releases, others = _releases(archive, asked)
    both = (*releases, *others) if releases else ()
    with opened(archive, replace(filters, releases=both), readings=readings) as database:
        yield database, {"releases": releases, "others": others}


def _releases(archive: Archive, asked: Asked) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The releases that were named, as they are in the archive. Raises ArchiveError for one that it has no run of, and
    for other names that it does not have."""
    filters = asked.filters
    with opened(archive, NO_FILTERS) as database:
        known = database.releases()
        for what, names, column in (("device", filters.devices, "device"), ("role", filters.roles, "role")):
            there = database.there(column) if names else ()
            for name in names:
                if not any(sign in name for sign in "*?[") and name not in there:
                    raise ArchiveError(f"the archive {archive.folder} has no {what} {name!r}{hint(name, there)}")
        if filters.phase:
            phases = database.phases()
            if filters.phase not in phases:
                raise ArchiveError(
                    f"the archive {archive.folder} has no phase {filters.phase!r}{hint(filters.phase, phases)}"
                )

    def named(words: tuple[str, ...]) -> tuple[str, ...]:
        found: list[str] = []
        for word in words:
            fits = [name for name in known if has_labels({_RELEASE: name}, {_RELEASE: word})]
            if not fits:
                raise ArchiveError(f"the archive {archive.folder} has no run of release {word!r}{hint(word, known)}")
            found += fits
        return tuple(dict.fromkeys(found))

    return named(asked.releases), named(asked.others)


def nights(text: str) -> tuple[str, str]:
    """The first and the last night of a text: DAY, FIRST..LAST, FIRST.., ..LAST. Raises ArchiveError.

    >>> nights("2026-11-28"), nights("2026-11-01.."), nights("..2026-11-30")
    (('2026-11-28', '2026-11-28'), ('2026-11-01', ''), ('', '2026-11-30'))
    """
    first, dots, last = text.partition("..")
    for day in (first, last):
        try:
            if day:
                date.fromisoformat(day)
        except ValueError:
            raise ArchiveError(
                f"--night {text!r}: write a day such as 2026-11-28, or two of them with .. between"
            ) from None
    return (first, last) if dots else (first, first)


def table_lines() -> list[tuple[str, str, str, str]]:
    """Every table with its columns: table, column, type, and what it holds."""
    from soakwatch.transfer.archive.tables import NIGHT

    lines = [
        (table.name, column.name, column.kind, column.words) for table in TABLES for column in (*table.columns, NIGHT)
    ]
    return [(table, name, "day" if name == NIGHT.name else kind, words) for table, name, kind, words in lines]
