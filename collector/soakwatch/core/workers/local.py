"""Runs jobs in processes of this machine, started when needed, limited in number, replaced when they die."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

from soakwatch.core.one_thread import THREADS
from soakwatch.core.stderr_tail import MAX_BYTES, last_line
from soakwatch.core.workers.executor import ClusterError, JobLostError

T = TypeVar("T")
R = TypeVar("R")

_ATTEMPTS = 2
GRACE_S = 60.0
"""How long a job that calls ``still_wanted`` may take to end; a run stops its load and sources first."""
_BEGIN = (
    "import sys; sys.path[:] = sys.argv[2:]; from soakwatch.core.workers.local_worker import main; "
    "main(int(sys.argv[1]))"
)


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(slots=True)
class _Job:
    payload: bytes
    future: Future[object]
    label: str
    resource: str
    attempts: int
    """How many attempts are left."""


class LocalProcesses:
    """An executor of up to ``jobs`` processes of this machine (default: one per processor).

    A process is started when a job finds none idle, and runs one job after another. It has its own session, so Ctrl-C
    does not reach it; ``close`` ends it, and it ends by itself if this process is killed. If there are several, each
    uses one thread for linear algebra, unless the environment says otherwise.
    """

    def __init__(self, jobs: int | None = None) -> None:
        self._slots = processors() if jobs is None else jobs
        if self._slots < 1:
            raise ClusterError(f"{jobs} jobs at once are none: give at least 1")
        self._pending = deque[_Job]()
        self._held: set[str] = set()
        self._change = threading.Condition()
        self._closing = False
        self._idle = 0
        self._threads: list[threading.Thread] = []
        self._processes: set[_Process] = set()

    @property
    def slots(self) -> int:
        """How many jobs run at once."""
        return self._slots

    @property
    def same_machine(self) -> bool:
        """Always True."""
        return True

    def resources(self) -> frozenset[str] | None:
        """None: every resource is local, one job at a time."""
        return None

    def submit(self, function: Callable[[T], R], argument: T, *, resource: str = "", label: str = "") -> Future[R]:
        """See Executor. Raises ClusterError if the job cannot be pickled."""
        return self._queued(function, (argument,), resource, label, _ATTEMPTS)

    def submit_files(
        self, function: Callable[[T, Path], R], argument: T, files: Sequence[Path], *, label: str = ""
    ) -> Future[R]:
        """See Executor; the folder is the original one."""
        return self._queued(function, (argument, files[0].parent.absolute()), "", label, _ATTEMPTS)

    def submit_into(
        self, function: Callable[[T, Path], R], argument: T, folder: Path, *, resource: str = "", label: str = ""
    ) -> Future[R]:
        """See Executor; the function writes directly into the folder."""
        return self._queued(function, (argument, folder.absolute()), resource, label, 1)

    def end(self, future: Future[R], *, at_once: bool) -> None:
        """See Executor; ``at_once`` kills the job's process."""
        with self._change:
            pending = next((job for job in self._pending if job.future is future), None)
            if pending is not None:
                self._pending.remove(pending)
            process = next((each for each in self._processes if each.future is future), None)
        if pending is not None:
            pending.future.set_exception(JobLostError(f"{pending.label} was broken off before it began"))
        elif process is not None and at_once:
            process.given_up = True
            process.kill()
        elif process is not None:
            process.ask_to_end()

    def close(self) -> None:
        """Cancels pending jobs; ends running ones at once, or within ``GRACE_S`` if they call ``still_wanted``; reaps
        processes.

        A KeyboardInterrupt meanwhile kills them and is raised again.
        """
        with self._change:
            self._closing = True
            pending, processes = list(self._pending), list(self._processes)
            self._pending.clear()
            self._change.notify_all()
        for job in pending:
            job.future.cancel()
        try:
            for process in processes:
                process.dismiss()
            for thread in self._threads:
                thread.join()
        except KeyboardInterrupt:
            for process in processes:
                process.kill()
            for thread in self._threads:
                thread.join()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _queued(
        self, function: Callable[..., R], arguments: tuple[object, ...], resource: str, label: str, attempts: int
    ) -> Future[R]:
        label = label or function.__name__
        try:
            payload = pickle.dumps((function, arguments))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ClusterError(f"{label} cannot be sent to another process: {error}") from None
        job = _Job(payload, Future(), label, resource, attempts)
        with self._change:
            if self._closing:
                raise ClusterError(f"{label} comes too late: the processes are being ended")
            self._pending.append(job)
            if len(self._threads) < self._slots and self._idle < len(self._pending):
                self._threads.append(threading.Thread(target=self._serve, daemon=True, name="soakwatch-jobs"))
                self._threads[-1].start()
            self._change.notify_all()
        return cast("Future[R]", job.future)

    def _serve(self) -> None:
        """Serves jobs with one process until the executor closes; runs in a thread."""
        process: _Process | None = None
        try:
            while (job := self._next()) is not None:
                try:
                    if process is None:
                        process = _Process(single_thread=self._slots > 1)
                        with self._change:
                            self._processes.add(process)
                            if self._closing:
                                process.dismiss()
                    answer = process.work(job)
                except OSError as error:
                    answer = None, ClusterError(f"no process can be started for {job.label}: {error.strerror}")
                if answer is None:
                    assert process is not None
                    end = self._dropped(process)
                    self._lost(job, end, wanted=not process.given_up)
                    process = None
                    continue
                result, failure = answer
                self._release(job)
                if failure is None:
                    job.future.set_result(result)
                else:
                    job.future.set_exception(failure)
        finally:
            if process is not None:
                self._dropped(process)

    def _next(self) -> _Job | None:
        with self._change:
            self._idle += 1
            try:
                while not self._closing:
                    for job in self._pending:
                        if job.resource and job.resource in self._held:
                            continue
                        self._pending.remove(job)
                        if not job.future.running() and not job.future.set_running_or_notify_cancel():
                            break
                        if job.resource:
                            self._held.add(job.resource)
                        return job
                    else:
                        self._change.wait()
            finally:
                self._idle -= 1
        return None

    def _release(self, job: _Job) -> None:
        with self._change:
            self._held.discard(job.resource)
            self._change.notify_all()

    def _lost(self, job: _Job, end: str, *, wanted: bool) -> None:
        self._release(job)
        job.attempts -= 1
        with self._change:
            if self._closing or not wanted:
                job.future.set_exception(JobLostError(f"{job.label} was broken off: it was no longer wanted"))
                return
            if job.attempts > 0:
                self._pending.appendleft(job)
                self._change.notify_all()
                return
        job.future.set_exception(JobLostError(f"{job.label} has no result: the process that worked on it {end}"))

    def _dropped(self, process: _Process) -> str:
        """Ends and forgets a process; returns how it ended."""
        with self._change:
            self._processes.discard(process)
        return process.end()


class _Process:
    """A worker process. One thread works with it, another may dismiss or kill it."""

    def __init__(self, *, single_thread: bool) -> None:
        ours, its = socket.socketpair()
        environment = {**(dict.fromkeys(THREADS, "1") if single_thread else {}), **os.environ}
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed in end()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _BEGIN, str(its.fileno()), *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                pass_fds=[its.fileno()],
                start_new_session=True,
                env=environment,
            )
        except OSError:
            ours.close()
            self._said.close()
            raise
        finally:
            its.close()
        self._connection = Connection(ours.detach())
        self.future: Future[object] | None = None
        self.given_up = False

    def work(self, job: _Job) -> tuple[object, BaseException | None] | None:
        """The result or exception of a job; None if the process died during it."""
        self.future = job.future
        try:
            self._connection.send_bytes(job.payload)
            answer = self._connection.recv_bytes()
        except (OSError, EOFError):
            return None
        finally:
            self.future = None
        try:
            return cast("tuple[object, BaseException | None]", pickle.loads(answer))  # noqa: S301 - of our own process
        except Exception as error:  # noqa: BLE001 - unpickling a job's own class may raise anything
            return None, ClusterError(f"a result cannot be read: {type(error).__name__}: {error}")

    def ask_to_end(self) -> None:
        """Tells its job that it is no longer wanted."""
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()

    def dismiss(self) -> None:
        """Tells it that no more jobs come: it ends at once, or after a grace."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def kill(self) -> None:
        """Kills it and its session."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> str:
        """Waits for its end and reaps it; returns how it ended, in words."""
        self.dismiss()
        try:
            code = self._process.wait(GRACE_S + 10)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.wait()
        self._connection.close()
        with self._said as said:
            said.seek(max(0, said.seek(0, os.SEEK_END) - MAX_BYTES))
            word = last_line(said.read())
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return f"{how} ({word})" if word else how
