# ruff: noqa: E501 - lines of HTML are as long as they are
"""The plan of the run, as it was written."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.report.page import Page

ORDER = 70
TITLE = "Plan"
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
{% if phases %}
<div class="card scroll"><table class="pairs">{{ m.caption("Phases") }}<thead><tr><th>phase</th><th>start (UTC)</th><th>end (UTC)</th><th class="num">length</th></tr></thead><tbody>
{% for phase in phases %}<tr><td>{{ phase.name }}</td><td>{{ phase.window.begin_ns|utc }}</td><td>{{ phase.window.end_ns|utc }}</td>
<td class="num">{{ phase.window.seconds|duration }}</td></tr>
{% endfor %}</tbody></table></div>
{% endif %}
{% if command %}<p>Started with</p><pre>{{ command }}</pre>{% endif %}
{% if plan %}<pre>{{ plan }}</pre>{% else %}<p>The record has no plan.</p>{% endif %}
"""


def facts(page: Page) -> Mapping[str, object]:
    """Phases as they were run, the command and the plan's text."""
    return {
        "phases": page.verdict.phases or page.source.phases(),
        "plan": page.source.meta("plan"),
        "command": page.source.meta("command"),
    }
