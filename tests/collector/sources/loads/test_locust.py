"""``locust``: a history that locust 2.47 wrote of a run on loopback, as it grows."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from soakwatch.sources.abc import SourceError
from soakwatch.sources.loads.locust import Config, kind_of
from soakwatch.sources.result_files.locust import LocustReader
from soakwatch.sources.result_files.result_file import Moment
from soakwatch_testing.load_bench import SECOND, LoadBench, last, series

REAL = Path(__file__).parent / "data" / "locust-2.47_stats_history.csv"
BEGIN_NS = 1_795_259_366 * SECOND


def test_a_real_history_gives_its_totals_and_the_rates_between_them(tmp_path: Path) -> None:
    """Requests less failures; locust's own rate is zero at first while requests are answered, these are not."""
    file = tmp_path / "soak_stats_history.csv"
    lines = REAL.read_bytes().splitlines(keepends=True)
    totals, rates = [], []
    with LoadBench("locust", {"file": file}, begin_ns=BEGIN_NS) as bench:
        for index in range(len(lines)):
            file.write_bytes(b"".join(lines[: index + 1])) if index == 0 else file.open("ab").close()
            if index:
                with file.open("ab") as out:
                    out.write(lines[index][:20])
                    out.flush()
                    bench.poll(1 + index / 10)
                    out.write(lines[index][20:])
            answer = bench.poll(1.05 + index / 10)
            totals += [value for _, value in series(answer, "load.requests")]
            rates += [value for _, value in series(answer, "load.request.rate")]
        answer = bench.poll(10)
    assert totals == [0, 13, 41, 81, 119, 161]
    assert rates == [13, 28, 40, 38, 42]
    assert last(answer)["load.lines.unread"] == 0


def test_the_summary_at_its_end_has_what_the_history_has_not(tmp_path: Path) -> None:
    """The last second of a process is in no row; the next process counts on from there. A summary that says less than
    the rows did, and the table of percentiles, say nothing."""
    config = Config.model_validate({"drive": True, "script": tmp_path / "a.py", "full": "4 users"})
    summary, percentiles = (
        f"         Aggregated{' ' * 60}{count} |      5       5" for count in ("200    39(19.50%)", "5      5      5")
    )
    totals = kind_of(config).totals
    assert totals is not None
    assert totals.search(percentiles) is None
    match = totals.search(summary)
    assert match is not None
    reader = LocustReader(BEGIN_NS)
    now_ns = BEGIN_NS + 60 * SECOND
    reader.take(REAL.read_text().splitlines(), Moment(now_ns, now_ns, arrival=False, old=False))
    (answered, failed) = reader.total(int(match[1]), int(match[2]), now_ns)
    assert (answered.metric, answered.value, failed.value) == ("load.requests", 161, 39)
    assert reader.total(199, 38, now_ns + 1) == [], "counts do not fall"
    reader.go_on()
    assert [sample.value for sample in reader.total(10, 0, now_ns + SECOND)] == [171, 39]


def test_missing_percentiles_are_missing(tmp_path: Path) -> None:
    """N/A, and the noughts that locust writes before it has any, are no latency; the others are in seconds."""
    file = tmp_path / "soak_stats_history.csv"
    with LoadBench("locust", {"file": file}, begin_ns=BEGIN_NS) as bench:
        file.write_bytes(REAL.read_bytes())
        answer = bench.poll(6)
    p50 = series(answer, "load.latency", "quantile=p50")
    assert [value for _, value in p50] == [pytest.approx(ms / 1000) for ms in (19, 17, 19, 18)]
    assert last(answer)["load.latency{quantile=p99.9}"] == pytest.approx(0.032)
    assert last(answer)["load.latency{quantile=max}"] == pytest.approx(0.032)
    assert last(answer)["load.users"] == 3
    assert last(answer)["load.sending"] == 1


def test_another_file_of_locust_is_refused(tmp_path: Path) -> None:
    """The statistics without history have no times: one sentence that names the file that is needed."""
    (tmp_path / "soak_stats.csv").write_text("Type,Name,Request Count,Failure Count\n,Aggregated,1,0\n")
    with LoadBench("locust", {"file": tmp_path / "soak_stats.csv"}) as bench:
        for second in (1, 2):
            with pytest.raises(SourceError, match=r"NAME_stats_history\.csv\): Timestamp is missing in"):
                bench.poll(second)


def test_a_second_run_starts_its_counters_again(tmp_path: Path) -> None:
    """No rate is computed over the restart."""
    file = tmp_path / "soak_stats_history.csv"
    head = "Timestamp,User Count,Type,Name,Total Request Count,Total Failure Count\n"
    begin = BEGIN_NS // SECOND
    with LoadBench("locust", {"file": file}, begin_ns=BEGIN_NS) as bench:
        file.write_text(head + f"{begin + 1},1,,Aggregated,50,0\n{begin + 2},1,,Aggregated,60,0\n")
        assert series(bench.poll(3), "load.request.rate")[-1][1] == 10
        file.write_text(head + f"{begin + 4},1,,Aggregated,5,0\n")
        answer = bench.poll(5)
        assert [event.kind for event in answer.events] == ["generator.restart"]
        assert last(answer)["load.requests"] == 5
        assert "load.request.rate" not in last(answer)


def test_noise_is_counted(tmp_path: Path) -> None:
    """Seeded noise: no exception, and what cannot be read is counted."""
    dice = random.Random(8)
    file = tmp_path / "soak_stats_history.csv"
    for _ in range(40):
        data = bytearray(REAL.read_bytes())
        for _ in range(60):
            data[dice.randrange(260, len(data))] = dice.choice(b'",\n\0-x \xff9')
        file.write_bytes(data)
        with LoadBench("locust", {"file": file}, begin_ns=BEGIN_NS) as bench:
            try:
                latest = last(bench.poll(6))
            except SourceError:
                continue  # its newest line has no time that can be
            assert latest["load.lines.unread"] > 0
