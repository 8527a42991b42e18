"""Power in the report: watts, joules and energy per packet of each phase, or nothing where no power was read."""

from __future__ import annotations

import io
from copy import copy
from typing import Protocol

import numpy as np
from rich.console import Console

from soakwatch.judge.verdict import Verdict
from soakwatch.record.source import ReportSource
from soakwatch.report.html import render_html
from soakwatch.report.markdown import render_markdown
from soakwatch.report.terminal import print_verdict
from soakwatch_model.series import Series, Trait


class WithSeries(ReportSource, Protocol):
    """A record in memory."""

    data: list[Series]


def _over_the_run(verdict: Verdict, target: str, metric: str, unit: str, label: str, level: float) -> Series:
    times = np.arange(verdict.window.begin_ns, verdict.window.end_ns, 60 * 10**9, dtype=np.int64)
    return Series(target, metric, label, Trait(unit, "gauge"), times, np.full(times.size, level), 60.0)


def test_power_and_energy_per_packet_in_every_format(plain: tuple[WithSeries, Verdict]) -> None:
    """Supplies are added up at the wall, and what they give is not counted again."""
    source, verdict = plain
    dut = next(name for name, role in source.roles().items() if role == "dut")
    tg = next(name for name, role in source.roles().items() if role == "generator")
    fed = copy(source)
    fed.data = [each for each in source.data if each.metric != "load.rx.packet.rate"] + [
        _over_the_run(verdict, dut, "system.power", "W", "sensor=PSU 1 input", 120.0),
        _over_the_run(verdict, dut, "system.power", "W", "sensor=PSU 2 input", 80.0),
        _over_the_run(verdict, dut, "system.power", "W", "sensor=PSU 1 output", 100.0),
        _over_the_run(verdict, tg, "load.rx.packet.rate", "{packet}/s", "", 4e6),
    ]
    target = io.StringIO()
    print_verdict(fed, verdict, Console(file=target, width=200))
    section = render_html(fed, verdict).partition('<section id="power">')[2].partition("</section>")[0]
    for text in (target.getvalue(), render_markdown(fed, verdict), section):
        assert "200 W" in text
        assert "50 µJ/packet" in text
        assert "PSU 1 input, PSU 2 input" in text


def test_a_run_without_power_says_nothing_of_it(plain: tuple[WithSeries, Verdict]) -> None:
    """No section and no sentence."""
    assert '<section id="power">' not in render_html(*plain)
