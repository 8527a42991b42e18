"""What the monitor cost, in a report: a line for each device that was weighed, or that nobody can weigh."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
from rich.console import Console

from soakwatch.judge.verdict import Verdict
from soakwatch.record.source import ReportSource
from soakwatch.report.html import render_html
from soakwatch.report.markdown import render_markdown
from soakwatch.report.terminal import print_verdict
from soakwatch_model.case import Case
from soakwatch_model.finding import Finding
from soakwatch_model.series import Series
from soakwatch_rules.detectors.observer_cost import COST, ObserverCost
from soakwatch_rules.signals import readings


def found(verdict: Verdict, target: str, *series: Series) -> Finding:
    """The real finding of a device with these series, in the window of the verdict."""
    moved = tuple(replace(s, time_ns=s.time_ns + verdict.window.begin_ns) for s in series)
    return ObserverCost().judge(Case(target, "", verdict.window, moved))[0]


def shown(source: ReportSource, verdict: Verdict) -> tuple[str, str, str]:
    """On a terminal, in Markdown, and the section of the page."""
    target = io.StringIO()
    print_verdict(source, verdict, Console(file=target, width=250))
    section = render_html(source, verdict).partition('<section id="observer">')[2].partition("</section>")[0]
    return target.getvalue(), render_markdown(source, verdict), section


def test_a_device_has_its_share_or_that_it_is_not_known(plain: tuple[ReportSource, Verdict]) -> None:
    """Measured by the agent; a black box with the time of its answers; a table is not spoken of."""
    source, verdict = plain
    n = int(verdict.window.seconds)
    cost = readings(COST, 0.02 * np.arange(n, dtype=np.float64), 1.0, object="source=agent")
    cores = readings("system.cpu.logical.count", np.full(n, 4.0), 1.0)
    took = readings("source.poll.duration", np.full(n, 0.012), 1.0, object="source=snmp")
    weighed = (found(verdict, "fw", cost, cores), found(verdict, "box", took), found(verdict, "table"))
    terminal, markdown, section = shown(source, replace(verdict, findings=(*verdict.findings, *weighed)))
    for text in (terminal, markdown, section):
        assert "the monitor took 0.5 %" in text
        assert "what the polls cost box is not known" in text
        assert "table: " not in text
    assert "Cost of the monitor" in render_html(source, replace(verdict, findings=(*verdict.findings, *weighed)))
    assert shown(source, verdict)[2] == ""
