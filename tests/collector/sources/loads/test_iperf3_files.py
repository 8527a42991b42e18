"""The load ``iperf3``: files that grow, and plans that are refused."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path

import pytest
from tests.collector.sources.loads.iperf3_kit import (
    command,
    figures,
    loaded,
)

from soakwatch.sources.abc import Drivable, SourceError
from soakwatch.sources.loads.iperf3 import Config
from soakwatch.testing import iperf3_double as double


def write(file: Path, *lines: str) -> None:
    """More lines."""
    with file.open("a") as opened:
        opened.write("".join(f"{line}\n" for line in lines))


def test_a_file_that_grows(tmp_path: Path) -> None:
    """What it held before the run sets the account and is no sample; a new file of the same name is a restart."""
    file, streams = tmp_path / "iperf3.json", 3
    begun = double.event("start", double.start(streams=streams))
    write(file, begun, double.event("interval", double.interval(0, 1, sender=True, packets=100, streams=streams)))

    async def go() -> None:
        async with loaded("iperf3", tmp_path, file=str(file)) as poller:
            assert not isinstance(poller, Drivable)
            first = figures(await poller.poll(time.time_ns()))
            assert first == {
                ("load.sending", ""): 1,
                ("load.lines.unread", ""): 0,
                ("load.offered.bit.rate", ""): 24e6,
                ("load.offered.packet.rate", ""): 3000,
            }
            write(
                file,
                *(
                    double.event("interval", double.interval(second, second + 1, sender=True, packets=100, streams=3))
                    for second in (1, 2)
                ),
            )
            now = time.time_ns()
            answer = await poller.poll(now)
            sent = [(sample.time_ns, sample.value) for sample in answer.samples if sample.metric == "load.tx.packets"]
            assert [value for _, value in sent] == [600, 900]
            assert sent[-1][0] <= now
            file.unlink()
            with pytest.raises(SourceError, match="was removed"):
                await poller.poll(time.time_ns())
            write(file, begun, double.event("interval", double.interval(0, 1, sender=True, packets=50, streams=3)))
            answer = await poller.poll(time.time_ns())
            assert figures(answer)["load.tx.packets", ""] == 150
            assert [event.kind for event in answer.events] == ["generator.restart"]
            write(file, double.event("end", double.end(1, packets=160)))
            ended = figures(await poller.poll(time.time_ns()))
            assert ended["load.sending", ""] == 0
            assert ended["load.tx.packets", ""] == 160
            assert ("load.offered.bit.rate", "") not in ended

    asyncio.run(go())


def test_a_file_that_does_not_grow_or_is_missing(tmp_path: Path) -> None:
    """A test under way that writes nothing has failed; a file that never comes is reported after its time."""
    file, now = tmp_path / "iperf3.json", time.time_ns()

    async def go() -> None:
        async with loaded("iperf3", tmp_path, file=str(file), wait="5s") as poller:
            assert (await poller.poll(now)).samples == ()
            with pytest.raises(SourceError, match="does not exist"):
                await poller.poll(now + 6 * 10**9)
            write(file, double.event("start", double.start()))
            assert figures(await poller.poll(now + 7 * 10**9))["load.sending", ""] == 1
            await poller.poll(now + 16 * 10**9)
            with pytest.raises(SourceError, match="nothing was written for 11 s"):
                await poller.poll(now + 18 * 10**9)
            write(file, double.event("end", double.end(1, packets=1)))
            assert figures(await poller.poll(now + 40 * 10**9))["load.sending", ""] == 0
            assert figures(await poller.poll(now + 90 * 10**9))["load.tx.packets", ""] == 1

    asyncio.run(go())


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """One sentence."""

    async def go() -> None:
        async with loaded("iperf3", tmp_path, file=str(tmp_path)) as poller:
            with pytest.raises(SourceError, match="is not a regular file"):
                await poller.poll(time.time_ns())

    asyncio.run(go())


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({}, "needs one of file"),
        ({"serve": True, "file": "x"}, "keep one of file, serve"),
        ({"drive": True}, "needs server"),
        ({"serve": True, "rate": "1M"}, "rate: these keys need drive: true"),
        ({"drive": True, "server": "h", "udp": True}, "udp: true needs rate"),
        ({"drive": True, "server": "h", "reverse": True, "bidir": True}, "keep one of them"),
        ({"drive": True, "server": "h", "rate": "fast"}, "'fast' is not a rate"),
        ({"drive": True, "server": "h", "rate": 0}, "greater than 0"),
        ({"drive": True, "server": "h", "options": ["-t", "5"]}, "options may not contain -t"),
        ({"drive": True, "server": "-x h"}, "a host is a name"),
    ],
)
def test_plans_that_are_refused(keys: dict[str, object], says: str) -> None:
    """What cannot be meant is reported before the run."""
    with pytest.raises(ValueError, match=re.escape(says)):
        Config.model_validate(keys)


def test_a_check_before_the_run_starts_nothing(tmp_path: Path) -> None:
    """``check`` and ``probe`` do not send, and do not start what a run would."""
    mark, stand_in = tmp_path / "mark", str(double.script(tmp_path))

    async def go() -> None:
        async with loaded("iperf3", tmp_path, trial=True, run=["touch", str(mark)]) as poller:
            await poller.poll(time.time_ns())
        async with loaded("iperf3", tmp_path, trial=True, drive=True, server="h", program=stand_in) as poller:
            assert figures(await poller.poll(time.time_ns()))["load.sending", ""] == 0

    asyncio.run(go())
    assert not mark.exists()


def test_a_wrong_plan_is_reported_with_its_position(tmp_path: Path) -> None:
    """As all plans are."""
    generator = {"role": "generator", "sources": [{"iperf3": {"drive": True}}]}
    plan = {"name": "x", "duration": "5s", "targets": {"tg": generator, "dut": {"sources": ["local"]}}}
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    done = command(tmp_path, "run", "plan.yaml")
    assert done.returncode == 2
    assert "drive: true needs server" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    done = command(tmp_path, "loads", "iperf3")
    assert done.returncode == 0
    assert "drive" in done.stdout
