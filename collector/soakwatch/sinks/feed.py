"""Feed: one record into one database, forward from a cursor, until the record is over or nobody wants it any more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import Event

import numpy as np

from soakwatch.errors import RecordError
from soakwatch.record import RecordView
from soakwatch.record.model import SeriesKey, Source, source_label
from soakwatch.record.rows import OUTCOMES
from soakwatch.record.tail import Batch, News, Table, Tail
from soakwatch.sinks.influxdb import Passing, Pauses, Writer
from soakwatch.sinks.lines import key, line, table_lines
from soakwatch.sinks.told import Events, Opinions, phase_lines
from soakwatch_agent.sample import PollOutcome, object_labels

OPINIONS_EVERY_S = 30.0
_ROWS = 50  # of a table at once: bounded lines however wide it is
_LEAST_ROOM_S = 2.0  # between two looks

Phases = Sequence[tuple[str, int, int | None]]


class Unwanted(Exception):  # noqa: N818 - a state, not a defect
    """Whoever wanted the record written does not wait any longer."""


@dataclass(slots=True)
class State:
    """What a feed tells: its cursor, and what ails it (None: nothing)."""

    cursor: str = ""
    trouble: str | None = None


class Feed:
    """Reads and writes; ``wanted`` is set when it shall stop trying, ``told`` is called when the state has changed."""

    def __init__(
        self, path: Path, run: str, writer: Writer, stop: Event, told: Callable[[State], None], cursor: str = ""
    ) -> None:
        self.state = State(cursor)
        self._path, self._run, self._writer, self._stop, self._told = path, run, writer, stop, told
        self._tail = Tail(path, lambda _: True, cursor_numbers(cursor))
        self._pauses = Pauses(run)
        self._series: dict[int, SeriesKey] = {}
        self._errors: dict[int, str] = {}
        self._sources: dict[int, Source] = {}
        self._labels: dict[int, str] = {}
        self._roles: Mapping[str, str] = {}
        self._phases: Phases = ()
        self._heads: dict[tuple[int, str], str] = {}
        self._events, self._opinions = Events(run), Opinions(run)
        self._pending: tuple[News, str] | None = None
        self._opined = -OPINIONS_EVERY_S

    def look(self) -> bool:
        """Write what was new at the look before, now that the phases of its time are known; True: there is more.

        Raises RecordError, and Unwanted where it is stopped.
        """
        pending = self._pending
        news = self._tail.news()
        self._know(news)
        self._pending = news, cursor_text(self._tail.read)
        if pending is not None:
            self._write(*pending)
        if time.monotonic() - self._opined >= OPINIONS_EVERY_S:
            self._opine()
            self._opined = time.monotonic()
        return news.more

    def finish(self) -> None:
        """Write all the rest of a record to which nothing is added any more, its verdict too.

        Raises RecordError, and Unwanted where it is stopped.
        """
        while self.look() or any(batch.polls.due_ns.size for batch in self._left()):
            pass
        self.look()
        self._opine()
        self._align()

    def _left(self) -> tuple[Batch, ...]:
        return self._pending[0].batches if self._pending else ()

    def _know(self, news: News) -> None:
        self._series.update({one.number: one.key for one in news.series})
        self._errors.update(news.errors)
        self._sources = {source.id: source for source in news.sources}
        self._labels = {
            source.id: source_label(source, news.sources).removeprefix(f"{source.target}/") for source in news.sources
        }
        if news.roles != self._roles:
            self._roles = news.roles
            self._heads.clear()
        self._phases = news.phases

    def _write(self, news: News, cursor: str) -> None:
        now_ns = max([news.span_ns or 0, *(batch.last_ns for batch in news.batches)])
        self._send(phase_lines(self._run, self._phases, now_ns))
        self._send(self._events.lines(news.events))
        for lines in gathered(self._lines(news), lambda: self._writer.size):
            self._send(lines)
        if cursor != self.state.cursor:
            self.state.cursor = cursor
            self._told(self.state)

    def _lines(self, news: News) -> Iterator[list[bytes]]:
        for batch in news.batches:
            yield self._poll_lines(batch)
            for table in batch.tables:
                for phase, begin, end in stretches(self._phases, table.time_ns):
                    heads = [self._head(number, phase) for number in table.series]
                    yield from _table(heads, table, begin, end)

    def _poll_lines(self, batch: Batch) -> list[bytes]:
        source = self._sources[batch.source]
        tags = {"run": self._run, "target": source.target, "role": self._roles.get(source.target, ""),
                "source": self._labels[batch.source]}  # fmt: skip
        polls = batch.polls
        order = np.argsort(polls.due_ns, kind="stable")
        phases = {int(at): phase for phase, begin, end in stretches(self._phases, polls.due_ns[order])
                  for at in order[begin:end]}  # fmt: skip
        rows = zip(polls.due_ns.tolist(), polls.outcome.tolist(), polls.error.tolist(), batch.duration_ns.tolist(),
                   strict=True)  # fmt: skip
        made: list[bytes] = []
        heads: dict[tuple[str, int], str] = {}
        for at, (due_ns, number, error, duration_ns) in enumerate(rows):
            outcome = OUTCOMES[number]
            head = heads.get((phases[at], number))
            if head is None:
                told = {**tags, "phase": phases[at], "outcome": outcome.value}
                head = heads[phases[at], number] = key("soakwatch_poll", told, {})
            ok = 1.0 if outcome is PollOutcome.OK else 0.0
            fields = {"ok": ok, "duration_s": duration_ns * 1e-9, "error": self._errors.get(error)}
            made.append(line(head, fields, due_ns))
        return made

    def _head(self, number: int, phase: str) -> str:
        found = self._heads.get((number, phase))
        if found is None:
            name = self._series[number]
            tags = {"run": self._run, "target": name.target, "role": self._roles.get(name.target, ""), "phase": phase}
            found = self._heads[number, phase] = key(name.metric, tags, object_labels(name.object))
        return found

    def _opine(self) -> None:
        try:
            with RecordView.open(self._path) as view:
                lines = self._opinions.lines(view)
        except RecordError:  # it holds no poll yet, or is being closed: the next look meets it again
            return
        self._send(lines)

    def _align(self) -> None:
        from soakwatch.sinks.aligned import aligned

        with RecordView.open(self._path) as view:
            for lines in gathered(([one] for one in aligned(view, self._run)), lambda: self._writer.size):
                self._send(lines)

    def _send(self, lines: Sequence[bytes]) -> None:
        """Write these lines, however long it takes."""
        rest = lines if all(lines) else [one for one in lines if one]
        while rest:
            part = rest[: self._writer.size]
            try:
                self._writer.write(part)
            except Passing as passing:
                if self.state.trouble != str(passing):
                    self.state.trouble = str(passing)
                    self._told(self.state)
                if self._stop.wait(self._pauses.next_s(passing)):
                    raise Unwanted from None
                continue
            self._pauses.well()
            if self.state.trouble is not None:
                self.state.trouble = None
                self._told(self.state)
            rest = rest[len(part) :]
            if self._stop.is_set():
                raise Unwanted


def _table(heads: Sequence[str], table: Table, begin: int, end: int) -> Iterator[list[bytes]]:
    for low in range(begin, end, _ROWS):
        found = table_lines(heads, table, low, min(end, low + _ROWS)).split(b"\n")
        yield found[:-1]


def gathered(parts: Iterator[list[bytes]], size: Callable[[], int]) -> Iterator[list[bytes]]:
    """The same lines in batches of ``size``; the last one is shorter."""
    held: list[bytes] = []
    for part in parts:
        held += part
        if len(held) >= size():
            yield held
            held = []
    if held:
        yield held


def stretches(phases: Phases, time_ns: np.typing.NDArray[np.int64]) -> list[tuple[str, int, int]]:
    """Which phase holds for times in order: its name ("" outside of every phase), and from which time to which."""
    if not time_ns.size:
        return []
    edges = {0, int(time_ns.size)}
    for _, begin_ns, end_ns in phases:
        edges.add(int(np.searchsorted(time_ns, begin_ns)))
        if end_ns is not None:
            edges.add(int(np.searchsorted(time_ns, end_ns)))
    ordered = sorted(edges)
    return [(_phase_at(phases, int(time_ns[low])), low, high) for low, high in pairwise(ordered)]


def _phase_at(phases: Phases, time_ns: int) -> str:
    for name, begin_ns, end_ns in reversed(phases):
        if begin_ns <= time_ns and (end_ns is None or time_ns < end_ns):
            return name
    return ""


def cursor_numbers(cursor: str) -> dict[int, int]:
    """How far each source had been read. Raises RecordError."""
    try:
        return {int(source): int(seq) for source, seq in (part.split(":") for part in cursor.split())}
    except ValueError:
        raise RecordError(f"{cursor!r} is no cursor of a record: begin again with an empty one") from None


def cursor_text(read: Mapping[int, int]) -> str:
    """The inverse of ``cursor_numbers``."""
    return " ".join(f"{source}:{seq}" for source, seq in sorted(read.items()))
