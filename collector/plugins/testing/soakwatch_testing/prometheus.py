"""A real Prometheus on loopback, which scrapes what a test tells it, and can be stopped and started."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from soakwatch_testing.ports import free_port
from soakwatch_testing.servers import client_of, ended, started


@dataclass(frozen=True, slots=True)
class Job:
    """A job that Prometheus scrapes: its name, the ports of its exporters, further keys of the configuration."""

    name: str
    ports: Sequence[int]
    keys: Mapping[str, object] | None = None


@dataclass
class Prometheus:
    """One server; ``options`` go to its command line."""

    folder: Path
    port: int
    jobs: Sequence[Job] = ()
    scrape_interval: str = "500ms"
    options: Sequence[str] = ()
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers. Raises AssertionError with its output if it does not."""
        config = self.folder / "prometheus.yml"
        jobs = [
            {
                "job_name": job.name,
                "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in job.ports]}],
                **(job.keys or {}),
            }
            for job in self.jobs
        ]
        paces = {"scrape_interval": self.scrape_interval, "scrape_timeout": self.scrape_interval}
        config.write_text(json.dumps({"global": paces, "scrape_configs": jobs}))  # JSON is YAML
        self.process = started(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={self.folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--storage.tsdb.retention.time=1000d",
                *self.options,
            ],
            self.folder / "prometheus.log",
            self._ready,
        )

    def stop(self) -> None:
        """SIGTERM; SIGKILL if it does not end."""
        process, self.process = self.process, None
        ended(process, signal.SIGTERM)

    def values(self, query: str) -> Mapping[tuple[tuple[str, str], ...], float]:
        """An instant query: the values by their labels. Raises httpx.HTTPError."""
        with client_of(self.url) as client:
            answer = client.post("/api/v1/query", data={"query": query})
        answer.raise_for_status()
        return {tuple(sorted(row["metric"].items())): float(row["value"][1]) for row in answer.json()["data"]["result"]}

    def wait_for(self, query: str, most_s: float = 120.0) -> None:
        """Until a query has a value. Raises AssertionError if it has none in time."""
        deadline = time.monotonic() + most_s
        while not self.values(query):
            assert time.monotonic() < deadline, f"no value of {query} within {most_s:g} s"
            time.sleep(0.2)

    def _ready(self) -> bool:
        with client_of(self.url) as client:
            return client.get("/-/ready").status_code == 200


def start_prometheus(folder: Path, stack: ExitStack, jobs: Sequence[Job] = (), *options: str) -> Prometheus:
    """A server on the caller's stack. Raises AssertionError."""
    folder.mkdir(parents=True, exist_ok=True)
    server = Prometheus(folder, free_port(), jobs, options=options)
    stack.callback(server.stop)
    server.start()
    return server


def start_node_exporter(folder: Path, stack: ExitStack, *options: str) -> int:
    """Debian's node_exporter on the caller's stack; returns its port. Raises AssertionError."""
    port = free_port()

    def answers() -> bool:
        with client_of(f"http://127.0.0.1:{port}") as client:
            return client.get("/").status_code == 200

    program = shutil.which("prometheus-node-exporter") or "node_exporter"
    process = started([program, f"--web.listen-address=127.0.0.1:{port}", *options], folder / "node.log", answers)
    stack.callback(ended, process, signal.SIGTERM)
    return port


def stored(folder: Path, openmetrics: str) -> None:
    """Put samples with times of their own into the storage of a server that is not running yet."""
    text = folder / "samples.txt"
    folder.mkdir(parents=True, exist_ok=True)
    text.write_text(openmetrics)
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(folder / "data")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@contextmanager
def exporter(page: Callable[[], str]) -> Iterator[int]:
    """An exporter on a free port of loopback, whose page is what ``page`` gives at each scrape; "" is an error 500."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = page().encode()
            self.send_response(200 if body else 500)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
