"""Readings that come less often than the polls: the plan of a series is that of its device, not that of the polls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from tests.collector.engine.poll_list import PollList

from soakwatch.engine.polling import PolledSource, SourceSpec
from soakwatch.engine.scheduler import Timers
from soakwatch.record import Record, RecordView
from soakwatch.record.model import SeriesKey
from soakwatch.sources.abc import Facts, Poller, timing
from soakwatch_model.sample import Answer, Poll, Sample
from soakwatch_testing.virtual import VirtualTime


class Slow:
    """A device that renews its CPU share every 5 s, and its memory always."""

    def __init__(self) -> None:
        self._polls = 0

    async def poll(self, now_ns: int) -> Answer:
        """The share only when it is new."""
        self._polls += 1
        memory = Sample("system.memory.usage", "", 1e9, now_ns)
        share = (Sample("system.cpu.utilization", "", 0.5, now_ns),) if self._polls % 5 == 1 else ()
        return Answer((memory, *share), (), ())

    def facts(self) -> Facts:
        """What it says of itself."""
        return Facts({"system": "slow"}, cadences={"system.cpu.utilization": 5.0})


def test_what_comes_each_five_seconds_is_expected_each_five_seconds(tmp_path: Path) -> None:
    """The record knows it of the source, so that no rule waits for readings that were never to come; a failure of the
    record is tried again."""
    time = VirtualTime()
    polls: list[Poll] = []
    reported: list[Mapping[str, float]] = []
    record = Record.create(tmp_path)
    record.target("dut", "dut")
    source = record.source("dut", "snmp", "snmp", 10**9, required=True)

    async def connect(_: AsyncExitStack) -> Poller:
        return Slow()

    class Sink(PollList):
        async def cadences(self, cadences: Mapping[str, float]) -> bool:
            reported.append(dict(cadences))
            if len(reported) == 1:
                return False
            record.cadences(source.id, cadences)
            return True

    async def main() -> None:
        spec = SourceSpec(source.id, "dut/snmp", timing(time.now_ns(), 1))
        polled = PolledSource(spec, connect, time, Sink(polls))
        async with polled, Timers(time) as timers:
            timers.poll(polled)
            await asyncio.sleep(60)

    time.run(main())
    record.put(polls)
    record.close()
    assert reported == [{"system.cpu.utilization": 5.0}] * 2, "once more after the failure, and then never again"
    with RecordView.open(tmp_path) as view:
        cadences = {
            metric: view.series(SeriesKey("dut", metric, "")).cadence_s
            for metric in ("system.cpu.utilization", "system.memory.usage")
        }
    assert cadences == {"system.cpu.utilization": 5.0, "system.memory.usage": 1.0}


def test_a_source_that_brings_fans_at_each_poll_is_believed(tmp_path: Path) -> None:
    """Most sources read fans each minute; what a controller says of itself comes before that, never its own polls."""
    with Record.create(tmp_path) as record:
        record.target("dut", "dut")
        source = record.source("dut", "ipmi", "ipmi", 10 * 10**9, required=True)
        assert source.cadence_s("hardware.fan.up") == 60
        record.cadences(source.id, {"hardware.fan.up": 10.0, "hardware.voltage": 1.0})
    with RecordView.open(tmp_path) as view:
        (known,) = view.sources()
        assert known.cadence_s("hardware.fan.up") == 10
        assert known.cadence_s("hardware.fan.speed") == 60
        assert known.cadence_s("hardware.voltage") == 10
