"""A result file as a source of samples: what is common to all of them, whatever stands in their lines."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import Field

from soakwatch.core.units import Seconds, show_seconds
from soakwatch.sources.abc import Facts, Poller, SourceConfig, SourceContext, SourceError, timing
from soakwatch.sources.result_files.tail import LONGEST_LINE, Piece, Tail
from soakwatch_agent.sample import NOTHING, Answer, Event, Fault, Sample

RESTART = "generator.restart"
UNREAD = "load.lines.unread"
SENDING = "load.sending"
_SHOWN = 120
_READING_SHARE = 0.5  # of a look's timeout; what is left of the file is for the looks after it
_GRACE_S = 5.0


class FileConfig(SourceConfig):
    """Keys of every source that follows a file."""

    file: Annotated[Path, Field(description="the file that the tool writes", strict=False)]
    wait: Annotated[Seconds, Field(default=60.0, ge=0, description="how long the file may be missing at first")]


class TimedFileConfig(FileConfig):
    """Keys of every source that follows a file whose lines come while there is load, and tell their times."""

    time: Annotated[
        Literal["column", "arrival"],
        Field(default="column", description="time of a sample: what its line says, or when the line was seen"),
    ]
    bound: Annotated[
        Seconds,
        Field(default=300.0, gt=0, description="a newest line whose time is farther from now is a wrong clock's"),
    ]
    silence: Annotated[
        Seconds, Field(default=30.0, gt=0, description="without a new line for so long, the generator rests")
    ]


@dataclass(frozen=True, slots=True)
class Moment:
    """When lines are read: ``limit_ns`` is the latest time that they can tell; by ``arrival`` theirs do not count.

    Lines that are ``old`` were in the file before anybody looked.
    """

    now_ns: int
    limit_ns: int
    arrival: bool
    old: bool


@dataclass(slots=True)
class Taken:
    """What some lines brought: ``newest_ns`` is the time that the last of them tells, ``active`` if there was load.

    ``unread`` lines could not be read; ``first`` says what is wrong with the first of them. ``doubts`` are sentences on
    lines that could, and may not mean what they were taken for.
    """

    samples: list[Sample] = field(default_factory=list)
    newest_ns: int | None = None
    active: bool | None = None
    unread: int = 0
    first: str = ""
    doubts: dict[str, None] = field(default_factory=dict)

    def doubt(self, sentence: str) -> None:
        """This has to be said, once."""
        self.doubts[sentence] = None

    def cannot(self, why: str, many: int = 1) -> None:
        """So many more lines cannot be read."""
        self.unread += many
        self.first = self.first or why

    def add(self, other: Taken) -> None:
        """What the lines after these brought."""
        self.samples += other.samples
        self.newest_ns = self.newest_ns if other.newest_ns is None else other.newest_ns
        self.active = self.active if other.active is None else (other.active or bool(self.active))
        self.doubts |= other.doubts
        if other.unread:
            self.cannot(other.first, other.unread)


class Reader(Protocol):
    """What the lines of one kind of file mean. All of it runs in a thread of its own."""

    def begin(self) -> None:
        """Another file, or the same one anew: nothing of the one before holds."""
        ...

    def take(self, lines: Sequence[str], moment: Moment) -> Taken:
        """What these lines mean. Raises SourceError for a file that is something else."""
        ...

    def ended(self, moment: Moment) -> list[Sample]:
        """What is complete once there are no more lines for the moment."""
        ...

    def notes(self) -> tuple[str, ...]:
        """Sentences on what was found out about the file."""
        ...


def begin_of(site: SourceContext) -> int:
    """The time before which lines are of no run; a look that is made for a trial may show old ones."""
    return 0 if site.trial else site.now_ns()


async def follow(
    config: FileConfig,
    site: SourceContext,
    stack: AsyncExitStack,
    reader: Reader,
    *,
    load: bool = True,
    restarts: bool = True,
) -> Poller:
    """Follow the file of ``config`` from now on; see ``Followed``. Raises SourceError for what is no such file."""
    followed = Followed(config, site, reader, load=load, restarts=restarts)
    stack.push_async_callback(followed.close)
    await asyncio.to_thread(followed.begin)
    return followed


class Followed:
    """A poller that reads what the file has become longer by.

    ``load`` says that the lines tell what a generator did: whether it sends is told then, and lines that could not be
    read are counted. ``restarts`` says that a file that begins anew is a generator that does.
    """

    def __init__(self, config: FileConfig, site: SourceContext, reader: Reader, *, load: bool, restarts: bool) -> None:
        self._config, self._site, self._reader = config, site, reader
        self._timed = config if isinstance(config, TimedFileConfig) else None
        self._load, self._restarts = load, restarts
        self._tail = Tail(config.file)
        self._reading = threading.Lock()
        self._begin_ns = site.now_ns()
        self._budget_s = _READING_SHARE * timing(0, site.interval_s, config.timeout).timeout_s
        self._old = False  # lines that were there before the run are still being read
        self._seen = False
        self._unread = 0
        self._told: set[str] = set()
        self._lines_ns: int | None = None  # when lines came last
        self._wrong: str | None = None  # what the file is instead, until it is another
        self._refusal: str | None = None  # what is wrong with its clock
        self._offset_s: float | None = None

    def begin(self) -> None:
        """Look whether the file is there already: what it holds then is from before the run."""
        self._old = self._config.file.exists()

    async def close(self) -> None:
        """Give the file back, once a look that was given up has ended."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        if self._reading.acquire(timeout=self._budget_s + _GRACE_S):
            self._tail.close()
            self._reading.release()

    async def poll(self, now_ns: int) -> Answer:
        """What was written since the look before. Raises SourceError for a file that is not there, or not right."""
        return await asyncio.to_thread(self._look, now_ns)

    def facts(self) -> Facts:
        """Which file, and how its clock goes."""
        identity = {"file": str(self._config.file)}
        if self._offset_s is not None:
            way = "behind" if self._offset_s < 0 else "ahead of"
            identity["clock"] = f"newest line {abs(self._offset_s):.1f} s {way} the run when first seen"
        notes = list(self._reader.notes())
        if not self._seen:
            notes.append("the file is not there yet")
        return Facts(identity, (), tuple(notes))

    def _look(self, now_ns: int) -> Answer:
        if not self._reading.acquire(blocking=False):
            raise SourceError(f"{self._config.file} is still being read since the look before")
        try:
            return self._looked(now_ns)
        finally:
            self._reading.release()

    def _looked(self, now_ns: int) -> Answer:
        deadline = time.monotonic() + self._budget_s
        found, events, faults = Taken(), list[Event](), list[Fault]()
        moment, piece = self._moment(now_ns), None
        while True:
            piece = self._tail.read()
            if piece is None:
                break
            if piece.anew:
                events += self._begun(now_ns)
                moment = self._moment(now_ns)
            self._add(found, piece, moment)
            if not piece.more or time.monotonic() > deadline:
                break
        if piece is None and not found.samples:
            return self._absent(now_ns)
        caught_up = piece is None or not piece.more
        if caught_up:
            found.samples += self._reader.ended(moment)
            self._hold_clock(found.newest_ns, now_ns)
            self._old = False
        else:
            faults.append(Fault("", "", f"{self._config.file} grows faster than it is read: the rest comes later"))
        if self._wrong is not None or self._refusal is not None:
            raise SourceError(self._wrong or self._refusal or "")
        faults += self._said(found)
        if moment.arrival:  # of several at one time the last counts
            found.samples = list({(sample.metric, sample.object): sample for sample in found.samples}.values())
        return Answer((*found.samples, *self._of_load(found, now_ns)), tuple(events), tuple(faults))

    def _moment(self, now_ns: int) -> Moment:
        ahead_s = 0.0 if self._timed is None else self._timed.bound
        arrival = self._timed is None or self._timed.time == "arrival"
        return Moment(now_ns, now_ns + round(ahead_s * 1e9), arrival, self._old and not self._site.trial)

    def _begun(self, now_ns: int) -> list[Event]:
        again, self._seen = self._seen, True
        self._reader.begin()
        self._wrong = None
        if not again:
            return []
        self._old = False
        if not self._restarts:
            return []
        return [Event(RESTART, "", now_ns, None, {"file": str(self._config.file), "cause": "it was begun anew"})]

    def _add(self, found: Taken, piece: Piece, moment: Moment) -> None:
        if piece.overlong:
            found.cannot(f"it has more than {LONGEST_LINE} characters", piece.overlong)
        if not piece.lines:
            return
        self._lines_ns = self._lines_ns if moment.old else moment.now_ns
        try:
            found.add(self._reader.take(piece.lines, moment))
        except SourceError as failure:
            self._wrong = str(failure)
            raise
        self._wrong = None

    def _absent(self, now_ns: int) -> Answer:
        file = self._config.file
        if self._seen:
            self._old = False
            raise SourceError(f"{file} was removed: it is followed again once its writer has made it anew")
        if now_ns - self._begin_ns <= self._config.wait * 1e9 or self._site.trial:
            return NOTHING
        raise SourceError(f"there is no file {file}: start the generator, or say where it writes (file:)")

    def _hold_clock(self, newest_ns: int | None, now_ns: int) -> None:
        """Whether the times in the file are those of the run; without new lines it stays as it was."""
        if newest_ns is None or self._timed is None or self._timed.time == "arrival" or self._site.trial:
            return
        off_s = (newest_ns - now_ns) * 1e-9
        if (self._old and off_s < 0) or abs(off_s) <= self._timed.bound:
            self._refusal = None
            if not self._old and self._offset_s is None:
                self._offset_s = off_s
            return
        way = "after" if off_s > 0 else "before"
        self._refusal = (
            f"{self._config.file}: its newest line is of {show_seconds(round(abs(off_s)))} {way} now: set the "
            "generator's clock (or its zone: tz), say how late lines may come (bound), or take time: arrival"
        )

    def _said(self, found: Taken) -> list[Fault]:
        """What is wrong with lines, each said once: that some cannot be read, and doubts."""
        self._unread += found.unread
        said = {sentence: Fault("", "", sentence) for sentence in found.doubts}
        if found.unread:
            text = f"a line cannot be read: {found.first[:_SHOWN]}"
            said[UNREAD] = Fault(UNREAD if self._load else "", "", text)
        fresh = [fault for key, fault in said.items() if key not in self._told]
        self._told |= said.keys()
        return fresh

    def _of_load(self, found: Taken, now_ns: int) -> list[Sample]:
        if not self._load:
            return []
        samples = [Sample(UNREAD, "", self._unread, now_ns)]
        silence_s = None if self._timed is None else self._timed.silence
        since_ns = self._begin_ns if self._lines_ns is None else self._lines_ns
        quiet = silence_s is not None and now_ns - since_ns > silence_s * 1e9
        if any(sample.metric == SENDING for sample in found.samples):
            return samples  # the file says so itself
        if found.active is not None or quiet:
            samples.append(Sample(SENDING, "", int(bool(found.active)), now_ns))
        return samples
