"""The databases of a run in its reports: what they have, how far behind they were; and silence where there is none."""

from __future__ import annotations

import io
from copy import copy
from typing import Protocol

import numpy as np
import pytest
from rich.console import Console

from soakwatch.judge.verdict import Verdict
from soakwatch.record.source import ReportSource
from soakwatch.report.html import render_html
from soakwatch.report.markdown import render_markdown
from soakwatch.report.terminal import print_verdict
from soakwatch_model.metric import BY_NAME
from soakwatch_model.series import Series, Trait

BEGIN = 1_795_200_000 * 10**9


class WithSeries(ReportSource, Protocol):
    """A record in memory."""

    data: list[Series]


def reading(metric: str, values: list[float], sink: str = "influxdb-1") -> Series:
    """A reading each five seconds."""
    entry = BY_NAME[metric]
    trait = Trait(entry.unit, "counter" if entry.kind == "counter" else "gauge", None, None, None, None)
    times = BEGIN + np.arange(len(values), dtype=np.int64) * 5 * 10**9
    return Series("monitor", metric, f"sink={sink}", trait, times, np.array(values), 5.0)


def with_sinks(plain: tuple[WithSeries, Verdict], *series: Series) -> WithSeries:
    fed = copy(plain[0])
    fed.data = [*plain[0].data, *series]
    return fed


def healthy(sink: str = "influxdb-1") -> tuple[Series, ...]:
    return (
        reading("monitor.sink.lag", [2, 4, 3], sink),
        reading("monitor.sink.backlog", [2, 4, 3], sink),
        reading("monitor.sink.written", [100, 200, 12_300], sink),
        reading("monitor.sink.rejected", [0, 0, 0], sink),
    )


def shown(source: WithSeries, verdict: Verdict) -> tuple[str, str, str]:
    """On a terminal, in Markdown, and the section of the page."""
    target = io.StringIO()
    print_verdict(source, verdict, Console(file=target, width=200))
    section = render_html(source, verdict).partition('<section id="sinks">')[2].partition("</section>")[0]
    return target.getvalue(), render_markdown(source, verdict), section


def test_a_run_without_a_database_says_nothing_of_one(plain: tuple[WithSeries, Verdict]) -> None:
    terminal, markdown, section = shown(*plain)
    assert "sink" not in terminal + markdown
    assert section == ""


def test_a_database_that_kept_up_is_one_quiet_line(plain: tuple[WithSeries, Verdict]) -> None:
    terminal, markdown, section = shown(with_sinks(plain, *healthy()), plain[1])
    words = "sink influxdb-1: 12,300 lines written, none rejected; never more than 30 s behind; up to date at the end"
    assert words in terminal
    assert words in markdown
    assert "12,300" in section
    assert "Databases" in render_html(with_sinks(plain, *healthy()), plain[1])
    assert "card warn" not in section
    assert "soakwatch sink RUN" not in section


def test_an_outage_refusals_and_what_waited_at_the_end_are_reported(plain: tuple[WithSeries, Verdict]) -> None:
    """The counters began anew when the monitor was killed and resumed; the second sink is well."""
    fed = with_sinks(
        plain,
        reading("monitor.sink.lag", [2, 603.2, 240]),
        reading("monitor.sink.backlog", [2, 40_000, 12_300]),
        reading("monitor.sink.written", [1000, 40, 2000]),
        reading("monitor.sink.rejected", [3, 0, 4]),
        *healthy("influxdb-2"),
    )
    terminal, markdown, section = shown(fed, plain[1])
    words = "sink influxdb-1: 3,000 lines written, 7 rejected; 10 min 3 s behind at 2026-11-20 18:40:05;"
    assert words in " ".join(terminal.split())
    assert "4 min behind at the end, 12,300 polls not written" in terminal
    assert "7 rejected" in markdown
    assert "card warn" in section
    assert "sink-…-refused.txt" in section
    assert "soakwatch sink RUN --to" in section
    assert "influxdb-2" in section


def test_a_report_for_a_pull_request_stays_short(plain: tuple[WithSeries, Verdict]) -> None:
    many = with_sinks(plain, *(series for n in range(9) for series in healthy(f"influxdb-{n}")))
    assert len(render_markdown(many, plain[1]).splitlines()) <= 75


@pytest.mark.parametrize("missing", [0, 1, 2, 3])
def test_a_record_that_lacks_one_of_the_readings_can_still_be_shown(
    missing: int, plain: tuple[WithSeries, Verdict]
) -> None:
    some = [series for index, series in enumerate(healthy()) if index != missing]
    shown(with_sinks(plain, *some), plain[1])
