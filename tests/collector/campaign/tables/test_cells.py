"""Cells: what is missing is said, ties are told, and nobody is best whose interval overlaps another's."""

from __future__ import annotations

import pytest
from tests.collector.campaign.tables.made import Values, result, rows_of, sheets, state_of

from soakwatch.campaign.tables.cell_figures import CellFigure, cell_verdict, last_attempts
from soakwatch.campaign.tables.pivot import marks
from soakwatch_model.finding import Outcome

RATE = "figures: [{figure: load.rx.packet.rate, name: rate}]\ntables: [{rows: a, columns: b, figures: [verdict, rate]}]"


def test_every_empty_cell_says_why() -> None:
    """Excluded, not run, running, lost, not in the record: five words, and no zero."""
    axes = {"a": ["1", "2"], "b": ["x", "y", "z"]}
    runs: dict[tuple[str, ...], list[str]] = {
        ("1", "x"): ["pass", "pass"],
        ("1", "y"): ["waiting", "waiting"],
        ("1", "z"): ["lost: the monitor was killed"],
        ("2", "x"): ["running"],
        ("2", "y"): ["fail", "pass", "waiting"],
    }
    rates: Values = {("1", "x"): [None, None], ("2", "y"): [5.0, None, None]}
    made = result(axes, {"load.rx.packet.rate": rates}, RATE, runs=runs)
    verdict, rate = (dict(rows_of(sheet)) for sheet in sheets(made))
    assert [cell.text for cell in rate["1",]] == [
        "no reading",
        "not run",
        "lost",
    ]
    assert [cell.text for cell in rate["2",]] == ["running", "5", "excluded"]
    assert rate["2",][1].note == "1 of 3 runs"
    assert sheets(made)[1].footnotes == (
        "no reading: the run has no load.rx.packet.rate (a 1, b x)",
        "lost: the monitor was killed (a 1, b z)",
        "1 of 3 runs: 1 the run has no load.rx.packet.rate; 1 not run (a 2, b y)",
    )
    assert [cell.text for cell in verdict["1",]] == ["pass", "not run", "lost"]
    assert [cell.text for cell in verdict["2",]] == ["running", "fail 1 of 3", "excluded"]
    assert made.goes_on
    assert made.outcome is Outcome.FAIL
    assert made.doubts[0] == "1 run lost, in 1 cell: a=1,b=z"


def test_a_campaign_without_an_end_never_passes() -> None:
    """One run waits: inconclusive, exit code 3; when it has passed, pass."""
    axes = {"a": ["1"], "b": ["x"]}
    waiting = result(axes, {}, RATE, runs={("1", "x"): ["pass", "waiting"]})
    assert (waiting.outcome, waiting.exit_code) == (Outcome.INCONCLUSIVE, 3)
    done = result(axes, {}, RATE, runs={("1", "x"): ["pass", "pass"]})
    assert (done.outcome, done.exit_code) == (Outcome.PASS, 0)
    lost = result(axes, {}, RATE, runs={("1", "x"): ["pass", "lost: no power"]})
    assert (lost.outcome, lost.exit_code) == (Outcome.INCONCLUSIVE, 3)


def test_the_verdict_of_a_cell_is_the_worst_of_its_runs() -> None:
    """With how many of how many."""
    state = state_of({"a": ["1"]}, {("1",): ["pass", "inconclusive", "fail", "fail", "pass"]})
    ((_, runs),) = last_attempts(state.runs).items()
    verdict = cell_verdict(runs)
    assert verdict.outcome is Outcome.FAIL
    assert verdict.words == "fail 2 of 5"
    assert verdict.counts == {Outcome.FAIL: 2, Outcome.INCONCLUSIVE: 1, Outcome.PASS: 2}


def many(*values: float) -> CellFigure:
    """A cell of runs with these numbers and no interval."""
    ordered = sorted(values)
    return CellFigure(
        "",
        "higher",
        ordered[len(ordered) // 2],
        by_run={str(n): value for n, value in enumerate(values, 1)},
        n=len(values),
    )


def test_ties_are_told_and_overlaps_are_not_marked() -> None:
    """Two cells of one value are best together; ranges that overlap hide who is best."""
    tied = {"a": many(3.0), "b": many(5.0), "c": many(5.0)}
    assert marks(tied) == {"b": "tied best", "c": "tied best", "a": "worst"}
    apart = {"a": many(1.0, 2.0, 3.0), "b": many(4.0, 5.0, 6.0), "c": many(5.5, 7.0, 8.0)}
    assert marks(apart) == {"a": "worst"}
    assert marks({"a": many(4.0), "b": many(4.0)}) == {}
    assert marks({"a": many(4.0)}) == {}


def test_single_runs_of_a_trifling_difference_are_not_marked() -> None:
    """Of one run each 187.0 W is no better than 187.1 W; 190 W is worse than both."""
    watts = {"a": 187.0, "b": 187.1, "c": 190.0}
    assert marks(
        {name: CellFigure("W", "lower", value, by_run={"1": value}, n=1) for name, value in watts.items()}
    ) == {"c": "worst"}


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_best_is_by_the_direction(better: str) -> None:
    """Of losses and latencies the lowest."""
    cells = {value: CellFigure("", "lower" if better == "lower" else "higher", value) for value in (1.0, 2.0, 3.0)}
    assert marks(cells) == ({1.0: "best", 3.0: "worst"} if better == "lower" else {3.0: "best", 1.0: "worst"})


def test_one_run_a_cell_says_so() -> None:
    """No interval, no range, and the reader is told that nothing is proven."""
    rates: Values = {(a, b): [float(ord(b) + int(a))] for a in "12" for b in "xyz"}
    made = result({"a": ["1", "2"], "b": ["x", "y", "z"]}, {"load.rx.packet.rate": rates}, RATE)
    sheet = sheets(made)[1]
    assert {cell.beside for _, cells in rows_of(sheet) for cell in cells} == {""}
    assert "one run a cell: the spread between runs is unknown" in sheet.legend
    assert made.doubts == ("one run a cell: the spread between runs is unknown; no difference is proven",)


def test_six_runs_have_an_interval_and_five_a_range() -> None:
    """Order statistics: 95 % need six."""
    rates: Values = {("1", "x"): [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], ("1", "y"): [1.0, 2.0, 3.0, 4.0, 5.0]}
    made = result({"a": ["1"], "b": ["x", "y"]}, {"load.rx.packet.rate": rates}, RATE)
    ((_, cells),) = rows_of(sheets(made)[1])
    assert [cell.beside for cell in cells] == ["[1.0, 6.0]", "1.0–5.0"]


def test_a_limit_is_kept_by_every_run_or_by_the_median() -> None:
    """One run beyond it fails; asked of the median its interval decides; without a figure nothing is decided."""
    losses: Values = {("1",): [0.001] * 5 + [0.02], ("2",): [0.001] * 6, ("3",): [None] * 6}
    made = result(
        {"a": ["1", "2", "3"]},
        {"load.loss": losses},
        """
figures: [load.loss]
limits:
  - {figure: load.loss, at_most: 0.5%}
  - {figure: load.loss, at_most: 0.5%, of: median, where: {a: [1, 2]}}
""",
    )
    found = [(finding.subject, finding.outcome, finding.reason) for finding in made.findings]
    assert found == [
        ("a 1", Outcome.FAIL, "1 of 6 runs beyond it: 0.1 to 2 %"),
        ("a 3", Outcome.INCONCLUSIVE, "the run has no load.loss"),
        ("a 1", Outcome.INCONCLUSIVE, "median 0.1 %, interval 0.1 to 2 %, 6 runs"),
        ("a 2", Outcome.PASS, "0.1 %, 6 runs"),
        ("a 2", Outcome.PASS, "median 0.1 %, interval 0.1 %, 6 runs"),
    ]
