# ruff: noqa: E501 - lines of HTML are as long as they are
"""What could not be judged, and why: silence is never a pass."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.report.page import Page, worst_first
from soakwatch_rules.causes import doubts
from soakwatch_rules.rule import Outcome

ORDER = 28
TITLE = "What could not be judged"
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
{% if rows %}
<div class="card scroll"><table>{{ m.caption("What could not be judged, and to resolve") }}
<thead><tr><th>outcome</th><th>target</th><th>rule</th><th>of</th><th>why</th><th>to resolve</th></tr></thead><tbody>
{% for row in rows %}
<tr><td>{{ m.badge(row.outcome) }}</td><td class="name">{{ row.targets|join(", ") }}</td><td class="keep">{{ row.rule }}</td>
<td>{% if row.places|length > 1 %}{{ row.count }}: {% endif %}<span class="name">{{ row.about or "the target" }}</span></td><td>{{ row.why }}</td><td>{{ row.settle or "–" }}</td></tr>
{% endfor %}
</tbody></table></div>
{% else %}<p>Every rule found what it needs on every target.</p>{% endif %}
{% if silent %}<p><b>No rule looked at:</b> {{ silent|join(", ") }}.</p>{% endif %}
"""


def facts(page: Page) -> Mapping[str, object]:
    """What is inconclusive or does not apply, a row for each reason, and targets without any finding."""
    findings, unjudged = page.verdict.findings, {Outcome.INCONCLUSIVE, Outcome.NOT_APPLICABLE}
    judged = {finding.target for finding in findings}
    places = sorted(
        (p for p, f in enumerate(findings) if f.outcome in unjudged), key=lambda p: worst_first(findings[p])
    )
    return {
        "rows": doubts(findings, places),
        "silent": sorted(target.target for target in page.verdict.targets if target.target not in judged),
    }
