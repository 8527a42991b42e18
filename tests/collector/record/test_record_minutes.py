"""The minutes of a series are those of its readings, wherever these are: rolled up, in blocks, or as they came."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch.record import Record, RecordView, SeriesKey, _rollups
from soakwatch.record.minutes import MINUTE_NS, merged, rolled_up
from soakwatch.record.series_cache import BlockCache, cached_view
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_testing.records import SECOND, T0

LEVEL = SeriesKey("dut", "system.memory.usage", "")
COUNTER = SeriesKey("dut", "system.network.packets", "interface=e0,direction=receive")
HOUR = 3600 * SECOND


def poll(source: int, second: int, level: float, count: int) -> Poll:
    """A poll with a level and a counter; halves, so that sums are exact in any order."""
    due = T0 + second * SECOND
    samples = (Sample(LEVEL.metric, "", level / 2, due), Sample(COUNTER.metric, COUNTER.object, count, due))
    return Poll(source, due, due, 1, PollOutcome.OK, None, Answer(samples, (), ()))


def expected(view: RecordView, key: SeriesKey, begin_ns: int, end_ns: int, bin_ns: int) -> dict[int, list[float]]:
    """The readings of each bin that lies wholly inside, by its middle."""
    series, bins = view.series(key), dict[int, list[float]]()
    for time_ns, value in zip(series.time_ns.tolist(), series.values.tolist(), strict=True):
        number = time_ns // bin_ns
        if number * bin_ns >= begin_ns and (number + 1) * bin_ns <= end_ns:
            bins.setdefault(number * bin_ns + bin_ns // 2, []).append(value)
    return bins


def check(folder: Path, dice: random.Random, *, late: bool) -> int:
    """Compare both series with their readings, over all of the record and a stretch of it; how many bins those were."""
    bins = 0
    with RecordView.open(folder) as view, cached_view(folder, BlockCache()) as cached:
        last_ns = view.last_ns or T0
        stretch = sorted((T0 + dice.randrange(-HOUR, HOUR), last_ns - dice.randrange(-HOUR, 2 * HOUR)))
        for begin_ns, end_ns in ((T0 - HOUR, last_ns + HOUR), (stretch[0], stretch[1])):
            bin_ns = MINUTE_NS * dice.choice([1, 1, 2, 4])
            for key in (LEVEL, COUNTER):
                known = cached.known(key)
                assert known is not None
                minutes = cached.minutes(key, known, begin_ns, end_ns, bin_ns)
                due = expected(view, key, begin_ns, end_ns, bin_ns)
                assert minutes.time_ns.tolist() == list(due)
                if key == LEVEL:
                    assert minutes.values.tolist() == [float(sum(some) / len(some)) for some in due.values()]
                elif late:
                    assert all(last in some for last, some in zip(minutes.values, due.values(), strict=True))
                else:
                    assert minutes.values.tolist() == [some[-1] for some in due.values()]
                bins += len(minutes)
    return bins


def rolled(folder: Path) -> int:
    """How many minutes compaction has rolled up and kept, of all series."""
    with closing(sqlite3.connect(folder / "record.sqlite")) as sql:
        series = sql.execute("SELECT DISTINCT series FROM rollup").fetchall()
        return sum(len(_rollups.kept(sql, number, 0, 2**40, adds=True)) for (number,) in series)


@pytest.mark.parametrize(("interval_s", "late"), [(1, False), (1, True), (5, False), (5, True), (10, False)])
def test_minutes_are_those_of_the_readings(tmp_path: Path, interval_s: int, *, late: bool) -> None:
    """Seeded: gaps, late polls, compaction at any time, a writer that is opened again, a cache that is lost."""
    dice = random.Random(interval_s + 100 * late)
    record = Record.create(tmp_path / "run")
    record.target("dut", "dut")
    source = record.source("dut", "local", "local", interval_s * SECOND, required=True).id
    second, count, bins, held = 0, 0, 0, list[Poll]()
    for _ in range(120):
        polls = list[Poll]()
        for _ in range(dice.randrange(1, 400)):
            second, count = second + interval_s, count + dice.randrange(1000)
            came = poll(source, second, dice.randrange(10**6), count)
            (held if late and dice.random() < 0.05 else polls).append(came)
        record.put(polls)
        if dice.random() < 0.2:
            record.put(held[: len(held) // 2])
            held = held[len(held) // 2 :]
        if dice.random() < 0.3:
            record.compact(final=True)
        if dice.random() < 0.1:
            second += interval_s * dice.randrange(4000)
        if dice.random() < 0.1:
            record.close()
            record = Record.open(tmp_path / "run")
        if dice.random() < 0.1:
            bins += check(tmp_path / "run", dice, late=late)
    record.compact(final=True)
    assert (rolled(tmp_path / "run") > 500) is (interval_s < 10)  # seldom readings are read as soon as their minutes
    for lost in (False, True):
        copy = tmp_path / f"copy{lost}"  # as it is after a writer was killed
        shutil.copytree(tmp_path / "run", copy)
        if lost:
            with closing(sqlite3.connect(copy / "record.sqlite")) as sql:
                sql.execute("DELETE FROM rollup")
                sql.commit()
        bins += check(copy, dice, late=late)
    with record:
        record.finish()
    assert rolled(tmp_path / "run") == 0  # nobody follows a run that has ended
    assert bins + check(tmp_path / "run", dice, late=late) > 2000


def test_a_compaction_adds_to_the_minutes_that_are_kept(tmp_path: Path) -> None:
    """What is rolled up is neither read again nor lost: the cache holds all minutes of days, in few rows."""
    with Record.create(tmp_path) as record:
        source = record.source("dut", "local", "local", SECOND, required=True).id
        for begin in range(0, 36_000, 900):
            record.put([poll(source, second, second, second) for second in range(begin, begin + 900)])
            record.compact(final=True)
        with closing(sqlite3.connect(tmp_path / "record.sqlite")) as sql:
            rows = sql.execute("SELECT series, count(*), max(last_block) FROM rollup GROUP BY series").fetchall()
            newest = dict(sql.execute("SELECT series, max(id) FROM block GROUP BY series").fetchall())
    assert [pieces < 14 for _, pieces, _ in rows] == [True, True]
    assert rolled(tmp_path) == 2 * 601
    assert {series: block for series, _, block in rows} == newest


def test_what_is_no_number_is_no_reading() -> None:
    """Neither counts in a mean, and a minute of nothing else is no row: missing is never zero."""
    times: NDArray[np.int64] = np.array([0, 1, 61, 125, 126], np.int64) * SECOND
    values = np.array([2.0, np.nan, np.inf, 3.0, 5.0])
    rows = rolled_up(times, values, adds=True)
    assert (rows.number.tolist(), rows.count.tolist(), rows.figure.tolist()) == ([0, 2], [1, 2], [2.0, 8.0])
    assert len(rolled_up(times[:0], values[:0], adds=False)) == 0
    assert len(merged([], adds=True)) == 0
