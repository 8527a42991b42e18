"""What of a table no rule judged does not pass in silence, and what nobody could judge holds nothing up."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from soakwatch.cli.main import run

T0 = 1_763_200_000
LINES = 720
Column = Callable[[int], float]


def table(tmp_path: Path, columns: Mapping[str, Column]) -> str:
    """A wide table of 12 h, a line a minute."""
    lines = [",".join(["time", *columns])]
    lines += [",".join([f"{T0 + 60 * n}", *(f"{make(n):g}" for make in columns.values())]) for n in range(LINES)]
    file = tmp_path / "data.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(file)


def judged(tmp_path: Path, columns: Mapping[str, Column], *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the verdict of a table."""
    code = run(["judge", table(tmp_path, columns), *words, "--json", str(tmp_path / "verdict.json")])
    return code, json.loads((tmp_path / "verdict.json").read_text(encoding="utf-8"))


@pytest.fixture
def cpu() -> Column:
    chance = random.Random(4)
    return lambda _: 30 + chance.gauss(0, 2)


def rising(n: int) -> float:
    """From 25 to 100."""
    return 25 + 75 * n / (LINES - 1)


def test_a_resource_that_nobody_judged_holds_the_verdict_up(
    tmp_path: Path, cpu: Column, capsys: pytest.CaptureFixture[str]
) -> None:
    """Response times up to 153 s in no known unit, beside a quiet CPU: inconclusive, with the column and the remedy."""
    code, verdict = judged(tmp_path, {"cpu": cpu, "response_time": lambda n: 1 + 152 * n / LINES})
    assert (code, verdict["verdict"]) == (3, "inconclusive")
    shown = capsys.readouterr().out
    assert (
        "column response_time: judged by no rule; without a unit response_time is not known to be load.latency" in shown
    )
    assert "say --unit 'response_time=ms', or leave it out with --skip 'response_time'" in shown
    assert judged(tmp_path, {"cpu": cpu, "response_time": rising}, "--skip", "response_time")[0] == 0
    assert judged(tmp_path, {"cpu": cpu, "response_time": rising}, "--rule", "growth")[0] == 1


def test_it_is_named_in_every_report(tmp_path: Path, cpu: Column) -> None:
    runs = tmp_path / "runs"
    assert run(["import", table(tmp_path, {"cpu": cpu, "latency": rising}), "--runs", str(runs)]) == 0
    files = {kind: tmp_path / f"report.{kind}" for kind in ("html", "json", "junit", "md")}
    words = [word for kind, file in files.items() for word in (f"--{kind}", str(file))]
    run(["report", "last", "--runs", str(runs), *words])
    for kind, file in files.items():
        assert "latency: judged by no rule" in file.read_text(encoding="utf-8"), kind


def test_a_share_of_memory_is_understood(tmp_path: Path, cpu: Column, capsys: pytest.CaptureFixture[str]) -> None:
    """A column called memory between 0 and 100 is a percentage, which is reported; from 25 to 100 % it grows."""
    code, verdict = judged(tmp_path, {"cpu": cpu, "memory": rising})
    assert code == 1
    assert {f["metric"] for f in verdict["findings"] if f["outcome"] == "fail"} == {"system.memory.utilization"}
    assert "read as system.memory.utilization in %, because it lies between 0 and 100" in capsys.readouterr().err
    assert judged(tmp_path, {"cpu": cpu, "memory_usage": rising}, "--unit", "memory_usage=%")[0] == 1
    bytes_of = {"cpu": cpu, "used_memory": rising}
    assert judged(tmp_path, bytes_of)[0] == 3
    assert judged(tmp_path, bytes_of, "--unit", "used_memory=GB")[0] == 1


def test_what_is_no_reading_holds_nothing_up(tmp_path: Path, cpu: Column, capsys: pytest.CaptureFixture[str]) -> None:
    """The number of the line, a label that never changes, one odd column: reported, and the verdict is not affected."""
    columns = {"cpu": cpu, "index": float, "label": lambda _: 0.0, "wobble": lambda n: n % 7}
    code, _ = judged(tmp_path, columns)
    assert code == 0
    assert "columns index, label, wobble: judged by no rule" in capsys.readouterr().out.replace("\n    ", " ")


def test_most_columns_unknown_is_no_pass(tmp_path: Path, cpu: Column) -> None:
    columns = {"cpu": cpu} | {f"foo{k}": (lambda n, k=k: (n * (k + 3)) % 11) for k in range(4)}
    assert judged(tmp_path, columns)[0] == 3


def test_a_rule_for_shares_leaves_other_columns_alone(tmp_path: Path, cpu: Column) -> None:
    """A latency of 56 s is no CPU at 5600 %; only the rule that was named is asked for."""
    code, verdict = judged(tmp_path, {"cpu": cpu, "response_time": lambda n: 56_000 + n % 9}, "--rule", "cpu_spike")
    assert code == 0
    assert {f["metric"] for f in verdict["findings"] if f["outcome"] != "not applicable"} == {"system.cpu.utilization"}


def test_of_several_rules_those_that_can_judge(tmp_path: Path, cpu: Column, capsys: pytest.CaptureFixture[str]) -> None:
    code, verdict = judged(tmp_path, {"cpu": cpu}, "--rule", "cpu_spike", "--rule", "drops")
    assert code == 0
    assert {f["rule"] for f in verdict["findings"]} == {"cpu_spike"}
    printed = capsys.readouterr().err
    assert "drops judges system.network.packet.dropped" in printed


def test_a_named_rule_judges_a_column_that_has_its_unit(tmp_path: Path) -> None:
    """A response time in ms is the load's latency, which growth does not know; named, it judges it all the same."""
    words = ["--rule", "growth", "--unit", "response_time=ms"]
    code, verdict = judged(tmp_path, {"response_time": rising}, *words)
    assert (code, verdict["findings"][0]["metric"]) == (1, "load.latency")


def test_what_the_named_rule_says_is_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert judged(tmp_path, {"cpu": lambda _: 100.0}, "--rule", "cpu_spike")[0] == 3
    assert "no rule judges" not in capsys.readouterr().out


def test_readings_that_cannot_be_are_named_in_the_verdict(tmp_path: Path, cpu: Column) -> None:
    """A few readings of 300 % are named and block nothing; every sixth makes the run inconclusive, with the remedy."""
    few, many = (lambda n, every=every: 300.0 if n % every == 5 else 31.0 + n % 3 for every in (180, 6))
    code, verdict = judged(tmp_path, {"cpu": cpu, "memory_percent": few})
    assert (code, verdict["verdict"]) == (0, "pass")
    (named,) = [f for f in verdict["findings"] if f["object"] == "column memory_percent"]
    assert named["outcome"] == "not applicable"
    assert "4 readings out of range: dropped" in named["reason"]
    code, verdict = judged(tmp_path, {"cpu": cpu, "memory_percent": many})
    assert (code, verdict["verdict"]) == (3, "inconclusive")
    (named,) = [f for f in verdict["findings"] if f["object"] == "column memory_percent"]
    assert "120 readings out of range: dropped" in named["reason"]
    assert "--skip 'memory_percent'" in named["settle"]
