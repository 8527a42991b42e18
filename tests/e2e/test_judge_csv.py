"""Anybody's series on the command line: import, and judge in one command."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from soakwatch.transfer.importing.command_line import is_table

Command = Callable[..., "subprocess.CompletedProcess[str]"]
T0 = 1_767_225_600


def leak(rise: float = 0.1) -> str:
    """A wide table of two hours with a heap in MB that grows, beside a word."""
    return "time,heap (MB),note\n" + "".join(f"{T0 + 10 * n},{100 + n * rise + n % 2},x\n" for n in range(720))


def test_a_table_is_judged_in_one_command(soakwatch: Command, tmp_path: Path) -> None:
    """The verdict is printed, the exit code is its, and nothing is left behind."""
    (tmp_path / "data.csv").write_text(leak(), encoding="utf-8")
    done = soakwatch("judge", "data.csv", "--rule", "memory_growth")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAIL  data" in done.stdout
    assert "imported.heap" in done.stdout
    assert "not imported because it is text: note" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv"]
    (tmp_path / "flat.csv").write_text(leak(0.0), encoding="utf-8")
    assert soakwatch("judge", "flat.csv", "--rule", "memory_growth").returncode == 0
    (tmp_path / "short.csv").write_text("\n".join(leak().splitlines()[:4]) + "\n", encoding="utf-8")
    done = soakwatch("judge", "short.csv", "--rule", "memory_growth")
    assert done.returncode == 3
    assert "to resolve" in done.stdout


def test_as_json_twice_the_same(soakwatch: Command, tmp_path: Path) -> None:
    """The same table gives the same verdict, byte for byte."""
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress(leak().encode()))
    first, second = (soakwatch("judge", "data.csv.gz", "--rule", "memory_growth", "--json", "-") for _ in range(2))
    assert first.stdout == second.stdout
    verdict = json.loads(first.stdout)
    assert (verdict["verdict"], verdict["run"], verdict["findings"][0]["metric"]) == ("fail", "data", "imported.heap")


def test_columns_are_mapped(soakwatch: Command, tmp_path: Path) -> None:
    """A column that is said to be a metric is judged by every rule of it, without --rule."""
    (tmp_path / "data.csv").write_text(leak(), encoding="utf-8")
    done = soakwatch("judge", "data.csv", "--map", "heap (MB)=process.memory.usage,process=nginx", "--target", "fw")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "process=nginx" in done.stdout
    assert "memory_growth" in done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["data.csv"], "no rule judges heap (MB): name one, such as --rule growth, or map them with --map"),
        (["data.csv", "--rule", "reboot"], "data.csv: reboot judges system.boot.id"),
        (["data.csv", "--rule", "memory_grow"], "unknown rule 'memory_grow'; did you mean 'memory_growth'?"),
        (["data.csv", "--time", "tome"], "data.csv: --time: there is no column 'tome'; did you mean 'time'?"),
        (["data.csv", "--unit", "heap"], "--unit heap: write COLUMN=…"),
        (["data.csv", "--start", "noon"], "--start noon is not a time"),
        (["data.csv", "--delimiter", "ab"], "--delimiter 'ab' is not one character"),
        (["none.csv"], "none.csv: no such file"),
        (["none"], "none is not a run"),
        (["bad.csv"], "bad.csv: column heap: more than half of its cells are not numbers (line 3: 'x', line 4: 'y')"),
    ],
)
def test_errors_are_one_sentence(soakwatch: Command, tmp_path: Path, words: list[str], sentence: str) -> None:
    """Exit code 2, one line, with the place and the remedy."""
    (tmp_path / "data.csv").write_text(leak(), encoding="utf-8")
    (tmp_path / "bad.csv").write_text("time,heap\n1,2\n2,x\n3,y\n", encoding="utf-8")
    done = soakwatch("judge", *words)
    assert done.returncode == 2, done.stdout + done.stderr
    last = done.stderr.splitlines()[-1]
    assert sentence in last
    assert "Traceback" not in done.stderr


def test_import_then_judge_and_report(soakwatch: Command, tmp_path: Path) -> None:
    """An imported table is a run: listed, judged, reported; its options are refused there."""
    (tmp_path / "data.csv").write_text(leak(), encoding="utf-8")
    done = soakwatch("import", "data.csv", "--name", "heap of fw")
    assert done.returncode == 0, done.stderr
    assert "imported.heap" in done.stdout
    assert "ended" in soakwatch("runs").stdout
    done = soakwatch("judge", "last")
    assert done.returncode == 3
    assert "nothing was judged: no rule knows imported.heap; name one with --rule" in done.stdout
    assert soakwatch("judge", "last", "--rule", "memory_growth").returncode == 1
    assert soakwatch("import", "data.csv", "--name", "named", "--rule", "memory_growth").returncode == 0
    assert soakwatch("judge", "last").returncode == 1
    done = soakwatch("judge", "last", "--unit", "heap=MB")
    assert done.returncode == 2
    assert "--unit: only valid for tables, but last is a run" in done.stderr
    done = soakwatch("report", "last", "--html", "report.html", "--json", "verdict.json")
    assert done.returncode == 0, done.stderr
    assert "imported.heap" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_what_cannot_be_compared_is_said(soakwatch: Command, tmp_path: Path) -> None:
    """A run of other targets, and a table: one sentence, instead of a comparison of nothing that passes."""
    (tmp_path / "data.csv").write_text(leak(), encoding="utf-8")
    for name in ("old", "new"):
        assert soakwatch("import", "data.csv", "--target", name, "--name", name).returncode in {0, 1, 3}
    old = next((tmp_path / "runs").glob("*old"))
    done = soakwatch("judge", "new", "--against", str(old))
    assert done.returncode == 2
    assert f"--against {old} has nothing to compare with new: its targets are old, not new" in done.stderr
    done = soakwatch("judge", "new", "--against", "data.csv")
    assert done.returncode == 2
    assert "data.csv is a table: make a run of it first with 'soakwatch import data.csv'" in done.stderr


def test_standard_input(tmp_path: Path) -> None:
    """What is piped in is judged; a record is not a table, whatever it is called."""
    command = [sys.executable, "-m", "soakwatch.cli", "judge", "-", "--rule", "memory_growth"]
    done = subprocess.run(command, input=leak(), capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert is_table("-")
    record = tmp_path / "mailed.csv"
    record.write_bytes(b"SQLite format 3\0")
    assert not is_table(str(record))


def test_a_run_is_found_by_the_name_that_import_gave_it(soakwatch: Command, tmp_path: Path) -> None:
    """Without the time before it; a name that is nearly one is reported."""
    (tmp_path / "flat.csv").write_text(leak(0.0), encoding="utf-8")
    assert soakwatch("import", "flat.csv", "--rule", "memory_growth", "--name", "last-week").returncode == 0
    assert "last-week" in soakwatch("judge", "last-week").stdout
    assert "did you mean 'last-week'?" in soakwatch("judge", "last-weak").stderr


def test_what_sysbench_prints_is_a_table(soakwatch: Command, tmp_path: Path) -> None:
    """As text and by its CSV report: transactions, their latency and errors of each interval."""
    head = "sysbench 1.0.20\n\nThreads started!\n\n"
    text = "".join(
        f"[ {n}s ] thds: 16 tps: {50 + n % 3}.02 qps: 1392.56 (r/w/o: 1/2/3) lat (ms,95%): 493.24 err/s: 0.00\n"
        for n in range(1, 60)
    )
    rows = "".join(f"{n},56,{1769 + n % 5}.93,50720.71,23128.75,23828.74,3763.22,116.80,0.00,0.00\n" for n in range(60))
    for name, body in (("text.txt", text), ("rows.txt", rows)):
        (tmp_path / name).write_text(head + body, encoding="utf-8")
        imported = soakwatch("import", name)
        assert imported.returncode == 0, imported.stderr
        assert {"load.request.rate", "load.latency", "load.failure.rate"} <= set(imported.stdout.split())
    (tmp_path / "none.txt").write_text(head, encoding="utf-8")
    assert "sysbench printed no interval: run it with --report-interval=1" in soakwatch("import", "none.txt").stderr
