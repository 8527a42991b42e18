"""What the live judge keeps of a run: the same that is in the record, as far as it claims to keep it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from soakwatch.live_judge.changes import Changes
from soakwatch.live_judge.following import Following
from soakwatch.live_judge.hour import HOUR_NS, Hour
from soakwatch.live_judge.minutes import MINUTE_NS, MOST, Minutes
from soakwatch.record import Record, RecordView, SeriesKey
from soakwatch.record.tail import Table, Tail
from soakwatch.testing.records import SECOND, T0
from soakwatch_agent.sample import NOTHING, Answer, Poll, PollOutcome, Sample, object_text
from soakwatch_rules.detectors.coverage import Coverage
from soakwatch_rules.detectors.cpu_spike import CpuSpike
from soakwatch_rules.detectors.memory_growth import MemoryGrowth
from soakwatch_rules.detectors.process_restart import ProcessRestart
from soakwatch_rules.rule import Event, Rule, Window

WORKER = object_text(process="worker", instance="0")
RULES: tuple[Rule, ...] = (Coverage(), CpuSpike(), MemoryGrowth(), ProcessRestart())


def polls(source: int, count: int, seed: int, first: int = 0) -> Iterator[Poll]:
    """Polls at 1 s of a device with one process: some fail, one metric comes at every third, times differ."""
    rng = np.random.default_rng([seed, first])
    for at in range(first, first + count):
        due = T0 + at * SECOND
        start = due + int(rng.integers(0, 10**7))
        if at % 50 in {17, 18, 19, 20, 21} or rng.random() < 0.01:
            outcome = PollOutcome.TIMEOUT if at % 2 else PollOutcome.FAILED
            yield Poll(source, due, start, 10**6, outcome, f"reason {at % 2}", NOTHING)
            continue
        samples = [
            Sample("system.memory.usage", "", int(rng.integers(10**9, 2**62)), start),
            Sample("system.cpu.utilization", "", float(rng.random()), start + 1000),
            Sample("system.boot.id", "", 2**47 - 1, start),
            Sample("process.start_time", WORKER, 1000.0 + 50 * (at > 200) + 50 * (at > 320), start),
            Sample("process.up", WORKER, int(at not in {200, 201}), start),
        ]
        if at % 3 == 0:
            samples.append(Sample("system.cpu.core.utilization", "core=0", round(float(rng.random())), start))
        yield Poll(source, due, start, 10**6, PollOutcome.OK, None, Answer(tuple(samples), (), ()))


def begun(folder: Path) -> tuple[Record, int]:
    """A new record of one device in its baseline."""
    record = Record.create(folder)
    record.target("dut", "dut")
    record.begin_span(T0)
    record.begin_phase("baseline", T0)
    return record, record.source("dut", "local", "local", SECOND, required=True).id


def test_a_tail_brings_every_poll_and_reading_once(tmp_path: Path) -> None:
    """Whatever is sealed between two looks, and wherever a look ends, the parts make the whole record."""
    record, source = begun(tmp_path / "run")
    tail = Tail(tmp_path / "run", lambda _: True)
    found: dict[int, list[tuple[int, float]]] = {}
    due: list[int] = []
    names: dict[int, SeriesKey] = {}
    first = 0
    for count, seal in ((7, False), (200, False), (3, True), (90, False), (40, True), (60, False)):
        record.put(list(polls(source, count, 1, first)))
        first += count
        if seal:
            record.seal(final=True)
            record.put(list(polls(source, 5, 1, first)))
            first += 5
        news = tail.news()
        names |= {one.number: one.key for one in news.series}
        for batch in news.batches:
            due += batch.polls.due_ns.tolist()
            for table in batch.tables:
                for column, series in enumerate(table.series):
                    kinds = {"d": np.float64, "q": np.int64, "Q": np.uint64}
                    values = table.words[:, column].copy().view(kinds[table.kinds[column]])
                    found.setdefault(series, []).extend(zip(table.time_ns.tolist(), values.tolist(), strict=True))
    assert not tail.news().batches
    assert due == [T0 + at * SECOND for at in range(first)]
    with RecordView.open(tmp_path / "run") as view:
        assert set(names.values()) == set(view.keys())
        for number, key in names.items():
            whole = view.series(key)
            assert sorted(found[number]) == list(zip(whole.time_ns.tolist(), whole.value.tolist(), strict=True))
    record.close()


@pytest.mark.parametrize("step", [3, 59, 400])
def test_accounts_that_are_added_up_are_those_of_the_record(tmp_path: Path, step: int) -> None:
    """Batch by batch, over phases, with outages: the ledgers of whole windows and of phases equal the record's."""
    record, source = begun(tmp_path / "run")
    following = Following(tmp_path / "run", RULES, {})
    for first in range(0, 400, step):
        if first <= 100 < first + step:
            record.put(list(polls(source, 100 - first, 2, first)))
            following.read()
            record.begin_phase("soak", T0 + 100 * SECOND)
            first = 100  # noqa: PLW2901 - the phase begins in the middle of this step
        end = min(400, first - first % step + step if step != 400 else 400)
        record.put(list(polls(source, end - first, 2, first)))
        following.read()
    with RecordView.open(tmp_path / "run") as view:
        windows = [view.window(), *(phase.window for phase in view.phases())]
        assert following.window == view.window()
        assert following.phases == view.phases()
        for window in windows:
            assert following.through("whole").ledgers(window) == view.ledgers(window)
        recent = Window(T0 + 150 * SECOND, view.window().end_ns)
        assert following.through("recent").ledgers(recent) == view.ledgers(recent)
    record.close()


def test_the_recent_view_is_the_record(tmp_path: Path) -> None:
    """Within the last hour the readings are those of the record, bit for bit and with their types."""
    record, source = begun(tmp_path / "run")
    following = Following(tmp_path / "run", RULES, {})
    for first in range(0, 360, 60):
        record.put(list(polls(source, 60, 3, first)))
        following.read()
    with RecordView.open(tmp_path / "run") as view:
        for metric in ("system.cpu.utilization", "system.cpu.core.utilization"):
            (key,) = view.keys([metric])
            expected, kept = view.series(key), following.through("recent").series(key)
            assert np.array_equal(kept.time_ns, expected.time_ns)
            assert np.array_equal(kept.value, expected.value)
            assert kept.trait == expected.trait
            assert kept.cadence_s == expected.cadence_s
    record.close()


def table(seconds: Sequence[float], *columns: Sequence[float], kind: str = "d") -> Table:
    """A table of readings; series are numbered from 1."""
    words = np.stack([np.array(column, np.float64 if kind == "d" else np.int64).view(np.uint64) for column in columns])
    time_ns = T0 + (np.array(seconds) * 1e9).astype(np.int64)
    return Table(tuple(range(1, len(columns) + 1)), kind * len(columns), time_ns, words.T.copy())


class TestMinutes:
    """Means of one minute."""

    origin: ClassVar[int] = -(-T0 // MINUTE_NS) * MINUTE_NS

    def at(self, minute: float) -> float:
        """Seconds since T0 of so many minutes after the first full one."""
        return (self.origin - T0) * 1e-9 + 60 * minute

    def test_means_and_newest(self) -> None:
        """A gauge is the mean of its minute whatever the parts it comes in, a counter its last; holes stay holes."""
        minutes = Minutes()
        times = [self.at(m) for m in (0, 0.25, 0.5, 1, 3, 3.5)]
        minutes.add(table(times[:2], [1, 2], [1, 2]), [True, False])
        minutes.add(table(times[2:], [6, 4, 8, float("nan")], [3, 4, 5, 6]), [True, False])
        end = self.origin + 4 * MINUTE_NS
        time_ns, means = minutes.read(1, self.origin, end)
        assert ((time_ns - self.origin) / MINUTE_NS).tolist() == [0.5, 1.5, 3.5]
        assert means.tolist() == [3, 4, 8]
        assert minutes.read(2, self.origin, end)[1].tolist() == [3, 4, 6]
        assert minutes.read(1, self.origin, end - 1)[1].tolist() == [3, 4], "a minute that goes on is not shown"
        assert minutes.read(3, self.origin, end)[1].size == 0

    def test_memory_is_bounded(self) -> None:
        """After 72 h two minutes become one, again and again, and sums stay right."""
        minutes = Minutes()
        for first in range(0, 3 * MOST, 60):
            times = [self.at(first + m + 0.5) for m in range(60)]
            values = [float(first + m) for m in range(60)]
            minutes.add(table(times, values, values), [True, False])
        assert minutes.bin_ns == 4 * MINUTE_NS
        assert minutes.nbytes < 16 * 12 * MOST + 1
        end = self.origin + 3 * MOST * MINUTE_NS + 8 * MINUTE_NS
        time_ns, means = minutes.read(1, self.origin - 8 * MINUTE_NS, end)
        middle = (time_ns - self.origin) / MINUTE_NS
        inner = slice(1, -1)
        assert np.allclose(means[inner], middle[inner] - 0.5)
        newest = minutes.read(2, self.origin - 8 * MINUTE_NS, end)[1]
        assert np.allclose(newest[inner], middle[inner] + 1)

    def test_huge_values_do_not_warn(self) -> None:
        """Sums beyond what a float holds become infinite, quietly: rules leave such readings out."""
        minutes = Minutes()
        minutes.add(table([self.at(0), self.at(0.1)], [1e308, 1e308]), [True])
        assert minutes.read(1, self.origin, self.origin + MINUTE_NS)[1].tolist() == [float("inf")]


def test_changes_keep_what_moved_and_bound_what_always_moves() -> None:
    """Both sides of each change and of a gap stay; a constant is one reading; a ramp is one reading a minute."""
    changes = Changes()
    for first in range(0, 7200, 60):
        seconds = [first + s + (500 if first >= 3600 else 0) for s in range(60)]
        step = [float(s > 90) for s in seconds]
        changed = changes.add(1, table(seconds, [5.0] * 60, step, [float(s) for s in seconds]))
        assert (2 in changed) == (first in {0, 60, 3600})
    kept = {series: (changes.read(series)[0] - T0) / 1e9 for series in (1, 2, 3)}
    assert kept[1].tolist() == [0, 3599, 4100]
    assert kept[2].tolist() == [0, 90, 91, 3599, 4100]
    assert 100 < kept[3].size < 250


def test_an_hour_is_an_hour() -> None:
    """Of two hours the last one is there, and the baseline before it; what no poll brings any more is forgotten."""
    hour = Hour()
    baseline = [(T0, T0 + 600 * SECOND)]
    for first in range(0, 7200, 60):
        news = hour.add(1, table([first + s for s in range(60)], [0.5] * 60, [float(first)] * 60), baseline)
        assert (1 in news) == (first == 0)
        assert 2 in news
    time_ns, values = hour.read(2, T0 - 1, T0 + 7200 * SECOND)
    kept = (time_ns - T0) / 1e9
    assert kept[:600].tolist() == list(range(600))
    assert kept[600] == 7199 - 3600
    assert kept.size == 600 + 3601
    assert values[600] == 3540
    assert hour.read(2, T0, T0 + 7200 * SECOND, 5)[0].size == 5
    hour.forget(T0 + 2 * HOUR_NS)
    assert hour.read(2, T0, T0 + 7200 * SECOND)[0].size == 0


def test_events_that_end_later_are_told_again(tmp_path: Path) -> None:
    """An event without an end is read again when it has one."""
    record, source = begun(tmp_path / "run")
    record.put(list(polls(source, 5, 1)))
    number = record.add_event("dut", Event("upgrade", "dut", "", T0, None), "user")
    tail = Tail(tmp_path / "run", lambda _: False)
    assert [stored.event.end_ns for stored in tail.news().events] == [None]
    assert tail.news().events == ()
    record.end_event(number, T0 + SECOND)
    assert [stored.event.end_ns for stored in tail.news().events] == [T0 + SECOND]
    assert tail.news().events == ()
    record.close()
