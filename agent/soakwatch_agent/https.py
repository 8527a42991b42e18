"""The agent over HTTPS, where no SSH reaches: a token, a pinned certificate, one path, small requests."""

from __future__ import annotations

import hmac
import http.client
import http.server
import socket
import ssl
import threading
import time
from collections import Counter
from contextlib import suppress
from io import BufferedIOBase
from typing import Callable, Dict, Optional, Tuple

from soakwatch_agent.framing import MAX_QUESTION
from soakwatch_agent.service import ServeError
from soakwatch_agent.session import Agent

PATH = "/v1"
_MAX_CONNECTIONS = 64
_LOGIN_S = 5.0  # for TLS and the head of the first request
_TIMEOUT_S = 30.0
_MAX_HEAD = 16 * 1024  # bytes
_TOO_LARGE = "the head of the request is larger than 16 KiB"
_MIN_TOKEN = 16


def open_https(
    agent: Agent, address: str, token_file: Optional[str], cert: Optional[str], key: Optional[str]
) -> Callable[[], None]:
    """Serves HTTPS until the returned function is called. Raises ServeError, in one sentence."""
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


class _Connection:
    """One connection: its start, its peer's address, and whether it has sent the right token."""

    def __init__(self, link: socket.socket, address: str) -> None:
        self.link, self.address = link, address
        self.since_s, self.authenticated = time.monotonic(), False


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = _MAX_CONNECTIONS

    def __init__(self, address: Tuple[str, int], context: ssl.SSLContext, agent: Agent, token: bytes) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self.context, self.agent, self.token = context, agent, token
        self._connections: Dict[int, _Connection] = {}
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def process_request(self, request: object, client_address: object) -> None:
        """Admits a connection. If all places are taken, one without a token is closed for it, else the new one is."""
        assert isinstance(request, socket.socket)
        assert isinstance(client_address, tuple)
        with self._lock:
            room = len(self._connections) < _MAX_CONNECTIONS or self._make_room()
            if room:
                self._connections[id(request)] = _Connection(request, str(client_address[0]))
        if not room:
            request.close()
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: object, client_address: object) -> None:
        """Shakes hands in the connection's own thread, so that a silent client blocks no other."""
        assert isinstance(request, socket.socket)
        try:
            request.settimeout(_LOGIN_S)
            safe = self.context.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
        except (OSError, ValueError):
            self._forget(id(request))
            request.close()
            return
        try:
            with self._lock:
                connection = self._connections.pop(id(request), None)
                if connection is not None:
                    connection.link = safe
                    self._connections[id(safe)] = connection
            if connection is not None:
                safe.do_handshake()
                self.finish_request(safe, client_address)
        except (OSError, ValueError, http.client.HTTPException):
            pass  # the client left, does not speak TLS, or its request's head never ended
        finally:
            self._forget(id(safe))
            safe.close()

    def service_actions(self) -> None:
        """Closes, a few times a second, connections without a token after 5 s, however slowly their bytes arrive."""
        now_s = time.monotonic()
        with self._lock:
            for connection in list(self._connections.values()):
                if not connection.authenticated and now_s - connection.since_s > _LOGIN_S:
                    _end(connection)

    def authenticate(self, request: object) -> None:
        """Marks a connection as having sent the token: no deadline or newcomer ends it any more."""
        with self._lock:
            connection = self._connections.get(id(request))
            if connection is not None:
                connection.authenticated = True

    def _make_room(self) -> bool:
        """Closes the oldest unauthenticated connection of the address with most of them; False if there is none."""
        strangers = [connection for connection in self._connections.values() if not connection.authenticated]
        if not strangers:
            return False
        held = Counter(connection.address for connection in strangers)
        victim = max(strangers, key=lambda connection: (held[connection.address], -connection.since_s))
        del self._connections[id(victim.link)]
        _end(victim)
        return True

    def _forget(self, key: int) -> None:
        with self._lock:
            self._connections.pop(key, None)

    def handle_error(self, request: object, client_address: object) -> None:
        """Logs nothing: strangers must not be able to fill a log."""


def _end(connection: _Connection) -> None:
    """Shuts a connection down; the thread that waits on it then closes it."""
    with suppress(OSError):  # it has gone already
        socket.socket.shutdown(connection.link, socket.SHUT_RDWR)  # TLS's own goodbye could block


class _Head:
    """Limits how much is read of a request's head (16 KiB)."""

    def __init__(self, file: BufferedIOBase) -> None:
        self._file, self.left = file, _MAX_HEAD

    def readline(self, size: int = -1) -> bytes:
        """A line of the head. Raises HTTPException if the head is too large."""
        line = self._file.readline(min(size, self.left + 1) if size >= 0 else self.left + 1)
        self.left -= len(line)
        if self.left < 0:
            raise http.client.HTTPException(_TOO_LARGE)
        return line

    def read(self, size: int) -> bytes:
        """A part of the body."""
        return self._file.read(size)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._file.closed


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _TIMEOUT_S
    wbufsize = 1 << 16  # head and body in one piece: in two, the second waits 40 ms for a delayed acknowledgement
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        """Puts the limit on the head in front of the connection's file."""
        super().setup()
        self._head = _Head(self.rfile)
        self.rfile = self._head  # type: ignore[assignment] # has all that http.server uses of it

    def handle_one_request(self) -> None:
        """Answers one request; refuses a head that is too large."""
        self._head.left = _MAX_HEAD
        try:
            super().handle_one_request()
        except http.client.HTTPException:  # in the request's first line
            self.requestline, self.request_version, self.command = "", "HTTP/1.1", ""
            self._refuse(431, _TOO_LARGE)
            self.wfile.flush()

    def do_POST(self) -> None:
        """Answers one question if its token is right."""
        given = self.headers.get("Authorization", "").encode("utf-8", "replace")
        if not hmac.compare_digest(given, b"Bearer " + self.server.token):
            self._refuse(401, "wrong token")
            return
        self.server.authenticate(self.connection)
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
        """The server's name without its version, which strangers need not know."""
        return "soakwatch-agent"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
        """Logs nothing: strangers must not be able to fill a log."""
