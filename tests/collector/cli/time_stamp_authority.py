"""A real time-stamp authority on loopback: certificates and answers are made by ``openssl``."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

_CONFIG = """\
[tsa]
default_tsa = one
[one]
serial = {folder}/serial
crypto_device = builtin
signer_cert = {folder}/tsa.pem
certs = {folder}/ca.pem
signer_key = {folder}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
accuracy = secs:1
[stamps]
extendedKeyUsage = critical,timeStamping
"""


def _openssl(*words: object) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def make_authority(folder: Path) -> Path:
    """Keys and certificates of an authority in a new folder; the root certificate."""
    folder.mkdir()
    config, root = folder / "tsa.cnf", folder / "ca.pem"
    config.write_text(_CONFIG.format(folder=folder))
    (folder / "serial").write_text("01")
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    _openssl("req", "-x509", *new, "-keyout", folder / "ca.key", "-out", root, "-subj", "/CN=root", "-days", 2)
    _openssl("req", *new, "-keyout", folder / "tsa.key", "-out", folder / "tsa.csr", "-subj", "/CN=tsa")
    signed = ("-CA", root, "-CAkey", folder / "ca.key", "-CAcreateserial", "-days", 2)
    extensions = ("-extfile", config, "-extensions", "stamps")
    _openssl("x509", "-req", "-in", folder / "tsa.csr", *signed, *extensions, "-out", folder / "tsa.pem")
    return root


@contextmanager
def stamping(folder: Path) -> Iterator[str]:
    """The address at which the authority of a folder answers."""

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query, reply = folder / "query", folder / "reply"
            query.write_bytes(self.rfile.read(int(self.headers["content-length"])))
            words = ("-config", folder / "tsa.cnf", "-queryfile", query, "-out", reply)
            _openssl("ts", "-reply", *words)
            self.send_response(200)
            self.send_header("content-type", "application/timestamp-reply")
            self.end_headers()
            self.wfile.write(reply.read_bytes())

        def log_message(self, *_words: object) -> None:
            """Says nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
