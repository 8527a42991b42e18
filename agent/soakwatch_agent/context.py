"""The machine that is polled: its root folder, what to watch there, and what its probes share."""

from __future__ import annotations

import errno
import os
import re
import threading
from dataclasses import dataclass, field
from types import TracebackType
from typing import Callable, Dict, Optional, Protocol, Tuple, Type

import psutil

from soakwatch_agent.command_pattern import search_of
from soakwatch_agent.procfs import read_line
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Fault, Sample

WATCH_KINDS = ("name", "glob", "cmdline", "pid", "pidfile")
SECOND = 10**9
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Watch:
    """One watch on processes: the ``name`` that is shown, ``how`` (one of WATCH_KINDS) it matches, and ``what``."""

    __slots__ = ("how", "name", "what")
    name: str
    how: str
    what: str


def watch(name: str, how: str, what: str) -> Watch:
    """A checked watch. Raises ValueError, in one sentence, if nothing can match it.

    >>> watch("worm*", "name", "worm*").how
    'glob'
    """
    if how not in WATCH_KINDS:
        raise ValueError(f"a process is watched by {', '.join(WATCH_KINDS)}, not by {how!r}")
    if not what:
        raise ValueError("a watched process needs a name: NAME, GLOB, pid:N, cmdline:REGEX or pidfile:F")
    if how == "pid" and not (what.isdigit() and int(what) > 0):
        raise ValueError(f"{what!r} is not a pid: write pid:1234")
    if how == "cmdline":
        try:
            search_of(what)
        except ValueError as error:
            raise ValueError(f"cmdline:{error}") from None
    if how == "name" and _GLOB.search(what):
        how = "glob"
    return Watch(name, how, what)


def watch_of(text: str) -> Watch:
    """Parses a watch: NAME, GLOB, ``pid:N``, ``cmdline:REGEX`` or ``pidfile:F``. Raises ValueError.

    >>> watch_of("nginx"), watch_of("pid:12").how
    (Watch(name='nginx', how='name', what='nginx'), 'pid')
    """
    how, colon, what = text.partition(":")
    if colon and how in ("pid", "cmdline", "pidfile"):
        return watch(what if how == "cmdline" else text, how, what)
    return watch(text, "name", text)


def _none_denied(_path: str) -> bool:
    return False


@dataclass
class SharedState:
    """What probes share during a poll: the watched processes and the boot time.

    ``denied(path)`` is True if a file of a recorded machine is missing because the recording account could not read it.
    """

    watched: Dict[int, str] = field(default_factory=dict)  # pid -> object text
    boot_id: Optional[str] = None
    boot_s: Optional[float] = None
    denied: Callable[[str], bool] = _none_denied


@dataclass(frozen=True)
class HostContext:
    """A machine: this one (root ``/``), or a recorded or mounted one under another folder; immutable but ``shared``."""

    root: str = "/"
    watches: Tuple[Watch, ...] = ()
    interfaces: Optional[Tuple[str, ...]] = None  # globs; None = all
    core_folders: Tuple[str, ...] = ()
    shared: SharedState = field(default_factory=SharedState, compare=False)

    @property
    def real(self) -> bool:
        """True where the files are the running kernel's own."""
        return self.root == "/"

    def path(self, absolute: str) -> str:
        """The path of one of the machine's files as this process sees it.

        >>> HostContext("/rec").path("/proc/stat"), HostContext().path("/proc/stat")
        ('/rec/proc/stat', '/proc/stat')
        """
        return absolute if self.root == "/" else self.root.rstrip("/") + "/" + absolute.lstrip("/")

    def denied(self, error: OSError) -> str:
        """The machine's path that could not be read for want of rights when it was recorded; else empty."""
        if not isinstance(error, FileNotFoundError) or not isinstance(error.filename, str):
            return ""
        path = error.filename[len(self.root.rstrip("/")) :] if error.filename.startswith(self.root) else ""
        return path if path and self.shared.denied(path) else ""

    def why(self, error: OSError) -> str:
        """Why a file of the machine could not be read, in words (see the function ``why``)."""
        return why(PermissionError(errno.EACCES, os.strerror(errno.EACCES))) if self.denied(error) else why(error)

    def boot_s(self) -> Optional[float]:
        """Time of boot, seconds since 1970, read once for each boot id: setting the clock does not move it."""
        boot_id, shared = read_line(self.path("/proc/sys/kernel/random/boot_id")), self.shared
        if shared.boot_s is None or boot_id != shared.boot_id:
            try:
                with ProcAt(self):
                    shared.boot_s = float(psutil.boot_time())
            except (OSError, RuntimeError):
                shared.boot_s = None
            shared.boot_id = boot_id
        return shared.boot_s


_PSUTIL_LOCK = threading.Lock()


class ProcAt:
    """Points psutil at a machine's /proc for the length of a ``with``.

    psutil keeps that path in a module variable, so a lock serialises machines. Nothing that can hang (statvfs, /sys of
    a dying device) belongs inside.
    """

    __slots__ = ("_folder",)

    def __init__(self, context: HostContext) -> None:
        self._folder = context.path("/proc")

    def __enter__(self) -> None:
        _PSUTIL_LOCK.acquire()
        psutil.PROCFS_PATH = self._folder

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        psutil.PROCFS_PATH = "/proc"
        _PSUTIL_LOCK.release()


class Probe(Protocol):
    """One local source: a module ``probes/NAME.py`` with a docstring and ``open_probe(context)``; the metrics of the
    catalogue name the probe that reads them."""

    def read(self, now_ns: int) -> Answer:
        """One poll at steady time ``now_ns``; a probe may answer less often than it is polled. May raise."""
        ...

    def close(self) -> None:
        """Closes what was opened."""
        ...


class Periodic:
    """Says when an expensive reading is due again; times are steady nanoseconds."""

    __slots__ = ("_every_ns", "_last_ns")

    def __init__(self, every_s: float) -> None:
        self._every_ns = int(every_s * SECOND * 0.95)  # a poll that comes a little early still counts
        self._last_ns: Optional[int] = None

    def due(self, now_ns: int) -> bool:
        """True the first time, and then once each period."""
        if self._last_ns is not None and 0 <= now_ns - self._last_ns < self._every_ns:
            return False
        self._last_ns = now_ns
        return True


class ProbeAnswer:
    """The answer of one probe, emptied and filled for each poll; it remembers which faults it has reported.

    A fault is reported when it starts or changes, not at each poll, because answers are spooled and cross a network.
    (The collector's loads use ``soakwatch.sources.answer_builder``, which holds one poll only.)
    """

    __slots__ = ("_add", "_reported", "events", "faults", "now_ns", "samples")

    def __init__(self) -> None:
        self._reported: Dict[Tuple[str, str], str] = {}
        self.begin(0)

    def begin(self, now_ns: int) -> None:
        """Empties the answer for a new poll."""
        self.now_ns = now_ns
        self.samples: list[Sample] = []
        self._add = self.samples.append
        self.events: list[Event] = []
        self.faults: list[Fault] = []

    def sample(self, metric: str, label: str, value: float) -> None:
        """Adds a reading; ``label`` is the object's canonical label text, empty for the machine."""
        self._add(Sample(metric, label, value, self.now_ns))

    def event(self, kind: str, label: str, **detail: object) -> None:
        """Adds an event that happened now."""
        self.event_at(self.now_ns, kind, label, **detail)

    def event_at(self, begin_ns: int, kind: str, label: str, **detail: object) -> None:
        """Adds an event that began at a known time."""
        text = {key: str(value) for key, value in detail.items()}
        self.events.append(Event(kind, "", label, begin_ns, None, text))

    def fault(self, metric: str, label: str, text: str) -> None:
        """Reports that a metric could not be read, unless the same text was reported before."""
        if self._reported.get((metric, label)) != text:
            self._reported[metric, label] = text
            self.faults.append(Fault(metric, label, text))

    def recovered(self, metric: str, label: str) -> None:
        """Forgets the reported fault of a metric that was read again, so the next fault is reported."""
        if self._reported:
            self._reported.pop((metric, label), None)

    def answer(self) -> Answer:
        """The result of the poll."""
        return Answer(tuple(self.samples), tuple(self.events), tuple(self.faults))


def why(error: OSError) -> str:
    """The reason of an operating system error in words, without the path.

    >>> why(PermissionError(13, "Permission denied", "/x"))
    'permission denied'
    """
    return (error.strerror or os.strerror(error.errno or 0)).lower()
