"""``wrk``: what wrk 4.1 printed, and what wrk2 prints after its manual."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from soakwatch_testing.load_bench import LoadBench, last

REAL = Path(__file__).parent / "data" / "wrk-4.1.txt"
WRK2 = """Running 30s test @ http://127.0.0.1:80/index.html
  2 threads and 100 connections
  Thread calibration: mean lat.: 9747 usec, rate sampling interval: 21 msec
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     6.46ms    1.93ms  12.34ms   67.66%
    Req/Sec     1.05k     1.12k    2.50k    64.84%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    6.67ms
 99.900%   11.14us
100.000%    1.25s

  Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking delayed starts into account))
 50.000%    1.00ms
  60018 requests in 30.00s, 19.81MB read
  Socket errors: connect 3, read 4, write 0, timeout 11
Requests/sec:   2000.28
Transfer/sec:    676.18KB
"""


def test_outputs_one_after_the_other(tmp_path: Path) -> None:
    """Counts go on from one wrk to the next; failures are statuses and sockets; percentiles are the corrected ones."""
    file = tmp_path / "wrk.txt"
    with LoadBench("wrk", {"file": file}) as bench:
        assert bench.poll(0).samples == ()
        file.write_bytes(REAL.read_bytes())
        latest = last(bench.poll(3))
        assert (latest["load.requests"], latest["load.failures"]) == (147, 19)
        assert latest["load.request.rate"] == pytest.approx(73.5)
        assert latest["load.latency{quantile=p99}"] == pytest.approx(0.07605)
        assert latest["load.latency{quantile=mean}"] == pytest.approx(0.05941)
        assert latest["load.connections"] == 5
        with file.open("a") as out:
            out.write(WRK2)
        latest = last(bench.poll(40))
    assert (latest["load.requests"], latest["load.failures"]) == (147 + 60018, 19 + 18)
    assert latest["load.connections.failed"] == 3
    assert latest["load.latency{quantile=p50}"] == pytest.approx(0.00667)
    assert latest["load.latency{quantile=p99.9}"] == pytest.approx(11.14e-6)
    assert latest["load.latency{quantile=max}"] == pytest.approx(1.25)
    assert "load.sending" not in latest  # it does not tell


def test_what_was_there_before_is_of_no_run(tmp_path: Path) -> None:
    """An output from before the run is passed over."""
    file = tmp_path / "wrk.txt"
    file.write_bytes(REAL.read_bytes())
    with LoadBench("wrk", {"file": file}) as bench:
        assert "load.requests" not in last(bench.poll(1))
        with file.open("ab") as out:
            out.write(REAL.read_bytes())
        assert last(bench.poll(2))["load.requests"] == 147


def test_wrk_that_reaches_nobody(tmp_path: Path) -> None:
    """Its one line is reported, and no request means no latency."""
    file = tmp_path / "wrk.txt"
    with LoadBench("wrk", {"file": file}) as bench:
        file.write_text("unable to connect to 127.0.0.1:1 Connection refused\n")
        answer = bench.poll(1)
        assert "unable to connect" in answer.faults[0].text
        with file.open("a") as out:
            out.write(
                REAL.read_text().replace("  166 requests", "  0 requests").replace("responses: 19", "responses: 0")
            )
        latest = last(bench.poll(2))
        assert latest["load.requests"] == 0
        assert not any(name.startswith("load.latency") for name in latest)


@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed")
def test_wrk_itself(tmp_path: Path) -> None:
    """A second of wrk against a page on loopback."""
    file = tmp_path / "wrk.txt"
    service = [sys.executable, "-m", "soakwatch.cli.demo_service", "--name", "page"]
    with (
        subprocess.Popen(service, stdout=subprocess.PIPE, text=True) as page,
        LoadBench("wrk", {"file": file}) as bench,
    ):
        try:
            assert page.stdout is not None
            url = f"http://127.0.0.1:{page.stdout.readline().strip()}/"
            with file.open("wb") as out:
                subprocess.run(["wrk", "-t1", "-c2", "-d1s", "--latency", url], stdout=out, check=True, timeout=240)
        finally:
            page.terminate()
        latest = last(bench.poll(2))
    assert latest["load.requests"] > 0
    assert 0 < latest["load.latency{quantile=p50}"] <= latest["load.latency{quantile=max}"] < 5


def test_noise_is_harmless(tmp_path: Path) -> None:
    """Seeded noise in outputs: no exception."""
    dice = random.Random(2)
    file = tmp_path / "wrk.txt"
    for _ in range(60):
        data = bytearray((REAL.read_text() + WRK2).encode())
        for _ in range(40):
            data[dice.randrange(len(data))] = dice.choice(b"\n\0 9.%x\xff")
        with LoadBench("wrk", {"file": file}) as bench:
            file.write_bytes(data)
            bench.poll(1)
        file.unlink()
