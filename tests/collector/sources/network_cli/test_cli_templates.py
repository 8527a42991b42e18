"""Platforms as data: what a template writes, and what is said of a file that is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent, indent

import pytest
from click.testing import CliRunner

from soakwatch.core.errors import PlanError
from soakwatch.core.yaml import parse
from soakwatch.sources.platforms.parsed import Parsed
from soakwatch.sources.platforms.platform import Platform
from soakwatch.sources.profiles.__main__ import main
from soakwatch.sources.profiles.loading import read_document

CONTRIBUTING = Path(__file__).parents[4] / "CONTRIBUTING.md"
HEAD = "title: My firewall\ncli:\n  server: MyOS\n  commands:\n"


def platform(commands: str) -> Platform:
    """The platform of a file with these commands."""
    found = read_document(parse(HEAD + indent(commands, "  "), "myos.yaml"), "myos").platform
    assert found is not None
    return found


def read(lines: str, output: str, more: str = "") -> Parsed:
    """What templates make of an output."""
    known = platform(f"  show_all:\n    run: show all\n{more}    lines:\n{lines}")
    return known.commands[0].parse(output)


def results(parsed: Parsed) -> dict[str, float]:
    """The readings by metric and object."""
    return {f"{value.metric} {value.object}".rstrip(): value.value for value in parsed.values}


def test_a_number_has_its_metric_labels_and_unit() -> None:
    """Per cent, sizes of a unit that is written or read, sums that are not below zero."""
    parsed = read(
        """
      - match: 'cpu (?P<core>\\d+): idle (?P<idle>[\\d.]+) wait ?(?P<wait>[\\d.]+)?'
        values: [{metric: system.cpu.core.utilization, of: '100 - {idle} - {wait|0} %', labels: {core: '{core}'}}]
      - match: 'mem (?P<used>\\d+) of (?P<total>\\d+) (?P<unit>[KM])B'
        values:
          - {metric: system.memory.usage, of: '{used} {unit}'}
          - {metric: system.memory.limit, of: '{total} {unit}'}
      - each: '(?P<table>\\w+)=(?P<n>\\d+)k'
        values: [{metric: system.sessions, of: '{n}', labels: {table: '{table:lower}'}}]
""",
        "cpu 0: idle 70 wait 10\ncpu 1: idle 100.4 wait \nmem 2 of 4 MB\nNAT=5k TCP=7k\nwhat is this",
    )
    assert results(parsed) == {
        "system.cpu.core.utilization core=0": 0.2,
        "system.cpu.core.utilization core=1": 0.0,
        "system.memory.usage": 2 * 1024**2,
        "system.memory.limit": 4 * 1024**2,
        "system.sessions table=nat": 5,
        "system.sessions table=tcp": 7,
    }
    assert (parsed.unknown, parsed.strange) == (("what is this",), 1)


def test_a_number_that_is_none_is_a_fault_and_no_zero() -> None:
    parsed = read(
        "      - match: 'cpu (?P<busy>.*)'\n        values: [{metric: system.cpu.utilization, of: '{busy} %'}]\n",
        "cpu n/a",
    )
    assert parsed.values == ()
    assert [fault.metric for fault in parsed.faults] == ["system.cpu.utilization"]


def test_words_are_kept_for_the_lines_behind() -> None:
    """A section says of what its lines are; a line that is of another section is another template's."""
    parsed = read(
        """
      - match: '(?P<section>Frame|Flow) drops:'
        keep: {section: '{section:lower}'}
      - match: '\\s+(?P<reason>\\S+) (?P<n>\\d+)'
        when: {section: [frame, flow]}
        drop: {place: '{section}', reason: '{reason}', count: '{n}'}
      - match: 'crash of (?P<process>\\w+)'
        once: {kind: process.crash, key: '{process}', detail: {process: '{process}'}}
""",
        "  lost 1\nFrame drops:\n  no-route 3\nFlow drops:\n  no-route 4\ncrash of snort",
    )
    assert results(parsed) == {
        "system.forwarding.dropped place=frame,reason=no-route": 3,
        "system.forwarding.dropped place=flow,reason=no-route": 4,
    }
    assert parsed.unknown == ("  lost 1".strip(),)
    assert [(notable.kind, dict(notable.detail)) for notable in parsed.notables] == [
        ("process.crash", {"process": "snort"})
    ]


def test_processes_facts_and_sessions() -> None:
    parsed = read(
        """
      - match: '(?P<pid>\\d+) (?P<name>\\w+) (?P<cpu>\\S+)% (?P<kb>\\d+)k'
        process: {name: '{name}', pid: '{pid}', cpu: '{cpu} %', memory: '{kb} KiB'}
      - match: 'Version (?P<version>\\S+), up (?P<time>.*)'
        facts: {version: '{version}'}
        uptime: '{time}'
      - match: 'neighbor (?P<peer>\\S+) (?P<state>\\w+)'
        peer: {protocol: bgp, peer: '{peer}', state: '{state}'}
""",
        "7 snort 12.5% 100k\n8 httpd x% 100k\nVersion 7.2, up 2 days\nneighbor 10.0.0.2 Established",
        "    whole: true\n",
    )
    assert [(p.name, p.pid, p.cpu, p.memory) for p in parsed.processes] == [("snort", 7, 0.125, 102_400)]
    assert (parsed.whole, parsed.strange, parsed.facts) == (True, 1, {"version": "7.2"})
    assert parsed.uptime is not None
    assert parsed.uptime.seconds == 2 * 86_400
    assert results(parsed) == {"network.session.up protocol=bgp,peer=10.0.0.2,context=default": 1}


def test_an_address_is_of_either_family_with_its_zone() -> None:
    parsed = read(
        "      - match: 'neighbor (?P<peer>{address}) (?P<state>\\w+)$'\n"
        "        peer: {protocol: bgp, peer: '{peer}', state: '{state}'}\n",
        "neighbor 10.0.0.2 Established\nneighbor fe80::7%eth0 Established\nneighbor of-ours Established",
    )
    assert results(parsed) == {
        f"network.session.up protocol=bgp,peer={peer},context=default": 1 for peer in ("10.0.0.2", "fe80::7%eth0")
    }
    assert parsed.unknown == ("neighbor of-ours Established",)


def read_json(templates: str, output: str, more: str = "") -> Parsed:
    """What templates of JSON make of an output."""
    return platform(f"  show_all:\n    run: show all\n{more}    json:\n{templates}").commands[0].parse(output)


PEERS = """
      - at: vrfs.{vrf}.peers.{peer}
        take: {state: [state, old.state], up: seconds, count: counts.0, idle: reason}
        match: {idle: 'Admin'}
        peer: {protocol: bgp, peer: '{peer}', state: admin down, context: '{vrf}'}
      - at: vrfs.{vrf}.peers.{peer}
        take: {state: [state, old.state], up: seconds, count: counts.0}
        peer:
          protocol: bgp
          peer: '{peer}'
          state: '{state}'
          context: '{vrf}'
          uptime: '{up} s'
          prefixes: '{count}'
          family: ipv4
"""


def test_json_is_taken_by_paths_and_the_first_template_that_holds() -> None:
    """Keys are words, the first value that is there is taken, and what is not there is not told."""
    parsed = read_json(
        PEERS,
        """Warning: {"vrfs": {"default": {"peers": {
        "10.0.0.2": {"state": "Established", "seconds": 90.5, "counts": [7, 8]},
        "10.0.0.3": {"old": {"state": "Active"}, "unheard": {}},
        "10.0.0.4": {"state": "Idle", "reason": "Admin"}}}, "empty": {}}}""",
    )
    bgp = "protocol=bgp,peer=10.0.0"
    assert results(parsed) == {
        f"network.session.up {bgp}.2,context=default": 1,
        f"network.session.uptime {bgp}.2,context=default": 90.5,
        f"network.session.prefixes {bgp}.2,context=default,family=ipv4 unicast": 7,
        f"network.session.up {bgp}.3,context=default": 0,
    }
    assert list(parsed.unsampled) == [f"{bgp}.4,context=default"]
    assert (parsed.strange, parsed.faults) == (0, ())


def test_json_is_found_anywhere_with_what_stands_above_it_and_a_list_is_each_of_its_objects() -> None:
    templates = """
      - at: '**.slot.port'
        take: {slot: ^name, port: name, sent: sent}
        values:
          - {metric: system.sessions, of: '{sent}', labels: {table: '{slot} {port}'}}
"""
    one = '{"a": [{"b": {"name": "s1", "slot": {"port": {"name": [{"data": "p1"}], "sent": 1}}}}]}'
    two = '[{"name": "s1", "slot": [{"port": [{"name": "p1", "sent": "2"}, {"name": "p2"}]}]}]'
    assert results(read_json(templates, one)) == {"system.sessions table=s1 p1": 1}
    assert results(read_json(templates, two)) == {"system.sessions table=s1 p1": 2}


@pytest.mark.parametrize(
    ("output", "strange"),
    [('[{"slot": 1}', 1), ("bgpd is not running", 0), ("no such thing", 1), ("", 0), ('{"vrfs": 1}', 0)],
)
def test_what_is_no_json_is_unknown_but_for_an_answer_that_says_that_there_is_nothing(
    output: str, strange: int
) -> None:
    parsed = read_json(PEERS, output, "    nothing: '.*is not running'\n")
    assert (parsed.strange, parsed.values) == (strange, ())


@pytest.mark.parametrize("output", ["[" * 700 + "]" * 700, '{"slot":' * 700 + "1" + "}" * 700, "[" * 99_999])
def test_json_that_is_nested_without_end_is_read_to_a_depth(output: str) -> None:
    templates = "      - at: '**.slot'\n        take: {n: a.b}\n        facts: {model: '{n}'}\n"
    assert read_json(templates, output).facts == {}


def test_lines_read_what_is_no_json() -> None:
    """Of an older release, say."""
    both = (
        "      - take: {version: version}\n        facts: {version: '{version}'}\n"
        "    lines:\n      - match: 'Version (?P<version>.*)'\n        facts: {version: '{version}'}\n"
    )
    assert [dict(read_json(both, text).facts) for text in ('{"version": "2"}', "Version 1")] == [
        {"version": "2"},
        {"version": "1"},
    ]


def test_a_table_is_read_by_its_head() -> None:
    """Columns stand where the head has them, in each part of an output anew; the last has blanks in it."""
    parsed = read(
        """
      - head: {pid: pid, cpu: 5sec|1min, name: process}
        optional: pid
        cells: {cpu: '[\\d.]+%'}
        process: {name: '{name}', pid: '{pid}', cpu: '{cpu} %'}
""",
        "1 2 3\n PID Runtime 5Sec 1Min Process\n 7 1 0.5% 9% IP Input\nn/a\n1Min Process\n2% bgp\nx% ospf",
        "    whole: true\n",
    )
    assert [(each.name, each.pid, each.cpu) for each in parsed.processes] == [
        ("IP Input", 7, 0.005),
        ("bgp", None, 0.02),
    ]
    assert parsed.unknown == ("1 2 3", "n/a", "x% ospf")


def test_a_total_that_stands_behind_its_parts_and_one_in_front_of_them() -> None:
    """What is written at the end is of the words that were kept, each size with its own unit."""
    lines = """
      - match: 'free: (?P<free>.*)'
        keep: {free: '{free}'}
      - match: 'total: (?P<total>.*)'
        keep: {total: '{total}'}
    end:
      - values:
          - {metric: system.memory.limit, of: '{total} B'}
          - {metric: system.memory.usage, of: '{total} - {free} B'}
      - when: {free: ''}
        facts: {model: unknown}
"""
    told = {"system.memory.limit": 2 * 1024**3, "system.memory.usage": 2 * 1024**3 - 512 * 1024**2}
    assert results(read(lines, "free: 512MiB\ntotal: 2GiB")) == told
    assert results(read(lines, "total: 2GiB\nfree: 512MiB")) == told
    alone = read(lines, "total: 2GiB")
    assert (results(alone), alone.faults) == ({"system.memory.limit": 2 * 1024**3}, ())
    assert alone.facts == {"model": "unknown"}
    assert [fault.metric for fault in read(lines, "free: 2GiB\ntotal: 1GiB").faults] == ["system.memory.usage"]


def test_some_lines_are_enough_and_a_line_is_passed_on() -> None:
    lines = """
      - match: '\\d (?P<bundle>\\w+)'
        keep: {bundle: '{bundle}'}
        passes: true
      - each: '(?P<port>\\w+)\\(P\\)'
        peer: {protocol: lacp, peer: '{port}', state: bundled, context: '{bundle}'}
    rest: some
"""
    parsed = read(lines, "a head\n1 po1 ge1(P) ge2(P)\n      ge3(P)")
    assert results(parsed) == {f"network.session.up protocol=lacp,peer=ge{n},context=po1": 1 for n in (1, 2, 3)}
    assert parsed.strange == 0
    assert (read(lines, "no bundle at all").strange, read(lines, "").strange) == (1, 0)


def test_a_command_is_like_another() -> None:
    known = platform(
        "  show_x: {run: show x, lines: [{match: x, facts: {model: X}}], reports: system.uptime}\n"
        "  show_y: {run: show y, like: show_x}\n  show_z: {run: show z, like: frr/show_version}\n"
    )
    assert [
        (command.metrics, dict(command.parse(text).facts))
        for command, text in zip(known.commands, ("x", "x", "FRRouting 9.1"), strict=True)
    ] == [(("system.uptime",), {"model": "X"}), (("system.uptime",), {"model": "X"}), ((), {"version": "9.1"})]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("{run: show x, lines: [{match: '(', facts: {a: b}}]}", "is not a regular expression"),
        (
            "{run: show x, lines: [{match: x, values: [{metric: system.cpu, of: '{n}'}]}]}",
            "there is no metric 'system.cpu'",
        ),
        ("{run: show x, lines: [{match: x, values: [{metric: system.sessions, of: '{n} bananas'}]}]}", "is no amount"),
        ("{run: show x, lines: [{match: x, facts: {model: '{a'}}]}", "has a bracket that is no field"),
        ("{run: show x, lines: [{match: x, find: y}]}", "one of match"),
        ("{run: show x}", "a command has lines, json, like, or parse"),
        ("{run: show x, parse: tops}", "there is no parser tops; did you mean 'top'"),
        ("{run: show x, lins: []}", "unknown key 'lins'; did you mean 'lines'"),
        ("{run: show x, like: show_y}", "there is no command 'show_y'"),
        (
            "{run: show x, like: cisco-iso/show_version}",
            "there is no profile 'cisco-iso' with a command line; did you mean 'cisco-ios'",
        ),
        ("{run: [show x, reload], lines: []}", "'reload' is not a query"),
        ("{run: show x, json: [{at: a..b}]}", "'a..b' is no path"),
        ("{run: show x, json: [{take: {peer: ''}}]}", "a value has a path of keys"),
        (
            "{run: show x, json: [{take: {peer: a}, facts: {model: '{pear}'}}]}",
            "show_x: nothing is called {pear} here; did you mean 'peer'",
        ),
        ("{run: show x, lines: [{match: x, when: {section: a}}]}", "show_x: nothing is called {section} here"),
        ("{run: show x, lines: [], end: [{facts: {model: '{free}'}}]}", "show_x: nothing is called {free} here"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_place(command: str, words: str) -> None:
    with pytest.raises(PlanError, match=r"myos\.yaml:\d+:\d+: ") as refused:
        platform(f"  show_x: {command}\n")
    assert words in str(refused.value)


def test_the_recipe_of_a_platform_says_what_happens(tmp_path: Path) -> None:
    """The example in CONTRIBUTING.md reads the output there as it stands there."""
    recipe = CONTRIBUTING.read_text(encoding="utf-8").partition("### Its command line\n")[2].partition("\n## ")[0]
    example, drops, said = (dedent(text) for text in re.findall(r"(?ms)^ *```\w+\n(.*?)^ *```$", recipe))
    file, output = tmp_path / "exos.yaml", tmp_path / "drops.txt"
    file.write_text(example)
    output.write_text(drops)
    tried = CliRunner().invoke(main, [str(file), "--read", "show_drops", str(output)])
    assert (tried.exit_code, tried.output) == (0, said)
    shown = CliRunner().invoke(main, [str(file)])
    assert shown.exit_code == 0
    assert "  show_system: show system resources | or show system -> system.cpu.utilization, " in shown.output
    assert "  show_version: show version -> facts" in shown.output


def test_everything_that_an_output_brings_is_shown(tmp_path: Path) -> None:
    """Readings, processes, facts, the uptime, events, sessions that are not sampled, faults, unknown lines."""
    file, output = tmp_path / "myos.yaml", tmp_path / "all.txt"
    file.write_text(
        HEAD
        + indent(
            """  show_all:
    run: show all
    lines:
      - match: 'cpu (?P<busy>.*)'
        values: [{metric: system.cpu.utilization, of: '{busy} %'}]
      - match: 'process (?P<name>.*)'
        process: {name: '{name}', pid: '7'}
      - match: 'up (?P<time>.*)'
        uptime: '{time}'
        facts: {model: M1}
      - match: 'crash of (?P<process>.*)'
        once: {kind: process.crash, key: '{process}'}
      - match: 'peer (?P<peer>\\S+) (?P<state>.*)'
        peer: {protocol: bgp, peer: '{peer}', state: '{state}'}
""",
            "  ",
        )
    )
    output.write_text("cpu n/a\nprocess snort\nup 2 days\ncrash of snort\npeer 10.0.0.2 Idle (Admin)\n" + "what\n" * 9)
    tried = CliRunner().invoke(main, [str(file), "--read", "show_all", str(output)])
    assert tried.output.splitlines() == [
        "all.txt: myos, show_all",
        "  uptime  172800 s, told in steps of 86400 s",
        "  fact    model = M1",
        "  process snort pid=7 cpu=None memory=None",
        "  event   process.crash snort",
        "  left    protocol=bgp,peer=10.0.0.2,context=default: administratively down",
        "  fault   system.cpu.utilization{}: 'n/a' is not a number",
        *["  unknown what"] * 5,
        "  unknown … 9 lines",
    ]


@pytest.mark.parametrize(
    ("commands", "tried", "words"),
    [
        ("  show_x: {run: show x, lins: []}\n", [], "myos.yaml:5:"),
        ("  show_x: {run: reload, lines: []}\n", [], "myos.yaml:5:19: show_x: 'reload' is not a query"),
        ("  show_x: {run: show x, lines: []}\n", ["show_y", "out"], "no command 'show_y'; did you mean 'show_x'?"),
        ("  show_x: {run: show x, lines: []}\n", ["show_x", "out"], "cannot be read"),
    ],
)
def test_what_is_wrong_is_one_sentence(commands: str, tried: list[str], words: str, tmp_path: Path) -> None:
    (tmp_path / "myos.yaml").write_text(HEAD + indent(commands, "  "))
    options = ["--read", tried[0], str(tmp_path / tried[1])] if tried else []
    result = CliRunner().invoke(main, [str(tmp_path / "myos.yaml"), *options])
    assert result.exit_code == 2
    assert words in result.output


def test_an_output_is_read_by_a_file() -> None:
    result = CliRunner().invoke(main, ["--read", "show_x", "out"])
    assert (result.exit_code, "--read needs the file of a profile" in result.output) == (2, True)
