"""An agent that has just begun, and a device that lacks what its profile knows."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from soakwatch.sources.abc import SourceContext
from soakwatch.sources.pollers.snmp import start
from soakwatch.sources.transport.snmp.config import Config
from soakwatch_model.sample import Answer
from soakwatch_testing.snmp_cells import Cell, name_of, timeticks
from soakwatch_testing.snmp_mib import SYS_UP_TIME, interfaces, system
from soakwatch_testing.snmp_responder import Responder, responder

_SWITCHES = "1.3.6.1.4.1.2021.11.60.0"  # ssRawContexts
_IDLE, _USER = "1.3.6.1.4.1.2021.11.53.0", "1.3.6.1.4.1.2021.11.50.0"
_OTHERS = [f"1.3.6.1.4.1.2021.11.{column}.0" for column in (51, 52, 54, 55, 56, 61, 64)]
_COUNTER32 = 65
PATIENT = {"timeout": "30s"}  # for a machine that does much besides
_LOOKS = (
    (2, 0, 0, 0),
    (5, 0, 0, 0),
    (5, 24_900_000, 900_000, 100_000),
    (5, 24_900_500, 900_300, 100_100),
    (5, 24_901_000, 900_600, 100_200),
    (5, 24_901_500, 900_900, 100_300),
)
"""Seconds to the next poll, context switches, idle and user ticks."""


def test_counters_that_an_agent_has_not_read_yet_are_not_zero(tmp_path: Path) -> None:
    """net-snmp answers 0 for some seconds after its start: taken as a reading, the next poll would be a spike of the
    whole counter, and the first share of the CPU that of the time since boot."""

    async def main(device: Responder) -> list[Answer]:
        now = 10**18

        async with AsyncExitStack() as stack, asyncio.timeout(200):
            config = Config.model_validate(
                {"host": "127.0.0.1", "port": device.address[1], "profile": "linux"} | PATIENT
            )
            poller = await start(config, SourceContext("dut", "dut", (), None, tmp_path, lambda: now, 1.0), stack)
            answers = []
            for seconds, switches, idle, user in _LOOKS:
                for name, value in ((_SWITCHES, switches), (_IDLE, idle), (_USER, user)):
                    device.set(name, Cell(_COUNTER32, value))
                answers.append(await poller.poll(now))
                async with asyncio.timeout(200):
                    while poller.surveying:
                        await asyncio.sleep(0.01)
                device.advance(seconds)
                now += seconds * 10**9
            return answers

    rows = system() | {SYS_UP_TIME: timeticks(1.0)}
    rows |= {name_of(name): Cell(_COUNTER32, 0) for name in (_SWITCHES, _IDLE, _USER, *_OTHERS)}
    with responder(rows) as device:
        answers = asyncio.run(main(device))
    seen = [[s.value for s in answer.samples if s.metric == "system.context_switches"] for answer in answers]
    assert seen == [[], [], [24_900_000], [24_900_500], [24_901_000], [24_901_500]]
    busy = [[s.value for s in answer.samples if s.metric == "system.cpu.utilization"] for answer in answers]
    assert busy[:3] == [[], [], []], "never the share since the boot"
    assert busy[-1] == [0.25], "the share of the last five seconds"


def test_a_device_without_the_cpu_and_memory_of_its_profile_is_reported(tmp_path: Path) -> None:
    """A profile knows CPU and memory in several forms, each of them optional: a device that has none lacks one."""

    async def main(device: Responder) -> tuple[str, ...]:
        async with AsyncExitStack() as stack, asyncio.timeout(200):
            config = Config.model_validate(
                {"host": "127.0.0.1", "port": device.address[1], "profile": "cisco-asa"} | PATIENT
            )
            poller = await start(config, SourceContext("dut", "dut", (), None, tmp_path, lambda: 10**18, 1.0), stack)
            await poller.poll(10**18)
            return poller.facts().promised

    with responder(system() | interfaces(2)) as device:
        promised = asyncio.run(main(device))
    assert any(metric.startswith("system.cpu.") for metric in promised)
    assert any(metric.startswith("system.memory.") for metric in promised)
