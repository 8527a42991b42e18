# ruff: noqa: E501 - lines of HTML are as long as they are
"""The closer looks: what the flight recorders of the devices saw around events and findings, ten times a second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from soakwatch.core.formatting import natural, quantity, subject
from soakwatch.record.source import SeriesKey
from soakwatch.report.closer import CloserLook
from soakwatch.report.curves import Curve, curve_of
from soakwatch.report.page import Page, worst_first
from soakwatch_agent.sample import object_labels
from soakwatch_rules.rule import Outcome

ORDER = 27
TITLE = "Flight-recorder captures"
HEIGHT, LOW = 230, 180
_MOST, _ROWS, _LINES, _SAID, _POINTS = 12, 200, 7, 3, 2000
_CPU, _DROPPED, _QUEUE = "recorder.cpu.utilization", "recorder.dropped", "recorder.queue.usage"
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
<p class="soft">What the flight recorders saw around events, findings and jumps of the CPU, mostly ten samples a second. The plots of one look share a
time axis of their own (UTC); numbered verticals are what it was fetched for. A share of CPU over a tenth of a second moves in steps of a tenth and is not judged.</p>
<div class="grid">
{% for one in drawn %}
<div class="card" id="{{ one.look.anchor }}">
<h3><span class="name">{{ one.look.target }}</span> <time>{{ one.look.window.begin_ns|span(one.look.window.end_ns) }}</time></h3>
<ol class="events">{% for mark in one.look.moments %}<li><time>{{ mark.begin_ns|utc }}</time> <b>{{ mark.text }}</b></li>{% endfor %}</ol>
{% if one.look.more %}<p class="soft">and {{ one.look.more }} more that happened meanwhile</p>{% endif %}
{% if one.findings %}<p class="soft">Shows something of {% for rule, of, outcome, link in one.findings %}{{ m.badge(outcome) }} {% if link %}<a href="#{{ link }}">{{ rule }}</a>{% else %}{{ rule }}{% endif %} <span class="name">{{ of }}</span>{{ ", " if not loop.last }}{% endfor %}.</p>{% endif %}
{% for element, caption, height in one.plots %}<p class="soft">{{ caption }}</p>
{{ m.plot(element, height) }}{% endfor %}
{% if one.still %}<p class="soft">{{ one.still|join("; ") }}.</p>{% endif %}
</div>
{% endfor %}
</div>
{% if others %}<div class="card scroll"><h3>Further looks</h3><p class="soft">Not drawn here: the record has their samples (recorder.*).</p><table class="pairs">{{ m.caption("Further looks") }}<tbody>
{% for look in others[:rows] %}<tr id="{{ look.anchor }}"><td class="keep">{{ look.window.begin_ns|span(look.window.end_ns) }}</td><td class="name">{{ look.target }}</td><td>{{ look.reason }}</td></tr>
{% endfor %}</tbody></table>{% if others|length > rows %}<p class="soft">and {{ others|length - rows }} more.</p>{% endif %}</div>{% endif %}
"""


def facts(page: Page) -> Mapping[str, object] | None:
    """A card for each of the first looks, those that show something of a failure before others; the rest as a table."""
    if not page.closer:
        return None
    against = [f for f in page.verdict.findings if f.outcome in {Outcome.FAIL, Outcome.WARN}]
    against.sort(key=worst_first)
    shown = {look: [f for f in against if look.shows(f)] for look in page.closer}
    ranks = [Outcome.FAIL, Outcome.WARN]
    ranked = sorted(page.closer, key=lambda look: min((ranks.index(f.outcome) for f in shown[look]), default=2))
    chosen = set(ranked[:_MOST])
    drawn = []
    for look in page.closer:
        if look in chosen:
            plots, still = _plots(page, look)
            said = [
                (f.rule, subject(f.metric, f.object), f.outcome, page.placed.get(id(f), ""))
                for f in shown[look][:_SAID]
            ]
            drawn.append({"look": look, "findings": said, "plots": plots, "still": still})
    return {"drawn": drawn, "others": [look for look in page.closer if look not in chosen], "rows": _ROWS}


def _plots(page: Page, look: CloserLook) -> tuple[list[tuple[str, str, int]], list[str]]:
    """CPU always; drops and queues where there is something to see, and otherwise in words."""
    plots, still = [], []
    marks = [mark for mark in look.moments if look.window.begin_ns <= mark.begin_ns < look.window.end_ns]
    for metric, caption, height in (
        (_CPU, "busy share of the CPU: all cores, and the busiest", HEIGHT),
        (_DROPPED, "packets dropped, by place", LOW),
        (_QUEUE, "memory of socket queues", LOW),
    ):
        curves = _curves(page, look, metric)
        moving = [curve for curve in curves if metric == _CPU or not curve.constant]
        resting = [curve for curve in curves if curve not in moving]
        if resting and metric == _DROPPED:
            still.append(f"no packet was dropped ({', '.join(_name(curve.key) for curve in resting)})")
        elif resting:
            still += [_at_rest(curve) for curve in resting]
        if moving:
            names = [_name(curve.key) for curve in moving]
            element = page.drawing.draw(
                moving,
                marks=marks,
                height=height,
                names=names,
                load=False,
                window=look.window,
                marked="what it was fetched for",
            )
            plots.append((element, caption, height))
    return plots, still


def _curves(page: Page, look: CloserLook, metric: str) -> list[Curve]:
    """The lines of one metric in one scale; of the cores the busiest."""
    begin_ns, end_ns = look.window.begin_ns, look.window.end_ns
    keys = sorted((k for k in page.keys if (k.target, k.metric) == (look.target, metric)), key=_order)
    read = [page.source.series(key, begin_ns, end_ns).finite() for key in keys]
    some = [series for series in read if len(series) > 1]
    if metric == _CPU:
        cores = [series for series in some if series.object != "core=all"]
        cores.sort(key=lambda series: -float(np.mean(series.values)))
        some = [series for series in some if series.object == "core=all"] + cores[: _LINES - 1]
    if not some:
        return []
    peaks = [curve_of(series, _POINTS) for series in some]
    top = max(peaks, key=lambda curve: 0.0 if curve.high is None else curve.high / curve.scale.factor)
    return [curve_of(series, _POINTS, top.scale) for series in some]


def _order(key: SeriesKey) -> tuple[bool, Sequence[tuple[int, str]]]:
    return key.object != "core=all", natural(key.object)


def _name(key: SeriesKey) -> str:
    label = ", ".join(object_labels(key.object).values()) or key.object
    if key.metric == _CPU:
        return "all cores" if label == "all" else f"core {label}"
    return label.upper() if key.metric == _QUEUE else label


def _at_rest(curve: Curve) -> str:
    value = None if curve.low is None else curve.low / curve.scale.factor
    return f"queues of {_name(curve.key)}: {quantity(value, curve.source_unit)} throughout"
