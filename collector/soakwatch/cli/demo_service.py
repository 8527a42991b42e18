"""A small HTTP service that answers every GET, and can leak a set number of bytes per request.

For demos and tests: it binds to loopback only, and leaks at most 256 MiB.
"""

from __future__ import annotations

import argparse
import contextlib
import http.server
import signal
import sys
from typing import ClassVar

LEAK_BOUND_BYTES = 256 * 2**20
_BODY = b'{"ok": true}\n'


class _Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # With Nagle on, a small answer in two segments waits 40 ms for an acknowledgement: the load would measure TCP.
    disable_nagle_algorithm = True
    wbufsize = -1
    leak_bytes: ClassVar[int] = 0
    leaked: ClassVar[list[bytearray]] = []

    def do_GET(self) -> None:
        if self.leak_bytes and len(self.leaked) * self.leak_bytes < LEAK_BOUND_BYTES:
            self.leaked.append(bytearray(self.leak_bytes))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(_BODY)))
        self.end_headers()
        self.wfile.write(_BODY)
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's signature
        """Do not log."""


def main(argv: list[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; prints the port on the first line once it listens."""
    parser = argparse.ArgumentParser(prog="demo_service", description=__doc__)
    parser.add_argument("--name", required=True, help="a word by which the process can be watched (it is only shown)")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (0: any free one)")
    parser.add_argument("--leak", type=int, default=0, metavar="BYTES", help="bytes leaked per request")
    options = parser.parse_args(argv)
    handler = type("Answer", (_Answer,), {"leak_bytes": options.leak, "leaked": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", options.port), handler) as server:
        server.daemon_threads = True
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        print(server.server_address[1], flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever(poll_interval=0.5)
    return 0


if __name__ == "__main__":
    sys.exit(main())
