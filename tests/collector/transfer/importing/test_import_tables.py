"""Tables of every make: what is understood, what is reported, and what is refused in one sentence."""

from __future__ import annotations

import gzip
import io
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.options import Options, growths, kinds, meaning, pairs
from soakwatch.transfer.importing.build_series import Imported, ImportedSeries, read_table

T0 = 1_767_225_600
SECOND = 10**9
PLAIN = Options()


def read(folder: Path, text: str | bytes, options: Options = PLAIN) -> Imported:
    """A table with this text."""
    file = folder / "data.csv"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_table(str(file), "data", options)


def column_of(imported: Imported, column: str) -> ImportedSeries:
    """The series of a column."""
    (match,) = [series for series in imported.series if series.column == column]
    return match


def refused(folder: Path, text: str | bytes, options: Options = PLAIN) -> str:
    """The sentence with which a table is refused, without the folder."""
    with pytest.raises(DataError) as error:
        read(folder, text, options)
    sentence = str(error.value)
    assert "\n" not in sentence
    return sentence.replace(f"{folder}/", "")


WIDE = f"time,heap,note\n{T0},1,a\n{T0 + 10},2.5,b\n{T0 + 20},3,c\n"


@pytest.mark.parametrize(
    "text",
    [
        WIDE,
        WIDE.replace(",", ";"),
        WIDE.replace(",", "\t"),
        WIDE.replace(",", " , "),
        WIDE.replace("\n", "\r\n"),
        "\ufeff" + WIDE,
        WIDE.replace("time", "#Time"),
        WIDE.replace("time", "Unix TS"),
        "# written by hand\n" + WIDE,
        WIDE.replace(",", ";").replace("2.5", "2,5"),
        WIDE.replace("\n", "\n\n"),
        WIDE.rstrip("\n"),
        WIDE.encode("utf-16"),
        gzip.compress(WIDE.encode(), mtime=0),
    ],
)
def test_tables_of_every_make_hold_the_same(tmp_path: Path, text: str | bytes) -> None:
    """Delimiters, line ends, marks, comments, decimal commas, UTF-16 and gzip are found out by themselves."""
    series = column_of(read(tmp_path, text), "heap")
    assert series.value.tolist() == [1.0, 2.5, 3.0]
    assert (series.time_ns // SECOND - T0).tolist() == [0, 10, 20]
    assert (series.metric, series.unit, series.kind) == ("imported.heap", "{unit}", "gauge")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dash reads what is piped in."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WIDE.encode())))
    assert column_of(read_table("-", "stdin", PLAIN), "heap").value.tolist() == [1.0, 2.5, 3.0]
    assert not sys.stdin.buffer.closed


def test_without_a_header_columns_have_numbers(tmp_path: Path) -> None:
    """The first column is the time if it grows, and this is reported."""
    imported = read(tmp_path, f"{T0},1,5\n{T0 + 10},2,5\n{T0 + 20},3,6\n")
    assert [series.column for series in imported.series] == ["column 2", "column 3"]
    assert any("no header" in note for note in imported.notes)
    assert "no column looks like times" in refused(tmp_path, "84,1\n91,2\n80,3\n84,4\n")


def test_the_time_is_found_by_name_before_place(tmp_path: Path) -> None:
    """A column called a time that reads like one is the time, wherever it stands; --time says otherwise."""
    imported = read(tmp_path, f"Time,a,TimeStamp\nnoon,1,{T0}\nlater,2,{T0 + 1}\n")
    assert column_of(imported, "a").time_ns.tolist() == [T0 * SECOND, (T0 + 1) * SECOND]
    imported = read(tmp_path, "time,a,when it was\n5,1,100\n5,2,200\n", Options(time="3"))
    assert column_of(imported, "a").time_ns.tolist() == [100 * SECOND, 200 * SECOND]


def test_lines_out_of_order_are_sorted_and_reported(tmp_path: Path) -> None:
    """Order does not matter to the series, and is not passed over in silence."""
    lines = WIDE.splitlines()
    imported = read(tmp_path, "\n".join([lines[0], lines[3], lines[1], lines[2]]))
    assert column_of(imported, "heap").value.tolist() == [1.0, 2.5, 3.0]
    assert any("1 line is out of order: sorted" in note for note in imported.notes)


def test_of_lines_at_one_time_the_last_counts(tmp_path: Path) -> None:
    """Duplicates are reported; a missing cell in the later line does not take away the earlier reading."""
    imported = read(tmp_path, f"time,heap\n{T0},1\n{T0},2\n{T0 + 1},3\n{T0 + 1},\n")
    assert column_of(imported, "heap").value.tolist() == [2.0, 3.0]
    assert any("1 line is at a time that exists already" in note for note in imported.notes)


def test_missing_is_neither_zero_nor_bad(tmp_path: Path) -> None:
    """Empty, NaN, null and cut-off cells bring no reading and no complaint."""
    imported = read(
        tmp_path, f"time,heap,x\n{T0},1,1\n{T0 + 1},,1\n{T0 + 2},NaN,1\n{T0 + 3},null,1\n{T0 + 4}\n{T0 + 5},-,1\n"
    )
    assert column_of(imported, "heap").value.tolist() == [1.0]
    assert not any("no number" in note for note in imported.notes)


def test_bad_cells_are_counted_and_named_by_line(tmp_path: Path) -> None:
    """The first three are shown with their lines; they are missing, never zero; infinities are bad."""
    cells = ["1", "x", "2", "inf", "3", "oops", "4", "??!", "5", "6"]
    imported = read(tmp_path, "time,heap\n" + "".join(f"{T0 + second},{cell}\n" for second, cell in enumerate(cells)))
    assert column_of(imported, "heap").value.tolist() == [1, 2, 3, 4, 5, 6]
    (note,) = [note for note in imported.notes if "not numbers" in note]
    assert (
        "4 cells are not numbers and counted as missing (line 3: 'x', line 5: 'inf', line 7: 'oops' and 1 more)" in note
    )


def test_more_than_half_bad_is_one_error(tmp_path: Path) -> None:
    """A column that is mostly no numbers is refused with lines and remedy, and can be left out."""
    text = f"time,heap,y\n{T0},1,1\n{T0 + 1},a,2\n{T0 + 2},b,3\n"
    message = refused(tmp_path, text)
    assert message == (
        "data.csv: column heap: more than half of its cells are not numbers (line 3: 'a', line 4: 'b'): "
        "fix them, or leave the column out with --skip 'heap'"
    )
    assert [series.column for series in read(tmp_path, text, Options(skip=frozenset({"heap"}))).series] == ["y"]
    assert "more than half of its cells are not times" in refused(
        tmp_path, "time,y\n" + f"{T0},1\n" * 70 + "x,1\n" * 90
    )


def test_lines_without_a_time_are_reported(tmp_path: Path) -> None:
    """A line whose time is none is left out, and named."""
    imported = read(tmp_path, WIDE + "later,4,d\n")
    assert len(column_of(imported, "heap").value) == 3
    assert any("1 line has no time and were left out" in n or "line 5: 'later'" in n for n in imported.notes)


def test_text_columns_are_left_out_and_reported(tmp_path: Path) -> None:
    """Text is no series; a text column that was mapped is a mistake."""
    assert any("not imported because it is text: note" in note for note in read(tmp_path, WIDE).notes)
    options = Options(meanings=dict([meaning("note=system.cpu.utilization")]))
    assert "column note is text" in refused(tmp_path, WIDE, options)


def test_thousands_and_decimal_commas(tmp_path: Path) -> None:
    """Grouped digits are numbers; where a comma may be either, someone must say which."""
    imported = read(tmp_path, f'time,heap\n{T0},"1,234,567.5"\n{T0 + 1},12\n')
    assert column_of(imported, "heap").value.tolist() == [1234567.5, 12.0]
    imported = read(tmp_path, f"time;heap\n{T0};1.234,5\n{T0 + 1};12,25\n", Options(decimal=","))
    assert column_of(imported, "heap").value.tolist() == [1234.5, 12.25]
    ambiguous = f"time;heap\n{T0};1,234\n{T0 + 1};2,345\n"
    assert "1,234 is ambiguous: give --decimal" in refused(tmp_path, ambiguous)
    assert column_of(read(tmp_path, ambiguous, Options(decimal=",")), "heap").value.tolist() == [1.234, 2.345]
    assert column_of(read(tmp_path, ambiguous, Options(decimal=".")), "heap").value.tolist() == [1234, 2345]


LONG = (
    "time,target,metric,object,value,unit\n"
    f"{T0},fw,process.memory.usage,process=a,10,MB\n"
    f"{T0},fw,process.memory.usage,process=b,20,\n"
    f"{T0 + 1},fw,process.memory.usage,process=a,11,MB\n"
    f"{T0 + 1},gen,load.request.rate,,500,\n"
    f"{T0},fw,sessions,,7,\n"
)


def test_long_tables(tmp_path: Path) -> None:
    """Every line names its series; units are turned into the catalogue's; the load is a generator's."""
    by_name = {(s.target, s.metric, s.object): s for s in read(tmp_path, LONG).series}
    assert by_name["fw", "process.memory.usage", "process=a"].value.tolist() == [10e6, 11e6]
    assert by_name["fw", "process.memory.usage", "process=b"].value.tolist() == [20]
    assert by_name["fw", "process.memory.usage", "process=b"].role == "dut"
    assert by_name["gen", "load.request.rate", ""].role == "generator"
    assert by_name["fw", "imported.sessions", ""].value.tolist() == [7]


def test_mixed_units_are_one_error_with_both_lines(tmp_path: Path) -> None:
    """A series that changes its unit half way is refused."""
    message = refused(tmp_path, LONG.replace("11,MB", "11,kB"))
    assert message == (
        "data.csv:4: process.memory.usage is in kB here and in MB in line 2: use one unit for all of a series"
    )


def test_options_of_a_long_table_name_its_metrics(tmp_path: Path) -> None:
    """A metric of the table can be mapped; one that is not there is a mistake with the nearest."""
    imported = read(tmp_path, LONG, Options(meanings=dict([meaning("sessions=system.conntrack.count")])))
    assert column_of(imported, "sessions").metric == "system.conntrack.count"
    wrong = Options(meanings=dict([meaning("sesions=system.conntrack.count")]))
    assert "no line has the metric 'sesions'; did you mean 'sessions'?" in refused(tmp_path, LONG, wrong)


def test_objects_distinguished_by_a_column(tmp_path: Path) -> None:
    """--by makes a series for each value of a column instead of letting the last line win."""
    text = f"time,pod,heap\n{T0},a,1\n{T0},b,2\n{T0 + 1},a,3\n{T0 + 1},b,4\n"
    imported = read(tmp_path, text, Options(by=("pod",)))
    assert {s.object: s.value.tolist() for s in imported.series} == {"pod=a": [1, 3], "pod=b": [2, 4]}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "data.csv is empty"),
        ("\n\n", "data.csv is empty"),
        ("time,heap\n", "data.csv has a header but no lines below it"),
        ("time,heap\n5,\n6,nan\n", "data.csv has no samples"),
        ("time\n5\n6\n", "data.csv: no column but the times has numbers; columns: time"),
        ("time,x\n5,a\n6,b\n", "data.csv: no column but the times has numbers; columns: time, x"),
        ("a,b\nx,1\ny,2\n", "data.csv: no column looks like times: name it with --time; columns: a, b"),
        (b"SQLite format 3\0....", "data.csv is a record, not a table"),
        (b"PK\x03\x04....", "data.csv is a zip or a spreadsheet: save it as CSV"),
        (b"\x7fELF\0\0\0", "data.csv is not text: save it as CSV in UTF-8"),
        (gzip.compress(WIDE.encode(), mtime=0)[:-9], "data.csv: the gzip file is damaged or truncated: copy it again"),
        ("time,heap\n5,1\n" + "9" * 2_000_000, "data.csv:3: a line of more than 1048576 characters"),
        ('time,heap\n5,"' + "9\n" * 80_000, "is a quote missing?"),
        ("time,target,metric,object,value\n5,t,,o,1\n", "data.csv:2: no metric in this line"),
    ],
)
def test_what_is_no_table_is_one_sentence(tmp_path: Path, text: str | bytes, sentence: str) -> None:
    """Empty, wordless, timeless, binary and broken files are refused with place and remedy."""
    assert sentence in refused(tmp_path, text)


def test_no_such_file(tmp_path: Path) -> None:
    """A file that is not there, or is a folder, is a sentence too."""
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(DataError, match=str(path)):
            read_table(str(path), "data", PLAIN)


@pytest.mark.parametrize("option", ["units", "kinds", "growths"])
def test_columns_that_are_not_there(tmp_path: Path, option: str) -> None:
    """An option that names no column is refused with the nearest."""
    value = {"units": "MB", "kinds": "counter", "growths": "down"}[option]
    message = refused(tmp_path, WIDE, replace(PLAIN, **{option: {"heep": value}}))  # type: ignore[arg-type]
    assert "there is no column 'heep'; did you mean 'heap'?" in message


def test_too_many_series_are_refused(tmp_path: Path) -> None:
    """A running number taken for an object would make a series a line."""
    text = "time,metric,object,value\n" + "".join(f"{T0},x,o{n},1\n" for n in range(20_001))
    assert "has more than 20000 series" in refused(tmp_path, text)


def test_options_are_read_or_refused() -> None:
    """Directions, kinds and pairs say how to write them."""
    assert growths(["down", "heap=up"]) == ("down", {"heap": "up"})
    for wrong in (
        lambda: growths(["sideways"]),
        lambda: kinds(["a=rate"]),
        lambda: pairs(["a"], "--unit", "a=MB"),
        lambda: meaning("a=b,c"),
    ):
        with pytest.raises(DataError, match="write"):
            wrong()


CELLS = st.sampled_from(
    ["1", "2.5", "", "nan", "x", "1e308", "-1", "1e999", "2026-01-01", str(T0), str(T0 + 1), '"', "é"]
)
ROWS = st.lists(st.lists(CELLS, min_size=0, max_size=4), max_size=8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(
    rows=ROWS,
    header=st.sampled_from(["", "time,a,b", "time,metric,value", "ts;cpu;rss_kb"]),
    raw=st.binary(max_size=20),
)
def test_no_table_breaks_it(tmp_path: Path, rows: list[list[str]], header: str, raw: bytes) -> None:
    """Whatever a file holds, it is series of finite numbers in order of time, or one sentence."""
    text = "\n".join([header, *(",".join(row) for row in rows)]).encode() + raw
    try:
        imported = read(tmp_path, text)
    except DataError:
        return
    for series in imported.series:
        assert series.time_ns.size
        assert bool((np.diff(series.time_ns) > 0).all())
        assert bool(np.isfinite(series.value.astype(np.float64)).all())
