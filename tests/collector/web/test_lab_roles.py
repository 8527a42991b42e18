"""Who may do what at a lab server: each route for each role, by token, by cookie and by the header of a proxy."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import jsonschema
import pytest
from tests.collector.conftest import record_run
from tests.collector.lab.conftest import plan_text
from tests.commands import Command

from soakwatch.lab.dispatcher import Dispatcher
from soakwatch.lab.lab import Lab
from soakwatch.lab.lab_model import JobState, Order, User
from soakwatch.lab.plans_folder import PlansFolder
from soakwatch.plan.web import WebPlan
from soakwatch.record import Record, RecordView
from soakwatch.web.access import Token, derived
from soakwatch.web.endpoint import Endpoint, May
from soakwatch.web.json_lab import AUDIT_ENTRY, JOB, PLAN, SCHEDULE, STATE
from soakwatch.web.named_tokens import ROLES, NamedTokens
from soakwatch.web.routes import endpoints
from soakwatch.web.run_folder import RunFolder
from soakwatch.web.server import serve
from soakwatch.web.trusted_proxy import TrustedProxy, trusted_proxy

OWN = "the-token-of-the-server-itself"
LEVELS = {"nobody": May.NOTHING, "viewer": May.VIEW, "operator": May.ACT, "admin": May.ADMIN}
Ask = Callable[..., httpx.Response]


@dataclass
class Door:
    """A served folder with a run and a queue that nobody works on, and the tokens of three people."""

    url: str
    lab: Lab
    dispatcher: Dispatcher
    people: NamedTokens
    tokens: dict[str, str]

    def client(self, token: str = "", **headers: str) -> httpx.Client:
        """Someone with a token; without one with nothing."""
        given = {"authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers={**given, **headers}, trust_env=False, timeout=240)


def opened(folder: Path, proxy: TrustedProxy | None = None) -> Iterator[Door]:
    """Serve a folder."""
    plans = folder / "plans"
    plans.mkdir()
    (plans / "night.yaml").write_text(plan_text("192.0.2.1"))
    record_run(folder / "runs" / "run")
    lab = Lab(folder / "runs", PlansFolder(plans))
    people = NamedTokens(folder / "runs")
    tokens = {role: people.add(f"{role}-anna", role) for role in ROLES}
    dispatcher = Dispatcher(lab)
    served = serve(
        WebPlan(listen="127.0.0.1:0"),
        Token(OWN),
        RunFolder(folder / "runs", (lab, dispatcher)),
        people=people,
        proxy=proxy,
    )
    with served:
        yield Door(served.url, lab, dispatcher, people, tokens)
    lab.close()


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """A server without a proxy."""
    yield from opened(tmp_path_factory.mktemp("door"))


@pytest.fixture
def own_door(tmp_path: Path) -> Iterator[Door]:
    """The same for one test, which may change it."""
    yield from opened(tmp_path)


def asked(client: httpx.Client, endpoint: Endpoint) -> int:
    """The status of a request that nothing comes of: the body and the names make no sense."""
    path = re.sub(r"\{run\}", "run", endpoint.path)
    path = re.sub(r"\{(job|schedule)\}", "999", re.sub(r"\{\w+\}", "none", path) if "{job}" not in path else path)
    path = path.replace("/schedules/none", "/schedules/s999")
    body = {"content": b"[]", "headers": {"content-type": "application/json"}} if endpoint.method == "POST" else {}
    return client.request(endpoint.method, path, **body).status_code  # type: ignore[arg-type]


@pytest.mark.parametrize("role", [*LEVELS])
def test_each_route_for_each_role(door: Door, role: str) -> None:
    """What a role may not do is refused before anything is looked at: 401 without a token, 403 with one."""
    wrong = []
    with door.client(door.tokens.get(role, "")) as client:
        for endpoint in endpoints():
            if endpoint.path == "/metrics" and role != "nobody":
                continue
            status = asked(client, endpoint)
            allowed = LEVELS[role] >= endpoint.may
            refused = {401} if role == "nobody" else {403}
            if allowed == (status in refused):
                wrong.append(f"{endpoint.method} {endpoint.path}: {status}")
    assert wrong == []


def test_what_changes_something_needs_a_role(door: Door) -> None:
    """No route that is not asked by GET is open to viewers, and what deletes is an admin's, but for a schedule."""
    for endpoint in endpoints():
        if endpoint.method != "GET" and not endpoint.path.endswith("/series/data"):
            assert endpoint.may >= May.ACT, endpoint.path
    assert {one.path for one in endpoints() if one.may is May.ADMIN} == {"/api/runs/{run}"}
    assert door.url


def test_the_refusal_names_the_role_that_is_needed(door: Door) -> None:
    with door.client(door.tokens["viewer"]) as client:
        answer = client.post("/api/lab/jobs", json={"plan": "night.yaml"})
    assert answer.json() == {"error": "viewer-anna has the role viewer: this action needs the role operator"}
    with door.client(door.tokens["operator"]) as client:
        answer = client.delete("/api/runs/run?confirm=run")
    assert answer.json() == {"error": "operator-anna has the role operator: this action needs the role admin"}


def test_only_an_admin_sets_any_value_of_a_plan(own_door: Door) -> None:
    """And the token of the server itself is an admin's."""
    body = {"plan": "night.yaml", "set": ["targets.dut.sources.snmp.host=192.0.2.9"]}
    statuses = {}
    for name, token in {**own_door.tokens, "own": OWN}.items():
        with own_door.client(token) as client:
            statuses[name] = client.post("/api/lab/jobs", json=body).status_code
    assert statuses == {"viewer": 403, "operator": 403, "admin": 201, "own": 201}
    names = [job.user for job in own_door.lab.store.jobs(JobState.QUEUED)]
    assert names == [User("admin-anna", "admin"), User("server token", "admin")]


def test_a_person_logs_in_by_the_page_until_the_token_is_removed(own_door: Door) -> None:
    """The cookie is that of the person, in the role that the token has; another server's is nobody's."""
    with own_door.client(accept="text/html") as browser:
        wrong = browser.post("/enter", data={"token": own_door.tokens["operator"] + "x"})
        assert wrong.status_code == 401
        entered = browser.post("/enter", data={"token": own_door.tokens["operator"]})
        assert entered.status_code == 303
        assert own_door.tokens["operator"] not in entered.headers["set-cookie"]
        assert "HttpOnly" in entered.headers["set-cookie"]
        assert "operator-anna" in browser.get("/lab").text
        assert browser.post("/api/lab/jobs", json={"plan": "night.yaml"}).status_code == 201
        elsewhere = browser.post(
            "/api/lab/jobs", json={"plan": "night.yaml"}, headers={"origin": "http://evil.example"}
        )
        assert elsewhere.status_code == 403
        own_door.people.remove("operator-anna")
        assert browser.get("/lab").status_code == 401
        own_door.people.add("operator-anna", "admin")
        assert browser.get("/lab").status_code == 401, "a new token of that name is another one"
    with own_door.client() as forger:
        for cookie in (
            "operator-anna.",
            "operator-anna.x",
            derived(Token("another-server-token-x"), "cookie act"),
            ".",
        ):
            forger.cookies.set(f"soakwatch-{own_door.url.rpartition(':')[2]}", cookie)
            assert forger.get("/api/lab").status_code == 401


def test_tokens_are_kept_as_hashes_that_only_their_owner_reads(own_door: Door) -> None:
    kept = own_door.people.file.read_text()
    assert not [token for token in own_door.tokens.values() if token in kept or token[-20:] in kept]
    assert own_door.people.file.stat().st_mode & 0o777 == 0o600
    own_door.people.file.write_text("spoilt")
    with own_door.client(own_door.tokens["admin"]) as client:
        answer = client.get("/api/lab")
    assert (answer.status_code, "is damaged: remove it" in answer.json()["error"]) == (503, True)
    with own_door.client(OWN) as client:
        assert client.get("/api/lab").status_code == 200


def test_the_commands_make_list_and_remove_tokens(tmp_path: Path, soakwatch: Command) -> None:
    (tmp_path / "runs").mkdir()
    made = soakwatch("token", "add", "anna", "--role", "operator")
    assert re.fullmatch(r"soak-[\w-]{43}\n", made.stdout)
    assert made.stderr == "the token of anna (operator) for runs, shown this once:\n"
    assert "there is a token anna already" in soakwatch("token", "add", "anna").stderr
    assert "cannot name a token" in soakwatch("token", "add", "an na").stderr
    listed = soakwatch("token", "list").stdout
    assert listed.splitlines()[1].split()[:2] == ["anna", "operator"]
    assert made.stdout.strip() not in listed
    assert "did you mean 'anna'?" in soakwatch("token", "remove", "ana").stderr
    soakwatch("token", "add", "bert")
    assert "did you mean 'bert'?" in soakwatch("token", "remove", "anna", "brt").stderr
    done = soakwatch("token", "remove", "anna", "bert")
    assert done.stdout == "the token of anna is removed\nthe token of bert is removed\n", "none was before"
    assert "nobody has a token for runs" in soakwatch("token", "list").stdout


PROXIED = {"X-Remote-User": "carla", "X-Remote-Role": "operator"}


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[Door]:
    """A server that trusts a proxy on this machine."""
    yield from opened(tmp_path, trusted_proxy(["127.0.0.1"], "X-Remote-User", "X-Remote-Role"))


def test_a_trusted_proxy_says_who_asks(proxied: Door) -> None:
    """By its headers alone, each given once; the page may be HTTPS there though this server is not."""
    with proxied.client(**PROXIED) as client:
        assert client.post("/api/lab/jobs", json={"plan": "night.yaml"}).status_code == 201
        https = client.base_url.copy_with(scheme="https")
        again = client.post("/api/lab/jobs", json={"plan": "night.yaml"}, headers={"origin": str(https).rstrip("/")})
        assert again.status_code == 201
        foreign = client.post("/api/lab/jobs", json={"plan": "night.yaml"}, headers={"origin": "https://evil.example"})
        assert foreign.status_code == 403
        for more in (
            {"X-Remote-Role": "root"},
            {"X-Remote-Role": ""},
            {"X-Remote-User": ""},
            {"X-Remote-User": "c" * 65},
        ):
            assert client.get("/api/lab", headers=more).status_code == 401, more
        twice = [("X-Remote-User", "carla"), ("X-Remote-User", "root"), ("X-Remote-Role", "admin")]
        assert httpx.get(f"{proxied.url}/api/lab", headers=twice, trust_env=False, timeout=240).status_code == 401
        token = client.get("/api/lab", headers={"authorization": "Bearer wrong"})
        assert token.status_code == 401, "who shows a token is judged by it"
    assert {job.user.name for job in proxied.lab.store.jobs(JobState.QUEUED)} == {"carla"}


@pytest.mark.parametrize("address", ["192.0.2.7", "127.0.0.2", "::1", "10.0.0.0/8"])
def test_nobody_else_is_believed(tmp_path: Path, address: str) -> None:
    """The headers of a request from another address are only headers."""
    for served in opened(tmp_path, trusted_proxy([address], "X-Remote-User", "X-Remote-Role")):
        with served.client(**PROXIED, **{"X-Forwarded-For": address}) as client:
            assert client.get("/api/lab").status_code == 401


def test_without_a_proxy_its_headers_are_nothing(door: Door) -> None:
    with door.client(**PROXIED) as client:
        assert client.get("/api/lab").status_code == 401


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--trust-proxy", "proxy.lab"), "'proxy.lab' is not an address"),
        (("--trust-proxy", "0.0.0.0/0"), "every address would be believed"),
        (("--trust-proxy", "127.0.0.1", "--user-header", "X User"), "'X User' cannot name a header"),
        (("--plans", "nowhere"), "nowhere is not a folder: name the folder of plans with --plans DIR"),
        (("--at-once", "0"), "0 is not in the range 1<=x<=64"),
    ],
)
def test_what_the_server_is_started_with_is_checked(
    tmp_path: Path, soakwatch: Command, words: tuple[str, ...], sentence: str
) -> None:
    (tmp_path / "runs").mkdir()
    done = soakwatch("serve", "--listen", "127.0.0.1:0", *words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "soakwatch token add NAME" in soakwatch("serve", "token").stderr


def test_what_people_do_to_a_run_is_in_the_audit_and_in_its_record(own_door: Door) -> None:
    """With name, role, time and action; nobody can record such an event by the API."""
    run = own_door.lab.runs / "run"
    with Record.open(run), own_door.client(own_door.tokens["operator"]) as client:
        forged = client.post("/api/runs/run/events", json={"kind": "run.action", "labels": {"user": "root"}})
        assert forged.status_code == 400
        assert "reserved for the run itself" in forged.json()["error"]
        assert client.post("/api/runs/run/events", json={"kind": "failover"}).status_code == 201
        assert client.post("/api/runs/run/stop", json={"reason": "enough"}).status_code == 202
        own_door.dispatcher.step()
        audit = client.get("/api/lab/audit").json()["audit"]
    assert [(entry["user"], entry["role"], entry["action"], entry["run"]) for entry in audit] == [
        ("operator-anna", "operator", "stop", "run"),
        ("operator-anna", "operator", "mark an event", "run"),
    ]
    with RecordView.open(run) as view:
        events = {stored.event.kind: stored.event for stored in view.events()}
        told = [stored.event.detail for stored in view.events() if stored.event.kind == "run.action"]
    assert events["run.stop"].detail == {"reason": "enough", "by": "operator-anna (operator)"}
    assert [(detail["user"], detail["role"], detail["action"]) for detail in told] == [
        ("operator-anna", "operator", "mark an event"),
        ("operator-anna", "operator", "stop"),
    ]
    assert {detail["time"][:10] for detail in told} == {entry["time"][:10] for entry in audit}


def test_the_state_of_the_queue_is_sent_once(own_door: Door) -> None:
    """Twenty pages that ask every few seconds cost nothing while nothing changes."""
    own_door.lab.submit(Order("night.yaml", {"x": "<script>"}), User("anna", "operator"))
    with own_door.client(own_door.tokens["viewer"]) as client:
        first = client.get("/api/lab")
        again = client.get("/api/lab", headers={"if-none-match": first.headers["etag"]})
        assert (first.status_code, again.status_code) == (200, 304)
        assert first.json()["queue"][0]["plan"] == "night.yaml"
        assert first.json()["queue"][0]["labels"] == {"x": "<script>"}
        jsonschema.validate(first.json(), STATE)
        jsonschema.validate(client.get("/api/lab/jobs/1").json(), JOB)
        assert client.get("/api/lab/jobs/1").json()["place"] == 1
        assert client.get("/api/lab/jobs/x").status_code == 404
        assert client.get("/api/lab/plans").json()["plans"][0]["testbed"] == "192.0.2.1"


def test_every_answer_of_the_queue_is_as_the_document_says(own_door: Door) -> None:
    """Of all that is asked for and done; a number that is none is not found."""
    with own_door.client(own_door.tokens["operator"]) as client:
        order = {"plan": "night.yaml", "labels": {"release": "7.2"}, "set": ["duration=2h"]}
        answers = [
            (client.post("/api/lab/jobs", json=order), 201, JOB),
            (client.post("/api/lab/jobs", json=order), 201, JOB),
            (client.post("/api/lab/jobs/2/move", json={"to": "up"}), 200, JOB),
            (client.post("/api/lab/jobs/2/cancel", json={"reason": "x"}), 200, JOB),
            (client.post("/api/lab/schedules", json={**order, "cron": "@daily"}), 201, SCHEDULE),
            (client.post("/api/lab/schedules", json={**order, "at": "2099-01-01T00:00:00Z"}), 201, SCHEDULE),
            (client.post("/api/lab/schedules/s1/disable", json={}), 200, SCHEDULE),
            (client.post("/api/lab/schedules/1/enable", json={}), 200, SCHEDULE),
            (client.post("/api/lab/schedules/s1/start", json={}), 201, JOB),
            (client.delete("/api/lab/schedules/s1"), 200, SCHEDULE),
            (client.get("/api/lab"), 200, STATE),
        ]
        for answer, status, schema in answers:
            assert answer.status_code == status, answer.text
            jsonschema.validate(answer.json(), schema)
        for entry in client.get("/api/lab/audit?limit=500").json()["audit"]:
            jsonschema.validate(entry, AUDIT_ENTRY)
        for plan in client.get("/api/lab/plans").json()["plans"]:
            jsonschema.validate(plan, PLAN)
        assert client.get("/api/lab/jobs/1/log").text == ""
        refusals = [
            (client.get("/api/lab/jobs/99"), 404),
            (client.get("/api/lab/jobs/" + "9" * 30), 404),
            (client.post("/api/lab/jobs/2/cancel", json={}), 409),
            (client.post("/api/lab/jobs/1/move", json={"to": "left"}), 400),
            (client.post("/api/lab/jobs", json={**order, "plan": "../x.yaml"}), 404),
            (client.post("/api/lab/jobs", json={**order, "nice": 1}), 400),
            (client.post("/api/lab/jobs", json={**order, "labels": [1]}), 400),
            (client.post("/api/lab/jobs", json={**order, "set": "duration=1h"}), 400),
            (client.post("/api/lab/jobs", json={"plan": 7}), 400),
            (client.post("/api/lab/schedules", json=order), 400),
            (client.post("/api/lab/schedules", json={**order, "cron": "@daily", "at": "now"}), 400),
            (client.post("/api/lab/schedules", json={**order, "at": "tomorrow"}), 400),
            (client.delete("/api/lab/schedules/s1"), 404),
        ]
        for answer, status in refusals:
            assert (answer.status_code, "error" in answer.json()) == (status, True), answer.text
        bad = client.post("/api/lab/jobs", json={**order, "set": ["duration=never", "phases=[]"]})
        assert bad.status_code == 400
        assert bad.json()["problems"][0] == bad.json()["error"]


ODD: tuple[object, ...] = (
    *(
        None,
        True,
        0,
        -1,
        2**70,
        1e308,
        "",
        " ",
        "é☃\u202e",
        "a" * 3000,
        "\x00",
        "../x",
        "night.yaml",
        "@daily",
        "0 20 * * 1-5",
    ),
    *(
        "99 99 99 99 99",
        "* * * * *",
        "*/0 * * * *",
        "0-70 * * * *",
        "* * * * 1-7/0",
        "UTC",
        "Europe/Vienna",
        "../../etc/passwd",
    ),
    *("2099-01-01T00:00:00Z", "2262-12-31T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59", "now", "up"),
    *(
        [],
        [1],
        ["duration=1h"],
        ["=" * 300],
        ["duration"],
        ["a.b.c=x"],
        ["duration={"],
        ["phases=[{soak: 1h}]"],
        [["x"]],
    ),
    *({}, {"a": "b"}, {"a": 1}, {"A": "b"}, {"testbed": "rack 3"}, {"x": "file:/etc/passwd"}, {"x": {"y": "z"}}),
)
"""What somebody might send for anything."""


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 9))])
def test_nothing_that_is_sent_is_a_defect(own_door: Door, seed: int) -> None:
    """By someone who may do everything: below 500, and one sentence if it is refused; the queue goes on after it."""
    rng = random.Random(seed)
    paths = [one for one in endpoints() if one.path.startswith("/api/lab")]
    keys = ("plan", "labels", "set", "cron", "zone", "at", "reason", "to", "nonsense")
    with own_door.client(OWN) as client:
        for _ in range(200):
            endpoint = rng.choice(paths)
            path = re.sub(r"\{\w+\}", lambda _: rng.choice(["1", "s1", "2", "0", "-1", "x", "9" * 15]), endpoint.path)
            body = {key: rng.choice(ODD) for key in rng.sample(keys, rng.randrange(5))}
            body |= {"plan": "night.yaml"} if rng.random() < 0.6 else {}
            content = json.dumps(body).encode() if rng.random() < 0.9 else b"\xff{"
            words = {
                key: rng.choice(["1", "-1", "x", "9" * 30]) for key in rng.sample(("before", "limit"), rng.randrange(3))
            }
            headers = {"content-type": "application/json"}
            answer = client.request(endpoint.method, path, content=content, params=words, headers=headers)
            assert answer.status_code < 500, (endpoint.method, path, body, answer.text)
            if answer.status_code >= 400:
                assert set(answer.json()) <= {"error", "problems"}
                assert "/" + str(own_door.lab.plans.path).lstrip("/") not in answer.text
    own_door.dispatcher.at_once = 0  # nothing is started
    own_door.dispatcher.step()
    assert {job.order.plan for job in own_door.lab.store.jobs(JobState.QUEUED)} <= {"night.yaml"}


def test_a_viewer_of_runs_without_a_queue_has_none(tmp_path: Path) -> None:
    """As before: no page, no API, and no file of a queue in the folder."""
    record_run(tmp_path / "run")
    with serve(WebPlan(listen="127.0.0.1:0"), Token(OWN), RunFolder(tmp_path)) as served:
        headers = {"authorization": f"Bearer {OWN}"}
        answer = httpx.get(f"{served.url}/api/lab", headers=headers, trust_env=False, timeout=240)
        home = httpx.get(f"{served.url}/", headers=headers, trust_env=False, timeout=240)
    assert answer.json() == {"error": "this server has no queue: start it with soakwatch serve --plans DIR"}
    assert 'href="/lab"' not in home.text
    assert [file.name for file in tmp_path.iterdir()] == ["run"]
