"""A record's data besides its readings, as tables: polls, events, phases, findings, faults, sources, and the run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from soakwatch.record import RecordView, finding_to_json
from soakwatch.record.follow import Tail
from soakwatch.record.model import OUTCOMES, source_label
from soakwatch_model.finding import Finding

Type = Literal["text", "time", "float", "int"]
Cell = str | int | float | None
Rows = Iterator[tuple[Cell, ...]]


@dataclass(frozen=True, slots=True)
class SmallTable:
    """One such table: its columns with their types (time is UTC ns), and its rows from a record."""

    name: str
    columns: tuple[tuple[str, Type], ...]
    rows: Callable[[RecordView], Rows]


def _polls(view: RecordView) -> Rows:
    sources = {source.id: source for source in view.sources()}
    labels = {source.id: source_label(source, sources.values()) for source in sources.values()}
    roles = view.roles()
    errors: dict[int, str] = {}
    tail = Tail(view.path, lambda _: False)
    more = True
    while more:
        news = tail.news()
        errors.update(news.errors)
        more = news.more
        for batch in news.batches:
            if batch.source not in sources:
                continue
            target = sources[batch.source].target
            polls = batch.polls
            for due_ns, start_ns, lasted, outcome, error in zip(
                polls.due_ns.tolist(),
                polls.start_ns.tolist(),
                batch.duration_ns.tolist(),
                polls.outcome.tolist(),
                polls.error.tolist(),
                strict=True,
            ):
                yield (
                    *(target, roles.get(target, ""), labels[batch.source], due_ns, start_ns, lasted / 1e9),
                    *(OUTCOMES[outcome].value, errors.get(error)),
                )


def _events(view: RecordView) -> Rows:
    for stored in view.events():
        event = stored.event
        yield (
            *(event.kind, event.begin_ns, event.end_ns, event.target, event.object, stored.origin),
            json.dumps(dict(event.detail), ensure_ascii=False) if event.detail else None,
        )


def _phases(view: RecordView) -> Rows:
    for phase in view.phases():
        yield phase.name, phase.window.begin_ns, phase.window.end_ns


def _finding(state: str, finding: Finding, withdrawn_ns: int | None = None) -> tuple[Cell, ...]:
    f = finding
    return (
        *(state, f.rule, f.version, f.outcome.value, f.target, f.metric, f.object, f.sentence),
        *(f.measured, f.limit, f.unit, f.window.begin_ns, f.window.end_ns, withdrawn_ns, finding_to_json(f)),
    )


def _findings(view: RecordView) -> Rows:
    for live in (False, True):
        for finding in view.findings(live=live):
            yield _finding("live" if live else "final", finding)
    for withdrawn_ns, finding in view.withdrawn():
        yield _finding("withdrawn", finding, withdrawn_ns)


def _faults(view: RecordView) -> Rows:
    labels = {source.id: source_label(source, view.sources()) for source in view.sources()}
    for f in view.faults():
        yield f.target, labels.get(f.source, ""), f.metric, f.object, f.text, f.first_ns, f.last_ns, f.count


def _sources(view: RecordView) -> Rows:
    roles = view.roles()
    for s in view.sources():
        label = source_label(s, view.sources())
        yield s.target, s.role or roles.get(s.target, ""), label, s.name, s.interval_ns * 1e-9, int(s.required)


def _lives(view: RecordView) -> Rows:
    for span in view.spans():
        yield span.begin_ns, span.end_ns


def _artifacts(view: RecordView) -> Rows:
    for entry in view.artifact_entries():
        yield entry.name, entry.media, entry.size, entry.time_ns, entry.kind, entry.about


def _facts(view: RecordView) -> Rows:
    yield from view.metas().items()


_SERIES: tuple[tuple[str, Type], ...] = (("target", "text"), ("metric", "text"), ("object", "text"))
TABLES: Sequence[SmallTable] = (
    SmallTable(
        "polls",
        (
            ("target", "text"),
            ("role", "text"),
            ("source", "text"),
            ("due", "time"),
            ("begin", "time"),
            ("duration_s", "float"),
            ("outcome", "text"),
            ("error", "text"),
        ),
        _polls,
    ),
    SmallTable(
        "events",
        (
            ("kind", "text"),
            ("begin", "time"),
            ("end", "time"),
            ("target", "text"),
            ("object", "text"),
            ("origin", "text"),
            ("detail", "text"),
        ),
        _events,
    ),
    SmallTable("phases", (("phase", "text"), ("begin", "time"), ("end", "time")), _phases),
    SmallTable(
        "findings",
        (
            ("state", "text"),
            ("rule", "text"),
            ("version", "int"),
            ("outcome", "text"),
            *_SERIES,
            ("reason", "text"),
            ("measured", "float"),
            ("limit", "float"),
            ("unit", "text"),
            ("begin", "time"),
            ("end", "time"),
            ("withdrawn", "time"),
            ("json", "text"),
        ),
        _findings,
    ),
    SmallTable(
        "faults",
        (
            ("target", "text"),
            ("source", "text"),
            ("metric", "text"),
            ("object", "text"),
            ("text", "text"),
            ("first", "time"),
            ("last", "time"),
            ("count", "int"),
        ),
        _faults,
    ),
    SmallTable(
        "sources",
        (
            ("target", "text"),
            ("role", "text"),
            ("source", "text"),
            ("poller", "text"),
            ("interval_s", "float"),
            ("required", "int"),
        ),
        _sources,
    ),
    SmallTable("lives", (("begin", "time"), ("end", "time")), _lives),
    SmallTable(
        "artifacts",
        (
            ("name", "text"),
            ("media", "text"),
            ("bytes", "int"),
            ("time", "time"),
            ("kind", "text"),
            ("about", "text"),
        ),
        _artifacts,
    ),
    SmallTable("facts", (("key", "text"), ("value", "text")), _facts),
)
"""All of them; ``facts`` are the record's texts about its run: plan, versions, command, verdict."""
