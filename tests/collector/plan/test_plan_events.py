"""Scripted events, hooks and rules that stop a run, as a plan writes them, and how each mistake is reported."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from soakwatch.core.errors import PlanError
from soakwatch.plan import Plan, load_plan, plan_from_text, plan_text
from soakwatch.plan.plan_schema import plan_schema
from soakwatch.runs.mark_event import EventRefusedError, EventRequest, check_ask

HEAD = "targets: {dut: {sources: [local]}}\nphases: [{baseline: 10m}, {stress: 20m}]\n"
FULL = (
    HEAD
    + """\
events:
  - {kind: failover, at: 5m, every: 10m, run: 'ssh dut "request chassis routing-engine master switch"', timeout: 30s}
  - {kind: flap, phase: stress, at: 1m, run: [./flap, "a b"], lasts: 1m, expect: {link.down: 1}}
  - {kind: reload, phase: stress}
hooks:
  - {rule: memory_*, capture: {commands: [show tech], files: [/var/core/*]}, limit: 2 per 1h}
  - {on: [start, end], run: "logger soak"}
  - {on: any, target: dut, webhook: env:WEBHOOK}
  - {on: warn, webhook: {url: "https://chat.example/x", headers: {Authorization: env:TOKEN}, ca: /etc/ca.pem}}
  - {capture: {ssh: {host: 192.0.2.1, user: soak, port: 2222}, commands: [top -b -n1], timeout: 10s}}
stop_on_fail: [hang, reboot]
"""
)


def parsed(text: str) -> Plan:
    """The plan of a text."""
    return plan_from_text(text, "p.yaml")


def test_scripts_and_hooks_arrive_as_they_are_written() -> None:
    """Every key arrives in its unit and type, and what is recorded reads back to the same plan."""
    plan = parsed(FULL)
    failover, flap, reload = plan.events
    assert failover.run == ("ssh", "dut", "request chassis routing-engine master switch")
    assert (failover.at_s, failover.every_s, failover.timeout_s, failover.phase) == (300.0, 600.0, 30.0, None)
    assert (flap.run, flap.phase, flap.at_s, flap.lasts_s) == (("./flap", "a b"), "stress", 60.0, 60.0)
    assert (reload.at_s, reload.run, reload.timeout_s) == (0.0, None, 60.0)
    growth, logger, chat, headed, there = plan.hooks
    assert growth.limit == (2, 3600.0)
    assert growth.about("fail")
    assert not growth.about("warn")
    assert growth.capture is not None
    assert growth.capture.files == ["/var/core/*"]
    assert (logger.run, logger.limit, logger.timeout) == (("logger", "soak"), (5, 600.0), 60.0)
    assert chat.webhook is not None
    assert (chat.webhook.url, chat.about("fail"), chat.about("warn"), chat.about("pass")) == (
        "env:WEBHOOK",
        True,
        True,
        False,
    )
    assert headed.webhook is not None
    assert headed.webhook.headers == {"Authorization": "env:TOKEN"}
    assert there.capture is not None
    assert there.capture.ssh is not None
    assert (there.capture.ssh.port, there.capture.timeout) == (2222, 10.0)
    assert plan.stop_on_fail == {"hang", "reboot"}
    assert plan_from_text(plan_text(plan), "record") == plan
    assert parsed(HEAD + "hooks:\nstop_on_fail:\n").stop_on_fail == frozenset()
    assert "memory_growth" in parsed(HEAD + "stop_on_fail: true\n").stop_on_fail


MISTAKES = {
    "events: [{kind: a, at: 1m, run: 'ssh \"dut'}]": "run: this command cannot be split into words (no closing",
    "events: [{kind: a, at: 1m, run: []}]": 'run: expected a command such as [ssh, dut, "show tech"], found a list',
    "events: [{kind: a, at: 1m, run: 7}]": "found the number 7",
    "events: [{kind: a, at: 1m, timeout: 5s}]": "timeout applies to a command: add run, or remove timeout",
    "events: [{kind: a, at: 1m, every: 10ms}]": "every: '10ms' is out of bounds: at least 1s",
    "events: [{kind: a, at: 1m, every: 1m, lasts: 2m}]": "lasts is longer than every",
    "events: [{kind: a, phase: stres, at: 1m}]": "unknown phase 'stres'; did you mean 'stress'?",
    "events: [{kind: a, phase: soak, at: 1m}]": "the plan has no phase 'soak'; known here: baseline, stress",
    "events: [{kind: a, phase: stress, at: 20m}]": "at: 20m is after the end of stress, 20m",
    "events: [{kind: a, every: 1m}]": "the key 'at' is missing",
    "hooks: [{on: fail}]": "does nothing: add run, webhook or capture",
    "hooks: [{on: fial, run: x}]": "'start', found 'fial'; did you mean 'fail'?",
    "hooks: [{rule: memory_grwth, run: x}]": "unknown rule 'memory_grwth'; did you mean 'memory_growth'?",
    "hooks: [{rule: 'memry_*', run: x}]": "no rule matches 'memry_*'",
    "hooks: [{target: dud, run: x}]": "unknown target 'dud'; did you mean 'dut'?",
    "hooks: [{run: x, limit: 5}]": "limit: expected a number and a time, such as 5 per 10m; found the number 5",
    "hooks: [{run: x, limit: 0 per 10m}]": "limit: '0 per 10m' is out of range",
    "hooks: [{webhook: 'https://hooks.example:x/T0K3N'}]": "webhook: this is not a web address: write https://HOST/PATH",
    "hooks: [{webhook: 'https://me:pw@hooks.example/'}]": "this address contains a password",
    "hooks: [{webhook: {url: 'https://h/', headers: {X: T0K3N}}}]": "a secret must not be written in clear text",
    "hooks: [{capture: {}}]": "captures nothing: add commands, files, or both",
    "hooks: [{capture: {comands: [x]}}]": "unknown key 'comands'; did you mean 'commands'?",
    "hooks: [{capture: {commands: [x], ssh: {user: a}}}]": "the key 'host' is missing",
    "stop_on_fail: [hangs]": "unknown rule 'hangs'; did you mean 'hang'?",
    "stop_on_fail: hang": "stop_on_fail: ",
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.items())
def test_a_mistake_is_reported_with_its_line_and_without_secrets(text: str, message: str) -> None:
    """Each mistake is a sentence that begins with its place in the plan, and repeats no secret."""
    with pytest.raises(PlanError) as caught:
        parsed(HEAD + text)
    problems = caught.value.problems
    assert any(message in problem for problem in problems), problems
    assert all(problem.startswith("p.yaml:") for problem in problems)
    assert not any("T0K3N" in problem or "pw" in problem for problem in problems)


def test_the_schema_knows_the_new_sections() -> None:
    """Editors that hold plans against the schema know events, hooks and stop_on_fail."""
    schema = plan_schema()
    keys, definitions = schema["properties"], schema["$defs"]
    assert isinstance(keys, dict)
    assert isinstance(definitions, dict)
    assert {"hooks", "stop_on_fail", "events"} <= keys.keys()
    assert {"HookPlan", "CapturePlan", "WebhookPlan", "EventPlan"} <= definitions.keys()


def test_whatever_the_new_sections_contain_is_a_plan_or_a_sentence() -> None:
    """Random values of every key: a plan, or sentences that begin with their place; never anything else."""
    chance = random.Random(20)
    words = [
        "5 per 10m",
        "env:X",
        "https://h:99999/",
        "'",
        '"',
        "\0",
        "[]",
        "1m",
        "-1",
        "*",
        "fail",
        "ssh dut",
        "é\ud800",
    ]
    keys = {
        "events": ["kind", "at", "every", "phase", "run", "timeout", "lasts", "within", "expect", "target"],
        "hooks": ["on", "rule", "target", "run", "timeout", "webhook", "capture", "limit"],
    }
    accepted = 0
    for _ in range(300):
        section = chance.choice(list(keys))
        values: dict[str, object] = {"kind": "a", "at": "1m"} if section == "events" else {"run": "true"}
        for _ in range(chance.randrange(1, 3)):
            values[chance.choice(keys[section])] = chance.choice(
                [
                    chance.choice(words),
                    7,
                    None,
                    True,
                    [],
                    ["a", 3],
                    {},
                    {"url": chance.choice(words)},
                    ["x", "y z"],
                    {"commands": [chance.choice(words)], "files": chance.choice(words)},
                ]
            )
        text = HEAD + f"{section}: {json.dumps([values])}\n"
        try:
            accepted += bool(parsed(text).name)
        except PlanError as error:
            assert all(problem.startswith("p.yaml:") for problem in error.problems)  # noqa: PT017
    assert 10 < accepted < 280


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("process_restart", "expect: process_restart is a rule: write process.restart, the kind of event"),
        ("core_dump", "expect: core_dump is a rule: write core.dump, the kind of event"),
        ("growth", "expect: growth is a rule: write a kind of event"),
        ("reboott", "expect: no event has the kind 'reboott'; did you mean 'reboot'?"),
        ("crash", "expect: no event has the kind 'crash'; did you mean 'device.crash'?"),
    ],
)
def test_an_expectation_that_nothing_can_keep_is_refused(tmp_path: Path, kind: str, message: str) -> None:
    """At its place in the plan, and on the command line alike."""
    file = tmp_path / "plan.yaml"
    file.write_text(
        "duration: 1h\ntargets: {fw: {sources: [local]}}\nevents:\n"
        f"  - {{kind: upgrade, at: 5m, expect: {{{kind}: 1}}}}\n  - {{kind: flap, at: 9m, expect: {{upgrade: 1}}}}\n",
        encoding="utf-8",
    )
    with pytest.raises(PlanError) as error:
        load_plan(file)
    assert f"{file}:4:38: {message}" in error.value.problems[0]
    assert len(error.value.problems) == 1
    with pytest.raises(EventRefusedError, match=re.escape(message)):
        check_ask(EventRequest("mark", "upgrade", expect={kind: 1}))
