"""A receiver of OTLP over HTTP (protobuf, gzip) in a process of its own, which can be killed and started again.

``python -m soakwatch_testing.otlp_receiver PORT FILE [TOKEN]``: each point is a line of JSON in FILE, on the disk
before the request is answered. A file FILE.answer with a status (and a text) makes it answer that instead; status 0
takes the points but says that one was refused.
"""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from soakwatch_testing.ports import free_port
from soakwatch_testing.servers import client_of, ended, started

_PROTOBUF = "application/x-protobuf"


@dataclass(frozen=True, slots=True)
class ReceivedPoint:
    """One point as it came: ``kind`` is gauge or sum; times in ns."""

    metric: str
    unit: str
    kind: str
    monotonic: bool
    resource: Mapping[str, str]
    attributes: Mapping[str, str]
    start_ns: int
    time_ns: int
    value: float


@dataclass
class OtlpReceiver:
    """One receiver; ``token`` is the bearer token that it asks for, "" for none."""

    folder: Path
    port: int
    token: str = ""
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def _file(self) -> Path:
        return self.folder / "points.jsonl"

    def start(self) -> None:
        """Start it and wait until it listens. Raises AssertionError with its output if it does not."""
        command = [sys.executable, "-m", "soakwatch_testing.otlp_receiver", str(self.port), str(self._file), self.token]
        self.process = started(command, self.folder / "receiver.log", self._listens)

    def kill(self) -> None:
        """SIGKILL."""
        process, self.process = self.process, None
        ended(process, signal.SIGKILL)

    def answer(self, status: int | None, text: str = "") -> None:
        """What it answers from now on; None: it takes everything."""
        file = self._file.with_suffix(".answer")
        if status is None:
            file.unlink(missing_ok=True)
        else:
            new = file.with_suffix(".new")
            new.write_text(f"{status} {text}")
            new.replace(file)

    def points(self) -> list[ReceivedPoint]:
        """All that came, in order; what came twice is there twice."""
        if not self._file.exists():
            return []
        return [ReceivedPoint(**json.loads(line)) for line in self._file.read_text().splitlines()]

    def _listens(self) -> bool:
        with client_of(self.url) as client:
            return client.get("/").status_code == 404


def new_receiver(folder: Path, token: str = "") -> OtlpReceiver:
    """A receiver that is not started yet."""
    folder.mkdir(parents=True, exist_ok=True)
    return OtlpReceiver(folder, free_port(), token)


def points_in(request: ExportMetricsServiceRequest) -> Iterator[ReceivedPoint]:
    """The points of a request."""
    for each in request.resource_metrics:
        resource = _texts(each.resource.attributes)
        for scope in each.scope_metrics:
            for metric in scope.metrics:
                yield from _points(metric, resource)


def _points(metric: Metric, resource: Mapping[str, str]) -> Iterator[ReceivedPoint]:
    kind = metric.WhichOneof("data") or ""
    data = metric.sum if kind == "sum" else metric.gauge
    for point in data.data_points:
        whole = point.WhichOneof("value") == "as_int"
        yield ReceivedPoint(
            *(metric.name, metric.unit, kind, kind == "sum" and metric.sum.is_monotonic),
            *(resource, _texts(point.attributes), point.start_time_unix_nano, point.time_unix_nano),
            point.as_int if whole else point.as_double,
        )


def _texts(attributes: "list[KeyValue]") -> dict[str, str]:  # noqa: UP037 - a repeated field
    return {pair.key: pair.value.string_value for pair in attributes}


def _serve(port: int, file: Path, token: str) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._say(404, b"")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            planned = file.with_suffix(".answer")
            status, _, text = planned.read_text().partition(" ") if planned.exists() else ("200", "", "")
            if token and self.headers.get("authorization") != f"Bearer {token}":
                self._say(401, b"")
            elif self.path != "/v1/metrics" or self.headers.get("content-type") != _PROTOBUF:
                self._say(404, b"")
            elif status not in {"0", "200"}:
                self._say(int(status), text.encode())
            else:
                self._take(ExportMetricsServiceRequest.FromString(body), partial=text if status == "0" else "")

        def _take(self, request: ExportMetricsServiceRequest, *, partial: str) -> None:
            answer = ExportMetricsServiceResponse()
            points = list(points_in(request))
            if partial:
                answer.partial_success.rejected_data_points = 1
                answer.partial_success.error_message = partial
                points = points[1:]
            rows = "".join(
                json.dumps({name: getattr(point, name) for name in ReceivedPoint.__slots__}) + "\n" for point in points
            )
            with file.open("a") as out:
                out.write(rows)
                out.flush()
                os.fsync(out.fileno())
            self._say(200, answer.SerializeToString())

        def _say(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", _PROTOBUF)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        server.serve_forever()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
