"""Looks by hand at a process of a target: taken one after the other, kept in a folder, and compared."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.private_files import make_private_folder, write_private
from soakwatch.core.redaction import Redaction
from soakwatch.core.units import show_seconds
from soakwatch.diagnose.allowance import Allowance
from soakwatch.diagnose.kept import artifacts_of
from soakwatch.diagnose.look import Look, read_look
from soakwatch.diagnose.reading import Course
from soakwatch.diagnose.take import About, take
from soakwatch.diagnose.wording import cost_words
from soakwatch.engine.diagnosing import HostAtHand
from soakwatch.engine.hooks.capturing import host_of
from soakwatch.engine.hooks.trigger import HookFailedError
from soakwatch.engine.plan_check import check_sources
from soakwatch.engine.scripts import stamp
from soakwatch.plan import Plan, TargetPlan
from soakwatch_model.sample import object_labels, object_text

_READINGS = 40  # of the resident memory between two looks
_PAGE = 4096


class DiagnoseError(SoakwatchError):
    """A look cannot be taken; the message is one sentence with the remedy."""


@dataclass(frozen=True, slots=True)
class ByHand:
    """How looks are taken by hand: how many, with ``every_s`` between two, and what they may do."""

    count: int
    every_s: float
    allowed: Allowance


@dataclass(frozen=True, slots=True)
class Found:
    """A process: its object and its pid."""

    process: str
    pid: int


async def find_process(plan: Plan, target: TargetPlan, name: str) -> Found:
    """The process that a target's sources see under a name, or ``pid:N``. Raises DiagnoseError."""
    how, _, number = name.partition(":")
    if how == "pid" and number.isdecimal():
        return Found(object_text(process=name), int(number))
    alone = plan.model_copy(update={"targets": (target,)})
    with tempfile.TemporaryDirectory(prefix="soakwatch-diagnose-") as folder:
        checks = await check_sources(alone, Path(folder))
    errors = [check.error for check in checks if check.error]
    seen = [sample for check in checks for sample in check.samples if sample.metric == "process.pid"]
    fitting = [sample for sample in seen if object_labels(sample.object).get("process") == name]
    if not fitting:
        names = sorted({object_labels(sample.object).get("process", "") for sample in seen})
        known = f": the plan watches {', '.join(names)}" if names else ""
        raise DiagnoseError(errors[0] if errors else f"{target.name}: no process {name!r} is running{known}")
    first = min(fitting, key=lambda sample: sample.object)
    return Found(first.object, int(first.value))


async def take_by_hand(
    target: TargetPlan, found: Found, how: ByHand, folder: Path, redaction: Redaction, tell: Callable[[str], None]
) -> tuple[tuple[Look, ...], Course | None]:
    """Takes the looks, writes each with its files into ``folder`` as it is taken, and shows progress by ``tell``.

    Raises DiagnoseError.
    """
    opened = host_of(target, folder)
    if opened is None:
        raise DiagnoseError(f"{target.name} has no source local, ssh or agent over SSH: looks are taken there")
    looks: list[Look] = []
    readings: list[tuple[float, float]] = []
    try:
        async with opened as source:
            host = HostAtHand(source)
            for number in range(1, how.count + 1):
                if number > 1:
                    tell(f"look {number} follows in {show_seconds(how.every_s)}")
                    readings += await _resident(host, found.pid, how.every_s)
                about = About(number, target.name, found.process, found.pid)
                allowed = replace(how.allowed, last=number == how.count)
                look, kept = await take(host, about, allowed, time.time_ns(), looks[-1] if looks else None)
                whole, files = artifacts_of(look, kept, f"{stamp(look.time_ns)}-{number}", redaction)
                for artifact in files:
                    _write(folder / artifact.name.rpartition("/")[2], artifact.data)
                looks.append(whole)
                if not whole.alive:
                    raise DiagnoseError(f"{target.name}: the process with pid {found.pid} is gone")
                tell(f"look {number} of {how.count}: {cost_words(whole.cost)}")
    except HookFailedError as failure:
        raise DiagnoseError(str(failure)) from None
    return tuple(looks), _course(readings)


async def _resident(host: HostAtHand, pid: int, seconds: float) -> list[tuple[float, float]]:
    """The resident memory while nothing else is done, in bytes by time."""
    readings, end = [], time.monotonic() + seconds
    pause = max(1.0, seconds / _READINGS)
    while (left := end - time.monotonic()) > 0:
        output, _ = await host.run(f"cat /proc/{pid}/statm", 10.0)
        fields = output.split()
        if len(fields) > 1 and fields[1].isdigit():
            readings.append((time.time(), float(int(fields[1]) * _PAGE)))
        await asyncio.sleep(min(pause, left))
    return readings


def _course(readings: Sequence[tuple[float, float]]) -> Course | None:
    if not readings:
        return None
    times, resident = (np.asarray(column, dtype=np.float64) for column in zip(*readings, strict=True))
    return Course(times, resident)


def _write(path: Path, data: bytes) -> None:
    try:
        make_private_folder(path.parent)
        write_private(path, data)
    except OSError as error:
        raise DiagnoseError(f"{path} cannot be written: {(error.strerror or 'no reason given').lower()}") from None


def looks_in(folder: Path) -> tuple[Look, ...]:
    """The looks that were written into a folder by hand, in order of time."""
    looks = []
    for path in sorted(folder.glob("*-look.json")):
        with suppress(OSError):
            look = read_look(path.read_bytes())
            if look is not None:
                looks.append(look)
    return tuple(sorted(looks, key=lambda look: look.time_ns))
