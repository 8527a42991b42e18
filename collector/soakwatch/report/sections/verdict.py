# ruff: noqa: E501 - lines of HTML are as long as they are
"""The answer on the first screen: the verdict, the one plot that proves it, and what to make of it; then the targets."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.report.answer import answer_of, chain_title, issue_text
from soakwatch.report.matrix import matrix_of
from soakwatch.report.page import Page
from soakwatch.report.proof_plot import proof_plot

ORDER = 10
TITLE = ""
OPEN = True
_WIDE, _NARROW = (760, 300), (360, 160)
_MAX_ROWS = 20  # of the table of devices before the others are folded
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
{% macro cells(some) %}{% for row in some %}
<tr><th class="name"><a href="#target-{{ row.place }}">{{ m.mark(row.outcome) }}<span class="unseen">{{ row.outcome.value }} </span> {{ row.target }}</a></th>{% for cell in row.cells %}<td{% if cell.outcome %} class="{{ cell.outcome.value|replace(" ", "-") }}" title="{{ cell.outcome.value }}: {{ cell.rules }}"{% endif %}>{% if cell.outcome %}{{ m.mark(cell.outcome) }}{% if cell.outcome.value != "pass" %} {% if cell.rules|length < 24 %}{% for word in cell.rules.split("_") %}{{ "_" if not loop.first }}<wbr>{{ word }}{% endfor %}{% else %}{{ cell.count }}{% endif %}{% endif %}<span class="unseen"> {{ cell.outcome.value }}</span>{% else %}<span class="soft">·</span>{% endif %}</td>{% endfor %}</tr>{% endfor %}{% endmacro %}
<div class="banner {{ answer.outcome.value }}">
<h1>{{ m.badge(answer.outcome, answer.word if preliminary else none) }}
<span class="name">{{ answer.run }}</span> <span class="when" data-local="{{ window|zoom }}">{{ answer.when }}</span></h1>
<p class="headline">{{ answer.sentence }}</p>
</div>
<div class="answer{% if matrix %} fleet{% endif %}">
{% if wide %}<figure class="proof-plot"><figcaption><b>{{ wide.title }}</b></figcaption>
{% with plot = wide, size = "wide" %}{% include "proof_plot.html.jinja" %}{% endwith %}
{% with plot = narrow, size = "narrow" %}{% include "proof_plot.html.jinja" %}{% endwith %}
<ul class="legend">{% for kind, words in wide.legend %}<li><i class="{{ kind }}" aria-hidden="true"></i>{{ words }}</li>{% endfor %}</ul></figure>{% endif %}
{% if matrix %}<div class="matrix scroll"><table>{{ m.caption("Each device by kinds of trouble, the worst first") }}
<thead><tr><th>device</th>{% for family in matrix.families %}<th>{{ family }}</th>{% endfor %}</tr></thead><tbody>{{ cells(matrix.rows[:most_rows]) }}</tbody></table>
{% if matrix.rows|length > most_rows %}<details class="bulk"><summary>{{ matrix.rows|length - most_rows }} more devices</summary><table>{{ m.caption("Further devices") }}<tbody>{{ cells(matrix.rows[most_rows:]) }}</tbody></table></details>{% endif %}</div>{% endif %}
<div class="said">
<dl class="brief">
{% for name, text in answer.facts %}<div><dt>{{ name }}</dt><dd{% if name == "Since" and since_ms %} data-local="{{ since_ms }}"{% endif %}>{{ text }}</dd></div>
{% endfor %}</dl>
{% if answer.steps %}<h2>{{ chain_title }}</h2>
<ol class="steps">{% for step in answer.steps %}<li>{% if step.outcome %}{{ m.mark(step.outcome) }}<span class="unseen">{{ step.outcome.value }} </span>{% endif %} <time>{{ step.when }}</time>{% if step.after %} <span class="soft">{{ step.after }}</span>{% endif %} {% if several and step.target != answer.facts[0][1] and not step.text.startswith(step.target) %}<span class="name">{{ step.target }}</span> {% endif %}{% set link = links.get(step.cause) %}{% if link %}<a href="#{{ link }}">{{ step.text }}</a>{% else %}{{ step.text }}{% endif %}</li>
{% endfor %}</ol>
{% if answer.more_steps %}<p class="soft"><a href="#chain">{{ answer.more_steps }} more in the timeline</a></p>{% elif answer.steps|length == 1 %}<p class="soft">Nothing else failed or warned.</p>{% endif %}{% endif %}
</div>
<dl class="closing">
{% for name, text in answer.lines %}<div><dt>{{ name }}</dt><dd>{{ text }}</dd></div>
{% endfor %}</dl>
<p class="copy"><button type="button" id="copy" hidden>Copy as issue</button> <output id="copied" role="status"></output></p>
<textarea id="issue" class="unseen" readonly tabindex="-1" aria-hidden="true">{{ issue }}</textarea>
</div>
"""


def facts(page: Page) -> Mapping[str, object]:
    """The answer with its plot in two sizes, and the table of many devices."""
    answer = answer_of(page)
    matrix = matrix_of(page.verdict)
    since_ns = answer.since_ns
    return {
        "answer": answer,
        "preliminary": page.verdict.preliminary,
        "chain_title": chain_title(answer),
        "issue": issue_text(answer),
        "wide": proof_plot(page, answer.proof, *_WIDE, since_ns),
        "narrow": proof_plot(page, answer.proof, *_NARROW, since_ns),
        "matrix": matrix,
        "most_rows": _MAX_ROWS,
        "several": len(page.verdict.targets) > 1,
        "links": page.cause_anchors,
        "window": page.verdict.window,
        "since_ms": None if since_ns is None else since_ns // 10**6,
    }
