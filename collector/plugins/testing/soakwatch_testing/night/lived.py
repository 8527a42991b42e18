"""Runs and checks one night."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from soakwatch_model.finding import Outcome
from soakwatch_testing.night.checks import broken, differences, lost_nothing, polled_alike
from soakwatch_testing.night.faults import Kind, Night
from soakwatch_testing.night.lives import Lives

_REPORTED = 10  # one in so many nights of many writes its reports


@dataclass(frozen=True, slots=True)
class Lived:
    """The result of one night, without its record."""

    night: Night
    broken: tuple[str, ...]
    outcome: str
    reason: str
    digest: str
    lives: int
    cpu_s: float
    twin: bool = False


def live(night: Night, *, keep: Path | None = None, reports: bool = True) -> Lived:
    """Run and check a night; if its monitor died without losing a poll, compare it with its twin whose monitor
    lived."""
    began_s = time.process_time()
    with tempfile.TemporaryDirectory(dir=_memory()) as scratch:
        place = Path(scratch) if keep is None else keep
        result = Lives(night, place / "night", reports=reports).live()
        wrong = broken(night, result)
        twin = bool(night.of(Kind.KILL)) and lost_nothing(result)
        if twin:
            alive = replace(night, faults=tuple(fault for fault in night.faults if fault.kind is not Kind.KILL))
            other = Lives(alive, Path(scratch) / "twin", contradictions=0, reports=False).live()
            if twin := polled_alike(result, other):
                wrong += differences(result, other)
    verdict = result.verdict
    if not night.faults and verdict.outcome is not Outcome.PASS:
        wrong.append(f"nothing befell it, and the verdict is {verdict.outcome.value}")
    digest = f"record {result.record_digest} verdict {result.verdict_digest}"
    cpu_s = time.process_time() - began_s
    return Lived(night, tuple(wrong), verdict.outcome.value, verdict.reason, digest, result.lives, cpu_s, twin)


def _memory() -> str | None:
    """A folder in memory, if there is one: a night makes ten thousand commits, which are slow on a disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a folder of its own is made there


def one_of_many(night: Night) -> Lived | str:
    """The same in a pool's process; an exception is returned with the command that repeats the night."""
    try:
        return live(night, reports=night.seed % _REPORTED == 0)
    except Exception as error:  # noqa: BLE001 - an error of one night, reported with its seed
        return f"{again(night)}: {type(error).__name__}: {error}"


def again(night: Night) -> str:
    """The command that repeats a night."""
    kinds = ",".join(dict.fromkeys(fault.kind.value for fault in night.faults)) or "none"
    return f"tests/night --seed {night.seed} --hours {night.hours:g} --targets {night.targets} --faults {kinds}"
