"""Receivers on free ports of the loopback, and the programs that send to them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from soakwatch.sources.abc import Poller, SourceContext
from soakwatch_agent.sample import Answer, Event

LONGEST_S = 120.0


@dataclass
class Gathered:
    """Everything that a receiver told so far."""

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
    """Look until there is enough, or until it takes too long."""
    found = into or Gathered([], {})
    until = time.monotonic() + LONGEST_S
    while True:
        found.add(await poller.poll(time.time_ns()))
        if enough(found):
            return found
        assert time.monotonic() < until, f"only {found.counted} and {found.kinds[:20]} after {LONGEST_S} s"
        await asyncio.sleep(0.02)


@dataclass(frozen=True)
class Sender:
    """Runs a program of the system with a folder of its own."""

    home: Path

    async def __call__(self, *command: str | int | Path) -> tuple[int, str]:
        """Exit code and what it said."""
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
        said, _ = await asyncio.wait_for(process.communicate(), LONGEST_S)
        return process.returncode or 0, said.decode()


def site(folder: Path) -> SourceContext:
    """Where the receivers of the tests stand."""
    return SourceContext("dut", "dut", (), None, folder, time.time_ns, 1.0)
