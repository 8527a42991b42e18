"""What the tests of iperf3 and interfaces share: a context, polls, readings, and whole runs as commands."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from tests.commands import command_in

from soakwatch.record import RecordView, SeriesKey
from soakwatch.sources.abc import Poller, SourceContext, SourceError
from soakwatch.sources.source_modules import poller_module
from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import Answer

Figures = dict[tuple[str, str], float]
needs_iperf3 = pytest.mark.skipif(shutil.which("iperf3") is None, reason="no iperf3 here")


def site(folder: Path, *, trial: bool = False, now_ns: Callable[[], int] = time.time_ns) -> SourceContext:
    """A generator's site."""
    return SourceContext("tg", "generator", (), None, folder, now_ns, 1.0, trial)


@asynccontextmanager
async def loaded(name: str, folder: Path, **keys: object) -> AsyncIterator[Poller]:
    """A load, started and ended with the block; ``trial`` is no key of it."""
    trial = bool(keys.pop("trial", False))
    module = poller_module(name)
    async with asyncio.timeout(200), AsyncExitStack() as stack:
        yield await module.start(module.config.model_validate(keys), site(folder, trial=trial), stack)


def figures(answer: Answer) -> Figures:
    """The last reading of each series; each is of the catalogue, with its labels, in order and within its bounds."""
    values: Figures = {}
    last_ns: dict[tuple[str, str], int] = {}
    for sample in answer.samples:
        entry = BY_NAME[sample.metric]
        labels = tuple(part.partition("=")[0] for part in sample.object.split(",")) if sample.object else ()
        assert labels == entry.labels, sample
        assert entry.low is None or sample.value >= entry.low, sample
        assert entry.high is None or sample.value <= entry.high, sample
        assert sample.time_ns > last_ns.get((sample.metric, sample.object), 0), sample
        last_ns[sample.metric, sample.object] = sample.time_ns
        values[sample.metric, sample.object] = sample.value
    return values


async def until(poller: Poller, ready: Callable[[Figures], bool], seconds: float = 240) -> Figures:
    """Polls until the figures are as they must become; failed polls are no figures."""
    deadline, seen, failed = time.monotonic() + seconds, Figures(), ""
    while True:
        try:
            seen |= figures(await poller.poll(time.time_ns()))
        except SourceError as failure:
            failed = str(failure)
        if ready(seen):
            return seen
        assert time.monotonic() < deadline, f"did not come: {seen} {failed}"
        await asyncio.sleep(0.05)


async def failing(poller: Poller, says: str, seconds: float = 240) -> str:
    """Polls until one fails with these words."""
    deadline, message = time.monotonic() + seconds, "it did not fail"
    while time.monotonic() < deadline:
        try:
            await poller.poll(time.time_ns())
        except SourceError as failure:
            message = str(failure)
            if says in message:
                return message
        await asyncio.sleep(0.05)
    raise AssertionError(message)


def command(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """A command as people give it."""
    return command_in(folder)(*words)


def run_plan(folder: Path, sources: dict[str, list[dict[str, object]]], duration: str, **more: object) -> Path:
    """A whole run with generators and this machine as the target; its folder."""
    targets: dict[str, object] = {name: {"role": "generator", "sources": each} for name, each in sources.items()}
    targets["dut"] = {"role": "dut", "sources": [{"local": {"interval": "1s", "probes": ["load"]}}]}
    plan = {"name": "loaded", "duration": duration, "targets": targets, **more}
    (folder / "plan.yaml").write_text(json.dumps(plan))
    done = command(folder, "run", "plan.yaml", "--runs", "runs", "--no-web")
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    (run,) = [each.parent for each in (folder / "runs").glob("*/record.sqlite")]
    return run


def readings(run: Path, target: str, metric: str, name: str = "") -> list[float]:
    """What a record holds of one series."""
    with RecordView.open(run) as view:
        return [float(value) for value in view.series(SeriesKey(target, metric, name)).value]


@contextmanager
def real_server(port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A server that the load did not start."""
    process = subprocess.Popen(
        ["iperf3", "-s", "-B", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 120
        while not any(each.status == psutil.CONN_LISTEN for each in psutil.Process(process.pid).net_connections("tcp")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.wait()


def clients_of(port: int) -> list[psutil.Process]:
    """The processes that run as clients of a port."""
    clients = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            if "-c" in words and str(port) in words and process.status() != psutil.STATUS_ZOMBIE:
                clients.append(process)
    return clients
