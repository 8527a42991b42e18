"""The page of a run and what it asks: how the run stands, acknowledging, stopping, and who may do that."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from jsonschema import validate

from soakwatch.judge.record_verdict import judge_record
from soakwatch.plan.web import WebPlan
from soakwatch.record import Record, RecordView
from soakwatch.web.access import Token, derived
from soakwatch.web.routes.state import STATE
from soakwatch_model.event import Event
from soakwatch_model.fact import Growth, Lost
from soakwatch_model.finding import Finding, Forecast, Mark, Outcome
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_model.window import Window
from soakwatch_testing.served import ServedRun, serve_run

SECOND = 10**9
HOSTILE = 'x"><img src=x onerror=alert(1)>\u202eevil'


def finding(begin_ns: int, outcome: Outcome, **changed: object) -> Finding:
    """A finding about the device's memory."""
    plain = Finding(
        "memory_growth",
        1,
        outcome,
        "dut",
        "system.memory.usage",
        HOSTILE.replace("\u202e", ""),
        Window(begin_ns, begin_ns + 60 * SECOND),
        "memory grows by less than 5 %",
        "it grew by 20 MiB/h",
        60,
        measured=20.0 * 2**20,
        limit=5.0 * 2**20,
        unit="By",
    )
    return replace(plain, **changed)  # type: ignore[arg-type] # what the caller changes


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Record, Path, int]]:
    """A run that is being written, since a minute: record, folder, begin."""
    folder, begin_ns = tmp_path / "runs" / "now", time.time_ns() - 60 * SECOND
    with Record.create(folder) as record:
        for key, text in {"run": HOSTILE, "start_ns": str(begin_ns)}.items():
            record.set_meta(key, text)
        record.target("dut", "dut")
        record.target("tg", "generator")
        device = record.source("dut", "local", "local", SECOND, required=True)
        load = record.source("tg", "command", "command", SECOND, required=True)
        record.begin_phase("soak", begin_ns)
        polls = []
        for second in range(60):
            due = begin_ns + second * SECOND
            memory = Sample("system.memory.usage", HOSTILE, 10.0 + second, due)
            rate = Sample("load.request.rate", "", 50.0, due)
            lost = second > 50
            outcome = PollOutcome.TIMEOUT if lost else PollOutcome.OK
            answer = Answer(() if lost else (memory,), (), ())
            polls.append(Poll(device.id, due, due, 1, outcome, "no answer" if lost else None, answer))
            polls.append(Poll(load.id, due, due, 1, PollOutcome.OK, None, Answer((rate,), (), ())))
        record.put(polls)
        yield record, folder, begin_ns


@pytest.fixture
def live(running: tuple[Record, Path, int]) -> Iterator[ServedRun]:
    """Its server."""
    with serve_run(WebPlan(listen="127.0.0.1:0"), running[1], time.time_ns) as server:
        yield server


def token(served: ServedRun) -> str:
    """What its file says."""
    assert served.token_file is not None
    return served.token_file.read_text(encoding="ascii").strip()


@pytest.fixture
def page(live: ServedRun) -> Iterator[httpx.Client]:
    """Someone who may act."""
    headers = {"authorization": f"Bearer {token(live)}"}
    with httpx.Client(base_url=live.url, headers=headers, trust_env=False, verify=False, timeout=240) as connection:
        yield connection


def test_the_state_says_how_the_run_is_doing(running: tuple[Record, Path, int], page: httpx.Client) -> None:
    """Counts, who fails since when, the load, the worst finding in one line, what comes true soonest first."""
    record, _, begin_ns = running
    soon = Forecast("system.memory.limit (3.80 GiB)", 31 * 3600, 25 * 3600, 37 * 3600)
    late = replace(soon, after_s=90 * 3600.0, high_s=95 * 3600.0)
    findings = [
        finding(begin_ns, Outcome.WARN, forecast=late, object="b"),
        finding(begin_ns, Outcome.WARN, forecast=soon, object="a"),
        finding(begin_ns, Outcome.PASS, object="c"),
        finding(begin_ns, Outcome.FAIL),
        finding(begin_ns, Outcome.INCONCLUSIVE, object="d"),
    ]
    record.put_findings(findings, live=True, judged_ns=begin_ns + 50 * SECOND)
    state = page.get("/api/runs/now/state?known=").json()
    validate(state, dict(STATE))
    assert (state["state"], state["verdict"], state["report"]) == ("running", None, False)
    assert state["phase"]["name"] == "soak"
    assert "devices" not in state, "only terminals ask for them"
    (device_line,) = page.get("/api/runs/now/state?figures=").json()["devices"]
    assert device_line.startswith("dut: memory"), device_line
    assert 59 < state["elapsed_s"] < 120
    device, load = state["sources"]
    assert (device["due"], device["got"], device["failed"], device["state"]) == (60, 51, 9, "failing")
    assert device["failing_since"] is not None
    assert (load["got"], load["failing_since"]) == (60, None)
    assert [row["words"] for row in state["load"]] == ["50 requests/s"]
    assert state["findings"]["counts"] == {"fail": 1, "warn": 2, "inconclusive": 1, "pass": 1}
    assert state["line"] == "memory of x onerror=alert(1)>evil on dut keeps growing."
    shown = state["shown"]
    assert [(alarm["outcome"], alarm["object"][:1]) for alarm in shown["alarms"]] == [
        ("fail", "x"),
        ("warn", "a"),
        ("warn", "b"),
        ("inconclusive", "d"),
    ]
    assert shown["alarms"][3]["title"] == "memory_growth on dut", "what is undecided may not have happened"
    assert shown["alarms"][1]["forecast"] == "system.memory.limit (3.80 GiB) reached in 31 h ± 6 h (90 %)"
    assert shown["alarms"][0]["measured"] == "20 MiB"
    again = page.get("/api/runs/now/state", params={"known": shown["digest"]}).json()
    assert again["shown"]["alarms"] is None, "what the page has is not sent again"
    assert "shown" not in page.get("/api/runs/now/state").json()


def test_the_banner_names_the_cause_with_its_moment_and_load_as_the_report_does(
    running: tuple[Record, Path, int], page: httpx.Client
) -> None:
    """A process died, and requests were lost by it: the death comes first, in the banner and in the findings."""
    record, _, begin_ns = running
    died = (Mark(begin_ns + 40 * SECOND, begin_ns + 43 * SECOND, "down"),)
    of = "process=authd,instance=0"
    fact = Lost(count=96.0, what="requests")
    loss = finding(
        begin_ns, Outcome.FAIL, rule="loss", metric="load.requests", object="", unit="1", marks=died, facts=(fact,)
    )
    death = finding(
        begin_ns, Outcome.FAIL, rule="process_restart", metric="process.up", object=of, unit="{restart}", marks=died
    )
    record.put_findings([loss, death], live=True, judged_ns=begin_ns + 50 * SECOND)
    state = page.get("/api/runs/now/state?known=").json()
    at = datetime.fromtimestamp(begin_ns // SECOND + 40, UTC)
    when = f"authd on dut restarted at {at:%H:%M:%S} UTC"
    assert state["line"] == f"{when} (40 s in, at 50 requests/s in phase soak); 96 requests lost."
    assert [alarm["title"] for alarm in state["shown"]["alarms"]] == [
        "authd on dut restarted",
        "traffic through dut was lost",
    ]


def test_a_warning_is_told_by_what_it_is_of(running: tuple[Record, Path, int], page: httpx.Client) -> None:
    record, _, begin_ns = running
    grew = (Growth(20.0 * 2**20, change=0.1, tolerance=0.05),)
    warned = [finding(begin_ns, Outcome.WARN, object=f"pool={name}", facts=grew) for name in "ab"]
    record.put_findings(warned, live=True, judged_ns=begin_ns + 50 * SECOND)
    line = page.get("/api/runs/now/state").json()["line"]
    assert line.startswith("No failure so far; "), line
    assert " of a on dut has grown by 20 MiB/h over 1 min (limit 5 %); 1 more warning." in line


def test_events_since_the_last_evaluation_are_not_a_quiet_pass(
    running: tuple[Record, Path, int], page: httpx.Client
) -> None:
    """Rules are evaluated each minute: until then the line says that there is something that they may not have seen."""
    record, _, begin_ns = running
    record.put_findings([finding(begin_ns, Outcome.PASS)], live=True, judged_ns=begin_ns + 50 * SECOND)
    for kind, second in (("process.exit", 45), ("device.identity", 55)):  # looked at already, and no happening
        record.add_event("dut", Event(kind, "dut", "", begin_ns + second * SECOND, None), "local")
    assert page.get("/api/runs/now/state").json()["line"] == "No failure so far."
    for second in (56, 57):
        record.add_event("dut", Event("process.restart", "dut", "", begin_ns + second * SECOND, None), "local")
    line = "No failure so far; 2 events not judged yet."
    assert page.get("/api/runs/now/state").json()["line"] == line


def test_an_acknowledged_finding_stays_what_it_is(running: tuple[Record, Path, int], page: httpx.Client) -> None:
    """Everybody sees that it is known; no rule considers that, and what is not there cannot be acknowledged."""
    record, folder, begin_ns = running
    record.put_findings([finding(begin_ns, Outcome.FAIL)], live=True, judged_ns=begin_ns)
    with RecordView.open(folder) as view:
        before = judge_record(view)
    path = "/api/runs/now/findings/acknowledge"
    acknowledgement = {
        "rule": "memory_growth",
        "target": "dut",
        "metric": "system.memory.usage",
        "object": HOSTILE.replace("\u202e", ""),
        "reason": "known since 7.1",
    }
    assert page.post(path, json={**acknowledgement, "object": "another"}).status_code == 404
    assert page.post(path, json={**acknowledgement, "reason": "  "}).status_code == 400
    assert page.post(path, json={**acknowledgement, "rule": 7}).status_code == 400
    assert page.post(path, json={**acknowledgement, "reason": "x" * 501}).status_code == 400
    assert page.get("/api/runs/now/state?known=").json()["shown"]["alarms"][0]["acknowledged"] is None
    assert page.post(path, json=acknowledgement).status_code == 201
    state = page.get("/api/runs/now/state?known=").json()
    assert state["shown"]["alarms"][0]["acknowledged"]["reason"] == "known since 7.1"
    assert state["shown"]["alarms"][0]["outcome"] == "fail"
    assert state["shown"]["kinds"] == [], "it is no kind of event to tell again"
    with RecordView.open(folder) as view:
        after = judge_record(view)
    assert (after.outcome, after.reason, after.findings) == (before.outcome, before.reason, before.findings)


def test_a_finding_of_a_run_that_is_over_is_acknowledged(running: tuple[Record, Path, int], page: httpx.Client) -> None:
    """A day later, and two of the same object: each is kept, with the time at which it was said."""
    record, _, begin_ns = running
    both = [
        finding(begin_ns, Outcome.FAIL, object="o"),
        finding(begin_ns, Outcome.WARN, object="o", rule="step_change"),
    ]
    record.put_findings(both, live=False, judged_ns=begin_ns)
    for key, text in {"ended_ns": str(begin_ns + 60 * SECOND), "verdict": "fail", "reason": "it grew"}.items():
        record.set_meta(key, text)
    for rule in ("memory_growth", "step_change"):
        body = {"rule": rule, "target": "dut", "metric": "system.memory.usage", "object": "o", "reason": f"of {rule}"}
        assert page.post("/api/runs/now/findings/acknowledge", json=body).status_code == 201
    state = page.get("/api/runs/now/state?known=").json()
    assert [alarm["acknowledged"]["reason"] for alarm in state["shown"]["alarms"]] == [
        "of memory_growth",
        "of step_change",
    ]
    assert (state["state"], state["verdict"], state["line"]) == ("ended", "fail", "it grew")
    assert page.post("/api/runs/now/stop", json={}).status_code == 409


def test_a_run_is_asked_to_stop_once(running: tuple[Record, Path, int], page: httpx.Client) -> None:
    """The reason is kept; the page knows that it is coming."""
    assert page.post("/api/runs/now/stop", json={"reason": 7}).status_code == 400
    answer = page.post("/api/runs/now/stop", json={"reason": " seen \n enough "})
    assert (answer.status_code, answer.json()["kind"]) == (202, "run.stop")
    assert page.post("/api/runs/now/stop", json={}).status_code == 409
    state = page.get("/api/runs/now/state").json()
    assert state["stopping"] == "seen enough"
    with RecordView.open(running[1]) as view:
        (event,) = view.events()
    assert (event.event.kind, event.event.detail["reason"]) == ("run.stop", "seen enough")


def test_a_run_that_waits_is_stopped_from_its_page(running: tuple[Record, Path, int], page: httpx.Client) -> None:
    """However far its start is."""
    running[0].set_meta("start_ns", str(time.time_ns() + 36_000 * SECOND))
    assert page.get("/api/runs/now/state").json()["state"] == "waiting"
    assert page.post("/api/runs/now/stop", json={"reason": "no rack"}).status_code == 202
    assert page.post("/api/runs/now/stop", json={}).status_code == 409


def test_a_viewer_sees_nothing_to_act_with(live: ServedRun, page: httpx.Client) -> None:
    """The page has no button to mark, acknowledge or stop, and asking all the same is refused."""
    word = derived(Token(token(live)), "view")
    with httpx.Client(base_url=live.url, trust_env=False, verify=False, timeout=240, follow_redirects=True) as guest:
        seen = guest.get(f"/view/{word}")
        assert (seen.status_code, seen.url.path) == (200, "/runs/now/")
        assert 'data-may="view"' in seen.text
        for own in ("mark-button", "stop-button", "ack-dialog", "mark-dialog", "stop-dialog"):
            assert own not in seen.text
            assert own in page.get("/runs/now/").text
        for path in ("stop", "findings/acknowledge", "events"):
            body = {"kind": "failover", "rule": "r", "reason": "because"}
            assert guest.post(f"/api/runs/now/{path}", json=body).status_code == 403
        assert guest.get("/api/runs/now/state?known=").status_code == 200
    with httpx.Client(base_url=live.url, trust_env=False, verify=False, timeout=240) as stranger:
        for path in ("/runs/now/", "/runs/now/plots", "/runs/now/report", "/api/runs/now/state"):
            assert stranger.get(path).status_code == 401


def test_names_are_text(page: httpx.Client) -> None:
    """A run named like markup is text in the page, also inside the script element that holds the first state."""
    answer = page.get("/runs/now/")
    assert answer.status_code == 200
    assert "<img" not in answer.text
    assert "\u202e" not in answer.text
    assert "script-src 'self';" in answer.headers["content-security-policy"]
    held = answer.text.partition('id="first-state">')[2].partition("</script>")[0]
    assert json.loads(held)["run"] == "now"


def test_the_plots_hold_the_readings(
    running: tuple[Record, Path, int], page: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their sources are named by their series; the same plots serve the next who asks, until there is something new."""
    monkeypatch.setattr("soakwatch.web.plot_cache._MIN_AGE_IF_CHANGED_S", 0.0)
    monkeypatch.setattr("soakwatch.web.plot_cache._AGE_PER_COST_IF_CHANGED", 0.0)
    answer = page.get("/runs/now/plots")
    document = answer.json()
    assert document["panels"][0]["target"] == "dut"
    assert "series:" in json.dumps(document["plots"])
    assert document["end"] > document["begin"]
    assert page.get("/runs/now/plots").content == answer.content
    running[0].begin_phase("stress", running[2] + 59 * SECOND)
    assert page.get("/runs/now/plots").json()["drawn"] != document["drawn"]


def test_a_run_without_a_reading_has_a_page(tmp_path: Path) -> None:
    """It has begun, and no poll has come yet."""
    folder = tmp_path / "runs" / "young"
    with Record.create(folder) as record:
        record.set_meta("run", "young")
        record.set_meta("start_ns", str(time.time_ns()))
        with serve_run(WebPlan(listen="127.0.0.1:0"), folder, time.time_ns) as served:
            headers = {"authorization": f"Bearer {token(served)}"}
            with httpx.Client(
                base_url=served.url, headers=headers, trust_env=False, verify=False, timeout=240
            ) as client:
                assert client.get("/runs/young/").status_code == 200
                assert client.get("/runs/young/plots").json()["panels"] == []
                assert client.get("/runs/young/report").status_code == 404


def test_a_report_can_reach_nothing(running: tuple[Record, Path, int], page: httpx.Client) -> None:
    """It may run the scripts that it holds, in an origin of its own: it cannot act with the cookie of who reads it."""
    (running[1] / "report.html").write_text("<p>all is well</p>", encoding="utf-8")
    answer = page.get("/runs/now/report")
    assert answer.text == "<p>all is well</p>"
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "sandbox allow-scripts" in policy
    assert "allow-same-origin" not in policy
    assert "connect-src" not in policy
