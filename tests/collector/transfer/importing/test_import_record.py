"""Imported series as a record: what is missing is counted, what is there comes back, and it is judged like any run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from soakwatch.cli.main import run
from soakwatch.judge.record_verdict import judge_record
from soakwatch.record import RecordView
from soakwatch.runs.catalog import list_runs
from soakwatch.sources.tables.errors import DataError
from soakwatch.transfer.importing.cadence import interval_of, polls_of
from soakwatch.transfer.importing.files import import_files, stem_of
from soakwatch.transfer.importing.timeline import ImportOptions
from soakwatch_model.finding import Outcome

T0 = 1_767_225_600
SECOND = 10**9
UP = ImportOptions(growth="up")


def written(folder: Path, text: str, name: str = "fw.csv") -> str:
    """A table on disk."""
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def recorded(folder: Path, texts: Sequence[str], options: ImportOptions = UP) -> RecordView:
    """The record of some tables."""
    files = [written(folder, text, f"day{day}.csv") for day, text in enumerate(texts)]
    import_files(files, folder / "runs" / "run", "run", options)
    return RecordView.open(folder / "runs" / "run")


def wide(seconds: Sequence[float], column: str = "heap") -> str:
    """A table with a reading at each of these seconds."""
    return f"time,{column}\n" + "".join(f"{T0 + second},{100 + n}\n" for n, second in enumerate(seconds))


def test_the_series_comes_back(tmp_path: Path) -> None:
    """Times, values, unit, kind, direction and cadence of a column are those of the record's series."""
    with recorded(tmp_path, [wide(range(0, 1000, 10))]) as view:
        (key,) = view.keys()
        series = view.series(key)
        assert (key.target, key.metric, key.object) == ("day0", "imported.heap", "")
        assert series.time_ns.tolist() == [(T0 + second) * SECOND for second in range(0, 1000, 10)]
        assert series.values.tolist() == [100.0 + n for n in range(100)]
        assert (series.trait.kind, series.trait.growth, series.cadence_s) == ("gauge", "up", 10.0)
        assert view.roles() == {"day0": "dut"}
        assert view.counts().samples == 100


def test_missing_lines_are_missing_polls(tmp_path: Path) -> None:
    """A gap in a table that has a pace is counted, with its length; the cell that is empty as well."""
    seconds = [*range(0, 300, 10), *range(400, 700, 10)]
    with recorded(tmp_path, [wide(seconds)]) as view:
        (ledger,) = view.ledgers(view.window())
        assert (ledger.due, ledger.got, dict(ledger.lost)) == (70, 60, {"gap": 10})
        assert ledger.errors == ("the file has no line for this time",)
        (silence,) = ledger.silences
        assert silence.window.seconds == pytest.approx(110)
        polls, _ = view.polls_after("", 1000)
        assert len(polls) == 70
        assert sum(len(poll.answer.samples) for poll in polls) == 60
    (tmp_path / "b").mkdir()
    with recorded(tmp_path / "b", [wide(range(0, 100, 10)).replace(",103", ",")]) as view:
        (ledger,) = view.ledgers(view.window())
        assert (ledger.due, ledger.got) == (10, 9)


def test_without_a_pace_nothing_is_missing() -> None:
    """Events have no cadence: their lines are all there is."""
    times = np.cumsum(np.random.default_rng(1).exponential(1e9, 500)).astype(np.int64)
    polls = polls_of([times])
    assert not polls.regular
    assert bool(polls.answered.all())
    assert polls.interval_ns == pytest.approx(1e9, rel=0.1)


def test_a_gap_of_years_is_bounded() -> None:
    """A pace of a second and a gap of a century do not fill the memory; the gap stays a gap."""
    times = np.concatenate([np.arange(100), 3_000_000_000 + np.arange(100)]) * SECOND
    polls = polls_of([times])
    assert 100_000 <= polls.time_ns.size < 200_000
    assert bool((np.diff(polls.time_ns) > 0).all())
    assert int(polls.answered.sum()) == 200


@pytest.mark.parametrize("times", [[], [5], [5, 6], [0, 10, 20, 31, 39, 50]])
def test_the_pace_of_few_readings(times: list[int]) -> None:
    """No readings, one and two have an interval that is no zero."""
    interval_ns, _ = interval_of(np.array(times, dtype=np.int64))
    assert interval_ns > 0


def test_series_of_different_pace_have_accounts_of_their_own(tmp_path: Path) -> None:
    """A column that is filled every minute does not lack fifty-nine readings of sixty."""
    lines = [f"{T0 + second},{second},{second if second % 60 == 0 else ''}" for second in range(600)]
    with recorded(tmp_path, ["time,fast,slow\n" + "\n".join(lines)]) as view:
        cadences = {key.metric: view.series(key).cadence_s for key in view.keys(None)}
        assert cadences == pytest.approx({"imported.fast": 1.0, "imported.slow": 60.0})
        assert [(ledger.due, ledger.got) for ledger in view.ledgers(view.window())] == [(600, 600), (10, 10)]


def test_series_with_shifted_times_share_polls(tmp_path: Path) -> None:
    """In a long table readings a moment apart belong to one poll, and keep their own times."""
    lines = [
        f"{T0 + 10 * second + shift},{name},{second}" for second in range(50) for shift, name in ((0, "a"), (0.25, "b"))
    ]
    with recorded(tmp_path, ["time,metric,value\n" + "\n".join(lines)]) as view:
        (ledger,) = view.ledgers(view.window())
        assert (ledger.due, ledger.got) == (50, 50)
        second = view.series(next(key for key in view.keys(None) if key.metric == "imported.b"))
        assert second.time_ns.tolist() == [(T0 + 10 * second) * SECOND + 250_000_000 for second in range(50)]
        assert view.window().end_ns > int(second.time_ns[-1])


def test_one_life_after_another_in_a_long_table(tmp_path: Path) -> None:
    """Where one object ends and another begins, both have all of their readings."""
    lines = [f"{T0 + second},rss,process={'a' if second < 60 else 'b'},{second}" for second in range(100)]
    with recorded(tmp_path, ["time,metric,object,value\n" + "\n".join(lines)]) as view:
        assert {key.object: len(view.series(key)) for key in view.keys(None)} == {"process=a": 60, "process=b": 40}
        assert view.window().seconds == pytest.approx(99, abs=1e-6)


def test_files_that_go_on_are_one_series(tmp_path: Path) -> None:
    """Two days of one target follow each other; where both have a reading the later file counts."""
    options = ImportOptions(target="fw", growth="up")
    with recorded(tmp_path, [wide([0, 10, 20]), wide([20, 30, 40])], options) as view:
        (key,) = view.keys()
        assert key.target == "fw"
        assert view.series(key).values.tolist() == [100, 101, 100, 101, 102]
    (tmp_path / "b").mkdir()
    with pytest.raises(DataError, match=r"heap_mb is in .*|give its unit"):
        recorded(tmp_path / "b", [wide([0, 10], "heap"), wide([20, 30], "heap (MB)")], options)


def test_many_chunks_are_one_series(tmp_path: Path) -> None:
    """More lines than a chunk and a stretch hold, out of order across chunks, come back whole."""
    order = np.random.default_rng(2).permutation(120_000)
    text = "time,heap\n" + "\n".join(f"{T0 + second},{second}" for second in order.tolist())
    with recorded(tmp_path, [text]) as view:
        series = view.series(view.keys()[0])
        assert np.array_equal(series.values, np.arange(120_000.0))
        part = view.series(view.keys()[0], (T0 + 49_990) * SECOND, (T0 + 50_010) * SECOND)
        assert part.values.tolist() == list(range(49_990, 50_010))


def test_an_imported_run_is_a_run(tmp_path: Path) -> None:
    """It is listed as ended, judged under all rules, and a named rule judges its own columns too."""
    leak = "time,heap (MB)\n" + "".join(f"{T0 + 10 * n},{100 + n * 0.1}\n" for n in range(720))
    with recorded(tmp_path, [leak]) as view:
        (line,) = list_runs(tmp_path / "runs")
        assert (line.state, line.verdict, line.name) == ("ended", None, "run")
        assert not [f for f in judge_record(view).findings if f.metric == "imported.heap"]
        verdict = judge_record(view, only=["memory_growth"])
        assert [(f.outcome, f.metric, f.unit) for f in verdict.findings] == [(Outcome.FAIL, "imported.heap", "By")]
        assert judge_record(view, only=["memory_growth"]) == verdict


def test_the_load_alone_tells_of_a_device(tmp_path: Path) -> None:
    """A table of throughput only has a generator, and the device behind it."""
    with recorded(tmp_path, [wide(range(0, 100, 10), "tps")]) as view:
        assert view.roles() == {"day0": "dut", "day0-load": "generator"}


@pytest.mark.parametrize(("path", "stem"), [("a/b.csv.gz", "b"), ("b", "b"), ("b.tsv", "b"), (".csv", ".csv")])
def test_names_of_files(path: str, stem: str) -> None:
    """A run is called like its file."""
    assert stem_of(path) == stem


def test_the_command_judges_what_it_imports_and_keeps_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists, pages and sinks show what the record holds: the same findings that a later judging gives."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{T0 + 60 * n},{100_000_000 + 400_000 * n}\n" for n in range(360))
    written(tmp_path, f"time,rss\n{rows}")
    assert run(["import", "fw.csv", "--map", "rss=process.memory.usage,process=nginx:B", "--label", "release=7.2"]) == 0
    assert "verdict fail: memory of nginx on fw has grown by 22.9 MiB/h" in capsys.readouterr().out
    (listed,) = list_runs(tmp_path / "runs")
    assert listed.verdict == "fail"
    with RecordView.open(tmp_path / "runs" / listed.folder.name) as view:
        kept, again = view.findings(live=False), judge_record(view)
    assert [(f.rule, f.outcome, f.object) for f in kept] == [(f.rule, f.outcome, f.object) for f in again.findings]
    assert again.outcome is Outcome.FAIL
