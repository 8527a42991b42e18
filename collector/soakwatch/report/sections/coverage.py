# ruff: noqa: E501 - lines of HTML are as long as they are
"""How much of what should have been read was read, for each source."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.report.page import Page
from soakwatch.report.show import number, share_text, source_name, utc
from soakwatch.units import show_seconds
from soakwatch_rules.rule import Ledger

ORDER = 40
TITLE = "Coverage"
TEMPLATE = """\
{% if rows %}
<div class="card scroll"><table>
<thead><tr><th>source</th><th>the run, its longest hole and gaps hatched</th><th class="num">every</th><th class="num">answered</th><th class="num">coverage</th>
<th>lost</th><th>longest hole</th></tr></thead><tbody>
{% for row in rows %}
<tr><td class="name">{{ row.name }}</td>
<td><div class="strip{{ " never" if row.never }}">{% for left, width in row.holes %}<span style="left:{{ left }}%;width:{{ width }}%"></span>{% endfor %}</div></td>
<td class="num">{{ row.every }}</td><td class="num">{{ row.answered }}</td><td class="num">{{ row.coverage }}</td>
<td>{{ row.lost }}</td><td>{{ row.hole }}</td></tr>
{% if row.errors %}<tr><td></td><td colspan="6" class="soft">{% for error in row.errors %}<div>{{ error }}</div>{% endfor %}</td></tr>{% endif %}
{% endfor %}
</tbody></table></div>
{% else %}<p>Nothing was polled.</p>{% endif %}
{% if spans|length > 1 %}
<p><b>The monitor itself ran {{ spans|length }} times:</b> {% for span in spans %}{{ span.begin_ns|utc }} to {{ span.end_ns|utc }}{{ "; " if not loop.last }}{% endfor %}.</p>
{% endif %}
{% if faults %}
<details{% if faults|length <= 12 %} open{% endif %}><summary>Metrics that could not be read in looks that otherwise worked: {{ faults|length }}</summary>
<div class="card scroll"><table>
<thead><tr><th>source</th><th>metric</th><th>why</th><th class="num">times</th><th>first</th><th>last</th></tr></thead><tbody>
{% for source, fault in faults[:100] %}
<tr><td class="name">{{ source }}</td><td class="name">{{ subject(fault.metric, fault.object) }}</td><td>{{ fault.text }}</td>
<td class="num">{{ fault.count|number }}</td><td class="keep">{{ fault.first_ns|utc }}</td><td class="keep">{{ fault.last_ns|utc }}</td></tr>
{% endfor %}
</tbody></table>{% if faults|length > 100 %}<p class="soft">{{ faults|length - 100 }} more are in the record.</p>{% endif %}</div></details>
{% endif %}
"""


def facts(page: Page) -> Mapping[str, object]:
    """A strip and the account of each source; faults of single metrics below."""
    rows = [_row(page, ledger) for ledger in page.verdict.ledgers]
    names = {source.id: f"{source.target} {source.label}" for source in page.source.sources()}
    told = sorted(page.source.faults(), key=lambda f: (f.target, f.source, f.metric, f.object, f.first_ns, f.text))
    return {
        "rows": rows,
        "spans": page.source.spans(),
        "faults": [(names.get(fault.source, fault.target), fault) for fault in told],
    }


def _row(page: Page, ledger: Ledger) -> dict[str, object]:
    window, gap = page.verdict.window, ledger.longest_gap
    holes = []
    if gap is not None and gap.seconds > 2 * ledger.interval_s:
        holes.append(_place(page, gap.begin_ns, gap.end_ns))
    holes += [
        _place(page, event.begin_ns, event.end_ns)
        for event in page.events_in(ledger.target, window)
        if event.kind.endswith("gap") and event.end_ns is not None
    ]
    hole = "no answer ever" if gap is None else f"{show_seconds(gap.seconds)} from {utc(gap.begin_ns)}"
    return {
        "name": source_name(ledger),
        "holes": holes,
        "never": gap is None or not ledger.got,
        "every": show_seconds(ledger.interval_s),
        "answered": f"{number(ledger.got)} of {number(ledger.due)}",
        "coverage": share_text(ledger.coverage),
        "lost": ", ".join(f"{number(count)} {how}" for how, count in sorted(ledger.lost.items()) if count) or "none",
        "hole": hole,
        "errors": ledger.errors,
    }


def _place(page: Page, begin_ns: int, end_ns: int) -> tuple[str, str]:
    window = page.verdict.window
    length = max(window.end_ns - window.begin_ns, 1)
    left = min(max((begin_ns - window.begin_ns) / length, 0.0), 1.0)
    right = min(max((end_ns - window.begin_ns) / length, left), 1.0)
    return f"{left * 100:.3f}", f"{(right - left) * 100:.3f}"
