# ruff: noqa: E501 - lines of HTML are as long as they are
"""What could not be judged, and why: silence is never a pass."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.report.page import Page, worst_first
from soakwatch_rules.rule import Outcome

ORDER = 50
TITLE = "What could not be judged"
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
{% if rows %}
<div class="card scroll"><table>
<thead><tr><th>outcome</th><th>target</th><th>rule</th><th>of</th><th>why</th><th>what would settle it</th></tr></thead><tbody>
{% for f in rows %}
<tr><td>{{ m.badge(f.outcome) }}</td><td class="name">{{ f.target }}</td><td class="keep">{{ f.rule }}</td>
<td class="name">{{ subject(f.metric, f.object) or "the target" }}</td><td>{{ f.reason }}</td><td>{{ f.settle or "–" }}</td></tr>
{% endfor %}
</tbody></table></div>
{% else %}<p>Every rule found what it needs on every target.</p>{% endif %}
{% if silent %}<p><b>No rule looked at:</b> {{ silent|join(", ") }}.</p>{% endif %}
"""


def facts(page: Page) -> Mapping[str, object]:
    """Findings that are inconclusive or not applicable, and targets without any finding."""
    unjudged = {Outcome.INCONCLUSIVE, Outcome.NOT_APPLICABLE}
    judged = {finding.target for finding in page.verdict.findings}
    return {
        "rows": sorted((f for f in page.verdict.findings if f.outcome in unjudged), key=worst_first),
        "silent": sorted(target.target for target in page.verdict.targets if target.target not in judged),
    }
