"""Phases and planned events of a run whose disk is full when their time comes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import cast

from soakwatch.engine.context import RunContext
from soakwatch.engine.machine import HERE
from soakwatch.engine.soak import Soak
from soakwatch.plan import plan_from_text
from soakwatch.record import Record, RecordFullError
from soakwatch_model.event import Event
from soakwatch_testing.virtual import VirtualTime

PLAN = """
phases: [{baseline: 1m}, {soak: 1m}]
targets: {dut: {sources: [local]}}
events: [{kind: failover, at: 70s}]
"""


class FullDisk:
    """A record that refuses everything while it is full."""

    def __init__(self) -> None:
        self.full = False
        self.path = Path("record.sqlite")
        self.kept: list[tuple[str, int]] = []

    def begin_phase(self, name: str, begin_ns: int) -> None:
        """Keep a phase."""
        self._keep(name, begin_ns)

    def add_event(self, _target: str, event: Event, _origin: str) -> int:
        """Keep an event."""
        self._keep(event.kind, event.begin_ns)
        return 1

    def _keep(self, word: str, begin_ns: int) -> None:
        if self.full:
            raise RecordFullError("the disk is full")
        self.kept.append((word, begin_ns))


def test_a_phase_that_begins_on_a_full_disk_is_not_lost(tmp_path: Path) -> None:
    """It is recorded once there is room, once, with the time at which it really began; so is a planned event."""
    time, record = VirtualTime(), FullDisk()
    start_ns = time.now_ns()

    async def main() -> None:
        course = RunContext(plan_from_text(PLAN, "plan.yaml"), tmp_path, start_ns)
        soak = Soak(course, cast("Record", record), time, machine=replace(HERE, threaded=False))
        await soak._begin_due()
        record.full = True
        await asyncio.sleep(90)
        await soak._begin_due()
        assert [word for word, _ in record.kept] == ["baseline"]
        record.full = False
        await asyncio.gather(soak._begin_due(), soak._begin_due())

    time.run(main())
    minute = 60 * 10**9
    assert record.kept == [
        ("baseline", start_ns),
        ("soak", start_ns + minute),
        ("failover", start_ns + minute + 10 * 10**9),
    ]
