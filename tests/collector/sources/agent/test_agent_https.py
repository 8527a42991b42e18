"""The agent over HTTPS: token and pinned certificate, and the messages when they are wrong."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest
from tests.commands import Tally

from soakwatch.sources.abc import SourceError
from soakwatch.sources.pollers.agent.certificate import CertificateFiles, write_certificate
from soakwatch_testing.agents import LocalAgent, config, follow
from soakwatch_testing.ports import free_port

Make = Callable[..., LocalAgent]
WRONG = "wrong-token-that-must-not-be-shown"


@pytest.fixture
def port(make_agent: Make, papers: CertificateFiles) -> int:
    """An agent that serves there."""
    port = free_port()
    make_agent(
        "--no-recorder",
        "--https",
        f"127.0.0.1:{port}",
        "--token-file",
        str(papers.token),
        "--cert",
        str(papers.cert),
        "--key",
        str(papers.key),
    )
    deadline = time.monotonic() + 120
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        else:
            return port


def test_polls_come_over_https(tmp_path: Path, port: int, papers: CertificateFiles) -> None:
    """As over any other way: each due time once, also with a pause between."""

    async def run() -> None:
        keys = config(url=f"https://127.0.0.1:{port}", token=f"file:{papers.token}", fingerprint=papers.fingerprint)
        async with AsyncExitStack() as stack:
            follower = await follow(keys, tmp_path, stack)
            await follower.poll(4)
            await asyncio.sleep(1.2)
            await follower.poll(2)
            assert follower.poller.facts().identity["certificate"].endswith("(pinned)")
        assert follower.failures == []
        slots = follower.slots()
        assert slots == list(range(slots[0], slots[0] + len(slots)))
        assert len(slots) >= 10

    asyncio.run(run())


def test_an_answer_is_one_piece(port: int, papers: CertificateFiles) -> None:
    """Head and body in two writes would wait 40 ms for each other (Nagle's algorithm against delayed acknowledgements),
    and the clock would seem to be wrong by half of it."""
    context = ssl.create_default_context(cafile=str(papers.cert))
    question = b'ask 1 ping {"v": 1}\n'
    head = f"POST /v1 HTTP/1.1\r\nAuthorization: Bearer {papers.token.read_text().strip()}\r\n"
    with (
        socket.create_connection(("127.0.0.1", port), 10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as safe,
    ):
        for _ in range(3):
            safe.sendall(f"{head}Content-Length: {len(question)}\r\n\r\n".encode() + question)
            answer = safe.recv(1 << 16)  # one record of TLS at most
            fields, _, body = answer.partition(b"\r\n\r\n")
            assert f"Content-Length: {len(body)}".encode() in fields


def test_a_wrong_token_is_refused_without_being_shown(
    tmp_path: Path, port: int, papers: CertificateFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """401 as a sentence with the remedy."""
    monkeypatch.setenv("WRONG_TOKEN", WRONG)

    async def run() -> str:
        keys = config(url=f"https://127.0.0.1:{port}", token="env:WRONG_TOKEN", fingerprint=papers.fingerprint)
        async with AsyncExitStack() as stack:
            with pytest.raises(SourceError) as caught:
                await follow(keys, tmp_path, stack)
        return str(caught.value)

    error = asyncio.run(run())
    assert "refused the token" in error
    assert WRONG not in error


def test_a_connection_on_which_nothing_can_be_asked_is_ended(tmp_path: Path, papers: CertificateFiles) -> None:
    """At once, and not when Python collects it: the agent is asked again until somebody corrects the token."""
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
        await reader.read()
        writer.close()
        ended.set()

    async def run() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(papers.cert, papers.key)
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        keys = config(url=f"https://127.0.0.1:{port}", token=f"file:{papers.token}", fingerprint=papers.fingerprint)
        async with server, AsyncExitStack() as stack:
            with pytest.raises(SourceError, match="refused the token") as caught:
                await follow(keys, tmp_path, stack)
            async with asyncio.timeout(200):
                await ended.wait()
            del caught  # it held the connection

    asyncio.run(run())


def test_nothing_is_sent_to_a_server_with_another_certificate(tmp_path: Path, papers: CertificateFiles) -> None:
    """A server in between with a certificate of its own: it is named, and it never sees the token."""
    other = write_certificate(tmp_path / "other", "localhost")
    seen = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.extend(await reader.read(1000))
        writer.close()
        left.set()

    left = asyncio.Event()

    async def run() -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(other.cert, other.key)
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        keys = config(url=f"https://127.0.0.1:{port}", token=f"file:{papers.token}", fingerprint=papers.fingerprint)
        async with server, AsyncExitStack() as stack:
            with pytest.raises(SourceError) as caught:
                await follow(keys, tmp_path, stack)
            async with asyncio.timeout(200):
                await left.wait()  # the connection has ended, so all that was sent has been read
        return str(caught.value)

    error = asyncio.run(run())
    assert other.fingerprint in error
    assert "not the pinned one" in error
    assert bytes(seen) == b""


def test_without_a_pin_a_certificate_that_nobody_signed_is_refused(
    tmp_path: Path, port: int, papers: CertificateFiles
) -> None:
    """The message says what to do."""

    async def run() -> str:
        keys = config(url=f"https://127.0.0.1:{port}", token=f"file:{papers.token}")
        async with AsyncExitStack() as stack:
            with pytest.raises(SourceError) as caught:
                await follow(keys, tmp_path, stack)
        return str(caught.value)

    assert "pin it with fingerprint" in asyncio.run(run())


def test_what_unknown_clients_send_neither_ends_nor_blocks_it(
    tmp_path: Path, port: int, papers: CertificateFiles
) -> None:
    """No TLS, no request, wrong path, too long, no token: short answers; the next question is answered."""
    context = ssl.create_default_context(cafile=str(papers.cert))
    token = papers.token.read_text().strip()

    def ask(request: bytes) -> bytes:
        with (
            socket.create_connection(("127.0.0.1", port), 10) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as safe,
        ):
            safe.sendall(request)
            return safe.recv(100)

    silent = socket.create_connection(("127.0.0.1", port), 10)  # never begins TLS, and nothing waits for it
    with silent, socket.create_connection(("127.0.0.1", port), 10) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        head = f"Authorization: Bearer {token}\r\n".encode()
        assert b" 401 " in ask(b"POST /v1 HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
        assert b" 401 " in ask(b"POST /v1 HTTP/1.1\r\nAuthorization: Bearer \xff\r\nContent-Length: 2\r\n\r\n{}")
        assert b" 404 " in ask(b"POST / HTTP/1.1\r\n" + head + b"Content-Length: 2\r\n\r\n{}")
        assert b" 413 " in ask(b"POST /v1 HTTP/1.1\r\n" + head + b"Content-Length: 99999999\r\n\r\n")
        assert b" 413 " in ask(b"POST /v1 HTTP/1.1\r\n" + head + b"\r\n")
        assert b" 405 " in ask(b"GET /v1 HTTP/1.1\r\n" + head + b"\r\n")
        assert b" 200 " in ask(b"POST /v1 HTTP/1.1\r\n" + head + b"Content-Length: 2\r\n\r\n{}")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # clients that never hang up
def test_silent_and_slow_clients_lock_nobody_out(port: int, papers: CertificateFiles) -> None:
    """However many say nothing, each question is answered; a head that drips is cut, one that is too large refused."""
    context = ssl.create_default_context(cafile=str(papers.cert))
    token = papers.token.read_text().strip()

    def connected(stack: ExitStack) -> ssl.SSLSocket:
        plain = stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))
        return stack.enter_context(context.wrap_socket(plain, server_hostname="localhost"))

    def ask(safe: ssl.SSLSocket) -> bytes:
        head = f"POST /v1 HTTP/1.1\r\nAuthorization: Bearer {token}\r\nContent-Length: 2\r\n\r\n"
        safe.sendall(head.encode() + b"{}")
        return safe.recv(1 << 16)[:12]

    with ExitStack() as stack:
        friend, slow, large = connected(stack), connected(stack), connected(stack)
        assert ask(friend) == b"HTTP/1.1 200"
        large.sendall(b"POST /v1 HTTP/1.1\r\nX: " + b"x" * 20_000)
        assert large.recv(1 << 16).startswith(b"HTTP/1.1 431 ")
        begun = time.monotonic()
        with contextlib.suppress(OSError):
            while time.monotonic() - begun < 120:
                slow.sendall(b"P")
                slow.settimeout(0.2)
                with contextlib.suppress(TimeoutError):
                    if slow.recv(1) == b"":
                        break
        assert time.monotonic() - begun < 120, "it dripped for ever"
        for _ in range(200):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))
        for _ in range(5):
            assert ask(connected(stack)) == b"HTTP/1.1 200"
        assert ask(friend) == b"HTTP/1.1 200", "who showed the token keeps its place"


@pytest.mark.slow
def test_questions_beside_many_who_drip(port: int, papers: CertificateFiles, tally: Tally) -> None:
    """Forty that send a byte now and then, without TLS or within it, and come back at once."""
    context = ssl.create_default_context(cafile=str(papers.cert))
    head = f"POST /v1 HTTP/1.1\r\nAuthorization: Bearer {papers.token.read_text().strip()}\r\nContent-Length: 2\r\n\r\n"
    over, answered = threading.Event(), 0

    def drip(seed: int) -> None:
        rng = random.Random(seed)
        while not over.is_set():
            with contextlib.suppress(OSError), ExitStack() as links:
                peer = links.enter_context(socket.create_connection(("127.0.0.1", port), 10))
                if seed % 2:
                    peer = links.enter_context(context.wrap_socket(peer, server_hostname="localhost"))
                while not over.wait(rng.uniform(0.05, 0.3)):
                    peer.sendall(b"P")

    threads = [threading.Thread(target=drip, args=(seed,)) for seed in range(40)]
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))
        for thread in threads:
            thread.start()
        try:
            for _ in range(100):
                with (
                    contextlib.suppress(OSError),
                    socket.create_connection(("127.0.0.1", port), 60) as plain,
                    context.wrap_socket(plain, server_hostname="localhost") as safe,
                ):
                    safe.sendall(head.encode() + b"{}")
                    answered += safe.recv(1 << 16).startswith(b"HTTP/1.1 200")
        finally:
            over.set()
            for thread in threads:
                thread.join()
    failures = ["no answer"] * (100 - answered)
    tally("questions to the agent beside 300 silent and 40 dripping clients", 100, failures)
