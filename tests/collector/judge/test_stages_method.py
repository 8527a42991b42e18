"""Memory judged by its stages alone, as the method is worded: ``judge FILE --method stages``, and by a plan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch.cli.main import run as command
from soakwatch.core.errors import EXIT_FAIL, EXIT_INCONCLUSIVE, EXIT_PASS, EXIT_USAGE
from soakwatch.plan import plan_from_text
from soakwatch_rules.detectors.memory_growth import STAGES

Floats = NDArray[np.float64]
GIB = 2.0**30
COMMITTED, AVAILABLE = "system.memory.committed", "system.memory.available"
HOURLY, EACH_MINUTE = 3600, 60


def hours(step_s: int, length_h: float = 24.0) -> Floats:
    """Hours since the begin, a poll each ``step_s``."""
    return np.arange(round(length_h * 3600 / step_s), dtype=np.float64) * step_s / 3600


def thirds(at_h: Floats, *per_cent: float) -> Floats:
    """Three levels, one a third of a day."""
    level: Floats = np.asarray(per_cent, dtype=np.float64)[np.minimum((at_h / 8).astype(np.int64), 2)]
    return level


def of_both(committed_per_cent: Floats) -> dict[str, Floats]:
    """A machine of 16 GiB: what is committed, and what is left available."""
    return {COMMITTED: committed_per_cent * 0.16 * GIB, AVAILABLE: (100 - committed_per_cent) * 0.16 * GIB}


def judged(
    folder: Path, step_s: int, columns: Mapping[str, Floats], *words: str
) -> tuple[int, dict[tuple[str, str], tuple[str, str]]]:
    """What the command says of a table: its exit code; outcome and sentence by rule and what it is about."""
    table, file = folder / "run.csv", folder / "verdict.json"
    lines = [",".join(["time", *columns])]
    for index, row in enumerate(zip(*columns.values(), strict=True)):
        lines.append(",".join([str(1_763_200_000 + index * step_s), *(f"{value:.9g}" for value in row)]))
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    code = command(["judge", str(table), *words, "--json", str(file)])
    return code, said(file)


def said(file: Path) -> dict[tuple[str, str], tuple[str, str]]:
    """Outcome and reason of the findings on memory, by rule and object or metric."""
    findings = json.loads(file.read_text(encoding="utf-8"))["findings"]
    return {(f["rule"], f["object"].partition(",")[0] or f["metric"]): (f["outcome"], f["reason"]) for f in findings}


def bump(at_h: Floats) -> Floats:
    """25 %, in the middle third 25.1 %, and 25 % again."""
    return thirds(at_h, 25, 25.1, 25)


def last(at_h: Floats) -> Floats:
    """25 % until the last reading, which is 25.1 %."""
    per_cent = np.full(at_h.size, 25.0)
    per_cent[-1] = 25.1
    return per_cent


def last_third(at_h: Floats) -> Floats:
    """25 %, and 25.1 % in the last third."""
    return thirds(at_h, 25, 25, 25.1)


@pytest.mark.parametrize("step_s", [HOURLY, EACH_MINUTE])
@pytest.mark.parametrize("course", [bump, last, last_third])
def test_a_tenth_of_a_point_is_no_growth(tmp_path: Path, step_s: int, course: object) -> None:
    """25 -> 25.1 -> 25 passes, and what ends at 25.1 % is decided: it passes too, hourly as well."""
    assert callable(course)
    code, findings = judged(tmp_path, step_s, of_both(course(hours(step_s))), "--method", "stages")
    assert code == EXIT_PASS
    for metric, beyond in ((COMMITTED, "above"), (AVAILABLE, "below")):
        outcome, reason = findings["memory_growth", metric]
        assert outcome == "pass"
        assert "no growth" in reason
        assert f"the last does not lie {beyond} the first" in reason or "within the allowed 5 % over the run" in reason


@pytest.mark.parametrize("step_s", [HOURLY, EACH_MINUTE])
def test_stages_of_25_26_and_26_6_per_cent_are_growth(tmp_path: Path, step_s: int) -> None:
    """+6.4 % of committed memory, each question answered; what is available fell by 2.1 % only, which is within 5 %."""
    code, findings = judged(tmp_path, step_s, of_both(thirds(hours(step_s), 25, 26, 26.6)), "--method", "stages")
    assert code == EXIT_FAIL
    outcome, reason = findings["memory_growth", COMMITTED]
    assert outcome == "fail"
    assert "+6.4 %" in reason
    assert "the intervals do not overlap and the last lies above the first, by more than the allowed 5 %" in reason
    assert findings["memory_growth", AVAILABLE][0] == "pass"


@pytest.mark.parametrize("step_s", [HOURLY, EACH_MINUTE])
@pytest.mark.parametrize("committed", [False, True])
def test_available_memory_of_75_72_and_69_per_cent_is_growth(tmp_path: Path, step_s: int, committed: bool) -> None:
    """-8 %, with the sign turned; committed memory that stays does not clear it: a pass needs both."""
    columns = {AVAILABLE: thirds(hours(step_s), 75, 72, 69) * 0.16 * GIB}
    columns |= {COMMITTED: np.full(columns[AVAILABLE].size, 4 * GIB)} if committed else {}
    code, findings = judged(tmp_path, step_s, columns, "--method", "stages")
    assert code == EXIT_FAIL
    outcome, reason = findings["memory_growth", AVAILABLE]
    assert outcome == "fail"
    assert "-8 %" in reason
    assert "the last lies below the first" in reason


@pytest.mark.parametrize("step_s", [HOURLY, EACH_MINUTE])
def test_the_tolerance_is_of_the_run_and_not_of_a_day(tmp_path: Path, step_s: int) -> None:
    """10 % in 72 h are 3.3 % a day, which the shape allows, and 10 % of the run, which the method does not."""
    at_h = hours(step_s, 72)
    noise = np.random.default_rng(1).normal(0, 0.002, at_h.size)
    columns = {"process.memory.usage{process=fw}": 5e8 * (1 + 0.1 * at_h / 72) * (1 + noise)}
    code, findings = judged(tmp_path, step_s, columns, "--method", "stages")
    assert (code, findings["memory_growth", "process=fw"][0]) == (EXIT_FAIL, "fail")
    code, findings = judged(tmp_path, step_s, columns)
    assert (code, findings["memory_growth", "process=fw"][0]) == (EXIT_PASS, "warn")


def test_one_of_three_processes_is_named(tmp_path: Path) -> None:
    """+8 % of one of three: that one fails, and the others do not."""
    at_h = hours(HOURLY)
    noise = np.random.default_rng(2).normal(0, 0.002, (3, at_h.size))
    grown = (1.0, thirds(at_h, 1, 1.04, 1.08), 1.0)
    columns = {
        f"process.memory.usage{{process={name}}}": 2e8 * grown[i] * (1 + noise[i]) for i, name in enumerate("abc")
    }
    code, findings = judged(tmp_path, HOURLY, columns, "--method", "stages")
    outcomes = {what: outcome for (rule, what), (outcome, _) in findings.items() if rule == "memory_growth"}
    assert code == EXIT_FAIL
    assert outcomes == {"process=a": "pass", "process=b": "fail", "process=c": "pass"}


def test_an_hourly_poll_that_was_lost_leaves_the_run_decided(tmp_path: Path) -> None:
    """Twenty-three of 24 polls decide; nine polls are three a third, which is too few."""
    at_h = hours(HOURLY)
    columns = of_both(thirds(at_h, 25, 26, 26.6))
    kept = at_h != 20
    noon = {metric: np.where(kept, values, np.nan) for metric, values in columns.items()}
    assert judged(tmp_path, HOURLY, noon, "--method", "stages")[0] == EXIT_FAIL
    few = {metric: values[:9] for metric, values in columns.items()}
    code, findings = judged(tmp_path, HOURLY, few, "--method", "stages")
    assert (code, findings["memory_growth", COMMITTED][0]) == (EXIT_INCONCLUSIVE, "inconclusive")


def test_the_shape_only_warns_beside_it(tmp_path: Path) -> None:
    """A leak of the last hours is within 5 % of the run: the run passes, and says what the shape suspects."""
    at_h = hours(EACH_MINUTE)
    columns = {"process.memory.usage{process=fw}": 5e8 * (1 + 0.06 * np.clip((at_h - 12) / 12, 0, 1))}
    code, findings = judged(tmp_path, EACH_MINUTE, columns, "--method", "stages")
    assert (code, findings["growth", "process=fw"][0]) == (EXIT_PASS, "warn")
    code, findings = judged(tmp_path, EACH_MINUTE, columns)
    assert (code, findings["growth", "process=fw"][0]) == (EXIT_FAIL, "fail")


def test_a_record_is_judged_by_stages_as_its_table_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``import`` keeps a run; alone or with others it is judged by stages; a rule left out has no method."""
    monkeypatch.chdir(tmp_path)
    judged(tmp_path, HOURLY, of_both(thirds(hours(HOURLY), 25, 26, 26.6)))
    assert command(["import", "run.csv", "--name", "night"]) != EXIT_FAIL
    assert command(["judge", "last", "--method", "stages", "--json", "v.json"]) == EXIT_FAIL
    assert said(tmp_path / "v.json")["memory_growth", COMMITTED][0] == "fail"
    assert command(["judge", "runs", "--method", "stages", "--jobs", "1"]) == EXIT_FAIL
    assert command(["judge", "last", "--rule", "growth", "--method", "stages"]) == EXIT_USAGE


def test_a_plan_says_so_too() -> None:
    plan = plan_from_text(
        "name: n\nduration: 24h\ntargets: {d: {role: dut, sources: [local]}}\n"
        "rules: {memory_growth: {method: stages}}\n",
        "plan.yaml",
    )
    assert [dict(rule.parameters) for rule in plan.rules] == [{"method": STAGES}]
