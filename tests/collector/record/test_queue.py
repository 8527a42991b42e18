"""The outbox between polls and record: batches, holds, gives up the oldest readings last, and says so."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import ParamSpec, TypeVar

import pytest
from tests.commands import MAX_WAIT_S

from soakwatch.core.clock import SteadyClock
from soakwatch.core.errors import RecordError
from soakwatch.engine import scheduler
from soakwatch.engine.scheduler import Timers
from soakwatch.record.queue import MAX_WAITING_SAMPLES, Committer
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample

P = ParamSpec("P")
R = TypeVar("R")


class Shelf:
    """A record that can be full."""

    def __init__(self) -> None:
        self.kept: list[Poll] = []
        self.full = False
        self.tried: list[int] = []

    def put(self, polls: list[Poll]) -> None:
        """Keep the batch, or refuse all of it."""
        self.tried.append(len(polls))
        if self.full:
            raise RecordError("no room left on the disk")
        self.kept += polls


def poll(number: int, samples: int = 1) -> Poll:
    """One answered poll."""
    readings = tuple(Sample("system.processes", "", 1, number + n) for n in range(samples))
    return Poll(1, number, number, 5, PollOutcome.OK, None, Answer(readings, (), ()))


def test_a_full_disk_holds_polls_in_order_and_loses_none() -> None:
    """What could not be written is written, once and in order, when there is room again."""
    shelf = Shelf()
    committer = Committer(shelf, lambda: 0, threaded=False)

    async def main() -> None:
        committer.take(poll(1))
        await committer.commit()
        shelf.full = True
        for number in range(2, 6):
            committer.take(poll(number))
            await committer.commit()
        assert committer.trouble == "no room left on the disk"
        shelf.full = False
        await committer.commit()

    asyncio.run(main())
    assert [p.due_ns for p in shelf.kept] == [1, 2, 3, 4, 5]
    assert committer.trouble is None
    assert shelf.tried == [1, 1, 1, 1, 1, 1, 3]  # while the disk is full the oldest poll alone is tried


def test_a_disk_with_room_for_one_poll_is_full_until_it_has_taken_all(caplog: pytest.LogCaptureFixture) -> None:
    """Each time one poll goes and the others do not: that is one trouble, and no recovery each second."""

    class Narrow(Shelf):
        def put(self, polls: list[Poll]) -> None:
            if len(polls) > 1 and self.full:
                raise RecordError("no room left on the disk")
            self.kept += polls

    narrow = Narrow()
    narrow.full = True
    committer = Committer(narrow, lambda: 0, threaded=False)

    async def main() -> None:
        for number in range(8):
            committer.take(poll(number))
        for left in (8, 7, 6):
            await committer.commit()
            assert (len(narrow.kept), committer.trouble) == (8 - left, "no room left on the disk")
        narrow.full = False
        await committer.commit()

    asyncio.run(main())
    assert [p.due_ns for p in narrow.kept] == list(range(8))
    assert committer.trouble is None
    assert len(caplog.records) == 2, caplog.text


def test_beyond_its_bound_the_oldest_readings_go_but_their_polls_stay() -> None:
    """A record that cannot be written for long costs the oldest readings; each such poll says what became of it."""
    shelf = Shelf()
    shelf.full = True
    committer = Committer(shelf, lambda: 0, threaded=False)
    size = MAX_WAITING_SAMPLES // 10

    async def main() -> None:
        for number in range(15):
            committer.take(poll(number, size))
            await committer.commit()
        shelf.full = False
        await committer.commit()
        committer.take(poll(99))
        await committer.commit()

    asyncio.run(main())
    assert [p.due_ns for p in shelf.kept] == [*range(15), 99]
    assert [p.outcome for p in shelf.kept[:5]] == [PollOutcome.MISSED] * 5
    assert shelf.kept[0].error == "its samples were dropped: no room left on the disk"
    assert sum(len(p.answer.samples) for p in shelf.kept) == MAX_WAITING_SAMPLES + 1


def test_a_batch_under_way_when_the_run_ends_is_written_once_however_slow_the_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The end waits for it; the last batch comes after it and repeats nothing."""
    monkeypatch.setattr(scheduler, "GRACE_S", 0.2)
    begun = threading.Event()

    class Slow(Shelf):
        def put(self, polls: list[Poll]) -> None:
            begun.set()
            time.sleep(0.7)
            super().put(polls)

    slow = Slow()
    committer = Committer(slow, lambda: 0)

    async def main() -> None:
        async with AsyncExitStack() as stack:
            await committer.enter(stack)
            committer.take(poll(1))
            async with Timers(SteadyClock()) as timers:
                timers.every(0.2, committer.commit)
                assert await asyncio.to_thread(begun.wait, MAX_WAIT_S)
                committer.take(poll(2))
            await committer.commit()

    asyncio.run(main())
    assert [kept.due_ns for kept in slow.kept] == [1, 2]


def test_a_commit_checks_writes_and_looks_in_one_visit() -> None:
    """All that a second needs of the record's thread is one call of it, in that order; a check that says why not stops
    both others, and an error of the look does not write the batch twice."""
    shelf, did = Shelf(), [""]
    why, broken = "", False

    def check() -> str:
        did.append("check")
        return why

    def look() -> None:
        did.append(f"look at {len(shelf.kept)}")
        if broken:
            raise RecordError("unreadable")

    class Visited(Committer):
        visits = 0

        async def call(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
            self.visits += 1
            return await super().call(work, *args, **kwargs)

    async def main() -> None:
        nonlocal why, broken
        async with AsyncExitStack() as stack:
            committer = Visited(shelf, lambda: 0)
            await committer.enter(stack)
            assert await committer.commit(check, look) == ""
            committer.take(poll(1))
            assert await committer.commit(check, look) == ""
            assert did[1:] == ["check", "look at 0", "check", "look at 1"]
            committer.take(poll(2))
            why = "the file is gone"
            assert await committer.commit(check, look) == why
            assert (did[-1], len(shelf.kept), committer.trouble) == ("check", 1, None)
            why, broken = "", True
            with pytest.raises(RecordError, match="unreadable"):
                await committer.commit(check, look)
            assert [p.due_ns for p in shelf.kept] == [1, 2]
            broken = False
            await committer.commit(check, look)
            assert [p.due_ns for p in shelf.kept] == [1, 2]
            assert committer.visits == 5

    asyncio.run(main())
