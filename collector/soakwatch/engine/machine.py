"""What a run takes from the machine that it runs on, beside its clock; made up in ``soakwatch_testing.night``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from soakwatch.core.run_command import RunsCommand, run_command
from soakwatch.engine.baseline_freeze import ComputesBaseline, baseline_in_process
from soakwatch.engine.self_monitor import OpensOwn, watch_self
from soakwatch.judge.live.client import AsksJudge, JudgeProcess

COMMIT_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Machine:
    """The poller of the monitor itself, the live judge of a run's folder, what computes its baseline, how commands of
    the user are run, and what measures how long the judge took, in seconds. With ``threaded`` the record
    is written in a thread of its own. Polls are written every ``beat_s`` seconds, and events from outside are heard as
    often."""

    own: OpensOwn = watch_self
    judge: Callable[[Path], AsksJudge] = JudgeProcess
    baseline: ComputesBaseline = baseline_in_process
    command: RunsCommand = run_command
    stopwatch: Callable[[], float] = time.monotonic
    threaded: bool = True
    beat_s: float = COMMIT_EVERY_S


HERE = Machine()
"""This machine."""
