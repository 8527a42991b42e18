# ruff: noqa: E501 - lines of HTML are as long as they are
"""What changed in the set-up since the earlier run that was named."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.report.changed import changed
from soakwatch.report.page import Page

ORDER = 48
TITLE = "Changed since the earlier run"
_MOST, _LINES = 200, 200
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
<p>Held against the run <span class="name">{{ run }}</span>{% if not changes and not plan %}: the set-up is the same, as far as both records tell it{% endif %}.</p>
{% if changes %}<div class="card scroll"><table>{{ m.caption("What is another than in the earlier run") }}
<thead><tr><th>of</th><th>then</th><th>now</th></tr></thead><tbody>
{% for one in changes[:most] %}<tr><td class="name">{{ one.about }}</td><td class="name">{{ one.before or "–" }}</td><td class="name">{{ one.now or "–" }}</td></tr>
{% endfor %}</tbody></table>{% if changes|length > most %}<p class="soft">{{ changes|length - most }} more differ.</p>{% endif %}</div>{% endif %}
{% if plan %}<details{% if plan|length <= 30 %} open{% endif %}><summary>The plan is another: {{ plan|length }} lines of difference</summary><pre>{% for line in plan[:lines] %}{{ line }}
{% endfor %}</pre></details>{% endif %}
"""


def facts(page: Page) -> Mapping[str, object] | None:
    """Nothing where no earlier run was named."""
    found = changed(page.source, page.earlier)
    if found is None:
        return None
    return {"run": found.run, "changes": found.changes, "plan": found.plan, "most": _MOST, "lines": _LINES}
