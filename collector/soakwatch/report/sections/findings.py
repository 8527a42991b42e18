# ruff: noqa: E501 - lines of HTML are as long as they are
"""The findings, worst first, grouped by target: what speaks against it as cards with plots, the rest as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from soakwatch.report.page import IDENTITIES, Page, worst_first
from soakwatch.report.show import extent, number, quantity, share_text, span_text
from soakwatch.units import show_seconds
from soakwatch_rules.rule import Finding, Outcome

ORDER = 20
TITLE = "Findings"
HEIGHT = 280
_MOST_PLOTS, _MOST_LINES, _MOST_CARDS, _FEW = 40, 7, 200, 20
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
{% for target in targets %}
<h3 id="target-{{ loop.index }}">{{ m.badge(target.verdict.outcome) }} <span class="name">{{ target.verdict.target }}</span>
<span class="soft">{{ target.verdict.role }}</span></h3>
{% if not target.cards and not target.passed %}<p class="soft">{{ target.verdict.reason }}</p>{% endif %}
{% for card in target.cards %}
<article class="card {{ card.finding.outcome.value }}" id="{{ card.anchor }}">
<h4>{{ m.badge(card.finding.outcome) }} {{ card.finding.rule }}
<span class="name">{{ subject(card.finding.metric, card.finding.object) }}</span></h4>
<p class="reason">{{ card.finding.reason }}</p>
<div class="split">
<table class="numbers"><tbody>
{% for name, value in card.numbers %}<tr><th>{{ name }}</th><td>{{ value }}</td></tr>
{% endfor %}
</tbody></table>
<div>
<p><b>Definition.</b> {{ card.finding.definition }} <span class="soft">(rule version {{ card.finding.version }})</span></p>
{% if card.finding.settle %}<p><b>Would settle it.</b> {{ card.finding.settle }}</p>{% endif %}
{% if card.finding.doubts %}<p><b>Doubts.</b></p><ul>{% for doubt in card.finding.doubts %}<li>{{ doubt }}</li>{% endfor %}</ul>{% endif %}
<p><b>Load in this window.</b>
{% for load in card.load %}<span class="name">{{ load.name }}</span>: {% for f in load.figures %}{{ f.word }} {% if f.readings %}{{ f.mean|quantity(f.unit) }}{% if f.low != f.high %} ({{ f.low|extent(f.high, f.unit) }}){% endif %}{% else %}without a reading{% endif %}{{ ", " if not loop.last }}{% endfor %}{% if not load.has_failures %}; failures were not recorded{% endif %}{% if not load.has_latency %}; latency was not recorded{% endif %}{{ "; " if not loop.last else "." }}
{% else %}No generator was recorded.{% endfor %}
{% if card.load %}<span class="soft">Means, lowest to highest in brackets.</span>{% endif %}</p>
{% if card.marks %}<p><b>Where.</b></p><ul class="events">
{% for mark in card.marks[:12] %}<li><time>{% if mark.end_ns %}{{ mark.begin_ns|span(mark.end_ns) }}{% else %}{{ mark.begin_ns|utc }}{% endif %}</time> {{ mark.text }}</li>{% endfor %}
{% if card.marks|length > 12 %}<li>and {{ card.marks|length - 12 }} more, marked in the plot</li>{% endif %}</ul>{% endif %}
{% if card.events %}<p><b>Events in this window.</b></p>{{ m.events(card.events) }}{% endif %}
</div></div>
{% if card.arithmetic %}<details><summary>The rule's arithmetic</summary><table class="pairs"><tbody>
{% for name, value in card.arithmetic %}<tr><th class="name">{{ name }}</th><td class="num">{{ value }}</td></tr>
{% endfor %}</tbody></table></details>{% endif %}
{% for element in card.plots %}{{ m.plot(element, height) }}{% endfor %}
{% if card.left_out %}<p class="soft">{{ card.left_out }}</p>{% endif %}
</article>
{% endfor %}
{% if target.not_told %}<p class="soft">{{ target.not_told }} more findings like these have no card here; verdict.json has them all.</p>{% endif %}
{% if target.passed %}
<div class="card scroll">{% if target.passed|length > few %}<details><summary>{{ target.passed|length }} findings without objection: {{ target.by_rule }}</summary>{% endif %}<table>
<thead><tr><th>outcome</th><th>rule</th><th>of</th><th>what was found</th><th class="num">measured</th><th class="num">limit</th>
<th class="num">samples</th><th class="num">smallest detectable</th></tr></thead><tbody>
{% for f in target.passed %}
<tr><td>{{ m.badge(f.outcome) }}</td><td class="keep">{{ f.rule }}</td><td class="name">{{ subject(f.metric, f.object) or "the target" }}</td>
<td class="told">{{ f.reason }}{% for doubt in f.doubts %}<div class="soft">{{ doubt }}</div>{% endfor %}</td><td class="num">{{ f.measured|quantity(f.unit) if f.measured is not none else "–" }}</td>
<td class="num">{{ f.limit|quantity(f.unit) if f.limit is not none else "–" }}</td>
<td class="num">{{ f.samples|number }}{% if f.expected %} of {{ f.expected|number }}{% endif %}</td>
<td class="num">{{ f.smallest_detectable|quantity(f.detectable_unit) if f.smallest_detectable is not none else "–" }}</td></tr>
{% endfor %}
</tbody></table>{% if target.passed|length > few %}</details>{% endif %}
<details><summary>Definitions of the rules in this table</summary><ul>
{% for rule, version, definition in target.definitions %}<li><b>{{ rule }}</b> (version {{ version }}): {{ definition }}</li>
{% endfor %}</ul></details></div>
{% endif %}
{% endfor %}
"""


def facts(page: Page) -> Mapping[str, object]:
    """Cards for what fails, is inconclusive or warns; a table for what passed."""
    drawn = 0
    targets = []
    ordered = sorted(page.verdict.findings, key=worst_first)
    for target in page.verdict.targets:
        own = [f for f in ordered if f.target == target.target]
        told = [f for f in own if f.outcome in {Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.WARN}]
        passed = [f for f in own if f.outcome is Outcome.PASS]
        cards = []
        for finding in told[:_MOST_CARDS]:
            card = _card(page, finding, draw=drawn < _MOST_PLOTS)
            drawn += len(card["plots"]) if isinstance(card["plots"], list) else 0
            cards.append(card)
        targets.append({
            "verdict": target,
            "cards": cards,
            "not_told": len(told) - len(cards),
            "passed": passed,
            "by_rule": ", ".join(f"{n} {rule}" for rule, n in sorted(Counter(f.rule for f in passed).items())),
            "definitions": sorted({(f.rule, f.version, f.definition) for f in passed}),
        })  # fmt: skip
    return {"targets": targets, "height": HEIGHT, "few": _FEW}


def anchor(page: Page, finding: Finding) -> str:
    """The name of a finding's card within the page."""
    return f"finding-{page.verdict.findings.index(finding) + 1}"


def _card(page: Page, finding: Finding, *, draw: bool) -> dict[str, object]:
    keys = [key for key in page.judged_by(finding) if key.metric not in IDENTITIES]
    plots, left_out = [], ""
    if keys and draw:
        curves = [page.curve(key) for key in keys[:_MOST_LINES]]
        first = curves[0]
        limit = None
        if finding.limit is not None and finding.unit == first.source_unit:
            limit = finding.limit * first.scale.factor
        alike = [curve for curve in curves if curve.unit == first.unit]
        for key in (curve.key for curve in alike):
            page.drawn.setdefault(key, anchor(page, finding))
        plots = [page.drawing.draw(alike, marks=finding.marks, judged=finding.window, limit=limit, height=HEIGHT)]
        if len(alike) < len(keys):
            left_out = f"{len(keys) - len(alike)} more series of this finding are not in this plot."
    elif keys:
        left_out = f"Not plotted here: the first {_MOST_PLOTS} findings have plots. See every judged series below."
    return {
        "finding": finding, "anchor": anchor(page, finding), "numbers": _numbers(finding),
        "arithmetic": [(name, number(float(value))) for name, value in sorted(finding.numbers.items())],
        "load": page.load_in(finding.window), "marks": finding.marks,
        "events": page.events_in(finding.target, finding.window), "plots": plots, "left_out": left_out,
    }  # fmt: skip


def _numbers(finding: Finding) -> list[tuple[str, str]]:
    unit = finding.unit
    rows = [("measured", quantity(finding.measured, unit)), ("limit", _stated(finding.limit, unit))]
    if finding.interval is not None:
        low, high = finding.interval
        rows.append(("interval", extent(low, high, unit)))
    expected = "" if finding.expected is None else f" of {number(finding.expected)} expected"
    rows += [
        ("samples", number(finding.samples) + expected),
        ("coverage", share_text(finding.coverage)),
        ("smallest detectable", _stated(finding.smallest_detectable, finding.detectable_unit)),
        ("window (UTC)", span_text(finding.window.begin_ns, finding.window.end_ns)),
        ("length", show_seconds(finding.window.seconds)),
    ]
    return rows


def _stated(value: float | None, unit: str) -> str:
    return "none stated" if value is None else quantity(value, unit)
