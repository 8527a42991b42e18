"""Agents for tests: real ones on this machine, a relay that cuts the link to one, a collector that follows one."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from soakwatch.core.clock import SteadyClock
from soakwatch.sources.abc import BackfilledPoll, SourceContext, SourceError
from soakwatch.sources.pollers.agent import AgentPoller, Config
from soakwatch.sources.pollers.agent import start as start_poller
from soakwatch_agent.service import bounded
from soakwatch_model.roles import DUT
from soakwatch_model.sample import Answer

_AGENT = (sys.executable, "-m", "soakwatch_agent")
INTERVAL_NS = 200_000_000


@dataclass
class LocalAgent:
    """One agent in a folder; ``process`` is the agent itself, not its keeper."""

    folder: Path
    arguments: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        return self.folder / "socket"

    def start(self) -> None:
        """Start it and wait until it listens. Raises AssertionError."""
        self.process = subprocess.Popen([*_AGENT, "run", "--dir", str(self.folder), *self.arguments])
        with suppress(PermissionError):  # so that it polls on time even on a machine busy with other tests
            os.setpriority(os.PRIO_PROCESS, self.process.pid, -10)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError("the agent ended at once")
            with suppress(OSError), socket.socket(socket.AF_UNIX) as probe, bounded(str(self.socket)) as path:
                probe.connect(path)
                return
            time.sleep(0.02)
        raise AssertionError("the agent does not listen")

    def status(self) -> dict[str, object]:
        """The status that the agent prints."""
        done = subprocess.run(
            [*_AGENT, "status", "--dir", str(self.folder)], capture_output=True, text=True, timeout=30, check=True
        )
        status: dict[str, object] = json.loads(done.stdout.splitlines()[1].partition(" ")[2])
        return status

    def kill(self) -> None:
        """SIGKILL."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class Relay:
    """A socket in front of an agent's; ``cut`` aborts open connections and refuses new ones, like a dead network."""

    def __init__(self, here: Path, there: Path) -> None:
        self.here, self.there = here, there
        self.open = True
        self.carried = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._serve, str(self.here))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=10)
        await self._server.wait_closed()

    def cut(self) -> None:
        """Stop all traffic."""
        self.open = False
        for writer in self._writers:
            writer.transport.abort()

    def mend(self) -> None:
        """Let new connections through again."""
        self.open = True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.open:
            writer.transport.abort()
            return
        there_reader, there_writer = await asyncio.open_unix_connection(str(self.there))
        self._writers |= {writer, there_writer}
        for source, sink in ((reader, there_writer), (there_reader, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(1 << 16):
                self.carried += len(data)
                sink.write(data)
                await sink.drain()
        sink.close()
        self._writers.discard(sink)


@dataclass
class Follower:
    """A collector that polls on its grid and keeps the answers by due time."""

    poller: AgentPoller
    clock: SteadyClock
    interval_ns: int = INTERVAL_NS
    answers: list[tuple[int, Answer]] = field(default_factory=list)
    late: list[BackfilledPoll] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    async def poll(self, times: int = 1) -> None:
        """Poll at the next due times."""
        for _ in range(times):
            now = self.clock.now_ns()
            due = now - now % self.interval_ns + self.interval_ns
            await asyncio.sleep((due - now) * 1e-9)
            begin = self.clock.now_ns()
            try:
                answer = await self.poller.poll(begin)
            except SourceError as failure:
                self.failures.append(str(failure))
                continue
            self.late += self.poller.recovered()
            self.answers.append((begin, answer))

    def slots(self) -> list[int]:
        """The due times of all polls that arrived, in order; each is recognised by its sample of the load average."""
        times = [
            sample.time_ns
            for answer in [*(answer for _, answer in self.answers), *(late.answer for late in self.late)]
            for sample in answer.samples
            if sample.metric == "system.cpu.load" and sample.object == "minutes=1"
        ]
        return sorted(time_ns // self.interval_ns for time_ns in times)


def config(**keys: object) -> Config:
    """The source's keys."""
    return Config.model_validate({"interval": "200ms", "probes": ["load", "memory", "cpu"], **keys})


async def follow(keys: Config, folder: Path, stack: AsyncExitStack, clock: SteadyClock | None = None) -> Follower:
    """A connected collector."""
    clock = clock or SteadyClock()
    site = SourceContext("dut", DUT, (), None, folder, clock.now_ns, INTERVAL_NS * 1e-9)
    return Follower(await start_poller(keys, site, stack), clock)
