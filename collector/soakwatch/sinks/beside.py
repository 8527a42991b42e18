"""Sinks beside a run: each fed by a process of its own, so that no poll waits for a database.

The processes tell how far they are; the cursors go into the record, and lag, backlog, written and refused lines too,
as readings of the target ``monitor``. A process that dies is started again where its cursor stands.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.core.roles import MONITOR
from soakwatch.core.units import show_seconds
from soakwatch.plan.sink import Influxdb
from soakwatch.record import Record
from soakwatch.record.backlog import backlog
from soakwatch_agent.sample import Answer, Poll, PollOutcome, Sample, object_text

MEASURE_EVERY_S = 5.0
DRAIN_S = 60.0
"""So long a run waits at its end for a database; the rest is sent by `soakwatch sink`."""
_REST_S, _LONGEST_REST_S = 5.0, 60.0  # before a process that died is started again
_TOLD_AGAIN_S = 600.0  # the same sentence
_MOST_TOLD = 100  # different sentences, after which the trouble is told by the report only
BEHIND_S = 30.0
"""A sink whose oldest unwritten reading is older than this is shown as behind."""


class SinkBeside:
    """One sink of a run; ``trouble`` is what ails it, ``written`` and ``refused`` count lines over all its lives."""

    def __init__(
        self, number: int, to: Influxdb, folder: Path, record: Record, complain: Callable[[str], None]
    ) -> None:
        self.name = f"influxdb-{number + 1}"
        self.url, self.where = to.url, f"{to.url} {to.org}/{to.bucket}"
        self._number, self._folder, self._record, self._complain = number, folder, record, complain
        self._process: subprocess.Popen[str] | None = None
        self._guard = threading.Lock()
        self._over, self._ending, self._woken = threading.Event(), threading.Event(), threading.Event()
        self._defect = ""
        self._before = (0, 0)
        self._now = (0, 0)
        self.trouble: str | None = None
        self.done = self.broken = False
        self.lag_s, self.waiting = 0.0, 0
        self._told: dict[str, float] = {}
        self._owed = False  # whoever was told of a trouble wants to know that it is over
        self.cursor = record.cursor(self.where)
        self._thread = threading.Thread(target=self._attend, daemon=True, name=self.name)

    @property
    def written(self) -> int:
        """Lines that were written."""
        return self._before[0] + self._now[0]

    @property
    def refused(self) -> int:
        """Lines that were refused for good."""
        return self._before[1] + self._now[1]

    def _settled(self) -> bool:
        return self.done or (self.broken and self._ending.is_set())

    @property
    def words(self) -> str:
        """That it is behind, by how much and why; "" if it is not."""
        if self.broken:
            return f"{self.where} cannot be fed: {self.trouble}"
        if self.trouble is None and self.lag_s < BEHIND_S:
            return ""
        why = "" if self.trouble is None else f": {self.trouble.removeprefix(self.url).lstrip()}"
        return f"{self.where} is {show_seconds(round(self.lag_s))} behind ({self.waiting:,} polls wait){why}"

    def start(self) -> None:
        """Begin to feed."""
        self._thread.start()

    def finish(self, wait_s: float = DRAIN_S) -> None:
        """The record is complete: let the rest be written, and wait so long for it."""
        self._ending.set()
        self._woken.set()
        with self._guard:
            self._say("end\n")
        self._thread.join(wait_s)

    def close(self) -> None:
        """End the process."""
        self._over.set()
        self._woken.set()
        with self._guard:
            process = self._process
            if process is not None and process.poll() is None:
                process.kill()
        if self._thread.is_alive():
            self._thread.join()

    def _say(self, word: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError, ValueError):
                self._process.stdin.write(word)
                self._process.stdin.flush()

    def _attend(self) -> None:
        rest_s = _REST_S / 2
        while not (self._over.is_set() or self._settled()):
            stood = self.cursor
            try:
                self._feed()
            except OSError as error:  # no process, no memory
                self._defect = f" ({type(error).__name__})"
            if not (self._settled() or self._over.is_set()):
                rest_s = _REST_S if self.cursor != stood else min(_LONGEST_REST_S, rest_s * 2)
                if not self.broken:
                    self._warn(f"what feeds {self.where} ended by itself{self._defect}, and is started again")
                self._woken.wait(rest_s)
                self._woken.clear()

    def _feed(self) -> None:
        """One life of the process."""
        command = [sys.executable, "-m", "soakwatch.sinks", str(self._folder), str(self._number)]
        with self._guard:
            if self._over.is_set():
                return
            self._process = process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
            self._say(f"{self.cursor}\n")
            if self._ending.is_set():
                self._say("end\n")
        with process:
            assert process.stdout is not None
            for line in process.stdout:
                self._hear(line)
        self._before, self._now = (self.written, self.refused), (0, 0)

    def _warn(self, trouble: str, after: str = "the run goes on, and nothing of it is lost") -> None:
        now_s = time.monotonic()
        if now_s - self._told.get(trouble, -_TOLD_AGAIN_S) < _TOLD_AGAIN_S or len(self._told) >= _MOST_TOLD:
            return
        self._told[trouble] = now_s
        self._owed = True
        self._complain(f"warning: {trouble}; {after}")

    def _hear(self, line: str) -> None:
        try:
            told = json.loads(line)
        except ValueError:
            return
        if "defect" in told:
            self._defect = f" ({told['defect']})"
            return
        if "broken" in told:
            self.broken, self.trouble = True, str(told["broken"])
            self._warn(f"the sink {self.where} cannot be fed: {self.trouble}")
            return
        self.broken = False
        refused = self.refused
        self._now = told["written"], told["refused"]
        if self.refused and not refused:
            self._complain(
                f"warning: {self.where} refuses lines ({told['why']}); they are kept in"
                f" {self._folder / f'sink-{self._number + 1}-refused.txt'}"
            )
        self.trouble = told["trouble"]
        if self.trouble is not None:
            self._warn(self.trouble)
        elif self._owed and told["cursor"] != self.cursor:
            self._owed = False
            self._complain(f"{self.where} takes lines again")
        if told["cursor"] != self.cursor:
            self.cursor = told["cursor"]
            with suppress(RecordError):  # it is closed, or the disk is full: what is sent again changes nothing
                self._record.set_cursor(self.where, self.cursor)
        self.done = told["done"]


class SinksBeside:
    """All sinks of a run, from ``start`` to ``close``; without a sink nothing happens."""

    def __init__(
        self,
        sinks: Sequence[Influxdb],
        folder: Path,
        record: Record,
        now_ns: Callable[[], int],
        complain: Callable[[str], None],
    ) -> None:
        self.all = tuple(SinkBeside(number, to, folder, record, complain) for number, to in enumerate(sinks))
        self._folder, self._record, self._now_ns, self._complain = folder, record, now_ns, complain
        self._quiet = threading.Event()
        self._started = False
        self._measuring = threading.Thread(target=self._measure, daemon=True, name="sinks")

    def start(self) -> None:
        """Begin to feed, and to measure."""
        if self.all:
            self._started = True
            for sink in self.all:
                sink.start()
            self._measuring.start()

    def quiet(self) -> None:
        """Measure no more: the record is about to be judged."""
        self._quiet.set()
        if self._started:
            self._measuring.join()

    def words(self) -> tuple[str, ...]:
        """Which sinks are behind, in a sentence each."""
        return tuple(words for sink in self.all if (words := sink.words))

    def finish(self, wait_s: float = DRAIN_S) -> None:
        """Let the rest be written, and say where that is not possible now. A Ctrl-C ends the waiting."""
        began_s = time.monotonic()
        with suppress(KeyboardInterrupt):
            for sink in self.all if self._started else ():
                with suppress(RecordError):
                    self._look_at(sink, self._now_ns())
            for words in self.words() if self._started else ():
                self._complain(f"{words}; it is waited for, {show_seconds(wait_s)} at most (Ctrl-C: no longer)")
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
                    f"warning: {sink.where} has not all of this run after {show_seconds(waited_s)} ({left.polls} polls"
                    f" are missing, or the verdict): soakwatch sink {self._folder} --to … sends it"
                )

    def close(self) -> None:
        """End all processes."""
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
                with suppress(RecordError):  # a full disk, which the run itself complains of
                    samples = tuple(one for sink in self.all for one in self._samples(sink, due_ns))
                    took_ns = self._now_ns() - due_ns
                    poll = Poll(source.id, due_ns, due_ns, took_ns, PollOutcome.OK, None, Answer(samples, (), ()))
                    self._record.put([poll])

    def _look_at(self, sink: SinkBeside, now_ns: int) -> None:
        left = backlog(self._folder, sink.cursor)
        sink.lag_s = 0.0 if left.oldest_ns is None else max(0.0, (now_ns - left.oldest_ns) * 1e-9)
        sink.waiting = left.polls

    def _samples(self, sink: SinkBeside, now_ns: int) -> Sequence[Sample]:
        self._look_at(sink, now_ns)
        readings: dict[str, float] = {
            "monitor.sink.lag": sink.lag_s,
            "monitor.sink.backlog": sink.waiting,
            "monitor.sink.written": sink.written,
            "monitor.sink.rejected": sink.refused,
        }
        name = object_text(sink=sink.name)
        return [Sample(metric, name, value, now_ns) for metric, value in readings.items()]
