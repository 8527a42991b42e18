"""What the tests of the small network sources share: a poller for one test, a page on loopback, a certificate."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from soakwatch.sources.abc import SourceContext
from soakwatch.sources.source_modules import poller_module
from soakwatch_model.sample import Answer


@dataclass(frozen=True)
class Certificate:
    """PEM files of a self-signed certificate for 127.0.0.1."""

    certificate: Path
    key: Path

    @property
    def pin(self) -> str:
        """The digest by which a source trusts it."""
        der = ssl.PEM_cert_to_DER_cert(self.certificate.read_text(encoding="ascii"))
        return f"sha256:{hashlib.sha256(der).hexdigest()}"

    def server(self) -> ssl.SSLContext:
        """A server's side."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context


def make(folder: Path, name: str) -> Certificate:
    """A certificate that is valid for a day."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = Certificate(folder / f"{name}.crt", folder / f"{name}.key")
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    files.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return files


SITE = SourceContext("dut", "dut", (), None, Path(), lambda: 10**18, 1.0)


def _polls(name: str, keys: dict[str, object], count: int = 1, site: SourceContext | None = None) -> list[Answer]:
    """Some polls, one after the other, as the wrapper would make them."""
    module = poller_module(name)

    async def polled() -> list[Answer]:
        async with asyncio.timeout(200), AsyncExitStack() as stack:
            poller = await module.start(module.config.model_validate(keys), site or SITE, stack)
            return [await poller.poll(10**18 + number) for number in range(count)]

    return asyncio.run(polled())


def _values(answer: Answer) -> dict[str, float]:
    """Readings by metric."""
    return {sample.metric: sample.value for sample in answer.samples}


Page = Callable[[str, dict[str, str]], tuple[int, dict[str, str], bytes]]


@contextmanager
def _page_server(page: Page, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """A server on a free port of loopback that answers what ``page(path, headers)`` gives."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, headers, body = page(self.path, {name.lower(): value for name, value in self.headers.items()})
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that hangs up is what some tests do."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def polls() -> Callable[..., list[Answer]]:
    """``polls(name, keys, count=1, site=None)``: some polls of a poller."""
    return _polls


@pytest.fixture
def values() -> Callable[[Answer], dict[str, float]]:
    """Readings by metric."""
    return _values


@pytest.fixture
def page_server() -> Callable[..., AbstractContextManager[int]]:
    """``page_server(page, context=None)``: the port of a server on loopback."""
    return _page_server


@pytest.fixture
def other_certificate(tmp_path: Path) -> Certificate:
    """Another one."""
    return make(tmp_path, "wrong")


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    """A certificate for 127.0.0.1."""
    return make(tmp_path, "right")
