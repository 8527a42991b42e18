"""A generator that is silent proves nothing: the verdict, by the command that users call, is inconclusive, in words."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.collector.judge.test_loss_verdicts import T0, Readings, S, of, verdict_of

from soakwatch.cli.main import run
from soakwatch.record import Record
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample

MINUTES = 40
PHASES = (("baseline", 0), ("soak", 600), ("cooldown", 2100))
Report = Callable[[float], Readings]


def record_of(folder: Path, generators: Sequence[tuple[str, str, Report]]) -> Path:
    """40 minutes of a healthy device beside generators, each a target with a poller and what it reports at a second."""
    with Record.create(folder) as record:
        record.target("dut", "dut")
        for name, _, _ in generators:
            record.target(name, "generator")
        polls = []
        for target, poller, read in (("dut", "snmp", device), *generators):
            source = record.source(target, poller, poller, 10 * S, required=True).id
            for second in range(0, MINUTES * 60, 10):
                due = (T0 + second) * S
                samples = tuple(Sample(metric, object_, value, due) for metric, object_, value in read(second))
                polls.append(Poll(source, due, due, 1000, PollOutcome.OK, None, Answer(samples, (), ())))
        polls.sort(key=lambda poll: poll.due_ns)
        for number, (name, begin) in enumerate(PHASES):
            record.begin_phase(name, (T0 + begin) * S)
            end = PHASES[number + 1][1] if number + 1 < len(PHASES) else MINUTES * 60
            record.put([poll for poll in polls if (T0 + begin) * S <= poll.due_ns < (T0 + end) * S])
        record.end_phase((T0 + MINUTES * 60) * S)
    return folder


def device(second: float) -> Readings:
    """Of a healthy one."""
    return [("system.uptime", "", 1e5 + second), ("system.cpu.utilization", "", 0.2)]


def asked(rate: float) -> Report:
    """Requests at a rate in the soak, none before and after."""
    return lambda second: [("load.request.rate", "", rate if 600 <= second < 2100 else 0.0)]


@pytest.mark.parametrize(
    ("generators", "sentence"),
    [
        ([("tg", "wrk", lambda _: [])], "tg/wrk answered 240 polls and reported no figure of the load"),
        ([("tg", "wrk", lambda _: [("load.lines.unread", "", 0.0)])], "reported no figure of the load"),
        ([("tg", "command", asked(0.0))], "nothing was sent and nothing came back in the phase soak"),
        (
            [("tg", "trex", lambda _: [("load.tx.packets", "", 7e6), ("load.rx.packets", "", 7e6)])],
            "nothing was sent and nothing came back in the phase soak",
        ),
        ([("tg", "k6", asked(50.0)), ("web", "wrk", lambda _: [])], "web/wrk answered 240 polls"),
        ([("tg", "ssh", lambda _: [])], "tg/ssh answered 240 polls"),
    ],
    ids=["a file that never grows", "lines that are none", "zeros", "a counter that stands", "one of two", "nothing"],
)
def test_a_silent_generator_is_inconclusive(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    generators: Sequence[tuple[str, str, Report]],
    sentence: str,
) -> None:
    """With a plan that names a generator nothing is passed that stood under no load; and it is said of whom."""
    code, verdict = verdict_of(record_of(tmp_path / "run", generators), capsys)
    assert (code, verdict["verdict"]) == (3, "inconclusive")
    (finding,) = [f for f in of(verdict, "generator_health", "inconclusive") if sentence in f["reason"]]
    assert finding["why"] in {"generator at fault", "could not be read"}
    assert "no traffic generator" not in str(verdict)


@pytest.mark.parametrize(
    "generators",
    [
        [("tg", "k6", asked(50.0))],
        [("tg", "k6", asked(50.0)), ("tg-host", "ssh", lambda _: [("system.cpu.utilization", "", 0.3)])],
        [("tg", "trex", lambda _: [("load.level", "", 0.0), ("load.tx.packets", "", 0.0)])],
        [("tg", "agent", lambda _: [("system.cpu.utilization", "", 0.3)])],
    ],
    ids=["at rest in the baseline", "its machine beside it", "the plan wants no load", "only its machine is watched"],
)
def test_a_generator_that_rests_when_it_may_is_none_that_is_silent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], generators: Sequence[tuple[str, str, Report]]
) -> None:
    """Before it begins it is idle, its machine is no generator, and a level of 0 was wanted."""
    code, verdict = verdict_of(record_of(tmp_path / "run", generators), capsys)
    assert (code, verdict["verdict"]) == (0, "pass"), verdict["reason"]


@pytest.mark.parametrize("required", [True, False])
def test_a_required_rule_that_finds_nothing_to_judge_is_inconclusive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, required: bool
) -> None:
    """The plan says that it has to decide, and it had no traffic to look at; where nobody says so it does not apply."""
    folder = record_of(tmp_path / "run", [])
    words = "{required: true}" if required else "{}"
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        f"name: p\nduration: 40m\ntargets: {{dut: {{sources: [local]}}}}\nrules: {{loss: {words}}}\n", encoding="utf-8"
    )
    code, verdict = verdict_of(folder, capsys, "--plan", str(plan))
    assert (code, verdict["verdict"]) == ((3, "inconclusive") if required else (0, "pass")), verdict["reason"]
    (finding,) = of(verdict, "loss", "inconclusive" if required else "not applicable")
    assert "no source reports what was sent and received" in finding["reason"]


def test_check_warns_of_a_generator_that_is_silent_and_says_how_old_its_file_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ready all the same: a generator may begin when the run does."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrk.log").write_text("Running 30s test @ http://192.0.2.1\n", encoding="utf-8")
    old = time.time() - 3 * 3600
    os.utime(tmp_path / "wrk.log", (old, old))
    (tmp_path / "plan.yaml").write_text(
        "name: p\nduration: 1m\ntargets:\n  dut: {sources: [{local: {probes: [cpu]}}]}\n"
        "  tg: {role: generator, sources: [{wrk: {file: wrk.log}}]}\n",
        encoding="utf-8",
    )
    assert run(["check", "plan.yaml"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("ready: 2 sources, ")
    assert "warning: tg reports no figure of the load yet (wrk.log was last written 3 h" in shown
    assert "stays silent is inconclusive" in shown
