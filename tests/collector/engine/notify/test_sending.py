"""Sending to real receivers on the loopback: what arrives, what is said of what does not, and no secret in it.

Slack, Teams and Telegram cannot be pointed to the loopback: of them the addresses are tested (test_plan_notify.py).
"""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.collector.engine.notify.notify_kit import HANGING, PASSWORD, USER, HangingSender, Mails, mails, posts
from tests.commands import MAX_WAIT_S

from soakwatch.engine.notify.message import MAX_ATTACHED_BYTES, Message
from soakwatch.engine.notify.sending import GIVEN_UP, Sender, Sent
from soakwatch_testing.ports import free_port

FAST = (0.05,)
LETTER = Message(
    "end", "FAIL night: dut failed hang", "FAIL: dut failed hang\n- <b> & ünïcode", "failure", "## summary"
)


def send(
    address: str, monkeypatch: pytest.MonkeyPatch, message: Message = LETTER, deadline_s: float = MAX_WAIT_S
) -> Sent:
    """Send one message with short pauses."""
    monkeypatch.setenv("SOAK_TO", address)
    sent = Sender("env:SOAK_TO", deadline_s, FAST).send(message)
    assert PASSWORD not in sent.answer.trouble
    assert "T0K3N" not in sent.answer.trouble
    return sent


def report(folder: Path, size: int = 1000) -> Path:
    """A report of some size."""
    file = folder / "report.html"
    file.write_bytes(b"<!doctype html>".ljust(size, b" "))
    return file


def test_a_webhook_gets_title_text_and_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """JSON with the file in it; the summary is only for who takes no file."""
    file = report(tmp_path)
    with posts() as server:
        message = Message(LETTER.kind, LETTER.title, LETTER.body, LETTER.tone, LETTER.summary, file)
        sent = send(f"json://{USER}:{PASSWORD}@127.0.0.1:{server.port}/T0K3N", monkeypatch, message)
    assert (sent.well, sent.tries, sent.answer.service, sent.answer.attached) == (True, 1, "json", True)
    body = json.loads(server.bodies[0])
    assert (body["title"], body["message"], body["type"]) == (LETTER.title, LETTER.body, "failure")
    (attached,) = body["attachments"]
    assert (attached["filename"], attached["mimetype"]) == ("report.html", "text/html")
    assert base64.b64decode(attached["base64"]) == file.read_bytes()


@pytest.mark.usefixtures("sent_here")
def test_a_report_that_is_too_large_or_not_there_is_a_summary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ten megabytes are the limit."""
    large = tmp_path / "large.html"
    with large.open("wb") as out:
        out.truncate(MAX_ATTACHED_BYTES)
    with posts() as server:
        for file in (large, tmp_path / "nowhere.html"):
            message = Message("end", "t", "b", "failure", "## summary", file)
            sent = send(f"json://127.0.0.1:{server.port}", monkeypatch, message)
            assert (sent.well, sent.answer.attached) == (True, False)
    for body in server.bodies:
        payload = json.loads(body)
        assert (payload["message"], payload["attachments"]) == ("b\n\n## summary", [])


@pytest.mark.usefixtures("sent_here")
def test_xml(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in the text is text."""
    with posts() as server:
        sent = send(f"xml://127.0.0.1:{server.port}/T0K3N", monkeypatch)
    assert sent.well
    text = server.bodies[0].decode()
    assert "FAIL night: dut failed hang" in text
    assert "<b>" not in text


@pytest.mark.usefixtures("sent_here")
def test_a_summary_that_does_not_fit_is_cut_at_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A webhook takes 32768 characters."""
    summary = "\n".join(f"- line {n} {'x' * 90}" for n in range(1000))
    with posts() as server:
        sent = send(f"json://127.0.0.1:{server.port}", monkeypatch, Message("end", "t", "b", "info", summary))
    assert sent.well
    body = json.loads(server.bodies[0])["message"].splitlines()
    assert 250 < len(body) < 340
    assert body[-1] == "… the rest is in the report."
    assert body[-2].endswith("x" * 90)


@pytest.mark.usefixtures("sent_here")
def test_a_receiver_that_has_a_bad_moment_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tries here, three in a run; a refusal of the token is not tried again."""
    with posts() as server:
        server.statuses = [503, 200]
        sent = send(f"json://127.0.0.1:{server.port}/T0K3N", monkeypatch)
        assert (sent.well, sent.tries) == (True, 2)
        server.statuses = [500]
        sent = send(f"json://127.0.0.1:{server.port}/T0K3N", monkeypatch)
        assert (sent.answer.trouble, sent.tries) == ("it answers with the status 500", 2)
        server.statuses = [403]
        sent = send(f"json://127.0.0.1:{server.port}/T0K3N", monkeypatch)
        assert (sent.answer.trouble, sent.tries) == (
            "it refuses the token or login of its address (status 403)",
            1,
        )


@pytest.mark.slow
def test_a_receiver_that_is_down_or_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens; and one that takes the message and never answers, longer than Apprise and we wait."""
    sent = send(f"json://127.0.0.1:{free_port()}/T0K3N", monkeypatch)
    assert (sent.answer.trouble, sent.tries) == ("the connection was refused", 2)
    with posts() as server:
        server.free.clear()
        sent = send(f"json://127.0.0.1:{server.port}/T0K3N?rto=90", monkeypatch, deadline_s=2.0)
        assert (sent.answer.trouble, sent.tries) == ("it did not answer within 2 s", 2)
        sent = send(f"json://127.0.0.1:{server.port}/T0K3N?rto=0.3", monkeypatch)
        assert (sent.answer.trouble, sent.tries) == ("it did not answer in time", 2)


def test_what_is_being_sent_can_be_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the receiver hangs; nothing is tried again, and nothing new is begun."""
    with posts() as server:
        server.free.clear()
        monkeypatch.setenv("SOAK_TO", f"json://127.0.0.1:{server.port}/?rto=90")
        sender, outcome = Sender("env:SOAK_TO", 60.0, (60.0,)), []
        thread = threading.Thread(target=lambda: outcome.append(sender.send(LETTER)))
        thread.start()
        server.wait_for(1)
        sender.give_up()
        thread.join()
    assert [(sent_one.answer.trouble, sent_one.tries) for sent_one in outcome] == [(GIVEN_UP, 1)]
    again = sender.send(LETTER)
    assert (again.answer.trouble, again.tries) == (GIVEN_UP, 0)


def test_what_is_given_up_says_what_was_wrong_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken off in its second try: why the first one failed is what its owner can mend."""
    monkeypatch.setattr("soakwatch.engine.notify.sending.Child", HangingSender)
    monkeypatch.setattr(HangingSender, "late", 1)
    sender, outcome = Sender("env:SOAK_TO", 3.0, (0.05, 60.0)), []
    thread = threading.Thread(target=lambda: outcome.append(sender.send(LETTER)))
    thread.start()
    assert all(HANGING.acquire(timeout=MAX_WAIT_S) for _ in range(2))
    sender.give_up()
    thread.join()
    assert [(sent_one.answer.trouble, sent_one.tries) for sent_one in outcome] == [("it did not answer within 3 s", 2)]


@pytest.mark.usefixtures("sent_here")
def test_an_email_with_the_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From a server that wants a login, to two people; hostile text is text in HTML, too."""
    file = report(tmp_path)
    message = Message("end", "FAIL night: dut", "FAIL: <script>alert(1)</script>", "failure", "## s", file)
    with mails() as server:
        sent = send(server.address(to="team@lab.example,lead@lab.example"), monkeypatch, message)
    assert (sent.well, sent.answer.service, sent.answer.attached) == (True, "mailto", True)
    assert sorted(server.recipients) == ["lead@lab.example", "team@lab.example"]
    mail = server.taken[0]
    assert mail["subject"] == "FAIL night: dut"
    parts = {part.get_content_type(): part for part in mail.walk() if not part.is_multipart()}
    names = [part.get_filename() for part in mail.walk() if part.get_filename()]
    assert names == ["report.html"]
    pages = [
        part.get_payload(decode=True)
        for part in mail.walk()
        if part.get_content_type() == "text/html" and not part.get_filename()
    ]
    assert parts
    assert all(isinstance(page, bytes) and b"<script>" not in page for page in pages)


@pytest.mark.usefixtures("sent_here")
@pytest.mark.parametrize(
    ("server", "address", "trouble", "tries"),
    [
        (mails, lambda s: s.address().replace(PASSWORD, f"not-{PASSWORD}"), "it refuses the login (SMTP 535)", 1),
        (mails, lambda s: s.address(mode="starttls"), "it offers no STARTTLS, and its address asks for it", 1),
        (lambda: mails(login=False), lambda s: s.address(), "it offers no login, and its address has one", 1),
        (
            mails,
            lambda s: s.address(mode="ssl").replace("mailto:", "mailtos:"),
            "it does not speak TLS on that port",
            1,
        ),
        (lambda: mails(refuses="554"), lambda s: s.address(), "it refuses the message (SMTP 554)", 1),
        (lambda: mails(refuses="451"), lambda s: s.address(), "it refuses the message (SMTP 451)", 2),
    ],
    ids=["login", "starttls", "no-login", "no-tls", "refused", "later"],
)
def test_what_a_mail_server_refuses(
    server: Callable[[], object],
    address: Callable[[Mails], str],
    trouble: str,
    tries: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A sentence of our own: what the server says may repeat the password."""
    context = server()
    with context as body:  # type: ignore[attr-defined]
        sent = send(address(body), monkeypatch)
    assert (sent.answer.trouble, sent.tries) == (trouble, tries)
    assert not body.taken


def test_a_secret_that_is_gone_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is looked up for each message: a file may be exchanged while the run goes on."""
    file = tmp_path / "url"
    sender = Sender(f"file:{file}", 20.0, FAST)
    assert sender.send(LETTER).answer.trouble == f"the secret file {file} cannot be read: No such file or directory"
    with posts() as server:
        file.write_text(f"json://127.0.0.1:{server.port}\n")
        assert sender.send(LETTER).well
    monkeypatch.setattr("sys.executable", str(tmp_path / "no-python"))
    assert "no process can be started to send it" in sender.send(LETTER).answer.trouble
    assert os.environ.get("SOAK_TO") is None
