"""Follows a result file as a source of samples: what all formats share."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Protocol, runtime_checkable

from pydantic import Field

from soakwatch.core.units import Seconds, show_seconds
from soakwatch.sources.abc import Facts, Poller, SourceConfig, SourceContext, SourceError, timing
from soakwatch.sources.generator_tree import generator
from soakwatch.sources.result_files.tail import MAX_LINE_BYTES, Piece, Position, Tail
from soakwatch_model.event import Event
from soakwatch_model.sample import NOTHING, Answer, Fault, Sample
from soakwatch_model.tree import Tree

RESTART = "generator.restart"
UNREAD = "load.lines.unread"
SENDING = "load.sending"
_SHOWN = 120
_READING_SHARE = 0.5  # of a poll's timeout; the rest of the file waits for the next polls
_GRACE_S = 5.0


class FollowKeys(SourceConfig):
    """How a file is followed."""

    wait: Annotated[Seconds, Field(default=60.0, ge=0, description="how long the file may be missing after the start")]


class TimedKeys(FollowKeys):
    """How a file is followed whose lines come during the load, with their times."""

    time: Annotated[
        Literal["column", "arrival"],
        Field(default="column", description="time of a sample: that of its line, or when the line was seen"),
    ]
    bound: Annotated[
        Seconds,
        Field(default=300.0, gt=0, description="with the newest line farther from now, the clock is wrong"),
    ]
    silence: Annotated[
        Seconds, Field(default=30.0, gt=0, description="time without a new line after which the generator is at rest")
    ]


class FileConfig(FollowKeys):
    """Keys of every source that follows a file."""

    file: Annotated[Path, Field(description="the file that the tool writes", strict=False)]


class TimedFileConfig(FileConfig, TimedKeys):
    """Keys of every source that follows a file whose lines have times."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When lines are read: ``limit_ns`` is the latest time they may have; with ``arrival`` their own times are ignored.

    ``old`` lines were in the file before the run.
    """

    now_ns: int
    limit_ns: int
    arrival: bool
    old: bool


@dataclass(slots=True)
class ParsedLines:
    """The content of some lines: ``newest_ns`` is the time of the last one, ``active`` is True if there was load.

    ``unread`` counts unreadable lines, ``first`` says why the first was. ``remarks`` are on lines that may be misread.
    """

    samples: list[Sample] = field(default_factory=list)
    newest_ns: int | None = None
    active: bool | None = None
    unread: int = 0
    first: str = ""
    remarks: dict[str, None] = field(default_factory=dict)

    def remark(self, sentence: str) -> None:
        """Adds a remark once."""
        self.remarks[sentence] = None

    def cannot(self, why: str, many: int = 1) -> None:
        """Counts unreadable lines."""
        self.unread += many
        self.first = self.first or why

    def add(self, other: ParsedLines) -> None:
        """Adds the content of the following lines."""
        self.samples += other.samples
        self.newest_ns = self.newest_ns if other.newest_ns is None else other.newest_ns
        self.active = self.active if other.active is None else (other.active or bool(self.active))
        self.remarks |= other.remarks
        if other.unread:
            self.cannot(other.first, other.unread)


class Reader(Protocol):
    """Reads the lines of one format. All methods run in a worker thread."""

    def begin(self) -> None:
        """A new or rewritten file: starts from scratch."""
        ...

    def take(self, lines: Sequence[str], moment: Moment) -> ParsedLines:
        """The content of these lines. Raises SourceError for a file of another format."""
        ...

    def ended(self, moment: Moment) -> list[Sample]:
        """The samples that are complete although no more lines are there."""
        ...

    def notes(self) -> tuple[str, ...]:
        """Notes on what was detected in the file."""
        ...


@runtime_checkable
class TellsSettings(Protocol):
    """A reader whose lines say how the generator was called."""

    def settings(self) -> Mapping[str, Tree]:
        """The latest settings, without secrets; empty before the first such line."""
        ...


@runtime_checkable
class Continues(Protocol):
    """A reader that counts on over the processes of one generator."""

    def go_on(self) -> None:
        """The next lines are of the file of another process, which counts from zero: the counts go on."""
        ...

    def rest(self, now_ns: int) -> list[Sample]:
        """Nothing is sent now, nor was since the last line: the counts again, so that this is no gap."""
        ...


@runtime_checkable
class TakesTotals(Protocol):
    """A reader of a generator that says at its end how many requests there were, some of which are in no line."""

    def total(self, requests: int, failed: int, now_ns: int) -> list[Sample]:
        """All requests of the process, and how many of them failed: the counts of its end."""
        ...


def begin_of(site: SourceContext) -> int:
    """Lines before this time are not of the run; a trial poll shows old ones too."""
    return 0 if site.trial else site.now_ns()


async def follow(
    file: Path,
    config: FollowKeys,
    site: SourceContext,
    stack: AsyncExitStack,
    reader: Reader,
    *,
    load: bool = True,
    restarts: bool = True,
    program: str = "",
) -> Poller:
    """Follows ``file``; see ``FollowedFile``. Raises SourceError for a wrong file."""
    followed = FollowedFile(file, config, site, reader, load=load, restarts=restarts, program=program)
    stack.push_async_callback(followed.close)
    await asyncio.to_thread(followed.begin)
    return followed


class FollowedFile:
    """A poller that reads what is appended to ``file``.

    ``load``: a generator writes it, so whether it sends is sampled and unreadable lines are counted. ``restarts``: a
    rewritten file means a restarted generator; with a reader that ``Continues`` and without ``restarts`` it counts on.
    ``program`` is the generator, if known.
    """

    def __init__(
        self,
        file: Path,
        config: FollowKeys,
        site: SourceContext,
        reader: Reader,
        *,
        load: bool = True,
        restarts: bool = True,
        program: str = "",
    ) -> None:
        self._file, self._config, self._site, self._reader = file, config, site, reader
        self._timed = config if isinstance(config, TimedKeys) else None
        self._load, self._restarts, self._program = load, restarts, program
        self._tail = Tail(file)
        self._reading = threading.Lock()
        self._begin_ns = site.now_ns()
        self._budget_s = _READING_SHARE * timing(0, site.interval_s, config.timeout).timeout_s
        self._old = False  # True while reading lines from before the run
        self._seen = False
        self._unread = 0
        self._reported: set[str] = set()
        self._lines_ns: int | None = None  # when the last lines came
        self._wrong: str | None = None  # why the file is wrong, until it is replaced
        self._refusal: str | None = None  # what is wrong with its clock
        self._offset_s: float | None = None

    def begin(self) -> None:
        """Notes whether the file exists: its content is then from before the run."""
        self._old = self._file.exists()

    async def close(self) -> None:
        """Closes the file once an abandoned poll has ended."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        if self._reading.acquire(timeout=self._budget_s + _GRACE_S):
            self._tail.close()
            self._reading.release()

    @property
    def position(self) -> Position | None:
        """How far the file was read; None without one."""
        return self._tail.position

    async def poll(self, now_ns: int) -> Answer:
        """What was written since the last poll. Raises SourceError for a missing or wrong file."""
        return await asyncio.to_thread(self._poll_once, now_ns)

    def facts(self) -> Facts:
        """The file, its clock's offset, and the reader's notes."""
        identity = {"file": str(self._file)}
        if self._offset_s is not None:
            side = "behind" if self._offset_s < 0 else "ahead of"
            identity["clock"] = f"newest line {abs(self._offset_s):.1f} s {side} the run when first seen"
        notes = list(self._reader.notes())
        if not self._seen:
            notes.append("the file does not exist yet")
        return Facts(identity, (), tuple(notes))

    async def fingerprint(self) -> Mapping[str, Tree]:
        """See Fingerprints: the program and its settings, from the file; empty if it is unknown."""
        if not self._program:
            return {}
        told = self._reader.settings() if isinstance(self._reader, TellsSettings) else {}
        notes = () if told else (f"generator: the file of {self._program} does not tell how it was called",)
        return generator(self._program, "", {"file": str(self._file), **told}, notes)

    def _poll_once(self, now_ns: int) -> Answer:
        if not self._reading.acquire(blocking=False):
            raise SourceError(f"{self._file} is still being read by the previous poll")
        try:
            return self._read_file(now_ns)
        finally:
            self._reading.release()

    def _read_file(self, now_ns: int) -> Answer:
        deadline = time.monotonic() + self._budget_s
        parsed, events, faults = ParsedLines(), list[Event](), list[Fault]()
        moment, piece = self._moment(now_ns), None
        while True:
            piece = self._tail.read()
            if piece is None:
                break
            if piece.anew:
                events += self._restarted(now_ns)
                moment = self._moment(now_ns)
            self._add(parsed, piece, moment)
            if not piece.more or time.monotonic() > deadline:
                break
        if piece is None and not parsed.samples:
            return self._absent(now_ns)
        caught_up = piece is None or not piece.more
        if caught_up:
            parsed.samples += self._reader.ended(moment)
            self._check_clock(parsed.newest_ns, now_ns)
            self._old = False
        else:
            faults.append(Fault("", "", f"{self._file} grows faster than it is read: the rest follows later"))
        if self._wrong is not None or self._refusal is not None:
            raise SourceError(self._wrong or self._refusal or "")
        faults += self._line_faults(parsed)
        if moment.arrival:  # all have the same time: the last of a series counts
            parsed.samples = list({(sample.metric, sample.object): sample for sample in parsed.samples}.values())
        return Answer((*parsed.samples, *self._load_samples(parsed, now_ns)), tuple(events), tuple(faults))

    def _moment(self, now_ns: int) -> Moment:
        ahead_s = 0.0 if self._timed is None else self._timed.bound
        arrival = self._timed is None or self._timed.time == "arrival"
        return Moment(now_ns, now_ns + round(ahead_s * 1e9), arrival, self._old and not self._site.trial)

    def _restarted(self, now_ns: int) -> list[Event]:
        again, self._seen = self._seen, True
        self._wrong = None
        if again and not self._restarts and isinstance(self._reader, Continues):
            self._reader.go_on()
            return []
        self._reader.begin()
        if not again:
            return []
        self._old = False
        if not self._restarts:
            return []
        return [Event(RESTART, "", "", now_ns, None, {"file": str(self._file), "cause": "the file was rewritten"})]

    def _add(self, parsed: ParsedLines, piece: Piece, moment: Moment) -> None:
        if piece.overlong:
            parsed.cannot(f"it has more than {MAX_LINE_BYTES} characters", piece.overlong)
        if not piece.lines:
            return
        self._lines_ns = self._lines_ns if moment.old else moment.now_ns
        try:
            parsed.add(self._reader.take(piece.lines, moment))
        except SourceError as failure:
            self._wrong = str(failure)
            raise
        self._wrong = None

    def _absent(self, now_ns: int) -> Answer:
        file = self._file
        if self._seen:
            self._old = False
            raise SourceError(f"{file} was removed: reading continues when its writer creates it again")
        if now_ns - self._begin_ns <= self._config.wait * 1e9 or self._site.trial:
            return NOTHING
        raise SourceError(f"{file} does not exist: start the generator, or set file: to where it writes")

    def _check_clock(self, newest_ns: int | None, now_ns: int) -> None:
        """Checks the file's times against the run's clock; without new lines the result stays."""
        if newest_ns is None or self._timed is None or self._timed.time == "arrival" or self._site.trial:
            return
        off_s = (newest_ns - now_ns) * 1e-9
        if (self._old and off_s < 0) or abs(off_s) <= self._timed.bound:
            self._refusal = None
            if not self._old and self._offset_s is None:
                self._offset_s = off_s
            return
        side = "after" if off_s > 0 else "before"
        self._refusal = (
            f"{self._file}: the newest line is {show_seconds(round(abs(off_s)))} {side} now: set the "
            "generator's clock (or its zone: tz), raise bound, or use time: arrival"
        )

    def _line_faults(self, parsed: ParsedLines) -> list[Fault]:
        """Faults of unreadable lines and remarks, each reported once."""
        self._unread += parsed.unread
        faults = {sentence: Fault("", "", sentence) for sentence in parsed.remarks}
        if parsed.unread:
            text = f"a line cannot be read: {parsed.first[:_SHOWN]}"
            faults[UNREAD] = Fault(UNREAD if self._load else "", "", text)
        fresh = [fault for key, fault in faults.items() if key not in self._reported]
        self._reported |= faults.keys()
        return fresh

    def _load_samples(self, parsed: ParsedLines, now_ns: int) -> list[Sample]:
        if not self._load:
            return []
        samples = [Sample(UNREAD, "", self._unread, now_ns)]
        silence_s = None if self._timed is None else self._timed.silence
        since_ns = self._begin_ns if self._lines_ns is None else self._lines_ns
        quiet = silence_s is not None and now_ns - since_ns > silence_s * 1e9
        if any(sample.metric == SENDING for sample in parsed.samples):
            return samples  # the file says itself whether it sends
        if parsed.active is not None or quiet:
            samples.append(Sample(SENDING, "", int(bool(parsed.active)), now_ns))
        return samples
