"""Hooks: what they receive, how often, and what happens to a hook that fails."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import jsonschema
import pytest
from tests.collector.engine.hooks.hooks_kit import FAIL, T0, finding, noting, plan, posts

from soakwatch.core.errors import PlanError
from soakwatch.engine.hooks import webhook
from soakwatch.engine.hooks.hooks import Hooks, StormLimit
from soakwatch.engine.hooks.setup import check_outside, hooks_of
from soakwatch.engine.hooks.trigger import HookFailedError, Trigger
from soakwatch.engine.hooks.webhook import post
from soakwatch.judge.verdict import fold
from soakwatch.plan.hook import WebhookPlan
from soakwatch.record import Artifact, RecordView, StoredEvent
from soakwatch.record.findings import identity_of
from soakwatch.report.json import finding_document, verdict_schema
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.window import Window

Action = Callable[[Hooks], Awaitable[None]]


def hooked(folder: Path, text: str, action: Action, targets: str = "{dut: {sources: [local]}}") -> list[StoredEvent]:
    """Do something with the hooks of a plan, wait for them, and give the events that the record then has."""
    with noting(folder) as (notes, record):

        async def main() -> None:
            hooks = hooks_of(plan(text, targets), folder, notes, lambda: T0)
            await action(hooks)
            await hooks.finish()

        asyncio.run(main())
        return list(record.events_after(0))


def files(folder: Path) -> dict[str, Artifact]:
    """The files of a record by name."""
    with RecordView.open(folder) as view:
        return {artifact.name: artifact for artifact in view.artifacts()}


async def heard(hooks: Hooks, *judgings: Sequence[Finding]) -> None:
    """The findings of successive evaluations."""
    for judging in judgings:
        hooks.on_findings(judging)


def test_a_command_finds_the_finding_in_its_environment_and_nowhere_else(tmp_path: Path) -> None:
    """Rule, target, object, outcome and reason are variables; no shell ever sees them; the output is kept."""
    script = "import os; [print(k, '=', v) for k, v in sorted(os.environ.items()) if k.startswith('SOAKWATCH_')]"
    events = hooked(
        tmp_path / "run", f'hooks: [{{run: ["{sys.executable}", -c, "{script}"]}}]', lambda h: heard(h, [FAIL])
    )
    assert events == []
    ((name, kept),) = files(tmp_path / "run").items()
    assert name == "hooks/20231114T221320.000Z-001-fail-memory_growth-1.txt"
    assert (kept.kind, kept.about, kept.time_ns) == ("hook", "fail memory_growth dut process=bgpd", T0)
    reported = dict(line.split(" = ", 1) for line in kept.data.decode().splitlines())
    assert reported == {
        "SOAKWATCH_METRIC": "process.memory.usage",
        "SOAKWATCH_NAME": "p",
        "SOAKWATCH_OBJECT": "process=bgpd",
        "SOAKWATCH_ON": "fail",
        "SOAKWATCH_OUTCOME": "fail",
        "SOAKWATCH_REASON": FAIL.sentence,
        "SOAKWATCH_RULE": "memory_growth",
        "SOAKWATCH_RUN": str(tmp_path / "run"),
        "SOAKWATCH_TARGET": "dut",
    }


def test_a_hook_receives_the_findings_it_asked_for_once(tmp_path: Path) -> None:
    """By outcome, rule and target; again only if it was gone meanwhile."""
    text = (
        "hooks: [{run: 'echo a'}, {on: warn, run: 'echo b'}, {on: any, rule: mem*, run: 'echo c'},"
        " {target: tg, run: 'echo d'}]"
    )
    targets = "{dut: {sources: [local]}, tg: {role: generator, sources: [local]}}"
    warn = finding("cpu_spike", Outcome.WARN)
    there, other = finding(target="tg", object_="process=x"), finding("hang", Outcome.INCONCLUSIVE)
    hooked(
        tmp_path / "run",
        text,
        lambda h: heard(h, [FAIL, warn, other], [FAIL, warn], [FAIL, there], [there], [FAIL]),
        targets,
    )
    printed: dict[str, int] = {}
    for kept in files(tmp_path / "run").values():
        key = f"{kept.data.decode().strip()} {kept.about}"
        printed[key] = printed.get(key, 0) + 1
    assert printed == {
        "a fail memory_growth dut process=bgpd": 2,
        "a fail memory_growth tg process=x": 1,
        "b warn cpu_spike dut process=bgpd": 1,
        "c fail memory_growth dut process=bgpd": 2,
        "c fail memory_growth tg process=x": 1,
        "d fail memory_growth tg process=x": 1,
    }


def test_what_was_posted_before_a_crash_is_not_posted_again(tmp_path: Path) -> None:
    """A resumed run knows what was said before its monitor died."""
    with noting(tmp_path / "run") as (notes, _):

        async def main() -> Hooks:
            reported = {identity_of(FAIL)}
            hooks = hooks_of(plan("hooks: [{run: 'echo a'}]"), tmp_path, notes, lambda: T0, reported)
            hooks.on_findings([FAIL, finding("hang")])
            await hooks.finish()
            return hooks

        hooks = asyncio.run(main())
        verdict = fold("p", Window(T0, T0 + 1), {"dut": "dut"}, [FAIL, finding("hang")], (), ())
        asyncio.run(hooks.conclude(verdict))  # judging comes after the loop of the run
    assert [kept.about for kept in files(tmp_path / "run").values()] == ["fail hang dut process=bgpd"]


def test_a_hook_that_fails_is_an_event_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit codes, missing programs, time-outs: one sentence each, without secrets; the next hook is not delayed."""
    monkeypatch.setenv("WEBHOOK", "https://hooks.example/T0K3N-OF-MINE")
    text = (
        "hooks: [{run: [sh, -c, 'echo posting to $WEBHOOK >&2; exit 4']}, {run: /no/such/program},"
        " {run: 'sleep 60', timeout: 1s}, {on: end, webhook: env:WEBHOOK}, {run: 'true'}]"
    )
    events = hooked(tmp_path / "run", text, lambda h: heard(h, [FAIL]))
    assert {event.event.kind for event in events} == {"hook.failed"}
    assert sorted((e.event.detail["hook"], e.event.detail["reason"]) for e in events) == [
        ("1", "sh: exit code 4: posting to ***"),
        ("2", "/no/such/program: cannot start /no/such/program: No such file or directory"),
        ("3", "sleep: it was killed: it did not end within 1 s"),
    ]
    assert not any(b"T0K3N" in kept.data for kept in files(tmp_path / "run").values())


def test_a_webhook_gets_the_finding_as_the_verdict_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The body has the keys of a finding of verdict.json; headers come from secrets; a bad moment is tried again."""
    monkeypatch.setattr(webhook, "PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(webhook.post, "__defaults__", ((0.0, 0.0),))
    monkeypatch.setenv("BEARER", "Bearer abc")
    with posts() as server:
        monkeypatch.setenv("WEBHOOK", f"{server.address}/T0K3N")
        server.statuses[:] = [503, 0, 204]
        text = (
            "hooks: [{webhook: {url: env:WEBHOOK, headers: {authorization: env:BEARER}}},"
            " {on: [start, end], webhook: env:WEBHOOK}]"
        )
        assert hooked(tmp_path / "run", text, lambda h: heard(h, [FAIL])) == []
        assert len(server.bodies) == 3
        assert server.bodies[0] == {"event": "finding", "run": "p", **finding_document(FAIL)}
        schema = json.loads(verdict_schema())
        keys = (
            {"$ref": "#/$defs/finding"}
            if "finding" in schema.get("$defs", {})
            else schema["properties"]["findings"]["items"]
        )
        posted = {key: value for key, value in server.bodies[0].items() if key not in {"event", "run"}}
        jsonschema.validate(posted, {**keys, "$defs": schema.get("$defs", {})})
        assert {artifact["authorization"] for artifact in server.headers} == {"Bearer abc"}
        assert set(server.paths) == {"/T0K3N"}
        verdict = fold("p", Window(T0, T0 + 1), {"dut": "dut"}, [FAIL], (), ())

        async def whole(hooks: Hooks) -> None:
            hooks.start()
            hooks.on_findings([FAIL])
            await hooks.finish()
            await hooks.conclude(verdict)

        server.bodies.clear()
        hooked(tmp_path / "next", text, whole)
        start, finding_post, end = (
            server.bodies
            if server.bodies[0]["event"] == "start"
            else (server.bodies[1], server.bodies[0], server.bodies[2])
        )
        assert start == {"event": "start", "run": "p"}
        assert finding_post["rule"] == "memory_growth"
        assert (end["event"], end["verdict"], end["findings"]) == (
            "end",
            "fail",
            {"fail": 1, "inconclusive": 0, "warn": 0, "pass": 0, "not applicable": 0},
        )
        server.statuses[:] = [500]
        server.bodies.clear()
        (event,) = hooked(tmp_path / "third", text, lambda h: heard(h, [FAIL]))
        assert len(server.bodies) == 3
        assert event.event.detail["reason"] == f"webhook: {server.address} answers with the status 500"
        server.statuses[:] = [302]
        server.bodies.clear()
        (event,) = hooked(tmp_path / "fourth", text, lambda h: heard(h, [FAIL]))
        assert (len(server.bodies), "status 302" in event.event.detail["reason"]) == (1, True)


def test_what_the_verdict_adds_is_posted_at_the_end(tmp_path: Path) -> None:
    """A failure that only the whole run shows sets hooks off as well; what was reported live is not repeated."""
    late = finding("growth")
    verdict = fold("p", Window(T0, T0 + 1), {"dut": "dut"}, [FAIL, late], (), ())

    async def action(hooks: Hooks) -> None:
        hooks.on_findings([FAIL])
        await hooks.finish()
        await hooks.conclude(verdict)

    hooked(
        tmp_path / "run", "hooks: [{on: [fail, end], run: [sh, -c, 'echo $SOAKWATCH_RULE $SOAKWATCH_OUTCOME']}]", action
    )
    reported = sorted(kept.data.decode().strip() for kept in files(tmp_path / "run").values())
    assert reported == ["fail", "growth fail", "memory_growth fail"]


def test_a_storm_is_counted_and_posted_once(tmp_path: Path) -> None:
    """Beyond the limit nothing is done one by one; at the end, or when the limit opens, one call tells how many."""
    storm = [finding("drops", object_=f"interface=e{i}") for i in range(40)] + [finding("hang")]
    script = "echo $SOAKWATCH_ON $SOAKWATCH_RULE $SOAKWATCH_HELD_BACK $SOAKWATCH_REASON"
    text = f"hooks: [{{limit: 3 per 10m, run: [sh, -c, '{script}']}}]"
    hooked(tmp_path / "run", text, lambda h: heard(h, storm))
    printed = sorted(kept.data.decode().strip() for kept in files(tmp_path / "run").values())
    assert printed == [
        *["fail drops bgpd grows by 3 MiB/h; $(touch x) `x`"] * 3,
        "held-back 38 38 findings over the limit, not reported one by one: drops (37), hang (1)",
    ]


def test_the_limit_opens_again_when_its_time_has_passed() -> None:
    """So many in any stretch of that length, on a clock of its own."""
    now = [0.0]
    limit = StormLimit(2, 10.0, lambda: now[0])
    assert [limit.take("a"), limit.take("a"), limit.take("b")] == [True, True, False]
    assert (limit.opens_in(), limit.holds) == (10.0, True)
    now[0] = 4.0
    assert limit.opens_in() == 6.0
    now[0] = 10.0
    assert limit.release() == {"b": 1}
    assert not limit.holds
    assert [limit.take("a"), limit.take("a")] == [True, False]


def test_what_is_held_back_is_posted_when_the_limit_allows(tmp_path: Path) -> None:
    """Nobody waits for the end of the run to learn of a storm."""

    async def action(hooks: Hooks) -> None:
        hooks.on_findings([FAIL, finding("hang")])
        async with asyncio.timeout(200):
            while len(files(tmp_path / "run")) < 2:
                await asyncio.sleep(0.05)

    hooked(tmp_path / "run", "hooks: [{limit: 1 per 1s, run: [sh, -c, 'echo $SOAKWATCH_HELD_BACK']}]", action)
    assert sorted(kept.data for kept in files(tmp_path / "run").values()) == [b"\n", b"1\n"]


def test_the_end_of_the_run_waits_for_hooks_but_not_for_ever(tmp_path: Path) -> None:
    """What was set off just before the end is done; what takes too long is killed, and reported."""
    with noting(tmp_path / "run") as (notes, record):

        async def main() -> None:
            hooks = hooks_of(plan("hooks: [{run: 'sleep 600', timeout: 1h}]"), tmp_path, notes, lambda: T0)
            hooks.on_findings([FAIL, finding("hang")])
            await hooks.finish(0.3)

        asyncio.run(main())
        reasons = [stored.event.detail["reason"] for stored in record.events_after(0)]
    assert reasons == [
        "sleep: it was killed: the run was over",
        "the run was over: 2 queued actions were given up",
    ]


def test_what_is_wrong_outside_of_the_plan_is_reported_before_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Programs that are missing, secrets that are not there or no address: every sentence at once."""
    monkeypatch.delenv("NOT_THERE", raising=False)
    monkeypatch.setenv("NO_URL", "T0K3N")
    text = (
        "events: [{kind: failover, at: 1m, run: [no-such-program, x]}, {kind: a, at: 1m, run: [sh]}]\n"
        "hooks: [{run: nothing-here}, {webhook: env:NOT_THERE}, {webhook: env:NO_URL},"
        " {webhook: {url: 'https://h/', ca: /no/file}}, {run: 'true', webhook: 'http://127.0.0.1/'}]"
    )
    with pytest.raises(PlanError) as caught:
        check_outside(plan(text))
    missing = "run: program {} not found: install it, or write its full path"
    assert caught.value.problems == (
        f"p.yaml: events, number 1 (failover): {missing.format(repr('no-such-program'))}",
        f"p.yaml: hooks, number 1: {missing.format(repr('nothing-here'))}",
        "p.yaml: hooks, number 2: webhook: the environment variable NOT_THERE is not set: export it before the run",
        "p.yaml: hooks, number 3: webhook: the secret env:NO_URL does not hold an address such as https://HOST/PATH",
        "p.yaml: hooks, number 4: webhook: the CA bundle /no/file cannot be used: No such file or directory",
    )


@pytest.mark.parametrize(
    ("address", "reported"),
    [
        ("http://127.0.0.1:1/T0K3N", "http://127.0.0.1:1 refuses the connection: nothing listens on that port"),
        ("https://127.0.0.1:1/T0K3N", "https://127.0.0.1:1 refuses the connection: nothing listens on that port"),
    ],
)
def test_a_webhook_that_does_not_answer_is_reported_without_its_path(address: str, reported: str) -> None:
    """The path of a webhook is its password: no sentence has it."""
    with pytest.raises(HookFailedError) as caught:
        asyncio.run(post(WebhookPlan.model_validate({"url": address}), {}, (0.0,)))
    assert str(caught.value) == reported


def test_a_webhook_posts_to_nobody_whose_certificate_is_not_trusted(tmp_path: Path) -> None:
    """Nothing is sent to a server with a strange certificate; with its authority in ``ca`` it is."""
    file = tmp_path / "server.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=127.0.0.1",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            file,
            "-out",
            tmp_path / "ca",
        ],
        check=True,
        capture_output=True,
    )
    file.write_bytes(file.read_bytes() + (tmp_path / "ca").read_bytes())
    with posts(file) as server:
        planned = {"url": f"{server.address}/T0K3N"}
        with pytest.raises(HookFailedError) as caught:
            asyncio.run(post(WebhookPlan.model_validate(planned), {}, (0.0,)))
        assert str(caught.value) == f"{server.address} presents a certificate that is not trusted: set ca"
        assert server.bodies == []
        asyncio.run(post(WebhookPlan.model_validate({**planned, "ca": str(tmp_path / "ca")}), {"a": 1}, ()))
        assert server.bodies == [{"a": 1}]


def test_occasions_hold_what_a_shell_or_json_would_stumble_over() -> None:
    """Zero bytes, lone surrogates and numbers that are none pass through variables and JSON."""
    odd = Finding("r", 1, Outcome.FAIL, "d\0t", "m", "\udcff", Window(0, 1), "d", "x" * 9999, 1, measured=float("nan"))
    reported = Trigger("fail", "run", 1, odd)
    environment = reported.environment()
    assert environment["SOAKWATCH_TARGET"] == "d t"
    assert environment["SOAKWATCH_OBJECT"] == "\\udcff"
    assert len(environment["SOAKWATCH_REASON"]) == 2000
    assert reported.document()["measured"] is None
