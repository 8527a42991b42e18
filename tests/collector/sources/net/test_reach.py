"""Whether a peer answers: echo requests, TCP connections and pages, against real servers on loopback."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from soakwatch.core.errors import PlanError
from soakwatch.sources.abc import SourceContext, SourceError
from soakwatch.sources.pollers.icmp import sequence_of
from soakwatch.sources.transport.tls import pin_of
from soakwatch_model.sample import Answer, object_text

Polls = Callable[..., list[Answer]]
Values = Callable[[Answer], dict[str, float]]
Serve = Callable[..., AbstractContextManager[int]]


class Files(Protocol):
    """A certificate and its key as files."""

    certificate: Path
    key: Path

    @property
    def pin(self) -> str: ...

    def server(self) -> ssl.SSLContext: ...


def _may_ping() -> bool:
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP):
            return True
    return False


ping = pytest.mark.skipif(not _may_ping(), reason="this user may not send echo requests")


@ping
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_a_peer_that_answers(host: str, polls: Polls, values: Values) -> None:
    """``icmp``: every request is counted, the round trip is one that loopback can have."""
    if host == "::1" and not Path("/proc/net/if_inet6").read_text(encoding="ascii"):
        pytest.skip("this machine has no IPv6")
    first, second = polls("icmp", {"host": host, "count": 2, "spacing": "1ms"}, 2)
    assert values(second)["reach.up"] == 1
    assert (values(first)["reach.sent"], values(second)["reach.sent"], values(second)["reach.lost"]) == (2, 4, 0)
    assert 0 < values(second)["reach.round_trip"] < 0.5
    assert {sample.object for sample in second.samples} == {object_text(peer=host, protocol="icmp")}


@ping
def test_times_that_do_not_fit_are_refused(polls: Polls) -> None:
    """More requests than a poll has time for is the plan's mistake."""
    with pytest.raises(PlanError, match=r"50 requests and the wait take 5\.4 s, but a poll has 1 s: lower count"):
        polls("icmp", {"host": "127.0.0.1", "count": 50, "spacing": "100ms"})


@ping
def test_an_unknown_name_is_no_lost_packet(polls: Polls) -> None:
    """An unknown name says nothing about the device."""
    with pytest.raises(SourceError, match=r"the name 'nobody\.invalid' is not known"):
        polls("icmp", {"host": "nobody.invalid"})


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and ip to make a namespace")
def test_a_cut_line_loses_requests_and_a_missing_route_fails_the_poll(namespace: str) -> None:
    """Requests into a cut line are lost; with the own interface down, this machine is to blame and not the peer."""
    code = """
import asyncio, subprocess, sys
from contextlib import AsyncExitStack
from pathlib import Path
from soakwatch.sources.abc import SourceContext, SourceError
from soakwatch.sources.source_modules import poller_module
module = poller_module("icmp")
CONFIG = module.config(host="198.18.0.2", count=2, spacing="10ms", wait="200ms")
site = SourceContext("dut", "dut", (), None, Path(), lambda: 0, 1.0)
async def main():
    async with AsyncExitStack() as stack:
        poller = await module.start(CONFIG, site, stack)
        async def poll():
            answer = await poller.poll(0)
            print({s.metric: s.value for s in answer.samples if s.metric != "reach.round_trip"}, len(answer.faults))
        await poll()
        subprocess.run(["ip", "netns", "exec", sys.argv[1] + "b", "ip", "link", "set", "lo", "down"], check=True)
        subprocess.run(["ip", "-n", sys.argv[1] + "b", "link", "set", "vb", "down"], check=True)
        await poll()
        subprocess.run(["ip", "link", "set", "va", "down"], check=True)
        try:
            await poll()
        except SourceError as failure:
            print(failure)
asyncio.run(main())
"""
    done = subprocess.run(
        ["ip", "netns", "exec", f"{namespace}a", sys.executable, "-c", code, namespace],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    up, cut, down = done.stdout.splitlines()[:3] if done.returncode == 0 else (done.stderr, "", "")
    assert up == "{'reach.up': 1, 'reach.sent': 2, 'reach.lost': 0} 0"
    assert cut == "{'reach.up': 0, 'reach.sent': 4, 'reach.lost': 2} 1"
    assert down == "no request can be sent to 198.18.0.2: there is no route from this machine"


@pytest.fixture
def namespace() -> Iterator[str]:
    """Two network namespaces, joined by a pair of interfaces (198.18.0.1 and .2), all of this test alone."""
    name = f"soakwatch-{os.getpid()}"

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    try:
        ip("netns", "add", f"{name}a")
        ip("netns", "add", f"{name}b")
        ip("link", "add", "va", "netns", f"{name}a", "type", "veth", "peer", "name", "vb", "netns", f"{name}b")
        for side, number in (("a", 1), ("b", 2)):
            ip("-n", name + side, "addr", "add", f"198.18.0.{number}/24", "dev", f"v{side}")
            ip("-n", name + side, "link", "set", f"v{side}", "up")
            ip("-n", name + side, "link", "set", "lo", "up")
        yield name
    finally:
        for side in "ab":
            subprocess.run(["ip", "netns", "del", name + side], check=False, capture_output=True)


def test_only_the_own_answers_count() -> None:
    """A reply counts by its token; requests, foreign tokens and random packets do not, nor do they raise."""
    token = bytes(range(8))
    reply = bytes([0, 0, 0, 0, 0, 1, 0, 9]) + token + (9).to_bytes(2, "big")
    assert sequence_of(reply, token, socket.AF_INET, raw=False) == 9
    assert sequence_of(bytes([0x45] + [0] * 19) + reply, token, socket.AF_INET, raw=True) == 9
    assert sequence_of(b"\x08" + reply[1:], token, socket.AF_INET, raw=False) is None
    assert sequence_of(reply, b"x" * 8, socket.AF_INET, raw=False) is None
    rng = random.Random(4)
    for _ in range(5000):
        cut = bytearray(reply[: rng.randrange(len(reply))] + rng.randbytes(rng.randrange(20)))
        sequence_of(bytes(cut), b"nothing!", socket.AF_INET, raw=bool(rng.randrange(2)))


def test_a_port_that_accepts_refuses_or_is_silent(polls: Polls, values: Values) -> None:
    """``tcp``: accepted, refused and silent are told apart, and none of them is a failed poll."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (well,) = polls("tcp", {"host": "127.0.0.1", "port": port})
        (silent,) = polls("tcp", {"host": "127.0.0.1", "port": port, "tls": True, "verify": False, "wait": "100ms"})
    (refused,) = polls("tcp", {"host": "127.0.0.1", "port": port})
    assert (values(well)["reach.up"], well.faults) == (1, ())
    assert 0 < values(well)["reach.round_trip"] < 0.5
    assert (values(silent)["reach.up"], silent.faults[0].text) == (0, "no answer within 0.1 s")
    assert (values(refused)["reach.lost"], refused.faults[0].text) == (1, f"refused: nothing listens on port {port}")


def test_a_banner_is_read_to_the_end_of_what_is_expected(polls: Polls, values: Values) -> None:
    """``expect`` finds text that comes in parts, and says when it does not come."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for _ in range(2):
                peer, _ = server.accept()
                with peer:
                    peer.sendall(b"SSH-")
                    peer.sendall(b"2.0-x\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = server.getsockname()[1]
        (well,) = polls("tcp", {"host": "127.0.0.1", "port": port, "expect": "SSH-2.0"})
        (other,) = polls("tcp", {"host": "127.0.0.1", "port": port, "expect": "SMTP"})
        thread.join()
    assert values(well)["reach.up"] == 1
    assert other.faults[0].text == "the banner does not contain 'SMTP'"


def test_a_certificate_that_nobody_signed(polls: Polls, values: Values, page_server: Serve, certificate: Files) -> None:
    """Without its authority a certificate is refused; with it, the port is up."""
    with page_server(lambda *_: (200, {}, b"ok"), certificate.server()) as port:
        (refused,) = polls("tcp", {"host": "127.0.0.1", "port": port, "tls": True})
        (well,) = polls("tcp", {"host": "127.0.0.1", "port": port, "tls": True, "ca": str(certificate.certificate)})
    assert refused.faults[0].text.startswith("the certificate is not trusted")
    assert values(well)["reach.up"] == 1


def test_a_page_and_its_values(polls: Polls, values: Values, page_server: Serve) -> None:
    """``http``: values come by path, expression and header; what is missing is a fault of its metric alone."""
    body = b'{"data": {"sessions": 12, "list": [{"n": "7.5"}], "text": "many"}}'
    shapes: list[dict[str, object]] = [
        {"metric": "system.sessions", "json": "data.sessions", "labels": {"table": "nat"}},
        {"metric": "system.uptime", "json": "data.list[0].n", "scale": 60},
        {"metric": "system.processes", "header": "X-Count"},
        {"metric": "system.memory.usage", "regex": 'sessions": (\\d+)', "scale": 1024},
        {"metric": "system.cpu.utilization", "json": "data.text"},
        {"metric": "system.memory.available", "json": "data.list[3].n"},
    ]
    with page_server(lambda *_: (200, {"X-Count": "31"}, body)) as port:
        (answer,) = polls("http", {"url": f"http://127.0.0.1:{port}/state", "values": shapes, "expect": "data"})
    readings = values(answer)
    assert (readings["system.sessions"], readings["system.uptime"], readings["system.processes"]) == (12, 450.0, 31)
    assert readings["system.memory.usage"] == 12288
    assert {fault.metric: fault.text for fault in answer.faults} == {
        "system.cpu.utilization": "'many' is not a number",
        "system.memory.available": "the page's JSON has no data.list[3].n",
    }


@pytest.mark.parametrize(
    ("page", "keys", "sentence"),
    [
        ((503, {}, b"no"), {}, "the page answers with status 503"),
        ((200, {}, b"no"), {"expect": "ok"}, "the page does not contain 'ok'"),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), {}, "the page answers with status 302"),
    ],
)
def test_a_page_that_is_not_as_it_should_be(
    page: tuple[int, dict[str, str], bytes],
    keys: dict[str, object],
    sentence: str,
    polls: Polls,
    values: Values,
    page_server: Serve,
) -> None:
    """It is down with the reason, and its status is reported; a redirect is not followed."""
    with page_server(lambda *_: page) as port:
        (answer,) = polls("http", {"url": f"http://127.0.0.1:{port}/", **keys})
    assert (values(answer)["reach.up"], values(answer)["reach.status"]) == (0, page[0])
    assert answer.faults[0].text == sentence


def test_a_page_without_end_is_not_read(polls: Polls, page_server: Serve) -> None:
    """A body beyond the limit is refused, not kept."""
    with (
        page_server(lambda *_: (200, {}, b"x" * (9 * 2**20))) as port,
        pytest.raises(SourceError, match="answers with more than 8 MiB: not read"),
    ):
        polls("http", {"url": f"http://127.0.0.1:{port}/"})


def test_a_secret_goes_to_the_pinned_server_only(
    polls: Polls,
    values: Values,
    page_server: Serve,
    certificate: Files,
    other_certificate: Files,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The token reaches the server whose certificate is pinned; one with another certificate never sees it."""
    monkeypatch.setenv("WEB_TOKEN", "wonderful")
    heard: list[str] = []

    def page(_: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        heard.append(headers.get("authorization", ""))
        return 200, {}, b"ok"

    keys: dict[str, object] = {"token": "env:WEB_TOKEN", "pin": certificate.pin}
    with page_server(page, certificate.server()) as port:
        (answer,) = polls("http", {"url": f"https://127.0.0.1:{port}/", **keys})
    assert (values(answer)["reach.up"], heard) == (1, ["Bearer wonderful"])
    with (
        page_server(page, other_certificate.server()) as port,
        pytest.raises(SourceError, match="shows another certificate than the pinned one, refused: sha256:") as caught,
    ):
        polls("http", {"url": f"https://127.0.0.1:{port}/", **keys})
    assert heard == ["Bearer wonderful"]
    assert "wonderful" not in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        (
            {"url": "http://198.18.0.9/", "token": "env:WEB_TOKEN"},
            "token would cross the network in the clear: use https",
        ),
        (
            {"url": "https://198.18.0.9/", "token": "env:WEB_TOKEN", "verify": False},
            "token would be sent to an unverified",
        ),
        ({"url": "https://198.18.0.9/", "password": "env:WEB_TOKEN"}, "password needs user"),
        ({"url": "http://127.0.0.1/", "token": "env:NOT_THERE"}, "the environment variable NOT_THERE is not set"),
    ],
)
def test_secrets_that_would_be_shown_are_refused(
    keys: dict[str, object], sentence: str, polls: Polls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No secret leaves over plain HTTP, or to a server that is not verified."""
    monkeypatch.setenv("WEB_TOKEN", "wonderful")
    with pytest.raises(PlanError) as caught:
        polls("http", keys)
    assert sentence in str(caught.value)
    assert "wonderful" not in str(caught.value)


def test_a_pin_is_a_digest() -> None:
    """What openssl prints is taken; anything else is refused with the remedy."""
    colons = ":".join(["ab"] * 32)
    assert pin_of(colons) == pin_of("sha256:" + "AB" * 32) == "ab" * 32
    with pytest.raises(ValueError, match="a pin is the SHA-256"):
        pin_of("abc")


def test_the_wait_fits_the_poll(polls: Polls, page_server: Serve) -> None:
    """A wait that is longer than a poll may take is refused."""
    site = replace(_site(), interval_s=1.0)
    with page_server(lambda *_: (200, {}, b"")) as port, pytest.raises(PlanError, match="wait of 5 s is longer"):
        polls("http", {"url": f"http://127.0.0.1:{port}/", "wait": "5s"}, 1, site)


def _site() -> SourceContext:
    return SourceContext("dut", "dut", (), None, Path(), lambda: 0, 1.0)
