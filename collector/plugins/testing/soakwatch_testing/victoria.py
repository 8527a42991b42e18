"""A real VictoriaMetrics on loopback, alone or behind vmauth with a token, which can be killed and restarted."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from soakwatch_testing.ports import free_port
from soakwatch_testing.servers import client_of, ended, started

Labels = Mapping[str, str]


def find_victoria() -> Path | None:
    """VICTORIA_METRICS in the environment, else victoria-metrics or victoria-metrics-prod on PATH; None if there is
    none."""
    named = (
        os.environ.get("VICTORIA_METRICS"),
        shutil.which("victoria-metrics"),
        shutil.which("victoria-metrics-prod"),
    )
    return next((Path(path) for path in named if path and os.access(path, os.X_OK)), None)


@dataclass(frozen=True, slots=True)
class Exported:
    """One stored series: labels without the name, times in ms in order, and values."""

    name: str
    labels: Labels
    time_ms: Sequence[int]
    values: Sequence[float]


@dataclass
class Victoria:
    """One server that keeps data for a century."""

    program: Path
    folder: Path
    port: int
    options: Sequence[str] = ()
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers. Raises AssertionError with its output if it does not."""
        self.process = started(
            [
                str(self.program),
                f"-storageDataPath={self.folder / 'data'}",
                f"-httpListenAddr=127.0.0.1:{self.port}",
                "-retentionPeriod=100y",
                "-search.latencyOffset=0s",
                *self.options,
            ],
            self.folder / "victoria.log",
            lambda: _listens(self.url),
        )

    def kill(self) -> None:
        """SIGKILL: what is not on its disk is lost, although acknowledged."""
        process, self.process = self.process, None
        ended(process, signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM, on which it writes everything; SIGKILL if it does not end."""
        process, self.process = self.process, None
        ended(process, signal.SIGTERM)

    def ask(self, path: str, **fields: str) -> str:
        """One request. Raises httpx.HTTPError."""
        with client_of(self.url) as client:
            answer = client.post(path, data=fields)
        answer.raise_for_status()
        return answer.text

    def flush(self) -> None:
        """Make everything written visible and durable. Raises httpx.HTTPError."""
        self.ask("/internal/force_flush")

    def merge(self) -> None:
        """Start to merge its files, as it does in time by itself. Raises httpx.HTTPError."""
        self.ask("/internal/force_merge")

    def export(self, match: str = '{__name__!=""}') -> list[Exported]:
        """The stored series that match. Raises httpx.HTTPError."""
        self.flush()
        exported = []
        for line in self.ask("/api/v1/export", **{"match[]": match}, start="0", end="4102444800").splitlines():
            series = json.loads(line)
            labels = dict(series["metric"])
            rows = sorted(zip(series["timestamps"], map(float, series["values"]), strict=True))
            exported.append(
                Exported(labels.pop("__name__"), labels, [time_ms for time_ms, _ in rows], [value for _, value in rows])
            )
        return exported

    def reading(self, name: str) -> float:
        """The sum of one of its own metrics, at most a second old. Raises httpx.HTTPError."""
        lines = [
            line
            for line in self.ask("/metrics").splitlines()
            if line.partition("{")[0].split()[:1] == [name] or line.startswith(f"{name}{{")
        ]
        return sum(float(line.rpartition(" ")[2]) for line in lines)


@dataclass
class Gate:
    """vmauth in front of a server: only clients with ``token`` get through."""

    port: int
    token: str = field(repr=False)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def start_victoria(program: Path, folder: Path, stack: ExitStack, *options: str) -> Victoria:
    """A server on the caller's stack. Raises AssertionError."""
    folder.mkdir(parents=True, exist_ok=True)
    server = Victoria(program, folder, free_port(), options)
    stack.callback(server.stop)
    server.start()
    return server


def start_gate(server: Victoria, stack: ExitStack) -> Gate:
    """vmauth in front of this server, on the caller's stack; its program comes with the server's. Raises
    AssertionError."""
    program = shutil.which("vmauth") or server.program.with_name("vmauth")
    gate = Gate(free_port(), secrets.token_urlsafe(24))
    config = server.folder / "auth.yml"
    config.touch(0o600)
    config.write_text(f"users:\n- bearer_token: '{gate.token}'\n  url_prefix: '{server.url}'\n")
    command = [str(program), f"-auth.config={config}", f"-httpListenAddr=127.0.0.1:{gate.port}"]
    gate.process = started(command, server.folder / "vmauth.log", lambda: _listens(gate.url))
    stack.callback(ended, gate.process, signal.SIGTERM)
    return gate


def _listens(url: str) -> bool:
    """Whether it answers at all; raises httpx.TransportError if not yet."""
    with client_of(url) as client:
        client.get("/metrics")
    return True
