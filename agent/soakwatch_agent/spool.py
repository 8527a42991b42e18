"""Bounded store-and-forward: polls wait on disk until the collector has acknowledged them.

Polls are numbered without end. A full spool drops its oldest polls and reports their numbers: no gap is silent. Written
polls survive a kill -9 (a torn last line is cut off at the next start) and a power cut up to the last sync, by default
10 s ago at most.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Deque, List, Optional, Set, Tuple

from soakwatch_agent.framing import FrameError, Object, object_of, whole, word
from soakwatch_agent.segments import Segment, SpooledPoll, encode_line, find_segments, lines_of, path_of
from soakwatch_agent.service import read_state, write_state

BOUND = 256 * 2**20
_FILE = "spool.json"
_SEGMENTS = 64  # a full spool drops 1/64 of itself at a time
_TAIL = 64  # newest polls, also kept in memory: a collector that keeps up never reads the disk
_KEEP_STATE_S = 5.0
_MAX_RANGES = 64

Range = Tuple[int, int]


@dataclass(frozen=True)
class SpoolState:
    """What can be read (``first`` to ``last``), what was acknowledged (up to ``acked``), and what was lost."""

    __slots__ = ("acked", "first", "last", "lost", "ranges", "size", "trouble")
    first: int
    last: int
    acked: int
    lost: int
    ranges: Tuple[Range, ...]
    size: int
    trouble: Optional[str]


class Spool:
    """The spool of one folder, which one process at a time may use; any thread may call any method."""

    def __init__(self, folder: str, bound: int = BOUND, sync_s: Optional[float] = 10.0) -> None:
        """``sync_s`` is the time between disk syncs: 0 syncs each poll, None leaves it to the kernel."""
        self._folder, self._bound, self._sync_s = folder, bound, sync_s
        self._lock = threading.Condition()
        self._segments: List[Segment] = find_segments(folder)
        self._tail: Deque[SpooledPoll] = deque()
        self._only_here: Set[int] = set()  # polls of the tail that could not be written to disk
        self._fd: Optional[int] = None
        self._synced = self._kept = time.monotonic()
        self._reading = (0, 0)  # last number read from disk, and the offset after it
        self.agent_id, self._run, self._acked, self._lost = secrets.token_hex(8), "", 0, 0
        self._ranges: List[Range] = []
        self._trouble: Optional[str] = None
        kept_last = self._load()
        self._last = max([kept_last, self._acked, *(segment.last for segment in self._segments)])
        self._keep()

    @property
    def run(self) -> str:
        """Name of the run that these polls belong to; empty before the first."""
        return self._run

    def state(self) -> SpoolState:
        """The state of the spool now."""
        with self._lock:
            first = next((s.first for s in self._segments if s.last >= s.first), self._last + 1)
            if self._tail:
                first = min(first, self._tail[0].seq)
            size = sum(segment.size for segment in self._segments)
            first = max(first, self._acked + 1)
            return SpoolState(first, self._last, self._acked, self._lost, tuple(self._ranges), size, self._trouble)

    def append(self, epoch: int, wire: bytes) -> int:
        """Stores a poll; returns its number. If the disk is full, drops the oldest polls, or this one; never raises."""
        with self._lock:
            line = SpooledPoll(self._last + 1, epoch, wire)
            self._last = line.seq
            data = encode_line(line)
            try:
                self._write(line, data)
                self._trouble = None
            except OSError as error:
                self._trouble = f"the spool cannot be written: {(error.strerror or 'no reason given').lower()}"
                self._retry(line, data)
            self._tail.append(line)
            if len(self._tail) > _TAIL:
                self._leave_tail(self._tail.popleft().seq)
            self._lock.notify_all()
            return line.seq

    def wait_for(self, seq: int, timeout_s: float) -> bool:
        """Waits until the poll of this number is stored; False after ``timeout_s``."""
        with self._lock:
            return self._lock.wait_for(lambda: self._last >= seq, timeout_s)

    def read(self, after: int, max_lines: int, max_bytes: int) -> List[SpooledPoll]:
        """The polls after a number, oldest first, within the limits (but at least one, if there is one)."""
        with self._lock:
            after = max(after, self._acked)
            if self._tail and self._tail[0].seq <= after + 1:
                return _fitting([line for line in self._tail if line.seq > after], max_lines, max_bytes)
            taken = self._read_disk(after, max_lines, max_bytes)
            rest = [line for line in self._tail if line.seq > after]
            if not taken:
                return _fitting(rest, max_lines, max_bytes)
            # Append the tail in the same answer: it moves on with each poll, so a reader of the disk would never reach
            # it.
            room = max_bytes - sum(len(line.wire) for line in taken)
            if rest and rest[0].seq == taken[-1].seq + 1 and len(taken) < max_lines and len(rest[0].wire) <= room:
                taken += _fitting(rest, max_lines - len(taken), room)
            return taken

    def newest(self) -> Optional[SpooledPoll]:
        """The newest poll, if this process made it."""
        with self._lock:
            return self._tail[-1] if self._tail else None

    def ack(self, seq: int) -> None:
        """The collector has all polls up to this number: deletes their full segments."""
        with self._lock:
            if seq <= self._acked:
                return
            self._acked = min(seq, self._last)
            gone = [s for s in self._segments[:-1] if s.last <= self._acked]
            for segment in gone:
                self._drop(segment)
            if gone or time.monotonic() - self._kept > _KEEP_STATE_S:
                self._keep()

    def begin(self, run: str) -> None:
        """Starts a run and deletes the polls of another; the same run continues."""
        with self._lock:
            if run == self._run:
                return
            self._run, self._acked, self._lost, self._ranges = run, self._last, 0, []
            for segment in list(self._segments):
                self._drop(segment)
            self._tail.clear()
            self._only_here.clear()
            self._keep()

    def close(self) -> None:
        """Syncs and closes the segment, saves the state."""
        with self._lock:
            if self._fd is not None:
                with contextlib.suppress(OSError):
                    os.fsync(self._fd)
                os.close(self._fd)
                self._fd = None
            self._keep()

    # --- on disk; the caller holds the lock --------------------------------------------------------------------

    def _load(self) -> int:
        try:
            kept = object_of(read_state(self._folder, _FILE))
            self.agent_id, self._run = word(kept, "id"), word(kept, "run")
            self._acked, self._lost = whole(kept, "acked"), whole(kept, "lost")
            ranges = kept.get("ranges")
            for pair in ranges if isinstance(ranges, list) else []:
                if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], int) and isinstance(pair[1], int):
                    self._ranges.append((pair[0], pair[1]))
            return whole(kept, "last", 0)
        except (OSError, FrameError):
            return 0

    def _keep(self) -> None:
        ranges: Object = {"ranges": [[first, last] for first, last in self._ranges]}
        self._kept = time.monotonic()
        try:
            write_state(
                self._folder,
                _FILE,
                {
                    "id": self.agent_id,
                    "run": self._run,
                    "acked": self._acked,
                    "last": self._last,
                    "lost": self._lost,
                    **ranges,
                },
            )
        except OSError as error:
            self._trouble = f"the spool's state cannot be written: {(error.strerror or 'no reason given').lower()}"

    def _write(self, line: SpooledPoll, data: bytes) -> None:
        while self._segments and sum(segment.size for segment in self._segments) + len(data) > self._bound:
            self._drop_oldest()
        segment = self._segments[-1] if self._segments else None
        if self._fd is None or segment is None or segment.size + len(data) > max(self._bound // _SEGMENTS, 4096):
            segment = self._open(line.seq)
        assert self._fd is not None
        written = os.write(self._fd, data)
        if written < len(data):  # a partial line is useless: cut it off
            os.ftruncate(self._fd, segment.size)
            raise OSError(28, "No space left on device")
        segment.last, segment.size = line.seq, segment.size + len(data)
        if self._sync_s is not None and time.monotonic() - self._synced >= self._sync_s:
            os.fdatasync(self._fd)
            self._synced = time.monotonic()

    def _open(self, first: int) -> Segment:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
        path = path_of(self._folder, first)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        segment = Segment(path, first, first - 1, 0)
        self._segments.append(segment)
        return segment

    def _retry(self, line: SpooledPoll, data: bytes) -> None:
        """The disk is full: drops the oldest segment once; if that does not help, this poll stays in memory only."""
        if len(self._segments) > 1:
            self._drop_oldest()
            try:
                self._write(line, data)
            except OSError:
                pass  # there is still no room
            else:
                return
        self._only_here.add(line.seq)

    def _leave_tail(self, seq: int) -> None:
        if seq in self._only_here:
            self._only_here.discard(seq)
            if seq > self._acked:
                self._lose(seq, seq)

    def _drop_oldest(self) -> None:
        segment = self._segments[0]
        self._lose(max(segment.first, self._acked + 1), segment.last)
        self._drop(segment)
        while self._tail and self._tail[0].seq <= segment.last:
            self._only_here.discard(self._tail.popleft().seq)
        self._keep()

    def _lose(self, first: int, last: int) -> None:
        if last < first:
            return
        self._lost += last - first + 1
        if self._ranges and self._ranges[-1][1] == first - 1:
            first = self._ranges.pop()[0]
        self._ranges.append((first, last))
        if len(self._ranges) > _MAX_RANGES:  # merge the oldest two: what lies between them then counts as lost too
            self._ranges[:2] = [(self._ranges[0][0], self._ranges[1][1])]

    def _drop(self, segment: Segment) -> None:
        if segment is self._segments[-1] and self._fd is not None:
            os.close(self._fd)
            self._fd = None
        self._segments.remove(segment)
        with contextlib.suppress(OSError):
            os.unlink(segment.path)  # noqa: PTH108

    def _read_disk(self, after: int, max_lines: int, max_bytes: int) -> List[SpooledPoll]:
        """Reads the polls before the tail from disk."""
        taken: List[SpooledPoll] = []
        room, below = max_bytes, self._tail[0].seq if self._tail else self._last + 1
        for segment in [segment for segment in self._segments if segment.last > after]:
            offset = 0
            if self._reading[0] == after and segment.first <= after:
                offset = min(self._reading[1], segment.size)
            try:
                for line, end in lines_of(segment.path, offset):
                    if line is None or line.seq <= after:
                        continue
                    if line.seq >= below or (taken and (len(taken) >= max_lines or room < len(line.wire))):
                        return taken
                    taken.append(line)
                    room -= len(line.wire)
                    self._reading = (line.seq, end)
            except OSError:
                continue  # the file was deleted: the reader sees that its numbers are missing
        return taken


def _fitting(lines: List[SpooledPoll], max_lines: int, max_bytes: int) -> List[SpooledPoll]:
    taken: List[SpooledPoll] = []
    for line in lines[:max_lines]:
        max_bytes -= len(line.wire)
        if taken and max_bytes < 0:
            break
        taken.append(line)
    return taken
