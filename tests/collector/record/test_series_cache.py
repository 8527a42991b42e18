"""Series that are read through what was decoded before: they are what a view reads, whatever came between two reads."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from soakwatch.core.errors import RecordError
from soakwatch.record import Record, RecordView, SeriesKey
from soakwatch.record._blocks import decode
from soakwatch.record.model import Values
from soakwatch.record.series_cache import BlockCache, cached_view
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_model.series import Series
from soakwatch_testing.records import KEYS, SECOND, T0, small_poll, small_record


def held(
    folder: Path, key: SeriesKey, blocks: BlockCache, begin_ns: int | None = None, end_ns: int | None = None
) -> Series:
    """A series as the page reads it."""
    with cached_view(folder, blocks) as view:
        known = view.known(key)
        assert known is not None
        return view.series(key, known, begin_ns, end_ns)


def viewed(folder: Path, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
    """The same series as a view reads it."""
    with RecordView.open(folder) as view:
        return view.series(key, begin_ns, end_ns)


def same(series: Series, other: Series) -> bool:
    """Whether they are equal bit for bit."""
    return (
        series.value.dtype == other.value.dtype
        and np.array_equal(series.time_ns, other.time_ns)
        and np.array_equal(series.value.view(np.uint64), other.value.view(np.uint64))
        and series.cadence_s == other.cadence_s
        and series.trait.unit == other.trait.unit
    )


def late_poll(source: int, index: int, value: float, late_s: float) -> Poll:
    """A poll of a memory that two sources see."""
    start = T0 + index * SECOND + round(late_s * SECOND)
    sample = Sample("system.memory.usage", "", value, start)
    return Poll(source, T0 + index * SECOND, start, 1, PollOutcome.OK, None, Answer((sample,), (), ()))


def test_it_is_what_a_view_reads_while_the_record_grows(tmp_path: Path) -> None:
    """Seeded: two sources of one target, compacted now and then; every stretch is equal, asked again and again."""
    rng, blocks = random.Random(7), BlockCache()
    memory = SeriesKey("dut", "system.memory.usage", "")
    with Record.create(tmp_path) as record:
        record.target("dut", "dut")
        first = record.source("dut", "snmp", "snmp", 10 * SECOND, required=True).id
        second = record.source("dut", "ssh", "ssh", SECOND, required=True).id
        away = False
        for index in range(1200):
            away = away if rng.random() > 0.01 else not away
            if index % 10 == 0 and not away:
                record.put([late_poll(first, index, 4096.0 * rng.randrange(1000), 0.25)])
            record.put([late_poll(second, index, 4096 * rng.randrange(1000), 0.5)])
            if rng.random() < 0.01:
                record.compact(final=True)
            if rng.random() < 0.05:
                begin_ns = rng.choice([None, T0 + rng.randrange(1200) * SECOND])
                end_ns = rng.choice([None, (begin_ns or T0) + rng.randrange(600) * SECOND])
                assert same(
                    held(tmp_path, memory, blocks, begin_ns, end_ns), viewed(tmp_path, memory, begin_ns, end_ns)
                )
    assert same(held(tmp_path, memory, blocks), viewed(tmp_path, memory))


def test_only_blocks_of_the_stretch_are_decoded_and_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten blocks of 100 s: a question of 150 s decodes two or three, the same again none, a wider one the rest."""
    with small_record(tmp_path) as record:
        for part in range(10):
            record.put([small_poll(1, index) for index in range(100 * part, 100 * part + 100)])
            record.compact(final=True)
    decoded: list[int] = []

    def counting(data: bytes) -> Values:
        decoded.append(len(data))
        return decode(data)

    monkeypatch.setattr("soakwatch.record.series_cache.decode", counting)
    blocks = BlockCache()
    stretch = held(tmp_path, KEYS[3], blocks, T0 + 210 * SECOND, T0 + 360 * SECOND)
    assert (len(stretch), len(decoded)) == (150, 2)
    held(tmp_path, KEYS[3], blocks, T0 + 250 * SECOND, T0 + 399 * SECOND)
    assert len(decoded) == 2
    assert len(held(tmp_path, KEYS[3], blocks)) == 1000
    assert len(decoded) == 10


def test_what_is_kept_is_bounded_and_still_right(tmp_path: Path) -> None:
    """With room for a few blocks everything is still answered."""
    with small_record(tmp_path) as record:
        for part in range(10):
            record.put([small_poll(1, index) for index in range(100 * part, 100 * part + 100)])
            record.compact(final=True)
    blocks = BlockCache(largest=4000)
    for key in KEYS[:10]:
        assert same(held(tmp_path, key, blocks), viewed(tmp_path, key))
        assert blocks.size <= 4000


def test_readings_are_counted_and_counted_on(tmp_path: Path) -> None:
    """Compacted ones once and for all, the others anew."""
    blocks = BlockCache()

    def counts() -> set[int]:
        with cached_view(tmp_path, blocks) as view:
            return set(view.readings().values())

    with small_record(tmp_path, 30) as record:
        assert counts() == {30}
        record.compact(final=True)
        assert counts() == {30}
        record.put([small_poll(1, index) for index in range(30, 50)])
        assert counts() == {50}
        record.compact(final=True)
    assert counts() == {50}


def test_newest_readings_are_of_the_present_only(tmp_path: Path) -> None:
    """Compacted or not; what was last read before the given time is not returned, and no more than are wanted."""
    with small_record(tmp_path, 40) as record:
        for compacted in (False, True):
            if compacted:
                record.compact(final=True)
            with cached_view(tmp_path, BlockCache()) as view:
                newest, left = view.newest(lambda _: T0 + 39 * SECOND, 20)
                assert [value for _, _, value in newest] == [39 * 4096 + n for n in sorted(range(50), key=str)[:20]]
                assert left == 30
                assert view.newest(lambda _: T0 + 40 * SECOND, 20) == ((), 0)


def test_another_record_of_the_same_name_is_another(tmp_path: Path) -> None:
    """A run that was deleted and made again is not read from what was kept of the first."""
    blocks = BlockCache()
    for offset in (0, 5):
        folder = tmp_path / "run"
        with Record.create(folder) as record:
            record.set_meta("start_ns", str(T0 + offset))
            record.source("dut", "local", "dut/local", SECOND, required=True)
            record.put([small_poll(1, index + offset) for index in range(20)])
            record.compact(final=True)
        assert same(held(folder, KEYS[0], blocks), viewed(folder, KEYS[0]))
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


def test_a_damaged_block_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of any other reader."""
    with small_record(tmp_path, 20) as record:
        record.compact(final=True)
    monkeypatch.setattr("soakwatch.record.series_cache.decode", lambda data: decode(data[:-1]))
    with pytest.raises(RecordError, match="is damaged"):
        held(tmp_path, KEYS[0], BlockCache())
