"""The flight recorder: CPU, drops and socket queues ten times a second, the last ten minutes in memory.

It measures its own CPU time and doubles its interval (``every_s``) while it costs more than 1 % of a core. The kernel
counts CPU time in ticks of 10 ms, so a share over 0.1 s moves in steps of 0.1.
"""

from __future__ import annotations

import os
import threading
import time
from array import array
from typing import Callable, List, Optional, Sequence, Tuple

from soakwatch_agent.framing import Object

EVERY_S = 0.1
RING_S = 600
MAX_CORES = 128
_MAX_COST = 0.01  # share of a core
_MAX_EVERY_S = 1.6
_COST_CHECK_EVERY = 100  # samples
_MAX_ROWS = 1300
_CHUNK = 1 << 16
_FILES = ("/proc/stat", "/proc/net/softnet_stat", "/proc/net/dev", "/proc/net/sockstat")
_DROP_PLACES = ("softnet", "receive", "transmit")
_QUEUES = ("tcp", "udp")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MISSING = -1


def cpu_ticks(text: bytes, max_cores: int = MAX_CORES) -> List[int]:
    """Busy and total ticks of the machine, then of each core, in the order of /proc/stat.

    >>> cpu_ticks(b"cpu  1 0 2 6 1 0 0 0 0 0\\ncpu0 1 0 2 6 1 0 0 0 0 0\\nintr 5")
    [3, 10, 3, 10]
    """
    ticks: List[int] = []
    for line in text.split(b"\n", max_cores + 1):
        if not line.startswith(b"cpu"):
            break
        modes = [int(part) for part in line.split()[1:9]]
        total = sum(modes)
        ticks += (total - modes[3] - modes[4], total)
    return ticks


def drops(softnet: bytes, interfaces: bytes) -> Tuple[int, int, int]:
    """Packets dropped in the backlog, on receive and on transmit, summed over cores and interfaces.

    >>> drops(b"0a 02 00\\n0b 01 00\\n", b"h\\nh\\n eth0: 9 9 0 4 0 0 0 0 9 9 0 5 0 0 0 0\\n")
    (3, 4, 5)
    """
    backlog = sum(int(line.split(None, 2)[1], 16) for line in softnet.splitlines() if line)
    receive = transmit = 0
    for line in interfaces.split(b"\n")[2:]:
        fields = line.rpartition(b":")[2].split()
        if len(fields) >= 12:
            receive += int(fields[3])
            transmit += int(fields[11])
    return backlog, receive, transmit


def queues(sockstat: bytes) -> Tuple[int, int]:
    """Memory of all TCP and UDP socket queues in bytes; -1 if the kernel does not report it.

    >>> queues(b"TCP: inuse 1 orphan 0 tw 0 alloc 1 mem 2\\nUDP: inuse 1 mem 0\\n") == (2 * _PAGE, 0)
    True
    """
    queued = {b"TCP:": _MISSING, b"UDP:": _MISSING}
    for line in sockstat.splitlines():
        fields = line.split()
        if fields and fields[0] in queued and b"mem" in fields:
            queued[fields[0]] = int(fields[fields.index(b"mem") + 1]) * _PAGE
    return queued[b"TCP:"], queued[b"UDP:"]


class Recorder:
    """Samples in its own thread; any thread may call ``window``."""

    def __init__(self, now_ns: Callable[[], int], root: str = "/", ring_s: int = RING_S) -> None:
        self._now_ns = now_ns
        self._paths = [path if root == "/" else root.rstrip("/") + path for path in _FILES]
        self._fds: List[Optional[int]] = []
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
        self._rows = int(ring_s / EVERY_S)
        self._width = 0
        self._ring = array("q")
        self._next = 0
        self.every_s = EVERY_S
        self.cost = 0.0  # CPU seconds used so far

    def start(self) -> None:
        """Opens the kernel's files, allocates the ring and starts the thread. Raises OSError, ValueError."""
        self._fds = [_open(path) for path in self._paths]
        row = self.sample()
        self._width = len(row)
        self._ring = array("q", bytes(8 * self._rows * self._width))
        self._thread.start()

    def end(self) -> None:
        """Stops the thread and closes the files."""
        self._ending.set()
        self._thread.join(5.0)
        for fd in self._fds:
            if fd is not None:
                os.close(fd)
        self._fds = []

    def sample(self) -> List[int]:
        """Reads one row: time, drops, queues, ticks."""
        stat, softnet, interfaces, sockets = (b"" if fd is None else _pread(fd) for fd in self._fds)
        return [self._now_ns(), *drops(softnet, interfaces), *queues(sockets), *cpu_ticks(stat)]

    def window(self, begin_ns: int, end_ns: int) -> Object:
        """The samples of an interval of agent time, 1300 at most (130 s at 0.1 s): columns, times, rows of values."""
        rows = [row for row in self._in_order() if begin_ns <= row[0] < end_ns][:_MAX_ROWS]
        cores = (self._width - 6) // 2 if self._width else 0
        columns = [["recorder.dropped", f"place={location}"] for location in _DROP_PLACES]
        columns += [["recorder.queue.usage", f"queue={queue}"] for queue in _QUEUES]
        columns += [["recorder.cpu.utilization", f"core={'all' if core == 0 else core - 1}"] for core in range(cores)]
        values = []
        for index, row in enumerate(rows):
            before = rows[index - 1] if index else None
            totals: List[Optional[float]] = [None if value < 0 else value for value in row[1:6]]
            values.append(totals + [_share(before, row, 6 + 2 * core) for core in range(cores)])
        return {
            "columns": [list(column) for column in columns],
            "times": [row[0] for row in rows],
            "values": [list(each) for each in values],
            "every_s": self.every_s,
        }

    def _in_order(self) -> List[Sequence[int]]:
        with self._lock:
            count, width, end = min(self._next, self._rows), self._width, self._next
            offsets = [(number % self._rows) * width for number in range(end - count, end)]
            return [self._ring[offset : offset + width] for offset in offsets]

    def _work(self) -> None:
        spent, sampled = time.thread_time(), 0
        due, since = time.monotonic(), time.monotonic()
        while not self._ending.wait(max(0.0, due - time.monotonic())):
            due = max(due + self.every_s, time.monotonic())
            try:
                row = self.sample()
            except (OSError, ValueError, IndexError):
                continue  # a file was malformed for a moment; the ring shows a gap
            if len(row) != self._width:
                # a core went offline or came: columns keep their position
                row = (row + [0] * self._width)[: self._width]
            offset = (self._next % self._rows) * self._width
            with self._lock:
                self._ring[offset : offset + self._width] = array("q", row)
                self._next += 1
            sampled += 1
            if sampled == _COST_CHECK_EVERY:
                now, used = time.monotonic(), time.thread_time()
                if (used - spent) > _MAX_COST * (now - since) and self.every_s < _MAX_EVERY_S:
                    self.every_s *= 2
                self.cost += used - spent
                spent, since, sampled = used, now, 0


def _share(before: Optional[Sequence[int]], row: Sequence[int], column: int) -> Optional[float]:
    if before is None:
        return None
    busy, total = row[column] - before[column], row[column + 1] - before[column + 1]
    return round(busy / total, 4) if total > 0 and 0 <= busy <= total else None


def _open(path: str) -> Optional[int]:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _pread(fd: int) -> bytes:
    """Reads a file from its start without reopening: /proc renders its text anew at each read from 0."""
    data = os.pread(fd, _CHUNK, 0)
    while True:
        more = os.pread(fd, _CHUNK, len(data))
        if not more:
            return data
        data += more
