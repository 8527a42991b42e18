"""Plans for many devices: defaults, ranges, ``host``, extension keys, ``--set``; each mistake with its place."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml
from tests.collector.plan_validator import plan_validator
from tests.commands import Command

from soakwatch.core.errors import PlanError
from soakwatch.plan import Plan, load_plan, plan_from_text
from soakwatch.record import RecordView

FLEET = """\
duration: 2h
x-lab: {rack: 3}
defaults:
  watch: {interfaces: [eth0]}
  sources: [snmp, icmp]
  snmp: {community: env:COMMUNITY, version: 2c, interval: 10s}
targets:
  fw[08-10,12]: {host: "10.0.0.[8-10,12]"}
  core:
    host: core.lab
    sources: [{snmp: {interval: 1s}}]
  dns: {sources: [{tcp: {host: "{target}.lab", port: 53}}]}
"""


def _sources(plan: Plan) -> dict[str, list[tuple[str, str]]]:
    return {
        target.name: [(source.poller, source.config.model_dump().get("host", "")) for source in target.sources]
        for target in plan.targets
    }


def test_targets_are_written_out() -> None:
    plan = plan_from_text(FLEET, "p.yaml")
    assert _sources(plan) == {
        **{f"fw{n:02}": [("snmp", f"10.0.0.{n}"), ("icmp", f"10.0.0.{n}")] for n in (8, 9, 10, 12)},
        "core": [("snmp", "core.lab")],
        "dns": [("tcp", "dns.lab")],
    }
    paces = {target.name: target.sources[0].config.interval for target in plan.targets}
    assert paces == {"fw08": 10.0, "fw09": 10.0, "fw10": 10.0, "fw12": 10.0, "core": 1.0, "dns": 1.0}
    assert {target.interfaces for target in plan.targets} == {("eth0",)}


def test_what_goes_into_the_record_is_the_plan_that_is_written_out() -> None:
    """It reads back to an equal plan, without anything that had to be written out."""
    plan = plan_from_text(FLEET, "p.yaml")
    assert "defaults" not in plan.text
    assert "x-lab" not in plan.text
    again = plan_from_text(plan.text, "record")
    assert again.targets == plan.targets
    assert again.text == plan.text


def test_the_schema_takes_the_short_forms() -> None:
    document = yaml.safe_load(FLEET)
    plan_validator().validate(document)
    document["defaults"]["snpm"] = {}
    with pytest.raises(jsonschema.ValidationError):
        plan_validator().validate(document)


@pytest.mark.parametrize(
    ("targets", "sentence"),
    [
        ("  fw[3-1]: {sources: [local]}", "p.yaml:3:3: [3-1] counts down: write [1-3]"),
        (
            "  fw[1-10001]: {sources: [local]}",
            "p.yaml:3:3: fw[1-10001] makes 10,001 targets: a plan has at most 10,000",
        ),
        (
            "  fw[1-99999999999]: {sources: [local]}",
            "p.yaml:3:3: [1-99999999999] has 99,999,999,999 numbers: a plan has at most 10,000 targets",
        ),
        ("  fw[a-c]: {sources: [local]}", "p.yaml:3:3: 'fw[a-c]' is no range: write fw[01-20] or fw[1-3,7], once"),
        ("  fw[]: {sources: [local]}", "p.yaml:3:3: 'fw[]' is no range"),
        ("  r[1-2]p[1-2]: {sources: [local]}", "p.yaml:3:3: 'r[1-2]p[1-2]' is no range"),
        (
            '  fw[1-3]: {host: "10.0.0.[1-4]", sources: [icmp]}',
            "p.yaml:3:19: [1-4] has 4 numbers, and the name of the targets 3: make them as many",
        ),
        ("  fw[1-2]: {sources: [local]}\n  fw2: {sources: [local]}", "p.yaml:4:3: two targets are called 'fw2'"),
        ("  fw: {host: a, sources: [local]}", "p.yaml:3:8: host: no source of fw takes a host"),
        (
            "  fw: {sources: [snmp]}\ndefaults: {snpm: {interval: 1s}}",
            "p.yaml:4:12: unknown key 'snpm' in defaults; did you mean 'snmp'?",
        ),
        (
            "  fw: {sources: [snmp]}\ndefaults: {snmp: 1s}",
            "p.yaml:4:18: snmp takes keys of that source, such as {interval: 10s}",
        ),
        ("  fw: {sources: [local]}\ndefaults: []", "p.yaml:4:11: defaults are keys of targets"),
        (
            '  fw[1-2]: {host: "10.0.0.[1-2]"}\ndefaults: {sources: [icmp], icmp: {intervall: 1s}}',
            "p.yaml:4:36: unknown key 'intervall'; did you mean 'interval'?",
        ),
    ],
)
def test_each_mistake_is_one_sentence_with_its_place(targets: str, sentence: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan_from_text(f"duration: 1h\ntargets:\n{targets}\n", "p.yaml")
    assert str(caught.value).startswith(sentence)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("duration",), "--set: 'duration' sets nothing: write PATH=VALUE, such as duration=2h"),
        (("targets.fx.sources.snmp.interval=1s",), "--set: targets.fx.sources.snmp.interval: "),
        (("targets.core.sources.7.snmp.interval=1s",), "--set: targets.core.sources.7.snmp.interval: "),
        (("duration=soon",), "--set: duration: "),
        (("defaults.snmp.interval=[",), "--set defaults.snmp.interval:1:2: "),
    ],
)
def test_values_of_the_command_line_that_cannot_be_set(tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    (tmp_path / "p.yaml").write_text(FLEET, encoding="utf-8")
    with pytest.raises(PlanError) as caught:
        load_plan(tmp_path / "p.yaml", values=words)
    assert str(caught.value).startswith(sentence), str(caught.value)


def test_values_of_the_command_line_replace_the_plans(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(FLEET, encoding="utf-8")
    words = (
        "duration=10m",
        "defaults.snmp.interval=5s",
        "targets.core.sources.snmp.interval=2s",
        "rules.loss.packets=1%",
    )
    plan = load_plan(tmp_path / "p.yaml", values=words)
    paces = {target.name: target.sources[0].config.interval for target in plan.targets}
    assert plan.duration_s == 600.0
    assert (paces["fw08"], paces["core"]) == (5.0, 2.0)


def test_a_run_of_a_range_with_a_value_of_the_command_line(tmp_path: Path, soakwatch: Command) -> None:
    """From the command to the record, which is judged again by the plan that it holds."""
    (tmp_path / "p.yaml").write_text(
        "duration: 1h\ndefaults: {sources: [local], local: {probes: [cpu]}}\ntargets:\n  box[1-3]:\n", encoding="utf-8"
    )
    done = soakwatch("run", "p.yaml", "--set", "duration=4s", "--no-web", "--into", "run")
    assert done.returncode in {0, 3}, done.stderr
    with RecordView.open(tmp_path / "run") as view:
        assert {source.target for source in view.sources()} >= {"box1", "box2", "box3"}
        assert "defaults" not in (view.meta("plan") or "")
    assert soakwatch("judge", "run").returncode == done.returncode
    assert "sealed" in soakwatch("verify", "run").stdout
    refused = soakwatch("run", "--target", "local", "--set", "duration=4s")
    assert refused.returncode == 2
    assert "--set changes a plan" in refused.stderr


def test_a_plan_of_more_than_a_thousand_targets_is_read() -> None:
    """Listed one by one or as a range: each text of a range is read once, and each place is looked up, not searched."""
    head = "duration: 1h\ndefaults: {role: dut, snmp: {community: env:COMMUNITY, interval: 10s}}\ntargets:\n"
    listed = "".join(f"  sw{number}: {{host: 10.0.0.{number}, sources: [snmp]}}\n" for number in range(1, 1201))
    plan = plan_from_text(head + listed, "p.yaml")
    ranged = plan_from_text(head + "  sw[1-1200]: {host: '10.0.0.[1-1200]', sources: [snmp]}\n", "p.yaml")
    assert ranged.targets == plan.targets
    assert plan.targets[-1].sources[0].config.model_dump()["host"] == "10.0.0.1200"
    assert plan.targets[1198].sources[0].location == "p.yaml:1202:41"
