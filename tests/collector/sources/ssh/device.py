"""A Linux device behind a test's sshd: its poller, polls of it, and processes to be found on it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import psutil

from soakwatch.sources.abc import Poller, SourceContext, WatchedProcess
from soakwatch.sources.pollers.ssh import Config, start
from soakwatch_agent.context import SECOND
from soakwatch_model.metric import BY_NAME, fault_of
from soakwatch_model.sample import Answer
from soakwatch_testing.sshd import Sshd

_SLEEPER = """\
import threading, time
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
time.sleep(600)
"""


def site_for(folder: Path, *processes: WatchedProcess, interval_s: float = 1.0) -> SourceContext:
    """The place of a source in a test."""
    return SourceContext("dut", "dut", processes, None, folder, time.time_ns, interval_s)


@contextmanager
def sleeper(name: str) -> Iterator[psutil.Process]:
    """A process of two threads with a name of its own in its command line, older than a watch's patience."""
    process = subprocess.Popen([sys.executable, "-c", _SLEEPER, name])
    begin = time.monotonic()
    try:
        watched = psutil.Process(process.pid)
        while watched.num_threads() < 2 or time.monotonic() - begin < 0.6:
            assert time.monotonic() < begin + 120
            time.sleep(0.02)
        yield watched
    finally:
        process.kill()
        process.wait()


@asynccontextmanager
async def linux(server: Sshd, folder: Path, *processes: WatchedProcess, **more: object) -> AsyncIterator[Poller]:
    """The poller of a server, as a plan would have it."""
    config = Config.model_validate({**server.keys, **more})
    async with AsyncExitStack() as stack:
        yield await start(config, site_for(folder, *processes, interval_s=config.interval), stack)


def values(answer: Answer) -> dict[tuple[str, str], float]:
    """Samples by metric and object; every one must be in the catalogue's range, and no series reported twice."""
    readings = {(sample.metric, sample.object): sample.value for sample in answer.samples}
    assert len(readings) == len(answer.samples)
    for sample in answer.samples:
        assert fault_of(sample.metric, sample.value) is None, sample
        labels = [part.partition("=")[0] for part in sample.object.split(",") if "=" in part]
        assert set(labels) <= set(BY_NAME[sample.metric].labels), sample
    return readings


def polls(server: Sshd, folder: Path, count: int, *processes: WatchedProcess, **more: object) -> list[Answer]:
    """Several polls, a second apart by their clock."""

    async def go() -> list[Answer]:
        async with linux(server, folder, *processes, **more) as poller:
            begin = time.time_ns()
            return [await poller.poll(begin + number * SECOND) for number in range(count)]

    return asyncio.run(go())
