"""Days of soak in seconds: the real timers, wrapper, outbox and record in virtual time."""

from __future__ import annotations

import asyncio
import itertools
import math
from contextlib import AsyncExitStack
from pathlib import Path

import psutil
import pytest
from tests.collector.engine.poll_list import PollList

from soakwatch.engine.polling import Connect, PolledSource, SourceSpec
from soakwatch.engine.scheduler import Timers
from soakwatch.record import Record, RecordView
from soakwatch.record.queue import Committer
from soakwatch.sources.abc import Poller, SourceError, timing
from soakwatch_model.sample import Answer, Poll, Sample, object_text
from soakwatch_testing.virtual import VirtualTime

HOUR_S = 3600
SILENT = range(10 * HOUR_S, 11 * HOUR_S)  # seconds of the run in which one source does not answer


class Device:
    """A device with a few series; one of the devices falls silent for an hour."""

    def __init__(self, number: int, start_ns: int) -> None:
        self._number, self._start_ns = number, start_ns

    async def poll(self, now_ns: int) -> Answer:
        """A plausible answer."""
        second = (now_ns - self._start_ns) // 10**9
        if self._number == 0 and second in SILENT:
            raise SourceError("no answer from 198.51.100.1")
        await asyncio.sleep(0.02)
        wave = math.sin(second / 7000)
        return Answer(
            (
                Sample("system.cpu.utilization", "", round(0.4 + 0.1 * wave, 3), now_ns),
                Sample("system.memory.usage", "", 2**30 + second * 4096, now_ns),
                Sample(
                    "system.network.packets", object_text(interface="eth0", direction="receive"), second * 977, now_ns
                ),
            ),
            (),
            (),
        )


def attached(device: Device) -> Connect:
    """How the wrapper gets at a device."""

    async def connect(_: AsyncExitStack) -> Poller:
        return device

    return connect


class Queue(PollList):
    """Hands the polls over to the record's queue."""

    def __init__(self, committer: Committer) -> None:
        super().__init__()
        self._committer = committer

    def take(self, poll: Poll) -> None:
        """Queue a poll."""
        self._committer.take(poll)


def soak(folder: Path, hours: int, interval_s: float, sources: int) -> list[float]:
    """Soak some devices for hours; the resident memory of this process, in MiB, at each eighth of the way."""
    time, resident = VirtualTime(), list[float]()

    async def main() -> None:
        with Record.create(folder) as record:
            committer = Committer(record, time.now_ns, threaded=False)
            start_ns = time.now_ns()
            async with AsyncExitStack() as stack:
                polled = []
                for number in range(sources):
                    record.target(f"device-{number}", "dut")
                    source = record.source(
                        f"device-{number}", "virtual", "virtual", round(interval_s * 1e9), required=True
                    )

                    polled_source = PolledSource(
                        SourceSpec(source.id, source.label, timing(start_ns, interval_s)),
                        attached(Device(number, start_ns)),
                        time,
                        Queue(committer),
                    )
                    polled.append(await stack.enter_async_context(polled_source))
                record.begin_phase("soak", start_ns)
                async with Timers(time) as timers:
                    for polled_source in polled:
                        timers.poll(polled_source)
                    timers.every(60, committer.commit)
                    for _ in range(8):
                        await asyncio.sleep(hours * HOUR_S / 8)
                        resident.append(psutil.Process().memory_info().rss / 2**20)
                end_ns = start_ns + hours * HOUR_S * 10**9
                for polled_source in polled:
                    polled_source.close_account(end_ns)
                await committer.commit()
                record.end_phase(end_ns)
            record.finish()

    time.run(main())
    return resident


def check(folder: Path, hours: int, interval_s: float, sources: int) -> None:
    """Every due poll is accounted for, from the begin to the one at the very end; the silent hour is one gap, and every
    reading can be read back."""
    due = round(hours * HOUR_S / interval_s) + 1
    with RecordView.open(folder) as view:
        window = view.window()
        ledgers = {ledger.target: ledger for ledger in view.ledgers(window)}
        assert {ledger.due for ledger in ledgers.values()} == {due}
        assert len(ledgers) == sources
        assert all(ledgers[f"device-{n}"].got == due for n in range(1, sources))
        silent = ledgers["device-0"]
        assert silent.got < due
        assert silent.got + sum(silent.lost.values()) == due
        assert silent.errors[0] == "no answer from 198.51.100.1"
        assert silent.longest_gap is not None
        assert silent.longest_gap.seconds == pytest.approx(HOUR_S, abs=2 * 60)
        for key in itertools.islice(view.keys(["system.memory.usage"]), 3):
            if key.target != "device-0":
                series = view.series(key)
                assert len(series) == due
                assert series.value[-1] - series.value[0] == round((due - 1) * interval_s) * 4096


@pytest.mark.slow
def test_a_day_of_20_devices(tmp_path: Path) -> None:
    """24 h of 20 devices at one poll a minute: complete, with an hour of silence reported as what it was."""
    soak(tmp_path / "run", 24, 60, 20)
    check(tmp_path / "run", 24, 60, 20)


@pytest.mark.slow
def test_72_hours_of_20_devices_every_10_seconds(tmp_path: Path) -> None:
    """72 h of 20 devices at one poll in 10 s: complete, and the monitor's memory does not grow with the run."""
    resident = soak(tmp_path / "run", 72, 10, 20)
    check(tmp_path / "run", 72, 10, 20)
    assert resident[-1] - resident[1] < 16
