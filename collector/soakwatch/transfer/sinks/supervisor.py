"""Supervises the sinks of a run: one process each, so that no poll waits for a database.

The processes report their progress. It goes into the record: cursors, and lag, backlog, written and refused lines as
readings of the target ``monitor``. A process that dies is restarted from its cursor.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.core.installed_code import REPLACED, code_stamp
from soakwatch.core.supervised_child import Child, RestartPauses, python_module
from soakwatch.core.units import show_seconds
from soakwatch.record import Record
from soakwatch.record.backlog import backlog
from soakwatch.transfer.sinks.abc import Destination
from soakwatch_model.roles import MONITOR
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample, object_text

MEASURE_EVERY_S = 5.0
DRAIN_S = 60.0
"""How long the end of a run waits for a database; `soakwatch sink` sends the rest."""
_PAUSE_S, _MAX_PAUSE_S = 5.0, 60.0  # before a dead process is restarted
_REPEAT_S = 600.0  # before the same warning is repeated
_MAX_WARNINGS = 100  # different ones; later ones are only in the report
BEHIND_S = 30.0
"""A sink is shown as behind if its oldest unwritten reading is older than this."""


class SinkProcess:
    """One sink of a run. ``error`` is why its last write failed; ``written`` and ``refused`` count lines, also before
    restarts."""

    def __init__(
        self, number: int, name: str, to: Destination, folder: Path, record: Record, complain: Callable[[str], None]
    ) -> None:
        self.name = name
        self.where = to.where
        self._number, self._folder, self._record, self._complain = number, folder, record, complain
        self._child: Child | None = None
        self._guard = threading.Lock()
        self._over, self._ending, self._woken = threading.Event(), threading.Event(), threading.Event()
        self._defect = ""
        self._stamp = code_stamp()
        self._before = (0, 0)
        self._now = (0, 0)
        self.error: str | None = None
        self.done = self.broken = False
        self.lag_s, self.waiting = 0.0, 0
        self._warned: dict[str, float] = {}
        self._warning = False  # a warning was shown that is not yet cleared
        self.cursor = record.cursor(self.where)
        self._thread = threading.Thread(target=self._supervise, daemon=True, name=self.name)

    @property
    def written(self) -> int:
        """Number of lines written."""
        return self._before[0] + self._now[0]

    @property
    def refused(self) -> int:
        """Number of lines refused for good."""
        return self._before[1] + self._now[1]

    def _settled(self) -> bool:
        return self.done or (self.broken and self._ending.is_set())

    @property
    def words(self) -> str:
        """How far it is behind, and why; "" if it is not."""
        if self.broken:
            return f"{self.where} cannot be written: {self.error}"
        if self.error is None and self.lag_s < BEHIND_S:
            return ""
        address = self.where.partition(" ")[0]
        reason = "" if self.error is None else f": {self.error.removeprefix(address).lstrip()}"
        return f"{self.where} is {show_seconds(round(self.lag_s))} behind ({self.waiting:,} polls waiting){reason}"

    def start(self) -> None:
        """Start feeding."""
        self._thread.start()

    def finish(self, wait_s: float = DRAIN_S) -> None:
        """The record is complete: wait up to ``wait_s`` seconds for the rest to be written."""
        self._ending.set()
        self._woken.set()
        with self._guard:
            self._send("end\n")
        self._thread.join(wait_s)

    def close(self) -> None:
        """End the process."""
        self._over.set()
        self._woken.set()
        with self._guard:
            if self._child is not None:
                self._child.kill()
        if self._thread.is_alive():
            self._thread.join()

    def _send(self, word: str) -> None:
        if self._child is not None:
            self._child.write(word)

    def _supervise(self) -> None:
        pauses = RestartPauses(_PAUSE_S, _MAX_PAUSE_S)
        while not (self._over.is_set() or self._settled()):
            begin = self.cursor
            try:
                self._feed()
            except OSError as error:  # no process, no memory
                self._defect = f" ({type(error).__name__})"
            if not (self._settled() or self._over.is_set()):
                if self.cursor != begin:
                    pauses.succeeded()
                if not self.broken:
                    replaced = "" if code_stamp() == self._stamp else f" ({REPLACED})"
                    self._warn(
                        f"the process writing to {self.where} ended unexpectedly{self._defect}{replaced}; restarting it"
                    )
                self._woken.wait(pauses.next_s())
                self._woken.clear()

    def _feed(self) -> None:
        """Run one process until it ends."""
        command = python_module("soakwatch.transfer.sinks", str(self._folder), str(self._number))
        with self._guard:
            if self._over.is_set():
                return
            self._child = child = Child(command)
            self._send(f"{self.cursor}\n")
            if self._ending.is_set():
                self._send("end\n")
        for line in child.lines():
            self._receive(line)
        self._before, self._now = (self.written, self.refused), (0, 0)

    def _warn(self, error: str, after: str = "the run goes on, and nothing of it is lost") -> None:
        now_s = time.monotonic()
        if now_s - self._warned.get(error, -_REPEAT_S) < _REPEAT_S or len(self._warned) >= _MAX_WARNINGS:
            return
        self._warned[error] = now_s
        self._warning = True
        self._complain(f"warning: {error}; {after}")

    def _receive(self, line: str) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return
        if "defect" in message:
            self._defect = f" ({message['defect']})"
            return
        if "broken" in message:
            self.broken, self.error = True, str(message["broken"])
            self._warn(f"the sink {self.where} cannot be written: {self.error}")
            return
        self.broken = False
        refused = self.refused
        self._now = message["written"], message["refused"]
        if self.refused and not refused:
            self._complain(
                f"warning: {self.where} refuses lines ({message['reason']}); they are kept in"
                f" {self._folder / f'sink-{self._number + 1}-refused.txt'}"
            )
        self.error = message["error"]
        if self.error is not None:
            self._warn(self.error)
        elif self._warning and message["cursor"] != self.cursor:
            self._warning = False
            self._complain(f"{self.where} accepts lines again")
        if message["cursor"] != self.cursor:
            self.cursor = message["cursor"]
            with suppress(RecordError):  # closed, or the disk is full: sending again changes nothing
                self._record.set_cursor(self.where, self.cursor)
        self.done = message["done"]


class SinkProcesses:
    """All sinks of a run, from ``start`` to ``close``."""

    def __init__(
        self,
        sinks: Mapping[str, Destination],
        folder: Path,
        record: Record,
        now_ns: Callable[[], int],
        complain: Callable[[str], None],
    ) -> None:
        self.all = tuple(
            SinkProcess(number, name, to, folder, record, complain) for number, (name, to) in enumerate(sinks.items())
        )
        self._folder, self._record, self._now_ns, self._complain = folder, record, now_ns, complain
        self._quiet = threading.Event()
        self._started = False
        self._measuring = threading.Thread(target=self._measure, daemon=True, name="sinks")

    def start(self) -> None:
        """Start feeding and measuring."""
        if self.all:
            self._started = True
            for sink in self.all:
                sink.start()
            self._measuring.start()

    def quiet(self) -> None:
        """Stop measuring, since the record is about to be judged."""
        self._quiet.set()
        if self._started:
            self._measuring.join()

    def words(self) -> tuple[str, ...]:
        """One sentence for each sink that is behind."""
        return tuple(words for sink in self.all if (words := sink.words))

    def finish(self, wait_s: float = DRAIN_S) -> bool:
        """Write the rest, and report sinks that cannot; True if all was written. Ctrl-C ends the wait."""
        began_s = time.monotonic()
        with suppress(KeyboardInterrupt):
            for sink in self.all if self._started else ():
                with suppress(RecordError):
                    self._update(sink, self._now_ns())
            for words in self.words() if self._started else ():
                self._complain(f"{words}; waiting for it, at most {show_seconds(wait_s)} (Ctrl-C skips this)")
            for sink in self.all if self._started else ():
                sink.finish(max(0.0, began_s + wait_s - time.monotonic()))
        waited_s = round(time.monotonic() - began_s, 1)
        for sink in self.all if self._started else ():
            if sink.done:
                refused = f", {sink.refused} refused" if sink.refused else ""
                self._complain(f"sink    {sink.where} ({sink.written} lines{refused})")
                continue
            with suppress(RecordError):
                left = backlog(self._folder, sink.cursor)
                self._complain(
                    f"warning: {sink.where} is incomplete after {show_seconds(waited_s)} ({left.polls} polls or the"
                    f" verdict are missing); send the rest with: soakwatch sink {self._folder} --to {sink.name}"
                )
        return all(sink.done for sink in self.all)

    def close(self) -> None:
        self.quiet()
        if self._started:
            for sink in self.all:
                sink.close()

    def _measure(self) -> None:
        interval_ns = round(MEASURE_EVERY_S * 1e9)
        with suppress(RecordError):
            self._record.target(MONITOR, MONITOR)
            source = self._record.source(MONITOR, "sink", "sink", interval_ns, required=False)
            while not self._quiet.wait(MEASURE_EVERY_S):
                due_ns = self._now_ns()
                with suppress(RecordError):  # full disk: the run itself reports that
                    samples = tuple(sample for sink in self.all for sample in self._samples(sink, due_ns))
                    took_ns = self._now_ns() - due_ns
                    poll = Poll(source.id, due_ns, due_ns, took_ns, PollOutcome.OK, None, Answer(samples, (), ()))
                    self._record.put([poll])

    def _update(self, sink: SinkProcess, now_ns: int) -> None:
        left = backlog(self._folder, sink.cursor)
        sink.lag_s = 0.0 if left.oldest_ns is None else max(0.0, (now_ns - left.oldest_ns) * 1e-9)
        sink.waiting = left.polls

    def _samples(self, sink: SinkProcess, now_ns: int) -> Sequence[Sample]:
        self._update(sink, now_ns)
        readings: dict[str, float] = {
            "monitor.sink.lag": sink.lag_s,
            "monitor.sink.backlog": sink.waiting,
            "monitor.sink.written": sink.written,
            "monitor.sink.rejected": sink.refused,
        }
        name = object_text(sink=sink.name)
        return [Sample(metric, name, value, now_ns) for metric, value in readings.items()]
