"""Children that die, hang and flood: nothing waits for them for longer than it may, and no zombie is left."""

from __future__ import annotations

import asyncio
import sys
import threading

import psutil
import pytest
from tests.commands import wait_until

from soakwatch.core import supervised_child
from soakwatch.core.supervised_child import AsyncChild, Child, RestartPauses

HANGS = "import time; time.sleep(600)"
FLOODS = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
ECHOES = "import sys\nfor line in sys.stdin: print(line.strip().upper(), flush=True)"
DIES = "import sys; print('so far', flush=True); sys.exit(7)"


def python(code: str) -> tuple[str, ...]:
    """The command of a child."""
    return (sys.executable, "-c", code)


@pytest.fixture(autouse=True)
def no_child_is_left() -> object:
    """Neither running nor as a zombie."""
    before = set(psutil.Process().children())
    yield
    wait_until(lambda: not set(psutil.Process().children()) - before, "the end of the children")


def test_an_exchange_is_answered() -> None:
    """What it prints until its end comes back."""
    child = Child(python(ECHOES))
    assert child.exchange("one\ntwo\n", 60) == "ONE\nTWO\n"
    assert child.exit_code == 0


def test_a_child_that_hangs_is_killed() -> None:
    """After the time that it had; also one that does not read what it is asked."""
    child = Child(python(HANGS))
    with pytest.raises(TimeoutError):
        child.exchange("x" * 2**20, 1)
    assert child.exit_code == -9


def test_a_child_that_floods_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """So much is kept of it."""
    monkeypatch.setattr(supervised_child, "MAX_OUTPUT", 1000)
    child = Child(python(FLOODS))
    assert child.exchange("", 60) == "x" * 1000
    assert child.exit_code == -9


def test_a_child_that_dies_ends_its_lines() -> None:
    """The exit code is known, and what is written to it is lost without an error."""
    child = Child(python(DIES))
    assert list(child.lines()) == ["so far\n"]
    assert child.exit_code == 7
    child.write("are you there?\n")
    child.kill()


def test_another_thread_writes_and_kills() -> None:
    """While one reads its lines."""
    child = Child(python(ECHOES))
    threading.Timer(0.2, child.write, ["hello\n"]).start()
    lines = child.lines()
    assert next(lines) == "HELLO\n"
    threading.Timer(0.2, child.kill).start()
    assert list(lines) == []


def test_it_stops_by_its_input_or_after_the_grace() -> None:
    """The end of its input is a sign; one that does not see it is killed."""
    polite, stubborn = Child(python(ECHOES), output=False), Child(python(HANGS), output=False)
    polite.stop(60)
    stubborn.stop(0.2)
    assert (polite.exit_code, stubborn.exit_code) == (0, -9)


def test_in_an_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are asked for and answered; what hangs or floods is killed, what dies is reported with its exit code."""
    monkeypatch.setattr(supervised_child, "MAX_OUTPUT", 1000)

    async def main() -> None:
        child = await AsyncChild.start(python(ECHOES))
        await child.write("hello\n")
        assert await child.read_line() == "HELLO\n"
        assert child.exit_code is None
        await child.kill()
        assert child.exit_code == -9
        hangs, floods, dies = [await AsyncChild.start(python(code)) for code in (HANGS, FLOODS, DIES)]
        assert (await dies.read_all(60), dies.exit_code) == ("so far\n", 7)
        with pytest.raises(TimeoutError):
            await hangs.read_all(0.5)
        with pytest.raises(OSError, match="more than 1000"):
            await floods.read_all(60)
        assert (hangs.exit_code, floods.exit_code) == (-9, -9)

    asyncio.run(main())


def test_a_cancelled_reading_leaves_no_child() -> None:
    """It is killed and reaped on the way out."""

    async def main() -> int | None:
        child = await AsyncChild.start(python(HANGS))
        reading = asyncio.create_task(child.read_all(60))
        await asyncio.sleep(0.2)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        return child.exit_code

    assert asyncio.run(main()) == -9


def test_pauses_double_and_start_over() -> None:
    """Up to the longest; a child that did some work is started again soon."""
    pauses = RestartPauses(5, 60)
    assert [pauses.next_s() for _ in range(6)] == [5, 10, 20, 40, 60, 60]
    pauses.succeeded()
    assert pauses.next_s() == 5
