"""Feeds one record into one sink from a cursor on, until the record is complete or the feed is stopped."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from threading import Event

import numpy as np

from soakwatch.core.errors import RecordError
from soakwatch.record import RecordView
from soakwatch.record.backlog import cursor_numbers, cursor_text
from soakwatch.record.follow import Batch, News, Table, Tail
from soakwatch.record.model import OUTCOMES, SeriesKey, Source, source_label
from soakwatch.transfer.sinks.abc import Recalls, Sink, SinkUnavailableError
from soakwatch.transfer.sinks.annotations import Events, FindingLines, MomentLines
from soakwatch.transfer.sinks.block import Block, ahead, gathered
from soakwatch.transfer.sinks.late_polls import LateAnswers
from soakwatch.transfer.sinks.lines import alike, decimals, key, line, table_block, text
from soakwatch.transfer.sinks.load import LoadLines
from soakwatch.transfer.sinks.phases import Phases, phase_at, phase_lines, stretches
from soakwatch.transfer.sinks.replay import Replay
from soakwatch.transfer.sinks.timeline import Timeline
from soakwatch.transfer.sinks.verdict_line import VerdictLine, silent_from_ns, standing_of
from soakwatch_model.sample import PollOutcome, object_labels

FINDINGS_EVERY_S = 30.0
MAX_PAUSE_S = 30.0
"""The longest pause between two tries of a write."""
_FIRST_PAUSE_S = 0.5


class FeedStoppedError(Exception):
    """The feed was stopped before it wrote everything."""


@dataclass(slots=True)
class FeedState:
    """The cursor of a feed, and why its last write failed (None: it succeeded)."""

    cursor: str = ""
    error: str | None = None


class Backoff:
    """The pauses between the retries of one feed: doubling, with jitter, up to ``MAX_PAUSE_S``."""

    def __init__(self, run: str) -> None:
        self._random = random.Random(run)  # noqa: S311 - so that many collectors do not come back at once
        self._next_s = _FIRST_PAUSE_S

    def next_s(self, error: SinkUnavailableError) -> float:
        """Seconds until the next try."""
        pause_s = self._next_s * self._random.uniform(0.5, 1.0)
        self._next_s = min(MAX_PAUSE_S, self._next_s * 2)
        return max(pause_s, error.after_s or 0.0)

    def reset(self) -> None:
        """Restart from the shortest pause, after a successful write."""
        self._next_s = _FIRST_PAUSE_S


@dataclass(slots=True)
class RunLines:
    """Lines about the run as a whole: at each call the findings and state strips that changed, and the verdict."""

    run: str
    _findings: FindingLines = field(init=False)
    _moments: MomentLines = field(init=False)
    _timeline: Timeline = field(init=False)
    _verdict: VerdictLine = field(init=False)

    def __post_init__(self) -> None:
        self._findings, self._moments = FindingLines(self.run), MomentLines(self.run)
        self._timeline = Timeline(self.run)
        self._verdict = VerdictLine(self.run)

    def lines(self, view: RecordView, phases: Phases, *, over: bool | None) -> tuple[list[bytes], bytes]:
        """The lines, and separately the verdict's. Uses the final findings, or the live ones before the verdict.
        ``over`` says whether the record is complete, None: to be found out. Raises RecordError."""
        standing = standing_of(view, over=over)
        judged = standing == "judged"
        current, live = view.findings(live=not judged), view.findings(live=True) if judged else ()
        gone = (*(finding for _, finding in view.withdrawn()), *live)
        verdict = self._verdict.line(view, current, standing, phases)
        goes_on = standing == "running"
        planned_end_ns = self._verdict.planned_end_ns(view) if goes_on else None
        return [
            *self._findings.lines(current, gone, live=not judged),
            *self._moments.lines(current, gone),
            *self._timeline.lines(
                view,
                phases,
                current,
                gone,
                goes_on=goes_on,
                planned_end_ns=planned_end_ns,
                silent_ns=silent_from_ns(view),
            ),
        ], verdict

    def forget(self) -> None:
        """Write everything again at the next call."""
        self._findings, self._moments = FindingLines(self.run), MomentLines(self.run)
        self._timeline.forget()


class Feed:
    """Set ``stop`` to make it give up; ``report`` is called whenever the state has changed.

    ``beside_run``: the run that writes the record started this feed, so it counts as running until ``finish`` or
    ``last_word``.
    """

    def __init__(
        self,
        path: Path,
        run: str,
        sink: Sink,
        stop: Event,
        report: Callable[[FeedState], None],
        cursor: str = "",
        *,
        beside_run: bool = False,
    ) -> None:
        self.state = FeedState(cursor)
        self._path, self._run, self._sink, self._stop, self._report = path, run, sink, stop, report
        self._tail = Tail(path, lambda _: True, cursor_numbers(cursor))
        self._backoff = Backoff(run)
        self._replay = Replay(cursor_numbers(cursor), sink.to.replay_s)
        self._series: dict[int, SeriesKey] = {}
        self._errors: dict[int, str] = {}
        self._sources: dict[int, Source] = {}
        self._labels: dict[int, str] = {}
        self._roles: Mapping[str, str] = {}
        self._phases: Phases = ()
        self._heads: dict[tuple[int, str], bytes] = {}
        self._events, self._run_lines, self._late = Events(run), RunLines(run), LateAnswers(path)
        self._load = LoadLines(path, run)
        self._over = False if beside_run else None  # whether the record is complete; None: to be found out
        self._pending: tuple[News, str] | None = None
        self._findings_s = -FINDINGS_EVERY_S
        self._recalls = isinstance(sink, Recalls) and bool(cursor)

    def step(self) -> bool:
        """Write what the previous step read, as the phases of its time are known now; True if there is more.

        Raises RecordError, and FeedStoppedError if it is stopped.
        """
        if self._recalls:
            self._recall()
        self._go_back()
        pending = self._pending
        news = self._tail.news()
        self._know(news)
        self._pending = news, cursor_text(self._tail.read)
        if pending is not None:
            self._write(*pending)
        if time.monotonic() - self._findings_s >= FINDINGS_EVERY_S:
            self._write_findings()
            self._findings_s = time.monotonic()
        return news.more

    def finish(self) -> None:
        """Write the rest of a complete record, with its verdict.

        Raises RecordError, and FeedStoppedError if it is stopped.
        """
        self._over = None if self._over is None else True
        while True:
            while self.step() or self._go_back() or any(batch.polls.due_ns.size for batch in self._pending_batches()):
                pass
            self.step()
            if self._write_findings():
                self._align()
            self._account()
            if not self._go_back():
                return

    def last_word(self) -> None:
        """Write in one request that the run broke off and what is known of it, even if the feed was stopped.

        Raises FeedStoppedError if it was.
        """
        self._over = True
        lines, verdict = self._lines_of_run()
        self._send_lines([verdict, *lines])

    def _recall(self) -> None:
        from soakwatch.transfer.sinks.earlier_falls import earlier_falls

        assert isinstance(self._sink, Recalls)
        with RecordView.open(self._path) as view:
            self._sink.recall(earlier_falls(view, self._run))
        self._recalls = False

    def _go_back(self) -> bool:
        """Go back to a position before a broken connection; True if it broke."""
        back = self._replay.back(cursor_numbers(self.state.cursor))
        if back is None:
            return False
        self._tail = Tail(self._path, lambda _: True, back)
        self._pending, self._late, self._load = None, LateAnswers(self._path), LoadLines(self._path, self._run)
        self._run_lines.forget()
        self._findings_s = -FINDINGS_EVERY_S
        self.state.cursor = cursor_text(back)
        self._report(self.state)
        return True

    def _pending_batches(self) -> tuple[Batch, ...]:
        return self._pending[0].batches if self._pending else ()

    def _know(self, news: News) -> None:
        self._series.update({series.number: series.key for series in news.series})
        self._load.know(news.series)
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
        notes = [*phase_lines(self._run, self._phases, now_ns), *self._events.lines(news.events)]
        with ahead(gathered(chain([Block.of(notes)], self._blocks(news)), lambda: self._sink.size)) as blocks:
            for block in blocks:
                self._send(block)
        self._replay.acknowledged(cursor_numbers(cursor))
        if cursor != self.state.cursor:
            self.state.cursor = cursor
            self._report(self.state)

    def _blocks(self, news: News) -> Iterator[Block]:
        for batch in news.batches:
            yield self._polls(batch)
            for table in (part for mixed in batch.tables for part in alike(mixed)):
                coarse = self._coarse(table)
                for phase, begin, end in stretches(self._phases, table.time_ns):
                    heads = [self._head(number, phase) for number in table.series]
                    rows = max(1, self._sink.size // len(heads))
                    for low in range(begin, end, rows):
                        yield table_block(heads, coarse, low, min(end, low + rows))
            yield self._load.block(batch, self._roles, self._sink.to.grain_ns)

    def _coarse(self, table: Table) -> Table:
        grain_ns = self._sink.to.grain_ns
        return table if grain_ns == 1 else replace(table, time_ns=table.time_ns // grain_ns * grain_ns)

    def _polls(self, batch: Batch) -> Block:
        source = self._sources[batch.source]
        tags = {
            "run": self._run,
            "target": source.target,
            "role": self._roles.get(source.target, ""),
            "source": self._labels[batch.source],
        }
        polls = batch.polls
        recovered = self._late.recovered_losses(source, polls, batch.first_seq)
        order = np.argsort(polls.due_ns, kind="stable")
        phases = {
            int(index): phase
            for phase, begin, end in stretches(self._phases, polls.due_ns[order])
            for index in order[begin:end]
        }
        rows = zip(
            polls.due_ns.tolist(),
            polls.outcome.tolist(),
            polls.error.tolist(),
            decimals(batch.duration_ns / np.float64(1e9)),
            decimals((polls.start_ns - polls.due_ns) / np.float64(1e9)),
            strict=True,
        )
        lines: list[bytes] = []
        heads: dict[tuple[str, int, str], bytes] = {}
        for index, (due_ns, number, error, lasted, late) in enumerate(rows):
            ok = "1.0" if OUTCOMES[number] is PollOutcome.OK or (due_ns, number) in recovered else "0.0"
            head = heads.get((phases[index], number, ok))
            if head is None:
                own_tags = {**tags, "phase": phases[index], "outcome": OUTCOMES[number].value}
                head = f"{key('soakwatch_poll', own_tags, {})} ok={ok},duration_s=".encode(errors="replace")
                heads[phases[index], number, ok] = head
            seq = batch.first_seq + index
            lines.append(b"%b%b,late_s=%b,seq=%d.0%b %d" % (head, lasted, late, seq, self._error(error), due_ns))
        for due_ns, number in sorted(recovered):  # some of them are in the database already, as lost
            phase = phase_at(self._phases, due_ns)
            own_tags = {**tags, "phase": phase, "outcome": OUTCOMES[number].value}
            lines.append(line(key("soakwatch_poll", own_tags, {}), {"ok": 1.0}, due_ns))
        return Block.of(lines)

    def _error(self, number: int) -> bytes:
        reason = self._errors.get(number)
        return b"" if reason is None else f",error={text(reason)}".encode(errors="replace")

    def _head(self, number: int, phase: str) -> bytes:
        head = self._heads.get((number, phase))
        if head is None:
            name = self._series[number]
            tags = {"run": self._run, "target": name.target, "role": self._roles.get(name.target, ""), "phase": phase}
            head = key(name.metric, tags, object_labels(name.object)).encode(errors="replace")
            self._heads[number, phase] = head
        return head

    def _write_findings(self) -> bool:
        """Write findings, state strips and verdict. False if the verdict was refused or the record is empty: nothing
        else should then be written for the run."""
        lines, verdict = self._lines_of_run()
        self._send_lines(lines)
        written = self._sink.written
        self._send_lines([verdict])
        return self._sink.written > written

    def _lines_of_run(self) -> tuple[list[bytes], bytes]:
        """Changed findings and strips, and the verdict; nothing if the record has no poll yet or is being closed: the
        next step tries again."""
        try:
            with RecordView.open(self._path) as view:
                return self._run_lines.lines(view, self._phases, over=self._over)
        except RecordError:
            return [], b""

    def _align(self) -> None:
        from soakwatch.transfer.sinks.aligned import aligned

        with RecordView.open(self._path) as view:
            self._send_lines(aligned(view, self._run))

    def _account(self) -> None:
        from soakwatch.transfer.sinks.account import account_lines

        self._send_lines(account_lines(self._path, self._run, self._sink.to.grain_ns))

    def _send_lines(self, lines: Iterable[bytes]) -> None:
        left = iter(lines)
        while some := list(islice(left, self._sink.size)):
            self._send(Block.of(some))

    def _send(self, block: Block) -> None:
        """Write these lines, retrying until they are accepted."""
        while block.count:
            part, rest = block.first(self._sink.size)
            try:
                self._sink.write(part)
            except SinkUnavailableError as error:
                if error.slow:
                    self._replay.slow(self._sink.connections)
                if self.state.error != str(error):
                    self.state.error = str(error)
                    self._report(self.state)
                if self._stop.wait(self._backoff.next_s(error)):
                    raise FeedStoppedError from None
                continue
            self._backoff.reset()
            self._replay.taken(self._sink.connections)
            if self.state.error is not None:
                self.state.error = None
                self._report(self.state)
            block = rest
            if self._stop.is_set():
                raise FeedStoppedError
