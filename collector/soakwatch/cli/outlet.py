"""Standard output and error of a command that continues without them.

A run of days outlives its terminal: an SSH client is killed, the reader of a pipe ends, a disk fills up, somebody
presses Ctrl-S. Within ``lasting_terminal`` no write to standard output or error fails or blocks. What cannot be written
is dropped and reported by ``Terminal.losses``.
"""

from __future__ import annotations

import errno
import functools
import io
import os
import select
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TextIO, TypeVar

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

P = ParamSpec("P")
R = TypeVar("R")

PATIENCE_S = 10.0
"""How long the end of a command waits for a blocked terminal before the rest is dropped."""
MAX_WAITING = 4 << 20
"""Bytes queued for a blocked terminal; beyond that the oldest are dropped."""
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Disk errors that may pass: the next write is tried."""
_OUT, _ERR = 1, 2
_NAMES = {_OUT: "standard output", _ERR: "standard error"}


@dataclass(frozen=True, slots=True)
class Loss:
    """A stream (``standard output``) that was lost: when (UTC ns), and why."""

    stream: str
    time_ns: int
    reason: str


class Terminal:
    """Writes to standard output and error from a thread, in order, so that no caller waits."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._size = self._written = 0
        self._writing = False
        self._thread: threading.Thread | None = None
        self._gone: set[int] = set()
        self._full: set[int] = set()
        self._untold: list[Loss] = []
        self._moved_to: dict[int, int] = {}

    def real(self, descriptor: int) -> int:
        """The descriptor that a stream's bytes go to: another one within ``moved``."""
        return self._moved_to.get(descriptor, descriptor)

    @contextmanager
    def moved(self, descriptor: int, to: int) -> Iterator[None]:
        """Within the block the bytes of this stream go to the descriptor ``to``, so its own can be used otherwise."""
        self._moved_to[descriptor] = to
        try:
            yield
        finally:
            self.drain()
            del self._moved_to[descriptor]

    @property
    def gone(self) -> bool:
        """Whether standard output is lost for good."""
        return _OUT in self._gone

    def losses(self) -> list[Loss]:
        """The losses since the last call."""
        with self._changed:
            told, self._untold = self._untold, []
            return told

    def put(self, descriptor: int, data: bytes) -> None:
        """Queue bytes for writing; never blocks or raises."""
        with self._changed:
            if descriptor in self._gone:
                return
            self._waiting.append((descriptor, data))
            self._size += len(data)
            while self._size > MAX_WAITING and len(self._waiting) > 1:
                self._size -= len(self._waiting.popleft()[1])
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="terminal", daemon=True)
                with suppress(RuntimeError):  # no memory for its stack: the next call tries again, else drain() writes
                    thread.start()
                    self._thread = thread
            self._changed.notify_all()

    def drain(self, patience_s: float = PATIENCE_S) -> bool:
        """Wait until all is written, as long as there is progress within ``patience_s``; returns whether it is."""
        while self._thread is None and self._waiting:
            self._write(*self._waiting.popleft())
        with self._changed:
            while self._waiting or self._writing:
                written = self._written
                self._changed.wait_for(functools.partial(self._moved, written), patience_s)
                if not self._moved(written):
                    return False
        return True

    def _moved(self, written: int) -> bool:
        return self._written != written or not (self._waiting or self._writing)

    def give_up(self, descriptor: int, reason: str) -> None:
        """Drop the stream from here on: this process and its children then write to /dev/null."""
        with self._changed:
            if descriptor in self._gone:
                return
            self._gone.add(descriptor)
            self._waiting = deque(item for item in self._waiting if item[0] != descriptor)
            self._size = sum(len(data) for _, data in self._waiting)
            self._changed.notify_all()
        with suppress(OSError):
            _to_nothing(self.real(descriptor))
        self._lost(descriptor, reason)

    def _lost(self, descriptor: int, reason: str) -> None:
        name = _NAMES.get(descriptor, f"descriptor {descriptor}")
        with self._changed:
            self._untold.append(Loss(name, time.time_ns(), reason))
        if descriptor == _OUT:
            self.put(_ERR, f"soakwatch: {name} is lost ({reason}): the work goes on without it\n".encode())

    def _work(self) -> None:
        while True:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: bool(self._waiting))
                descriptor, data = self._waiting.popleft()
                self._size -= len(data)
                self._writing = True
            self._write(descriptor, data)

    def _write(self, descriptor: int, data: bytes) -> None:
        left = memoryview(data)
        while left and descriptor not in self._gone:
            try:
                count = os.write(self.real(descriptor), left)
            except BlockingIOError:  # another process that shares the descriptor made it non-blocking
                select.select([], [self.real(descriptor)], [], 1.0)
                continue
            except OSError as error:
                reason = error.strerror or type(error).__name__
                if error.errno not in _NO_ROOM:
                    self.give_up(descriptor, reason)
                elif descriptor not in self._full:
                    self._full.add(descriptor)
                    self._lost(descriptor, reason)
                return
            left = left[count:]
            with self._changed:
                self._written += count
                self._changed.notify_all()


class _Stream(io.BufferedIOBase):
    """The binary side of a stream whose bytes a Terminal writes."""

    def __init__(self, terminal: Terminal, descriptor: int) -> None:
        self._terminal, self._descriptor = terminal, descriptor

    @property
    def name(self) -> str:
        """The stream's name for people."""
        return _NAMES.get(self._descriptor, "")

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        """The descriptor; it leads to /dev/null once the stream is lost."""
        return self._terminal.real(self._descriptor)

    def isatty(self) -> bool:
        """Whether it is a terminal now."""
        return os.isatty(self.fileno())

    def write(self, data: Buffer, /) -> int:
        """Queue all of it."""
        taken = bytes(data)
        self._terminal.put(self._descriptor, taken)
        return len(taken)


@contextmanager
def lasting_terminal() -> Iterator[Terminal]:
    """Within the block no write to standard output or error fails or blocks, and a hang-up (SIGHUP) does not end it. At
    its end the rest is written, or dropped after ``PATIENCE_S`` without progress."""
    terminal = Terminal()
    before = sys.stdout, sys.stderr
    descriptors = [number for number in map(_descriptor, before) if number is not None]
    with _no_hang_up():
        sys.stdout, sys.stderr = (_lasting(stream, terminal) for stream in before)
        try:
            yield terminal
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            sys.stdout, sys.stderr = before
            if not terminal.drain():
                for descriptor in descriptors:
                    terminal.give_up(descriptor, f"it took nothing for {PATIENCE_S:g} s")


def outlives_terminal(command: Callable[Concatenate[Terminal, P], R]) -> Callable[P, R]:
    """Wrap a command in ``lasting_terminal``, which is its first argument."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        with lasting_terminal() as terminal:
            return command(terminal, *args, **kwargs)

    return guarded


def hold_standard_streams() -> None:
    """Open /dev/null for a standard stream that was closed at start (``>&-``): otherwise a file opened later would take
    its descriptor and get what is written for the user."""
    for descriptor in (0, _OUT, _ERR):
        try:
            os.fstat(descriptor)
        except OSError:
            _to_nothing(descriptor)
    sys.stdout = sys.stdout or _nothing()
    sys.stderr = sys.stderr or _nothing()


def discard_broken_streams() -> None:
    """Redirect broken streams to /dev/null: Python flushes at exit, and a failure there makes the exit code 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _to_nothing(stream.fileno())


def stay_on_hang_up() -> None:
    """Survive a hang-up of the terminal (SIGHUP) from now on.

    With a handler that does nothing rather than SIG_IGN, which hooks and scripts would inherit.
    """
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # Windows has none
        signal.signal(signal.SIGHUP, lambda *_: None)


@contextmanager
def _no_hang_up() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGHUP"):
        yield
        return
    before = signal.getsignal(signal.SIGHUP)
    stay_on_hang_up()
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def _lasting(stream: TextIO, terminal: Terminal) -> TextIO:
    descriptor = _descriptor(stream)
    if descriptor is None:
        return stream
    with suppress(OSError):
        stream.flush()
    return io.TextIOWrapper(
        _Stream(terminal, descriptor), encoding=stream.encoding, errors=stream.errors, write_through=True
    )


def _descriptor(stream: TextIO) -> int | None:
    """The descriptor of a stream; None if it has none, such as in a test."""
    try:
        return stream.fileno()
    except (AttributeError, OSError, ValueError):
        return None


def _to_nothing(descriptor: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    if nothing == descriptor:
        os.set_inheritable(descriptor, True)  # noqa: FBT003
        return
    os.dup2(nothing, descriptor)
    os.close(nothing)


def _nothing() -> TextIO:
    return open(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8", closefd=False)
