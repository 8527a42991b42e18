"""``csv``: growing tables of generators, with the ways in which they write, move and break their files."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import ValidationError

from soakwatch.sources.abc import SourceError
from soakwatch.sources.loads.csv import Config
from soakwatch_testing.load_bench import BEGIN_NS, SECOND, LoadBench, last, series

IXIA = "Timestamp,Stat Name,Frames Tx.,Valid Frames Rx.,Tx. Rate (Kbps),Loss %,Store-Forward Avg Latency (ns)\n"
PORTS: dict[str, object] = {
    "Frames Tx.": {"metric": "load.port.tx.packets", "labels": {"port": "{Stat Name}"}},
    "3": {"metric": "load.tx.packets", "total": True},
    "Tx. Rate (Kbps)": {"metric": "load.tx.bit.rate", "total": True},
}


def stamp(at_s: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """A time of day in UTC, so long after the begin."""
    return datetime.fromtimestamp(BEGIN_NS // SECOND + at_s, UTC).strftime(form)


def failing(bench: LoadBench, at_s: float) -> str:
    """Why a poll fails."""
    with pytest.raises(SourceError) as caught:
        bench.poll(at_s)
    return str(caught.value)


def test_ports_and_their_sum_with_units_of_the_headers(tmp_path: Path) -> None:
    """One line a port and time: labels from cells, a sum over the ports, Kbps as bits, counters beyond 2**53."""
    file = tmp_path / "ports.csv"
    many = 2**53 + 1
    with LoadBench("csv", {"file": file, "tz": "UTC", "columns": PORTS}) as bench:
        file.write_text(
            IXIA
            + f"{stamp(1)},1/1,{many},5,100.5,0.5,1500\n{stamp(1)},1/2,7,5,200,0,1500\n"
            + f"{stamp(2)},1/1,{many + 2},5,100.5,0.5,1500\n{stamp(2)},1/2,8,5,200,0,1500\n"
        )
        answer = bench.poll(3)
    assert series(answer, "load.port.tx.packets", "port=1/1") == [(1, many), (2, many + 2)]
    assert series(answer, "load.port.tx.packets", "port=1/2") == [(1, 7), (2, 8)]
    assert series(answer, "load.tx.bit.rate") == [(1, 300_500.0)]  # the second line of a time may still come
    assert last(answer)["load.sending"] == 1
    assert answer.faults == ()


def test_plain_columns_and_units(tmp_path: Path) -> None:
    """Percent, nanoseconds and frames of their headers in the units of the catalogue; a unit of the plan wins."""
    file = tmp_path / "all.csv"
    columns = {
        "Loss %": "load.loss",
        "Store-Forward Avg Latency (ns)": {"metric": "load.latency", "labels": {"quantile": "mean"}},
        "Tx. Rate (Kbps)": {"metric": "load.tx.bit.rate", "unit": "Mbps"},
    }
    with LoadBench("csv", {"file": file, "tz": "UTC", "columns": columns}) as bench:
        file.write_text(IXIA + f"{stamp(1)},all,1,1,2,0.5,1500\n{stamp(2)},all,N/A,1,0,,-\n")
        answer = bench.poll(3)
    assert series(answer, "load.loss") == [(1, 0.005)]
    assert series(answer, "load.latency", "quantile=mean")[0][1] == pytest.approx(1.5e-6)
    assert series(answer, "load.tx.bit.rate") == [(1, 2e6), (2, 0)]
    assert last(answer)["load.lines.unread"] == 0  # missing is no trouble


def test_names_that_say_enough_need_no_mapping(tmp_path: Path) -> None:
    """Headers as for judge; an unknown column, or one of an unknown unit, is left out and reported."""
    file = tmp_path / "load.csv"
    with LoadBench("csv", {"file": file}) as bench:
        file.write_text(f"time,rps,latency (ms),latency,widgets\n{stamp(1)}Z,100,20,20,3\n{stamp(2)}Z,110,21,21,3\n")
        answer = bench.poll(3)
        assert last(answer) == {
            "load.request.rate": 110,
            "load.latency": 0.021,
            "load.lines.unread": 0,
            "load.sending": 1,
        }
        notes = " ".join(bench.facts().notes)
    assert "widgets" in notes
    assert "latency" in notes


@pytest.mark.parametrize(
    ("keys", "form", "first_s"),
    [
        ({"tz": "Europe/Berlin"}, "21.11.2026 12:20:{s:02d}", 0.0),  # one hour east of UTC in November
        ({}, "2026-11-21T06:20:{s:02d}-05:00", 0.0),
        ({}, "1795260{s:03d}", 0.0),
        ({}, "1795260{s:03d}123", 0.123),
        ({"tz": "US/Eastern", "time_format": "%m/%d/%Y %I:%M:%S %p"}, "11/21/2026 06:20:{s:02d} AM", 0.0),
        ({}, "{s}", None),  # seconds from the start of a test: counted from the line that was seen first
        ({}, "00:00:{s:02d}", None),
        ({"time_format": "elapsed-ms"}, "{s}000", None),
    ],
)
def test_times_as_generators_write_them(
    tmp_path: Path, keys: dict[str, object], form: str, first_s: float | None
) -> None:
    """Dates with and without zones, epochs, and times that begin at zero."""
    file = tmp_path / "load.csv"
    with LoadBench("csv", {"file": file, **keys}) as bench:
        bench.poll(1)
        file.write_text(f"timestamp,rps\n{form.format(s=1)},1\n{form.format(s=2)},2\n")
        bench_at = 30.0 if first_s is None else 3.0
        answer = bench.poll(bench_at)
        with file.open("a") as out:
            out.write(f"{form.format(s=5)},5\n")
        later = bench.poll(bench_at + 3)
    begin = 28.0 if first_s is None else first_s
    assert series(answer, "load.request.rate") == [(begin + 1, 1), (begin + 2, 2)]
    assert series(later, "load.request.rate") == [(begin + 5, 5)]


def test_the_hour_that_a_clock_shows_twice(tmp_path: Path) -> None:
    """On 25 October 2026 Berlin's clocks go from 02:59 back to 02:00: the series goes on."""
    begin = 1_792_889_400 * SECOND  # 00:50 UTC, 02:50 there for the first time
    file = tmp_path / "load.csv"
    with LoadBench("csv", {"file": file, "tz": "Europe/Berlin"}, begin_ns=begin) as bench:
        text, rates = "time,rps\n", []
        for minute in range(0, 80, 5):
            local = (2 * 60 + 50 + minute) if minute < 10 else (2 * 60 + 50 + minute - 60)
            text += f"2026-10-25 {local // 60:02d}:{local % 60:02d}:00,{minute}\n"
            file.write_text(text)
            answer = bench.poll(minute * 60 + 1)
            rates += [
                (round((s.time_ns - begin) / SECOND / 60), s.value)
                for s in answer.samples
                if s.metric == "load.request.rate"
            ]
    assert rates == [(minute, minute) for minute in range(0, 80, 5)]


def test_times_without_a_zone_are_refused(tmp_path: Path) -> None:
    """One sentence with both remedies; by arrival no time is needed at all."""
    file = tmp_path / "load.csv"
    text = f"time,rps\n{stamp(1)},1\n"
    with LoadBench("csv", {"file": file}) as bench:
        file.write_text(text)
        assert "its times have no time zone: set it (tz: Europe/Berlin), or use time: arrival" in failing(bench, 2)
        assert "have no time zone" in failing(bench, 3)
    file.unlink()
    with LoadBench("csv", {"file": file, "time": "arrival"}) as bench:
        bench.poll(1)
        file.write_text("rps,users\n5,1\n6,1\n")
        assert series(bench.poll(2), "load.request.rate") == [(2, 6)]


def test_a_wrong_clock_does_no_harm(tmp_path: Path) -> None:
    """A day behind or two hours ahead: refused in one sentence, no sample; when it is right again it goes on."""
    file = tmp_path / "load.csv"
    with LoadBench("csv", {"file": file, "tz": "UTC"}) as bench:
        bench.poll(0)
        file.write_text(f"time,rps\n{stamp(-86_399)},1\n")
        assert "the newest line is 24 h before now: set the generator's clock" in failing(bench, 1)
        assert "before now" in failing(bench, 2)
        with file.open("a") as out:
            out.write(f"{stamp(7200)},2\n")
        assert "after now" in failing(bench, 3)
        with file.open("a") as out:
            out.write(f"{stamp(4)},3\n")
        assert series(bench.poll(5), "load.request.rate") == [(4, 3)]
        assert "clock" in bench.facts().identity


def test_lines_from_before_the_run_are_of_no_run(tmp_path: Path) -> None:
    """A file that lies there from yesterday is followed; what it holds is not reported."""
    file = tmp_path / "load.csv"
    file.write_text("time,rps\n" + "".join(f"{stamp(second - 86_400)},1\n" for second in range(50)))
    with LoadBench("csv", {"file": file, "tz": "UTC"}) as bench:
        assert "load.request.rate" not in last(bench.poll(1))
        with file.open("a") as out:
            out.write(f"{stamp(2)},7\n")
        assert series(bench.poll(3), "load.request.rate") == [(2, 7)]


def test_a_decimal_comma(tmp_path: Path) -> None:
    """With semicolons between the cells; also where the first numbers have none; and where it may mean two numbers."""
    file = tmp_path / "load.csv"
    with LoadBench("csv", {"file": file, "tz": "UTC"}) as bench:
        file.write_text(f"time;rps\n{stamp(1)};1\n")
        assert series(bench.poll(2), "load.request.rate") == [(1, 1)]
        with file.open("a") as out:
            out.write(f"{stamp(3)};12,25\n")
        assert series(bench.poll(4), "load.request.rate") == [(3, 12.25)]
    file.unlink()
    with LoadBench("csv", {"file": file, "tz": "UTC"}) as bench:
        file.write_text(f"time;rps\n{stamp(1)};1\n{stamp(2)};1,500\n")
        assert "1,500 is ambiguous: give decimal:" in failing(bench, 3)


def test_a_header_comes_again_and_lines_are_broken(tmp_path: Path) -> None:
    """Headers and comments are passed over; short lines, words for numbers and odd times are counted, reported once."""
    file = tmp_path / "load.csv"
    with LoadBench("csv", {"file": file, "tz": "UTC"}) as bench:
        file.write_text(
            f"time,rps,users\n{stamp(1)},1,1\ntime,rps,users\n# pause\n\n{stamp(2)},2\n{stamp(3)},many,1\nsoon,4,1\n"
            f'{stamp(5)},5,1\n{stamp(4000)},5,1\n{stamp(6)},"6",1\n'
        )
        answer = bench.poll(7)
    assert series(answer, "load.request.rate") == [(1, 1), (5, 5), (6, 6)]
    assert last(answer)["load.lines.unread"] == 4
    assert len(answer.faults) == 1


def test_late_lines_and_lines_of_one_time(tmp_path: Path) -> None:
    """A line later than the bound is taken if it is later than the last; doubles without labels are reported."""
    file = tmp_path / "load.csv"
    with LoadBench("csv", {"file": file, "tz": "UTC"}) as bench:
        file.write_text(f"time,rps\n{stamp(1)},1\n{stamp(1)},2\n{stamp(5)},5\n{stamp(3)},3\n")
        answer = bench.poll(200)
        assert series(answer, "load.request.rate") == [(1, 2), (5, 5)]
        assert "several lines have load.request.rate at one time" in answer.faults[0].text


@pytest.mark.parametrize("form", ["total", "(t?o?t?a?l?)+"])
def test_only_the_lines_that_are_wanted(tmp_path: Path, form: str) -> None:
    """``where`` holds lines against whole regular expressions; none of them holds the load."""
    file = tmp_path / "load.csv"
    with LoadBench("csv", {"file": file, "tz": "UTC", "where": {"item": form}}) as bench:
        file.write_text(f"time,item,rps\n{stamp(1)},total,1\n{stamp(1)},{'total' * 9}!,9\n")
        assert series(bench.poll(2), "load.request.rate") == [(1, 1)]


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"columns": {"rps": "load.request.rat"}}, "unknown metric 'load.request.rat'"),
        ({"columns": {"rps": "load.port.tx.packets"}}, "has the labels port: give just these"),
        (
            {"columns": {"rps": {"metric": "load.latency", "labels": {"quantile": "p50"}, "unit": "KB"}}},
            "does not fit s",
        ),
        ({"tz": "Berlin"}, "'Berlin' is not a time zone"),
        ({"where": {"a": "("}}, "is not a regular expression"),
        ({"decimal": "x"}, "is not a decimal sign"),
        ({"time": "never"}, "column"),
        ({"bound": "5"}, "is not a duration"),
    ],
)
def test_invalid_plans(keys: dict[str, object], sentence: str) -> None:
    """Each is refused when the plan is read."""
    with pytest.raises(ValidationError, match="(?s)" + sentence.replace("(", r"\(")):
        Config.model_validate({"file": "x.csv", **keys})


@pytest.mark.parametrize(
    ("keys", "text", "sentence"),
    [
        ({"columns": {"rpm": "load.request.rate"}}, "time,rps\n1795260001,1\n", "no column 'rpm'; did you mean 'rps'?"),
        ({"time_column": "when"}, "time,rps\n1795260001,1\n", "time_column: there is no column 'when'"),
        ({}, "date of it,rps\n1795260001,1\n", "no column is called time: name it (time_column)"),
        ({}, "time,colour\n1795260001,red\n", "no column has a known name: map them in columns"),
        ({}, "time,rps\nnever,1\n", "give it with time_format:"),
        ({}, "time,rps\n05/06/2026 10:00:00,1\n", "day or month first?"),
        (
            {"columns": {"rps": {"metric": "load.port.tx.packets", "labels": {"port": "{prt}"}}}},
            "time,rps\n1795260001,1\n",
            "no column 'prt'",
        ),
    ],
)
def test_tables_that_the_plan_does_not_fit(tmp_path: Path, keys: dict[str, object], text: str, sentence: str) -> None:
    """Each is one sentence at every poll, with the remedy in the words of a plan."""
    file = tmp_path / "load.csv"
    with LoadBench("csv", {"file": file, **keys}) as bench:
        file.write_text(text)
        for second in (2, 3):
            error = failing(bench, second)
            assert sentence in error
            assert "--" not in error


def test_a_running_number_as_a_label_is_refused(tmp_path: Path) -> None:
    """More than 5000 series is a mistake, reported in one sentence."""
    file = tmp_path / "load.csv"
    columns = {"rps": {"metric": "load.flow.tx.packets", "labels": {"flow": "{id}"}}}
    with LoadBench("csv", {"file": file, "columns": columns, "timeout": "20s"}) as bench:
        file.write_text("time,id,rps\n" + "".join(f"1795260001,{number},1\n" for number in range(5_001)))
        assert "more than 5000 series: is a label a running number?" in failing(bench, 2)


def test_a_figure_of_the_device_makes_no_load(tmp_path: Path) -> None:
    """A table of a dut gives its metrics and nothing of a generator."""
    file = tmp_path / "load.csv"
    with LoadBench("csv", {"file": file, "tz": "UTC"}, role="dut") as bench:
        file.write_text(f"time,cpu (%)\n{stamp(1)},50\n")
        assert last(bench.poll(2)) == {"system.cpu.utilization": 0.5}


def test_noise_is_harmless(tmp_path: Path) -> None:
    """Seeded noise in good lines, and cut writes: figures or a sentence, never another exception."""
    dice = random.Random(21)
    good = IXIA + "".join(
        f"{stamp(position)},1/{position % 2},{position},5,100.5,0.5,1500\n" for position in range(200)
    )
    for turn in range(40):
        file = tmp_path / f"{turn}.csv"
        data = bytearray(good.encode())
        for _ in range(100):
            data[dice.randrange(len(data))] = dice.choice(b'",;\n\r\0{}-: 9\xff#')
        with (
            LoadBench("csv", {"file": file, "tz": "UTC", "columns": PORTS}) as bench,
            file.open("wb", buffering=0) as out,
        ):
            position = 0
            while position < len(data):
                many = dice.randrange(1, 4000)
                out.write(data[position : position + many])
                position += many
                try:
                    bench.poll(200)
                except SourceError:
                    continue
