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

from soakwatch.errors import RecordError
from soakwatch.record import Record
from soakwatch.selfwatch import ROLE, TARGET
from soakwatch.sinks.backlog import backlog
from soakwatch.sinks.influxdb import Influxdb
from soakwatch.units import show_seconds
from soakwatch_agent.sample import Answer, Poll, PollOutcome, Sample, object_text

MEASURE_EVERY_S = 5.0
DRAIN_S = 60.0
"""So long a run waits at its end for a database; the rest is sent by `soakwatch sink`."""
_REST_S = 5.0  # before a process that died is started again


class SinkBeside:
    """One sink of a run; ``trouble`` is what ails it, ``written`` and ``refused`` count lines over all its lives."""

    def __init__(
        self, number: int, to: Influxdb, folder: Path, record: Record, complain: Callable[[str], None]
    ) -> None:
        self.name = f"influxdb-{number + 1}"
        self.where = f"{to.url} {to.org}/{to.bucket}"
        self._number, self._folder, self._record, self._complain = number, folder, record, complain
        self._process: subprocess.Popen[str] | None = None
        self._guard = threading.Lock()
        self._over, self._ending = threading.Event(), threading.Event()
        self._before = (0, 0)
        self._now = (0, 0)
        self.trouble: str | None = None
        self.done = self.broken = False
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

    @property
    def _settled(self) -> bool:
        return self.done or self.broken

    def start(self) -> None:
        """Begin to feed."""
        self._thread.start()

    def finish(self, wait_s: float = DRAIN_S) -> None:
        """The record is complete: let the rest be written, and wait so long for it."""
        self._ending.set()
        with self._guard:
            self._say("end\n")
        self._thread.join(wait_s)

    def close(self) -> None:
        """End the process."""
        self._over.set()
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
        while not (self._over.is_set() or self._settled):
            command = [sys.executable, "-m", "soakwatch.sinks", str(self._folder), str(self._number)]
            with self._guard:
                if self._over.is_set():
                    return
                self._process = process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                    start_new_session=True,
                )  # fmt: skip
                self._say(f"{self.cursor}\n")
                if self._ending.is_set():
                    self._say("end\n")
            with process:
                assert process.stdout is not None
                for line in process.stdout:
                    self._hear(line)
            self._before, self._now = (self.written, self.refused), (0, 0)
            if not self._settled:
                self._over.wait(_REST_S)

    def _hear(self, line: str) -> None:
        try:
            told = json.loads(line)
        except ValueError:
            return
        if "broken" in told:
            self.broken = True
            self._complain(f"warning: the sink {self.where} cannot be fed: {told['broken']}; the run goes on")
            return
        refused = self.refused
        self._now = told["written"], told["refused"]
        if self.refused and not refused:
            self._complain(
                f"warning: {self.where} refuses lines ({told['why']}); they are kept in"
                f" {self._folder / f'sink-{self._number + 1}-refused.txt'}"
            )
        trouble, self.trouble = self.trouble, told["trouble"]
        if self.trouble is not None and trouble is None:
            self._complain(f"warning: {self.trouble}; the run goes on, and nothing of it is lost")
        elif self.trouble is None and trouble is not None:
            self._complain(f"{self.where} takes lines again")
        if told["cursor"] != self.cursor:
            self.cursor = told["cursor"]
            with suppress(RecordError):  # it is closed, or the disk is full: what is sent again changes nothing
                self._record.set_cursor(self.where, self.cursor)
        self.done = told["done"]


class SinksBeside:
    """All sinks of a run, from ``start`` to ``close``; without a sink nothing happens."""

    def __init__(
        self, sinks: Sequence[Influxdb], folder: Path, record: Record, now_ns: Callable[[], int],
        complain: Callable[[str], None],
    ) -> None:  # fmt: skip
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

    def finish(self, wait_s: float = DRAIN_S) -> None:
        """Let the rest be written, and say where that is not possible now."""
        deadline = time.monotonic() + wait_s
        for sink in self.all if self._started else ():
            sink.finish(max(0.0, deadline - time.monotonic()))
            if sink.done:
                self._complain(f"sink    {sink.where} ({sink.written} lines)")
                continue
            with suppress(RecordError):
                left = backlog(self._folder, sink.cursor)
                self._complain(
                    f"warning: {sink.where} has not all of this run after {show_seconds(wait_s)} ({left.polls} polls"
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
            self._record.target(TARGET, ROLE)
            source = self._record.source(TARGET, "sink", "sink", interval_ns, required=False)
            while not self._quiet.wait(MEASURE_EVERY_S):
                due_ns = self._now_ns()
                with suppress(RecordError):  # a full disk, which the run itself complains of
                    samples = tuple(one for sink in self.all for one in self._samples(sink, due_ns))
                    took_ns = self._now_ns() - due_ns
                    poll = Poll(source.id, due_ns, due_ns, took_ns, PollOutcome.OK, None, Answer(samples, (), ()))
                    self._record.put([poll])

    def _samples(self, sink: SinkBeside, now_ns: int) -> Sequence[Sample]:
        left = backlog(self._folder, sink.cursor)
        lag_s = 0.0 if left.oldest_ns is None else max(0.0, (now_ns - left.oldest_ns) * 1e-9)
        readings: dict[str, float] = {
            "monitor.sink.lag": lag_s,
            "monitor.sink.backlog": left.polls,
            "monitor.sink.written": sink.written,
            "monitor.sink.rejected": sink.refused,
        }
        name = object_text(sink=sink.name)
        return [Sample(metric, name, value, now_ns) for metric, value in readings.items()]
