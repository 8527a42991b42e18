"""The set-up that every HTTP client shares: what it refuses to send, and how each failure is reported."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path

import httpx
import pytest

from soakwatch.core.errors import PlanError
from soakwatch.sources.transport.http_client import (
    REQUEST_ERRORS,
    Cause,
    HttpFailure,
    async_client,
    failure_of,
    sync_client,
    tls_context,
)

_TIMEOUT_S = 20.0


@pytest.mark.parametrize(
    ("error", "cause", "text"),
    [
        (httpx.ReadTimeout("t"), Cause.TIMEOUT, "http://h did not answer within 20 s"),
        (TimeoutError(), Cause.TIMEOUT, "http://h did not answer within 20 s"),
        (
            httpx.ConnectError("[Errno -2] Name or service not known"),
            Cause.HOST_NAME,
            "http://h has a host name that cannot be resolved: check the name, and the name service of this machine",
        ),
        (
            httpx.ConnectError("[Errno 101] Network is unreachable"),
            Cause.NO_ROUTE,
            "http://h cannot be reached: there is no route from this machine",
        ),
        (
            httpx.ConnectError("All connection attempts failed"),
            Cause.REFUSED,
            "http://h refuses the connection: nothing listens on that port",
        ),
        (
            httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"),
            Cause.CERTIFICATE,
            "http://h presents a certificate that is not trusted: set ca, or pin the certificate",
        ),
        (
            httpx.ConnectError("[SSL: WRONG_VERSION_NUMBER] wrong version number"),
            Cause.NOT_TLS,
            "http://h accepts the connection but does not speak TLS: does the port serve plain HTTP?",
        ),
        (httpx.ConnectError("odd"), Cause.UNREACHABLE, "http://h cannot be reached"),
        (
            httpx.RemoteProtocolError("Server disconnected without sending a response."),
            Cause.BROKEN,
            "http://h closed the connection without an answer",
        ),
        (
            httpx.RemoteProtocolError("peer closed connection without sending complete message body"),
            Cause.BROKEN,
            "http://h closed the connection in the middle of its answer",
        ),
        (httpx.RemoteProtocolError("illegal status line"), Cause.BROKEN, "http://h does not answer in HTTP"),
        (httpx.ReadError("reset"), Cause.BROKEN, "http://h lost the connection"),
        (httpx.InvalidURL("x"), Cause.BROKEN, "http://h could not be asked (InvalidURL)"),
    ],
)
def test_each_failure_is_one_sentence(error: Exception, cause: Cause, text: str) -> None:
    """A cause for the program, a sentence for people."""
    assert failure_of(error, "http://h", _TIMEOUT_S) == HttpFailure(cause, text)


def test_a_caller_names_its_own_remedy() -> None:
    """A remedy of the caller replaces the one that is advised otherwise."""
    error = httpx.ConnectError("[Errno 111] Connection refused")
    assert failure_of(error, "h:1", 1.0, {Cause.REFUSED: "is it up?"}).text == "h:1 refuses the connection: is it up?"


def _sync_failure(url: str) -> HttpFailure:
    with sync_client({}, _TIMEOUT_S, owner="x") as client, pytest.raises(REQUEST_ERRORS) as caught:
        client.get(url)
    return failure_of(caught.value, "there", _TIMEOUT_S)


async def _async_failure(url: str) -> HttpFailure:
    async with async_client({}, _TIMEOUT_S, owner="x") as client:
        with pytest.raises(REQUEST_ERRORS) as caught:
            await client.get(url)
    return failure_of(caught.value, "there", _TIMEOUT_S)


def test_both_clients_report_a_closed_port_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two libraries below word it differently; a proxy of the environment is not asked."""
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1:3128")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    assert _sync_failure(url) == asyncio.run(_async_failure(url))
    assert _sync_failure(url).cause is Cause.REFUSED


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"", "there closed the connection without an answer"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
            "there closed the connection in the middle of its answer",
        ),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "there does not answer in HTTP"),
    ],
)
def test_both_clients_report_a_broken_answer_alike(answer: bytes, text: str) -> None:
    """What the peer did is said, in the same words."""

    def serve(listener: socket.socket) -> None:
        for _ in range(2):
            peer, _address = listener.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        assert [_sync_failure(url).text, asyncio.run(_async_failure(url)).text] == [text, text]
        thread.join()


@pytest.mark.parametrize("value", ["ümlaut", "two\r\nlines", "zero\0"])
def test_a_header_that_http_cannot_carry_is_refused(value: str) -> None:
    """Before anything is sent, and without the value."""
    for client in (sync_client, async_client):
        with pytest.raises(PlanError, match="the token of env:T cannot be sent in an HTTP header") as caught:
            client({"authorization": value}, 1.0, owner="the token of env:T")
        assert value not in str(caught.value)


def test_tls_is_set_up_for_https_only(tmp_path: Path) -> None:
    """Plain HTTP needs no context; a CA bundle that holds nothing is a mistake in the plan."""
    assert tls_context("http://h", None) is None
    context = tls_context("https://h", None)
    assert context is not None
    assert context.check_hostname
    with pytest.raises(PlanError):
        tls_context("https://h", str(tmp_path / "missing.pem"))
