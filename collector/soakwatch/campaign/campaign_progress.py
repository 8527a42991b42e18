"""How far a campaign is, in numbers and words: done, running, left, and when it ends by what its runs took so far."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from soakwatch.campaign.attempt import RUNNING as THE_RUN
from soakwatch.campaign.attempt import read_result
from soakwatch.campaign.campaign_keys import Outline
from soakwatch.campaign.campaign_model import ENDED, LOST, RUNNING, WAITING, CampaignState, CellRun
from soakwatch.campaign.campaign_state import History
from soakwatch.campaign.planned_runs import ALLOWANCE_S, planned_runs, spread_s
from soakwatch.core.errors import EXIT_BROKEN, EXIT_FAIL, EXIT_INCONCLUSIVE, EXIT_PASS, SoakwatchError
from soakwatch.core.units import show_seconds
from soakwatch.core.yaml import Plain
from soakwatch.runs.run_state import StateReader

_INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class CurrentRun:
    """A run that goes on: ``stage`` is its phase, or what is done before and after it."""

    run: CellRun
    stage: str
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class Progress:
    """A campaign in numbers. ``total`` counts repetitions that are sure to be made, each once however often it was
    attempted; ``verdicts`` are those of the last attempts; ``missing`` repetitions were lost. ``left_s`` is None where
    nothing tells."""

    name: str
    total: int
    done: int
    verdicts: Mapping[str, int]
    missing: int
    going: tuple[CurrentRun, ...]
    left_s: float
    complete: bool
    monitor_failed: int = 0

    @property
    def exit_code(self) -> int:
        """0 where all passed, 1 where any failed, 4 where a run is missing because the monitor failed, 3 where a
        verdict is inconclusive or a run is missing for another reason."""
        if self.verdicts.get("fail"):
            return EXIT_FAIL
        if self.monitor_failed:
            return EXIT_BROKEN
        whole = self.done == self.total and not self.missing
        return EXIT_PASS if whole and not self.verdicts.get(_INCONCLUSIVE) else EXIT_INCONCLUSIVE

    def words(self) -> str:
        """One line.

        >>> Progress("x", 12, 3, {"pass": 2, "fail": 1}, 1, (), 90.0, False).words()
        '3 of 12 runs done: 2 pass, 1 fail; 1 without a verdict; about 1 min 30 s left'
        """
        order = ("pass", "fail", _INCONCLUSIVE)
        said = ", ".join(f"{self.verdicts[word]} {word}" for word in order if self.verdicts.get(word))
        parts = [f"{self.done} of {self.total} runs done" + (f": {said}" if said else "")]
        parts += [f"{self.missing} without a verdict"] if self.missing else []
        if self.left_s > 0 and not self.complete:
            parts.append(f"about {show_seconds(round(self.left_s))} left")
        return "; ".join(parts)


def last_attempts(state: CampaignState) -> list[CellRun]:
    """The last attempt of every repetition, in planned order."""
    last: dict[tuple[str, int], CellRun] = {}
    for run in state.runs:
        last[run.cell.id, run.repetition] = run
    return list(last.values())


def progress_of(campaign: Outline, state: CampaignState, history: History) -> Progress:
    """How far a campaign is now."""
    runs = last_attempts(state)
    over = [run for run in runs if run.state == ENDED]
    going = tuple(_going(run) for run in runs if run.state == RUNNING)
    return Progress(
        name=state.name,
        total=len(runs),
        done=len(over),
        verdicts=Counter(run.verdict or _INCONCLUSIVE for run in over),
        missing=sum(run.state == LOST for run in runs),
        going=going,
        left_s=_left_s(campaign, runs, going, history),
        complete=state.complete,
        monitor_failed=sum(
            run.state == LOST and (run.cell.id, run.repetition) in history.monitor_failed for run in runs
        ),
    )


def _going(run: CellRun) -> CurrentRun:
    elapsed_s = 0.0 if run.begin_ns is None else max(0.0, (time.time_ns() - run.begin_ns) * 1e-9)
    result = None if run.folder is None else read_result(run.folder)
    stage = (run.reason or "starting") if result is None else result.stage
    if stage == THE_RUN and run.folder is not None:
        with suppress(SoakwatchError, OSError):
            state = StateReader(run.folder).read(time.time_ns())
            stage = "judging" if state.standing == "ended" else state.phase.name if state.phase else state.standing
    return CurrentRun(run, stage, elapsed_s)


def _left_s(campaign: Outline, runs: list[CellRun], going: tuple[CurrentRun, ...], history: History) -> float:
    """What is left, by the measured length of each cell's runs, else its planned one and what others took besides."""
    besides = [
        length - campaign.seconds[cell] for cell, lengths in history.lengths_s.items() for length in lengths if length
    ]
    more_s = statistics.median(besides) if besides else ALLOWANCE_S
    lengths = {
        cell.id: statistics.median(history.lengths_s[cell.id])
        if history.lengths_s.get(cell.id)
        else campaign.seconds[cell.id] + more_s
        for cell in campaign.cells
    }
    busy = {one.run.testbed: max(0.0, lengths[one.run.cell.id] - one.elapsed_s) + campaign.rest_s for one in going}
    waiting = [(run.cell.id, lengths[run.cell.id]) for run in runs if run.state in {WAITING, LOST}]
    longest = max((left - campaign.rest_s for left in busy.values()), default=0.0)
    return max(longest, spread_s(campaign, waiting, busy) if waiting else 0.0)


def progress_data(campaign: Outline, progress: Progress, state: CampaignState) -> dict[str, Plain]:
    """The same for programs."""
    waiting = {(run.cell.id, run.repetition) for run in state.runs if run.state == WAITING}
    return {
        "name": progress.name,
        "complete": progress.complete,
        "runs": progress.total,
        "done": progress.done,
        "verdicts": dict(progress.verdicts),
        "without_verdict": progress.missing,
        "left_s": round(progress.left_s, 1),
        "exit_code": progress.exit_code,
        "running": [
            {
                **_run_data(one.run),
                "stage": one.stage,
                "elapsed_s": round(one.elapsed_s, 1),
            }
            for one in progress.going
        ],
        "attempts": [_run_data(run) for run in state.runs if run.state != WAITING],
        "next": [
            {"cell": cell.id, "repetition": repetition}
            for cell, repetition in planned_runs(campaign)
            if (cell.id, repetition) in waiting
        ],
    }


def _run_data(run: CellRun) -> dict[str, Plain]:
    return {
        "cell": run.cell.id,
        "values": dict(run.cell.values),
        "repetition": run.repetition,
        "attempt": run.attempt,
        "state": run.state,
        "verdict": run.verdict,
        "reason": run.reason,
        "testbed": run.testbed,
        "folder": None if run.folder is None else str(run.folder),
        "begin_ns": run.begin_ns,
        "end_ns": run.end_ns,
    }
