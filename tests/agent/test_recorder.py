"""The flight recorder: right shares, bounded ring, bounded cost."""

from __future__ import annotations

import shutil
import time
from itertools import pairwise
from pathlib import Path

import pytest

from soakwatch_agent.recorder import Recorder, cpu_ticks, drops, queues
from soakwatch_model.metric import BY_NAME, fault_of
from soakwatch_model.sample import object_labels

_EDGE = Path(__file__).parent / "roots" / "edge-4cores" / "root"


def wait_for(recorder: Recorder, rows: int) -> list[list[float | None]]:
    """The values once there are so many rows."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        values = recorder.window(0, 1 << 62)["values"]
        assert isinstance(values, list)
        if len(values) >= rows:
            return values  # type: ignore[return-value]
        time.sleep(0.05)
    raise AssertionError("the recorder made no rows")


def test_the_window_holds_what_the_catalogue_allows() -> None:
    """Real samples of this machine: names, labels and ranges of the catalogue; a tenth of a second apart."""
    recorder = Recorder(time.time_ns)
    recorder.start()
    try:
        rows = wait_for(recorder, 12)
        window = recorder.window(0, 1 << 62)
    finally:
        recorder.end()
    columns, times = window["columns"], window["times"]
    assert isinstance(columns, list)
    assert isinstance(times, list)
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            assert isinstance(column, list)
            metric, name = str(column[0]), str(column[1])
            assert set(object_labels(name)) == set(BY_NAME[metric].labels)
            assert value is None or fault_of(metric, value) is None
    assert rows[0][-1] is None  # no share before the second reading
    assert any(row[5] is not None for row in rows)
    middle = sorted(b - a for a, b in pairwise(times))[len(times) // 2]  # type: ignore[operator]
    assert middle == pytest.approx(0.1e9, rel=0.3)


def test_shares_and_sums_are_those_of_the_files(tmp_path: Path) -> None:
    """Ticks that move by hand between two samples show as the share that they are."""
    root = tmp_path / "root"
    shutil.copytree(_EDGE, root, symlinks=True)
    stat = root / "proc/stat"
    stat.write_text("cpu 100 0 0 1000 0 0 0 0\ncpu0 100 0 0 1000 0 0 0 0\nintr 5\n")
    recorder = Recorder(time.time_ns, str(root))
    recorder.start()
    try:
        wait_for(recorder, 2)
        stat.write_text("cpu 103 0 0 1007 0 0 0 0\ncpu0 103 0 0 1007 0 0 0 0\nintr 5\n")
        rows = wait_for(recorder, len(wait_for(recorder, 2)) + 4)
    finally:
        recorder.end()
    assert [row[5] for row in rows if row[5]] == [0.3]


def test_the_ring_keeps_its_length() -> None:
    """Older rows make room; a window asks for no more than there is."""
    recorder = Recorder(time.time_ns, ring_s=1)
    recorder.start()
    try:
        wait_for(recorder, 10)
        time.sleep(0.5)
        assert len(wait_for(recorder, 10)) == 10
        now = time.time_ns()
        times = recorder.window(now - 500_000_000, now)["times"]
        assert isinstance(times, list)
        assert len(times) <= 6
    finally:
        recorder.end()


def test_a_machine_on_which_it_would_cost_more_is_sampled_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading that costs over 1 % of a core halves the rate, again and again, down to a bound."""
    recorder = Recorder(time.time_ns)
    real = recorder.sample

    def dear() -> list[int]:
        end = time.thread_time() + 0.004
        while time.thread_time() < end:
            pass
        return real()

    monkeypatch.setattr(recorder, "sample", dear)
    monkeypatch.setattr("soakwatch_agent.recorder._COST_CHECK_EVERY", 5)
    recorder.start()
    try:
        deadline = time.monotonic() + 120
        while recorder.every_s < 0.4 and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        recorder.end()
    assert recorder.every_s >= 0.4


@pytest.mark.parametrize("text", [b"", b"cpu", b"cpu a b", b"intr 1", b"cpu 1 2 3"])
def test_damaged_files_are_errors_of_one_sample_and_no_more(text: bytes) -> None:
    """The thread passes over OSError, ValueError and IndexError; nothing else comes out."""
    for parse in (cpu_ticks, queues, lambda data: drops(data, data)):
        try:
            parse(text)
        except (ValueError, IndexError):
            continue
