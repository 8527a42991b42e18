"""A small HTTP service on loopback, for load generators: it answers after a pause, so that few users are a small load.

It counts what it answered, which is the truth that a generator's counts are held against.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class HttpService:
    """A service at ``url`` that answers ``/`` after ``pause_s``, and ``/fail`` with 503."""

    url: str = ""
    pause_s: float = 0.02
    answered: int = 0
    failed: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, *, good: bool) -> None:
        """Counts one answer."""
        with self.lock:
            if good:
                self.answered += 1
            else:
                self.failed += 1


@contextmanager
def http_service(pause_s: float = 0.02) -> Iterator[HttpService]:
    """A service, until the block ends."""
    service = HttpService(pause_s=pause_s)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            time.sleep(service.pause_s)
            good = self.path != "/fail"
            body = b"ok\n" if good else b"no\n"
            self.send_response(200 if good else 503)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            service.count(good=good)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the library
            """Says nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: object, client_address: object) -> None:
            """A generator that was ended in the middle of a request is no error."""

    server = Server(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_address[1]}/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
