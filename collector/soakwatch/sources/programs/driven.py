"""A load generator that the run drives: one process for each level, whose output file is followed while it grows."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Final

from pydantic import Field

from soakwatch.core.stderr_tail import last_line
from soakwatch.sources.abc import Facts, Poller, SourceConfig, SourceContext, SourceError, SourceUnreadyError, timing
from soakwatch.sources.generator_tree import generator, told_command
from soakwatch.sources.programs.full_load import Full, FullLoad
from soakwatch.sources.programs.released_file import MAX_BYTES, ReleasedFile
from soakwatch.sources.programs.running import said_by, version_of
from soakwatch.sources.programs.supervisor import Command, Supervisor, Terms
from soakwatch.sources.result_files.result_file import (
    RESTART,
    SENDING,
    Continues,
    FollowedFile,
    FollowKeys,
    Reader,
    TakesTotals,
)
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Fault, Sample
from soakwatch_model.tree import Tree

MAX_LEVEL: Final = 100.0
HANDSHAKE_S = 60.0  # a Java on a busy machine takes long to start
_LOOK_S = 0.05
_PATIENCE = 0.7  # share of a poll's timeout that a change of level may take
_FAREWELL_S = 10.0
_STEADY_S = 15.0
_VERSION_S = 60.0
_QUIET_NS = 6_000_000_000  # after this a reader has closed its last tick
_MAX_HELD = 50_000
_PRINTED_BYTES = 1 << 20  # what a program may print into one file
_FOLDER = "generators"


class DriveKeys(SourceConfig):
    """Keys of every load that follows the file of a program, or drives the program itself."""

    title: ClassVar[str] = ""
    driven_keys: ClassVar[tuple[str, ...]] = ("full", "program", "options")
    """Keys that need ``drive: true``."""
    needed_keys: ClassVar[tuple[str, ...]] = ("full",)
    """Those of them without which it cannot be driven."""

    file: Annotated[
        Path | None, Field(default=None, description="the file that the tool writes, run elsewhere", strict=False)
    ]
    drive: Annotated[bool, Field(default=False, description="run the program, and vary what it sends by phase")]
    full: Annotated[
        Full | None, Field(default=None, description="what it sends at load 100%: a rate (500/s) or users (50 users)")
    ]
    options: Annotated[
        tuple[str, ...],
        Field(default=(), max_length=64, strict=False, description="more arguments of the program, as a list"),
    ]

    def wrong(self, units: Mapping[str, str]) -> str:
        """What is wrong with the keys, "" for nothing; ``units`` are those of ``full`` that it takes, and how each is
        written."""
        title = self.title
        given = self.model_fields_set
        if self.drive and self.file is not None:
            return f"file and drive: true exclude each other: {title} writes its own file when it is driven"
        if not self.drive:
            idle = [key for key in self.driven_keys if key in given]
            if idle:
                return f"{', '.join(idle)}: these keys need drive: true"
            return "" if self.file is not None else f"{title} needs file: what it writes, or drive: true to be run"
        lacking = [key for key in self.needed_keys if getattr(self, key) is None]
        if lacking:
            return f"drive: true needs {' and '.join(f'{key}:' for key in lacking)}"
        if self.full is not None and self.full.unit not in units:
            return f"{title} cannot be driven by full: {self.full}: write {' or '.join(units.values())}"
        return ""


@dataclass(frozen=True, slots=True)
class DrivenKind:
    """How a program is driven.

    ``command`` makes the command of a level, of the output file and what ``version_pattern`` found; ``check`` is a
    command that ends with code 0 where the script can be run, both with the folder of the program. ``prepare`` writes
    there what the program needs, and says in one sentence what is missing, as ``understands`` does by the output with
    the version. ``output`` is the name of the file it writes; with ``prints`` it prints instead. ``offered`` is the
    metric of the commanded rate, where that is known, ``threads`` how many cores it can use (None: all),
    ``noise`` what its error messages need not say. ``totals`` finds in a line that it prints at its end how many
    requests there were and how many of them failed, where its file has no last row.
    """

    name: str
    title: str
    program: str
    full: FullLoad
    version_words: tuple[str, ...]
    version_pattern: re.Pattern[str]
    command: Callable[[float, Path], Command]
    output: str
    check: Callable[[Path], Command] | None = None
    prepare: Callable[[Path], str] = lambda _: ""
    understands: Callable[[str], str] = lambda _: ""
    prints: bool = False
    family: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    offered: str = ""
    threads: int | None = None
    noise: re.Pattern[bytes] | None = None
    totals: re.Pattern[str] | None = None
    notes: tuple[str, ...] = ()


async def drive(
    kind: DrivenKind, config: FollowKeys, site: SourceContext, stack: AsyncExitStack, reader: Reader
) -> Poller:
    """The driven program, at rest until a level is set. Raises SourceError if it is not installed."""
    if shutil.which(kind.program) is None:
        raise SourceError(f"{kind.program} is not installed: install {kind.title} here, or set program: to its path")
    driven = DrivenProgram(kind, config, site, reader)
    stack.push_async_callback(driven.close)
    driven.begin()
    return driven


class DrivenProgram:
    """See ``Drivable``, ``Identifies``, ``Fingerprints``, and ``Output`` of the supervisor."""

    def __init__(self, kind: DrivenKind, config: FollowKeys, site: SourceContext, reader: Reader) -> None:
        self._kind, self._site, self._reader = kind, site, reader
        mark = hashlib.sha256("\0".join(kind.command(1.0, Path())).encode()).hexdigest()[:8]
        self._file = ReleasedFile(site.folder / _FOLDER / f"{site.target}-{mark}" / kind.output)
        self._followed = FollowedFile(self._file.path, config, site, reader, restarts=False, program=kind.title)
        self._patience_s = timing(0, site.interval_s, config.timeout).timeout_s * _PATIENCE
        terms = Terms(
            kind.title,
            "begun",
            repeats=kind.prints,
            handshake_s=HANDSHAKE_S,
            look_s=_LOOK_S,
            farewell_s=_FAREWELL_S,
            steady_s=_STEADY_S,
            family=kind.family,
            environment=kind.environment,
        )
        self._kept = Supervisor(terms, self)
        self._level: float | None = None
        self._version: asyncio.Task[str] | None = None
        self._reading = asyncio.Lock()
        self._held: list[Sample] = []
        self._faults: list[Fault] = []
        self._events: list[Event] = []
        self._cause = ""  # why the process before this one ended, if it should not have
        self._ended_ns = 0
        self._printed = ""
        self._totals: tuple[int, int] | None = None  # requests and failures, as the process told at its end

    def begin(self) -> None:
        """Starts the supervisor, which rests, and asks the program for its version."""
        if not self._site.trial and self._file.path.parent.exists():
            self._file.remove()
            self._cause = "the run was resumed: the program of before counts no more"
        self._version = asyncio.create_task(self._asked())
        self._kept.begin()

    async def close(self) -> None:
        """Ends the program with all it started, and removes its file."""
        if self._version is not None:
            self._version.cancel()
            await asyncio.wait([self._version])
        await self._kept.close()
        await self._followed.close()
        self._file.remove()

    # --- what it is ----------------------------------------------------------------------------------------

    async def _asked(self) -> str:
        """The version, once script and program are known to be usable. Raises SourceError."""
        kind, folder = self._kind, self._file.path.parent.absolute()
        self._file.prepare()
        match = await version_of(kind.program, kind.version_words, kind.version_pattern, kind.title, _VERSION_S)
        if wrong := kind.understands(match.string):
            raise SourceError(wrong)
        if wrong := await asyncio.to_thread(kind.prepare, folder):
            raise SourceError(wrong)
        if kind.check is not None and self._site.trial:
            await self._tried(kind.check(folder))
        return match[1]

    async def _tried(self, command: Command) -> None:
        try:
            code, output = await said_by(command, _VERSION_S)
        except OSError as error:
            raise SourceError(f"cannot start {command[0]}: {(error.strerror or 'it cannot be run').lower()}") from None
        except TimeoutError:
            raise SourceError(f"{self._kind.title} does not end when it reads the script: look at it") from None
        if code:
            raise SourceError(f"{self._kind.title} refuses the script: {self._said(output)}")

    def _said(self, output: bytes) -> str:
        """The last line of an output, without secrets and what is told twice."""
        return last_line(self._kind.noise.sub(b"", output) if self._kind.noise else output)

    def _known(self) -> str | None:
        """The version; None while it is asked for. Raises SourceError."""
        assert self._version is not None
        return self._version.result() if self._version.done() else None

    def facts(self) -> Facts:
        """Version and command at full level."""
        version = ""
        if self._version is not None and self._version.done() and self._version.exception() is None:
            version = self._version.result()
        notes = (*self._kind.notes, *self._reader.notes())
        if self._level is None:
            notes = ("it rests until the run sets its level: the load of a phase, 100% if no phase names one", *notes)
        return Facts(
            {self._kind.name: version, "command": told_command(self._kind.command(1.0, Path(self._kind.output)))},
            (),
            notes,
        )

    async def fingerprint(self) -> Mapping[str, Tree]:
        """See Fingerprints: the command at full level. Raises SourceError."""
        version = self._known()
        if version is None:
            raise SourceUnreadyError(f"{self._kind.program} has not reported its version yet")
        config: dict[str, Tree] = {
            "command": told_command(self._kind.command(1.0, Path(self._kind.output))),
            "full": str(self._kind.full),
        }
        return generator(self._kind.title, version, config)

    def _words(self, level: float) -> Command:
        return self._kind.command(level, self._file.path)

    # --- what it sends -------------------------------------------------------------------------------------

    async def drive(self, level: float) -> None:
        """See ``Drivable``: the process ends, and one of the new level starts. Nothing is sent in between."""
        if not 0 <= level <= MAX_LEVEL:
            raise SourceError(f"invalid level {level:g}: expected 0 to {MAX_LEVEL:g}")
        assert self._version is not None
        self._level = level
        await asyncio.wait([self._version], timeout=self._patience_s)
        if not self._apply():
            return
        try:
            await self._kept.settled(self._patience_s)
        except SourceError:
            if self._kept.error is not None:
                raise
            # It is still starting: nothing is sent, and the polls say so.

    def _apply(self) -> bool:
        """Has the process of the level, once the version is known. Raises SourceError."""
        if self._known() is None:
            return False
        self._kept.want(self._words(self._level) if self._level else None)
        return True

    async def poll(self, now_ns: int) -> Answer:
        """What the program wrote since the last poll. Raises SourceError if it should run and does not."""
        if self._known() is None:
            if self._site.trial:
                raise SourceUnreadyError(f"{self._kind.program} has not reported its version yet")
            return Answer((), (), ())
        if self._site.trial:
            return Answer((Sample(SENDING, "", 0, now_ns),), (), ())
        if self._level is not None:
            self._apply()
        async with self._reading:
            await self._collect(now_ns)
        self._rest(now_ns)
        if self._kept.error is not None and not self._held:
            raise SourceError(self._kept.error)
        samples, self._held = self._held, []
        faults, self._faults = tuple(self._faults), []
        events, self._events = tuple(self._events), []
        return Answer((*samples, *self._commanded(now_ns), *self._busy(now_ns)), events, faults)

    def _busy(self, now_ns: int) -> tuple[Sample, ...]:
        share = self._kept.busy(self._kind.threads or os.cpu_count() or 1)
        return () if share is None else (Sample("load.cpu.utilization", "", share, now_ns),)

    def _rest(self, now_ns: int) -> None:
        """While no process runs nothing is sent, which is known."""
        if self._kept.connected and self._kind.prints:
            self._held.append(Sample(SENDING, "", 1, now_ns))
        if self._kept.connected or self._kept.error is not None:
            return
        self._held = [sample for sample in self._held if sample.metric != SENDING]
        self._held.append(Sample(SENDING, "", 0, now_ns))
        if self._kept.resting and self._ended_ns and now_ns - self._ended_ns > _QUIET_NS:
            assert isinstance(self._reader, Continues)
            self._held += self._reader.rest(now_ns)

    def _commanded(self, now_ns: int) -> tuple[Sample, ...]:
        if not self._kind.offered or self._kind.full.unit != "rate" or self._level is None:
            return ()
        rate = self._kind.full.at(self._level) if self._kept.connected else 0.0
        return (Sample(self._kind.offered, "", rate, now_ns),)

    async def _collect(self, now_ns: int) -> None:
        """Reads the file, as far as the budget of a poll goes, and gives back what was read."""
        if not self._kept.starts:
            return
        absent = not self._file.path.exists()  # the next process makes it; what is left of the old one is read
        try:
            answer = await self._followed.poll(now_ns)
        except SourceError:
            if absent:
                return
            raise
        self._held = [*self._held, *answer.samples][-_MAX_HELD:]
        self._faults += answer.faults
        if (position := self._followed.position) is not None:
            await asyncio.to_thread(self._file.release, position)
        if self._level and self._kept.connected and self._file.held > MAX_BYTES and not self._kind.prints:
            self._cause = "its output file was too large: the file system cannot give back what was read"
            self._kept.want(self._words(self._level), anew=True)

    # --- what the supervisor asks --------------------------------------------------------------------------

    def started(self) -> None:
        """See ``Output``: the process gets a new file, unless it prints."""
        self._printed, self._totals = "", None
        if not self._kind.prints or not self._file.path.exists() or self._file.written > _PRINTED_BYTES:
            self._file.renew()

    def take(self, line: str) -> bool:
        """See ``Output``."""
        if self._kind.prints:
            self._file.append(line)
            self._begun()
        elif self._kind.totals is not None and (told := self._kind.totals.search(line)):
            self._totals = int(told[1]), int(told[2])
        elif line.strip():
            self._printed = line
        return self._kind.prints

    def at_work(self) -> bool:
        """See ``Output``: it has written something."""
        working = not self._kind.prints and self._file.written > 0
        if working:
            self._begun()
        return working

    def _begun(self) -> None:
        if self._cause:
            about = {"cause": self._cause, "level": f"{self._level or 0:g}"}
            self._events.append(Event(RESTART, "", "", self._site.now_ns(), None, about))
            self._cause = ""

    async def ended(self) -> None:
        """See ``Output``: its file is read to the end before the next process gets a new one."""
        self._ended_ns = self._site.now_ns()
        async with self._reading:
            try:
                await self._collect(self._ended_ns)
            except SourceError as failure:
                self._faults.append(Fault("", "", str(failure)))
            if self._totals is not None and isinstance(self._reader, TakesTotals):
                self._held += self._reader.total(*self._totals, self._ended_ns)

    def failed(self, reason: str) -> None:
        """See ``Output``: the next process is a restart."""
        self._cause = reason

    def reason(self, complaints: str, code: int) -> str:
        """See ``Output``: the last line that it printed, with its exit code."""
        said = self._said(complaints.encode()) or self._said(self._printed.encode())
        return f"{said} (exit code {code})" if said else ""


def arguments(reserved: Sequence[str], options: Sequence[str]) -> str:
    """Why ``options`` cannot be passed on: those in ``reserved`` are set by the run; "" if they can."""
    taken = [word for word in options if word.partition("=")[0] in reserved]
    return f"options may not contain {', '.join(taken)}: the run sets them by the keys of the source" if taken else ""
