"""The agent over HTTPS, where no SSH reaches: a token, a pinned certificate, one path, small requests."""

from __future__ import annotations

import hmac
import http.server
import socket
import ssl
import threading
from typing import Callable, Optional, Tuple

from soakwatch_agent.framing import MAX_QUESTION
from soakwatch_agent.service import ServeError
from soakwatch_agent.session import Agent

PATH = "/v1"
_MAX_CONNECTIONS = 16
_TIMEOUT_S = 30.0
_MIN_TOKEN = 16


def open_https(
    agent: Agent, address: str, token_file: Optional[str], cert: Optional[str], key: Optional[str]
) -> Callable[[], None]:
    """Serves until the function that it returns is called. Raises ServeError, in one sentence."""
    if not (token_file and cert and key):
        raise ServeError(
            "--https needs --token-file, --cert and --key: the agent serves nothing without a token and TLS"
        )
    host, port = _address(address)
    token = _token(token_file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError):
        raise ServeError(
            f"the certificate {cert} and the key {key} cannot be used: give PEM files that match each other"
        ) from None
    try:
        server = _Server((host, port), context, agent, token)
    except OSError as error:
        raise ServeError(f"cannot listen on {address}: {(error.strerror or 'no reason given').lower()}") from None
    thread = threading.Thread(target=server.serve_forever, name="https", daemon=True)
    thread.start()

    def close() -> None:
        server.shutdown()
        server.server_close()
        thread.join(5.0)

    return close


def _address(text: str) -> Tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise ServeError(f"--https {text}: write HOST:PORT, such as 127.0.0.1:8443")
    return host.strip("[]"), int(port)


def _token(path: str) -> bytes:
    try:
        with open(path, "rb") as data:
            token = data.read(4096).strip()
    except OSError as error:
        raise ServeError(f"the token file {path} cannot be read: {(error.strerror or '').lower()}") from None
    if len(token) < _MIN_TOKEN:
        raise ServeError(f"the token in {path} is too short: it needs at least {_MIN_TOKEN} characters")
    return token


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = _MAX_CONNECTIONS

    def __init__(self, address: Tuple[str, int], context: ssl.SSLContext, agent: Agent, token: bytes) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self.context, self.agent, self.token = context, agent, token
        self._free = threading.Semaphore(_MAX_CONNECTIONS)
        super().__init__(address, _Handler)

    def process_request(self, request: object, client_address: object) -> None:
        """One more connection, unless there are too many."""
        assert isinstance(request, socket.socket)
        if not self._free.acquire(blocking=False):
            request.close()
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: object, client_address: object) -> None:
        """The handshake happens in the connection's own thread: a client that never shakes hands blocks no other."""
        assert isinstance(request, socket.socket)
        try:
            request.settimeout(_TIMEOUT_S)
            with self.context.wrap_socket(request, server_side=True) as safe:
                self.finish_request(safe, client_address)
        except (OSError, ValueError):
            pass  # a client that went away, or that does not speak TLS
        finally:
            request.close()
            self._free.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Logs nothing: what strangers send must not fill a log."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _TIMEOUT_S
    wbufsize = 1 << 16  # head and body in one piece: in two, the second waits 40 ms for a delayed acknowledgement
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        """Answers one question."""
        given = self.headers.get("Authorization", "").encode("utf-8", "replace")
        if not hmac.compare_digest(given, b"Bearer " + self.server.token):
            self._refuse(401, "wrong token")
            return
        length = self.headers.get("Content-Length", "")
        if self.path != PATH:
            self._refuse(404, "not found")
            return
        if not length.isdigit() or len(length) > 9 or not 0 < int(length) <= MAX_QUESTION:
            self._refuse(413, "a question is 1 byte to 64 KiB long")
            return
        question = self.rfile.read(int(length))
        answer = self.server.agent.hello() + b"".join(self.server.agent.reply(question))
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def do_GET(self) -> None:
        """Refuses: questions come by POST."""
        self._refuse(405, "method not allowed; allowed here: POST")

    def _refuse(self, code: int, text: str) -> None:
        self.close_connection = True
        body = (text + "\n").encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        """The server's name without a version, which is not for strangers."""
        return "soakwatch-agent"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
        """Silence: the log of a guest must not grow by what strangers send."""
