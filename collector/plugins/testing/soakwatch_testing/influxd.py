"""A real influxd on loopback with its own organisation, bucket and token, which can be killed and restarted."""

from __future__ import annotations

import csv
import io
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from soakwatch_testing.ports import free_port
from soakwatch_testing.servers import client_of, ended, started

ORG, BUCKET = "lab", "soak"
Row = dict[str, Any]
"""One row of an answer, as in the server's JSON."""


def find_influxd() -> Path | None:
    """INFLUXD in the environment, else influxd on PATH, else one built into the user's cache; None if there is none."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "soakwatch"
    kept = sorted(map(str, cache.glob("influxd-2*[0-9]")), reverse=True)
    named = (os.environ.get("INFLUXD"), shutil.which("influxd"), *kept)
    return next((Path(path) for path in named if path and _is_second(path)), None)


def _is_second(program: str) -> bool:
    """Whether it is InfluxDB 2; distributions have 1.x under the same name."""
    if not os.access(program, os.X_OK):
        return False
    version = subprocess.run([program, "version"], capture_output=True, text=True, check=False).stdout
    return version.startswith(("InfluxDB v2", "InfluxDB 2", "InfluxDB dev"))


@dataclass
class Influxd:
    """One server."""

    program: Path
    folder: Path
    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    options: Sequence[str] = ()
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers. Raises AssertionError with its output if it does not."""
        log = self.folder / "influxd.log"
        command = [
            str(self.program),
            "--http-bind-address",
            f"127.0.0.1:{self.port}",
            "--reporting-disabled",
            "--bolt-path",
            str(self.folder / "influxd.bolt"),
            "--sqlite-path",
            str(self.folder / "influxd.sqlite"),
            "--engine-path",
            str(self.folder / "engine"),
            *self.options,
        ]
        self.process = started(command, log, self._well, {**os.environ, "HOME": str(self.folder)})

    def _well(self) -> bool:
        return self.ask("GET", "/health").status_code == 200

    def kill(self) -> None:
        """SIGKILL, like a power failure."""
        process, self.process = self.process, None
        ended(process, signal.SIGKILL)

    def stop(self) -> None:
        """SIGINT, the only signal on which it shuts down cleanly; SIGKILL if it does not end."""
        process, self.process = self.process, None
        ended(process, signal.SIGINT)

    def ask(self, method: str, path: str, **more: object) -> httpx.Response:
        """One request with the token; returns any answer."""
        with client_of(self.url) as client:
            return client.request(method, path, headers={"authorization": f"Token {self.token}"}, **more)  # type: ignore[arg-type]  # httpx's own keywords

    def set_up(self) -> None:
        """Create the organisation, the bucket and the token."""
        settings = {
            "username": "soak",
            "password": secrets.token_urlsafe(16),
            "org": ORG,
            "bucket": BUCKET,
            "token": self.token,
        }
        self.ask("POST", "/api/v2/setup", json=settings).raise_for_status()

    def make_bucket(self, name: str, keep_s: int = 0) -> None:
        """Create a bucket; ``keep_s`` 0 keeps everything."""
        org = self.ask("GET", "/api/v2/orgs", params={"org": ORG}).json()["orgs"][0]["id"]
        rules = [{"type": "expire", "everySeconds": keep_s}] if keep_s else []
        body = {"orgID": org, "name": name, "retentionRules": rules}
        self.ask("POST", "/api/v2/buckets", json=body).raise_for_status()

    def delete_bucket(self, name: str) -> None:
        """Delete a bucket and its data."""
        buckets = self.ask("GET", "/api/v2/buckets", params={"name": name, "org": ORG}).json()["buckets"]
        self.ask("DELETE", f"/api/v2/buckets/{buckets[0]['id']}").raise_for_status()

    def write(self, lines: bytes, bucket: str = BUCKET) -> httpx.Response:
        """Write line protocol."""
        params = {"org": ORG, "bucket": bucket, "precision": "ns"}
        return self.ask("POST", "/api/v2/write", params=params, content=lines)

    def influxql(self, query: str, bucket: str = BUCKET) -> list[Row]:
        """The rows of an InfluxQL query, times in ns. Raises AssertionError with the server's message."""
        answer = self.ask("GET", "/query", params={"db": bucket, "q": query, "epoch": "ns"}).json()
        result = answer["results"][0]
        assert "error" not in answer, answer
        assert "error" not in result, result
        return [
            {**series.get("tags", {}), **dict(zip(series["columns"], row, strict=True))}
            for series in result.get("series", ())
            for row in series["values"]
        ]

    def flux(self, query: str) -> list[dict[str, str]]:
        """The rows of a Flux query, as texts. Raises AssertionError with the server's message."""
        answer = self.ask("POST", "/api/v2/query", params={"org": ORG}, json={"query": query, "type": "flux"})
        assert answer.status_code == 200, answer.text
        rows = []
        for table in answer.text.replace("\r\n", "\n").split("\n\n"):
            rows += list(csv.DictReader(io.StringIO(table.lstrip("\n"))))
        return rows


def start_influxd(program: Path, folder: Path, stack: ExitStack, *options: str) -> Influxd:
    """A configured server on the caller's stack. Raises AssertionError."""
    folder.mkdir(parents=True, exist_ok=True)
    server = Influxd(program, folder, free_port(), options=options)
    stack.callback(server.stop)
    server.start()
    server.set_up()
    return server


@contextmanager
def run_influxd(program: Path, folder: Path, *options: str) -> Iterator[Influxd]:
    """The same as a context manager."""
    with ExitStack() as stack:
        yield start_influxd(program, folder, stack, *options)
