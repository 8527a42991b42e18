"""The OpenAPI text: valid, whole, and true of every answer and every refusal."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import httpx
import pytest
from jsonschema import Draft202012Validator, FormatChecker
from openapi_spec_validator import OpenAPIV31SpecValidator

from soakwatch.record import Artifact, Record
from soakwatch.web.endpoint import JSON, May
from soakwatch.web.routes import endpoints
from soakwatch.web.routes.openapi import document
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.window import Window
from soakwatch_testing.served import ServedRun

Document = dict[str, object]
UPTIME = ["dut", "system.uptime", ""]
WORDS: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("GET", "/api/runs/{run}/series/data"): {"metric": "system.uptime", "points": "100"},
    ("GET", "/api/runs/{run}/series/data.csv"): {"metric": "system.uptime"},
    ("GET", "/api/runs/{run}/artifacts/file"): {"name": "hooks/dump.txt"},
    ("GET", "/metrics"): {"run": "last"},
}
BODIES: Mapping[str, Mapping[str, object]] = {
    "/api/runs/{run}/series/data": {"series": [UPTIME], "begin": None, "end": 1e13},
    "/api/runs/{run}/events": {"kind": "failover", "begin": "now", "expect": {"reboot": 1}, "labels": {"a": "b"}},
    "/api/runs/{run}/findings/acknowledge": {
        "rule": "cpu_spike",
        "target": "dut",
        "metric": "system.uptime",
        "object": "",
        "reason": "known",
    },
    "/api/runs/{run}/stop": {"reason": "enough"},
    "/api/lab/jobs": {"plan": "night.yaml", "labels": {"release": "7.2"}, "set": ["duration=2h"]},
    "/api/lab/jobs/{job}/cancel": {"reason": "the rack is needed"},
    "/api/lab/jobs/{job}/move": {"to": "up"},
    "/api/lab/jobs/{job}/resume": {},
    "/api/lab/schedules": {"plan": "night.yaml", "cron": "0 20 * * mon-fri", "zone": "Europe/Vienna"},
    "/api/lab/schedules/{schedule}/enable": {},
    "/api/lab/schedules/{schedule}/disable": {},
    "/api/lab/schedules/{schedule}/start": {},
}


@pytest.fixture
def full(run: Path) -> Path:
    """The run with something of everything in its record."""
    finding = Finding(
        "cpu_spike", 1, Outcome.FAIL, "dut", "system.uptime", "", Window(0, 10**9), "defined", "reason", 10
    )
    with Record.open(run) as record:
        record.put_findings([finding], live=True, judged_ns=10**9)
        record.keep_artifact(Artifact("hooks/dump.txt", "text/html", b"<script>alert(1)</script>", 10**18, "hook", "a"))
        record.add_event("dut", Event("reboot", "dut", "", 10**18, None, {"why": "x"}), "probe")
    return run


@pytest.fixture
def going_on(full: Path) -> Iterator[Path]:
    """The same while it is being written."""
    with Record.open(full):
        yield full


@pytest.fixture
def asker(served: ServedRun) -> Iterator[httpx.Client]:
    """Someone who has the token and asks from the root."""
    assert served.token_file is not None
    headers = {"authorization": f"Bearer {served.token_file.read_text(encoding='ascii').strip()}"}
    with httpx.Client(base_url=served.url, headers=headers, trust_env=False, verify=False, timeout=240) as connection:
        yield connection


@pytest.fixture(scope="module")
def whole() -> Document:
    """The document, as a client reads it."""
    read: Document = json.loads(json.dumps(document(endpoints())))
    return read


def part(of: object, *keys: str) -> Mapping[str, object]:
    """An object within the document."""
    for key in keys:
        assert isinstance(of, dict), keys
        of = of[key]
    assert isinstance(of, dict), keys
    return of


def check(whole: Document, method: str, path: str, answer: httpx.Response) -> None:
    """An answer is one that the document declares: its status, its kind, its content."""
    declared = part(whole, "paths", path, method.lower(), "responses")
    status = str(answer.status_code)
    assert status in declared or not answer.is_success, f"{method} {path} answers {status}"
    content = part(declared.get(status, declared["default"]), "content")
    media = answer.headers["content-type"].partition(";")[0]
    assert media in content, f"{method} {path} answers {status} as {media}"
    if media == JSON:
        schema = {**part(content, JSON, "schema"), "components": whole["components"]}
        errors = list(Draft202012Validator(schema, format_checker=FormatChecker()).iter_errors(answer.json()))
        assert not errors, f"{method} {path} {status}: {errors[0].message}"


def test_it_is_valid_and_holds_every_endpoint(whole: Document) -> None:
    """By the specification's own schema; pages for people and their files are not in it."""
    OpenAPIV31SpecValidator(whole).validate()
    shelf = {
        (endpoint.method.lower(), endpoint.path)
        for endpoint in endpoints()
        if endpoint.path.startswith(("/api/", "/metrics"))
    }
    described = {(method, path) for path, methods in part(whole, "paths").items() for method in part(methods)}
    assert described == shelf
    assert len(shelf) > 15
    names = [part(whole, "paths", path, method)["operationId"] for method, path in shelf]
    assert len(set(names)) == len(names)


def test_every_schema_is_one(whole: Document) -> None:
    """Of what is sent and what is answered; every answer as JSON has a schema."""
    for endpoint in endpoints():
        for schema in (endpoint.sends, endpoint.gives):
            if schema is not None:
                Draft202012Validator.check_schema(schema)
        if endpoint.media == JSON and endpoint.path.startswith("/api/"):
            assert endpoint.gives, f"{endpoint.method} {endpoint.path} does not say what it gives"
        assert endpoint.method != "POST" or endpoint.sends is not None, f"{endpoint.path} does not say what is sent"
    assert part(whole, "components", "schemas")["Error"]


@pytest.mark.parametrize("goes_on", [False, True], ids=["over", "running"])
def test_every_answer_is_as_declared(
    asker: httpx.Client, whole: Document, full: Path, request: pytest.FixtureRequest, *, goes_on: bool
) -> None:
    """Each endpoint is asked; what it answers fits, also where it refuses."""
    assert full.is_dir()
    if goes_on:
        request.getfixturevalue("going_on")
    good = 0
    for endpoint in endpoints():
        if not endpoint.path.startswith(("/api/", "/metrics")) or endpoint.method == "DELETE":
            continue
        assert endpoint.method == "GET" or endpoint.path in BODIES, f"{endpoint.path} has no example here"
        body = BODIES[endpoint.path] if endpoint.method == "POST" else None
        if body is not None and endpoint.sends is not None:
            Draft202012Validator(endpoint.sends).validate(body)
        answer = asker.request(
            endpoint.method,
            endpoint.path.replace("{run}", "last"),
            json=body,
            params=WORDS.get((endpoint.method, endpoint.path)),
        )
        check(whole, endpoint.method, endpoint.path, answer)
        good += answer.is_success
    assert good >= 14


def test_every_refusal_is_as_declared(asker: httpx.Client, served: ServedRun, whole: Document, run: Path) -> None:
    """Without a token, of a run that is not there, with words and bodies that make no sense."""
    assert run.is_dir()
    rng = random.Random(5)
    seen = set()
    for endpoint in endpoints():
        if not endpoint.path.startswith(("/api/", "/metrics")):
            continue
        path = endpoint.path.replace("{run}", "last")
        answers = [
            asker.request(
                endpoint.method, endpoint.path.replace("{run}", "moon"), json={} if endpoint.method == "POST" else None
            )
        ]
        if endpoint.may > May.NOTHING:
            answers.append(
                httpx.request(endpoint.method, f"{served.url}{path}", trust_env=False, verify=False, timeout=240)
            )
            assert answers[-1].status_code == 401
        if endpoint.params:
            odd = {param.name: rng.choice(["-1", "no", "[", "☃"]) for param in endpoint.params}
            answers.append(asker.request(endpoint.method, path, params=odd))
        if endpoint.method == "POST":
            odd_bodies: tuple[object, ...] = ([], {"": 0}, {"kind": 3, "series": 4, "rule": [], "reason": {}})
            answers += [asker.post(path, json=body) for body in odd_bodies]
            answers.append(asker.post(path, content=b"{}"))
            answers.append(asker.post(path, content=b" " * 70_000, headers={"content-type": JSON}))
            assert [answer.status_code for answer in answers[-2:]] == [415, 413]
        for answer in answers:
            if not answer.is_success:
                check(whole, endpoint.method, endpoint.path, answer)
                seen.add(answer.status_code)
    assert {400, 401, 404, 413, 415} <= seen


def test_a_browser_saves_artifacts_and_opens_none(asker: httpx.Client, full: Path) -> None:
    """Whatever they say that they are; under the last part of their names, and none but those of the record."""
    (listed,) = asker.get("/api/runs/last/artifacts").json()["artifacts"]
    assert (listed["name"], listed["media"], listed["size"], listed["kind"]) == (
        "hooks/dump.txt",
        "text/html",
        25,
        "hook",
    )
    answer = asker.get("/api/runs/last/artifacts/file", params={"name": listed["name"]})
    assert answer.content == b"<script>alert(1)</script>"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == "attachment; filename=\"dump.txt\"; filename*=UTF-8''dump.txt"
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    for name in ("web.token", "../web.token", str(full / "web.token"), "hooks/dump.txt\x00", "\ud7ff"):
        assert asker.get("/api/runs/last/artifacts/file", params={"name": name}).status_code == 404


def test_the_verdict_of_a_run_that_goes_on_is_never_a_pass(asker: httpx.Client, going_on: Path) -> None:
    """A failure is one already; without it the run is inconclusive, and the reason says that it goes on."""
    assert going_on.is_dir()
    verdict = asker.get("/api/runs/last/verdict").json()
    assert (verdict["verdict"], verdict["preliminary"]) == ("fail", True)
    assert verdict["reason"].startswith("still running, ")
    assert [finding["rule"] for finding in verdict["findings"]] == ["cpu_spike"]


def test_the_verdict_without_a_failure_is_open(asker: httpx.Client, run: Path) -> None:
    """Nothing was judged, and nobody goes on."""
    with Record.open(run) as record:
        record.put_findings(
            [Finding("cpu_spike", 1, Outcome.PASS, "dut", "system.uptime", "", Window(0, 10**9), "d", "r", 10)],
            live=True,
            judged_ns=10**9,
        )
    verdict = asker.get("/api/runs/last/verdict").json()
    assert verdict["verdict"] == "inconclusive"
    assert verdict["reason"].startswith("the monitor ended without a verdict; so far: ")


def test_what_was_written_is_served_as_it_is(asker: httpx.Client, run: Path) -> None:
    """verdict.json byte for byte, else the verdict that the record holds; the report can run and reach nothing."""
    assert asker.get("/api/runs/last/report").status_code == 404
    with Record.open(run) as record:
        record.set_meta("verdict", "pass")
        record.set_meta("reason", "all is well")
        record.set_meta("ended_ns", "5")
    verdict = asker.get("/api/runs/last/verdict").json()
    assert (verdict["verdict"], verdict["reason"]) == ("pass", "all is well")
    (run / "verdict.json").write_text('{"written": true}\n')
    assert asker.get("/api/runs/last/verdict").text == '{"written": true}\n'
    with (run / "verdict.json").open("ab") as file:
        file.truncate(80 << 20)
    assert asker.get("/api/runs/last/verdict").json()["reason"] == "all is well", "of a file too large to be one"
    (run / "report.html").write_text("<!DOCTYPE html><title>é</title>")
    answer = asker.get("/api/runs/last/report")
    assert (answer.status_code, answer.text) == (200, "<!DOCTYPE html><title>é</title>")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "sandbox allow-scripts" in policy
    assert "allow-same-origin" not in policy
    assert "default-src 'none'" in policy


@pytest.mark.parametrize("goes_on", [False, True])
def test_the_health_of_a_run(asker: httpx.Client, request: pytest.FixtureRequest, full: Path, *, goes_on: bool) -> None:
    """In one word; the record of this one ends now, so that it is not behind yet."""
    assert full.is_dir()
    if goes_on:
        request.getfixturevalue("going_on")
    health = asker.get("/api/runs/last/health").json()
    assert health["status"] in ({"ok", "degraded"} if goes_on else {"over"})
    assert (health["behind_s"] is None) is not goes_on
    assert [source["source"] for source in health["sources"]] == ["dut/local"]


def test_the_command_prints_it(soakwatch: Callable[..., subprocess.CompletedProcess[str]], whole: Document) -> None:
    """The same text as the server's."""
    done = soakwatch("schema", "api")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == whole
