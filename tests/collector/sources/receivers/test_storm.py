"""Storms and the desk by themselves: what is kept, what is counted, and that neither grows or stays dead."""

from __future__ import annotations

import asyncio
import itertools
import sys
from contextlib import AsyncExitStack

import pytest

from soakwatch.sources.abc import SourceError
from soakwatch.sources.receivers.queue import MAX_WAITING, MessageQueue, ReadResult, Received
from soakwatch.sources.receivers.storm import STORM, Storm
from soakwatch.sources.receivers.text import octets, shown
from soakwatch_model.event import Event

SECOND = 10**9


def test_what_happens_now_and_then_for_days_is_no_storm() -> None:
    """An event every 4 s stays under 20 a minute and is kept each time."""
    storm = Storm(most=20, window_s=60)
    assert all(storm.admits("link.down", "a", count * 4 * SECOND) for count in range(20_000))
    assert list(storm.over(80_000 * SECOND)) == []


def test_a_long_storm_is_reported_while_it_lasts_and_when_it_ends() -> None:
    """Eight thousand seconds of one event each are reported after a minute (a run may end before) and each hour."""
    storm, reported, kept = Storm(most=20, window_s=60), list[Event](), 0
    for second in range(8000):
        kept += storm.admits("link.down", "a", second * SECOND)
        reported += storm.over(second * SECOND)
    reported += storm.over(8060 * SECOND)
    assert kept == 20
    assert [event.begin_ns // SECOND for event in reported if event.kind == STORM] == [20, 80, 3680, 7280]
    assert sum(int(event.detail["suppressed"]) for event in reported) == 8000 - kept
    assert storm.admits("link.down", "a", 9000 * SECOND)


def test_a_storm_of_inventions_does_not_grow() -> None:
    """Two hundred thousand different objects and kinds leave a few thousand events and a bounded memory."""
    storm = Storm(most=20, window_s=60, most_keys=100, most_of_kind=50)
    kept = sum(storm.admits(f"kind{number % 50_000}", f"thing{number}", SECOND) for number in range(200_000))
    assert kept < 5000
    assert sys.getsizeof(storm._seen) + sys.getsizeof(storm._kinds) < 100_000
    assert sum(int(event.detail["suppressed"]) for event in storm.over(2 * SECOND, end=True)) == 200_000 - kept


def test_every_port_of_a_chassis_has_its_event_whatever_a_log_does() -> None:
    """A flood of inventions of one kind takes nothing from 3,000 ports that go down and come up."""
    storm = Storm()
    assert sum(storm.admits("process.crash", f"process=p{number}", SECOND) for number in range(50_000)) == 4096
    for kind in ("link.down", "link.up"):
        assert all(storm.admits(kind, f"interface=eth{port}", SECOND) for port in range(3000))
    reported = [event for event in storm.over(100 * SECOND) if event.kind == STORM]
    assert [(event.object, event.detail["of"], event.detail["suppressed"]) for event in reported] == [
        ("", "process.crash", str(50_000 - 4096))
    ]


def test_inventions_that_go_on_for_a_night_do_not_fill_the_record() -> None:
    """Ten new objects a second for eight hours: what fits at once, and as much again each hour."""
    storm, kept = Storm(), 0
    for second in range(8 * 3600):
        kept += sum(
            storm.admits("process.crash", f"process={second}.{number}", second * SECOND) for number in range(10)
        )
        if second % 10 == 0:
            list(storm.over(second * SECOND))
    assert 4096 * 8 < kept <= 4096 * 9


def test_a_full_queue_drops_and_counts_and_a_dead_one_starts_again() -> None:
    """Nothing is unbounded and nothing stays dead: the poll after a death fails once, in a sentence."""

    async def main() -> None:
        async with AsyncExitStack() as stack:
            queue = MessageQueue(lambda received: ReadResult(str(received.port)), Storm(), "syslog:1")
            await queue.open(stack)
            for number in range(MAX_WAITING + 500):
                queue.put(Received(0, "127.0.0.1", number % 2, b"x"))
            assert queue.fates["dropped"] == 500
            assert queue._task is not None
            queue._task.cancel()
            await asyncio.sleep(0)
            with pytest.raises(SourceError, match="the receiver syslog:1 had stopped and was restarted"):
                queue.answer(0)
            async with asyncio.timeout(200):
                while queue.fates.total() < MAX_WAITING + 500:
                    await asyncio.sleep(0.01)
            counted = {sample.object: sample.value for sample in queue.answer(0, dropped=7).samples}
            assert counted["source=syslog:1,fate=dropped"] == 507
            assert counted["source=syslog:1,fate=0"] == MAX_WAITING // 2

    asyncio.run(main())


@pytest.mark.parametrize("text_sent", ["".join(map(chr, range(1000))), "\x1b]0;title\x07", "ü" * 600, "", "a\nb"])
def test_whatever_is_shown_is_printable_and_short(text_sent: str) -> None:
    """No escape sequence and no line end of a device reaches a terminal or a report."""
    for text in itertools.chain(
        (shown(text_sent), shown(text_sent.encode("utf-8", "surrogatepass"))), (octets(text_sent.encode()),)
    ):
        assert text.isprintable()
        assert len(text) <= 500
