"""The outputs of real commands' shapes, and devices that show them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from soakwatch.sources.abc import Poller, SourceContext, WatchedProcess
from soakwatch.sources.pollers import ssh
from soakwatch_testing.cli_device import CliDevice, run_cli_device

OUTPUTS = Path(__file__).parent / "outputs"
SECOND = 10**9


def output(platform: str, command: str) -> str:
    """What a device shows for a command."""
    return (OUTPUTS / platform / f"{command}.txt").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Expected:
    """What the outputs of a platform bring, by command and under the names of ``results_of``; of what it ``lists``
    there is no more. ``prompts`` are lines of prompts, with the name in each."""

    prompts: dict[str, str] = field(default_factory=dict)
    brings: dict[str, dict[str, Any]] = field(default_factory=dict)
    lists: dict[str, dict[str, Any]] = field(default_factory=dict)


def expected(platform: str) -> Expected:
    """What stands beside the outputs of a platform."""
    return Expected(**yaml.safe_load((OUTPUTS / platform / "expected.yaml").read_text(encoding="utf-8")))


class Clock:
    """A steady clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_700_000_000 * SECOND

    def __call__(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)


async def with_poller(
    device: CliDevice,
    folder: Path,
    work: Callable[[Poller, Clock], Awaitable[None]],
    *processes: WatchedProcess,
    interval_s: float = 1.0,
    **keys: Any,
) -> None:
    """Serves the device and connects the poller ``ssh`` to it, as a run would."""
    clock = Clock()
    site = SourceContext("dut", "dut", processes, None, folder, clock, interval_s)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(run_cli_device(device, folder))
        config = ssh.Config.model_validate({**device.keys(folder), "interval": "1s", **keys})
        poller = await ssh.start(config, site, stack)
        await work(poller, clock)
