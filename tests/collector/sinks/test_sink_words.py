"""A database that is behind, as it is seen while the run goes on: one line with the lag, what waits, and why."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from tests.collector.sinks.test_influxdb_outage import until

from soakwatch.cli.display.progress import Lines, panel
from soakwatch.plan.sink import Influxdb
from soakwatch.runs.status import Status
from soakwatch.sinks.beside import SinkBeside
from soakwatch.testing.records import small_record

STATUS = Status("run", "soak", 60.0, 3540.0, (), {}, (), 60.0, (), None)
URL = "http://127.0.0.1:8086"


def a_sink(folder: Path, said: list[str]) -> SinkBeside:
    """A sink whose process is played by the test."""
    with small_record(folder, 1) as record:
        return SinkBeside(0, Influxdb(URL, "lab", "soak", "env:T"), folder, record, said.append)


def told(trouble: str | None, cursor: str = "1:1", refused: int = 0) -> str:
    said = {"cursor": cursor, "trouble": trouble, "written": 9, "refused": refused, "why": "w", "done": False}
    return json.dumps(said)


def test_a_database_that_is_behind_is_seen_on_every_kind_of_terminal(tmp_path: Path) -> None:
    sink = a_sink(tmp_path / "run", [])
    assert sink.words == ""
    sink.lag_s, sink.waiting = 241.4, 12_300
    words = f"{URL} lab/soak is 4 min 1 s behind (12,300 polls wait)"
    assert sink.words == words
    sink._hear(told(f"{URL} cannot be reached: is InfluxDB running there?"))
    assert sink.words == f"{words}: cannot be reached: is InfluxDB running there?"
    status = replace(STATUS, behind=(sink.words,))
    plain, drawn = io.StringIO(), io.StringIO()
    Lines(Console(file=plain, width=200)).show(status)
    Console(file=drawn, width=160).print(panel(status))
    assert words in plain.getvalue()
    assert f"sink      {words}" in drawn.getvalue()


def test_each_trouble_is_told_once_however_often_it_comes_and_goes(tmp_path: Path) -> None:
    said: list[str] = []
    sink = a_sink(tmp_path / "run", said)
    for turn in range(50):
        sink._hear(told("it is full", f"1:{turn}"))
        sink._hear(told("it is away", f"1:{turn}"))
        sink._hear(told(None, f"1:{turn + 1}"))
    assert said == [
        "warning: it is full; the run goes on, and nothing of it is lost",
        "warning: it is away; the run goes on, and nothing of it is lost",
        f"{URL} lab/soak takes lines again",
    ]


def test_troubles_that_never_repeat_do_not_fill_the_terminal(tmp_path: Path) -> None:
    said: list[str] = []
    sink = a_sink(tmp_path / "run", said)
    for turn in range(1000):
        sink._hear(told(f"trouble {turn}"))
    assert len(said) <= 100


def test_refused_lines_are_told_once_with_their_reason(tmp_path: Path) -> None:
    said: list[str] = []
    sink = a_sink(tmp_path / "run", said)
    for turn in range(5):
        sink._hear(told(None, refused=turn))
    assert len(said) == 1
    assert "refuses lines (w); they are kept in" in said[0]
    assert sink.refused == 4


def test_a_feed_that_ends_by_itself_is_told_once_and_started_again(tmp_path: Path) -> None:
    """Here there is no such sink in the plan of the record: an error that nobody has foreseen."""
    said: list[str] = []
    with small_record(tmp_path / "run", 1) as record:
        record.set_meta("plan", "name: x\nduration: 1m\ntargets: {dut: {sources: [local]}}\n")
        sink = SinkBeside(0, Influxdb(URL, "lab", "soak", "env:T"), tmp_path / "run", record, said.append)
        sink.start()
        until(lambda: bool(said), "nothing is said")
        sink.close()
    assert said == [
        (
            f"warning: what feeds {URL} lab/soak ended by itself (IndexError), and is started again; "
            "the run goes on, and nothing of it is lost"
        )
    ]


def test_what_a_process_prints_by_mistake_is_overheard(tmp_path: Path) -> None:
    said: list[str] = []
    sink = a_sink(tmp_path / "run", said)
    sink._hear("Traceback (most recent call last):")
    assert said == []
