"""How long it lasts, as a user sees it: a table imported, judged by a plan that asks, in every format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from soakwatch.cli.main import run as command
from soakwatch.judge.proved import ProvedMtbf, joined
from soakwatch.report.json import verdict_schema

BEGIN_S = 1_764_000_000
PLAN = """name: night
duration: 24h
targets:
  fw: {sources: [local]}
rules:
  forecast: {not_before: %s}
"""


@pytest.fixture
def night(tmp_path: Path) -> Path:
    """A day of a connection table of 10,000 that is 40 % full and gains 100 connections a day."""
    rng = np.random.default_rng(38)
    count = np.round(4000 + 100 * np.arange(1440) / 1440 + 40 * rng.standard_normal(1440))
    lines = ["time,system.conntrack.count,system.conntrack.limit"]
    lines += [f"{BEGIN_S + 60 * place},{value:.0f},10000" for place, value in enumerate(count)]
    table = tmp_path / "fw.csv"
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert command(["import", str(table), "--target=fw", f"--runs={tmp_path / 'runs'}"]) in {0, 3}
    return tmp_path


def judged(folder: Path, asked: str) -> tuple[int, dict[str, Any]]:
    """The exit code and verdict.json of a plan that asks for a time."""
    (folder / "plan.yaml").write_text(PLAN % asked, encoding="utf-8")
    out = folder / "verdict.json"
    words = ["judge", "last", f"--runs={folder / 'runs'}", f"--plan={folder / 'plan.yaml'}", "--rule=forecast"]
    code = command([*words, f"--json={out}", f"--html={folder / 'report.html'}", f"--md={folder / 'report.md'}"])
    document: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return code, document


def test_a_plan_that_asks_for_a_month_passes_and_for_half_a_year_fails(
    night: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """5,900 connections are left at 100 a day: 59 days; page, Markdown, terminal and JSON have the same sentence."""
    code, document = judged(night, "30d")
    assert code == 0
    jsonschema.Draft202012Validator(json.loads(verdict_schema())).validate(document)
    (row,) = document["forecasts"]
    assert (row["metric"], row["limit"], row["confidence"]) == ("system.conntrack.count", 10_000, 0.95)
    assert 50 * 86400 < row["not_before_seconds"] < row["after_seconds"] < 61 * 86400
    assert row["text"].startswith("full in 5")
    assert ", with 95 % not before 5" in row["text"]
    (proof,) = document["mtbf"]
    assert (proof["failures"], round(proof["at_least_seconds"] / 3600)) == (0, 8)
    said = capsys.readouterr().out
    for text in (said, *((night / name).read_text(encoding="utf-8") for name in ("report.html", "report.md"))):
        assert row["text"] in " ".join(text.split())
    assert "MTBF of 8 h or more (95 %), by 23 h 59 min without a failure" in " ".join(said.split())
    code, document = judged(night, "180d")
    assert code == 1
    assert document["mtbf"][0]["failures"] == 1


def test_a_plan_that_asks_for_nothing_gets_no_finding_and_the_same_times(night: Path) -> None:
    """The rule judges nothing by itself; verdict.json has the times all the same."""
    out = night / "plain.json"
    assert command(["judge", "last", f"--runs={night / 'runs'}", f"--json={out}"]) in {0, 3}
    document = json.loads(out.read_text(encoding="utf-8"))
    assert not [finding for finding in document["findings"] if finding["rule"] == "forecast"]
    assert "with 95 % not before 5" in document["forecasts"][0]["text"]


def test_hours_and_failures_of_several_runs_add_up_by_device() -> None:
    """Three nights of two devices, of which one failed once."""
    nights = [ProvedMtbf("a", 86400.0, 0), ProvedMtbf("b", 86400.0, 1), ProvedMtbf("a", 86400.0, 0)]
    first, second = joined(nights)
    assert (first.target, first.watched_s, first.failures, first.runs) == ("a", 172_800.0, 0, 2)
    assert first.words == "MTBF of 16 h or more (95 %), by 48 h without a failure in 2 runs"
    assert second.words == "MTBF of 5 h or more (95 %), by 24 h with 1 failure"
