"""The verdict of whole runs, by the commands: a healthy night passes, a sick one does not. Floors of a fixed small set;
``tests/bench/accuracy/runs.py`` draws as many as wanted and prints what decided each."""

from __future__ import annotations

import pytest
from tests.bench.accuracy.runs import Judged, try_healthy, try_sick

HEALTHY = range(1000, 1024)
SICK = range(1000, 1045)


def _listed(rows: list[Judged]) -> str:
    """What was judged wrong, a line each."""
    return "\n".join(
        f"{row.seed} {'healthy' if row.truth is None else row.truth.kind}: {row.outcome} by {', '.join(row.rules)}"
        for row in rows
    )


def _few(wrong: list[Judged], of: int, share: float) -> None:
    assert len(wrong) <= share * of, f"{len(wrong)} of {of}:\n{_listed(wrong)}"


def _sick(seeds: range) -> list[Judged]:
    rows = [row for seed in seeds if (row := try_sick(seed)) is not None]
    return [row for row in rows if row.truth is not None and not row.truth.small]


def _check_sick(rows: list[Judged]) -> None:
    assert len(rows) >= 10
    _few([row for row in rows if row.verdict == "pass"], len(rows), 0.05)
    gross = [row for row in rows if row.truth is not None and row.truth.gross]
    _few([row for row in gross if row.verdict != "fail"], len(gross), 0.05)
    _few(
        [row for row in rows if row.false_cause], len(rows), 0.1
    )  # one of a dozen: the many runs below bound it at 3 %


def test_a_few_runs_get_the_verdict_that_they_deserve() -> None:
    """Some healthy ones, long and short, and some sick ones, of those that are tried below by the dozen."""
    assert [row.verdict for row in map(try_healthy, (1003, 1005, 1007))] == ["pass"] * 3
    chosen = {"99 % of packets lost": 1001, "crash, then OOM of another": 1001, "leak x2 host": 1000, "link down": 1000}
    for kind, seed in chosen.items():  # lives to which it can be done
        ill = try_sick(seed, kind)
        assert ill is not None
        assert ill.truth is not None
        assert (kind in ill.truth.kind, ill.verdict) == (True, "fail"), kind


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, 1])
def test_a_healthy_run_passes(part: int) -> None:
    rows = [try_healthy(seed) for seed in HEALTHY[part::2]]
    _few([row for row in rows if row.verdict == "fail"], len(rows), 0.05)
    whole = [row for row in rows if row.long]
    assert len(whole) >= 5
    _few([row for row in whole if row.verdict != "pass"], len(whole), 0.2)


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_sick_run_does_not_pass(part: int) -> None:
    _check_sick(_sick(range(SICK.start + 15 * part, SICK.start + 15 * (part + 1))))


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_floors_hold_over_many_runs() -> None:
    well = [try_healthy(seed) for seed in range(2000, 2200)]
    whole = [row for row in well if row.long]
    _few([row for row in well if row.verdict == "fail"], len(well), 0.02)
    _few([row for row in whole if row.verdict != "pass"], len(whole), 0.15)
    ill = _sick(range(2000, 2400))
    gross = [row for row in ill if row.truth is not None and row.truth.gross]
    _few([row for row in ill if row.verdict == "pass"], len(ill), 0.01)
    _few([row for row in gross if row.verdict != "fail"], len(gross), 0.01)
    _few([row for row in ill if row.false_cause], len(ill), 0.03)
    for times, floor in ((2, 0.85), (3, 0.95)):
        leaks = [row for row in ill if row.truth is not None and row.truth.kind.startswith(f"leak x{times}")]
        assert leaks
        _few([row for row in leaks if not (row.verdict == "fail" and row.named)], len(leaks), 1 - floor)
