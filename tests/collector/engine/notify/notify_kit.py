"""What the tests of notifications share: receivers on the loopback that speak real protocols, findings, messages."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from tests.commands import MAX_WAIT_S

from soakwatch.engine.notify import __main__ as sending_process
from soakwatch.judge.verdict import Verdict
from soakwatch.plan import Plan, plan_from_text
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.window import Window

T0 = 1_700_000_000 * 10**9
USER, PASSWORD = "soak", "hunter2-hunter2"


@dataclass
class Posts:
    """An HTTP server: what was posted to it, and the statuses that it answers with, one after the other (the last one
    for all that follow). It answers nothing while ``held`` is clear."""

    port: int
    statuses: list[int] = field(default_factory=lambda: [200])
    bodies: list[bytes] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    came: threading.Condition = field(default_factory=threading.Condition)
    free: threading.Event = field(default_factory=threading.Event)

    def wait_for(self, number: int) -> None:
        """Until so many were posted."""
        with self.came:
            assert self.came.wait_for(lambda: len(self.bodies) >= number, MAX_WAIT_S)


@contextmanager
def posts() -> Iterator[Posts]:
    """A real HTTP server, for as long as the block lasts."""

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            with server_double.came:
                server_double.bodies.append(body)
                server_double.paths.append(self.path)
                status = server_double.statuses.pop(0) if len(server_double.statuses) > 1 else server_double.statuses[0]
                server_double.came.notify_all()
            server_double.free.wait(100)
            self.close_connection = True
            try:
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()
            except OSError:
                return  # whoever asked is gone

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Taking) as server:
        server_double = Posts(server.server_address[1])
        server_double.free.set()
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server_double
        finally:
            server_double.free.set()
            server.shutdown()
            thread.join()


@dataclass
class Mails:
    """A mail server: what it took."""

    port: int = 0
    taken: list[Message] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)

    def address(self, **more: str) -> str:
        """An Apprise URL of it, with a login."""
        server_double = {"from": "soak@lab.example", "to": "team@lab.example", "mode": "insecure", **more}
        query = "&".join(f"{key}={value}" for key, value in server_double.items())
        return f"mailto://{USER}:{PASSWORD}@127.0.0.1:{self.port}?{query}"


@contextmanager
def mails(*, login: bool = True, refuses: str = "") -> Iterator[Mails]:
    """A real SMTP server without TLS; it may take no login, or refuse every message with a status."""
    server_double = Mails()

    class Taking:
        async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
            if refuses:
                return f"{refuses} not from {PASSWORD}"
            assert isinstance(envelope.content, bytes)
            server_double.taken.append(message_from_bytes(envelope.content, policy=default))
            server_double.recipients += envelope.rcpt_tos
            return "250 OK"

    def known(_server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, data: object) -> AuthResult:
        assert isinstance(data, LoginPassword)
        return AuthResult(success=data.password == PASSWORD.encode(), handled=False)

    class OnAnyPort(Controller):
        def _trigger_server(self) -> None:
            assert isinstance(self.server, asyncio.Server)
            self.port = server_double.port = self.server.sockets[0].getsockname()[1]
            super()._trigger_server()  # type: ignore[no-untyped-call]

    more = (
        {"authenticator": known, "auth_require_tls": False} if login else {"auth_exclude_mechanism": ["LOGIN", "PLAIN"]}
    )
    controller = OnAnyPort(Taking(), hostname="127.0.0.1", port=0, **more)
    controller.start()
    try:
        yield server_double
    finally:
        controller.stop()


ONE_AT_A_TIME = threading.Lock()


class SenderHere:
    """The process that sends, as a call: it answers the same lines and has no deadline."""

    exit_code = 0

    def __init__(self, _: tuple[str, ...]) -> None:
        """Its command is not needed."""

    def exchange(self, text: str, _deadline_s: float) -> str:
        """The answer to an order; one at a time, for the process has its log of Apprise to itself."""
        with ONE_AT_A_TIME:
            return sending_process._answer(text).line() + "\n"

    def kill(self) -> None:
        """It cannot be broken off."""


class HangingSender(SenderHere):
    """The same that never answers, until it is killed; the first so many run out of time at once."""

    late = 0

    def __init__(self, command: tuple[str, ...]) -> None:
        super().__init__(command)
        self._killed = threading.Event()

    def exchange(self, text: str, _deadline_s: float) -> str:
        """Nothing."""
        HANGING.release()
        if type(self).late:
            type(self).late -= 1
            raise TimeoutError
        self._killed.wait(MAX_WAIT_S)
        return ""

    def kill(self) -> None:
        """It ends without an answer."""
        self._killed.set()


HANGING = threading.Semaphore(0)
"""Released by each ``HangingSender`` that is asked."""


def finding(
    rule: str = "memory_growth", object_: str = "process=bgpd", outcome: Outcome = Outcome.FAIL, at_s: float = 60.0
) -> Finding:
    """A finding whose window ends some seconds after ``T0``."""
    return Finding(
        rule,
        3,
        outcome,
        "dut",
        "process.memory.usage",
        object_,
        Window(T0, T0 + round(at_s * 1e9)),
        "grows by more than 1 MiB/h",
        f"{object_} grows by 3 MiB/h",
        7,
        expected=10,
        measured=3.0 * 2**20,
        limit=2.0**20,
        interval=(2.0 * 2**20, 4.0 * 2**20),
        unit="By/h",
        doubts=("the load was not steady",),
    )


def verdict(outcome: Outcome = Outcome.FAIL, *findings: Finding) -> Verdict:
    """A verdict of an hour."""
    reason = "dut failed memory_growth" if outcome is Outcome.FAIL else "dut: no rule failed"
    return Verdict("night", outcome, reason, Window(T0, T0 + 3600 * 10**9), (), findings, (), ())


def plan(text: str) -> Plan:
    """A plan of an hour with these sections."""
    return plan_from_text(f"name: night\nduration: 1h\ntargets: {{dut: {{sources: [local]}}}}\n{text}", "p.yaml")
