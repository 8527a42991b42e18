"""A collector that catches up arrives: what memory holds comes with what was read from the disk before it."""

from __future__ import annotations

from pathlib import Path

from soakwatch_agent.spool import Spool


def test_a_collector_behind_an_agent_that_keeps_polling_catches_up_at_once(tmp_path: Path) -> None:
    """340 polls wait, of which memory holds the last; each question is followed by another poll. Two questions bring
    everything, where the second is no longer behind."""
    spool = Spool(str(tmp_path), sync_s=None)
    for number in range(340):
        spool.append(1, b'{"look":%d}' % number)
    got = [line.seq for line in spool.read(0, 500, 1 << 20)]
    assert got == list(range(1, 341))
    spool.append(1, b"{}")
    assert [line.seq for line in spool.read(340, 500, 1 << 20)] == [341]
    spool.close()


def test_disk_and_memory_together_keep_to_the_bounds(tmp_path: Path) -> None:
    """A question for fewer polls, or fewer bytes, than disk and memory hold is answered with no more, in order."""
    spool = Spool(str(tmp_path), sync_s=None)
    wire = b'{"look":"%s"}' % (b"x" * 90)
    for _ in range(200):
        spool.append(1, wire)
    for most, most_bytes in ((150, 1 << 20), (500, 150 * len(wire)), (136, 1 << 20), (137, 1 << 20)):
        got = [line.seq for line in spool.read(0, most, most_bytes)]
        assert got == list(range(1, min(most, most_bytes // len(wire), 200) + 1))
    spool.close()
