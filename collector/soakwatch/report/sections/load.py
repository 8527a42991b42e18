# ruff: noqa: E501 - lines of HTML are as long as they are
"""The load: what each generator offered and sent, what was answered, what failed, and how long it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from soakwatch.core.formatting import extent, number, quantity, scale_of, small_share
from soakwatch.report.blocks import CONSOLE, Block, Text
from soakwatch.report.curves import Curve, curve_of
from soakwatch.report.load import (
    Figure,
    Generator,
    Trace,
    answered_share,
    failed_share,
    failures_in,
    figure_of,
)
from soakwatch.report.page import POINTS, Page
from soakwatch_rules.rule import Outcome, Window
from soakwatch_rules.traits import traits_of

ORDER = 34
TITLE = "Generator and load"
HEIGHT = 250
_MAX_PLOTTED, _MAX_LINES, _BRIEF = 4, 7, 6
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
{% for one in streams %}
<h3 class="name">{{ one.name }}</h3>
<dl class="facts">
{% for name, value in one.told %}<div><dt>{{ name }}</dt><dd>{{ value }}</dd></div>
{% endfor %}
</dl>
<div class="card scroll"><table>{{ m.caption("The load of " ~ one.name) }}
<thead><tr><td></td>{% for stretch in stretches %}<th class="num">{{ stretch }}</th>{% endfor %}</tr></thead><tbody>
{% for row in one.rows %}
<tr><th>{{ row.word }}</th>{% for main, range in row.cells %}<td class="num">{{ main }}{% if range %}<br><span class="soft">{{ range }}</span>{% endif %}</td>{% endfor %}</tr>
{% endfor %}
</tbody></table>
<p class="soft">Mean of the readings, below it lowest to highest. The mean of a latency quantile is the mean of what the generator reported
from reading to reading, not the quantile of the whole stretch.{% if one.missing %} This generator does not report: {{ one.missing }}.{% endif %}</p></div>
{% if one.plots %}<div class="grid">{% for title, element in one.plots %}<div class="card"><h4>{{ title }}</h4>{{ m.plot(element, height) }}</div>{% endfor %}</div>{% endif %}
{% else %}<p>No traffic generator was recorded: the load on the targets is not known.</p>
{% endfor %}
{% if unplotted %}<p class="soft">Only the first {{ most }} streams have plots.</p>{% endif %}
{% for target in silent %}<p><b class="name">{{ target }}</b> has the role generator, but recorded no load.</p>
{% endfor %}
"""


def facts(page: Page) -> Mapping[str, object]:
    """An account of each generator: for the run in brief, for each phase in a table, and over time."""
    run = page.verdict.window
    phases = page.verdict.phases or page.source.phases()
    stretches = [("the run", run), *((phase.name, phase.window) for phase in phases)]
    seen = {one.target for one in page.load}
    return {
        "streams": [_stream(page, one, stretches, draw=place < _MAX_PLOTTED) for place, one in enumerate(page.load)],
        "stretches": [name for name, _ in stretches],
        "silent": sorted(n for n, role in page.source.roles().items() if role == "generator" and n not in seen),
        "unplotted": len(page.load) > _MAX_PLOTTED,
        "most": _MAX_PLOTTED,
        "height": HEIGHT,
    }


def blocks(page: Page) -> Sequence[Block]:
    """What each generator did over the run in one sentence, and whether it was healthy."""
    lines = page.load_in(page.verdict.window)
    found: list[Block] = []
    for line in lines[:_BRIEF]:
        figures = ", ".join(_reading(figure) for figure in line.figures if figure.readings)
        found.append(Text(figures or "no sample", label=line.name, formats=CONSOLE))
    if len(lines) > _BRIEF:
        found.append(Text(f"… and {len(lines) - _BRIEF} more streams in the report", tone="soft", formats=CONSOLE))
    health = [f for f in page.verdict.findings if lines and traits_of(f.rule).generator]
    found += [
        Text(f"{finding.target}: {finding.reason}", outcome=finding.outcome, formats=CONSOLE)
        for finding in health
        if finding.outcome is not Outcome.NOT_APPLICABLE
    ]
    return found


def _reading(figure: Figure) -> str:
    spread = "" if figure.low == figure.high else f" ({extent(figure.low, figure.high, figure.unit)})"
    return f"{figure.word} {quantity(figure.mean, figure.unit)}{spread}"


def _stream(page: Page, one: Generator, stretches: Sequence[tuple[str, Window]], *, draw: bool) -> dict[str, object]:
    windows = [window for _, window in stretches]
    rows = [{"word": trace.word, "cells": [_cell(figure_of(trace, w)) for w in windows]} for trace in one.traces()]
    if one.answered is not None and one.offered is not None:
        rows.insert(
            2, {"word": "answered, of offered", "cells": [(quantity(answered_share(one, w), "1"), "") for w in windows]}
        )
    if one.failed is not None:
        place = next(n for n, row in enumerate(rows) if row["word"] == one.failed.word) + 1
        if one.answered is not None:
            rows.insert(
                place, {"word": "failed, of all", "cells": [(small_share(failed_share(one, w)), "") for w in windows]}
            )
        if one.failures is not None:
            rows.insert(
                place, {"word": "failed requests", "cells": [(number(failures_in(one, w)), "") for w in windows]}
            )
    missing = (
        []
        if not one.counts_requests
        else [
            word
            for word, known in (
                ("the offered rate", one.offered),
                ("the answered rate", one.answered),
                ("failures", one.failed),
                ("latency", one.latency),
            )
            if known is None
        ]
    )
    return {
        "name": one.name,
        "told": _brief(one, windows[0]),
        "rows": rows,
        "missing": ", ".join(missing),
        "plots": _plots(page, one) if draw else [],
    }


def _brief(one: Generator, run: Window) -> list[tuple[str, str]]:
    told = []
    if one.answered is not None:
        told.append(("answered, mean", _mean(figure_of(one.answered, run))))
    if one.offered is not None:
        told.append(("offered, mean", _mean(figure_of(one.offered, run))))
        told.append(("answered, of offered", quantity(answered_share(one, run), "1")))
    if one.failed is not None:
        failures, share = failures_in(one, run), failed_share(one, run)
        count = _mean(figure_of(one.failed, run)) if failures is None else number(failures)
        word = "failed, mean" if failures is None else "failed requests"
        told.append((word, count + ("" if share is None else f" ({small_share(share)})")))
    told += [(f"{trace.word}, mean", _mean(figure_of(trace, run))) for trace in (*one.packets, *one.bits)]
    if one.loss is not None:
        figure = figure_of(one.loss, run)
        told.append(("lost, mean", _mean(figure)))
        told.append(("lost, highest", quantity(figure.high, figure.unit)))
    if one.latency is not None:
        figure = figure_of(one.latency, run)
        told.append((f"{figure.word}, mean", _mean(figure)))
        told.append((f"{figure.word}, highest", quantity(figure.high, figure.unit)))
    return told


def _mean(figure: Figure) -> str:
    return quantity(figure.mean, figure.unit)


def _cell(figure: Figure) -> tuple[str, str]:
    if not figure.readings:
        return "no reading", ""
    if figure.low == figure.high:
        return _mean(figure), ""
    return _mean(figure), extent(figure.low, figure.high, figure.unit)


def _plots(page: Page, one: Generator) -> list[tuple[str, str]]:
    """Rates, failures and losses where there were any, and latency; other rates only where there is nothing else."""
    drawing = page.drawing
    made: list[tuple[str, str]] = []
    rates = [trace for trace in (one.offered, one.answered) if trace is not None]
    for traces in (one.packets, one.bits):
        if traces:
            told = " and ".join(trace.word for trace in traces) if len(traces) <= 2 else traces[0].word.split()[-1]
            element = drawing.draw(_curves(traces), names=_words(traces), load=False, everywhere=True, height=HEIGHT)
            made.append((told[0].upper() + told[1:], element))
    if one.loss is not None and float(one.loss.series.finite().values.max()) > 0:
        element = drawing.draw(_curves([one.loss]), names=["lost"], everywhere=True, height=HEIGHT)
        made.append(("Lost", element))
    if not rates and not made and one.rate is not None:
        unit = one.rate.series.trait.unit
        rates = [trace for trace in one.others if trace.series.trait.unit == unit][:_MAX_LINES]
    if rates:
        told = " and ".join(dict.fromkeys(trace.word for trace in rates)) if len(rates) <= 2 else "rates"
        element = drawing.draw(_curves(rates), names=_words(rates), load=False, everywhere=True, height=HEIGHT)
        made.append((told[0].upper() + told[1:], element))
    failed = [] if one.failed is None else [one.failed]
    if any(float(trace.series.finite().values.max()) > 0 for trace in failed):
        element = drawing.draw(_curves(failed), names=_words(failed), everywhere=True, height=HEIGHT)
        made.append(("Failed", element))
    if one.latencies:
        lines = one.latencies[-_MAX_LINES:]
        element = drawing.draw(_curves(lines), names=_words(lines), everywhere=True, height=HEIGHT)
        made.append(("Latency", element))
    return made


def _words(traces: Sequence[Trace]) -> list[str]:
    return [trace.word for trace in traces]


def _curves(traces: Sequence[Trace]) -> list[Curve]:
    """The lines in one common scale."""
    peak = max(float(abs(trace.series.finite().values).max()) for trace in traces)
    scale = scale_of(traces[0].series.trait.unit, peak)
    return [curve_of(trace.series, POINTS, scale) for trace in traces]
