"""Readings as line protocol, a block of a table at once: the same lines that one by one would give."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soakwatch.core.errors import RecordError
from soakwatch.record.follow import Table
from soakwatch.transfer.sinks.block import NO_LINES, Block, ahead, gathered
from soakwatch.transfer.sinks.influxdb import Influxdb
from soakwatch.transfer.sinks.lines import alike, decimals, key, line, table_block
from soakwatch_testing.influxd import Influxd
from soakwatch_testing.records import T0

TIMES = np.array([10**18, 10**18 + 1, 10**18 + 7], dtype=np.int64)
WORDS = {"d": np.float64, "q": np.int64, "Q": np.uint64}


def table_of(kinds: str, columns: list[list[float]]) -> Table:
    """A table of a column for each kind."""
    words = [np.array(column, dtype=WORDS[kind]).view(np.uint64) for kind, column in zip(kinds, columns, strict=True)]
    return Table(tuple(range(len(kinds))), kinds, TIMES[: words[0].size], np.stack(words, axis=1))


@given(st.lists(st.floats(), max_size=20))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_a_decimal_means_the_same_float_to_the_last_bit(values: list[float]) -> None:
    array = np.array(values, dtype=np.float64)
    again = np.array([float(text) for text in decimals(array)], dtype=np.float64)
    assert ((again.view(np.uint64) == array.view(np.uint64)) | np.isnan(array)).all()
    assert np.array_equal(np.isnan(again), np.isnan(array))


def test_a_block_is_the_lines_one_by_one() -> None:
    columns: list[list[float]] = [[0.1, 1e300, -0.0], [2**53 - 1, -5, 0], [2**64 - 1, 7, 0], [5e-324, 3.0, 1 / 3]]
    heads = [key("m", {"run": "100 %s", "n": str(index)}, {"x": "\x00\\%b {} =,"}) for index in range(4)]
    blocks = [
        table_block([heads[number].encode() for number in table.series], table, 0, 3)
        for table in alike(table_of("dqQd", columns))
    ]
    one_by_one = [
        line(head, {"value": float(column[row])}, int(TIMES[row]))
        for row in range(3)
        for head, column in zip(heads, columns, strict=True)
    ]
    assert sorted(parts(output) for block in blocks for output in block.lines()) == sorted(map(parts, one_by_one))
    assert [block.count for block in blocks] == [3, 6, 3]


def parts(output: bytes) -> tuple[bytes, float, bytes]:
    """What stands before the number, the number (it may be written in several ways: 1e300, 1e+300), and the time."""
    head, _, rest = output.rpartition(b" value=")
    number, time = rest.split(b" ")
    return head, float(number), time


def test_many_rows_are_in_order_without_an_empty_line() -> None:
    rows, width = 700, 3  # more lines than are made at once
    times = 10**18 + np.arange(rows, dtype=np.int64)
    words = np.arange(rows * width, dtype=np.int64).reshape(rows, width).view(np.uint64)
    block = table_block([b"a", b"b", b"c"], Table((1, 2, 3), "qqq", times, words), 0, rows)
    assert block.count == rows * width
    assert block.lines() == [
        b"%b value=%d %d" % (head, index * width + column, time)
        for index, time in enumerate(times.tolist())
        for column, head in enumerate((b"a", b"b", b"c"))
    ]


def test_rows_are_a_part_of_the_table() -> None:
    table = table_of("qq", [[1, 2, 3], [4, 5, 6]])
    assert table_block([b"a", b"b"], table, 1, 2) == Block(f"a value=2 {TIMES[1]}\nb value=5 {TIMES[1]}".encode(), 2)
    assert table_block([b"a", b"b"], table, 1, 1) == NO_LINES


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_has_no_line_and_costs_no_other(odd: float) -> None:
    table = table_of("dd", [[odd, 1.0, 2.0], [3.0, 4.0, odd]])
    block = table_block([b"a,x=\\ value\\=NaN\\ ", b"b"], table, 0, 3)
    assert [text.split(b" ")[-2] for text in block.lines()] == [
        b"value=3.0",
        b"value=1.0",
        b"value=4.0",
        b"value=2.0",
    ]
    assert block.count == 4
    assert table_block([b"a"], table_of("d", [[odd]]), 0, 1) == NO_LINES


@given(st.lists(st.integers(0, 12), max_size=30), st.integers(1, 20))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_gathered_blocks_are_the_same_lines_and_bounded(counts: list[int], size: int) -> None:
    numbers = iter(range(10**6))
    parts_of = [Block.of([b"%d" % next(numbers) for _ in range(count)]) for count in counts]
    blocks = list(gathered(parts_of, lambda: size))
    assert [line_ for block in blocks for line_ in block.lines()] == [b"%d" % index for index in range(sum(counts))]
    assert all(0 < block.count == len(block.lines()) <= max(size, *counts) for block in blocks)
    assert all(block.count + other.count > size for block, other in pairwise(blocks))


def test_a_block_is_divided_without_a_loss() -> None:
    block = Block.of([b"a", b"", b"b", b"c"])
    assert block == Block(b"a\nb\nc", 3)
    assert block.first(2) == (Block(b"a\nb", 2), Block(b"c", 1))
    assert block.first(3) == (block, NO_LINES)
    assert Block.of([b"", b""]) == NO_LINES
    assert NO_LINES.lines() == []


def test_the_next_block_is_made_ahead_in_order_and_no_more_than_one() -> None:
    built: list[int] = []
    second = threading.Event()

    def making() -> Iterator[Block]:
        for index in range(5):
            built.append(index)
            if index == 1:
                second.set()
            yield Block.of([b"%d" % index])
        raise RecordError("the record is gone")

    taken: list[bytes] = []

    def take() -> None:
        with ahead(making()) as blocks:
            for block in blocks:
                assert second.wait(240)  # it is made while the first is held
                taken.append(block.text)
                assert len(built) <= len(taken) + 1

    with pytest.raises(RecordError, match="is gone"):
        take()
    assert taken == [b"0", b"1", b"2", b"3", b"4"]


def test_who_stops_in_the_middle_waits_for_nobody() -> None:
    built: list[int] = []

    def stop() -> None:
        with ahead(Block.of([b"a"]) for _ in map(built.append, range(9))) as blocks:
            next(blocks)
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        stop()
    assert len(built) <= 2
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lines")]


def test_the_database_reads_the_same_floats(bucket_of: Callable[[str], Influxdb], influxd: Influxd) -> None:
    bucket_of("floats")
    values = [
        0.1,
        -0.0,
        1e16,
        1e22,
        1.7976931348623157e308,
        2.2250738585072014e-308,
        5e-324,
        1 / 3,
        123456789.125,
        -1e-7,
    ]
    table = Table((1,), "d", T0 + np.arange(len(values)), np.array(values).view(np.uint64).reshape(-1, 1))
    answer = influxd.write(table_block([b"floats"], table, 0, len(values)).text, "floats")
    assert answer.status_code == 204, answer.text
    rows = influxd.influxql("SELECT value FROM floats", "floats")
    assert [float(row["value"]) for row in rows] == values


def test_an_integer_is_a_float_in_the_database(influxd: Influxd, bucket_of: Callable[[str], None]) -> None:
    """One series may be counted by a source and measured by another; the first line fixes the type of a field."""
    bucket_of("mixed")
    whole = Table((1,), "Q", T0 + np.arange(3), np.array([[7], [2**53 + 1], [2**64 - 1]], dtype=np.uint64))
    broken = Table((1,), "d", T0 + np.arange(3, 4), np.array([[0.5]]).view(np.uint64))
    for table in (whole, broken):
        answer = influxd.write(table_block([b"mixed"], table, 0, len(table.words)).text, "mixed")
        assert answer.status_code == 204, answer.text
    rows = influxd.influxql("SELECT value FROM mixed", "mixed")
    assert [float(row["value"]) for row in rows] == [7.0, 2.0**53, 2.0**64, 0.5]
