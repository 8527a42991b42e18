"""An agent that has just begun fills some of its tables only after a minute: they are surveyed once more then."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from soakwatch.sources.abc import SourceContext
from soakwatch.sources.pollers.snmp import SnmpPoller, start
from soakwatch.sources.transport.snmp.config import Config
from soakwatch_testing.snmp_cells import Cell, name_of, timeticks
from soakwatch_testing.snmp_mib import SYS_UP_TIME, system
from soakwatch_testing.snmp_responder import Responder, responder

LOAD = "1.3.6.1.2.1.25.3.3.1.2.196608"
STEP_S = 5
CORE = "system.cpu.core.utilization"


class PolledWithSurvey:
    """A device and its poller, a poll every five seconds of the device's own time."""

    def __init__(self, device: Responder, poller: SnmpPoller, clock: list[int]) -> None:
        self.device, self.poller, self.clock, self.surveys = device, poller, clock, 0

    async def polls(self, seconds: int) -> list[bool]:
        """Whether each poll brought the load of the core."""
        seen = []
        for _ in range(0, seconds, STEP_S):
            answer = await self.poller.poll(self.clock[0])
            self.surveys += self.poller.surveying
            async with asyncio.timeout(200):
                while self.poller.surveying:
                    await asyncio.sleep(0.01)
            seen.append(any(sample.metric == CORE for sample in answer.samples))
            self.device.advance(STEP_S)
            self.clock[0] += STEP_S * 10**9
        return seen


async def with_survey_beside(device: Responder, stack: AsyncExitStack) -> PolledWithSurvey:
    """A poller at the device."""
    clock = [10**18]
    config = Config.model_validate({"host": "127.0.0.1", "port": device.address[1], "profile": "generic"})
    site = SourceContext("dut", "dut", (), None, Path(), lambda: clock[0], STEP_S)
    return PolledWithSurvey(device, await start(config, site, stack), clock)


def test_tables_that_an_agent_fills_after_a_minute_are_found_soon_after_its_restart() -> None:
    async def main(device: Responder) -> None:
        async with AsyncExitStack() as stack, asyncio.timeout(200):
            polled = await with_survey_beside(device, stack)
            assert all(await polled.polls(60))
            assert polled.surveys == 0
            device.restart_agent()
            device.remove(LOAD)
            assert not any(await polled.polls(60)), "the table is empty until then"
            device.set(LOAD, Cell(2, 7))
            after = await polled.polls(120)
            assert after[4:] == [True] * 20, "within twenty seconds, and not at the next regular survey"
            quiet = polled.surveys
            await polled.polls(240)
            assert polled.surveys == quiet, "once for each restart"

    with responder(system() | {SYS_UP_TIME: timeticks(10_000.0), name_of(LOAD): Cell(2, 7)}) as device:
        asyncio.run(main(device))


def test_an_agent_that_was_met_just_after_its_start_is_surveyed_again() -> None:
    async def main(device: Responder) -> None:
        async with AsyncExitStack() as stack, asyncio.timeout(200):
            polled = await with_survey_beside(device, stack)
            assert not any(await polled.polls(50))
            device.set(LOAD, Cell(2, 7))
            assert (await polled.polls(60))[-6:] == [True] * 6

    with responder(system() | {SYS_UP_TIME: timeticks(10.0)}) as device:
        asyncio.run(main(device))
