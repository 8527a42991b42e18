"""What is put into a record comes out of it, compacted or not."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soakwatch.core.errors import RecordError
from soakwatch.record import Record, RecordView, SeriesKey
from soakwatch.record._compaction import COMPACT_POLLS
from soakwatch.record._files import size_of
from soakwatch.record._writer_state import MAX_REASONS
from soakwatch_model.sample import NOTHING, Answer, Fault, Poll, PollOutcome, Sample, object_text
from soakwatch_model.window import Window

SECOND = 10**9
T0 = 1_700_000_000 * SECOND
OFFSET = "monitor.clock.offset"  # any finite number is in its range
RSS = "process.memory.usage"


def poll(
    source: int, index: int, values: Mapping[tuple[str, str], float], outcome: PollOutcome = PollOutcome.OK
) -> Poll:
    """The poll that was due ``at`` seconds after T0 and began 5 ms late."""
    start = T0 + index * SECOND + 5_000_000
    samples = tuple(Sample(metric, name, value, start) for (metric, name), value in values.items())
    error = None if outcome is PollOutcome.OK else f"it was {outcome.value}"
    return Poll(source, T0 + index * SECOND, start, 2_000_000, outcome, error, Answer(samples, (), ()))


def new(folder: Path) -> tuple[Record, int]:
    """A record with one target and one source of 1 s."""
    record = Record.create(folder)
    record.target("dut", "dut")
    return record, record.source("dut", "local", "this machine", SECOND, required=True).id


def readings(folder: Path) -> dict[SeriesKey, tuple[str, list[int], list[float]]]:
    """All series of a record: dtype, times, values."""
    with RecordView.open(folder) as view:
        keys = view.keys()
        every = {key: view.series(key) for key in keys}
    return {key: (str(s.value.dtype), s.time_ns.tolist(), s.value.tolist()) for key, s in every.items()}


def replayed(folder: Path, limit: int = 7, cursor: str = "") -> list[Poll]:
    """All polls of a record through a cursor."""
    polls_read: list[Poll] = []
    with RecordView.open(folder) as view:
        while True:
            polls, cursor = view.polls_after(cursor, limit)
            assert len(polls) <= limit
            if not polls:
                return polls_read
            polls_read.extend(polls)


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
INTS = st.integers(-(2**63), 2**64 - 1) | st.sampled_from([2**63 - 1, 2**63, 2**64 - 1, 2**53 + 1, 0])
LABELS = (
    st.sampled_from(["", "a,b", "x=y", "back\\slash", "emoji 🐌", "umlaut ü", "line\nbreak", "nul\0nul"]) | st.text()
)
POLLS = st.lists(st.dictionaries(LABELS, FLOATS | INTS, max_size=4), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(POLLS, st.integers(0, 12), st.booleans())
def test_every_reading_comes_back(batches: Sequence[Mapping[str, float]], compacted: int, finish: bool) -> None:
    """Any finite float, any 64-bit integer and any label come back from compacted and from recent polls alike."""
    expected: dict[str, list[tuple[int, float]]] = {}
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name) / "run"
        record, source = new(folder)
        stack.callback(record.close)
        for index, values in enumerate(batches):
            if index == compacted:
                record.compact(final=True)
            labelled = {(OFFSET, object_text(thing=label)): value for label, value in values.items()}
            written = poll(source, index, labelled)
            record.put([written])
            for sample in written.answer.samples:
                expected.setdefault(sample.object, []).append((sample.time_ns, sample.value))
        if finish:
            assert record.finish()
        polls = replayed(folder)
        with RecordView.open(folder) as view:
            keys = view.keys()
            series_by_name = {key.object: view.series(key) for key in keys}
            assert not view.faults()
    if any("\ud800" <= char <= "\udfff" for label in expected for char in label):
        return  # half of a surrogate pair is escaped: another test
    assert sorted(series_by_name) == sorted(expected)
    for name, pairs in expected.items():
        series, brought = series_by_name[name], [value for _, value in pairs]
        assert series.time_ns.tolist() == [time_ns for time_ns, _ in pairs]
        if all(isinstance(value, int) for value in brought) and not (min(brought) < 0 and max(brought) >= 2**63):
            assert series.value.dtype.kind in "iu"
            assert series.value.tolist() == brought
        else:
            assert series.value.tobytes() == np.array(brought, dtype=np.float64).tobytes()
    assert [p.due_ns for p in polls] == [T0 + index * SECOND for index in range(len(batches))]
    for values, back in zip(batches, polls, strict=True):
        assert {s.object: s.value for s in back.answer.samples} == {
            object_text(thing=label): value for label, value in values.items()
        }


def test_compaction_changes_nothing(tmp_path: Path) -> None:
    """Series, polls and counts are the same before and after compaction, with layouts that change and late readings."""
    rng = np.random.default_rng(3)
    record, source = new(tmp_path / "run")
    with record:
        for index in range(300):
            values: dict[tuple[str, str], float] = {
                (RSS, f"process=p{n}"): int(rng.integers(1, 2**40)) for n in range(5)
            }
            if index % 3 == 0:
                values["load.latency", "quantile=0.9"] = float(rng.random())
            if index % 50 == 7:
                values["load.latency", "quantile=0.5"] = int(rng.integers(5))
            base = poll(source, index, values)
            moved = [Sample("system.uptime", "", 1.5 + n, base.start_ns + n - 3) for n in range(index % 3)]
            answer = Answer((*base.answer.samples, *moved), (), ())
            record.put([Poll(source, base.due_ns, base.start_ns, 1, PollOutcome.OK, None, answer)])
        before = readings(tmp_path / "run"), replayed(tmp_path / "run")
        with RecordView.open(tmp_path / "run") as view:
            counts, ledgers = view.counts(), view.ledgers(view.window())
        record.compact(final=True)
        after = readings(tmp_path / "run"), replayed(tmp_path / "run")
        assert after[0] == before[0]
        assert [(p.due_ns, sorted(map(repr, p.answer.samples))) for p in after[1]] == [
            (p.due_ns, sorted(map(repr, p.answer.samples))) for p in before[1]
        ]
        with RecordView.open(tmp_path / "run") as view:
            assert (view.counts().samples, view.counts().polls) == (counts.samples, counts.polls)
            assert view.ledgers(view.window()) == ledgers


def test_a_stretch_of_a_series_is_cut_at_its_edges(tmp_path: Path) -> None:
    """A stretch holds begin <= time < end, across compacted blocks and recent polls, and knows the source's cadence."""
    record, source = new(tmp_path)
    key = SeriesKey("dut", RSS, "process=a")
    with record:
        for index in range(90):
            record.put([poll(source, index, {(RSS, "process=a"): 4096 * index})])
            if index in {29, 59}:
                record.compact(final=True)
        with RecordView.open(tmp_path) as view:
            whole = view.series(key)
            for low, high in [(0, 90), (10, 20), (25, 70), (60, 61), (80, 200), (95, 99), (30, 60)]:
                part = view.series(key, int(T0 + low * SECOND), T0 + high * SECOND)
                assert part.value.tolist() == [4096 * index for index in range(low, min(high, 90))]
            assert whole.cadence_s == 1.0
            assert (whole.trait.unit, whole.trait.growth) == ("By", "up")
            assert len(view.series(SeriesKey("dut", RSS, "process=none"))) == 0
            assert view.keys(["load.latency"]) == ()
            assert view.keys([RSS]) == (key,)
            assert view.last_ns is not None
            assert view.window() == Window(T0, view.last_ns + 1)


def test_refused_readings_become_faults_and_the_others_stay(tmp_path: Path) -> None:
    """Readings out of range, not finite, unknown, too large, backward, repeated or far ahead are faults, not data."""
    record, source = new(tmp_path)
    start = T0 + 5_000_000
    bad = [
        Sample("system.cpu.utilization", "", 1.2, start),
        Sample("system.cpu.utilization", "", float("nan"), start),
        Sample("no.such.metric", "", 1, start),
        Sample("system.context_switches", "", 2**64, start),
        Sample("system.context_switches", "", 10**400, start),
        Sample("system.uptime", "", 1.0, start + 2 * 3600 * SECOND),
        Sample(RSS, "process=a", 4096, start),
        Sample(RSS, "process=a", 8192, start),
        Sample(RSS, "process=a", 8192, start - 1),
    ]
    with record:
        for due in (T0, T0 + 1):
            answer = Answer(tuple(bad), (), ())
            record.put([Poll(source, due, start, 1, PollOutcome.OK, None, answer)])
        record.put([poll(source, 1, {(RSS, "process=a"): 12288, ("system.cpu.utilization", ""): 1.2})])
        record.put([poll(source, 2, {(RSS, "process=a"): 16384, ("system.cpu.utilization", ""): 0.5})])
        record.put([poll(source, 3, {(RSS, "process=a"): 16384, ("system.cpu.utilization", ""): 1.5})])
        with RecordView.open(tmp_path) as view:
            assert view.series(SeriesKey("dut", RSS, "process=a")).value.tolist() == [4096, 12288, 16384, 16384]
            assert view.series(SeriesKey("dut", "system.cpu.utilization", "")).value.tolist() == [0.5]
            keys = view.keys()
            assert [key.metric for key in keys] == [RSS, "system.cpu.utilization"]
            faults = {(fault.metric, fault.text): fault.count for fault in view.faults()}
    assert (
        faults["system.cpu.utilization", "system.cpu.utilization cannot be 1.2: the catalogue allows 0.0 to 1.0"] == 3
    )
    assert faults["no.such.metric", "no.such.metric is not in the catalogue"] == 2
    assert (
        faults["system.context_switches", "system.context_switches: a sample was refused: it does not fit into 64 bits"]
        == 4
    )
    assert faults[RSS, f"{RSS}: a sample was refused: it is not later than the one before it"] == 5
    assert any("ahead" in text for _, text in faults)


def test_readings_that_step_back_are_refused_after_compaction_and_reopening_too(tmp_path: Path) -> None:
    """The latest time of a series outlives compaction, closing and reopening."""
    record, source = new(tmp_path)

    def read(index: int, read_at: int, value: int) -> Poll:
        seen = Sample(RSS, "process=a", value, T0 + read_at * SECOND)
        return Poll(source, T0 + index * SECOND, T0 + index * SECOND, 1, PollOutcome.OK, None, Answer((seen,), (), ()))

    with record:
        record.put([read(100, 100, 1)])
        record.compact(final=True)
        record.put([read(101, 99, 2)])
    with Record.open(tmp_path) as record:
        record.put([read(102, 100, 3), read(103, 101, 4)])
    with Record.open(tmp_path) as record:
        record.put([read(104, 101, 5), read(105, 102, 6)])
    with RecordView.open(tmp_path) as view:
        assert view.series(SeriesKey("dut", RSS, "process=a")).value.tolist() == [1, 4, 6]
        assert [fault.count for fault in view.faults()] == [3]
        assert view.counts().polls == 6


def test_undecodable_labels_are_kept_escaped(tmp_path: Path) -> None:
    """A process name that is no UTF-8 (half of a surrogate pair) is kept escaped, again and again as one series."""
    record, source = new(tmp_path)
    with record:
        for index in range(3):
            record.put([poll(source, index, {(RSS, "process=\udcff"): index})])
    assert [values for _, _, values in readings(tmp_path).values()] == [[0, 1, 2]]
    assert list(readings(tmp_path)) == [SeriesKey("dut", RSS, "process=\\udcff")]


def test_a_counter_crosses_every_border(tmp_path: Path) -> None:
    """A counter that passes 2**53, 2**63 and wraps stays exact, also when one reading came as a float."""
    record, source = new(tmp_path)
    values: list[float] = [2**53 - 1, 2**53 + 1, 2**63 - 1, 2**63 + 5, 2**64 - 1, 3, 7]
    key = "system.network.io", "interface=e,direction=receive"
    with record:
        for index, value in enumerate(values):
            record.put([poll(source, index, {key: value})])
            if index == 4:
                record.compact(final=True)
        assert next(iter(readings(tmp_path).values()))[2] == values
        record.put([poll(source, 8, {key: 0.5}), poll(source, 9, {key: 2**53 + 1}), poll(source, 10, {key: 5})])
        record.put([poll(source, 11, {key: 2**64 - 1})])
        record.compact(final=True)
        assert [s.value for p in replayed(tmp_path) for s in p.answer.samples] == [
            *values,
            0.5,
            2**53 + 1,
            5,
            2**64 - 1,
        ]


def test_faults_are_counted_and_bounded(tmp_path: Path) -> None:
    """The same reason is one row with a count; reasons that never repeat end in one row that counts the rest."""
    record, source = new(tmp_path)
    with record:
        for index in range(60):
            start = T0 + index * SECOND
            faults = (Fault(RSS, "process=a", "not permitted"), Fault(RSS, "process=b", f"errno {index}"))
            record.put([Poll(source, start, start, 1, PollOutcome.OK, None, Answer((), (), faults))])
    with RecordView.open(tmp_path) as view:
        same, *others = view.faults()
    assert (same.text, same.count, same.first_ns, same.last_ns) == ("not permitted", 60, T0, T0 + 59 * SECOND)
    assert len(others) == MAX_REASONS + 1
    assert sum(fault.count for fault in others) == 60
    assert others[-1].text == f"further reasons, the first of them: errno {MAX_REASONS}"


def test_polls_are_read_on_from_a_cursor_across_compaction(tmp_path: Path) -> None:
    """A sink that stops anywhere goes on there, whatever was compacted meanwhile: no poll is lost or comes twice."""
    record, first = new(tmp_path)
    second = record.source("dut", "local", "another", SECOND, required=False).id
    with record:
        polls_read: list[Poll] = []
        for index in range(100):
            outcome = PollOutcome.OK if index % 7 else PollOutcome.TIMEOUT
            record.put([poll(first, index, {(RSS, "process=a"): index} if index % 7 else {}, outcome)])
            record.put([poll(second, index, {("system.uptime", ""): index, ("load.requests", ""): index})])
            if index % 30 == 29:
                record.compact(final=True)
            if index % 9 == 8:
                with RecordView.open(tmp_path) as view:
                    polls, cursor = view.polls_after(record.cursor("sink"), 5)
                polls_read.extend(polls)
                record.set_cursor("sink", cursor)
        polls_read.extend(replayed(tmp_path, 11, record.cursor("sink")))
    for source in (first, second):
        assert [p.due_ns for p in polls_read if p.source == source] == [T0 + index * SECOND for index in range(100)]
    assert {(p.outcome, p.error) for p in polls_read} == {
        (PollOutcome.OK, None),
        (PollOutcome.TIMEOUT, "it was timeout"),
    }
    with RecordView.open(tmp_path) as view, pytest.raises(RecordError, match="is not a cursor of a record"):
        view.polls_after("sausage", 1)


def test_ledgers_tell_how_polls_ended(tmp_path: Path) -> None:
    """A ledger counts due and answered polls, the others by how they ended, the longest gap and the usual errors."""
    record, source = new(tmp_path)
    with record:
        for index in range(20):
            if 5 <= index < 9:
                record.put([poll(source, index, {}, PollOutcome.FAILED)])
            elif index == 15:
                record.put([poll(source, index, {}, PollOutcome.TIMEOUT)])
            else:
                record.put([poll(source, index, {(RSS, "process=a"): 1})])
            if index == 7:
                record.compact(final=True)
        record.source("dut", "icmp", "ping", SECOND, required=False)
        with RecordView.open(tmp_path) as view:
            ledger, other = view.ledgers(Window(T0 + 2 * SECOND, T0 + 20 * SECOND))
            silent, _ = view.ledgers(Window(T0 + 5 * SECOND, T0 + 8 * SECOND))
    assert (ledger.source, ledger.due, ledger.got) == ("dut/local", 18, 13)
    assert ledger.lost == {"failed": 4, "timeout": 1}
    assert ledger.errors == ("it was failed", "it was timeout")
    late = 5_000_000
    assert ledger.longest_gap == Window(T0 + 4 * SECOND + late, T0 + 9 * SECOND + late)
    assert (other.due, other.coverage, other.longest_gap) == (0, None, None)
    assert (silent.due, silent.got, silent.longest_gap) == (3, 0, None)


def test_compaction_happens_by_itself(tmp_path: Path) -> None:
    """Once a source has enough recent polls they are compacted by the put that brings the last of them."""
    record, source = new(tmp_path)
    with record:
        record.put([poll(source, index, {(RSS, "process=a"): index}) for index in range(COMPACT_POLLS - 1)])
        wide = size_of(record.path)
        record.put([poll(source, COMPACT_POLLS, {(RSS, "process=a"): 5})])
        record.put([poll(source, COMPACT_POLLS + 1, {(RSS, "process=a"): 6})])
        with RecordView.open(tmp_path) as view:
            assert view.counts().polls == COMPACT_POLLS + 1
            assert len(view.series(view.keys()[0])) == COMPACT_POLLS + 1
        record.finish()
        assert size_of(record.path) < wide / 3


def test_a_view_sees_one_moment(tmp_path: Path) -> None:
    """What is put and compacted after a view was opened is seen by the next view, not by this one."""
    record, source = new(tmp_path)
    with record:
        record.put([poll(source, 0, {(RSS, "process=a"): 1})])
        with RecordView.open(tmp_path) as view:
            record.put([poll(source, 1, {(RSS, "process=a"): 2})])
            record.compact(final=True)
            assert view.series(SeriesKey("dut", RSS, "process=a")).value.tolist() == [1]
        assert next(iter(readings(tmp_path).values()))[2] == [1, 2]


def test_of_two_sources_the_first_brings_a_series(tmp_path: Path) -> None:
    """What two sources of a target see is one series, from the one that brought it first, compacted or not."""
    record, first = new(tmp_path)
    second = record.source("dut", "agent", "agent", SECOND, required=True).id
    with record:
        record.put([poll(first, 0, {("system.uptime", ""): 0}), poll(second, 1, {("system.uptime", ""): 1})])
        record.compact(final=True)
        record.put([poll(second, 2, {("system.uptime", ""): 2}), poll(first, 3, {("system.uptime", ""): 3})])
    assert [values for _, _, values in readings(tmp_path).values()] == [[0, 3]]


def test_a_poll_of_an_unknown_source_is_refused_whole(tmp_path: Path) -> None:
    """A batch with a poll of a source that nobody made known is refused, and nothing of it is kept."""
    record, source = new(tmp_path)
    with record:
        with pytest.raises(RecordError, match="does not know the source 99"):
            record.put([poll(source, 0, {(RSS, "process=new"): 1}), poll(99, 0, {})])
        record.put([poll(source, 0, {(RSS, "process=new"): 1})])
    assert [values for _, _, values in readings(tmp_path).values()] == [[1]]
    assert [p.answer is NOTHING for p in replayed(tmp_path)] == [False]


def test_a_utilisation_a_little_over_100_percent_is_kept_as_100_percent(tmp_path: Path) -> None:
    """A saturated container reads 100.06 to 101.2 %: such a reading is kept; 106 % is a fault."""
    busy, core = ("system.cpu.utilization", ""), ("system.cpu.core.utilization", "core=1")
    record, source = new(tmp_path)
    record.put([poll(source, 1, {busy: 1.012, core: 0.4}), poll(source, 2, {busy: 1.06, core: 1.0006})])
    record.close()
    assert {key.metric: values for key, (_, _, values) in readings(tmp_path).items()} == {
        busy[0]: [1.0],
        core[0]: [0.4, 1.0],
    }
