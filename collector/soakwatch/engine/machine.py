"""What a run uses of its machine besides the clock; simulated in ``soakwatch_testing.night``."""

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
    """The monitor's own poller, the live judge, the computation of the baseline, the runner of user commands, and the
    stopwatch of the judge in seconds. If ``threaded``, the record is written in its own thread. Every ``beat_s``
    seconds polls are written and outside events read."""

    own: OpensOwn = watch_self
    judge: Callable[[Path], AsksJudge] = JudgeProcess
    baseline: ComputesBaseline = baseline_in_process
    command: RunsCommand = run_command
    stopwatch: Callable[[], float] = time.monotonic
    threaded: bool = True
    beat_s: float = COMMIT_EVERY_S


HERE = Machine()
"""This machine."""
