# ruff: noqa: E501 - lines of HTML are as long as they are
"""What failed or warned first and what followed: the moments of all causes in order of time, with the load then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from soakwatch.core.formatting import span_text, zoom_of
from soakwatch.judge.problems import clause
from soakwatch.report.blocks import CONSOLE, Block, Cell, Column, Table, Text
from soakwatch.report.page import Page
from soakwatch.report.timeline import Chain, Row, chain_of, clipped

ORDER = 12
TITLE = "Timeline of failures and warnings"
ALWAYS = True
_SHOWN, _MAX_LASTING, _BRIEF = 12, 12, 10
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
{% macro moments(shown_rows) %}
<table class="chain">{{ m.caption("What happened, in order of time, over all targets") }}
<thead><tr><th>outcome</th><th>when (UTC)</th><th class="num">after first failure</th><th>target</th><th>what happened</th>{% if loaded %}<th class="num">load then</th>{% endif %}</tr></thead><tbody>
{% for row in shown_rows %}
<tr{% if row.first %} class="first"{% endif %}><td>{% if row.outcome %}{{ m.badge(row.outcome) }}{% else %}<span class="badge not-applicable">{{ "event" if row.cause else "silent" }}</span>{% endif %}</td><td class="keep">{{ m.zoomed(row.zoom, to, row.when) }}</td><td class="num">{{ row.lag }}</td>
<td class="name">{{ row.target or "several" }}</td><td class="why">{% set link = links.get(row.index) if row.cause else "coverage" %}{% if link %}<a href="#{{ link }}">{{ row.text }}</a>{% else %}{{ row.text }}{% endif %}</td>{% if loaded %}<td class="num">{{ row.load or "–" }}</td>{% endif %}</tr>
{% endfor %}
</tbody></table>
{% endmacro %}
{% if rows %}
<div class="card scroll">{{ moments(rows[:shown]) }}
{% if rows|length > shown %}<details class="bulk"><summary>{{ rows|length - shown }} later moments</summary>{{ moments(rows[shown:]) }}</details>{% endif %}
{% if more %}<p class="soft">{{ more }} further moments are listed with their causes below.</p>{% endif %}
<p class="soft">Click a time to zoom the plots, a sentence to see its evidence.{% if failed %} Offsets are relative to the first failure.{% endif %}</p></div>
{% endif %}
{% if lasting %}
<div class="card scroll"><table>{{ m.caption("Without a moment: judged over a whole stretch") }}
<thead><tr><th>outcome</th><th>judged over (UTC)</th><th>target</th><th>what was found</th></tr></thead><tbody>
{% for index, cause in lasting[:max_lasting] %}
<tr><td>{{ m.badge(cause.outcome) }}</td><td class="keep">{{ m.zoomed(zooms[index], to, spans[index]) }}</td><td class="name">{{ cause.target or "several" }}</td>
<td class="why">{% set link = links.get(index) %}{% if link %}<a href="#{{ link }}">{{ cause.headline|truncate(300) }}</a>{% else %}{{ cause.headline|truncate(300) }}{% endif %}</td></tr>
{% endfor %}
</tbody></table>{% if lasting|length > max_lasting %}<p class="soft">{{ lasting|length - max_lasting }} more are listed below.</p>{% endif %}</div>
{% endif %}
"""


def facts(page: Page) -> Mapping[str, object] | None:
    """What the page draws of the chain; None where nothing failed or warned."""
    chain = chain_of(page)
    if not chain.rows and not chain.lasting:
        return None
    run = page.verdict.window
    return {
        "rows": chain.rows,
        "shown": _SHOWN,
        "more": chain.left_out,
        "lasting": chain.lasting,
        "max_lasting": _MAX_LASTING,
        "loaded": chain.loaded,
        "failed": chain.failed,
        "links": page.cause_anchors,
        "to": "overview" if page.keys else "findings",
        "zooms": {index: zoom_of(clipped(cause.begin_ns, cause.end_ns, run)) for index, cause in chain.lasting},
        "spans": {index: span_text(cause.begin_ns, cause.end_ns) for index, cause in chain.lasting},
    }


def blocks(page: Page) -> Sequence[Block] | None:
    """The same as a table for a console, and a sentence for each cause without a moment."""
    chain = chain_of(page)
    blocks_found: list[Block] = [_table(chain)] if chain.rows else []
    for _, cause in chain.lasting[:_BRIEF]:
        lead = page.verdict.findings[cause.leading]
        stretch = f"over {span_text(cause.begin_ns, cause.end_ns)} UTC"
        text = f"{cause.target or 'several targets'}  {stretch}: {clause(lead, where=False)}"
        blocks_found.append(Text(text, outcome=cause.outcome, formats=CONSOLE))
    return blocks_found


def _table(chain: Chain) -> Table:
    """The moments; the day is in the heading where it is the same for all."""
    one_day = len({row.when[:10] for row in chain.rows}) == 1
    columns = [
        Column(f"{chain.rows[0].when[:10]} UTC" if one_day else "UTC", "time"),
        Column("offset", "number"),
        *([Column("load then")] if chain.loaded else []),
        Column("target", "name"),
        Column("what happened"),
    ]
    rows: list[list[Cell | str]] = [
        [
            row.when[11:19] if one_day else row.when[:19],
            Cell(row.lag, "strong"),
            *([row.load or "–"] if chain.loaded else []),
            _whose(row),
            Cell(row.text, "strong" if row.first else ""),
        ]
        for row in chain.rows
    ]
    return Table("What happened", tuple(columns), rows, CONSOLE, _SHOWN, left_out=chain.left_out)


def _whose(row: Row) -> Cell:
    """Whose moment it is; an event and a silence are no findings and have no outcome."""
    name = row.target or "several targets"
    return Cell(f"· {name}", "soft") if row.outcome is None else Cell(name, outcome=row.outcome)
