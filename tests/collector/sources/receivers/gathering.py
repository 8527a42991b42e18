"""Receivers on free ports of the loopback, and the programs that send to them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from soakwatch.sources.abc import Poller, SourceContext
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer

MAX_WAIT_S = 120.0


@dataclass
class Gathered:
    """Everything that a receiver has reported so far."""

    events: list[Event]
    counted: dict[str, float]

    def add(self, answer: Answer) -> None:
        """One more answer."""
        self.events += answer.events
        self.counted |= {sample.object: sample.value for sample in answer.samples}

    def fate(self, word: str) -> float:
        """How many messages had this fate."""
        return sum(value for name, value in self.counted.items() if name.endswith(f",fate={word}"))

    @property
    def kinds(self) -> list[str]:
        """The kinds of the events."""
        return [event.kind for event in self.events]

    @property
    def total(self) -> float:
        """All messages, whatever became of them."""
        return sum(value for name, value in self.counted.items() if ",fate=" in name)


async def gather(poller: Poller, enough: Callable[[Gathered], bool], into: Gathered | None = None) -> Gathered:
    """Poll until there is enough, or until it takes too long."""
    gathered = into or Gathered([], {})
    until = time.monotonic() + MAX_WAIT_S
    while True:
        gathered.add(await poller.poll(time.time_ns()))
        if enough(gathered):
            return gathered
        assert time.monotonic() < until, f"only {gathered.counted} and {gathered.kinds[:20]} after {MAX_WAIT_S} s"
        await asyncio.sleep(0.02)


@dataclass(frozen=True)
class Sender:
    """Runs a program of the system with a folder of its own."""

    home: Path

    async def __call__(self, *command: str | int | Path) -> tuple[int, str]:
        """Exit code and what it printed."""
        environment = {
            "PATH": f"{os.environ['PATH']}:/usr/sbin",
            "MIBS": "",
            "SNMPCONFPATH": str(self.home),
            "SNMP_PERSISTENT_DIR": str(self.home),
            "HOME": str(self.home),
        }
        process = await asyncio.create_subprocess_exec(
            *map(str, command), env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        output, _ = await asyncio.wait_for(process.communicate(), MAX_WAIT_S)
        return process.returncode or 0, output.decode()


def site(folder: Path) -> SourceContext:
    """The context of the receivers in the tests."""
    return SourceContext("dut", "dut", (), None, folder, time.time_ns, 1.0)
