# ruff: noqa: E501 - lines of HTML are as long as they are
"""How much of what should have been read was read, for each source, and when it was not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from soakwatch.core.formatting import number, share_text, source_name, utc, zoom_of
from soakwatch.core.units import show_seconds
from soakwatch.record.model import source_label
from soakwatch.report.losses import Cell, Loss, cells_of, losses_of, within
from soakwatch.report.page import Page
from soakwatch.report.sections.chain import around
from soakwatch_rules.rule import Ledger, Mark, Window

ORDER = 30
TITLE = "Coverage"
_CELLS, _LISTED = 600, 8
_WORDS = {
    "ok": "answered",
    "failed": "the source answered with an error, or not at all",
    "timeout": "no answer in time",
    "overrun": "previous poll still running",
    "missed": "the monitor was late",
    "held back": "not asked: a failing source is asked less often",
    "gap": "the monitor was not running",
}
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
{% if rows %}
<div class="card scroll"><table class="strips-table">{{ m.caption("How much each source answered") }}
<thead><tr><th>source</th><th>the run</th><th class="num">every</th><th class="num">answered</th><th class="num">coverage</th>
<th>lost</th><th>longest hole</th></tr></thead><tbody>
{% for row in rows %}
<tr><td class="name">{{ row.name }}{% if not row.required %} <span class="soft">(optional)</span>{% endif %}</td>
<td><div class="strip" role="img" aria-label="{{ row.coverage }} answered; lost: {{ row.lost }}">{% for cell in row.cells %}<span class="{{ cell.word|replace(" ", "-") }}" style="left:{{ cell.left }}%;width:{{ cell.width }}%;height:{{ cell.height }}%" title="{{ cell.title }}"></span>{% endfor %}</div><div class="ends" aria-hidden="true"><span>{{ window.begin_ns|utc }}</span><span>{{ window.end_ns|utc }}</span></div></td>
<td class="num">{{ row.every }}</td><td class="num">{{ row.answered }}</td><td class="num">{{ row.coverage }}</td>
<td>{{ row.lost }}</td><td>{{ row.hole }}</td></tr>
{% if row.errors %}<tr><td></td><td colspan="6" class="soft">{% for error in row.errors %}<div>{{ error }}</div>{% endfor %}</td></tr>{% endif %}
{% endfor %}
</tbody></table>
{% if words %}<p class="strips">{% for word, meaning in words %}<span class="strip"><span class="{{ word|replace(" ", "-") }}"></span></span> {{ word }}: {{ meaning }}{{ "; " if not loop.last }}{% endfor %}. The height is the share of lost polls: below 10 %, below half, or more; grey is where no poll is recorded.</p>{% endif %}</div>
{% if losses %}
<details{% if losses <= 12 %} open{% endif %}><summary>When polls were lost</summary>
<div class="card scroll"><table>{{ m.caption("When polls were lost") }}
<thead><tr><th>source</th><th>first lost (UTC)</th><th>last lost (UTC)</th><th class="num">lasted</th><th>how the polls ended</th></tr></thead><tbody>
{% for row in rows %}{% for loss, lasted in row.listed %}
<tr><td class="name">{{ row.name }}</td><td class="keep">{{ m.zoomed(zooms[loss], "overview", loss.begin_ns|utc) }}</td><td class="keep">{{ loss.end_ns|utc }}</td><td class="num">{{ lasted }}</td><td>{{ loss.words }}</td></tr>
{% endfor %}{% endfor %}
</tbody></table>
{% for row in rows if row.unlisted %}<p class="soft"><span class="name">{{ row.name }}</span>: {{ row.unlisted|number }} shorter stretches are in the strip only.</p>{% endfor %}</div></details>
{% endif %}
{% else %}<p>Nothing was polled.</p>{% endif %}
{% if spans|length > 1 %}
<p><b>The monitor itself ran {{ spans|length }} times:</b> {% for span in spans %}{{ span.begin_ns|utc }} to {{ span.end_ns|utc }}{{ "; " if not loop.last }}{% endfor %}.</p>
{% endif %}
{% if faults %}
<details{% if faults|length <= 12 %} open{% endif %}><summary>Metrics that could not be read in looks that otherwise worked: {{ faults|length }}</summary>
<div class="card scroll"><table>{{ m.caption("Metrics that could not be read") }}
<thead><tr><th>source</th><th>metric</th><th>why</th><th class="num">times</th><th>first</th><th>last</th></tr></thead><tbody>
{% for source, fault in faults[:100] %}
<tr><td class="name">{{ source }}</td><td class="name">{{ subject(fault.metric, fault.object) }}</td><td>{{ fault.text }}</td>
<td class="num">{{ fault.count|number }}</td><td class="keep">{{ fault.first_ns|utc }}</td><td class="keep">{{ fault.last_ns|utc }}</td></tr>
{% endfor %}
</tbody></table>{% if faults|length > 100 %}<p class="soft">{{ faults|length - 100 }} more are in the record.</p>{% endif %}</div></details>
{% endif %}
"""


@dataclass(frozen=True, slots=True)
class Row:
    """The account of one source in words, its strip, and the stretches in which it lost polls with their lengths."""

    name: str
    required: bool
    cells: tuple[Cell, ...]
    every: str
    answered: str
    coverage: str
    lost: str
    hole: str
    errors: tuple[str, ...]
    listed: tuple[tuple[Loss, str], ...]
    unlisted: int


def facts(page: Page) -> Mapping[str, object]:
    """A strip and the account of each source; the stretches in which polls were lost; faults of single metrics."""
    sources = page.source.sources()
    ids = {source_label(source, sources): source.id for source in sources}
    rows = [_row(page, ledger, ids.get(ledger.source)) for ledger in page.verdict.ledgers]
    seen = {cell.word for row in rows for cell in row.cells}
    names = {source.id: f"{source.target} {source.label}" for source in sources}
    told = sorted(page.source.faults(), key=lambda f: (f.target, f.source, f.metric, f.object, f.first_ns, f.text))
    zooms = {loss: zoom_of(_span(page, loss)) for row in rows for loss, _ in row.listed}
    return {
        "zooms": zooms,
        "window": page.verdict.window,
        "rows": rows,
        "words": [(word, meaning) for word, meaning in _WORDS.items() if word in seen],
        "losses": sum(len(row.listed) for row in rows),
        "spans": page.source.spans(),
        "faults": [(names.get(fault.source, fault.target), fault) for fault in told],
    }


def _span(page: Page, loss: Loss) -> Window:
    return around(Mark(loss.begin_ns, loss.end_ns, ""), page.verdict.window)


def _row(page: Page, ledger: Ledger, source: int | None) -> Row:
    gap, name, window = ledger.longest_gap, source_name(ledger), page.verdict.window
    cells: tuple[Cell, ...] = ()
    listed: tuple[Loss, ...] = ()
    more = 0
    if source is not None:
        polls = within(page.source.poll_outcomes(source), window)
        cells = cells_of(polls, window, _CELLS, round(ledger.interval_s * 1e9))
        listed, more = losses_of(polls, _LISTED)
    return Row(
        name=name,
        required=ledger.required,
        cells=cells,
        every=show_seconds(ledger.interval_s),
        answered=f"{number(ledger.got)} of {number(ledger.due)}"
        + (f", {number(ledger.recovered)} recovered late" if ledger.recovered else ""),
        coverage=share_text(ledger.coverage),
        lost=", ".join(f"{number(count)} {how}" for how, count in sorted(ledger.lost.items()) if count) or "none",
        hole="no answer ever" if gap is None else f"{show_seconds(gap.seconds)} from {utc(gap.begin_ns)}",
        errors=ledger.errors,
        listed=tuple((one, show_seconds((one.end_ns - one.begin_ns) * 1e-9 + ledger.interval_s)) for one in listed),
        unlisted=more,
    )
