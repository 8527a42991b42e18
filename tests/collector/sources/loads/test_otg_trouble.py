"""The load ``otg`` and controllers that are not there, answer wrongly, or show a certificate of their own."""

from __future__ import annotations

import hashlib
import socket
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pydantic import ValidationError
from tests.collector.sources.loads.generator_kit import Load, acted, by_series, left_open, polled

from soakwatch.core.errors import PlanError
from soakwatch.sources.abc import LoginRefusedError, SourceError
from soakwatch_otg import Config
from soakwatch_testing.otg_server import FakeFlow, Mood, OtgServer, otg_server

Act = Callable[[Load], Awaitable[None]]


def one_flow() -> OtgServer:
    """A flow that is sent."""
    return OtgServer([FakeFlow("up", sending=True)])


def acts(server: OtgServer, act: Act) -> None:
    """What is done with it."""
    with otg_server(server):
        acted("otg", {"url": f"http://127.0.0.1:{server.port}"}, act)


@pytest.mark.parametrize(
    ("mood", "sentence"),
    [
        ("garbage", "does not answer with JSON"),
        ("html", "does not answer with JSON"),
        ("silent", "did not answer within 2.7 s"),
        ("reset", "closed the connection without an answer"),
        ("half", "closed the connection in the middle of its answer"),
        ("flood", "answers with more than 8 MiB: not read"),
        ("error", "answers with status 500: the engine is gone and how"),
    ],
)
def test_misbehaviour_mid_run(mood: Mood, sentence: str) -> None:
    """Each poll fails with one sentence, and the first poll after it succeeds."""

    server = one_flow()

    async def misbehave(load: Load) -> None:
        await load.poll()
        server.mood = mood
        with pytest.raises(SourceError) as caught:
            await load.poll()
        assert sentence in str(caught.value)
        assert "\n" not in str(caught.value)
        server.mood = "well"
        assert by_series(await load.poll())["load.sending", ""] == 1

    acts(server, misbehave)


def test_polls_leave_nothing_open() -> None:
    """One connection that is kept."""
    with otg_server(one_flow()) as server:
        assert left_open("otg", {"url": f"http://127.0.0.1:{server.port}"}) <= 2


def test_nothing_answers_at_the_start() -> None:
    """One sentence with what to do."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(SourceError) as caught:
        polled("otg", {"url": f"https://127.0.0.1:{port}"})
    assert str(caught.value) == (
        f"https://127.0.0.1:{port} refuses the connection: nothing listens on that port; is the controller running, "
        "and the port right?"
    )


def test_a_controller_without_a_version() -> None:
    """It is read all the same."""
    server = one_flow()
    server.version = None

    async def poll(load: Load) -> None:
        assert "API" not in load.facts().identity
        assert by_series(await load.poll())["load.sending", ""] == 1

    acts(server, poll)

    async def known(load: Load) -> None:
        assert load.facts().identity["API"] == "1.62.0"
        assert load.facts().identity["application"] == "0.1-test"
        server.mood = "reset"
        with pytest.raises(SourceError):
            await load.poll()
        server.mood, server.version = "well", "1.63.0"
        await load.poll()
        assert load.facts().identity["API"] == "1.63.0"

    server = one_flow()
    acts(server, known)


def self_signed(folder: Path) -> tuple[ssl.SSLContext, str]:
    """The server's side of a certificate that it signed itself, as ixia-c does, and its pin."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ixia-c")])
    now = datetime.now(UTC)
    certificate = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), now - timedelta(hours=1), now + timedelta(days=1)
    ).sign(key, hashes.SHA256())
    (folder / "key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (folder / "crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "crt", folder / "key")
    return context, hashlib.sha256(certificate.public_bytes(serialization.Encoding.DER)).hexdigest()


def test_a_self_signed_certificate(tmp_path: Path) -> None:
    """Refused by itself, trusted by its pin, refused by the pin of another."""
    context, pin = self_signed(tmp_path)
    with otg_server(one_flow(), context) as server:
        url = f"https://127.0.0.1:{server.port}"
        (answer,) = polled("otg", {"url": url, "pin": f"sha256:{pin}"})
        assert by_series(answer)["load.sending", ""] == 1
        with pytest.raises(SourceError, match="presents a certificate that is not trusted: set ca, or pin"):
            polled("otg", {"url": url})
        with pytest.raises(SourceError, match=f"another certificate than the pinned one, refused: sha256:{pin}"):
            polled("otg", {"url": url, "pin": "0" * 64})
        (answer,) = polled("otg", {"url": url, "verify": False})
        assert by_series(answer)["load.sending", ""] == 1


def test_plain_http_where_tls_is_asked() -> None:
    """The message says what it is."""
    with (
        otg_server(one_flow()) as server,
        pytest.raises(SourceError, match="does not speak TLS: does the port serve plain HTTP"),
    ):
        polled("otg", {"url": f"https://127.0.0.1:{server.port}"})


def test_a_controller_that_asks_who_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token and a password are sent; a refused password is reported as such, so that no account is locked."""
    monkeypatch.setenv("T", "hunter2")
    server = one_flow()
    with otg_server(server):
        url = f"http://127.0.0.1:{server.port}"
        server.authorization = "Bearer hunter2"
        (answer,) = polled("otg", {"url": url, "token": "env:T"})
        assert by_series(answer)["load.sending", ""] == 1
        server.authorization = "Basic bWU6aHVudGVyMg=="
        (answer,) = polled("otg", {"url": url, "user": "me", "password": "env:T"})
        assert by_series(answer)["load.sending", ""] == 1
        with pytest.raises(LoginRefusedError, match="refuses the login of you: check user and password"):
            polled("otg", {"url": url, "user": "you", "password": "env:T"})
        with pytest.raises(SourceError, match="status 401: who are you") as caught:
            polled("otg", {"url": url, "token": "env:T"})
        assert not isinstance(caught.value, LoginRefusedError)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"url": "http://198.18.0.3", "token": "env:T"}, "token would cross the network in the clear: use https"),
        (
            {"url": "https://198.18.0.3", "token": "env:T", "verify": False},
            "sent to an unverified server: remove verify: false",
        ),
        ({"url": "https://198.18.0.3", "password": "env:T"}, "password needs user"),
    ],
)
def test_secrets_are_kept(keys: dict[str, object], sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that would give one away is refused before anything is sent."""
    monkeypatch.setenv("T", "hunter2")
    with pytest.raises(PlanError) as caught:
        polled("otg", keys)
    assert sentence in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "keys", [{}, {"url": "ftp://h"}, {"url": "http://h", "flows": []}, {"url": "http://h", "total": "x"}]
)
def test_keys_that_are_refused(keys: dict[str, object]) -> None:
    """With the plan, before the run."""
    with pytest.raises(ValidationError):
        Config.model_validate(keys)
