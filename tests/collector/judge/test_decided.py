"""Decided: a run ends by itself once every required rule is certain, its record says why, and segments add up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from soakwatch.cli.main import run as command
from soakwatch.core.errors import PlanError
from soakwatch.core.event_kinds import DECIDED
from soakwatch.judge.judge import why_decided
from soakwatch.judge.record_verdict import judge_record
from soakwatch.plan import plan_from_text
from soakwatch.record import Record, RecordView
from soakwatch.record.model import MONITOR_ORIGIN, USER_ORIGIN
from soakwatch_model.event import Event
from soakwatch_model.finding import Outcome
from soakwatch_testing.night.faults import Fault, Kind, Night
from soakwatch_testing.night.lives import Lives, NightResult

DAY = 86400.0


def lived(place: Path, *faults: Fault) -> NightResult:
    """A whole run of a day whose plan ends it when decided, in virtual time."""
    night = Night(1, 24.0, 2, faults, 60.0, decided=True)
    return Lives(night, place, contradictions=0, reports=False).live()


def test_a_leak_ends_the_run_in_a_quarter_of_its_time_and_fails_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The engine, its timers, the live judge and the end are real; the record says why it ended, and all see it."""
    night = lived(tmp_path, Fault(0.0, DAY, Kind.LEAK, "dut-1", 0.16))
    verdict = night.verdict
    assert night.broken == []
    assert verdict.outcome is Outcome.FAIL
    assert verdict.window.seconds <= DAY / 4
    assert verdict.course.startswith("ended when decided, ")
    assert "memory of fw on dut-1 grows by" in verdict.decided
    with RecordView.open(night.folder) as view:
        (event,) = [stored for stored in view.events() if stored.event.kind == DECIDED]
        assert (event.origin, event.event.detail["outcome"]) == (MONITOR_ORIGIN, "fail")
        assert json.loads(event.event.detail["evidence"])[0][3] == "leaks"
        assert judge_record(view).decided == verdict.decided, "judged again it is the same"
    assert command(["report", str(night.folder), "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["decided"] == verdict.decided
    assert command(["report", str(night.folder)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for text in ("Decided before the planned end", "however often the run is looked at", "What it leaves open"):
        assert text in said


@pytest.mark.slow
def test_a_run_in_which_nothing_grows_passes_before_its_end(tmp_path: Path) -> None:
    """It ended early because it was decided, so that is no reason not to pass."""
    night = lived(tmp_path)
    assert night.broken == []
    assert (night.verdict.outcome, night.verdict.window.seconds < DAY / 2) == (Outcome.PASS, True)
    assert "grow less than allowed" in night.verdict.decided


def table(folder: Path, name: str, begin_s: int, hours: float, a_day: float, born_s: float) -> None:
    """A part of a process's life as an imported run."""
    at = begin_s + 60 * np.arange(round(hours * 60))
    used = 2e8 * (1 + a_day * (at - 1_764_000_000) / DAY) + 5e6 * np.random.default_rng(begin_s).standard_normal(
        at.size
    )
    lines = ["time,target,metric,object,value,unit"]
    thing = '"process=web,instance=0"'
    for when, value in zip(at.tolist(), used.tolist(), strict=True):
        lines.append(f"{when},fw,process.memory.usage,{thing},{value:.0f},By")
        lines.append(f"{when},fw,process.start_time,{thing},{born_s:.0f},s")
    path = folder / f"{name}.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert command(["import", str(path), f"--name={name}", f"--runs={folder / 'runs'}"]) in {0, 1, 3}


def decided(folder: Path, capsys: pytest.CaptureFixture[str], *runs: str) -> dict[str, Any]:
    """What the command prints as JSON."""
    capsys.readouterr()
    assert command(["decided", *runs, "--json", f"--runs={folder / 'runs'}"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def row(document: dict[str, Any]) -> dict[str, Any]:
    """The evidence about the memory of the process."""
    (found,) = [each for each in document["series"] if each["metric"] == "process.memory.usage"]
    result: dict[str, Any] = found
    return result


def test_segments_of_one_life_are_joined_and_those_of_restarts_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Four runs of three hours with a leak of 14 % a day: each alone is open, together they prove it, unless the
    process was restarted before each."""
    for part in range(4):
        for kind, born_s in (("same", 1_763_000_000.0), ("anew", 1_764_000_000.0 + 10_800 * part)):
            table(tmp_path, f"{kind}{part}", 1_764_000_000 + 10_800 * part, 3.0, 0.14, born_s)
    assert row(decided(tmp_path, capsys, "same1"))["course"] == "open"
    together = row(decided(tmp_path, capsys, *(f"same{part}" for part in range(4))))
    assert together["course"] == "leaks"
    assert together["watched_s"] > 6 * 3600, "longer than any of them"
    apart = row(decided(tmp_path, capsys, *(f"anew{part}" for part in range(4))))
    assert apart["leaks"] < together["leaks"] / 3
    assert command(["decided", "same0", "same1", f"--runs={tmp_path / 'runs'}"]) == 0
    assert "2 runs together" in capsys.readouterr().out


def test_only_the_monitor_decides(tmp_path: Path) -> None:
    """An event of the same kind that a user records does not let a run that was broken off pass."""
    with Record.create(tmp_path / "run") as record:
        record.add_event("", Event(DECIDED, "", "", 5, 5, {"text": "trust me"}), USER_ORIGIN)
    with RecordView.open(tmp_path / "run") as view:
        assert why_decided(view) == ""


def test_the_plan_says_it_in_one_word_or_with_a_time() -> None:
    """``decided``, or how long a device may warm up; anything else is refused."""
    plan = "name: x\nduration: 24h\ntargets: {fw: {sources: [local]}}\nstop_when: %s\n"
    stop = plan_from_text(plan % "decided", "x.yaml").stop_when
    assert stop is not None
    assert stop.not_before_s is None
    stop = plan_from_text(plan % "{decided: {not_before: 8h}}", "x.yaml").stop_when
    assert stop is not None
    assert stop.not_before_s == 8 * 3600
    for wrong in ("soon", "{decided: {not_before: soon}}", "{bored: {}}"):
        with pytest.raises(PlanError, match=r"stop_when|decided"):
            plan_from_text(plan % wrong, "x.yaml")
