"""Where a server listens and who is let in; and what a stranger who is rude can do to it."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import stat
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from soakwatch.core.errors import PlanError, SoakwatchError
from soakwatch.plan.web import WebPlan, address
from soakwatch.runs.catalog import TOKEN_FILE
from soakwatch.sources.pollers.agent.certificate import write_certificate
from soakwatch.web import app, connections
from soakwatch.web.access import Token, open_listener, token_for
from soakwatch.web.auth import GUARDS
from soakwatch_testing.served import ServedRun, serve_run

TOKEN = "a-token-that-is-long-enough"


@pytest.mark.parametrize(
    ("plan", "where"),
    [
        (WebPlan(), ("127.0.0.1", 8720)),
        (WebPlan(listen="127.0.0.1:0"), ("127.0.0.1", 0)),
        (WebPlan(listen="localhost:80"), ("127.0.0.1", 80)),
        (WebPlan(listen="[::1]:9000"), ("::1", 9000)),
        (WebPlan(listen="0.0.0.0:8443", token=None, cert="c.pem", key="k.pem"), ("0.0.0.0", 8443)),
    ],
)
def test_addresses(plan: WebPlan, where: tuple[str, int]) -> None:
    """HOST:PORT; without it loopback and the usual port."""
    assert address(plan) == where


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (WebPlan(listen="0.0.0.0:8720"), "reachable from other machines: give cert and key"),
        (WebPlan(listen="[::]:8720"), "reachable from other machines"),
        (WebPlan(listen="192.0.2.1:8720", token="env:TOKEN"), "reachable from other machines"),
        (WebPlan(listen="0.0.0.0:8720", token=None, cert="c.pem"), "needs both cert and key"),
        (WebPlan(listen="8720"), "is not an address"),
        (WebPlan(listen="127.0.0.1:"), "is not an address"),
        (WebPlan(listen="127.0.0.1:99999"), "is not an address"),
        (WebPlan(listen="127.0.0.1:http"), "is not an address"),
        (WebPlan(listen="example.org:80"), "is not an IP address"),
    ],
)
def test_an_address_that_cannot_be_or_must_not_be(plan: WebPlan, sentence: str) -> None:
    """Beyond loopback nothing is served without TLS, whatever the token."""
    with pytest.raises(PlanError, match=sentence):
        open_listener(plan)


def test_a_taken_port_is_reported_unless_nobody_asked_for_it(run: Path) -> None:
    """The usual port gives way to a free one; a port that was named does not."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(SoakwatchError, match=f"cannot listen on 127.0.0.1:{port}: address already in use"):
            serve_run(WebPlan(listen=f"127.0.0.1:{port}"), run, time.time_ns)
    assert not (run / TOKEN_FILE).exists()
    with serve_run(WebPlan(), run, time.time_ns) as first, serve_run(WebPlan(), run, time.time_ns) as second:
        assert first.url != second.url
        assert httpx.get(f"{second.url}/api/health", trust_env=False, verify=False, timeout=240).status_code == 200


def test_a_token_is_made_kept_and_never_shared(tmp_path: Path) -> None:
    """A second life takes the token of the first; one that others could read is replaced."""
    token = token_for(WebPlan(), tmp_path)
    text = (tmp_path / TOKEN_FILE).read_text().strip()
    assert token.fits(f"Bearer {text}")
    assert not token.fits(f"Bearer {text}x")
    assert not token.fits("")
    assert not token.fits(text)
    assert text not in repr(token)
    assert token_for(WebPlan(), tmp_path).fits(f"Bearer {text}")
    (tmp_path / TOKEN_FILE).chmod(0o644)
    assert not token_for(WebPlan(), tmp_path).fits(f"Bearer {text}")
    assert stat.S_IMODE((tmp_path / TOKEN_FILE).stat().st_mode) == 0o600
    (tmp_path / TOKEN_FILE).unlink()
    (tmp_path / "planted").write_text("b" * 40)
    (tmp_path / "planted").chmod(0o600)
    (tmp_path / TOKEN_FILE).symlink_to(tmp_path / "planted")
    assert not token_for(WebPlan(), tmp_path).fits("Bearer " + "b" * 40)
    assert (tmp_path / "planted").read_text() == "b" * 40


@pytest.mark.parametrize("text", ["short", "with a space in the middle", "ümlaut-ümlaut-ümlaut", "x" * 1025])
def test_a_token_of_ones_own_is_long_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """The sentence names where it came from and never what it is."""
    monkeypatch.setenv("WEB_TOKEN", text)
    with pytest.raises(PlanError) as refused:
        token_for(WebPlan(token="env:WEB_TOKEN"), tmp_path)
    assert "env:WEB_TOKEN" in str(refused.value)
    assert text not in str(refused.value)


def test_a_token_of_ones_own(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes from the environment, and no file is made."""
    monkeypatch.setenv("WEB_TOKEN", TOKEN)
    with serve_run(WebPlan(listen="127.0.0.1:0", token="env:WEB_TOKEN"), run, time.time_ns) as served:
        good = httpx.get(
            f"{served.url}/api/runs",
            headers={"authorization": f"Bearer {TOKEN}"},
            trust_env=False,
            verify=False,
            timeout=240,
        )
        assert good.status_code == 200
        assert served.token_file is None
        assert not (run / TOKEN_FILE).exists()


def test_tls(run: Path, tmp_path: Path) -> None:
    """With a certificate it is HTTPS, on any address; plain HTTP gets no answer."""
    certificate = write_certificate(tmp_path / "papers", "localhost")
    with serve_run(
        WebPlan(listen="0.0.0.0:0", token=None, cert=str(certificate.cert), key=str(certificate.key)), run, time.time_ns
    ) as served:
        port = int(served.url.rpartition(":")[2])
        assert served.url.startswith("https://")
        assert served.token_file is not None
        headers = {"authorization": f"Bearer {served.token_file.read_text().strip()}"}
        verify = ssl.create_default_context(cafile=str(certificate.cert))
        with httpx.Client(verify=verify, headers=headers, trust_env=False, timeout=240) as client:
            answer = client.post(f"https://localhost:{port}/api/runs/last/events", json={"kind": "failover"})
        assert answer.status_code == 201
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"http://127.0.0.1:{port}/api/health", trust_env=False, verify=False, timeout=240)


def test_a_certificate_that_cannot_be_used(run: Path, tmp_path: Path) -> None:
    """Missing, no PEM, or the key of another: one sentence, no server, no token left behind."""
    first, other = write_certificate(tmp_path / "one", "localhost"), write_certificate(tmp_path / "other", "localhost")
    for cert, key in ((first.cert, other.key), (tmp_path / "none", first.key), (first.key, first.cert)):
        with pytest.raises(PlanError, match="cannot be used: name PEM files that match"):
            serve_run(WebPlan(listen="127.0.0.1:0", token=None, cert=str(cert), key=str(key)), run, time.time_ns)
    assert not (run / TOKEN_FILE).exists()


def test_a_folder_that_cannot_be_written(run: Path) -> None:
    """Without a place for the token nothing is served."""
    (run / TOKEN_FILE).mkdir()
    with pytest.raises(SoakwatchError, match=r"web\.token cannot be written"):
        serve_run(WebPlan(listen="127.0.0.1:0"), run, time.time_ns)
    assert not (run / "web.url").exists()
    assert [path.name for path in run.iterdir() if path.name.startswith(".web")] == []


def test_those_who_say_nothing_lock_nobody_out(served: ServedRun) -> None:
    """However many are silent, each new client gets an answer, and who showed the token keeps its connection."""
    host, port = served.url.removeprefix("http://").split(":")
    assert served.token_file is not None
    token = {"authorization": f"Bearer {served.token_file.read_text().strip()}"}
    with contextlib.ExitStack() as stack:
        friend = stack.enter_context(contextlib.closing(HTTPConnection(host, int(port), timeout=60)))

        def asks() -> socket.socket | None:
            friend.request("GET", "/api/runs", headers=token)
            answer = friend.getresponse()
            assert (answer.status, bool(answer.read())) == (200, True)
            return friend.sock

        first = asks()
        for number in range(3 * connections.MAX_CONNECTIONS):
            stack.enter_context(socket.create_connection((host, int(port)), timeout=60))
            if number % 32 == 0:  # however slow the machine is, it is never idle for so long that it is hung up on
                assert asks() is first, "its connection had to make room"
        for _ in range(20):
            with contextlib.closing(HTTPConnection(host, int(port), timeout=60)) as stranger:
                stranger.request("GET", "/api/health")
                assert stranger.getresponse().status == 200
            assert asks() is first, "its connection had to make room"
        served.close()


def test_a_head_that_is_too_large_is_refused(standing: ServedRun) -> None:
    """In one sentence, with the guards of every answer, before anything is kept of it."""
    host, port = standing.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as peer:
        peer.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: " + b"x" * 2 * connections.MAX_HEAD_BYTES)
        got = b""
        with contextlib.suppress(ConnectionResetError):
            while part := peer.recv(4096):
                got += part
    assert got.startswith(b"HTTP/1.1 431 ")
    assert b"content-security-policy: default-src 'none'" in got
    assert got.endswith(b'{"error": "the head of the request is larger than 16 KiB"}')


@pytest.mark.parametrize("path", ["/api/health", "/api/health/", "/enter/code", "/", "/nowhere", "/api/runs"])
@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:8720", "192.0.2.7"])
def test_who_asks_for_another_host_is_refused_before_all_else(standing: ServedRun, path: str, host: str) -> None:
    """No answer, no redirect and nothing of the name that was asked for; the guards are there as on every answer."""
    headers = {"host": host, "accept": "text/html"}
    answer = httpx.get(f"{standing.url}{path}", headers=headers, trust_env=False, verify=False, timeout=240)
    assert answer.status_code == 421
    assert answer.json() == {
        "error": "the Host header does not name this server: use its address, or allow the name"
        " (`soakwatch serve --name NAME`; names under web in a plan)"
    }
    assert host not in str(answer.headers)
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_every_answer_has_the_guards(standing: ServedRun, asking: httpx.Client) -> None:
    """Pages, redirects, errors and paths with a slash too many, which is no redirect."""
    for path, status in {
        "/api/health": 200,
        "/api/health/": 404,
        "/enter/used": 303,
        "/view/no": 401,
        "/x": 404,
    }.items():
        answer = asking.get(f"{standing.url}{path}", follow_redirects=False)
        assert answer.status_code == status, path
        for name, value in GUARDS.items():
            assert answer.headers[name] == value, path
        assert answer.headers["cache-control"], path


def test_a_name_that_was_allowed_is_answered(run: Path) -> None:
    """A proxy's name, also through a tunnel with another port; a name below it is another name."""
    with serve_run(WebPlan(listen="127.0.0.1:0", names=("Soak.Lab",)), run, time.time_ns) as served:
        for host, status in {"soak.lab": 200, "SOAK.LAB:443": 200, "localhost:9": 200, "a.soak.lab": 421}.items():
            answer = httpx.get(
                f"{served.url}/api/health", headers={"host": host}, trust_env=False, verify=False, timeout=240
            )
            assert answer.status_code == status, host


@pytest.mark.parametrize(
    ("begun", "answer"),
    [
        (b"", b""),
        (b"GET /api/hea", b""),
        (b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /api/hea", b'{"status":"ok"}'),
        (
            (
                b"POST /api/runs/run/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 9\r\n"
                b"Authorization: Bearer %b\r\n\r\n{"
            ),
            b'{"error":"the body did not arrive within 0.2 s"}',
        ),
    ],
    ids=["nothing", "half a head", "half of a second head", "half a body"],
)
def test_who_does_not_go_on_is_hung_up_on(
    run: Path, monkeypatch: pytest.MonkeyPatch, begun: bytes, answer: bytes
) -> None:
    """Whatever was begun and is not ended: the connection is closed, and something was answered if it could be."""
    monkeypatch.setattr(connections, "CHECK_EVERY_S", 0.3)
    monkeypatch.setattr(connections, "HEAD_S", 0.3)
    monkeypatch.setattr(app, "_BODY_S", 0.2)
    with serve_run(WebPlan(listen="127.0.0.1:0"), run, time.time_ns) as served:
        assert served.token_file is not None
        host, port = served.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as peer:
            peer.sendall(begun.replace(b"%b", served.token_file.read_bytes().strip()))
            got = b""
            with contextlib.suppress(ConnectionResetError):
                while part := peer.recv(4096):
                    got += part
        assert got.endswith(answer)
        assert bool(got) == bool(answer)


def test_no_descriptor_is_left(run: Path, until: Callable[[Callable[[], bool], str], None]) -> None:
    """Ten servers later as many files are open as before."""

    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = opened()
    for _ in range(10):
        with serve_run(WebPlan(listen="127.0.0.1:0"), run, time.time_ns) as served:
            httpx.get(f"{served.url}/api/health", trust_env=False, verify=False, timeout=240)
    until(lambda: opened() <= before, "closing")


def test_the_token_shows_nothing() -> None:
    """Neither in repr nor in formatting."""
    assert TOKEN not in f"{Token(TOKEN)} {Token(TOKEN)!r}"
