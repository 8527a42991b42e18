"""A script that is attached to a run: by its folder, and by the URL of a server."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from soakwatch.api import attach, mark
from soakwatch.core.errors import PlanError, RecordError, SoakwatchError
from soakwatch.plan.web import WebPlan
from soakwatch.record import Record
from soakwatch.runs.attached import InterimVerdict, LocalRun, SoakRun
from soakwatch.runs.mark_event import EventConflictError, EventRefusedError
from soakwatch.sources.pollers.agent.certificate import write_certificate
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Mark, Outcome
from soakwatch_model.window import Window
from soakwatch_testing.served import ServedRun, serve_run

SECOND = 10**9
INSIDE = (Mark(15 * SECOND, None, ""),)
Events = Callable[[Path], list[Event]]
Recorded = Callable[..., Path]


@pytest.fixture(params=["folder", "url"])
def attached(request: pytest.FixtureRequest, run: Path, served: ServedRun, monkeypatch: pytest.MonkeyPatch) -> SoakRun:
    """The same run, reached both ways."""
    if request.param == "folder":
        return attach(run)
    monkeypatch.setenv("SOAK_TOKEN", (run / "web.token").read_text().strip())
    return attach(served.url, token="env:SOAK_TOKEN")


def test_a_block_is_an_event(attached: SoakRun, run: Path, events_of: Events) -> None:
    """It begins with the block and ends with it; labels that are learnt within it are kept."""
    expect = {"reboot": 1}
    with attached.event("failover", target="dut", expect=expect, within="5m", labels={"ticket": "1"}) as event:
        (begun,) = events_of(run)
        assert begun.end_ns is None
        assert begun.deadline_ns == begun.begin_ns + 300 * SECOND
        event.labels["winner"] = "unit-2"
    (over,) = events_of(run)
    assert over.end_ns is not None
    assert over.end_ns > over.begin_ns
    assert (over.detail, over.expect, over.target) == ({"ticket": "1", "winner": "unit-2"}, expect, "dut")
    assert [stored.id for stored in attached.reported] == [1]
    assert event.stored is not None
    assert event.stored.event.end_ns is not None


def test_a_block_that_raises_ends_all_the_same(attached: SoakRun, run: Path, events_of: Events) -> None:
    """The label tells the type, never the text, and the exception goes on."""
    with pytest.raises(KeyError), mark(attached, "upgrade"):
        raise KeyError("password")
    (event,) = events_of(run)
    assert event.end_ns is not None
    assert event.detail == {"error": "KeyError"}


def test_moments_begins_and_ends(attached: SoakRun, run: Path, events_of: Events) -> None:
    """What is no block is reported as well."""
    attached.mark("config", labels={"ticket": "7"})
    attached.begin("upgrade", expect={"reboot": 1}, within=90)
    attached.end("upgrade")
    with pytest.raises(EventConflictError, match="no open event 'upgrade'"):
        attached.end("upgrade")
    with pytest.raises(EventRefusedError, match="no target 'moon'"):
        attached.begin("upgrade", target="moon")
    with pytest.raises(EventRefusedError, match="is not ISO 8601"):
        attached.mark("config", at="soon")
    with pytest.raises(EventRefusedError, match="within"):
        attached.begin("reload", within="5 parsecs")
    config, upgrade = events_of(run)
    assert (config.kind, config.detail) == ("config", {"ticket": "7"})
    assert upgrade.deadline_ns == upgrade.begin_ns + 90 * SECOND


def test_two_blocks_of_one_kind_do_not_nest(attached: SoakRun, run: Path, events_of: Events) -> None:
    """The inner one is refused, and the outer one ends."""
    with pytest.raises(EventConflictError, match="still open"), attached.event("failover"), attached.event("failover"):
        raise AssertionError("never begun")
    (event,) = events_of(run)
    assert event.detail == {"error": "EventConflictError"}


def test_the_verdict_of_a_stretch(recorded: Recorded) -> None:
    """A reboot within it fails it, wherever else it happened it does not; what was not polled is inconclusive."""
    run = attach(recorded("bad", reboot_s=300))
    interim = run.verdict()
    until_ns = interim.until_ns
    assert until_ns is not None
    assert interim.outcome is Outcome.FAIL
    reboot_ns = until_ns - 300 * SECOND
    during = interim.during(reboot_ns - 20 * SECOND, reboot_ns + 20 * SECOND)
    assert during.outcome is Outcome.FAIL
    assert "reboot" in during.reason
    assert interim.during(reboot_ns + 60 * SECOND, reboot_ns + 90 * SECOND).outcome is not Outcome.FAIL
    later = interim.during(until_ns - SECOND, until_ns + 60 * SECOND)
    assert (later.outcome, later.reason) == (Outcome.INCONCLUSIVE, "the record does not reach its end yet")
    well = attach(recorded("good")).verdict()
    assert well.until_ns is not None
    assert well.during(well.until_ns - 90 * SECOND, well.until_ns - 60 * SECOND).outcome is Outcome.PASS


def finding(
    outcome: Outcome, rule: str = "reboot", marks: tuple[Mark, ...] = (), window: Window | None = None
) -> Finding:
    """A finding over 0 to 100 s."""
    return Finding(rule, 1, outcome, "dut", "", "", window or Window(0, 100 * SECOND), "d.", "because.", 9, marks=marks)


@pytest.mark.parametrize(
    ("findings", "outcome"),
    [
        ([], Outcome.INCONCLUSIVE),
        ([finding(Outcome.PASS)], Outcome.PASS),
        ([finding(Outcome.PASS, "coverage")], Outcome.INCONCLUSIVE),
        ([finding(Outcome.PASS, window=Window(0, 15 * SECOND))], Outcome.INCONCLUSIVE),
        ([finding(Outcome.PASS), finding(Outcome.INCONCLUSIVE)], Outcome.PASS),
        ([finding(Outcome.PASS), finding(Outcome.INCONCLUSIVE, marks=INSIDE)], Outcome.INCONCLUSIVE),
        ([finding(Outcome.PASS), finding(Outcome.FAIL)], Outcome.FAIL),
        ([finding(Outcome.PASS), finding(Outcome.FAIL, marks=INSIDE)], Outcome.FAIL),
        ([finding(Outcome.PASS), finding(Outcome.FAIL, marks=(Mark(5 * SECOND, None, ""),))], Outcome.PASS),
        ([finding(Outcome.PASS), finding(Outcome.FAIL, marks=(Mark(5 * SECOND, 11 * SECOND, ""),))], Outcome.FAIL),
        ([finding(Outcome.PASS), finding(Outcome.WARN, marks=INSIDE)], Outcome.WARN),
        ([finding(Outcome.NOT_APPLICABLE)], Outcome.INCONCLUSIVE),
    ],
)
def test_what_concerns_a_stretch(findings: list[Finding], outcome: Outcome) -> None:
    """10 s to 20 s of a run of 100 s."""
    interim = InterimVerdict(Outcome.INCONCLUSIVE, "", tuple(findings), 100 * SECOND)
    assert interim.during(10 * SECOND, 20 * SECOND).outcome is outcome


def test_findings_cross_the_wire(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server tells what its run said of itself: live while it goes on, and its verdict when it has one."""
    folder = recorded("judged", reboot_s=300)
    interim = attach(folder).verdict()
    with Record.open(folder) as record:
        record.put_findings(interim.findings, live=True, judged_ns=time.time_ns())
    with serve_run(WebPlan(listen="127.0.0.1:0"), folder, time.time_ns) as served:
        monkeypatch.setenv("SOAKWATCH_TOKEN", (folder / "web.token").read_text().strip())
        live = attach(f"{served.url}/api/runs/judged").verdict()
        assert live.findings == interim.findings
        assert live.outcome is Outcome.FAIL
        assert live.reason.startswith("reboot: ")
        with Record.open(folder) as record:
            record.put_findings(interim.findings, live=False, judged_ns=time.time_ns())
            record.set_meta("verdict", "fail")
            record.set_meta("reason", "it rebooted")
        final = attach(served.url).verdict()
    assert (final.outcome, final.reason, final.findings) == (Outcome.FAIL, "it rebooted", interim.findings)


def test_an_evaluation_waits_for_the_record(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What happened a moment ago is judged when the run has written it."""
    asked: list[int] = []

    def last_ns() -> int:
        asked.append(1)
        return len(asked)

    from soakwatch.runs import attached as module

    monkeypatch.setattr(module, "_CHECK_EVERY_S", 0.0)
    module.wait_until_recorded(last_ns, 3)
    assert len(asked) == 3
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    module.wait_until_recorded(last_ns, 10**6)
    assert len(asked) == 4
    assert LocalRun(run).name == "run"


def test_runs_that_are_not_there(tmp_path: Path, served: ServedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is one sentence with what to do."""
    monkeypatch.delenv("SOAKWATCH_TOKEN", raising=False)
    monkeypatch.setenv("WRONG", "nobody-knows-this-token")
    wrong: dict[str, tuple[str, str | None]] = {
        "is not a run": (str(tmp_path / "none"), None),
        "requires a token: export SOAKWATCH_TOKEN": (served.url, None),
        "must not be given in clear text": (served.url, "nobody-knows-this-token"),
        "rejects this token": (served.url, "env:WRONG"),
        "the environment variable MISSING is not set": (served.url, "env:MISSING"),
        "cross the network in clear text": ("http://192.0.2.1:8720", "env:WRONG"),
        "invalid address of a run": ("http://127.0.0.1:8720/somewhere", "env:WRONG"),
        "invalid address of a run ": ("http://user@127.0.0.1/", "env:WRONG"),
        "refuses": ("http://127.0.0.1:9", "env:WRONG"),
    }
    for sentence, (where, token) in wrong.items():
        with pytest.raises(SoakwatchError) as refused:
            attach(where, token=token)
        assert sentence.strip() in str(refused.value)
        assert "nobody-knows" not in str(refused.value)
    assert issubclass(RecordError, SoakwatchError)
    monkeypatch.setenv("SOAKWATCH_TOKEN", "ümlaut" * 4)
    with pytest.raises(PlanError, match="other than printable ASCII"):
        attach(served.url)


def test_over_tls(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events_of: Events) -> None:
    """With the certificate as authority it works; without it nothing is sent."""
    paper = write_certificate(tmp_path / "papers", "localhost")
    with serve_run(
        WebPlan(listen="127.0.0.1:0", token=None, cert=str(paper.cert), key=str(paper.key)), run, time.time_ns
    ) as served:
        monkeypatch.setenv("SOAKWATCH_TOKEN", (run / "web.token").read_text().strip())
        where = served.url.replace("127.0.0.1", "localhost")
        with pytest.raises(SoakwatchError, match="certificate that is not trusted"):
            attach(where)
        with attach(where, ca=str(paper.cert)).event("failover"):
            pass
    assert [event.kind for event in events_of(run)] == ["failover"]


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """A server of something else: always this answer."""

    class Talk(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the name is http.server's

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Talk) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (200, b"<html>", "not a Soakwatch server"),
        (200, b"[" * 9000, "not a Soakwatch server"),
        (500, b'{"error": "a defect"}', "a defect"),
        (404, b'{"error": "moon is no run here"}', "moon is no run here"),
    ],
)
def test_another_server(monkeypatch: pytest.MonkeyPatch, status: int, body: bytes, sentence: str) -> None:
    """What answers something else is reported, with its own sentence where it has one."""
    monkeypatch.setenv("SOAKWATCH_TOKEN", "x" * 20)
    with answering(status, body) as url, pytest.raises(SoakwatchError, match=sentence):
        attach(url)


def test_answers_that_are_not_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer without what belongs in it is one sentence, and no traceback."""
    monkeypatch.setenv("SOAKWATCH_TOKEN", "x" * 20)
    with answering(200, json.dumps({"run": "r", "findings": [{}], "id": None}).encode()) as url:
        run = attach(url)
        with pytest.raises(SoakwatchError, match="not understood"):
            run.mark("failover")
        with pytest.raises(SoakwatchError, match="not understood"):
            run.verdict()


def test_an_end_that_cannot_be_recorded_hides_no_error(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exception of the block stays, with a note; without one the sentence is raised."""
    served = serve_run(WebPlan(listen="127.0.0.1:0"), run, time.time_ns)
    monkeypatch.setenv("SOAKWATCH_TOKEN", (run / "web.token").read_text().strip())
    attached = attach(served.url)

    def fail_and_die(error: Exception | None) -> None:
        with attached.event("failover" if error else "upgrade"):
            if error is not None:
                served.close()
                raise error

    with pytest.raises(ValueError, match="mine") as raised:
        fail_and_die(ValueError("mine"))
    assert any("the end of failover was not recorded" in note for note in raised.value.__notes__)
    with pytest.raises(SoakwatchError, match="refuses"):
        fail_and_die(None)
