"""What the tests of hooks share: a record that takes their notes, findings, and a server that takes what is posted."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from soakwatch.plan import Plan, plan_from_text
from soakwatch.record import Record
from soakwatch.record.queue import Committer, Notes
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.window import Window

T0 = 1_700_000_000 * 10**9
FAIL = Finding(
    "memory_growth",
    3,
    Outcome.FAIL,
    "dut",
    "process.memory.usage",
    "process=bgpd",
    Window(T0, T0 + 10**9),
    "d",
    "bgpd grows by 3 MiB/h; $(touch x) `x`",
    7,
    measured=3.0,
    limit=1.0,
    unit="By/h",
)


def finding(
    rule: str = "memory_growth", outcome: Outcome = Outcome.FAIL, target: str = "dut", object_: str = ""
) -> Finding:
    """A finding of another rule, outcome, target or object."""
    return replace(FAIL, rule=rule, outcome=outcome, target=target, object=object_ or FAIL.object)


def plan(text: str, targets: str = "{dut: {sources: [local]}}") -> Plan:
    """A plan of an hour with these sections."""
    return plan_from_text(f"duration: 1h\ntargets: {targets}\n{text}", "p.yaml")


@contextmanager
def noting(folder: Path) -> Iterator[tuple[Notes, Record]]:
    """A record in a new folder, and the notes that go into it."""
    with Record.create(folder) as record:
        record.target("dut", "dut")
        yield Notes(record, Committer(record, lambda: T0, threaded=False)), record


@dataclass
class Posts:
    """A server on the loopback: what was posted, and the statuses that it answers with, one after the other (0: it
    hangs up; the last for all that follow)."""

    address: str
    statuses: list[int] = field(default_factory=lambda: [200])
    bodies: list[dict[str, object]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


@contextmanager
def posts(certificate: Path | None = None) -> Iterator[Posts]:
    """A real HTTP server, for as long as the block lasts; HTTPS with a file that holds a key and its certificate."""

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            received.bodies.append(json.loads(body))
            received.headers.append({name.lower(): value for name, value in self.headers.items()})
            received.paths.append(self.path)
            status = received.statuses.pop(0) if len(received.statuses) > 1 else received.statuses[0]
            if status:
                self.send_response(status)
                self.send_header("content-length", "0")
                self.send_header("location", "/elsewhere")
                self.end_headers()
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Taking) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        received = Posts(f"http{'s' if certificate else ''}://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield received
        finally:
            server.shutdown()
            thread.join()
