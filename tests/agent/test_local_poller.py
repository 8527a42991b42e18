"""The poller ``local``: the probes in a thread of their own."""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from soakwatch.core.errors import PlanError
from soakwatch.sources.abc import SourceContext, SourceError, WatchedProcess
from soakwatch.sources.pollers.local import Config, start
from soakwatch_model.sample import Answer

_EDGE = Path(__file__).parent / "roots" / "edge-4cores" / "root"


def _site(folder: Path, *watched: WatchedProcess) -> SourceContext:
    return SourceContext("dut", "dut", watched, None, folder, lambda: 0, 1.0)


def test_a_poll_brings_the_probes_that_were_asked_for(tmp_path: Path) -> None:
    """Root, probes and watched processes of the plan reach the probes."""

    async def main() -> Answer:
        async with AsyncExitStack() as stack:
            config = Config.model_validate({"root": str(_EDGE), "probes": ["process", "memory"]})
            poller = await start(config, _site(tmp_path, WatchedProcess("r", "name", "bgpd")), stack)
            return await poller.poll(7)

    answer = asyncio.run(main())
    assert {s.time_ns for s in answer.samples} == {7}
    assert 1 in [s.value for s in answer.samples if s.object == "process=r,instance=0" and s.metric == "process.up"]
    assert not [s for s in answer.samples if s.metric.startswith("system.cpu")]


@pytest.mark.parametrize(
    ("keys", "how", "sentence"),
    [
        ({"probes": ["gpu"]}, "name", "there is no probe 'gpu'"),
        ({"root": "/nowhere"}, "name", "dut: root /nowhere has no folder proc"),
        ({}, "cmdline", "dut: cmdline:( is not a regular expression"),
    ],
)
def test_what_cannot_be_is_refused_at_the_start(
    tmp_path: Path, keys: dict[str, object], how: str, sentence: str
) -> None:
    """A wrong probe, root or expression is an error of the plan, with the target's name."""

    async def main() -> None:
        async with AsyncExitStack() as stack:
            await start(Config.model_validate(keys), _site(tmp_path, WatchedProcess("x", how, "(")), stack)

    with pytest.raises(PlanError) as caught:
        asyncio.run(main())
    assert str(caught.value).startswith(sentence)


def test_a_read_that_hangs_blocks_nobody(tmp_path: Path) -> None:
    """While a file does not answer the loop goes on, a further poll fails at once, and later ones work again."""
    root = tmp_path / "root"
    shutil.copytree(_EDGE, root, symlinks=True)
    (root / "proc/uptime").unlink()
    os.mkfifo(root / "proc/uptime")  # opening it for reading waits for a writer

    async def main() -> Answer:
        async with AsyncExitStack() as stack:
            config = Config.model_validate({"root": str(root), "probes": ["boot"]})
            poller = await start(config, _site(tmp_path), stack)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(poller.poll(1), 0.2)
            with pytest.raises(SourceError, match="still hangs"):
                await poller.poll(2)
            pipe = root / "proc/uptime"
            await asyncio.to_thread(pipe.write_text, "5.0 1.0\n")
            pipe.unlink()
            pipe.write_text("6.0 1.0\n")
            end = asyncio.get_running_loop().time() + 20
            while True:
                try:
                    return await poller.poll(3)
                except SourceError:
                    assert asyncio.get_running_loop().time() < end
                    await asyncio.sleep(0.01)

    answer = asyncio.run(main())
    assert [s.value for s in answer.samples if s.metric == "system.uptime"] == [6.0]


def test_on_this_machine_it_counts_what_the_collector_costs(tmp_path: Path) -> None:
    """The CPU time of the process grows from poll to poll; of a recorded machine it is nobody's cost."""

    async def costs(keys: dict[str, object]) -> list[float]:
        async with AsyncExitStack() as stack:
            poller = await start(Config.model_validate(keys), _site(tmp_path), stack)
            answers = [await poller.poll(number) for number in range(1, 4)]
        return [s.value for a in answers for s in a.samples if s.metric == "source.device.cpu.time"]

    counted = asyncio.run(costs({}))
    assert len(counted) == 3
    assert 0 < counted[0] < counted[1] < counted[2]
    assert asyncio.run(costs({"root": str(_EDGE), "probes": ["memory"]})) == []
