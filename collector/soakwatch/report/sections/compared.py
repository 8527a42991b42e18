# ruff: noqa: E501 - lines of HTML are as long as they are
"""This run beside earlier ones, the figures of the load first."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.report.compared import compared, figures_of
from soakwatch.report.page import Page

ORDER = 25
TITLE = "Beside earlier runs"
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
<div class="card scroll"><table>{{ m.caption("Figures of this run and of earlier ones") }}
<thead><tr><th>figure</th><th>this run</th><th>earlier</th>{% if judged %}<th>change</th><th>said</th>{% endif %}</tr></thead>
<tbody>{% for row in rows %}<tr><th>{{ row.about }}</th><td>{{ row.now }}</td><td>{{ row.before }}</td>{% if judged %}<td>{{ row.change }}</td><td>{{ row.outcome.value if row.outcome else "" }}{% if row.told %} ({{ row.told }}){% endif %}</td>{% endif %}</tr>
{% endfor %}</tbody></table></div>
"""


def facts(page: Page) -> Mapping[str, object] | None:
    """What was compared; without the rule that does so the figures of both runs; None where no run was named."""
    rows = compared(page.verdict)
    beside = rows or figures_of(page)
    return {"rows": beside, "judged": bool(rows)} if beside else None
