"""The event API as a client meets it: a real server on a real socket."""

from __future__ import annotations

import json
import random
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import cast

import httpx
import pytest

from soakwatch.record import RecordView
from soakwatch.runs.mark_event import moment
from soakwatch.web.app import MAX_BODY_BYTES
from soakwatch_model.event import Event
from soakwatch_testing.served import ServedRun

EVENTS = "/runs/run/events"
Events = Callable[[Path], list[Event]]


def post_event(client: httpx.Client, **event: object) -> httpx.Response:
    """Tell an event."""
    return client.post(EVENTS, json=event)


def test_an_event_is_recorded_and_read_back(client: httpx.Client, run: Path, events_of: Events) -> None:
    """Begin with an intent, end with a label: the record has it, and GET shows it."""
    began = post_event(
        client,
        kind="failover",
        begin="now",
        target="dut",
        object="unit=1",
        expect={"reboot": 1},
        within="5m",
        labels={"ticket": "4711"},
    )
    assert began.status_code == 201
    assert began.json()["end"] is None
    ended = post_event(client, kind="failover", end="now", target="dut", object="unit=1", labels={"result": "done"})
    assert ended.status_code == 200
    (event,) = events_of(run)
    assert (event.kind, event.target, event.object) == ("failover", "dut", "unit=1")
    assert event.expect == {"reboot": 1}
    assert event.detail == {"ticket": "4711", "result": "done"}
    assert event.end_ns is not None
    assert event.deadline_ns == event.begin_ns + 300 * 10**9
    listed = client.get(EVENTS).json()
    assert listed["run"] == "run"
    assert listed["events"] == [ended.json()]
    assert moment(ended.json()["begin"]) // 1000 == event.begin_ns // 1000


def test_moments_and_stretches(client: httpx.Client, run: Path, events_of: Events) -> None:
    """``at``, ``begin`` with ``end``, ``at`` with ``end``, and nothing at all."""
    now = client.get(EVENTS).json()["now"]
    assert post_event(client, kind="plain").status_code == 201
    assert post_event(client, kind="at-now", at="now").status_code == 201
    assert post_event(client, kind="moment", at=now).status_code == 201
    assert post_event(client, kind="stretch", begin=now, end=now).status_code == 201
    assert post_event(client, kind="at-end", at=now, end=now).status_code == 201
    assert post_event(client, kind="since", begin=now).status_code == 201
    kept = {event.kind: event for event in events_of(run)}
    assert len(kept) == 6
    assert [kind for kind, event in kept.items() if event.end_ns is None] == ["since"]
    assert {kept[kind].begin_ns for kind in ("moment", "stretch", "at-end", "since")} == {moment(now)}


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        ({}, "kind is missing"),
        ({"kind": 5}, "kind must be a text"),
        ({"kind": None}, "kind must be a text"),
        ({"kind": "Fail"}, "is not a kind of event"),
        ({"kind": "failover", "tarket": "dut"}, "unknown key 'tarket'; did you mean 'target'?"),
        ({"kind": "failover", "target": "moon"}, "no target 'moon'"),
        ({"kind": "failover", "at": 1700000000}, "at must be a time as text"),
        ({"kind": "failover", "at": "soon"}, "is not ISO 8601"),
        ({"kind": "failover", "at": "2031-01-01T00:00:00Z"}, "in the future"),
        ({"kind": "failover", "at": "2001-01-01T00:00:00Z"}, "before the run started"),
        ({"kind": "failover", "at": "now", "begin": "now"}, "give only one of them"),
        ({"kind": "failover", "at": "2031-01-01T00:00:00Z", "end": "now"}, "needs the time of its end"),
        ({"kind": "failover", "expect": ["reboot"]}, "expect must be an object"),
        ({"kind": "failover", "expect": {"reboot": "1"}}, "expect: reboot must be a count"),
        ({"kind": "failover", "expect": {"reboot": True}}, "expect: reboot must be a count"),
        ({"kind": "failover", "expect": {"reboot": 1.5}}, "expect: reboot must be a count"),
        ({"kind": "failover", "labels": {"ticket": 4711}}, "labels: ticket must be a text"),
        ({"kind": "failover", "within": 300}, "within: the duration 300 has no unit"),
        ({"kind": "failover", "within": "fast"}, "within: 'fast' is not a duration"),
        ({"kind": "failover", "end": "now", "expect": {"reboot": 1}}, "belong to the start"),
    ],
)
def test_what_makes_no_sense_is_400(
    asking: httpx.Client, standing: ServedRun, event: dict[str, object], sentence: str
) -> None:
    """One sentence, and nothing in the record."""
    answer = asking.post(EVENTS, json=event)
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]
    assert "\n" not in answer.json()["error"]
    assert standing.token_file is not None
    with RecordView.open(standing.token_file.parent) as view:
        assert view.events() == ()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b'"failover"',
        b"\xff\xfe",
        b"[" * 30_000,
        b'{"kind": NaN}',
        b'{"a":' * 5000,
        b'{"kind": "a", "kind": "b"}',
        b'{"kind": "e", "expect": {"reboot": ' + b"9" * 5000 + b"}}",
    ],
)
def test_what_is_no_event_is_400(asking: httpx.Client, body: bytes) -> None:
    """Half, deep, doubled, no JSON at all."""
    answer = asking.post(EVENTS, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}


def test_every_refusal_is_json_with_its_status(client: httpx.Client, served: ServedRun) -> None:
    """401, 404, 405, 409, 413, 415: one sentence each."""
    plain = {"content-type": "text/plain"}
    assert post_event(client, kind="failover", begin="now").status_code == 201
    answers = {
        "401 without": httpx.post(
            f"{served.url}/api{EVENTS}", json={"kind": "a"}, trust_env=False, verify=False, timeout=240
        ),
        "401 wrong": client.post(EVENTS, json={"kind": "a"}, headers={"authorization": "Bearer guess"}),
        "401 odd": client.get("/runs", headers=[(b"authorization", b"Bearer \xff\xfe")]),
        "401 basic": client.get("/runs", headers={"authorization": "Basic YTpi"}),
        "404 run": client.post("/runs/moon/events", json={"kind": "a"}),
        "404 path": client.get("/nothing"),
        "404 outside": client.get("/runs/..%2Frun/events"),
        "404 far outside": client.get("/runs/%2e%2e/events"),
        "405": client.put(EVENTS, json={"kind": "a"}),
        "405 post": client.post("/runs", json={}),
        "409 overlap": post_event(client, kind="failover", begin="now"),
        "409 end": post_event(client, kind="upgrade", end="now"),
        "413 told": client.post(
            EVENTS, content=b" " * (MAX_BODY_BYTES + 1), headers={"content-type": "application/json"}
        ),
        "413 streamed": client.post(
            EVENTS, content=(b" " * 1000 for _ in range(100)), headers={"content-type": "application/json"}
        ),
        "415": client.post(EVENTS, content=b'{"kind": "a"}', headers=plain),
        "400 after": client.get(EVENTS, params={"after": "x"}),
    }
    for what, answer in answers.items():
        assert answer.status_code == int(what[:3]), what
        assert set(answer.json()) == {"error"}, what
        assert 10 < len(answer.json()["error"]) < 200, what
    assert client.get(EVENTS).status_code == 200


def test_runs_and_health(client: httpx.Client, served: ServedRun) -> None:
    """Health needs no token and says nothing; the list has the one run, also as last and current."""
    assert httpx.get(f"{served.url}/api/health", trust_env=False, verify=False, timeout=240).json() == {"status": "ok"}
    (line,) = client.get("/runs").json()["runs"]
    assert (line["run"], line["state"], line["verdict"]) == ("run", "broken off", None)
    for name in ("run", "last", "current"):
        assert client.get(f"/runs/{name}/events").json()["run"] == "run"


def test_events_are_read_on_from_the_last_known(client: httpx.Client) -> None:
    """``after`` gives what is new, in the order in which it was reported."""
    numbers = [post_event(client, kind=kind).json()["id"] for kind in ("a", "b", "c")]
    later = client.get(EVENTS, params={"after": numbers[0]}).json()
    assert [event["kind"] for event in later["events"]] == ["b", "c"]
    assert later["more"] is False


def test_findings_are_those_of_the_record(client: httpx.Client) -> None:
    """A run that was not judged has none, and says how far its record reaches."""
    document = client.get("/runs/last/findings").json()
    assert (document["verdict"], document["findings"], document["state"]) == (None, [], "broken off")
    assert moment(document["until"]) > 0


def test_the_token_is_nobody_elses(served: ServedRun, run: Path) -> None:
    """Its file is 0600 and gone with the server, as is the address; neither is left for whoever gets the record."""
    assert served.token_file is not None
    assert stat.S_IMODE(served.token_file.stat().st_mode) == 0o600
    assert len(served.token_file.read_text().strip()) >= 32
    assert (run / "web.url").read_text().strip() == served.url
    served.close()
    assert not served.token_file.exists()
    assert not (run / "web.url").exists()


def test_seeded_garbage_is_answered_or_hung_up_on(
    served: ServedRun, client: httpx.Client, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """No bytes on the socket end the server or make it talk to the terminal."""
    chooser = random.Random(7)
    host, port = served.url.removeprefix("http://").split(":")
    seeds = [
        b"GET / HTTP/1.1\r\n",
        b"POST /api/runs/run/events HTTP/1.1\r\nContent-Length: 5\r\n\r\n{",
        b"\x16\x03\x01",
        b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"\x00" * 50,
        b"Upgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    ]
    for _ in range(60):
        parts = [chooser.choice([*seeds, chooser.randbytes(40)]) for _ in range(chooser.randrange(1, 4))]
        with socket.create_connection((host, int(port)), timeout=20) as peer:
            peer.sendall(b"".join(parts))
            peer.shutdown(socket.SHUT_WR)
            while peer.recv(4096):
                pass
    assert client.get("/health").json() == {"status": "ok"}
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


def test_seeded_events_are_kept_or_refused(client: httpx.Client) -> None:
    """Mutations of a good event: 201, 200, 400 or 409, always JSON."""
    chooser = random.Random(11)
    good = {"kind": "failover", "begin": "now", "target": "dut", "expect": {"reboot": 1}, "within": "5m", "labels": {}}
    odd: list[object] = [None, True, 0, -1.5, "", "now", "x" * 5000, [], {}, {"a": {}}, "\u0000", "\ud800", 2**80]
    counts: dict[int, int] = {}
    for number in range(300):
        event: dict[str, object] = {**good, "kind": f"e{number}"}
        for _ in range(chooser.randrange(3)):
            event[chooser.choice([*good, "end", "at", "object", "?"])] = chooser.choice(odd)
        body = json.dumps(event).encode()
        if chooser.random() < 0.1:
            body = body[: chooser.randrange(len(body))]
        answer = client.post(EVENTS, content=body, headers={"content-type": "application/json"})
        assert isinstance(cast("object", answer.json()), dict)
        counts[answer.status_code] = counts.get(answer.status_code, 0) + 1
    assert set(counts) <= {200, 201, 400, 409}
    assert counts[201] > 50
    assert counts[400] > 50
