"""The three figures of a device on a terminal: which ones, with their change since the run began."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from soakwatch.record import Record
from soakwatch.runs.device_figures import EVERY_NS, DeviceFigures
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample

SECOND = 10**9
T0 = 1_700_000_000 * SECOND
MIB = float(2**20)


def _run(folder: Path, seconds: int, *, silent_from: int = 10**6) -> None:
    """A device whose bgpd leaks 1 MiB/s beside a larger sshd, under a generator; it may stop answering."""
    with Record.create(folder) as record:
        record.set_meta("start_ns", str(T0))
        for target, role in (("fw", "dut"), ("tg", "generator")):
            record.target(target, role)
        device = record.source("fw", "local", "fw/local", SECOND, required=True).id
        load = record.source("tg", "command", "tg/command", SECOND, required=True).id
        for second in range(seconds):
            at = T0 + second * SECOND
            answers = {
                device: [
                    Sample("process.memory.usage", "process=bgpd,instance=0", (20 + second) * MIB, at),
                    Sample("process.memory.usage", "process=sshd,instance=0", 90 * MIB, at),
                    Sample("system.cpu.utilization", "", 0.25 if second < 5 else 0.3, at),
                ],
                load: [
                    Sample("load.latency", "quantile=p50", 0.001, at),
                    Sample("load.latency", "quantile=p99", 0.002, at),
                ],
            }
            for source, samples in answers.items():
                if source == device and second >= silent_from:
                    continue
                record.put([Poll(source, at, at, 1, PollOutcome.OK, None, Answer(tuple(samples), (), ()))])


def test_the_process_that_grew_most_the_cpu_and_the_latency_are_shown(tmp_path: Path) -> None:
    _run(tmp_path / "run", 31)
    assert DeviceFigures(tmp_path / "run", lambda: T0).lines() == (
        "fw: memory of bgpd 50 MiB (+25.5 MiB), CPU 30 % (+2 points)",
        "tg: latency p99 2 ms",
    )


def test_what_was_not_read_lately_is_left_out(tmp_path: Path) -> None:
    """A device that answers no more has no figures, rather than its last ones."""
    _run(tmp_path / "run", 90, silent_from=20)
    assert DeviceFigures(tmp_path / "run", lambda: T0).lines() == ("tg: latency p99 2 ms",)


def test_the_record_is_read_every_five_seconds_and_what_is_known_outlives_it(tmp_path: Path) -> None:
    now = [T0]
    figures = DeviceFigures(tmp_path / "run", lambda: now[0], lambda: 0)
    assert figures.lines() == ()
    _run(tmp_path / "run", 31)
    assert figures.lines() == ()
    now[0] += EVERY_NS
    (known, _) = figures.lines()
    (tmp_path / "run" / "record.sqlite").rename(tmp_path / "gone")
    now[0] += EVERY_NS
    assert figures.lines()[0] == known


def test_a_record_that_is_costly_to_read_is_read_less_often(tmp_path: Path) -> None:
    """Five seconds for what costs nothing; what takes 0.1 s of CPU rests for 50 s."""
    now, cpu = [T0], [0]

    def working() -> int:
        cpu[0] += 10**8
        return cpu[0]

    _run(tmp_path / "run", 31)
    figures = DeviceFigures(tmp_path / "run", lambda: now[0], working)
    for after, read in ((0, 1), (9 * EVERY_NS, 1), (EVERY_NS, 2), (9 * EVERY_NS, 2), (EVERY_NS, 3)):
        now[0] += after
        figures.lines()
        assert cpu[0] == 2 * read * 10**8


def test_the_display_of_a_run_loads_no_masked_arrays(tmp_path: Path) -> None:
    """They are a MiB in the process that polls, which has no use for them."""
    _run(tmp_path / "run", 31)
    code = (
        "import sys; from pathlib import Path; from soakwatch.runs.device_figures import DeviceFigures;"
        "print(len(DeviceFigures(Path(sys.argv[1]), lambda: 0).lines()), 'numpy.ma' in sys.modules)"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "run")]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout.split() == ["2", "False"]
