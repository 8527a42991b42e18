"""Kernel log: lines that mean OOM kill, segfault, panic, hung task, lockup, a hardware error or throttling."""

from __future__ import annotations

import errno
import os
import stat
from typing import Dict, Optional

from soakwatch_agent.context import SECOND, HostContext, Periodic, ProbeAnswer, why
from soakwatch_agent.kernlog import KINDS, alarm_of, parse_record
from soakwatch_agent.procfs import clean, read_text
from soakwatch_model.sample import Answer

_MAX_RECORD = 8192  # the kernel's longest record
_MAX_EVENTS = 100
_MAX_RECORDS = 20_000  # per poll; the rest waits in the kernel's ring buffer


class KernelProbe:
    """Reads /dev/kmsg from its opening on: earlier lines belong to another run.

    On a recorded machine the log is a plain file of such records, one a line. ``system.kernel.alarms`` is reported for
    each kind, also when 0, to prove that the log was read. An event has the time of its log line, not of the poll.
    """

    def __init__(self, context: HostContext) -> None:
        self._path = context.path("/dev/kmsg")
        self._uptime_path = context.path("/proc/uptime")
        self._notes = ProbeAnswer()
        self._retry = Periodic(60)
        self._counts: Dict[str, int] = dict.fromkeys(KINDS, 0)
        self._fd: Optional[int] = None
        self._device = False
        self._rest = b""
        self._fault = ""
        self._unreported = 0
        self._last_poll_ns = 0  # the previous poll; new lines were logged after it
        self._uptime_s: Optional[float] = None  # of this poll, read when a line needs it
        self._open()

    def _open(self) -> None:
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            self._fault = "there is no kernel log: /dev/kmsg does not exist"
        except OSError as error:
            self._fault = f"the kernel log cannot be read: {why(error)}; run as root, or give the agent CAP_SYSLOG"
        else:
            self._device = stat.S_ISCHR(os.fstat(fd).st_mode)
            os.lseek(fd, 0, os.SEEK_END)
            self._fd = fd

    def read(self, now_ns: int) -> Answer:
        """At most 100 events a poll; further alarms are counted, and a fault says how many."""
        notes = self._notes
        self._last_poll_ns, self._uptime_s = notes.now_ns or now_ns, None
        notes.begin(now_ns)
        if self._fd is None and self._retry.due(now_ns):
            self._open()
        if self._fd is None:
            notes.fault("system.kernel.alarms", "", self._fault)
            return notes.answer()
        self._unreported = 0
        try:
            if self._device:
                self._read_device(self._fd)
            else:
                self._read_file(self._fd)
        except OSError as error:
            os.close(self._fd)
            self._fd, self._fault = None, f"reading the kernel log failed: {why(error)}"
            notes.fault("system.kernel.alarms", "", self._fault)
            return notes.answer()
        if self._unreported:
            text = f"{self._unreported} more alarms in one poll were counted but not reported one by one"
            notes.fault("system.kernel.alarms", "", text)
        for kind, count in self._counts.items():
            notes.sample("system.kernel.alarms", f"kind={kind}", count)
        return notes.answer()

    def _read_device(self, fd: int) -> None:
        for _ in range(_MAX_RECORDS):
            try:
                record = os.read(fd, _MAX_RECORD)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.EPIPE:
                    self._notes.fault("system.kernel.alarms", "", "the kernel log overflowed: records were lost unread")
                    continue
                if error.errno == errno.EINVAL:
                    continue  # a record longer than any buffer: it cannot be read
                raise
            if not record:
                return
            self._take(record.decode("utf-8", "surrogateescape"))

    def _read_file(self, fd: int) -> None:
        if os.fstat(fd).st_size < os.lseek(fd, 0, os.SEEK_CUR):
            self._notes.fault(
                "system.kernel.alarms", "", "the kernel log was truncated: it is read again from its start"
            )
            os.lseek(fd, 0, os.SEEK_SET)
            self._rest = b""
        chunk = os.read(fd, 1 << 20)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._take(line.decode("utf-8", "surrogateescape"))

    def _take(self, record: str) -> None:
        line = parse_record(record)
        if line is None or line.priority >> 3:
            return  # not the kernel's facility: a program wrote it, perhaps quoting the kernel
        alarm = alarm_of(line.text)
        if alarm is None:
            return
        self._counts[alarm.kind] += 1
        if len(self._notes.events) >= _MAX_EVENTS:
            self._unreported += 1
            return
        owner = {key: clean(value) for key, value in alarm.owner.items()}
        uptime, begin_ns = f"{line.usec / 1e6:.6f}", self._when(line.usec)
        text = clean(line.text)[:500]
        self._notes.event_at(begin_ns, f"kernel.{alarm.kind}", "", line=text, uptime_s=uptime, **owner)

    def _when(self, usec: int) -> int:
        """The time of a log line. Its clock (since boot) is never set and drifts from the steady clock, so the result
        is clamped to the time between the previous poll and this one."""
        now_ns = self._notes.now_ns
        if self._uptime_s is None:
            try:
                self._uptime_s = float(read_text(self._uptime_path).split()[0])
            except (OSError, ValueError, IndexError):
                return now_ns
        return min(now_ns, max(self._last_poll_ns, now_ns - round((self._uptime_s - usec / 1e6) * SECOND)))

    def close(self) -> None:
        """Closes the log."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def open_probe(context: HostContext) -> KernelProbe:
    """Opens the probe of a host."""
    return KernelProbe(context)
