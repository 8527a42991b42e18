"""The trials of a search for the capacity as a drawing beside their table."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.collector.report.conftest import BEGIN, MemoryRecord

from soakwatch.judge.capacity import CapacitySearch, GoalBounds, SearchState, Trial
from soakwatch.judge.verdict import Verdict
from soakwatch.report.html import render_html
from soakwatch.report.sections.capacity import trial_plot

TRIALS = tuple(
    Trial(BEGIN + number * 10**9, level, 2.0, 2.0, 1e4, lost, 1e3 * level, warmup=number == 0)
    for number, (level, lost) in enumerate([(0.5, 0), (1.0, 3000), (0.8, 900), (0.6, 0), (0.7, 4)])
)
SEARCH = CapacitySearch(
    BEGIN,
    BEGIN + 60 * 10**9,
    SearchState.FOUND,
    "packets",
    goals=(GoalBounds(0.001, 0.7, 0.8, 0.7, 700.0),),
    trials=TRIALS,
)


def test_each_trial_is_a_dot_and_each_bound_a_line() -> None:
    """More load is further right, more loss higher; what lost too much, what did not and a warm-up are told apart."""
    plot = trial_plot(SEARCH)
    assert plot is not None
    assert [dot.kind for dot in plot.dots] == ["warmup", "lossy", "lossy", "lossless", "lossless"]
    by_load = sorted(zip(TRIALS, plot.dots, strict=True), key=lambda pair: pair[0].level)
    assert [dot.x for _, dot in by_load] == sorted({dot.x for dot in plot.dots})
    assert plot.dots[1].y < plot.dots[2].y < plot.dots[3].y
    lower, upper = (next(stroke for stroke in plot.strokes if stroke.kind == side) for side in ("lower", "upper"))
    assert "lower bound at loss 0.1%: 70.00 %" in lower.title
    assert float(lower.path[1:].split()[0]) < float(upper.path[1:].split()[0])
    assert trial_plot(replace(SEARCH, trials=())) is None


def test_a_report_shows_it_beside_the_table(plain: tuple[MemoryRecord, Verdict]) -> None:
    """Its words stand for it, and the table has the same trials."""
    page = render_html(plain[0], replace(plain[1], capacity=(SEARCH,)))
    section = page[page.index('<section id="capacity"') :].split("</section>")[0]
    assert 'aria-label="Loss of 5 trials by their load; the table has the same figures"' in section
    assert len(re.findall(r'<circle class="(?:lossy|lossless|warmup)"', section)) == len(TRIALS)
    assert '<caption class="unseen">Trials</caption>' in section
