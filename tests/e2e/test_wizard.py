"""``soakwatch init`` on a terminal: each answer is tried as it is given, and none is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.collector.cli.terminals import Terminal

from soakwatch.plan import load_plan


def answered(folder: Path, *answers: tuple[str, str]) -> tuple[int, str]:
    """The exit code and all that was shown; each answer is given when its question is there. "^C" is that key."""
    terminal = Terminal(("init",), 120, 60, folder, {})
    seen = 0
    for question, answer in answers:
        terminal.until(lambda _: question in terminal.raw.decode()[seen:], question)  # noqa: B023 - called at once
        seen = len(terminal.raw.decode())
        if answer == "^C":
            terminal.interrupt()
        else:
            terminal.type(f"{answer}\n")
    code = terminal.end()
    terminal.close()
    return code, terminal.raw.decode()


def test_wrong_answers_are_asked_again_and_the_plan_is_checked(tmp_path: Path) -> None:
    """A process of this machine, under iperf3, overnight; the remedy is said at once, and earlier answers stay."""
    code, shown = answered(
        tmp_path,
        ("Number", "1"),
        ("Processes to watch", "python*"),
        ("Load", "iperf4"),
        ("Error:", "iperf3"),
        ("Host of the iperf3", "10.0.0.9"),
        ("Rate in bits", "fast"),
        ("Error:", "200M"),
        ("Length", "soon"),
        ("Error:", "overnight"),
        ("Begin with a baseline", "y"),
        ("Time between polls", "5 sec"),
        ("Check it now", "n"),
    )
    assert code == 0, shown
    assert "wrote plan.yaml" in shown
    plan = load_plan(tmp_path / "plan.yaml")
    assert [phase.name for phase in plan.phases] == ["baseline", "soak", "recovery"]
    assert sum(phase.seconds for phase in plan.phases) == plan.duration_s
    assert [process.name for process in plan.targets[0].processes] == ["python*"]
    assert plan.targets[0].sources[0].config.interval == 5.0
    assert plan.targets[1].sources[0].config.model_dump()["server"] == "10.0.0.9"


@pytest.mark.parametrize(
    ("load", "answer", "poller", "keys"),
    [
        ("trex", "198.18.0.9", "trex", {"host": "198.18.0.9"}),
        ("k6", "/tmp/k6 soak.json", "k6", {"file": "/tmp/k6 soak.json"}),
        ("command", "./load --rate '5 k'", "command", {"run": ["./load", "--rate", "5 k"]}),
    ],
)
def test_whatever_loads_it_becomes_a_generator(
    tmp_path: Path, load: str, answer: str, poller: str, keys: dict[str, object]
) -> None:
    """The one question that it needs, and phases that do not drive it."""
    code, shown = answered(
        tmp_path,
        ("Number", "1"),
        ("Processes to watch", ""),
        ("Load", load),
        (": ", answer),
        ("Length", "2 hours"),
        ("Begin with a baseline", "y"),
        ("Time between polls", ""),
        ("Check it now", "n"),
    )
    assert code == 0, shown
    plan = load_plan(tmp_path / "plan.yaml")
    generator = plan.targets[1]
    assert (generator.role, generator.sources[0].poller) == ("generator", poller)
    written = json.loads(generator.sources[0].config.model_dump_json())
    assert {key: written[key] for key in keys} == keys
    assert [phase.load for phase in plan.phases] == [None, None, None]


def test_a_secret_is_not_taken_and_what_was_answered_is_kept(tmp_path: Path) -> None:
    """A router by SNMP; the community itself is refused, and Ctrl-C writes what there is."""
    code, shown = answered(
        tmp_path,
        ("Number", "9"),
        ("Error:", "3"),
        ("Host", "not a host"),
        ("Error:", "10.0.0.1"),
        ("SNMP version", "2c"),
        ("Community", "hunter2"),
        ("Error: write env:NAME or file:PATH", "env:COMMUNITY"),
        ("Load", "none"),
        ("Length", "^C"),
    )
    assert code == 130, shown
    assert "plan.yaml has what was answered" in shown
    text = (tmp_path / "plan.yaml").read_text(encoding="utf-8")
    assert "hunter2" not in text
    (target,) = load_plan(tmp_path / "plan.yaml").targets
    assert target.sources[0].poller == "snmp"
    assert "env:COMMUNITY" in text
