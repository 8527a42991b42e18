"""The load: what each generator offered and sent, what was answered, what failed, and how long it took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from soakwatch.core.formatting import extent, number, quantity, scale_of, small_share
from soakwatch.report.blocks import CONSOLE, Block, Layout, Text
from soakwatch.report.curves import Curve, curve_of
from soakwatch.report.load import (
    LoadTrace,
    TraceFigure,
    TrafficGenerator,
    answered_share,
    failed_share,
    failures_in,
    figure_of,
)
from soakwatch.report.page import POINTS, Page
from soakwatch_model.finding import Outcome
from soakwatch_model.roles import GENERATOR
from soakwatch_model.window import Window
from soakwatch_rules.traits import Judges, traits_of

ORDER = 34
TITLE = "Generator and load"
HEIGHT = 250
_MAX_PLOTTED, _MAX_LINES, _BRIEF = 4, 7, 6


def _facts(page: Page) -> Mapping[str, object]:
    """An account of each generator: for the run in brief, for each phase in a table, and over time."""
    run = page.verdict.window
    phases = page.verdict.phases or page.source.phases()
    stretches = [("the run", run), *((phase.name, phase.window) for phase in phases)]
    seen = {generator.target for generator in page.load}
    return {
        "streams": [
            _stream(page, generator, stretches, draw=index < _MAX_PLOTTED) for index, generator in enumerate(page.load)
        ],
        "stretches": [name for name, _ in stretches],
        "silent": sorted(n for n, role in page.source.roles().items() if role == GENERATOR and n not in seen),
        "unplotted": len(page.load) > _MAX_PLOTTED,
        "most": _MAX_PLOTTED,
        "height": HEIGHT,
    }


def blocks(page: Page) -> Sequence[Block]:
    """What each generator did in each phase; on a console over the run in one sentence, and whether it was healthy."""
    lines = page.load_in(page.verdict.window)
    drawn: list[Block] = [Layout("load", partial(_facts, page))]
    for line in lines[:_BRIEF]:
        figures = ", ".join(_reading(figure) for figure in line.figures if figure.readings)
        drawn.append(Text(figures or "no sample", label=line.name, formats=CONSOLE))
    if len(lines) > _BRIEF:
        drawn.append(Text(f"… and {len(lines) - _BRIEF} more streams in the report", tone="soft", formats=CONSOLE))
    health = [f for f in page.verdict.findings if lines and traits_of(f.rule).judges is Judges.GENERATOR]
    drawn += [
        Text(f"{finding.target}: {finding.sentence}", outcome=finding.outcome, formats=CONSOLE)
        for finding in health
        if finding.outcome is not Outcome.NOT_APPLICABLE
    ]
    return drawn


def _reading(figure: TraceFigure) -> str:
    spread = "" if figure.low == figure.high else f" ({extent(figure.low, figure.high, figure.unit)})"
    return f"{figure.word} {quantity(figure.mean, figure.unit)}{spread}"


def _stream(
    page: Page, generator: TrafficGenerator, stretches: Sequence[tuple[str, Window]], *, draw: bool
) -> dict[str, object]:
    windows = [window for _, window in stretches]
    kinds = {
        "the offered rate": generator.offered,
        "the answered rate": generator.answered,
        "failures": generator.failed,
        "latency": generator.latency,
    }
    missing = [word for word, trace in kinds.items() if trace is None] if generator.counts_requests else []
    return {
        "name": generator.name,
        "told": _brief(generator, windows[0]),
        "rows": list(_rows(generator, windows)),
        "missing": ", ".join(missing),
        "plots": _plots(page, generator) if draw else [],
    }


def _rows(generator: TrafficGenerator, windows: Sequence[Window]) -> Iterator[dict[str, object]]:
    """A row for each trace, with a cell for each window; shares stand below what they are shares of."""
    for trace in generator.traces():
        yield {"word": trace.word, "cells": [_cell(figure_of(trace, w)) for w in windows]}
        if trace is generator.answered and generator.offered is not None:
            shares = [(quantity(answered_share(generator, w), "1"), "") for w in windows]
            yield {"word": "answered, of offered", "cells": shares}
        if trace is generator.failed and generator.failures is not None:
            yield {"word": "failed requests", "cells": [(number(failures_in(generator, w)), "") for w in windows]}
        if trace is generator.failed and generator.answered is not None:
            yield {
                "word": "failed, of all",
                "cells": [(small_share(failed_share(generator, w)), "") for w in windows],
            }


def _brief(generator: TrafficGenerator, run: Window) -> list[tuple[str, str]]:
    facts = []
    if generator.answered is not None:
        facts.append(("answered, mean", _mean(figure_of(generator.answered, run))))
    if generator.offered is not None:
        facts.append(("offered, mean", _mean(figure_of(generator.offered, run))))
        facts.append(("answered, of offered", quantity(answered_share(generator, run), "1")))
    if generator.failed is not None:
        failures, share = failures_in(generator, run), failed_share(generator, run)
        count = _mean(figure_of(generator.failed, run)) if failures is None else number(failures)
        word = "failed, mean" if failures is None else "failed requests"
        facts.append((word, count + ("" if share is None else f" ({small_share(share)})")))
    facts += [(f"{trace.word}, mean", _mean(figure_of(trace, run))) for trace in (*generator.packets, *generator.bits)]
    if generator.loss is not None:
        figure = figure_of(generator.loss, run)
        facts.append(("lost, mean", _mean(figure)))
        facts.append(("lost, highest", quantity(figure.high, figure.unit)))
    if generator.latency is not None:
        figure = figure_of(generator.latency, run)
        facts.append((f"{figure.word}, mean", _mean(figure)))
        facts.append((f"{figure.word}, highest", quantity(figure.high, figure.unit)))
    return facts


def _mean(figure: TraceFigure) -> str:
    return quantity(figure.mean, figure.unit)


def _cell(figure: TraceFigure) -> tuple[str, str]:
    if not figure.readings:
        return "no sample", ""
    if figure.low == figure.high:
        return _mean(figure), ""
    return _mean(figure), extent(figure.low, figure.high, figure.unit)


def _plots(page: Page, generator: TrafficGenerator) -> list[tuple[str, str]]:
    """Rates, failures and losses where there were any, and latency; other rates only where there is nothing else."""
    drawing = page.drawing
    plotted: list[tuple[str, str]] = []
    rates = [trace for trace in (generator.offered, generator.answered) if trace is not None]
    for traces in (generator.packets, generator.bits):
        if traces:
            title = " and ".join(trace.word for trace in traces) if len(traces) <= 2 else traces[0].word.split()[-1]
            element = drawing.draw(_curves(traces), names=_words(traces), load=False, everywhere=True, height=HEIGHT)
            plotted.append((title[0].upper() + title[1:], element))
    if generator.loss is not None and float(generator.loss.series.finite().values.max()) > 0:
        element = drawing.draw(_curves([generator.loss]), names=["lost"], everywhere=True, height=HEIGHT)
        plotted.append(("Lost", element))
    if not rates and not plotted and generator.rate is not None:
        unit = generator.rate.series.trait.unit
        rates = [trace for trace in generator.others if trace.series.trait.unit == unit][:_MAX_LINES]
    if rates:
        title = " and ".join(dict.fromkeys(trace.word for trace in rates)) if len(rates) <= 2 else "rates"
        element = drawing.draw(_curves(rates), names=_words(rates), load=False, everywhere=True, height=HEIGHT)
        plotted.append((title[0].upper() + title[1:], element))
    failed = [] if generator.failed is None else [generator.failed]
    if any(float(trace.series.finite().values.max()) > 0 for trace in failed):
        element = drawing.draw(_curves(failed), names=_words(failed), everywhere=True, height=HEIGHT)
        plotted.append(("Failed", element))
    if generator.latencies:
        lines = generator.latencies[-_MAX_LINES:]
        element = drawing.draw(_curves(lines), names=_words(lines), everywhere=True, height=HEIGHT)
        plotted.append(("Latency", element))
    return plotted


def _words(traces: Sequence[LoadTrace]) -> list[str]:
    return [trace.word for trace in traces]


def _curves(traces: Sequence[LoadTrace]) -> list[Curve]:
    """The lines in one common scale."""
    peak = max(float(abs(trace.series.finite().values).max()) for trace in traces)
    scale = scale_of(traces[0].series.trait.unit, peak)
    return [curve_of(trace.series, POINTS, scale) for trace in traces]
