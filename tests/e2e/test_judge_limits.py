"""Slow answers, full tables, and runs beside runs, as whole tables through the commands."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray
from tests.collector.runs.compared_runs import written_run
from tests.commands import Command

from soakwatch.cli.main import soakwatch

Floats = NDArray[np.float64]
T0, N = 1_767_225_600, 480
SESSIONS, LIMIT = ("fw", "system.sessions", "table=sessions"), ("fw", "system.sessions.limit", "table=sessions")
P99, SENT, BACK = (
    ("gen", "load.latency", "quantile=p99"),
    ("gen", "load.tx.packets", ""),
    ("gen", "load.rx.packets", ""),
)
Table = Mapping[tuple[str, str, str], Floats]


def night(seed: int, pps: float = 7.5e6, slow: float = 1.0, full: int = 0) -> Table:
    """Eight hours of a device under a steady load, a reading a minute."""
    rng = np.random.default_rng(seed)
    count = np.floor(np.cumsum(60 * pps * (1 + 0.01 * rng.standard_normal(N))))
    sessions = np.floor(3e6 * (1 + 0.01 * rng.standard_normal(N)))
    sessions[200 : 200 + full] = 6e6
    latency = 2e-4 * np.exp(0.1 * rng.standard_normal(N)) * np.where(np.arange(N) < 0.75 * N, 1.0, slow)
    return {
        ("fw", "system.cpu.utilization", ""): 0.3 + 0.02 * rng.standard_normal(N),
        SESSIONS: sessions,
        LIMIT: np.full(N, 6e6),
        P99: latency,
        SENT: count,
        BACK: count,
    }


def written(path: Path, table: Table) -> Path:
    """As a long table."""
    lines = ["time,target,metric,object,value"]
    for (target, metric, object_), values in table.items():
        lines += [f"{T0 + 60 * n},{target},{metric},{object_},{value:.12g}" for n, value in enumerate(values)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def command(*words: str) -> tuple[int, str]:
    """A command: its exit code, and what it printed."""
    done = CliRunner().invoke(soakwatch, list(words), standalone_mode=False, env={"COLUMNS": "200"})
    assert done.exception is None, done.output
    return done.return_value, done.stdout


def verdict(path: Path, *words: str) -> tuple[str, dict[str, tuple[str, str]]]:
    """The verdict of a table or a run, and the worst of what each rule said that fails or warns."""
    _, text = command("judge", str(path), "--json", "-", *words)
    verdict = json.loads(text)
    against: dict[str, tuple[str, str]] = {}
    for finding in verdict["findings"]:
        if finding["outcome"] in {"fail", "warn"}:
            against.setdefault(finding["rule"], (finding["outcome"], finding["reason"]))
    return verdict["verdict"], against


def test_a_healthy_night_passes(tmp_path: Path) -> None:
    """Neither latency with heavy tails nor a table that is half full counts against it."""
    assert verdict(written(tmp_path / "night.csv", night(1))) == ("pass", {})


@pytest.mark.parametrize("slow", [2.0, 20.0])
def test_answers_that_become_slow_fail_the_device(tmp_path: Path, slow: float) -> None:
    """The generator measures it, the device is failed for it."""
    outcome, against = verdict(written(tmp_path / "slow.csv", night(1, slow=slow)))
    assert outcome == "fail"
    assert against["latency"][0] == "fail"
    pattern = r"p99 latency was ([\d.]+) times the usual value from 2026-01-01 06:00:00 UTC to the end"
    match = re.search(pattern, against["latency"][1])
    assert match is not None, against["latency"][1]
    assert float(match[1]) == pytest.approx(slow, rel=0.15)


@pytest.mark.parametrize("minutes", [5, 60])
def test_a_full_session_table_fails(tmp_path: Path, minutes: int) -> None:
    """6 M sessions of 6 M."""
    outcome, against = verdict(written(tmp_path / "full.csv", night(1, full=minutes)))
    assert outcome == "fail"
    assert against["saturation"][0] == "fail"
    assert "session table: 100 % of 6 M sessions" in against["saturation"][1]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Five runs of a release, and three of the next: as fast, slower by 6.6 %, and faster."""
    folder = tmp_path_factory.mktemp("beside")
    tables = {f"old{n}": night(n, 7.5e6 * (1 + 0.002 * n)) for n in range(5)}
    tables |= {"same": night(11, 7.52e6), "slower": night(12, 7.0e6), "faster": night(13, 8.5e6)}
    for name, table in tables.items():
        command("import", str(written(folder / f"{name}.csv", table)), "--runs", str(folder / "runs"), "--name", name)
    return {name: next((folder / "runs").glob(f"*{name}")) for name in tables}


@pytest.mark.parametrize(("name", "expected"), [("same", "pass"), ("slower", "fail"), ("faster", "pass")])
def test_runs_beside_runs(runs: dict[str, Path], name: str, expected: str) -> None:
    """Fewer packets per second than before fail, more do not."""
    named = [word for n in range(5) for word in ("--against", str(runs[f"old{n}"]))]
    outcome, against = verdict(runs[name], *named, "--rule", "run_difference")
    assert outcome == expected, against
    assert ("run_difference" in against) is (expected == "fail")


def test_the_figures_of_the_load_come_first(runs: dict[str, Path], tmp_path: Path) -> None:
    """The terminal tells packets per second, then latency, then the device; with a rate there is its time."""
    named = [word for n in range(5) for word in ("--against", str(runs[f"old{n}"]))]
    code, text = command("judge", str(runs["slower"]), *named)
    assert code == 1
    rows = text[text.index("Compared with earlier runs") :].splitlines()[2:]
    assert rows[0].startswith("fw load.rx.packets")
    assert "M packets/s" in rows[0]
    assert "✗ fail (p = " in rows[0]
    assert rows[1].startswith("fw load.latency · quantile=p99")
    assert any(row.startswith("fw system.cpu.utilization") for row in rows[2:4])
    page = tmp_path / "page.html"
    command("report", str(runs["slower"]), "--against", str(runs["old0"]), "--html", str(page))
    assert "packets received, mean rate" in page.read_text(encoding="utf-8")


SMALL_PLAN = "{duration: 2m, targets: {fw: {sources: [{snmp: {host: 198.18.0.1, community: 'env:C'}}]}}}"


@pytest.mark.slow
def test_a_run_is_judged_again_with_some_values_of_its_plan_changed(tmp_path: Path, soakwatch: Command) -> None:
    """Its own plan but for a limit; a wrong path is one sentence, and so is a change of no plan at all."""
    written_run(tmp_path / "runs", "fw", plan=SMALL_PLAN)
    judged = soakwatch("judge", "fw", "--rule", "level", "--set", "rules.level.cpu=10%")
    assert judged.returncode == 1, judged.stdout + judged.stderr
    assert "level" in judged.stdout
    assert soakwatch("judge", "fw", "--rule", "level").returncode != 1
    wrong = soakwatch("judge", "fw", "--set", "rules.levl.cpu=10%")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "soakwatch: plan of the run:1:1: unknown rule 'levl'; did you mean 'level'?\n"
    several = soakwatch("judge", "fw", "fw", "--set", "rules.level.cpu=10%")
    assert several.returncode == 2
    assert "--set changes the plan of one RUN, or that of --plan" in several.stderr
