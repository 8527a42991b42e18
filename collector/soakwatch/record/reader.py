"""RecordView: a record as it is at one moment, read-only, from any process, while the run goes on."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.errors import RecordError, SoakwatchError
from soakwatch.core.labels import LABELS_KEY, labels_in
from soakwatch.record import _artifacts
from soakwatch.record._columns import Columns
from soakwatch.record._files import record_file, size_of
from soakwatch.record._ledger import ledger_of, timed_out
from soakwatch.record._owners import Owner, silence_ns
from soakwatch.record._replay import Replay
from soakwatch.record._rows import EVENT_COLUMNS, event_of, last_time, sources_of
from soakwatch.record._snapshot import open_snapshot
from soakwatch.record._sqlite_errors import as_record_error, damaged
from soakwatch.record._texts import lines_of, text_of
from soakwatch.record.findings import finding_from_json
from soakwatch.record.meta import GROWTH_KEY, IMPORTED_KEY
from soakwatch.record.model import (
    OUTCOME_NUMBERS,
    OUTCOMES,
    Artifact,
    ArtifactEntry,
    Counts,
    PollOutcomes,
    SeriesKey,
    Source,
    StoredEvent,
    StoredFault,
    source_label,
)
from soakwatch.record.seal import Checked, Seal, check, seals_in
from soakwatch_model.case import Ledger
from soakwatch_model.finding import Finding
from soakwatch_model.sample import Poll, PollOutcome
from soakwatch_model.series import GROWTHS, Growth, Series, trait_of
from soakwatch_model.window import Phase, Window

if TYPE_CHECKING:
    import pandas as pd


_SeriesRow = tuple[int, int, str, str]
"""Number, source, unit and kind of a series."""


_YEAR_S = 365.25 * 86_400
_LONGEST_YEARS = 20
_BY_DAMAGE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
"""Errors of code that reads texts and numbers which are not what was written."""


class RecordView:
    """One consistent snapshot of a record; what is written later is seen by a later view.

    A context manager. Keep it open for one judging, not for a run: while it is open the write-ahead log cannot shrink.
    Every method raises RecordError for a file that is damaged.
    """

    def __init__(self, path: Path, sql: sqlite3.Connection, stack: ExitStack) -> None:
        self.path = path
        self._sql, self._stack = sql, stack
        self._columns = Columns(sql)
        self._replay: Replay | None = None
        self._known: dict[SeriesKey, _SeriesRow] | None = None
        self._few: dict[SeriesKey, _SeriesRow] = {}  # those that ``only_keys`` found
        self._all_sources: tuple[Source, ...] | None = None
        self._directions: Mapping[str, Growth] | None = None
        self._imported: bool | None = None

    @classmethod
    def open(cls, path: Path) -> RecordView:
        """The record in a folder, or a record's file, as it is now. Raises RecordError."""
        file = record_file(path)
        with ExitStack() as undo:
            sql = open_snapshot(file, undo)
            return cls(file, sql, undo.pop_all())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Lets the snapshot go. An error of the code that read it becomes a RecordError where the record was changed:
        texts in it are JSON of this Soakwatch, until a bit flips."""
        try:
            if isinstance(error, _BY_DAMAGE) and not isinstance(error, SoakwatchError) and (why := self._changed()):
                raise damaged(self.path, why) from error
        finally:
            self.close()

    def _changed(self) -> str:
        """What the check of the chain and the seal finds first; "" if the record is as it was written."""
        try:
            checked = self.check()
        except RecordError as error:
            return str(error)
        return checked.words

    def close(self) -> None:
        """Let the snapshot go."""
        self._stack.close()

    # --- what the run is about ---------------------------------------------------------------------------------

    def meta(self, key: str) -> str | None:
        """The text kept under a key; None if there is none."""
        return self.metas().get(key)

    def metas(self) -> Mapping[str, str]:
        """All texts by key."""
        with self._reading() as sql:
            rows = sql.execute("SELECT key, value FROM meta ORDER BY key").fetchall()
            return {key: text_of(value) for key, value in rows}

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the run, text by name. Labels that devices report are there once they were read."""
        return labels_in(self.meta(LABELS_KEY))

    def roles(self) -> Mapping[str, str]:
        """The role of each target."""
        with self._reading() as sql:
            return dict(sql.execute("SELECT name, role FROM target ORDER BY name").fetchall())

    def sources(self) -> tuple[Source, ...]:
        """All sources, in the order in which they were added."""
        if self._all_sources is None:
            with self._reading() as sql:
                self._all_sources = sources_of(sql)
        return self._all_sources

    def phases(self) -> tuple[Phase, ...]:
        """The phases in order; one that is open ends with the record."""
        with self._reading() as sql:
            rows = sql.execute("SELECT name, begin_ns, end_ns FROM phase ORDER BY begin_ns, id").fetchall()
            now_ns = self._end_ns(sql)
        return tuple(
            Phase(name, Window(begin, max(begin, now_ns) if end is None else end)) for name, begin, end in rows
        )

    @property
    def last_ns(self) -> int | None:
        """The latest time that the record knows of: a poll, an edge of a phase, a heartbeat; None if it is empty."""
        with self._reading() as sql:
            return last_time(sql, None)

    def window(self) -> Window:
        """From the first due poll to the end of the record. Raises RecordError if it holds no poll, or is longer than
        any run: rules take memory for each stretch of it."""
        with self._reading() as sql:
            first = sql.execute(
                "SELECT min(t) FROM (SELECT min(first_due_ns) AS t FROM chunk UNION ALL SELECT min(due_ns) FROM poll)"
            ).fetchone()[0]
            if first is None:
                raise RecordError(f"{self.path} holds no poll yet: nothing can be judged")
            whole = Window(first, max(first, self._end_ns(sql)))
        if whole.seconds > _LONGEST_YEARS * _YEAR_S:
            raise RecordError(
                f"{self.path} has times that lie {whole.seconds / _YEAR_S:,.0f} years apart, more than "
                f"{_LONGEST_YEARS} years: one of them is damaged, or was imported in a wrong format"
            )
        return whole

    def last_due_ns(self) -> Mapping[int, int]:
        """The last due time of each source, by the source's id; sources that were never due are not in it."""
        with self._reading() as sql:
            rows = sql.execute(
                "SELECT source, max(due) FROM (SELECT source, max(last_due_ns) AS due FROM chunk GROUP BY source"
                " UNION ALL SELECT source, max(due_ns) FROM poll GROUP BY source) GROUP BY source"
            ).fetchall()
        return dict(rows)

    def counts(self) -> Counts:
        """Numbers of samples and of due polls (a lost poll with a late answer counts once), and bytes."""
        with self._reading() as sql:
            samples = sql.execute(
                "SELECT sum(samples) FROM (SELECT samples FROM chunk UNION ALL SELECT length(data) / 8 FROM poll)"
            ).fetchone()[0]
            polls = sum(self._columns.due_times(source.id) for source in self.sources())
        return Counts(samples or 0, polls, size_of(self.path))

    # --- what was seen -----------------------------------------------------------------------------------------

    def keys(self, metrics: Collection[str] | None = None) -> tuple[SeriesKey, ...]:
        """All series, or those of some metrics, sorted."""
        return tuple(sorted(key for key in self._series() if metrics is None or key.metric in metrics))

    def only_keys(self, metrics: Collection[str]) -> tuple[SeriesKey, ...]:
        """As ``keys``, for a look at a few metrics of many: the names of all other series are not read."""
        found = self._rows_of(f"metric IN ({','.join('?' * len(metrics))})", *metrics)
        self._few |= found
        return tuple(sorted(found))

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
        """The readings of one series with begin <= time < end; empty if the record has no such series.

        If several sources of the target bring it: those of its owner, and those of others where the owner was silent
        (``_owners``).

        int64 or uint64 if every reading is an integer, else float64. The arrays may be shared: do not write.
        """
        known = self._row(key)
        if known is None:
            number, cadence_s, trait, sources = 0, None, trait_of(key.metric), []
            owner = None
        else:
            number, source, unit, kind = known
            first = next((s for s in self.sources() if s.id == source), None)
            cadence_s = None if first is None else first.cadence_s(key.metric)
            owner = None if first is None or self._is_imported() else Owner(source, silence_ns(first, key.metric))
            trait = trait_of(key.metric, unit, kind, self._growths().get(key.metric))
            sources = [s.id for s in self.sources() if s.target == key.target]
        with self._reading():
            time_ns, value = self._columns.series(number, sources, begin_ns, end_ns, owner)
        return Series(key.target, key.metric, key.object, trait, time_ns, value, cadence_s)

    def source_of(self, key: SeriesKey) -> Source | None:
        """The source that a series was first brought by; None for a series that the record does not have."""
        known = self._row(key)
        return None if known is None else next((s for s in self.sources() if s.id == known[1]), None)

    def to_pandas(
        self,
        metric: str | Sequence[str] = (),
        *,
        target: str | Sequence[str] = (),
        phase: str | Sequence[str] = (),
        wide: bool = False,
    ) -> pd.DataFrame:
        """Readings as a data frame, times in UTC; ``metric`` and ``target`` are names or globs, ``phase`` names.

        Long: a row a reading, with the columns time, target, metric, object, value (float64; an integer above 2**53 is
        rounded, ``series`` has it exactly), unit, phase (empty outside of any), and ``label_NAME`` for each label of
        the run. Wide: the times as index, a column for each series by target, metric and object, NaN where it was not
        read then. Counters are as they were read. The frame is held in memory: some 50 bytes a reading.

        Raises RecordError for a metric, target or phase that the run does not have, SoakwatchError without pandas.
        """
        from soakwatch.record.frames import Selection, to_pandas

        def several(given: str | Sequence[str]) -> tuple[str, ...]:
            return (given,) if isinstance(given, str) else tuple(given)

        return to_pandas(self, Selection(several(metric), several(target), several(phase)), wide=wide)

    def events(self, after: int = 0) -> tuple[StoredEvent, ...]:
        """All events, or those with a higher number than ``after``, in order of their begin."""
        with self._reading() as sql:
            query = f"SELECT {EVENT_COLUMNS} FROM event WHERE id>? ORDER BY begin_ns, id"  # noqa: S608
            return tuple(event_of(row) for row in sql.execute(query, (after,)).fetchall())

    def faults(self) -> tuple[StoredFault, ...]:
        """Why single metrics could not be read, and how often."""
        with self._reading() as sql:
            rows = sql.execute(
                "SELECT source, target, metric, object, text, first_ns, last_ns, count"
                " FROM fault JOIN source ON source.id = fault.source ORDER BY target, metric, object, fault.id"
            ).fetchall()
        return tuple(StoredFault(*row) for row in rows)

    def ledgers(self, window: Window, silenced: Mapping[int, Window] = MappingProxyType({})) -> tuple[Ledger, ...]:
        """The account of every source in a window. ``silenced`` gives, by the source's id, a window whose due polls
        count as timed out."""
        with self._reading() as sql:
            errors: dict[int, str] = dict(sql.execute("SELECT id, text FROM error").fetchall())
            return tuple(
                ledger_of(
                    source,
                    self._shown(source),
                    timed_out(
                        self._columns.polls(source.id, source.interval_ns, window.begin_ns, window.end_ns),
                        silenced.get(source.id),
                    ),
                    errors,
                    window,
                )
                for source in self.sources()
            )

    def poll_outcomes(self, source: int, begin_ns: int = 0) -> PollOutcomes:
        """How every poll of a source that was due from ``begin_ns`` on ended, in the order of their due times; empty
        for an unknown source."""
        with self._reading():
            polls = self._columns.polls(source, 0, begin_ns, 2**63 - 1).polls
        words = tuple(OUTCOMES[number].value for number in sorted(OUTCOMES))
        return PollOutcomes(polls.due_ns, polls.outcome.astype(np.int64), words)

    def answered_ns(self, source: int) -> NDArray[np.int64]:
        """When the answered polls of a source began, sorted, shape (n,); empty for an unknown source."""
        with self._reading():
            polls = self._columns.polls_as_they_came(source, 0, 2**63 - 1)
        return np.sort(polls.start_ns[polls.outcome == OUTCOME_NUMBERS[PollOutcome.OK]])

    def polls_after(self, cursor: str, limit: int) -> tuple[tuple[Poll, ...], str]:
        """At most ``limit`` polls behind a cursor, and the cursor behind them; "" begins at the beginning.

        The polls of a source come in the order in which they arrived; one answer holds polls of one source. No polls:
        all have been read. Faults and events are not in the polls again: see ``faults`` and ``events``.
        """
        if limit < 1:
            raise ValueError("limit must be at least 1")
        with self._reading() as sql:
            self._replay = self._replay or Replay(sql, self._columns)
            return self._replay.after(cursor, limit)

    def first_polls(self) -> Mapping[int, Poll]:
        """The first poll of each source that was polled, by the source's id; without faults, see ``faults``."""
        with self._reading() as sql:
            self._replay = self._replay or Replay(sql, self._columns)
            polls = [self._replay.first(source.id) for source in self.sources()]
        return {poll.source: poll for poll in polls if poll is not None}

    def check(self) -> Checked:
        """Whether everything is as it was written and sealed; reads all of the record."""
        with self._reading() as sql:
            return check(sql)

    def seals(self) -> tuple[Seal, ...]:
        """The seals, oldest first."""
        with self._reading() as sql:
            return seals_in(sql)

    # --- what was made of it -----------------------------------------------------------------------------------

    def findings(self, live: bool) -> tuple[Finding, ...]:  # noqa: FBT001
        """The findings of the latest judging, live or final."""
        with self._reading() as sql:
            rows = sql.execute(
                "SELECT body FROM finding WHERE live=? AND withdrawn_ns IS NULL ORDER BY id", (live,)
            ).fetchall()
            return tuple(finding_from_json(line) for (body,) in rows for line in lines_of(body))

    def judged_ns(self, live: bool) -> int | None:  # noqa: FBT001
        """When the latest judging that wrote findings was made, live or final; None if there was none."""
        with self._reading() as sql:
            row = sql.execute("SELECT max(judged_ns) FROM finding WHERE live=? AND withdrawn_ns IS NULL", (live,))
            judged_ns: int | None = row.fetchone()[0]
        return judged_ns

    def withdrawn(self) -> tuple[tuple[int, Finding], ...]:
        """Live failures and warnings that a later judging did not find again, with the time (UTC ns) of that
        judging."""
        with self._reading() as sql:
            rows = sql.execute(
                "SELECT withdrawn_ns, body FROM finding WHERE withdrawn_ns IS NOT NULL ORDER BY withdrawn_ns, id"
            ).fetchall()
            return tuple((at_ns, finding_from_json(line)) for at_ns, body in rows for line in lines_of(body))

    def artifacts(self) -> tuple[Artifact, ...]:
        """The files that belong to the run, by time and name."""
        with self._reading() as sql:
            kept = [_artifacts.read(sql, entry.name) for entry in _artifacts.entries(sql)]
        return tuple(artifact for artifact in kept if artifact is not None)

    def artifact_entries(self) -> tuple[ArtifactEntry, ...]:
        """What files belong to the run, by time and name, without their bytes."""
        with self._reading() as sql:
            return _artifacts.entries(sql)

    def artifact(self, name: str) -> Artifact:
        """One file that belongs to the run. Raises RecordError if there is none of this name."""
        with self._reading() as sql:
            artifact = _artifacts.read(sql, name)
        if artifact is None:
            raise RecordError(f"{self.path} has no artifact {name!r}")
        return artifact

    def spans(self) -> tuple[Window, ...]:
        """The lives of the monitor, each from its start to its last sign of life, in order."""
        with self._reading() as sql:
            rows = sql.execute("SELECT begin_ns, end_ns FROM span ORDER BY id").fetchall()
        return tuple(Window(*row) for row in rows)

    def cursor(self, sink: str) -> str:
        """How far a sink had read; "" before its first poll."""
        with self._reading() as sql:
            row = sql.execute("SELECT position FROM cursor WHERE sink=?", (sink,)).fetchone()
        return str(row[0]) if row else ""

    # --- inside ------------------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self._sql
        except sqlite3.ProgrammingError:
            raise RecordError(f"{self.path} is closed") from None
        except (sqlite3.Error, OSError) as error:
            raise as_record_error(error, self.path) from None
        except (ValueError, LookupError, TypeError) as error:
            raise damaged(self.path, str(error)) from None

    def _series(self) -> Mapping[SeriesKey, _SeriesRow]:
        if self._known is None:
            self._known = self._rows_of("TRUE")
        return self._known

    def _row(self, key: SeriesKey) -> _SeriesRow | None:
        return self._few.get(key) or self._series().get(key)

    def _rows_of(self, where: str, *values: str) -> dict[SeriesKey, _SeriesRow]:
        with self._reading() as sql:
            rows = sql.execute(
                f"SELECT target, metric, object, id, source, unit, kind FROM series WHERE {where}",  # noqa: S608 - ours
                values,
            ).fetchall()
        return {SeriesKey(*row[:3]): (row[3], row[4], row[5], row[6]) for row in rows}

    def _growths(self) -> Mapping[str, Growth]:
        """The bad direction of growth of metrics outside of the catalogue."""
        if self._directions is None:
            with self._reading():
                words = json.loads(self.meta(GROWTH_KEY) or "{}")
                self._directions = {metric: GROWTHS[word] for metric, word in words.items()}
        return self._directions

    def _is_imported(self) -> bool:
        if self._imported is None:
            self._imported = self.meta(IMPORTED_KEY) is not None
        return self._imported

    def _end_ns(self, sql: sqlite3.Connection) -> int:
        """The first moment after everything in the record, so that begin <= time < end holds the last poll."""
        last_ns = last_time(sql, None)
        return 0 if last_ns is None else last_ns + 1

    def _shown(self, source: Source) -> str:
        return source_label(source, self.sources())
