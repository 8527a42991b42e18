"""A copy of a process works as one that was started, and keeps nothing of its parent open."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import psutil
import pytest

from soakwatch.core.forked_child import ForkedChild


def echo() -> int:
    """Says each line again, and ends with 7."""
    for line in sys.stdin:
        print(line.strip().upper(), flush=True)
    return 7


def test_it_answers_and_ends_with_its_input(tmp_path: Path) -> None:
    """Its exit code is what its work returned; of its parent's files it has none, so that it holds no lock of them."""

    async def main() -> None:
        with (tmp_path / "held").open("w"):
            child = ForkedChild(echo, "echo")
            await child.write("one\ntwo\n")
            assert [await child.read_line(), await child.read_line()] == ["ONE\n", "TWO\n"]
            held = {os.readlink(entry) for entry in Path(f"/proc/{child.pid}/fd").iterdir()}
            assert {name.partition(":")[0] for name in held} == {"pipe", "/dev/null"}
            assert psutil.Process(child.pid).name() == "echo"
            assert os.getsid(child.pid) == child.pid
            assert child.exit_code is None
            os.close(child._input)
            child._input = -1
            assert await child.read_line() == ""
            assert await child.wait() == 7
            await child.kill()

    asyncio.run(main())


@pytest.mark.parametrize("spoken", [False, True])
def test_it_is_killed_and_reaped(spoken: bool) -> None:
    """Whether or not it was ever asked; what is written to it afterwards is refused."""

    async def main() -> None:
        child = ForkedChild(echo, "echo")
        if spoken:
            await child.write("one\n")
            assert await child.read_line() == "ONE\n"
        await child.kill()
        assert child.exit_code == -9
        assert not psutil.pid_exists(child.pid)
        with pytest.raises(OSError, match=r"[Bb]ad file descriptor"):
            await child.write("two\n")
        child.close()

    asyncio.run(main())
