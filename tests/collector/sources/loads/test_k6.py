"""``k6``: what k6 0.57 wrote of a run on loopback, as it grows, and what it never would write."""

from __future__ import annotations

import gzip
import json
import os
import random
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from soakwatch.sources.abc import SourceError
from soakwatch_model.sample import Sample
from soakwatch_testing.load_bench import SECOND, LoadBench, last, series

DATA = Path(__file__).parent / "data"
BEGIN_NS = 1_795_259_336 * SECOND
"""When the k6 run began whose files these are: 4 s at 20 requests a second with one user, 41 of them done, 5 failed."""


def real(name: str) -> bytes:
    """A file that k6 wrote."""
    return gzip.decompress((DATA / name).read_bytes())


def point(metric: str, at_s: float, value: float) -> str:
    """A line of k6."""
    stamp = datetime.fromtimestamp(BEGIN_NS // SECOND + at_s, timezone(timedelta(hours=1))).isoformat()
    data = {"time": stamp, "value": value, "tags": {"metric": "a tag", "url": "http://127.0.0.1/"}}
    return json.dumps({"metric": metric, "type": "Point", "data": data}, separators=(",", ":")) + "\n"


@pytest.mark.parametrize("name", ["k6-0.57.json.gz", "k6-0.57.csv.gz"])
def test_a_real_file_gives_what_k6_summed_up(tmp_path: Path, name: str) -> None:
    """Totals as in k6's own summary: 36 answers, 5 failures, 40 iterations dropped, 3.3 kB sent, 8.8 kB received."""
    file, data = tmp_path / "out", real(name)
    with LoadBench("k6", {"file": file}, begin_ns=BEGIN_NS) as bench:
        assert bench.poll(0).samples == ()
        samples: list[Sample] = []
        with file.open("ab", buffering=0) as out:
            for part in range(10):  # cut anywhere
                out.write(data[len(data) * part // 10 : len(data) * (part + 1) // 10])
                samples += bench.poll(part * 0.5 + 0.5).samples
        samples += bench.poll(20).samples
    values = {(sample.metric, sample.object): sample.value for sample in samples}
    assert values["load.requests", ""] == 36
    assert values["load.failures", ""] == 5
    assert values["load.queue_full", ""] == 40
    assert values["load.tx.bytes", ""] == 3321
    assert values["load.rx.bytes", ""] == 8818
    assert values["load.lines.unread", ""] == 0
    longest = max(s.value for s in samples if (s.metric, s.object) == ("load.latency", "quantile=max"))
    assert longest == pytest.approx(0.0334, abs=1e-4)
    rates = [s.value for s in samples if s.metric == "load.request.rate"]
    assert rates
    assert all(5 <= rate <= 15 for rate in rates)
    times = [s.time_ns for s in samples if s.metric == "load.requests"]
    assert times == sorted(set(times))


def test_times_of_another_form(tmp_path: Path) -> None:
    """With K6_CSV_TIME_FORMAT=rfc3339_nano the times have a zone."""
    (tmp_path / "out").write_bytes(real("k6-0.57-rfc3339.csv.gz"))
    with LoadBench("k6", {"file": tmp_path / "out"}, trial=True) as bench:
        assert last(bench.poll(60))["load.tx.bytes"] > 3000


def test_a_clock_that_is_wrong_fails_the_source_and_arrival_does_not_care(tmp_path: Path) -> None:
    """An hour off: one sentence with the remedy, and no sample; by arrival the figures come in at the run's time."""
    file = tmp_path / "out"
    for keys, fails in (({}, True), ({"time": "arrival"}, False), ({"bound": "2h"}, False)):
        file.unlink(missing_ok=True)
        with LoadBench("k6", {"file": file, **keys}, begin_ns=BEGIN_NS + 3600 * SECOND) as bench:
            bench.poll(0)
            file.write_bytes(real("k6-0.57.json.gz"))
            if fails:
                for second in (5, 6):  # again and again, not only when lines come
                    with pytest.raises(
                        SourceError, match=r"newest line is 1 h.* before now: set the generator's clock"
                    ):
                        bench.poll(second)
                continue
            latest = last(bench.poll(5))
            if "time" in keys:
                assert latest["load.requests"] == 36
                assert latest["load.latency{quantile=p50}"] == pytest.approx(0.0167, abs=2e-3)


def test_lines_that_k6_never_wrote_are_counted(tmp_path: Path) -> None:
    """Garbage between good lines: counted, reported once, never fatal."""
    file = tmp_path / "out"
    with LoadBench("k6", {"file": file}, begin_ns=BEGIN_NS) as bench:
        file.write_text(point("http_reqs", 0.2, 1) + "not json\n" + '{"metric":"http_reqs","type":"Point"}\n')
        answer = bench.poll(1)
        assert last(answer)["load.lines.unread"] == 2
        assert [fault.metric for fault in answer.faults] == ["load.lines.unread"]
        with file.open("a") as out:
            out.write(point("http_reqs", 1.2, -1) + '{"metric":"http_reqs' + "\n" + "[" * 100_000 + "\n")
            out.write(point("http_reqs", 3.2, 1))
        answer = bench.poll(4)
        assert last(answer)["load.lines.unread"] == 5
        assert answer.faults == ()
        assert last(bench.poll(20))["load.requests"] == 2


def test_a_pause_is_reported_as_a_rate_of_zero(tmp_path: Path) -> None:
    """Seconds in which nothing was answered, between two in which something was: an outage shows."""
    file = tmp_path / "out"
    with LoadBench("k6", {"file": file}, begin_ns=BEGIN_NS) as bench:
        lines = [point("http_reqs", second, 1) for second in (0.5, 1.1, 1.6, 5.5, 6.5, 8.5)]
        file.write_text("".join(lines))
        rates = [value for _, value in series(bench.poll(9), "load.request.rate")]
    assert rates == [2, 0, 0, 0, 1, 1]


def test_another_run_in_the_same_file_is_a_restart(tmp_path: Path) -> None:
    """Its counters start again, and the record says why."""
    file = tmp_path / "out"
    with LoadBench("k6", {"file": file}, begin_ns=BEGIN_NS) as bench:
        file.write_text("".join(point("http_reqs", second, 1) for second in (0.1, 0.2, 0.3, 2.5)))
        assert last(bench.poll(3))["load.requests"] == 3
        file.write_text(point("http_reqs", 4.1, 1) + point("http_reqs", 6.1, 1))
        answer = bench.poll(7)
        assert [event.kind for event in answer.events] == ["generator.restart"]
        assert last(answer)["load.requests"] == 1


def test_by_arrival_rates_are_of_the_time_between_polls(tmp_path: Path) -> None:
    """The generator's clock is an hour off: counts, rates and times are of the run's time."""
    file = tmp_path / "out"
    with LoadBench("k6", {"file": file, "time": "arrival"}, begin_ns=BEGIN_NS - 3600 * SECOND) as bench:
        file.write_text(point("http_reqs", 1, 1))
        bench.poll(1)  # it was there before the first poll, or began in this second: its rate is unknown
        with file.open("a") as out:
            out.write("".join(point("http_reqs", second, 1) for second in range(6)))
        answer = bench.poll(4)
        assert last(answer)["load.request.rate"] == 2
        assert {sample.time_ns for sample in answer.samples} == {BEGIN_NS - 3600 * SECOND + 4 * SECOND}


def test_it_sends_until_it_is_silent(tmp_path: Path) -> None:
    """load.sending is 1 with its lines, 0 after half a minute without."""
    file = tmp_path / "out"
    with LoadBench("k6", {"file": file}, begin_ns=BEGIN_NS) as bench:
        file.write_text(point("http_reqs", 0.5, 1))
        assert last(bench.poll(1))["load.sending"] == 1
        assert "load.sending" not in last(bench.poll(20))
        assert last(bench.poll(32))["load.sending"] == 0


def test_a_file_that_is_something_else_fails_until_it_is_another(tmp_path: Path) -> None:
    """One sentence, at every poll."""
    file = tmp_path / "out"
    with LoadBench("k6", {"file": file}, begin_ns=BEGIN_NS) as bench:
        file.write_text("running (0m01.0s), 1/1 VUs\n")
        for second in (1, 2):
            with pytest.raises(SourceError, match="not an output of k6"):
                bench.poll(second)
        file.unlink()
        with pytest.raises(SourceError, match="was removed"):
            bench.poll(3)
        file.write_text(point("http_reqs", 3.5, 1))
        assert last(bench.poll(4))["load.sending"] == 1


def test_the_file_may_come_late_but_not_never(tmp_path: Path) -> None:
    """A minute of patience, then one sentence; a folder or a pipe is refused."""
    with LoadBench("k6", {"file": tmp_path / "out"}, begin_ns=BEGIN_NS) as bench:
        assert bench.poll(59).samples == ()
        assert "the file does not exist yet" in bench.facts().notes
        with pytest.raises(SourceError, match=r"does not exist: start the generator"):
            bench.poll(61)
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with (
            LoadBench("k6", {"file": tmp_path / name}) as bench,
            pytest.raises(SourceError, match="is not a regular file"),
        ):
            bench.poll(1)


def test_what_is_cut_apart_at_random_is_harmless(tmp_path: Path) -> None:
    """Real lines, shuffled and broken by seeded chance: no exception but SourceError, and counters that only grow."""
    dice = random.Random(11)
    file, data = tmp_path / "out", bytearray(real("k6-0.57.json.gz"))
    for _ in range(3000):
        data[dice.randrange(200, len(data))] = dice.randrange(256)
    with LoadBench("k6", {"file": file}, begin_ns=BEGIN_NS) as bench, file.open("wb", buffering=0) as out:
        position, unread = 0, 0.0
        while position < len(data):
            many = dice.randrange(1, 20_000)
            out.write(data[position : position + many])
            position += many
            try:
                latest = last(bench.poll(6))
            except SourceError:
                continue
            assert latest["load.lines.unread"] >= unread
            unread = latest["load.lines.unread"]
    assert unread > 10


def test_more_answers_than_are_kept(tmp_path: Path) -> None:
    """Of 30000 answers in one tick the percentiles are of 20000 by chance, near enough; mean and extremes are exact."""
    file = tmp_path / "out"
    rows = [f"http_req_duration,{1_795_259_336_000 + number // 31},{number / 100}\n" for number in range(30_000)]
    file.write_text("metric_name,timestamp,metric_value\n" + "".join(rows) + "vus,1795259339,1\n")
    with LoadBench("k6", {"file": file, "timeout": "20s"}, begin_ns=BEGIN_NS) as bench:
        latest = last(bench.poll(4))
        assert latest["load.latency{quantile=max}"] == pytest.approx(0.29999)
        assert latest["load.latency{quantile=mean}"] == pytest.approx(0.149995)
        assert latest["load.latency{quantile=p50}"] == pytest.approx(0.15, abs=0.004)
        assert any("20000" in note for note in bench.facts().notes)
