"""Exported files through the command: they agree with the record, and what cannot be written is said in a sentence."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from tests.collector.transfer.sinks.memory_sink import MemorySink, feed_of
from tests.commands import MAX_WAIT_S, SOAKWATCH, Command, environment

from soakwatch.cli.main import run as main
from soakwatch.record import RecordView
from soakwatch.transfer.sinks.block import Block

Recorded = Callable[..., Path]
BIG = 2**63 + 1
TABLES = ("samples", "polls", "events", "phases", "findings", "faults", "sources", "lives", "artifacts", "facts")


def lines_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def readings(folder: Path) -> set[tuple[str, str, str, int, float]]:
    """Every reading of a record."""
    with RecordView.open(folder) as view:
        found = [(key, view.series(key)) for key in sorted(view.keys())]
    return {
        (key.target, key.metric, key.object, time_ns, float(value))
        for key, series in found
        for time_ns, value in zip(series.time_ns.tolist(), series.value.tolist(), strict=True)
    }


def test_a_folder_of_csv_holds_every_table(recorded: Recorded, soakwatch: Command) -> None:
    """Readings with their phase, unit and labels; every poll with its error; events, findings and the rest."""
    folder = recorded()
    done = soakwatch("export", "last", "--output", "out")
    assert (done.returncode, done.stderr) == (0, "")
    out = folder.parents[1] / "out"
    assert sorted(path.name for path in out.iterdir()) == sorted(TABLES)
    rows = lines_of(out / "samples" / "night.csv")
    assert len(rows) == len(readings(folder)) == 3 * 54 + 30
    assert f"samples    night  {len(rows)}" in done.stdout
    counted = [row for row in rows if row["metric"] == "system.network.packets"]
    assert [int(row["value"]) for row in counted][:2] == [BIG, BIG + 3]
    assert int(counted[-1]["value"]) < 60  # it began anew: as it was read
    assert {row["phase"] for row in rows} == {"baseline", "soak"}
    assert counted[0]["time"] == "2026-09-21T14:13:20.000000000Z"
    assert (counted[0]["object_interface"], counted[0]["object_direction"]) == ("eth0", "receive")
    assert (counted[0]["label_release"], counted[0]["label_build"], counted[0]["unit"]) == ("7.2", "'=42", "{packet}")
    memory = next(row for row in rows if row["metric"] == "process.memory.usage")
    assert memory["object_process"] == "a,b=c"
    lost = [row for row in lines_of(out / "polls" / "night.csv") if row["outcome"] != "ok"]
    assert [(row["outcome"], row["duration_s"], row["error"]) for row in lost] == [
        ("timeout", "0.5", '\'=took "too" long, 2 s')
    ] * 6
    assert [row["phase"] for row in lines_of(out / "phases" / "night.csv")] == ["baseline", "soak"]
    (event,) = lines_of(out / "events" / "night.csv")
    assert (event["kind"], json.loads(event["detail"]), event["origin"]) == ("'=upgrade", {"by": "@hand"}, "user")
    (finding,) = lines_of(out / "findings" / "night.csv")
    assert (finding["state"], finding["outcome"], finding["reason"]) == ("final", "fail", "'-too, high")
    assert lines_of(out / "faults" / "night.csv")[0]["text"] == "'-no sensor"
    assert [row["poller"] for row in lines_of(out / "sources" / "night.csv")] == ["local", "command"]


def test_duckdb_and_pandas_read_the_parquet_as_the_record_has_it(recorded: Recorded, soakwatch: Command) -> None:
    """Two runs, one data set: value by value, types fixed, labels beside."""
    runs = [recorded("night", release="7.1"), recorded("day", 30, release="7.2", build="9")]
    done = soakwatch("export", *runs, "--format", "parquet", "--output", "out")
    assert done.returncode == 0, done.stderr
    out = runs[0].parents[1] / "out"
    with duckdb.connect() as sql:
        files = f"'{out}/samples/*.parquet'"
        for run in runs:
            rows = sql.execute(
                f"SELECT target, metric, object, epoch_ns(time), value FROM {files} WHERE run=?", [run.name]
            ).fetchall()
            assert len(rows) == len(set(rows))
            assert set(rows) == readings(run)
        exact = sql.execute(
            f"SELECT DISTINCT exact FROM {files} WHERE run='day' AND exact IS NOT NULL ORDER BY exact"
        ).fetchall()
        assert [int(text) for (text,) in exact] == [BIG + 3 * second for second in range(15) if second != 9]
        labels = sql.execute(f"SELECT DISTINCT run, label_release, label_build FROM {files} ORDER BY run").fetchall()
        assert labels == [("day", "7.2", "9"), ("night", "7.1", None)]
        lost = sql.execute(f"SELECT count(*) FROM '{out}/polls/*.parquet' WHERE outcome <> 'ok'").fetchone()
        assert lost == (6 + 3,)
    frame = pd.read_parquet(out / "samples" / "night.parquet")
    assert str(frame["time"].dtype) == "datetime64[ns, UTC]"
    assert isinstance(frame["metric"].dtype, pd.CategoricalDtype)
    held = set(zip(frame.target, frame.metric, frame.object, frame.time.astype("int64"), frame.value, strict=True))
    assert held == readings(runs[0])
    assert frame["phase"].value_counts().to_dict() == {"baseline": 27 * 3 + 15, "soak": 27 * 3 + 15, "": 0}


def test_a_wide_table_has_a_column_a_series(recorded: Recorded, soakwatch: Command) -> None:
    """What was not read at a time is empty; the unit is in the field's metadata."""
    import pyarrow.parquet as pq

    folder = recorded()
    here = folder.parents[1]
    for name in ("w.parquet", "w.csv"):
        done = soakwatch("export", "last", "--wide", "--output", name, "--target", "dut")
        assert done.returncode == 0, done.stderr
        assert "samples only" in done.stderr
    table = pq.read_table(here / "w.parquet")
    column = "system.network.packets{interface=eth0,direction=receive}"
    assert table.schema.field(column).metadata[b"unit"] == b"{packet}"
    frame, text = table.to_pandas(), pd.read_csv(here / "w.csv")
    assert list(frame.columns) == list(text.columns)
    with RecordView.open(folder) as view:
        for key in sorted(view.keys()):
            if key.target == "dut":
                name = key.metric + (f"{{{key.object}}}" if key.object else "")
                series = view.series(key)
                there = frame[name].notna()
                assert frame["time"][there].astype("int64").tolist() == series.time_ns.tolist()
                assert frame[name][there].tolist() == series.value.astype(float).tolist() == text[name][there].tolist()
    assert len(frame) == 2 * 54  # memory is dated later than the others


def test_readings_are_chosen_by_metric_target_and_phase(recorded: Recorded, soakwatch: Command) -> None:
    """Globs, several, and to standard output."""
    recorded()
    done = soakwatch("export", "last", "--output", "-", "--metric", "system.*", "--metric", "load.*", "--phase", "soak")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert {row["metric"] for row in rows} == {
        "system.network.packets",
        "system.cpu.utilization",
        "load.rx.packet.rate",
    }
    assert {row["phase"] for row in rows} == {"soak"}
    assert {row["target"] for row in rows} == {"dut", "gen"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--metric", "system.cpu.utilisation"), "no metric 'system.cpu.utilisation'; did you mean"),
        (("--target", "x"), "no target 'x'; known here: dut, gen"),
        (("--phase", "soaking"), "no phase is called 'soaking'; did you mean 'soak'?"),
        (("--format", "line-protocol", "--metric", "load.*"), "line protocol is all that a sink would write"),
        (("--format", "csv", "--output", "x.parquet"), "is a file of parquet, and --format says csv"),
        (("--format", "parquet", "--output", "-"), "cannot be written to a pipe"),
        (("--plan",), "holds no plan: its readings were imported"),
        (("--plan", "--wide"), "--plan writes plan and scripts to a folder"),
        (("night", "--wide", "--output", "x.csv"), "one wide table takes one run, and 2 are named"),
    ],
)
def test_what_cannot_be_exported_is_one_sentence(
    recorded: Recorded,
    words: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 2, the reason, and no file."""
    here = recorded().parents[1]
    monkeypatch.chdir(here)
    assert main(["export", "last", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert [path.name for path in here.iterdir()] == ["runs"]


def test_nothing_is_replaced_without_force(recorded: Recorded, soakwatch: Command) -> None:
    """A second export of the same is refused as a whole, and --force replaces."""
    folder = recorded()
    out = folder.parents[1] / "out"
    assert soakwatch("export", "last", "--output", "out").returncode == 0
    (out / "samples" / "night.csv").unlink()
    again = soakwatch("export", "last", "--output", "out")
    assert again.returncode == 2
    assert "exists: name another --output, or replace it with --force" in again.stderr
    assert not list((out / "samples").iterdir())
    assert soakwatch("export", "last", "--output", "out", "--force").returncode == 0
    assert [path.name for path in (out / "samples").iterdir()] == ["night.csv"]


@pytest.mark.parametrize("format_", ["csv", "parquet", "line-protocol"])
def test_a_full_disk_leaves_nothing_behind(recorded: Recorded, format_: str) -> None:
    """A limit on the size of files stands for it: one sentence, and no half of a file."""
    folder = recorded(polls=300)
    here = folder.parents[1]
    done = subprocess.run(
        ["prlimit", "--fsize=2000", SOAKWATCH, "export", folder, "--format", format_, "--output", "out"],
        cwd=here,
        # Python keeps what it compiles even where the limit cuts it off, and the next process cannot load that.
        env={**environment(), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=MAX_WAIT_S,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "cannot be written (" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path for path in (here / "out").rglob("*") if path.is_file()] == []


def test_without_pyarrow_the_extra_is_named(recorded: Recorded, tmp_path: Path) -> None:
    """One sentence with the command that installs it."""
    folder = recorded()
    for name in ("pyarrow", "pandas"):
        (tmp_path / "none" / name).mkdir(parents=True)
        (tmp_path / "none" / name / "__init__.py").write_text("raise ImportError('not installed')\n")
    done = subprocess.run(
        [SOAKWATCH, "export", folder, "--format", "parquet"],
        cwd=tmp_path,
        env={**environment(), "PYTHONPATH": os.fspath(tmp_path / "none")},
        capture_output=True,
        text=True,
        timeout=MAX_WAIT_S,
        check=False,
    )
    assert done.returncode == 2
    assert re.fullmatch(r"soakwatch: Parquet files need pyarrow: (\S+/)?pip install 'pyarrow<\d+,>=\d+'\n", done.stderr)


def test_line_protocol_is_what_a_sink_is_given(recorded: Recorded, soakwatch: Command) -> None:
    """Point by point the same as the feed of the sink writes."""
    folder = recorded()
    done = soakwatch("export", "last", "--output", "night.lp")
    assert done.returncode == 0, done.stderr
    by_file, by_feed = MemorySink(), MemorySink()
    by_file.write(Block.of((folder.parents[1] / "night.lp").read_bytes().splitlines()))
    feed_of(folder, by_feed).finish()
    renamed = {(head.replace("run=run", "run=night"), time_ns): f for (head, time_ns), f in by_feed.points.items()}
    assert by_file.points.keys() == renamed.keys()
    measured = {point: fields for point, fields in renamed.items() if not point[0].startswith("soakwatch_")}
    assert measured == {point: by_file.points[point] for point in measured}
    assert len(measured) == 3 * 54 + 30


def test_an_exported_csv_imports_to_the_same_series_and_verdict(soakwatch: Command, tmp_path: Path) -> None:
    """A leak in a table, imported with phases and an event, judged; the export imported and judged again."""
    rows = ["time,target,metric,object,value"]
    noise = np.random.default_rng(3).normal(0, 2e5, 720)
    for index, wobble in enumerate(noise.tolist()):
        time = 1_790_000_000 + 60 * index
        rows.append(f"{time},fw,process.memory.usage,process=leaky,{5e8 + 4e5 * index + wobble!r}")
        rows.append(f"{time},fw,system.network.packets,interface=eth0,{(1 << 63) + 1000 * index}")
    (tmp_path / "table.csv").write_text("\n".join(rows) + "\n")
    stretches = ("--phase", "baseline=..1h", "--phase", "soak=1h..")
    assert soakwatch("import", "table.csv", "--name", "first", *stretches).returncode == 0
    first = soakwatch("judge", "first")
    done = soakwatch("export", "first", "--output", "out")
    assert done.returncode == 0, done.stderr
    (samples,) = (tmp_path / "out" / "samples").iterdir()
    ((baseline, soak),) = [lines_of(path) for path in (tmp_path / "out" / "phases").iterdir()]
    again = [f"{row['phase']}={row['begin']}..{row['end']}" for row in (baseline, soak)]
    done = soakwatch("import", samples, "--name", "second", "--phase", again[0], "--phase", again[1])
    assert done.returncode == 0, done.stderr
    second = soakwatch("judge", "second")
    assert first.returncode == second.returncode == 1
    folders = {path.name.partition("-")[2]: path for path in (tmp_path / "runs").iterdir()}
    assert readings(folders["first"]) == readings(folders["second"])
    with RecordView.open(folders["first"]) as one, RecordView.open(folders["second"]) as two:
        assert one.keys() == two.keys()
        for key in sorted(one.keys()):
            assert one.series(key).value.tolist() == two.series(key).value.tolist()
            assert one.series(key).trait == two.series(key).trait
        said = [
            [(f.rule, f.object, f.outcome, f.sentence, f.measured) for f in view.findings(live=False)]
            for view in (one, two)
        ]
    assert said[0] == said[1]
