"""The spool: nothing is lost that it has room for, what is lost is reported, and no death of the agent damages it."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from soakwatch_agent.segments import SpooledPoll, decode_line, encode_line
from soakwatch_agent.spool import Spool

MUCH = 1 << 30


def wires(count: int, length: int = 100) -> list[bytes]:
    """Distinct polls."""
    return [b'{"look":%d,"x":"%s"}' % (number, b"y" * length) for number in range(1, count + 1)]


def all_of(spool: Spool, after: int = 0, most: int = 50) -> list[SpooledPoll]:
    """Everything after a number, read in parts as a collector does."""
    lines: list[SpooledPoll] = []
    while part := spool.read(lines[-1].seq if lines else after, most, 10_000):
        lines += part
    return lines


def opened(folder: Path, bound: int = MUCH) -> Spool:
    return Spool(str(folder), bound, None)


def test_polls_come_back_in_order_and_whole_also_after_a_restart(tmp_path: Path) -> None:
    """300 polls, of which the memory holds 64; then again by another life of the agent."""
    spool = opened(tmp_path)
    texts = wires(300)
    assert [spool.append(7, text) for text in texts] == list(range(1, 301))
    assert [line.wire for line in all_of(spool)] == texts
    spool.close()
    again = opened(tmp_path)
    assert [(line.seq, line.epoch, line.wire) for line in all_of(again)] == [
        (number, 7, text) for number, text in enumerate(texts, 1)
    ]
    assert again.append(8, b"next") == 301
    assert again.agent_id == spool.agent_id
    again.close()


def test_what_was_acknowledged_goes_and_numbers_go_on(tmp_path: Path) -> None:
    """Segments that were fetched are deleted; even when nothing is left, no number is given twice."""
    spool = opened(tmp_path, 64 * 4096)
    for text in wires(400):
        spool.append(1, text)
    before = spool.state().size
    spool.ack(390)
    assert spool.state().size < before / 4
    assert [line.seq for line in all_of(spool)] == list(range(391, 401))
    spool.ack(400)
    spool.close()
    for segment in tmp_path.glob("*.seg"):
        segment.unlink()
    again = opened(tmp_path)
    assert (again.append(1, b"x"), again.state().acked, again.state().lost) == (401, 400, 0)
    again.close()


def test_a_full_spool_gives_up_the_oldest_and_says_which(tmp_path: Path) -> None:
    """What is kept and what is reported as lost are together everything."""
    spool = opened(tmp_path, 64 * 4096)
    for text in wires(1000, 1000):
        spool.append(1, text)
    state = spool.state()
    assert state.size <= 64 * 4096
    assert state.lost > 0
    kept = [line.seq for line in all_of(spool)]
    lost = [number for first, last in state.ranges for number in range(first, last + 1)]
    assert lost + kept == list(range(1, 1001))
    assert len(lost) == state.lost
    spool.close()
    again = opened(tmp_path, 64 * 4096)
    assert (again.state().lost, again.state().ranges) == (state.lost, state.ranges)
    again.close()


def test_a_line_torn_at_any_byte_is_cut_off(tmp_path: Path) -> None:
    """A kill in the middle of a write: the polls before it stay, the next one takes the torn one's number."""
    spool = opened(tmp_path)
    for text in wires(3, 10):
        spool.append(1, text)
    spool.close()
    (segment,) = tmp_path.glob("*.seg")
    whole = segment.read_bytes()
    last = len(encode_line(SpooledPoll(3, 1, wires(3, 10)[2])))
    for torn in range(1, last + 1):
        segment.write_bytes(whole[: len(whole) - torn])
        (tmp_path / "spool.json").unlink()  # its last state was never written either
        again = opened(tmp_path)
        assert [line.seq for line in all_of(again)] == [1, 2], torn
        assert again.append(1, b"new") == 3
        assert [line.seq for line in all_of(again)] == [1, 2, 3]
        again.close()
        for part in tmp_path.glob("*.seg"):
            if part != segment:
                part.unlink()


def test_damage_anywhere_costs_the_damaged_lines_only(tmp_path: Path) -> None:
    """Bytes turned over on the disk: no poll is read that was not written, and the others are all there."""
    chance = random.Random(4)
    texts = wires(40)
    for turn in range(60):
        folder = tmp_path / str(turn)
        folder.mkdir()
        spool = opened(folder)
        for text in texts:
            spool.append(1, text)
        spool.close()
        (segment,) = folder.glob("*.seg")
        data = bytearray(segment.read_bytes())
        for _ in range(3):
            data[chance.randrange(len(data))] = chance.randrange(256)
        segment.write_bytes(data)
        again = opened(folder)
        read = all_of(again)
        assert all(texts[line.seq - 1] == line.wire for line in read)
        assert len(read) >= 40 - 6  # a line's end that is gone joins two lines
        again.close()


def test_a_new_run_begins_empty_and_the_same_run_goes_on(tmp_path: Path) -> None:
    """Yesterday's polls are not today's; a monitor that was restarted asks under the same name."""
    spool = opened(tmp_path)
    for text in wires(100):
        spool.append(1, text)
    spool.begin("today")
    assert all_of(spool) == []
    spool.append(1, b"a")
    spool.begin("today")
    assert [line.seq for line in all_of(spool)] == [101]
    spool.close()
    again = opened(tmp_path)
    again.begin("today")
    assert [line.seq for line in all_of(again)] == [101]
    again.close()


def test_a_disk_that_is_full_loses_no_poll_before_memory_is_full_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without room polls stay in memory, the trouble is reported, and what falls out there counts as lost."""
    spool = opened(tmp_path)
    spool.append(1, b"first")
    real = os.write
    full = True

    def write(fd: int, data: bytes) -> int:
        if full and data[:1].isdigit():
            raise OSError(28, "No space left on device")
        return real(fd, data)

    monkeypatch.setattr("soakwatch_agent.spool.os.write", write)
    for text in wires(50):
        spool.append(1, text)
    assert "no space left" in (spool.state().trouble or "")
    assert [line.seq for line in all_of(spool)] == list(range(1, 52))
    for text in wires(50):
        spool.append(1, text)
    state = spool.state()
    kept = [line.seq for line in all_of(spool)]
    lost = [number for first, last in state.ranges for number in range(first, last + 1)]
    assert sorted(kept + lost) == list(range(1, 102))
    full = False
    spool.append(1, b"there is room again")
    assert spool.state().trouble is None
    monkeypatch.undo()
    spool.close()


def test_no_bytes_make_the_reader_of_lines_fail() -> None:
    """Random and mutated lines are polls or nothing."""
    chance = random.Random(9)
    good = encode_line(SpooledPoll(12, 3, b'{"a":1}'))
    assert decode_line(good) == SpooledPoll(12, 3, b'{"a":1}')
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        line = decode_line(bytes(data))
        assert line is None or bytes(data) == good
        assert decode_line(chance.randbytes(chance.randrange(60))) is None
