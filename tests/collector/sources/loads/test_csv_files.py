"""``csv``: how files come to be read whole: cut lines, encodings, rotation, and files that are rewritten."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from soakwatch.sources.abc import SourceError
from soakwatch_testing.load_bench import BEGIN_NS, SECOND, LoadBench, last, series


def stamp(at_s: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """A time of day in UTC, so long after the begin."""
    return datetime.fromtimestamp(BEGIN_NS // SECOND + at_s, UTC).strftime(form)


def failing(bench: LoadBench, at_s: float) -> str:
    """Why a poll fails."""
    with pytest.raises(SourceError) as caught:
        bench.poll(at_s)
    return str(caught.value)


def test_a_last_line_waits_for_its_end(tmp_path: Path) -> None:
    """123 of 12345 is no reading."""
    file = tmp_path / "load.csv"
    with LoadBench("csv", {"file": file, "tz": "UTC"}) as bench, file.open("w", buffering=1) as out:
        out.write(f"time,rps\n{stamp(1)},1\n{stamp(2)},123")
        out.flush()
        assert series(bench.poll(3), "load.request.rate") == [(1, 1)]
        out.write("45\n")
        assert series(bench.poll(4), "load.request.rate") == [(2, 12345)]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_encodings_of_windows(tmp_path: Path, encoding: str) -> None:
    """BOM and UTF-16, written in pieces of odd length."""
    file = tmp_path / "load.csv"
    data = f"time,rps,Größe\r\n{stamp(1)},1,ä\r\n{stamp(2)},2,ö\r\n".encode(encoding)
    rates = []
    with LoadBench("csv", {"file": file, "tz": "UTC"}) as bench, file.open("wb", buffering=0) as out:
        for start in range(0, len(data), 7):
            out.write(data[start : start + 7])
            rates += series(bench.poll(3 + start / 1000), "load.request.rate")
    assert rates == [(1, 1), (2, 2)]


def test_a_file_moves_away_and_another_takes_its_name(tmp_path: Path) -> None:
    """Nothing is lost: the end of the old one, then the new one with its own header and columns."""
    file = tmp_path / "load.csv"
    with LoadBench("csv", {"file": file, "tz": "UTC"}) as bench:
        file.write_text(f"time,rps\n{stamp(1)},1\n")
        bench.poll(2)
        with file.open("a") as out:
            out.write(f"{stamp(3)},3\n{stamp(4)},4")  # no line end: the writer is done with it
        file.rename(tmp_path / "load.csv.1")
        file.write_text(f"users;time;rps\n9;{stamp(5)};5\n")
        answer = bench.poll(6)
        assert series(answer, "load.request.rate") == [(3, 3), (4, 4), (5, 5)]
        assert answer.events == ()
        file.unlink()
        assert "was removed" in failing(bench, 7)
        file.write_text(f"time,rps\n{stamp(8)},8\n")
        assert series(bench.poll(9), "load.request.rate") == [(8, 8)]


def test_a_file_that_is_cut_or_rewritten_in_place(tmp_path: Path) -> None:
    """Shorter than before, or another begin: read from its begin; what was reported already is not reported again."""
    file = tmp_path / "load.csv"
    with LoadBench("csv", {"file": file, "tz": "UTC"}) as bench:
        file.write_text(f"time,rps\n{stamp(1)},1\n{stamp(2)},2\n")
        bench.poll(3)
        file.write_text(f"time,rps\n{stamp(4)},4\n")
        assert series(bench.poll(5), "load.request.rate") == [(4, 4)]
        file.write_text("time,users,rps\n" + "".join(f"{stamp(second)},1,{second}\n" for second in range(1, 9)))
        assert series(bench.poll(9), "load.request.rate") == [(second, second) for second in range(5, 9)]


def test_a_writer_that_goes_on_in_the_file_that_was_moved(tmp_path: Path) -> None:
    """Until it makes a new one its lines are read where it writes them."""
    file = tmp_path / "load.csv"
    with LoadBench("csv", {"file": file, "tz": "UTC"}) as bench, file.open("w") as out:
        out.write(f"time,rps\n{stamp(1)},1\n")
        out.flush()
        bench.poll(2)
        file.rename(tmp_path / "load.csv.1")
        assert "was removed" in failing(bench, 3)
        out.write(f"{stamp(4)},4\n")
        out.flush()
        assert series(bench.poll(5), "load.request.rate") == [(4, 4)]
        file.write_text(f"time,rps\n{stamp(6)},6\n")
        assert series(bench.poll(7), "load.request.rate") == [(6, 6)]


def test_a_file_is_cut_and_its_writer_does_not_know(tmp_path: Path) -> None:
    """A rotation that copies and cuts: noughts up to where the writer was, then lines without a header."""
    file = tmp_path / "load.csv"
    with LoadBench("csv", {"file": file, "tz": "UTC"}) as bench, file.open("w") as out:
        out.write("time,rps\n" + "".join(f"{stamp(second)},{second}\n" for second in range(1, 40)))
        out.flush()
        bench.poll(40)
        os.truncate(file, 0)
        out.write(f"{stamp(41)},41\n{stamp(42)},42\n")
        out.flush()
        answer = bench.poll(43)
    assert series(answer, "load.request.rate") == [(41, 41), (42, 42)]
    assert last(answer)["load.lines.unread"] == 0


def test_a_file_without_line_ends_does_not_fill_the_memory(tmp_path: Path) -> None:
    """Megabytes in one line: left out and counted; the lines after it are read."""
    file = tmp_path / "load.csv"
    with LoadBench("csv", {"file": file, "tz": "UTC", "timeout": "20s"}) as bench:
        file.write_text(f"time,rps\n{stamp(1)},1\n" + "9" * 3_000_000 + f"\n{stamp(2)},2\n")
        answer = bench.poll(3)
    assert series(answer, "load.request.rate") == [(1, 1), (2, 2)]
    assert last(answer)["load.lines.unread"] == 1
