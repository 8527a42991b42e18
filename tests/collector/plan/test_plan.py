"""The plan: what a good one gives, how mistakes are reported, and what goes into the record."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from soakwatch.core.errors import PlanError
from soakwatch.core.registry import PluginFolder, Registry
from soakwatch.plan import Plan, load_plan, plan_from_text, plan_text
from soakwatch.plan.phase import PhasePlan
from soakwatch.plan.rule_plan import planned_rules
from soakwatch.plan.start_plan import Start
from soakwatch.sources.abc import WatchedProcess

TINY = Registry(
    PluginFolder("plugin_folders.pollers", "poller"),
    PluginFolder("plugin_folders.loads", "load"),
    PluginFolder("plugin_folders.detectors", "rule"),
)
HOUR = "duration: 1h\n"
DUT = "targets: {dut: {sources: [probe]}}\n"


@pytest.fixture(autouse=True)
def _tiny_house(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the sources and rules beside this file importable."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    yield
    for name in [name for name in sys.modules if name.startswith("plugin_folders")]:
        del sys.modules[name]


def _plan(text: str) -> Plan:
    return plan_from_text(text, "p.yaml", TINY)


def _problems(text: str) -> list[str]:
    with pytest.raises(PlanError) as caught:
        _plan(text)
    assert str(caught.value) == caught.value.problems[0]
    return [problem.removeprefix("p.yaml:") for problem in caught.value.problems]


FULL = """\
name: fw-7.2-overnight
phases: [{baseline: 30m}, {soak: 22h}, {stress: 30m}, {soak: 1h}]
duration: 24h
start: 2026-11-27T22:00:00+02:00
targets:
  dut:
    sources:
      - probe: {interval: 10s, depth: 4, mode: full, filter: {keep: [a, "on"]}}
      - locked: {host: 198.18.0.1, password: env:SNMP_AUTH, timeout: 2s}
  tg:
    role: generator
    sources: [pump]
    watch: {processes: [trex]}
watch:
  processes:
    - bgpd
    - "snort*"
    - {pid: 12, name: shown}
    - {pidfile: /run/nginx.pid}
    - {cmdline: "java .*broker"}
  interfaces: [eth0, "ens*"]
rules:
  slow_drift: {tolerance: 2%, hold: 1m, floor: 1MiB, sigmas: 3, required: false}
events:
  - {kind: failover, at: 12h, within: 10m, lasts: 1m, expect: {reboot: 1}, target: dut}
sinks: []
"""


def test_a_full_plan_gives_what_it_says() -> None:
    """Every key of the plan arrives in its own unit and type, with the watch of a target over the plan's."""
    plan = _plan(FULL)
    assert (plan.name, plan.duration_s) == ("fw-7.2-overnight", 86400.0)
    assert plan.phases[1] == PhasePlan(name="soak", seconds=79200.0)
    assert plan.start == Start(datetime(2026, 11, 27, 20, tzinfo=UTC))
    dut, tg = plan.targets
    assert (dut.role, tg.role) == ("dut", "generator")
    assert [source.poller for source in dut.sources] == ["probe", "locked"]
    assert dut.sources[0].config.interval == 10.0
    assert dut.sources[1].config.timeout == 2.0
    assert dut.sources[0].location == "p.yaml:8:9"
    assert dut.processes == (
        WatchedProcess("bgpd", "name", "bgpd"),
        WatchedProcess("snort*", "name", "snort*"),
        WatchedProcess("shown", "pid", "12"),
        WatchedProcess("nginx", "pidfile", "/run/nginx.pid"),
        WatchedProcess("java .*broker", "cmdline", "java .*broker"),
    )
    assert tg.processes == (WatchedProcess("trex", "name", "trex"),)
    assert dut.interfaces == tg.interfaces == ("eth0", "ens*")
    assert plan.rules[0].parameters == {"tolerance": 0.02, "hold": 60.0, "floor": 1048576.0, "sigmas": 3.0}
    assert {rule.name for rule in plan.rules if not rule.required} == {"slow_drift"}
    event = plan.events[0]
    assert (event.at_s, event.within_s, event.lasts_s, event.expect) == (43200.0, 600.0, 60.0, {"reboot": 1})


def test_a_short_plan_is_a_good_plan(tmp_path: Path) -> None:
    """Name, role, interval, phase, interfaces and rules have defaults; the name is the file's."""
    file = tmp_path / "night run.yaml"
    file.write_text(HOUR + DUT + "rules:\nwatch:\nevents:\n", encoding="utf-8")
    plan = load_plan(file, TINY)
    assert (plan.name, plan.duration_s, plan.phases) == ("night-run", 3600.0, (PhasePlan(name="soak", seconds=3600.0),))
    assert plan.targets[0].role == "dut"
    assert plan.targets[0].interfaces is None
    assert plan.targets[0].sources[0].config.interval == 1.0
    assert [rule.name for rule in planned_rules(plan.rules, TINY)] == ["slow_drift"]


def test_what_is_recorded_reads_back_to_the_same_plan() -> None:
    """The text for the record gives an equal plan, and holds references instead of secrets, and no comments."""
    plan = _plan("# the password is hunter2\n" + FULL)
    text = plan_text(plan)
    assert plan_from_text(text, "record", TINY) == plan
    assert "env:SNMP_AUTH" in text
    assert "hunter2" not in text


def test_phases_alone_make_the_duration() -> None:
    """Without a duration the run lasts as long as its phases."""
    assert _plan("phases: [{baseline: 30m}, {soak: 1h30m}]\n" + DUT).duration_s == 7200.0


def test_a_rule_can_be_switched_off_and_tuned() -> None:
    """False leaves a rule out; parameters reach the rule that judges."""
    assert planned_rules(_plan(HOUR + DUT + "rules: {slow_drift: false}").rules, TINY) == ()
    (rule,) = planned_rules(_plan(HOUR + DUT + "rules: {slow_drift: {tolerance: 1%}}").rules, TINY)
    assert rule.definition() == "Nothing drifts by more than 1%."


def test_another_length_changes_the_last_soak() -> None:
    """A plan that is given another duration cuts or stretches its last soak, and records that."""
    plan = _plan("phases: [{baseline: 10m}, {soak: 1h}, {stress: 5m}]\n" + DUT)
    shorter = plan.lasting("20m", TINY)
    assert [phase.seconds for phase in shorter.phases] == [600.0, 300.0, 300.0]
    assert plan_from_text(plan_text(shorter), "record", TINY) == shorter
    assert _plan(HOUR + DUT).lasting(90.0, TINY).duration_s == 90.0
    with pytest.raises(PlanError, match="--duration: 15m leaves no time for soak: the other phases take 15m"):
        plan.lasting("15m", TINY)
    with pytest.raises(PlanError, match="--duration: '15' is not a duration"):
        plan.lasting("15", TINY)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (
            "- a",
            ["1:1: a plan is keys and values, such as 'targets:'; 'soakwatch init' writes one to start from"],
        ),
        (HOUR, ["1:1: the key 'targets' is missing"]),
        (HOUR + "targets:", ["2:9: targets: expected keys and values, found nothing"]),
        (HOUR + "targets: {}", ["2:10: targets: is empty: at least one is needed"]),
        (DUT, ["1:1: the plan has no duration: add duration: 24h, or phases"]),
        ("durations: 1h\n" + DUT, ["1:1: unknown key 'durations'; did you mean 'duration'?"]),
        ("duration: 10\n" + DUT, ["1:11: duration: the duration 10 has no unit: write 10s, 10m or 10h"]),
        (
            "duration: 1x\n" + DUT,
            ["1:11: duration: 'x' in '1x' is not a unit of time: use ms, s, m, min, h, d"],
        ),
        (
            "duration: 1:30\n" + DUT,
            ["1:11: duration: '1:30' is not a duration: write a number with a unit, such as 200ms, 10s, 30m, 24h"],
        ),
        (
            "duration: 0s\n" + DUT,
            ["1:11: duration: '0s' is not a valid duration: write more than 0s and at most 366d"],
        ),
        (
            HOUR + DUT + "phases: [{soak: 30m}, {stress: 10m}]",
            ["1:11: duration: is 1h, but the phases add up to 40m: correct one, or leave duration out"],
        ),
        (
            DUT + "phases: [{sok: 30m}, soak, {soak: 5}, {soak: 1h, stress: 1h}]",
            [
                "2:10: unknown phase 'sok'; did you mean 'soak'?",
                "2:22: the phase 'soak' has no duration: write soak: 30m",
                "2:35: soak: the duration 5 has no unit: write 5s, 5m or 5h",
                "2:39: a phase is one name with what belongs to it, such as {soak: 22h}; found 2 keys",
            ],
        ),
        (DUT + HOUR + "name: 7.10", ["3:7: name: expected text, found the number 7.1; put it in quotes"]),
        (
            DUT + HOUR + "name: a/b",
            [
                (
                    "3:7: name: 'a/b' cannot be used as a name: start with a letter or digit, then use these or"
                    " '.', '_', '-', at most 100 characters"
                )
            ],
        ),
        (
            HOUR + "targets: {dut: {sources: [probe, {probe: {interval: 10s}}, {probe: {depth: 4}}]}}",
            ["2:34: probe: this source is listed twice with the same keys: remove one"],
        ),
        (HOUR + "targets: {dut: {}}", ["2:11: the key 'sources' is missing"]),
        (HOUR + "targets: {dut: probe}", ["2:16: dut: expected keys and values, found 'probe'"]),
        (
            HOUR + "targets: {dut: {rol: dut, sources: []}}",
            ["2:17: unknown key 'rol'; did you mean 'role'?", "2:36: sources: is empty: at least one is needed"],
        ),
        (
            HOUR + "targets: {dut: {role: dud, sources: [probe]}}",
            ["2:23: role: expected 'dut', 'generator' or 'monitor', found 'dud'; did you mean 'dut'?"],
        ),
        (HOUR + "targets: {dut: {sources: [prob]}}", ["2:27: unknown source 'prob'; did you mean 'probe'?"]),
        (
            HOUR + "targets: {dut: {sources: [{probe: {}, pump: {}}, 3, {probe: 5}]}}",
            [
                "2:27: a source is one name with what belongs to it, such as {local: {interval: 1s}}; found 2 keys",
                (
                    "2:50: a source is one name with what belongs to it, such as {local: {interval: 1s}}; "
                    "found the number 3"
                ),
                "2:61: probe: expected keys and values, found the number 5",
            ],
        ),
        (
            HOUR + "targets: {dut: {sources: [{probe: {intervall: 1s}}]}}",
            ["2:36: unknown key 'intervall'; did you mean 'interval'?"],
        ),
        (
            HOUR + "targets: {dut: {sources: [{probe: {interval: 10ms, timeout: 0s, depth: 12, breaks: yes}}]}}",
            [
                "2:46: interval: '10ms' is out of bounds: at least 200ms",
                "2:61: timeout: '0s' is out of bounds: more than 0s",
                "2:72: depth: the number 12 is out of bounds: at most 9",
                "2:84: breaks: expected true or false, found 'yes'",
            ],
        ),
        (
            HOUR + "targets: {dut: {sources: [{probe: {mode: fll, filter: {kep: [a]}}}]}}",
            [
                "2:42: mode: expected 'quick' or 'full', found 'fll'; did you mean 'full'?",
                "2:56: unknown key 'kep'; did you mean 'keep'?",
            ],
        ),
        (
            HOUR + "targets: {dut: {sources: [locked]}}",
            ["2:27: the key 'host' is missing", "2:27: the key 'password' is missing"],
        ),
        (
            HOUR + DUT + "watch: {process: [a], interfaces: eth0}",
            [
                "3:9: unknown key 'process'; did you mean 'processes'?",
                "3:35: interfaces: expected all, or a list of names such as [eth0, \"ens*\"]; found 'eth0'",
            ],
        ),
        (HOUR + DUT + "watch: {processes: nginx}", ["3:20: processes: expected a list, found 'nginx'"]),
        (
            HOUR + DUT + "watch: {processes: [{pid: x}, {pid: 1, cmdline: y}, {}, {cmdline: '('}, {nam: x}, 5]}",
            [
                "3:27: pid: expected a whole number, found 'x'",
                "3:31: processes: a process is watched by one key, not by pid and cmdline: keep one",
                "3:53: processes: no process is given: write a name, or one of pid, pidfile and cmdline",
                (
                    "3:57: processes: cmdline '(' is not a regular expression:"
                    " missing ), unterminated subpattern at position 0"
                ),
                "3:74: unknown key 'nam'; did you mean 'name'?",
                "3:83: processes: expected keys and values, found the number 5",
            ],
        ),
        (
            HOUR + DUT + "watch: {processes: [a, {pid: 3, name: a}]}",
            ["3:24: two watched processes are called 'a': rename one of them"],
        ),
        (
            HOUR + DUT + "rules: {slow_drft: {}, slow_drift: {tolerence: 5%, hold: 10, floor: 5s, sigmas: x}}",
            [
                "3:9: unknown rule 'slow_drft'; did you mean 'slow_drift'?",
                "3:37: unknown parameter 'tolerence' of slow_drift; did you mean 'tolerance'?",
                "3:58: hold: the duration 10 has no unit: write 10s, 10m or 10h",
                (
                    "3:69: floor: '5s' is not a size: write a number with one of"
                    " B, kB, KB, MB, GB, TB, KiB, MiB, GiB, TiB"
                ),
                "3:81: sigmas: expected a number, found 'x'",
            ],
        ),
        (
            HOUR + DUT + "rules: {slow_drift: {tolerance: -5%, required: maybe}}",
            [
                "3:33: tolerance: '-5%' is negative: write a share such as 5%",
                "3:48: required: expected true or false, found 'maybe'",
            ],
        ),
        (
            HOUR + DUT + "rules: {slow_drift: {tolerance: 200%}}",
            ["3:21: slow_drift: a tolerance of 200% lets everything pass: keep it below 100%"],
        ),
        (
            HOUR + DUT + "rules: {slow_drift: 5%}",
            ["3:21: slow_drift: expected its parameters, such as {tolerance: 5%}, or false; found '5%'"],
        ),
        (
            HOUR + DUT + "start: 2026-11-27T20:00:00",
            ["3:8: start: '2026-11-27T20:00:00' has no zone: append Z for UTC, or an offset such as +02:00"],
        ),
        (
            HOUR + DUT + "events: [{kind: a, at: 2h}, {kind: b, at: 50m, within: 20m, target: dat}]",
            [
                "3:24: at: 2h is after the end of the run, 1h",
                "3:56: within: ends at 1h10m, after the end of the run, 1h",
                "3:69: unknown target 'dat'; did you mean 'dut'?",
            ],
        ),
        (
            HOUR + DUT + "events: [{kind: Fail over, when: 2h}]",
            [
                "3:10: the key 'at' is missing",
                "3:17: kind: 'Fail over' is not a kind of event: write a lower-case word such as failover",
                "3:28: unknown key 'when'; did you mean 'within'?",
            ],
        ),
        (
            HOUR + DUT + "sinks: [{influxdb: {url: http://x}}]",
            [f"3:10: the key '{key}' is missing" for key in ("bucket", "org", "token")],
        ),
        (
            HOUR + DUT + "sinks: [{influxdb: {url: 'influx:8086', org: o, bucket: b, token: hunter2}}]",
            [
                "3:26: url: is not an address of InfluxDB: write http://HOST:8086 or https://HOST and nothing else",
                "3:67: token: a secret must not be written in clear text: write env:NAME or file:PATH",
            ],
        ),
        (
            HOUR + "targets: {dut: {sources: [{locked: {host: 'http://u:pw@x', password: env:X}}]}}",
            [
                (
                    "2:43: this address contains a password: remove it, and give it by a key that takes env:NAME or"
                    " file:PATH"
                )
            ],
        ),
    ],
)
def test_all_mistakes_of_a_bad_plan_are_reported(text: str, problems: list[str]) -> None:
    """Each bad plan gives exactly these sentences: place, key, what was found, what is meant, in order."""
    assert _problems(text) == problems


def test_a_secret_in_the_plan_is_refused_and_not_repeated() -> None:
    """A literal secret is refused whatever its type, and appears in no sentence."""
    problems = _problems(
        HOUR + "targets: {dut: {sources: [{locked: {host: a, password: hunter2, community: 12345, pass: swordfish}}]}}"
    )
    assert problems == [
        "2:56: password: a secret must not be written in clear text: write env:NAME or file:PATH",
        "2:76: community: a secret must not be written in clear text: write env:NAME or file:PATH",
        "2:83: unknown key 'pass'; did you mean 'password'?",
    ]
    assert not any(word in sentence for sentence in problems for word in ("hunter2", "12345", "swordfish"))


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_plan_is_a_plan_or_a_sentence(seed: int) -> None:
    """Whatever characters are lost, doubled or changed, the answer is a plan or a PlanError with a place."""
    chance = random.Random(seed)
    unplaced: list[str] = []
    for _ in range(100):
        text = list(FULL)
        for _ in range(chance.randrange(1, 6)):
            position = chance.randrange(len(text))
            match chance.randrange(4):
                case 0:
                    del text[position : position + chance.randrange(1, 12)]
                case 1:
                    text[position:position] = text[position : position + chance.randrange(1, 40)]
                case 2:
                    text[position] = chance.choice("{}[]:,-#&*!|>'\"%@`\n\t 0aé\u2028\x85")
                case _:
                    text.insert(
                        position, chance.choice(["null", "[]", "{}", "1", "true", "-1", "'", "\n", "1e9h", "~"])
                    )
        try:
            plan = _plan("".join(text))
        except PlanError as error:
            unplaced += [problem for problem in error.problems if not problem.startswith("p.yaml:")]
        else:
            assert plan_from_text(plan_text(plan), "record", TINY) == plan
    assert unplaced == []


def test_a_plan_without_a_device_is_refused(tmp_path: Path) -> None:
    """Nothing could be judged: said at the place of the targets, before anything runs; a calibration needs none."""
    file = tmp_path / "plan.yaml"
    file.write_text("duration: 1h\ntargets: {gen: {role: generator, sources: [local]}}\n", encoding="utf-8")
    with pytest.raises(PlanError, match=r"plan\.yaml:2:1: no target has the role dut, so there is no device to judge"):
        load_plan(file)
    assert load_plan(file, device=False).targets[0].role == "generator"


@pytest.mark.parametrize(("written", "message"), [("80", "80 is 8000 %: write 80%"), ("'1.5'", "write 1.5%")])
def test_a_share_above_one_wants_its_sign(tmp_path: Path, written: str, message: str) -> None:
    file, rules = tmp_path / "plan.yaml", f"rules: {{level: {{cpu: {written}}}}}\n"
    file.write_text(f"{HOUR}targets: {{fw: {{sources: [local]}}}}\n{rules}", encoding="utf-8")
    with pytest.raises(PlanError, match=message):
        load_plan(file)


def test_what_is_wrong_anywhere_is_told_together() -> None:
    """A source and a rule that are refused hide nothing of what stands elsewhere, each at its own key."""
    text = """\
duration: 1h
targets:
  dut: {sources: [{snmp: {hst: 198.18.0.1}}, {local: {interval: 1 parsec}}]}
  tg: {role: generater, sources: [local]}
rules: {growht: false, loss: {packts: 1%}}
phases: [{baseline: {for: 30m, until: never}}, {capacity: {at_most: 20m, trial: 0}}]
events: [{kind: failover, at: 5m, target: dat, expect: {reboott: 1}}]
hooks: [{run: ls, rule: growht}]
labels: {release: 7.10}
tenants: {red: {prt: 0}}
web: {listen: "8720"}
"""
    with pytest.raises(PlanError) as refused:
        plan_from_text(text, "p.yaml")
    places = [problem.split(": ")[0].removeprefix("p.yaml:") for problem in refused.value.problems]
    assert places == [
        *("3:20", "3:27", "3:65", "4:14", "5:9", "5:31", "6:39", "6:81"),
        *("7:43", "7:57", "8:25", "9:19", "10:10", "10:17", "11:6"),
    ]


@pytest.mark.parametrize("key", ["", "durations:\n", "phase:\n"])
def test_a_plan_without_a_duration_is_refused(key: str) -> None:
    """Also where a key that was meant to be one has nothing behind it, which is a key that is not there."""
    with pytest.raises(PlanError, match="the plan has no duration"):
        plan_from_text("targets: {dut: {sources: [local]}}\n" + key, "p.yaml")
