"""Jobs that tests give to executors; workers import them by name."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from soakwatch.core.errors import PlanError
from soakwatch.core.workers.executor import still_wanted


@dataclass(frozen=True, slots=True)
class Step:
    """What a job is asked to do: ``mark`` is a folder in which it leaves a file for each time that it begins."""

    mark: Path
    number: int = 0
    size: int = 0


def begun(step: Step) -> int:
    """How often a job with this number has begun so far, this one counted."""
    (step.mark / f"{step.number}-{time.monotonic_ns()}-{os.getpid()}").touch()
    return len(list(step.mark.glob(f"{step.number}-*")))


def square(step: Step) -> int:
    """Its number, squared."""
    begun(step)
    return step.number**2


def fall_once(step: Step) -> int:
    """Kills its process when it begins for the first time."""
    if begun(step) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return step.number


def fall(step: Step) -> int:
    """Kills its process each time."""
    begun(step)
    os.kill(os.getpid(), signal.SIGKILL)
    return step.number


def refuse(step: Step) -> int:
    """Raises what a user reads."""
    raise PlanError(f"plan.yaml:{step.number}: no", "and more")


def stumble(step: Step) -> int:
    """Raises what nobody foresaw."""
    raise ZeroDivisionError(step.number)


def sums(step: Step, folder: Path) -> dict[str, int]:
    """The sizes of the files in its folder."""
    begun(step)
    return {file.name: file.stat().st_size for file in folder.iterdir()}


def write(step: Step, folder: Path) -> str:
    """Writes a large file and one in a folder below."""
    begun(step)
    (folder / "inner").mkdir(parents=True)
    (folder / "large").write_bytes(bytes([step.number % 251]) * step.size)
    (folder / "inner" / "empty").touch()
    return "written"


def write_and_refuse(step: Step, folder: Path) -> str:
    """Writes, and then raises."""
    write(step, folder)
    raise PlanError("no verdict")


def wait_until_unwanted(step: Step, folder: Path) -> str:
    """Goes on until nobody wants its result; leaves a file named ``unwanted``, and never more than two minutes."""
    begun(step)
    until = time.monotonic() + 120
    while still_wanted() and time.monotonic() < until:
        time.sleep(0.05)
    (step.mark / "unwanted").touch()
    return "over"


def both_at_once(step: Step) -> bool:
    """Whether another job that holds the same was under way at the same time."""
    held = step.mark / "held"
    try:
        held.mkdir()
    except FileExistsError:
        return True
    time.sleep(0.1)
    held.rmdir()
    return False
