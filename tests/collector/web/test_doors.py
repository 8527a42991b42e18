"""How many attempts the doors of a run withstand: who is let in where, and who tries to lock others out.

Each test prints a row: what was tried, how often, and how often it failed.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.commands import Tally

from soakwatch.plan.web import WebPlan
from soakwatch.web.access import Token, derived, one_time_code
from soakwatch.web.connections import MAX_CONNECTIONS, MAX_HEAD_BYTES
from soakwatch.web.endpoint import Endpoint, May
from soakwatch.web.routes import endpoints
from soakwatch_testing.served import ServedRun, serve_run

pytestmark = pytest.mark.slow
SEED = 20261123
_OPEN = {"/api/health"}  # and the pages' own files, which hold nothing of a run


def address(served: ServedRun) -> tuple[str, int]:
    """Host and port of a server."""
    host, port = served.url.removeprefix("http://").split(":")
    return host, int(port)


def path_of(endpoint: Endpoint) -> str:
    """A path of an endpoint that exists as far as it can."""
    return endpoint.path.replace("{run}", "last").replace("{name}", "theme.js").replace("{number}", "1")


def test_no_route_is_open_to_who_may_not(run: Path, tally: Tally) -> None:
    """Each route under each credential: nothing is answered below its level, and no GET changes anything."""
    with serve_run(WebPlan(listen="127.0.0.1:0"), run, time.time_ns) as served:
        assert served.token_file is not None
        token = Token(served.token_file.read_text().strip())
        port, word, other = address(served)[1], derived(token, "view"), Token("b" * 43)
        code = one_time_code(token, time.time() + 60)
        right = token.key().decode()
        credentials: dict[str, tuple[May, dict[str, str]]] = {
            "none": (May.NOTHING, {}),
            "wrong token": (May.NOTHING, {"authorization": f"Bearer {right[:-1]}x"}),
            "token without Bearer": (May.NOTHING, {"authorization": right}),
            "basic": (May.NOTHING, {"authorization": f"Basic {right}"}),
            "one-time code": (May.NOTHING, {"authorization": f"Bearer {code}"}),
            "another server's view word": (May.NOTHING, {"authorization": f"Bearer {derived(other, 'view')}"}),
            "another server's cookie": (May.NOTHING, {"cookie": f"soakwatch-{port}={derived(other, 'cookie act')}"}),
            "cookie of another port": (May.NOTHING, {"cookie": f"soakwatch-1={derived(token, 'cookie act')}"}),
            "view word": (May.VIEW, {"authorization": f"Bearer {word}"}),
            "view cookie": (May.VIEW, {"cookie": f"soakwatch-{port}={derived(token, 'cookie view')}"}),
            "act cookie of a foreign page": (
                May.VIEW,
                {"cookie": f"soakwatch-{port}={derived(token, 'cookie act')}", "origin": "http://evil.example"},
            ),
        }
        attempts, wrong = 0, []
        with httpx.Client(base_url=served.url, trust_env=False, verify=False, timeout=120) as client:
            for endpoint, (name, (may, headers)) in itertools.product(endpoints(), credentials.items()):
                if endpoint.path in _OPEN or endpoint.may is May.NOTHING:
                    continue
                for more in ({}, {"accept": "text/html"}):
                    attempts += 1
                    answer = client.request(endpoint.method, path_of(endpoint), headers={**headers, **more})
                    is_refused = answer.status_code in {401, 403}
                    if is_refused != (may < endpoint.may) or right in answer.text:
                        wrong.append((endpoint.method, endpoint.path, name, answer.status_code))
    tally("routes of the page under eleven wrong or weaker credentials", attempts, wrong)


def test_silent_and_slow_clients_do_not_lock_the_page(run: Path, tally: Tally) -> None:
    """A thousand silent sockets, then forty that drip and come back at once: each honest request is answered."""
    answered: Counter[int] = Counter()
    with serve_run(WebPlan(listen="127.0.0.1:0"), run, time.time_ns) as served, contextlib.ExitStack() as stack:

        def asks(times: int) -> None:
            for _ in range(times):
                try:
                    answered[
                        httpx.get(f"{served.url}/api/health", trust_env=False, verify=False, timeout=60).status_code
                    ] += 1
                except httpx.HTTPError:
                    answered[0] += 1

        for _ in range(900):
            stack.enter_context(socket.create_connection(address(served), timeout=60))
        asks(100)
        over = threading.Event()
        lorises = [threading.Thread(target=_loris, args=(address(served), over, SEED + n)) for n in range(40)]
        for loris in lorises:
            loris.start()
        try:
            asks(100)
        finally:
            over.set()
            for loris in lorises:
                loris.join()
    what = f"requests beside 900 silent sockets, and 40 that drip ({MAX_CONNECTIONS} places)"
    tally(what, answered.total(), [*(answered - Counter({200: answered[200]})).elements()])


def _loris(where: tuple[str, int], over: threading.Event, seed: int) -> None:
    """A byte now and then, and again from the beginning as soon as it is hung up on."""
    rng = random.Random(seed)
    while not over.is_set():
        with contextlib.suppress(OSError), socket.create_connection(where, timeout=10) as peer:
            while not over.wait(rng.uniform(0.05, 0.3)):
                peer.sendall(b"G")


def test_heads_that_are_too_large_or_broken(run: Path, tally: Tally) -> None:
    """Each is refused with 4xx or hung up on, none is a defect, and the next request is answered."""
    rng = random.Random(SEED)
    wrong: list[bytes] = []
    makes: list[Callable[[], bytes]] = [
        lambda: b"GET /" + b"x" * rng.randrange(MAX_HEAD_BYTES, 4 * MAX_HEAD_BYTES),
        lambda: b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * rng.randrange(MAX_HEAD_BYTES, 4 * MAX_HEAD_BYTES),
        lambda: b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * rng.randrange(4000, 9000),
        lambda: rng.randbytes(rng.randrange(1, 3000)) + b"\r\n\r\n",
        lambda: b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        lambda: b"GET /api/runs HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        lambda: b"GET /api/runs HTTP/1.1\r\nHost: " + rng.randbytes(20).hex().encode() + b"\r\n\r\n",
    ]
    with serve_run(WebPlan(listen="127.0.0.1:0"), run, time.time_ns) as served:
        for index in range(700):
            got = _answer(address(served), makes[index % len(makes)]())
            if got and not got.startswith(b"HTTP/1.1 4"):
                wrong.append(got[:60])
        if httpx.get(f"{served.url}/api/health", trust_env=False, verify=False, timeout=60).status_code != 200:
            wrong.append(b"the server is gone")
    tally("requests whose head is too large, broken, or for another host", 700, wrong)


def _answer(where: tuple[str, int], question: bytes) -> bytes:
    got = b""
    with contextlib.suppress(OSError), socket.create_connection(where, timeout=60) as peer:
        peer.sendall(question)
        peer.shutdown(socket.SHUT_WR)
        while part := peer.recv(65536):
            got += part
    return got
