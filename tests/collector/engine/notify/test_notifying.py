"""The notifications of a run by themselves: who hears what, what the record keeps, and that the end does not wait
for long."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.collector.engine.notify.notify_kit import HANGING, T0, HangingSender, Posts, finding, plan, posts, verdict
from tests.commands import MAX_WAIT_S

from soakwatch.engine.notify.notifying import SETTLED_NS, Notifying
from soakwatch.engine.notify.policy import FAILED, PAUSE_NS, SENT
from soakwatch.engine.notify.sending import GIVEN_UP
from soakwatch.engine.notify.setup import page_of
from soakwatch_model.event import Event
from soakwatch_model.finding import Outcome
from soakwatch_testing.ports import free_port

HOUR = 3600 * 10**9


class Clock:
    """A clock that is set."""

    now_ns = T0

    def __call__(self) -> int:
        return self.now_ns


def notifying_of(text: str, folder: Path, clock: Clock, reported: Sequence[Event] = ()) -> Notifying:
    """The notifications of a plan with this section."""
    return Notifying(plan(f"notify: {text}"), folder, T0, clock, lambda: "", reported)


def titles(server: Posts) -> list[str]:
    """Of what was posted so far."""
    return [str(json.loads(body)["title"]) for body in server.bodies]


@pytest.mark.usefixtures("sent_here")
def test_each_recipient_hears_what_it_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All three, only failures, only the end; the record has the account of all of them."""
    clock = Clock()
    (tmp_path / "report.html").write_text("<!doctype html>")
    (tmp_path / "report.md").write_text("## summary")
    with posts() as everything, posts() as failures, posts() as end:
        for name, server in (("ALL", everything), ("BAD", failures), ("END", end)):
            monkeypatch.setenv(name, f"json://127.0.0.1:{server.port}")
        notifying = notifying_of(
            "[{to: env:ALL, on: [start, failure, end]}, {to: env:BAD, on: failure},"
            " {to: env:END, on: end, attach: summary}]",
            tmp_path,
            clock,
        )
        notifying.start(T0 + HOUR)
        assert notifying.account() == []
        clock.now_ns += SETTLED_NS
        assert notifying.account() == []
        everything.wait_for(1)
        notifying.on_findings([finding(outcome=Outcome.WARN)])
        notifying.on_findings([finding()])
        everything.wait_for(2)
        failures.wait_for(1)
        notifying.conclude(verdict(Outcome.FAIL, finding()), tmp_path / "report.html", tmp_path / "report.md")
        notifying.finish()
        assert not notifying.busy
        accounts = [(event.kind, event.detail["number"], event.detail["what"]) for event in notifying.account()]
        assert notifying.account() == []
    assert titles(everything) == [
        "Started night: 1 h on dut",
        "Failing night: dut memory_growth",
        "FAIL night: dut failed memory_growth",
    ]
    assert titles(failures) == ["Failing night: dut memory_growth"]
    assert titles(end) == ["FAIL night: dut failed memory_growth"]
    assert [len(json.loads(body)["attachments"]) for body in everything.bodies] == [0, 0, 1]
    assert json.loads(end.bodies[0])["message"].endswith("\n\n## summary")
    assert sorted(accounts) == sorted(
        [(SENT, "1", "start"), (SENT, "1", "failure"), (SENT, "1", "end"), (SENT, "2", "failure"), (SENT, "3", "end")]
    )


@pytest.mark.usefixtures("sent_here")
def test_a_failure_found_only_at_the_end_is_sent_to_recipients_of_failures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A run that is shorter than the interval of live evaluations."""
    with posts() as server:
        monkeypatch.setenv("BAD", f"json://127.0.0.1:{server.port}")
        notifying = notifying_of("[{to: env:BAD, on: failure}]", tmp_path, Clock())
        notifying.conclude(verdict(Outcome.FAIL, finding()), tmp_path / "none", tmp_path / "none")
        notifying.finish()
        assert len(notifying.account()) == 1
    assert titles(server) == ["FAIL night: dut memory_growth"]


@pytest.mark.usefixtures("sent_here")
def test_after_a_crash_nothing_is_sent_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What was sent before the crash is in the events: after it neither start nor first failure is sent again."""
    clock = Clock()
    with posts() as server:
        monkeypatch.setenv("ALL", f"json://127.0.0.1:{server.port}")
        text = "[{to: env:ALL, on: [start, failure, end], attach: none}]"
        first = notifying_of(text, tmp_path, clock)
        first.start(T0 + HOUR)
        clock.now_ns += SETTLED_NS
        first.account()
        first.on_findings([finding()])
        first.finish()
        reported = first.account()
        assert [event.detail["what"] for event in reported] == ["start", "failure"]
        clock.now_ns += 60 * 10**9
        second = notifying_of(text, tmp_path, clock, reported)
        second.start(T0 + HOUR)
        clock.now_ns += SETTLED_NS
        second.on_findings([finding()])
        second.account()
        clock.now_ns += PAUSE_NS
        second.on_findings([finding()])
        second.conclude(verdict(Outcome.FAIL, finding()), tmp_path / "none", tmp_path / "none")
        second.finish()
        assert [event.detail["what"] for event in second.account()] == ["end"]
    assert len(server.bodies) == 3


@pytest.mark.usefixtures("sent_here")
def test_one_recipient_that_is_down_is_reported_once_and_delays_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The record says why; nothing holds the address; a recipient that missed the failure gets it later."""
    clock = Clock()
    monkeypatch.setenv("DOWN", f"json://soak:hunter2hunter2@127.0.0.1:{free_port()}/T0K3N")
    with posts() as server, caplog.at_level(logging.DEBUG):
        monkeypatch.setenv("UP", f"json://127.0.0.1:{server.port}")
        notifying = notifying_of("[{to: env:DOWN, on: failure}, {to: env:UP, on: failure}]", tmp_path, clock)
        notifying.on_findings([finding()])
        server.wait_for(1)
        notifying.finish(4.0)
        events = notifying.account()
    by_kind = {event.kind: event for event in events}
    assert set(by_kind) == {SENT, FAILED}
    assert by_kind[FAILED].detail["to"] == "env:DOWN"
    reported = by_kind[FAILED].detail["service"], by_kind[FAILED].detail["reason"]
    # Which service it is only the process knows that sends; a slow machine gives it up before it could say so.
    assert reported in {("json", "the connection was refused"), ("json", GIVEN_UP), ("", GIVEN_UP)}
    complaints = [record.getMessage() for record in caplog.records if record.name == "soakwatch"]
    assert len(complaints) == 1
    assert complaints[0].startswith("notify env:DOWN: ")
    assert "the message of the first failure: " in complaints[0]
    everything = repr(events) + caplog.text
    assert "hunter2" not in everything
    assert "T0K3N" not in everything


def test_a_hanging_recipient_is_given_up_at_the_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What waits behind it as well; each is noted in the record, and nothing of it goes on."""
    monkeypatch.setattr("soakwatch.engine.notify.sending.Child", HangingSender)
    monkeypatch.setenv("SLOW", "json://127.0.0.1:9")
    notifying = notifying_of("[{to: env:SLOW, attach: none}]", tmp_path, Clock())
    notifying.on_findings([finding()])
    assert HANGING.acquire(timeout=MAX_WAIT_S)
    notifying.broke("the disk is full")
    assert notifying.busy
    notifying.finish(0.1)
    assert not notifying.busy
    events = notifying.account()
    assert {(event.kind, event.detail["what"]) for event in events} == {(FAILED, "end"), (FAILED, "failure")}
    assert {event.detail["reason"] for event in events} == {GIVEN_UP}
    assert not HANGING.acquire(blocking=False), "it was asked once"


def test_a_run_that_tells_nobody_starts_nothing(tmp_path: Path) -> None:
    """No thread, no process, no word."""
    notifying = notifying_of("[]", tmp_path, Clock())
    notifying.start(T0 + HOUR)
    notifying.on_findings([finding()])
    notifying.conclude(verdict(), tmp_path / "none", tmp_path / "none")
    notifying.finish()
    assert notifying.account() == []
    assert not notifying.busy


def test_the_page_is_named_without_a_word_that_lets_in(tmp_path: Path) -> None:
    """That of the run while it is served, else that of its folder; none where nobody serves it."""
    run = tmp_path / "20261121T200000Z-night"
    run.mkdir()
    assert page_of(run) == ""
    (tmp_path / "web.url").write_text("https://lab.example:8720\n")
    assert page_of(run) == "https://lab.example:8720/runs/20261121T200000Z-night/"
    (run / "web.url").write_text("http://127.0.0.1:8721\n")
    assert page_of(run) == "http://127.0.0.1:8721/runs/20261121T200000Z-night/"
