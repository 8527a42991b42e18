"""Who gets in, how, and what they may do then; nobody learns the token, and nothing strange brings the server down."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from soakwatch.plan.web import WebPlan
from soakwatch.sources.pollers.agent.certificate import write_certificate
from soakwatch.web.access import Token, derived, is_valid_code, one_time_code
from soakwatch.web.app import Answers
from soakwatch.web.auth import Authenticator
from soakwatch.web.hosts import Names
from soakwatch.web.routes import endpoints
from soakwatch.web.server import OneRun
from soakwatch_testing.served import ServedRun, serve_run

HTML = {"accept": "text/html,application/xhtml+xml"}
EVENTS = "/api/runs/last/events"
ENTRY = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
def token(served: ServedRun) -> Token:
    """The token of the server."""
    assert served.token_file is not None
    return Token(served.token_file.read_text(encoding="ascii").strip(), served.token_file)


@pytest.fixture
def browser(served: ServedRun) -> Iterator[httpx.Client]:
    """Someone with a browser and nothing else."""
    with httpx.Client(base_url=served.url, headers=HTML, trust_env=False, verify=False, timeout=240) as connection:
        yield connection


def code_of(token: Token, seconds: float = 60) -> str:
    """A way in for a browser."""
    return f"/enter/{one_time_code(token, time.time() + seconds)}"


def cookie_of(answer: httpx.Response) -> tuple[str, dict[str, str]]:
    """Name of the cookie that an answer sets, and its attributes in lower case; its value under ``value``."""
    (header,) = answer.headers.get_list("set-cookie")
    first, *rest = [part.strip() for part in header.split(";")]
    name, _, value = first.partition("=")
    return name, {"value": value} | {key.lower(): word for key, _, word in (part.partition("=") for part in rest)}


def may_act(client: httpx.Client) -> bool:
    """Whether an event is taken."""
    answer = client.post(EVENTS, json={"kind": f"check-{time.time_ns()}"})
    assert answer.status_code in {201, 401, 403}, answer.text
    return answer.status_code == 201


def may_view(client: httpx.Client) -> bool:
    """Whether the list of runs is shown."""
    return client.get("/api/runs").status_code == 200


def test_a_code_lets_one_browser_in_once(browser: httpx.Client, served: ServedRun, token: Token) -> None:
    """Whoever has it first; the second one is not let in. What only previews the link uses nothing up."""
    link = code_of(token)
    assert browser.head(link).status_code == 204
    assert not may_view(browser)
    answer = browser.get(link)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert may_act(browser)
    assert browser.get(link).status_code == 303, "whoever is in already is not sent away"
    with httpx.Client(base_url=served.url, headers=HTML, trust_env=False, verify=False, timeout=240) as other:
        answer = other.get(link)
        assert answer.status_code == 401
        assert "was used already" in answer.text
        assert not may_view(other)


def test_a_code_that_is_old_forged_or_of_another_server_is_refused(browser: httpx.Client, token: Token) -> None:
    """And so is every part of a good one."""
    made_s = time.time()
    good = one_time_code(token, made_s + 600)  # a busy machine may take a minute for what follows
    head, _, signed = good.rpartition(".")
    until, _, nonce = head.partition(".")
    later = f"{int(until, 16) + 10_000:x}.{nonce}"
    refused = [
        one_time_code(token, time.time() - 2),
        one_time_code(Token("another-token-of-another-server"), time.time() + 60),
        f"{later}.{signed}",
        f"{head}.",
        head,
        signed,
        f"{good}x",
        f".{good}",
        "..",
        "0",
        "é.ü.ß",
        derived(token, "view"),
        f"{head}.{derived(token, f'enter {later}')}",
    ]
    for code in refused:
        assert browser.get(f"/enter/{code}").status_code in {401, 404}, code
        assert not may_view(browser), code
    assert is_valid_code(token, good, made_s + 599)
    assert not is_valid_code(token, good, made_s + 602)
    assert browser.get(f"/enter/{good}").status_code == 303


def test_the_cookie_is_for_no_script_and_no_other_site(browser: httpx.Client, served: ServedRun, token: Token) -> None:
    """HttpOnly, SameSite, for this port by its name; without TLS it cannot be Secure."""
    name, attributes = cookie_of(browser.get(code_of(token)))
    assert name == f"soakwatch-{urlsplit(served.url).port}"
    assert (attributes["samesite"], attributes["path"]) == ("lax", "/")
    assert "httponly" in attributes
    assert "secure" not in attributes
    assert attributes["value"] not in {derived(token, "view"), token.key().decode()}


def test_over_tls_the_cookie_is_secure(run: Path, tmp_path: Path) -> None:
    """And the way in is the same."""
    papers = write_certificate(tmp_path / "papers", "localhost")
    plan = WebPlan(listen="127.0.0.1:0", token=None, cert=str(papers.cert), key=str(papers.key))
    with (
        serve_run(plan, run, time.time_ns) as served,
        httpx.Client(base_url=served.url, headers=HTML, trust_env=False, verify=False, timeout=240) as client,
    ):
        assert served.token_file is not None
        _, attributes = cookie_of(client.get(code_of(Token(served.token_file.read_text().strip()))))
        assert "secure" in attributes
        assert may_act(client)


def test_the_view_link_cannot_act(browser: httpx.Client, token: Token) -> None:
    """403 for all that acts, whatever it sends; the page shows no button that acts."""
    assert browser.get(f"/view/{derived(token, 'view')}").status_code == 303
    assert may_view(browser)
    acting = [endpoint for endpoint in endpoints() if endpoint.may.name == "ACT"]
    assert len(acting) >= 3
    for endpoint in acting:
        answer = browser.request(endpoint.method, endpoint.path.replace("{run}", "last"), json={})
        assert answer.status_code == 403, endpoint.path
        assert answer.json() == {"error": "view-only access: this action needs the token"}
    page = browser.get("/", follow_redirects=True)
    assert page.status_code == 200
    assert browser.get(f"/view/{derived(token, 'enter')}").status_code == 401
    with httpx.Client(base_url=str(browser.base_url), trust_env=False, verify=False, timeout=240) as robot:
        robot.headers["authorization"] = f"Bearer {derived(token, 'view')}"
        assert may_view(robot)
        assert not may_act(robot)


def test_the_form_takes_the_token(browser: httpx.Client, token: Token) -> None:
    """Also one with a space around it; a wrong one is reported, and is not shown again."""
    answer = browser.get("/")
    assert answer.status_code == 401
    assert '<form method="post" action="/enter">' in answer.text
    wrong = browser.post("/enter", content="token=%3Cscript%3Ealert(1)%3C/script%3E", headers=ENTRY)
    assert wrong.status_code == 401
    assert "Wrong token" in wrong.text
    assert "script" not in wrong.text
    assert browser.post("/enter", json={"token": token.key().decode()}).status_code == 415
    assert browser.post("/enter", data={"token": f" {token.key().decode()} "}).status_code == 303
    assert may_act(browser)


def test_people_get_a_page_and_programs_get_json(browser: httpx.Client) -> None:
    """At the door: by what they accept, and never a page below /api."""
    assert browser.get("/").headers["content-type"].startswith("text/html")
    assert browser.get("/api/runs").json()["error"].startswith("send the header")
    assert set(browser.get("/", headers={"accept": "application/json"}).json()) == {"error"}
    assert browser.get("/api/runs").headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://localhost:1"])
def test_another_sites_page_cannot_act(browser: httpx.Client, token: Token, origin: str) -> None:
    """Even with the cookie or the header of someone who may; nor can it let a browser in."""
    browser.get(code_of(token))
    assert may_act(browser)
    browser.headers["origin"] = origin
    assert not may_act(browser)
    assert browser.post("/enter", data={"token": token.key().decode()}).status_code == 403
    browser.headers["authorization"] = f"Bearer {token.key().decode()}"
    assert not may_act(browser)
    browser.headers["origin"] = str(browser.base_url).rstrip("/")
    assert may_act(browser)


def test_every_answer_is_guarded(browser: httpx.Client, token: Token) -> None:
    """Nothing from elsewhere, no script of the page's own text, no frame of others, kept by no cache."""
    seen = [browser.get("/"), browser.get("/enter/nothing"), browser.get("/api/runs"), browser.get("/nothing")]
    browser.get(code_of(token))
    paths = [endpoint.path for endpoint in endpoints() if endpoint.method == "GET"]
    seen += [browser.get(path.replace("{run}", "last").replace("{name}", "theme.js")) for path in paths]
    assert {answer.status_code for answer in seen} >= {200, 401, 404}
    for answer in seen:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy, answer.url
        assert "unsafe-eval" not in policy
        assert "script-src 'self' 'unsafe-inline'" not in policy
        assert "sandbox" in policy or "'unsafe-inline'" not in policy.partition("script-src")[2].partition(";")[0]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers.get("cache-control") in {"no-store", "no-cache", "private, no-cache"}, answer.url


def test_no_answer_contains_the_token(
    browser: httpx.Client, run: Path, token: Token, caplog: pytest.LogCaptureFixture
) -> None:
    """It is in no body, no header, no log and no file but its own, whatever is asked; neither is a code."""
    secret, link = token.key().decode(), code_of(token)
    with caplog.at_level(logging.DEBUG):
        answers = [browser.get(link), browser.post("/enter", data={"token": secret})]
        for endpoint in endpoints():
            path = endpoint.path.replace("{run}", "last").replace("{name}", "theme.js")
            answers.append(browser.request(endpoint.method, path, json={} if endpoint.method == "POST" else None))
            answers.append(browser.get(path, headers={"authorization": f"Bearer {secret}"}))
    for answer in answers:
        sent = answer.content + b"\n".join(b"%b: %b" % pair for pair in answer.headers.raw)
        assert secret.encode() not in sent, answer.url
        assert link.rpartition("/")[2].encode() not in sent, answer.url
    server = [record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    assert not [line for line in server if secret in line or link in line]
    assert token.file is not None
    assert [file.name for file in run.iterdir() if secret.encode() in file.read_bytes()] == [token.file.name]


def test_open_prints_a_link_that_works(
    served: ServedRun, tmp_path: Path, soakwatch: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """One that may act, once; one that may only view, as often as it is asked for."""
    assert served.url
    links = [soakwatch("open", "last", "--print", *more).stdout.strip() for more in ((), ("--view-only",))]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/enter/[\w.-]+", links[0])
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/view/[\w-]+", links[1])
    for link, acts in zip(links, (True, False), strict=True):
        with httpx.Client(headers=HTML, trust_env=False, verify=False, follow_redirects=False, timeout=240) as fresh:
            assert fresh.get(link).status_code == 303
            fresh.base_url = httpx.URL(served.url)
            assert may_view(fresh)
            assert may_act(fresh) is acts


@pytest.mark.parametrize(
    ("path", "kind", "status"),
    [
        ("/api/runs/last/events", b"application/json", 401),
        ("/api/health", b"application/json", 405),
        ("/enter", b"text/plain", 415),
    ],
)
def test_a_refusal_comes_behind_the_body(run: Path, path: str, kind: bytes, status: int) -> None:
    """Else it would be lost with the connection, which is closed while the body still comes."""
    happened: list[str] = []
    parts = [b" " * 1000] * 5

    async def receive() -> dict[str, object]:
        happened.append("part")
        return {"type": "http.request", "body": parts.pop(), "more_body": bool(parts)}

    async def send(message: MutableMapping[str, object]) -> None:
        happened.append(str(message.get("status", "end")))

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "query_string": b"",
        "root_path": "",
        "raw_path": path.encode(),
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "headers": [(b"host", b"127.0.0.1:2"), (b"content-type", kind), (b"content-length", b"5000")],
    }
    with ThreadPoolExecutor(1) as pool:
        door, names = Authenticator(Token("a-token-that-is-long-enough"), 2), Names(frozenset(), every_address=False)
        application = Answers(OneRun(run, time.time_ns), door, pool).application(endpoints(), names)

        async def ask() -> None:
            await application(scope, receive, send)

        asyncio.run(ask())
    assert happened == ["part"] * 5 + [str(status), "end"]


PIECES = (
    "api",
    "runs",
    "last",
    "run",
    "series",
    "data",
    "data.csv",
    "events",
    "findings",
    "state",
    "verdict",
    "report",
    "artifacts",
    "file",
    "health",
    "metrics",
    "static",
    "theme.js",
    "uplot.js",
    "enter",
    "view",
    "compare",
    "..",
    "%2e%2e",
    ".",
    "",
    "%00",
    "%2f",
    "%ff",
    "%f0%9f%92%a9",
    "web.token",
    "record.sqlite",
    "{run}",
    "<script>",
    "a" * 3000,
    "%",
    "%zz",
    "current",
    "openapi.json",
    "__pycache__",
    "__init__.py",
    ";",
    "~",
    "\\",
    "%5c..%5c",
    "plots",
    "stop",
)
WORDS = (
    "",
    "0",
    "-1",
    "1e9",
    "99999999999999999999",
    "NaN",
    "null",
    "[]",
    '["dut","system.uptime",""]',
    "dut",
    "last",
    "..",
    "system.uptime",
    "%00",
    "%ff",
    "☃",
    "<b>",
    "2026-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z",
    "now",
    "'; --",
    "a" * 2000,
    "run",
    "true",
    "[" * 500,
    '{"a":1}',
    "-9223372036854775808",
    "１２",
    "²",
)


@pytest.mark.parametrize("seed", range(3))
def test_seeded_questions_are_answered_and_never_a_defect(
    served: ServedRun, token: Token, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Paths and words of every kind, by someone who may do everything: below 500, and one sentence if refused."""
    rng = random.Random(seed)
    names = sorted(
        {param.name for endpoint in endpoints() for param in endpoint.params} - {"confirm"} | {"nothing", "a[]"}
    )
    known = [endpoint.path for endpoint in endpoints()]
    port = urlsplit(served.url).port
    assert port is not None
    statuses = set()
    for _ in range(500):
        if rng.random() < 0.5:
            path = rng.choice(known).replace("{run}", rng.choice(["last", "run", "no", ".."]))
            path = path.replace("{name}", rng.choice(["theme.js", "..", "%2e%2e%2fapp.py"]))
        else:
            path = "/" + "/".join(rng.choice(PIECES) for _ in range(rng.randrange(6)))
        query = "&".join(f"{rng.choice(names)}={rng.choice(WORDS)}" for _ in range(rng.randrange(4)))
        method = rng.choice(["GET", "GET", "GET", "HEAD", "POST", "DELETE", "PUT", "OPTIONS", "PATCH", "get"])
        host = rng.choice(
            ["127.0.0.1", "127.0.0.1", "[", "[::1", "a b", "", "\x7f", "é", ":::", "%", "evil.example:99999"]
        )
        body = rng.choice([b"", b"{}", b"[]", b"\xff", b'{"series": [[]]}', b'{"kind": 5}', b'{"reason": ["a"]}'])
        head = [
            f"{method} {path}{'?' + query if query else ''} HTTP/1.1",
            f"Host: {host}",
            "Connection: close",
            f"Authorization: Bearer {token.key().decode()}",
            f"Content-Length: {len(body)}",
            f"Content-Type: {rng.choice(['application/json', 'text/plain', ';', 'application/json; charset=utf-7'])}",
            f"Accept: {rng.choice(['*/*', 'text/html', ''])}",
            f"If-None-Match: {rng.choice(['*', 'x'])}",
        ]
        if rng.random() < 0.3:
            head.append(f"Origin: {rng.choice(['null', 'http://[', 'http://127.0.0.1', 'é'])}")
        received = asked(port, "\r\n".join(head).encode("utf-8") + b"\r\n\r\n" + body)
        status, _, rest = received.partition(b"\r\n")
        code = int(status.split()[1]) if status else 0
        statuses.add(code)
        assert code < 500 or code == 503, (head, received[:500])
        assert b"Traceback" not in received, head
        if code >= 400 and b"application/json" in rest.partition(b"\r\n\r\n")[0] and method != "HEAD":
            assert set(json.loads(rest.partition(b"\r\n\r\n")[2])) == {"error"}, head
    assert {200, 404} <= statuses
    assert not [record for record in caplog.records if "defect" in record.getMessage()]


def asked(port: int, question: bytes) -> bytes:
    """All that a server answers to some bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as talk:
        talk.sendall(question)
        received = b""
        while part := talk.recv(65536):
            received += part
    return received
