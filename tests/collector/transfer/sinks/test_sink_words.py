"""A database that is behind, as it is seen while the run goes on: one line with the lag, what waits, and why."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from tests.commands import wait_until

from soakwatch.cli.display.progress import Lines, panel
from soakwatch.runs.run_status import Status
from soakwatch.transfer.sinks.influxdb import Influxdb
from soakwatch.transfer.sinks.supervisor import SinkProcess
from soakwatch_testing.records import small_record

STATUS = Status("run", "soak", 60.0, 3540.0, (), {}, (), 60.0, (), None)
URL = "http://127.0.0.1:8086"


def a_sink(folder: Path, messages: list[str]) -> SinkProcess:
    """A sink whose process is played by the test."""
    with small_record(folder, 1) as record:
        return SinkProcess(0, "influxdb-1", Influxdb(URL, "lab", "soak", "env:T"), folder, record, messages.append)


def message(trouble: str | None, cursor: str = "1:1", refused: int = 0) -> str:
    messages = {"cursor": cursor, "error": trouble, "written": 9, "refused": refused, "reason": "w", "done": False}
    return json.dumps(messages)


def test_a_database_that_is_behind_is_seen_on_every_kind_of_terminal(tmp_path: Path) -> None:
    sink = a_sink(tmp_path / "run", [])
    assert sink.words == ""
    sink.lag_s, sink.waiting = 241.4, 12_300
    words = f"{URL} lab/soak is 4 min 1 s behind (12,300 polls waiting)"
    assert sink.words == words
    sink._receive(message(f"{URL} cannot be reached: is InfluxDB running there?"))
    assert sink.words == f"{words}: cannot be reached: is InfluxDB running there?"
    status = replace(STATUS, behind=(sink.words,))
    plain, drawn = io.StringIO(), io.StringIO()
    Lines(Console(file=plain, width=200)).show(status)
    Console(file=drawn, width=160).print(panel(status))
    assert words in plain.getvalue()
    assert f"sink      {words}" in drawn.getvalue()


def test_each_trouble_is_reported_once_however_often_it_comes_and_goes(tmp_path: Path) -> None:
    messages: list[str] = []
    sink = a_sink(tmp_path / "run", messages)
    for turn in range(50):
        sink._receive(message("it is full", f"1:{turn}"))
        sink._receive(message("it is away", f"1:{turn}"))
        sink._receive(message(None, f"1:{turn + 1}"))
    assert messages == [
        "warning: it is full; the run goes on, and nothing of it is lost",
        "warning: it is away; the run goes on, and nothing of it is lost",
        f"{URL} lab/soak accepts lines again",
    ]


def test_troubles_that_never_repeat_do_not_fill_the_terminal(tmp_path: Path) -> None:
    messages: list[str] = []
    sink = a_sink(tmp_path / "run", messages)
    for turn in range(1000):
        sink._receive(message(f"trouble {turn}"))
    assert len(messages) <= 100


def test_refused_lines_are_reported_once_with_their_reason(tmp_path: Path) -> None:
    messages: list[str] = []
    sink = a_sink(tmp_path / "run", messages)
    for turn in range(5):
        sink._receive(message(None, refused=turn))
    assert len(messages) == 1
    assert "refuses lines (w); they are kept in" in messages[0]
    assert sink.refused == 4


def test_a_feed_that_ends_by_itself_is_reported_once_and_started_again(tmp_path: Path) -> None:
    """Here there is no such sink in the plan of the record: an error that nobody has foreseen."""
    messages: list[str] = []
    with small_record(tmp_path / "run", 1) as record:
        record.set_meta("plan", "name: x\nduration: 1m\ntargets: {dut: {sources: [local]}}\n")
        sink = SinkProcess(
            0, "influxdb-1", Influxdb(URL, "lab", "soak", "env:T"), tmp_path / "run", record, messages.append
        )
        sink.start()
        wait_until(lambda: bool(messages), "nothing is reported")
        sink.close()
    assert messages == [
        (
            f"warning: the process writing to {URL} lab/soak ended unexpectedly (IndexError); restarting it; "
            "the run goes on, and nothing of it is lost"
        )
    ]


def test_what_a_process_prints_by_mistake_is_overheard(tmp_path: Path) -> None:
    messages: list[str] = []
    sink = a_sink(tmp_path / "run", messages)
    sink._receive("Traceback (most recent call last):")
    assert messages == []
