"""Profile files: what they may say, what they have of their parents, and how their mistakes are reported."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from tests.collector.sources.profiles.kit import group, problems, profile

from soakwatch.core.errors import PlanError
from soakwatch.sources.profiles import load_profiles
from soakwatch.sources.profiles.profile_keys import profile_schema
from soakwatch_model.metric import BY_NAME

COLUMN = "      columns: {a: 1.3.6.1.4.1.99.1.1}\n"


def line(words: str) -> str:
    return group(f"{COLUMN}      metrics: [{{{words}}}]")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "box.yaml: is empty: a profile has at least a title"),
        ("titel: x\n", "box.yaml:1:1: unknown key 'titel'; did you mean 'title'?"),
        (
            "title: x\ncli: {like: cisco-iosx}\n",
            "box.yaml:2:13: there is no profile 'cisco-iosx' with a command line; did you mean 'cisco-iosxr'?",
        ),
        (
            "title: x\ncli: {like: cisco-ios, server: SSH}\n",
            "box.yaml:2:6: cli: a command line has commands, or like alone with the name of the profile that has them",
        ),
        (
            "select: [{object_id: 1.3}]\ntitle: x\n",
            "box.yaml:1:22: object_id: expected text, found the number 1.3; put it in quotes",
        ),
        (
            "title: x\nselect: [{object_id: .1.3.6}]\n",
            "box.yaml:2:22: object_id: an OID starts with a number: write 1.3.6",
        ),
        ("title: x\nselect: [{object_id: 1.3.x}]\n", "box.yaml:2:22: object_id: '1.3.x' is not an OID"),
        (
            "title: x\nselect: [{description: '('}]\n",
            "box.yaml:2:24: description: '(' is not a regular expression: missing )",
        ),
        ("title: x\nextends: [lnux]\n", "box.yaml:2:11: unknown parent 'lnux'; did you mean 'linux'?"),
        ("title: x\nextends: [box]\n", "box.yaml:2:11: box extends itself"),
        ("title: x\nextends: [_ip-mib]\nsnmp: {groups: {ip: null}}\n", "box.yaml:3:17: there is no group 'ip'"),
        (line("metric: system.uptme, value: a"), "box.yaml:6:26: unknown metric 'system.uptme'; did you mean"),
        (line("metric: system.processes, value: b"), "box.yaml:6:51: value: unknown name 'b'; known here: a"),
        (line("metric: system.processes, value: a + b"), "box.yaml:6:51: value: unknown name 'b'; known here: a"),
        (line("metric: system.processes, value: a.b"), "box.yaml:6:51: value: only names, numbers"),
        (line("metric: system.processes, value: sqrt(a)"), "box.yaml:6:51: value: unknown function 'sqrt'"),
        (line("metric: system.processes, value: 'pow10(a, a)'"), "box.yaml:6:51: value: pow10() takes 1 values, not 2"),
        (
            line("metric: system.context_switches, value: a * 2"),
            "system.context_switches is a counter: it is one column",
        ),
        (line("metric: system.context_switches, value: a, of: change"), "system.context_switches is a counter"),
        (line("metric: system.temperature, value: a"), "box.yaml:6:17: system.temperature needs the label sensor"),
        (
            line("metric: system.temperature, value: a, labels: {senser: x}"),
            "'senser' is not a label of system.temperature; did you mean 'sensor'?",
        ),
        (line("metric: system.temperature, value: a, labels: {sensor: '{b}'}"), "unknown name 'b' in '{b}'"),
        (
            line("metric: system.temperature, value: a, labels: {sensor: '{a'}"),
            "a bracket is never opened or closed in '{a'",
        ),
        (line("metric: system.processes, value: a, match: '[0-9]+'"), "the regular expression has no group: put ( )"),
        (line("metric: system.processes, value: a + 1, match: '([0-9]+)'"), "'values' and 'match' read one column"),
        (line("metric: system.processes, value: a, scale: 0"), "a scale of 0 makes every value 0"),
        (line("metric: system.processes, value: a, over: median"), "expected 'mean', 'sum', 'max' or 'min'"),
        (group("      metrics: [{metric: system.processes, value: 1}]"), "the group g has neither columns nor scalars"),
        (group(COLUMN + "      metrics: []"), "metrics: is empty: at least one is needed"),
        (
            group(COLUMN + "      unless: [h]\n      metrics: [{metric: system.processes, value: a}]"),
            "unknown group 'h'",
        ),
        (
            group(COLUMN + "      where: {b: x}\n      metrics: [{metric: system.processes, value: a}]"),
            "box.yaml:6:15: unknown name 'b'",
        ),
        (
            group("      columns: {1st: 1.3.6}\n      metrics: [{metric: system.processes, value: a}]"),
            "'1st' is not a name: small letters",
        ),
        (
            group(COLUMN + "      every: 10\n      metrics: [{metric: system.processes, value: a}]"),
            "the duration 10 has no unit",
        ),
        ("title: x\nlogs: [{kind: Crash!, match: x}]\n", "box.yaml:2:15: kind: 'Crash!' is not a kind of event"),
    ],
)
def test_a_wrong_profile_is_reported_with_its_position(text: str, message: str, tmp_path: Path) -> None:
    messages = problems(tmp_path, text)
    assert any(message in problem for problem in messages), messages
    assert all(problem.startswith("box.yaml") for problem in messages)


def test_every_problem_is_reported_at_once(tmp_path: Path) -> None:
    text = group(f"{COLUMN}      metrics: [{{metric: nope, value: a}}, {{metric: nope2, value: a}}]")
    assert len(problems(tmp_path, text)) == 2


def test_a_child_replaces_what_its_parents_have_and_a_later_parent_an_earlier_one(tmp_path: Path) -> None:
    part = (
        "snmp:\n  facts: {{version: {{oid: 1.3.{0}}}}}\n  clocks: {{host: 1.3.{0}}}\n"
        "  groups:\n    shared: {{scalars: {{a: 1.3.{0}}}, metrics: [{{metric: system.processes, value: a}}]}}\n"
        "    own_{0}: {{scalars: {{a: 1.3.{0}}}, metrics: [{{metric: system.uptime, value: a}}]}}\n"
        "logs: [{{kind: reboot, match: m{0}}}]\ntraps: {{1.3.9: {{kind: reboot.by{0}}}}}\n"
    )
    (tmp_path / "_one.yaml").write_text(part.format(1))
    (tmp_path / "_two.yaml").write_text("extends: [_one]\n" + part.format(2))
    child = profile(
        tmp_path,
        "title: x\nextends: [_two, _one]\nsnmp: {groups: {own_1: null}}\nlogs: [{kind: failover, match: m0}]\n",
    )
    assert [profile_group.name for profile_group in child.groups] == ["shared", "own_2"]
    assert child.groups[0].scalars[0].oids == ("1.3.2",), "an ancestor of another parent comes after that parent"
    assert child.facts[0].oids == ("1.3.2",)
    assert child.clocks.host[0].oid == "1.3.2"
    assert [log.match.pattern for log in child.logs] == ["m0", "m2", "m1"]
    assert [trap.kind for trap in child.traps] == ["reboot.by2"]


def test_an_own_folder_hides_a_shipped_profile_and_extends_it(tmp_path: Path) -> None:
    (tmp_path / "linux.yaml").write_text("title: ours\nextends: [generic]\n")
    profiles = load_profiles(tmp_path)
    assert profiles["linux"].title == "ours"
    assert "interfaces" in {profile_group.name for profile_group in profiles["linux"].groups}
    assert set(load_profiles()) <= set(profiles)


@pytest.mark.parametrize("name", ["lnux", "../plan", "/etc/passwd", "x" * 5000, ""])
def test_an_unknown_profile_is_reported_with_the_nearest(name: str) -> None:
    with pytest.raises(PlanError, match=r"^unknown profile ") as error:
        load_profiles()[name]
    assert len(str(error.value)) < 400
    if name == "lnux":
        assert "did you mean 'linux'?" in str(error.value)


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="there is no such folder of profiles"):
        load_profiles(tmp_path / "nowhere")


SHIPPED = load_profiles()
NAMES = SHIPPED.names(parts=True)
HEADS = {head.name: head for head in SHIPPED.heads()}


def test_a_shipped_profile_is_sound() -> None:
    """Each that is there loads; a head that is read alone says what the whole file says."""
    for name in NAMES:
        loaded = SHIPPED.part(name)
        for profile_group in loaded.groups:
            for row in profile_group.lines:
                assert row.metric in BY_NAME, name
        if name.startswith("_"):
            continue
        head = HEADS[name]
        assert (head.title, head.select, head.rank) == (loaded.title, loaded.select, loaded.rank), name
        assert loaded.clocks.agent, f"{name}: every device has at least sysUpTime: extend generic"
        assert name == "generic" or "interfaces" in {profile_group.name for profile_group in loaded.groups}, name


def test_the_published_schema_holds_for_what_is_shipped() -> None:
    schema = json.loads(json.dumps(profile_schema()))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for name in NAMES:
        data = SHIPPED._read(name).document.data
        assert [error.message for error in validator.iter_errors(data)] == [], name
    assert list(validator.iter_errors({"titel": "x"}))


def test_generic_promises_interfaces_and_its_parts_are_the_standard_mibs() -> None:
    generic = load_profiles()["generic"]
    assert generic.extends == (
        "_clocks",
        "_entity-sensor",
        "_hardware",
        "_ip-mib",
        "_host-resources",
        "_ucd",
        "_if-mib",
        "_routing",
    )
    assert "system.network.io" in generic.promised
    assert [clock.oid for clock in generic.clocks.host] == ["1.3.6.1.2.1.25.1.1.0"]
    assert generic.clocks.boots == ("1.3.6.1.6.3.10.2.1.2.0",)


@pytest.mark.parametrize(("name", "near"), [("_ucd", "generic"), ("_cisco", "cisco-ios"), ("_if-mib", "generic")])
def test_a_part_is_no_profile_and_those_that_have_it_are_named(name: str, near: str) -> None:
    with pytest.raises(PlanError) as error:
        SHIPPED[name]
    message = str(error.value)
    assert message.startswith(
        f"{name!r} is a part of profiles, not a profile: use one of those that extend it, such as "
    )
    assert f" {near}" in message
    assert "\n" not in message
    assert SHIPPED.part(name).groups, "those who write one can still read it"
