"""Plain lines of a table are split many at once: nothing is read differently from lines that are read one by one."""

from __future__ import annotations

import csv
import gzip
import random
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from soakwatch.sources.tables import table as table_module
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.options import Options, pairs
from soakwatch.transfer.importing.build_series import read_table

T0 = 1_767_225_600
BERLIN = Options(zone="Europe/Berlin")
Read = tuple[str, ...] | list[object]


def all_of(file: Path, options: Options) -> Read:
    """Everything that is read of a table, or the sentence that refuses it."""
    try:
        imported = read_table(str(file), "fw", options)
    except DataError as error:
        return (str(error),)
    words = [(one.target, one.metric, one.object, one.unit, one.kind, one.column) for one in imported.series]
    numbers = [(one.time_ns.tolist(), str(one.value.dtype), repr(one.value.tolist())) for one in imported.series]
    return [*imported.notes, *words, *numbers]


def iso(second: int) -> str:
    return f"{datetime.fromtimestamp(T0 + second, UTC):%Y-%m-%dT%H:%M:%S}"


def wide(when: str = "s", sign: str = ",", decimal: str = ".", lines: int = 400) -> Iterator[str]:
    """The lines of a table whose times are written in one of many ways."""
    draw = random.Random(5)
    yield sign.join(("time", "rss", "cpu", "errors", "name", "note"))
    for second in range(lines):
        at = datetime.fromtimestamp(T0 + second, UTC)
        written = {
            "s": f"{T0 + second}",
            "ms": f"{T0 + second}.25",
            "ns": f"{(T0 + second) * 10**9 + 1}",
            "elapsed": f"{second}",
            "iso": iso(second),
            "zoned": f"{iso(second)}.{draw.randrange(10**9):09}+02:00",
            "clock change": f"{iso(second)}{'+02:00' if second < 200 else '+01:00'}",
            "naive hours": f"{datetime(2026, 10, 24, 20, tzinfo=UTC) + timedelta(minutes=3 * second):%Y-%m-%d %H:%M}",
            "day first": f"{at:%d.%m.%Y %H:%M:%S}",
            "month first": f"{at:%m/%d/%Y %H:%M:%S}",
            "short": f"{at.day}.{at.month}.{at.year} {at.hour}:{at:%M:%S}",
            "clock": f"{at:%H:%M:%S}",
            "comma": f"{at:%Y-%m-%d %H:%M:%S},5",
        }[when]
        cells = [written, str(draw.randint(10**6, 10**9)), f"{draw.random():.4f}", str(second), "fw ä", "up"]
        yield sign.join(cell.replace(".", decimal) if index else cell for index, cell in enumerate(cells))


def long(lines: int = 600) -> Iterator[str]:
    """The lines of a long table: several targets, metrics and objects, a time on many lines."""
    draw = random.Random(6)
    yield "time,target,metric,object,value,unit"
    for number in range(lines):
        metric = draw.choice(("process.memory.usage", "load.latency", "imported.µ"))
        unit = {"process.memory.usage": "KiB", "load.latency": "ms"}.get(metric, "")
        name = f"{draw.choice(('fw', 'gw'))},{metric},process=p{draw.randrange(3)}"
        yield f"{iso(number // 5)}Z,{name},{draw.randint(5000, 9000)},{unit}"


def changed(lines: Iterator[str], **at: str) -> Iterator[str]:
    """The lines, some of them replaced: ``l90="…"`` is line 90."""
    for number, line in enumerate(lines, 1):
        yield at.get(f"l{number}", line)


NUMBERS = (
    "",
    "nan",
    "-",
    "n/a",
    "oops",
    "1'234",
    "1 234",
    "inf",
    "1e400",
    " 7 ",
    "+3",
    "1-2",
    "0x10",
    "1_0",
    "١٢",
    ".",
)
BY = Options(by=("name",), skip=frozenset({"note"}))
COUNTER = Options(kinds=pairs(("cpu=counter",), "--kind", ""))


def at(number: int, cells: str) -> str:
    """Line ``number`` of the wide table, with these cells."""
    return f"{T0 + number - 2},{cells}"


ODD: dict[str, tuple[str, Options]] = {
    **{when: ("\n".join(wide(when)), BERLIN) for when in ("iso", "naive hours", "day first", "month first", "short")},
    **{when: ("\n".join(wide(when)), Options()) for when in ("s", "ms", "ns", "elapsed", "zoned", "clock change")},
    **{when: ("\n".join(wide(when)) + "\n", Options()) for when in ("clock", "comma")},
    "semicolons and decimal commas": ("\n".join(wide("day first", ";", ",")), Options()),
    "tabs": ("\n".join(wide(sign="\t")), Options()),
    "line ends of Windows": ("\r\n".join(wide("iso")), Options()),
    "line ends of old Macs": ("\r".join(wide("iso")), Options()),
    "byte order mark": ("\ufeff" + "\n".join(wide()), Options()),
    "blanks behind commas": ("\n".join(wide()).replace(",", ", "), Options()),
    "every cell quoted": ("\n".join(f'"{line}"'.replace(",", '","') for line in wide("iso")), Options()),
    "some cells quoted": ("\n".join(wide()).replace(",up", ',"up"'), Options()),
    "comments": ("\n".join(changed(wide(), l90="# again, after a crash", l91="#")), Options()),
    "blank lines": ("\n".join(changed(wide(), l90="", l91=" ", l92=",,,,,")), Options()),
    "quotes in the middle": ("\n".join(changed(wide(), l90=at(90, '1,2,3,5" disk,"say ""hi"""'))), Options()),
    "a line end within a cell": ("\n".join(changed(wide(), l90=at(90, '1,0.5,3,a,"two\nlines"'))), Options()),
    "a comma within a cell": ("\n".join(changed(wide(), l90=at(90, '"1,234,567",0.5,3,a,b'))), Options()),
    "a quote that never ends": ("\n".join(changed(wide(), l90=at(90, '1,0.5,3,"a,b'))), Options()),
    "too few cells, too many": ("\n".join(changed(wide(), l90=at(90, "1"), l99=at(99, "2,3,4,5,6,7,8"))), Options()),
    "no numbers": (
        "\n".join(changed(wide(), **{f"l{n}": at(n, f"{c},{c},{n},a,b") for n, c in enumerate(NUMBERS, 80)})),
        Options(),
    ),
    "no times": ("\n".join(changed(wide("iso"), l90="yesterday,1,2,3,a,b", l91="2026-02-30,1,2,3,a,b")), Options()),
    "a time years away": ("\n".join(changed(wide(), l90="5,1,2,3,a,b")), Options()),
    "disorder and repeats": ("\n".join(changed(wide(), l90=at(5, "5,0,3,a,b"), l91=at(5, "6,0,3,a,b"))), Options()),
    "long": ("\n".join(long()), Options()),
    "long, a line without a metric": ("\n".join(changed(long(), l300=f"{iso(59)}Z,fw,,p,5,")), Options()),
    "long, two units": ("\n".join(changed(long(), l300=f"{iso(59)}Z,fw,load.latency,process=p1,5,s")), Options()),
    "counters beyond a float": ("\n".join(wide()).replace(",0.", f",{2**53 + 1}"), COUNTER),
    "objects in a column": ("\n".join(wide()).replace(",up", ",down").replace("0,fw ä", "0,gw"), BY),
    "odd signs": ("\n".join(changed(wide(), l90=at(90, "\x01,\x7f,\u00a0,\u2028,\ufffd"))), Options()),
    "sysbench": (
        "\n".join(f"[ {second}s ] thds: 8 tps: {second % 7}.90 qps: 9 lat (ms,95%): 50.2" for second in range(1, 200)),
        Options(),
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_a_table_read_in_blocks_is_the_one_read_row_by_row(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, options = ODD[name]
    file = tmp_path / "data.csv"
    file.write_bytes(text.encode())
    at_once = all_of(file, options)
    monkeypatch.setattr(table_module, "split_plainly", lambda *_: None)
    assert at_once == all_of(file, options)


@pytest.mark.parametrize(
    "name", ["iso", "every cell quoted", "long", "a line end within a cell", "line ends of Windows"]
)
def test_where_a_block_ends_makes_no_difference(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, options = ODD[name]
    file = tmp_path / "data.csv.gz"
    file.write_bytes(gzip.compress(text.encode("utf-16")))
    whole = all_of(file, options)
    for size in (1, 97, 4000):
        monkeypatch.setattr(table_module, "_BLOCK", size)
        assert all_of(file, options) == whole


def test_of_a_plain_table_only_the_first_lines_are_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an import costs: the csv module takes ten times as long as splitting lines at once."""
    lines, read = 0, csv.reader

    class Reader:
        def __init__(self, some: Iterator[str], **options: object) -> None:
            self._reader = read(some, **options)  # type: ignore[arg-type]

        @property
        def line_num(self) -> int:
            return self._reader.line_num

        def __next__(self) -> list[str]:
            nonlocal lines
            lines += 1
            return next(self._reader)

    monkeypatch.setattr(csv, "reader", Reader)
    for name in ("iso", "day first", "long", "every cell quoted", "tabs"):
        lines = 0
        file = tmp_path / "data.csv"
        file.write_text(ODD[name][0])
        read_table(str(file), "fw", BERLIN)
        assert lines <= 62


def test_an_error_far_down_is_named_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "_BLOCK", 20_000)
    file = tmp_path / "data.csv"
    file.write_text("\n".join(changed(wide(lines=5000), l1001=at(1001, '1,0.5,3,"a,b'))))
    with pytest.raises(DataError, match=r"data.csv:\d{4}: field larger than field limit .*: is a quote missing"):
        read_table(str(file), "fw", Options())
    file.write_text("\n".join(changed(long(5000), l4001=f"{iso(900)}Z,fw,load.latency,process=p1,5,s")))
    with pytest.raises(DataError, match=r"data\.csv:4001: load.latency is in s here and in ms in line"):
        read_table(str(file), "fw", Options())
    file.write_text("\n".join(changed(wide(lines=5000), l3001=at(3001, "1,oops,3,a,b"))))
    assert any("(line 3001: 'oops')" in note for note in read_table(str(file), "fw", Options()).notes)


def test_a_reading_takes_little_more_memory_than_its_number(tmp_path: Path) -> None:
    """A table of a hundred million samples is imported in a gigabyte: eight bytes each, and none for regular times."""
    file = tmp_path / "data.csv"
    peaks = []
    for lines in (100_000, 400_000):
        rows = (f"{T0 + number // 50},imported.signal{number % 50},{number % 977}.5\n" for number in range(lines))
        file.write_text("time,metric,value\n" + "".join(rows))
        tracemalloc.start()
        read_table(str(file), "fw", Options())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert (peaks[1] - peaks[0]) / 300_000 < 14


def test_the_text_of_a_series_has_no_readings(tmp_path: Path) -> None:
    """asyncio.run() makes one of what its task returns: with all readings it was a third of an import."""
    file = tmp_path / "data.csv"
    file.write_text("\n".join(wide()))
    (first, *_) = read_table(str(file), "fw", Options()).series
    assert len(repr(first)) < 400
