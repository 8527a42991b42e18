# ruff: noqa: E501 - lines of HTML are as long as they are
"""The overview: what every target did through the whole run, over one time axis, with the load and the findings."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from soakwatch.core.formatting import SYMBOLS
from soakwatch.report.page import Page
from soakwatch.report.panels import panels_of

ORDER = 23
TITLE = "Overview"
_OPEN = 4  # targets; the further ones are folded
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
<p class="soft">All plots share their time axis (UTC): zoom one, and all follow. Phases are shaded and named, grey is the load,
dashed verticals are events, and findings are marked at the bottom of a plot by number and shape.</p>
{% if findings %}<details><summary>The {{ findings|length }} findings by their numbers in the plots</summary><ol class="flags">
{% for number, f, link in findings %}<li value="{{ number }}">{{ m.badge(f.outcome) }} <span class="name">{{ f.target }}</span> {% if link %}<a href="#{{ link }}">{{ f.rule }}</a>{% else %}{{ f.rule }}{% endif %} <span class="name">{{ subject(f.metric, f.object) }}</span></li>
{% endfor %}</ol></details>{% endif %}
{% for target in targets %}
{% if target.folded %}<details class="card"><summary><span class="name">{{ target.name }}</span></summary>{% else %}<h3><span class="name">{{ target.name }}</span> <span class="soft">{{ target.role }}</span></h3>{% endif %}
{% for panel in target.panels %}
<div class="card panel"><h4>{{ panel.title }}</h4>
{% if panel.note %}<p class="soft">{{ panel.note[:1]|upper }}{{ panel.note[1:] }}.</p>{% endif %}
{% for place in panel.places if not place.small %}{{ m.plot(place.element, place.height) }}{% endfor %}
{% if panel.places|length > 1 %}<div class="multiples" style="display:grid;grid-template-columns:repeat(auto-fill,minmax(300px,1fr));gap:8px;margin-top:8px">{% for place in panel.places if place.small %}<figure class="small" style="margin:0;min-width:0"><figcaption class="name">{{ place.title }}</figcaption>{{ m.plot(place.element, place.height) }}</figure>{% endfor %}</div>{% endif %}
</div>
{% endfor %}
{% if target.folded %}</details>{% endif %}
{% endfor %}
"""


def facts(page: Page) -> Mapping[str, object] | None:
    """The panels of each target in order; nothing where nothing was recorded that could be drawn."""
    from soakwatch.report.overview import draw_panel, flags_of, numbered_findings  # Bokeh: only where it is drawn

    findings = page.verdict.findings
    window = page.verdict.window
    numbered_all = numbered_findings(findings)
    roles = page.source.roles()
    targets: list[dict[str, object]] = []
    drawn: set[int] = set()
    for name, panels in groupby(panels_of(page.source, window, findings), key=lambda panel: panel.target):
        rows = []
        for panel in panels:
            flags = flags_of(panel, numbered_all, window)
            drawn.update(flag.number for flag in flags)
            rows.append({"title": panel.title, "note": panel.note, "places": draw_panel(page.drawing, panel, flags)})
        folded = len(targets) >= _OPEN
        targets.append({"name": name, "role": roles.get(name, ""), "panels": rows, "folded": folded})
    if not targets:
        return None
    numbered = [(number, f, page.finding_anchors.get(id(f), "")) for number, f in numbered_all if number in drawn]
    return {"targets": targets, "findings": numbered, "symbols": SYMBOLS}
