# ruff: noqa: E501 - lines of HTML are as long as they are
"""Every event of the run, planned or not."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.report.page import Page

ORDER = 60
TITLE = "Events"
_MAX_ROWS = 500
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
{% if rows %}
<div class="card scroll"><table>{{ m.caption("Events in order of time") }}
<thead><tr><th>start (UTC)</th><th>end (UTC)</th><th>target</th><th>kind</th><th>object</th><th>source</th><th>detail</th></tr></thead><tbody>
{% for stored in rows[:shown] %}{% set event = stored.event %}
<tr><td class="keep">{{ event.begin_ns|utc }}</td><td class="keep">{{ event.end_ns|utc if event.end_ns else "–" }}</td>
<td class="name">{{ event.target or "the run" }}</td><td><b>{{ event.kind }}</b></td><td class="name">{{ event.object }}</td><td>{{ stored.origin }}</td>
<td>{% for key, value in event.detail|dictsort %}{{ key }} {{ value }}{{ ", " if not loop.last }}{% endfor %}
{% if event.expect %} expected: {% for key, value in event.expect|dictsort %}{{ value }} {{ key }}{{ ", " if not loop.last }}{% endfor %}{% endif %}
{% if event.deadline_ns %} by {{ event.deadline_ns|utc }}{% endif %}</td></tr>
{% endfor %}
</tbody></table>{% if rows|length > shown %}<p class="soft">{{ rows|length - shown }} later events are in the record.</p>{% endif %}</div>
{% else %}<p>No event was recorded.</p>{% endif %}
"""


def facts(page: Page) -> Mapping[str, object]:
    """The events in the order in which they began."""
    rows = sorted(page.source.events(), key=lambda stored: (stored.event.begin_ns, stored.id))
    return {"rows": rows, "shown": _MAX_ROWS}
