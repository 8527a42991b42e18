# ruff: noqa: E501 - lines of HTML are as long as they are
"""Headroom to each limit, and hours until it is reached: the worst first."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.report.headroom import rooms
from soakwatch.report.page import Page

ORDER = 26
TITLE = "Headroom"
_MOST, _FEW = 120, 20
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
{% macro rows(some) %}
<table class="limits">{{ m.caption("Headroom to each limit, the worst first") }}
<thead><tr><th>target</th><th>of</th><th class="num">highest</th><th class="num">at the end</th><th class="num">limit</th><th>limit of</th><th class="num">headroom</th><th>if it goes on</th></tr></thead><tbody>
{% for row in some %}
<tr{% if row.room < 0 %} class="beyond"{% endif %}><td class="name">{{ row.target }}</td><td class="name">{{ subject(row.about[0], row.about[1]) or "the target" }}</td><td class="num">{{ row.measured }}</td><td class="num">{{ row.at_end or "–" }}</td>
<td class="num">{{ row.limit }}</td><td>{% set link = placed.get(row.key) %}{% if link %}<a href="#{{ link }}">{{ row.of }}</a>{% else %}{{ row.of }}{% endif %}</td>
<td class="num">{% if row.room < 0 %}<span class="flag">! {{ row.room_text }}</span>{% else %}<span class="meter" aria-hidden="true"><span style="width:{{ row.filled }}%"></span></span> {{ row.room_text }}{% endif %}</td><td>{{ row.forecast or "–" }}</td></tr>
{% endfor %}
</tbody></table>
{% endmacro %}
<p class="soft">How much of each limit was left where the readings came nearest to it: first what is beyond its limit, what runs out within a week, what can run out at all, and then the limits of rules. “Highest” is a rule's own measure where the limit is a rule's; “at the end” is the median of the last twentieth of the run. Limits of zero (no restart, no crash, no drop) have no headroom: they held, or they are findings.</p>
{% if shown %}<div class="card scroll">{{ rows(shown[:few]) }}
{% if shown|length > few %}<details class="bulk"><summary>{{ shown|length - few }} with more headroom</summary>{{ rows(shown[few:]) }}</details>{% endif %}
{% if more %}<p class="soft">{{ more }} with still more headroom are in verdict.json.</p>{% endif %}
{% if unread %}<p class="soft">{{ unread }} further series with a stated limit were not looked at.</p>{% endif %}</div>
{% else %}<p>No limit was stated, by no rule and by no device.</p>{% endif %}
{% if zeros %}<p>{{ zeros }} {{ "thing" if zeros == 1 else "things" }} had to stay at zero, and did.</p>{% endif %}
"""


def facts(page: Page) -> Mapping[str, object]:
    """The rows, the worst first."""
    found, unread = rooms(page.source, page.verdict.findings)
    shown = [
        {
            "target": room.target,
            "about": room.about,
            "measured": room.measured,
            "at_end": room.at_end,
            "limit": room.limit,
            "of": room.of,
            "room": room.room,
            "room_text": room.room_text,
            "forecast": room.forecast,
            "filled": f"{100 * min(max(1 - room.room, 0), 1):.0f}",
            "key": id(room.finding),
        }
        for room in found[:_MOST]
    ]
    zeros = sum(f.limit == 0 and f.measured == 0 and f.outcome.value == "pass" for f in page.verdict.findings)
    return {
        "shown": shown,
        "more": len(found[_MOST:]),
        "few": _FEW,
        "unread": unread,
        "zeros": zeros,
        "placed": page.placed,
    }
