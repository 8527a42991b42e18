# ruff: noqa: E501 - lines of HTML are as long as they are
"""Warnings of live judging that did not last: said while the run went on, and taken back in the open."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.report.page import Page

ORDER = 55
TITLE = "Withdrawn"
_MOST = 200
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
<p class="soft">Said while the run went on, and not found again by a later look: a warm-up looks like a leak until it levels off.
The verdict rests on the whole run only.</p>
<div class="card scroll"><table>{{ m.caption("Withdrawn warnings") }}
<thead><tr><th>said</th><th>withdrawn (UTC)</th><th>target</th><th>rule</th><th>of</th><th>what was said</th></tr></thead><tbody>
{% for at_ns, f in rows[:most] %}
<tr><td>{{ m.badge(f.outcome) }}</td><td class="keep">{{ at_ns|utc }}</td><td class="name">{{ f.target }}</td><td class="keep">{{ f.rule }}</td>
<td class="name">{{ subject(f.metric, f.object) or "the target" }}</td><td>{{ f.reason }}</td></tr>
{% endfor %}
</tbody></table>{% if rows|length > most %}<p class="soft">{{ rows|length - most }} more are in the record.</p>{% endif %}</div>
"""


def facts(page: Page) -> Mapping[str, object] | None:
    """The withdrawn warnings in the order in which they were withdrawn; nothing where there was none."""
    rows = page.source.withdrawn()
    return {"rows": rows, "most": _MOST} if rows else None
