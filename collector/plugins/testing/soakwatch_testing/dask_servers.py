"""Real dask scheduler and worker processes on loopback, without their dashboards."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from soakwatch_testing.ports import free_port
from soakwatch_testing.servers import ended, started


@dataclass(slots=True)
class DaskServers:
    """A scheduler, and workers with one thread each; a context manager that kills all of them.

    ``tls`` are certificate options for scheduler and workers; ``environment`` is added to that of this process.
    ``workers`` are the processes by name; without a nanny, a killed one is not restarted.
    """

    folder: Path
    tls: Mapping[str, Path] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    scheduler: subprocess.Popen[bytes] | None = None
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The scheduler's address for ``--on``."""
        return f"{'tls' if self.tls else 'dask'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        options = ["--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard", "--no-show"]
        if self.tls:
            options += ["--protocol", "tls"]
        command = [*self._dask("scheduler"), *options, *self._tls_options()]
        self.scheduler = started(command, self.folder / "scheduler.log", self._listens, self._environment())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in (*self.workers.values(), self.scheduler):
            ended(process, signal.SIGKILL)

    def add_worker(self, name: str, testbed: str = "", folder: Path | None = None) -> subprocess.Popen[bytes]:
        """Start a worker, in ``folder`` if given; returns once it has registered."""
        where = folder or self.folder / name
        where.mkdir(parents=True, exist_ok=True)
        log = where / "worker.log"
        log.unlink(missing_ok=True)
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", name, "--local-directory", str(where)]
        options += ["--host", "127.0.0.1"]
        if testbed:
            options += ["--resources", f"testbed-{testbed}=1"]
        scheduler = f"{'tls' if self.tls else 'tcp'}://127.0.0.1:{self.port}"
        command = [*self._dask("worker"), scheduler, *options, *self._tls_options()]
        process = started(command, log, lambda: b"Registered to" in log.read_bytes(), self._environment())
        self.workers[name] = process
        return process

    def kill_worker(self, name: str) -> None:
        """SIGKILL, like a power failure."""
        ended(self.workers.pop(name), signal.SIGKILL)

    def _tls_options(self) -> list[str]:
        return [word for option, file in self.tls.items() for word in (f"--tls-{option}", str(file))]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self.environment}

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    @staticmethod
    def _dask(word: str) -> list[str]:
        return [sys.executable, "-m", "dask", word]
