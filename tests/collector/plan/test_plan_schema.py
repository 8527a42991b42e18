"""The published schema of plans holds for good plans, and refuses bad ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from soakwatch.core.registry import PluginFolder, Registry
from soakwatch.core.yaml import parse
from soakwatch.plan import plan_from_text
from soakwatch.plan.commented_plan import draft
from soakwatch.plan.plan_schema import plan_schema

TINY = Registry(
    PluginFolder("plugin_folders.pollers", "poller"),
    PluginFolder("plugin_folders.loads", "load"),
    PluginFolder("plugin_folders.detectors", "rule"),
)
SHORT = "duration: 1h\ntargets: {dut: {sources: [probe]}}\n"
GOOD = [
    SHORT,
    SHORT + "rules:\nwatch:\nevents:\n",
    SHORT + "rules: {slow_drift: {tolerance: 2%, hold: 1m, floor: 1MiB, sigmas: 3, required: false}}",
    SHORT + "rules: {slow_drift: false}",
    SHORT + "hooks: [{webhook: env:HOOK}, {on: end, webhook: {url: 'https://h/'}}]\nnotify: [env:TO, {to: file:/x}]",
    SHORT.replace("[probe]", "[probe], drill: {processes: [bgpd, {name: a, start: ./a}]}"),
    SHORT + "labels: {release: '7.2', number: 3, build: {command: [cat, x]}}",
    SHORT + "tenants: {red: {target: dut, port: [0, 1]}, blue: [{port: 2}, {interface: eth*}]}",
    SHORT + "watch: {processes: [a, {pid: 1, name: b}, {cmdline: x}], interfaces: all}",
    SHORT + 'watch: {interfaces: [eth0, "ens*"]}',
    SHORT + "events: [{kind: failover, at: 10m, within: 5m, expect: {reboot: 1}}]",
    SHORT + "start: 2026-11-27T20:00:00Z\nsinks: []\nname: fw-7.2",
    SHORT + "sinks: [{influxdb: {url: 'http://h:8086', org: o, bucket: b, token: env:T, timeout: 10s}}]",
    (
        "phases: [{baseline: 30m}, {soak: 22h}]\n"
        "targets: {dut: {role: dut, sources: [probe, {locked: {host: a, password: env:X, interval: 200ms}}]},"
        " tg: {role: generator, sources: [{pump: }]}}"
    ),
]
BAD = [
    "duration: 1h",
    "targets: {dut: {sources: [probe]}}",
    SHORT + "labels: {Release: '7.2'}",
    SHORT + "tenants: {red: {prt: 0}, blue: {port: 1}}",
    SHORT + "tenants: {red: {port: 0}}",
    "duration: 10\ntargets: {dut: {sources: [probe]}}",
    "duration: 1h\ntargets: {}",
    "duration: 1h\ntargets: {dut: {sources: []}}",
    "duration: 1h\ntargets: {dut: {sources: [prob]}}",
    "duration: 1h\ntargets: {dut: {role: dud, sources: [probe]}}",
    "duration: 1h\ntargets: {dut: {sources: [{probe: {intervall: 1s}}]}}",
    "duration: 1h\ntargets: {dut: {sources: [{probe: {interval: 1}}]}}",
    "duration: 1h\ntargets: {dut: {sources: [{probe: {}, pump: {}}]}}",
    "duration: 1h\ntargets: {dut: {sources: [{locked: {host: a, password: hunter2}}]}}",
    SHORT + "rules: {slow_drft: {}}",
    SHORT + "rules: {slow_drift: {tolerence: 5%}}",
    SHORT + "rules: {slow_drift: {tolerance: 5s}}",
    SHORT + "rules: {slow_drift: {hold: 10}}",
    SHORT + "watch: {process: [a]}",
    SHORT + "watch: {processes: [{pid: x}]}",
    SHORT + "sinks: [influxdb]",
    SHORT + "phases: [{sok: 1h}]",
    SHORT + "extra: 1",
]


@pytest.fixture(autouse=True)
def _tiny_house(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the sources and rules beside this file importable."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    yield
    for name in [name for name in sys.modules if name.startswith("plugin_folders")]:
        del sys.modules[name]


def test_the_schema_takes_good_plans_and_refuses_bad_ones() -> None:
    """What the parser takes the schema takes; what lacks a key, has one too many, or a wrong unit, it refuses."""
    schema = plan_schema(TINY)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for text in GOOD:
        plan_from_text(text, "p.yaml", TINY)
        assert [error.message for error in validator.iter_errors(parse(text, "p.yaml").data)] == [], text
    for text in BAD:
        assert not validator.is_valid(parse(text, "p.yaml").data), text


def test_the_schema_of_what_is_installed_takes_the_drafted_plan() -> None:
    """The schema made of every installed source and rule is a schema, and the plan that init writes is valid."""
    schema = plan_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    text = draft("night", "24h", "1s", ("nginx", "pid:12", "cmdline:java .*broker", "on"))
    plan_from_text(text, "plan.yaml")
    jsonschema.Draft202012Validator(schema).validate(parse(text, "plan.yaml").data)
    asked = "\n".join(
        line.removeprefix("# ") if line.startswith(("# phases", "# start", "# events", "#   - ")) else line
        for line in text.splitlines()
    ).replace("\n  - {kind", "\n  - {kind")
    plan = plan_from_text(asked, "plan.yaml")
    assert len(plan.phases) == 4
    assert plan.events[0].kind == "failover"
    assert plan.start is not None
