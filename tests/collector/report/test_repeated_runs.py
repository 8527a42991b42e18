"""How many runs are enough, as the command says it that judges a run against earlier ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from soakwatch.cli.main import run as command
from soakwatch.core.errors import EXIT_PASS


def imported(folder: Path, levels: list[float]) -> list[str]:
    """Runs of ten minutes whose throughput is at these levels; their folders, the last one first."""
    rng = np.random.default_rng(5)
    for number, level in enumerate(levels):
        rates = 2000 * level * (1 + rng.normal(0, 0.01, 120))
        rows = (f"{1_763_200_000 + 86400 * number + 5 * i},{rate:.1f}\n" for i, rate in enumerate(rates.tolist()))
        (folder / "r.csv").write_text(f"time,load.request.rate\n{''.join(rows)}", encoding="utf-8")
        command(["import", str(folder / "r.csv"), "--name", f"r{number}", "--target", "fw"])
    return [str(run) for run in sorted((folder / "runs").iterdir(), key=lambda run: run.name[-2:], reverse=True)]


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ([1.0, 1.01, 0.985, 1.005], "4 runs of fw load.request.rate vary by 1"),
        ([1.0, 1.01, 0.985, 1.005], "its median to within ± 5 % takes 6: 2 more."),
        ([1.0, 1.01, 0.985, 1.005, 0.995, 1.0], "they are enough to know its median to within ± 5 %."),
        ([1.0, 1.02], "at most (95 %); to know its median to within ± 5 % takes 6: 4 more."),
    ],
)
def test_the_runs_that_were_made_and_those_that_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], levels: list[float], said: str
) -> None:
    """The number of runs, the upper bound of their spread, and how many more the claim needs."""
    monkeypatch.chdir(tmp_path)
    last, *earlier = imported(tmp_path, levels)
    capsys.readouterr()
    words = [word for run in earlier for word in ("--against", run)]
    code = command(["judge", last, *words])
    shown = capsys.readouterr().out
    assert code == EXIT_PASS or len(levels) == 2
    assert "How many runs are enough" in shown
    assert said in shown


def test_without_earlier_runs_nothing_is_said_of_repetitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One run alone has no such table."""
    monkeypatch.chdir(tmp_path)
    (only,) = imported(tmp_path, [1.0])
    command(["judge", only])
    assert "How many runs are enough" not in capsys.readouterr().out
