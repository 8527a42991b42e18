"""What the tests of generators on a socket share: a load started and ended as a run does it, and whole runs."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

from tests.commands import command_in

from soakwatch.record import RecordView, SeriesKey
from soakwatch.sources.abc import Drivable, Facts, Identifies, Poller, SourceContext
from soakwatch.sources.source_modules import poller_module
from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import Answer

SITE = SourceContext("tg", "generator", (), None, Path(), lambda: 10**18, 3.0)
T = TypeVar("T")


class Load:
    """A load that was started: polled, driven, asked for its facts."""

    def __init__(self, poller: Poller) -> None:
        self.poller: object = poller
        self._poll = poller.poll

    async def poll(self) -> Answer:
        """One poll."""
        return await self._poll(10**18)

    async def drive(self, level: float) -> None:
        """Drive it, as it can be."""
        assert isinstance(self.poller, Drivable)
        await self.poller.drive(level)

    def facts(self) -> Facts:
        """What it reports of itself."""
        assert isinstance(self.poller, Identifies)
        return self.poller.facts()


def acted(name: str, keys: dict[str, object], act: Callable[[Load], Awaitable[T]]) -> T:
    """What is done with a load while it is open; its stack is closed as at the end of a run."""
    module = poller_module(name)

    async def do() -> T:
        async with asyncio.timeout(200), AsyncExitStack() as stack:
            return await act(Load(await module.start(module.config.model_validate(keys), SITE, stack)))

    return asyncio.run(do())


def polled(name: str, keys: dict[str, object], count: int = 1) -> list[Answer]:
    """Some polls, one after the other."""

    async def poll(load: Load) -> list[Answer]:
        return [await load.poll() for _ in range(count)]

    return acted(name, keys, poll)


def left_open(name: str, keys: dict[str, object], count: int = 100) -> int:
    """File descriptors and tasks that many polls have left open, over those of some."""

    async def poll(load: Load) -> int:
        held = []
        for number in range(10 + count):
            await load.poll()
            if number in {9, 9 + count}:
                gc.collect()
                held.append(len(os.listdir("/proc/self/fd")) + len(asyncio.all_tasks()))
        return held[1] - held[0]

    return acted(name, keys, poll)


def by_series(answer: Answer) -> dict[tuple[str, str], float]:
    """Readings by metric and object; each is of the catalogue, carries its labels, and is there once."""
    for sample in answer.samples:
        labels = tuple(part.partition("=")[0] for part in sample.object.split(",")) if sample.object else ()
        assert labels == BY_NAME[sample.metric].labels
    values = {(sample.metric, sample.object): sample.value for sample in answer.samples}
    assert len(values) == len(answer.samples)
    return values


PLAN = """\
name: trial
phases: [{phases}]
targets:
  dut: {{role: dut, sources: [{{local: {{interval: 500ms}}}}]}}
  tg: {{role: generator, sources: [{source}]}}
"""


def run(folder: Path, source: str, phases: str) -> subprocess.CompletedProcess[str]:
    """`soakwatch run` of a short plan with this source."""
    (folder / "plan.yaml").write_text(PLAN.format(phases=phases, source=source), encoding="utf-8")
    done = command_in(folder)("run", "plan.yaml", "--no-web")
    assert "Traceback" not in done.stdout + done.stderr
    return done


def whole_run(folder: Path, source: str, phases: str = "{soak: 2500ms}") -> Path:
    """A run that comes to its end, whatever its verdict (some doubles lose packets): its record."""
    done = run(folder, source, phases)
    assert done.returncode in {0, 1, 3}, done.stdout + done.stderr
    (record,) = folder.glob("runs/*/record.sqlite")
    return record


def refused_run(folder: Path, source: str) -> str:
    """A run that is refused: its message."""
    done = run(folder, source, "{soak: 2s}")
    assert done.returncode in {2, 3}, done.stdout + done.stderr
    return done.stdout + done.stderr


def values(view: RecordView, metric: str, name: str = "") -> list[float]:
    """The readings of one series of the generator."""
    return [float(value) for value in view.series(SeriesKey("tg", metric, name)).value]
