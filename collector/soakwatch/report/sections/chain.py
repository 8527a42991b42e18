# ruff: noqa: E501 - lines of HTML are as long as they are
"""What broke first and what followed: the moments of all causes in order of time, over all targets, with the load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soakwatch.core.formatting import number, source_name, span_text, zoom_of
from soakwatch.core.units import show_seconds
from soakwatch.report.moments import first_failure_ns
from soakwatch.report.page import Page
from soakwatch_rules.causes import Cause, lag
from soakwatch_rules.rule import Mark, MarkKind, Outcome, Window

ORDER = 12
TITLE = "What broke first, and what followed"
_MOST, _SHOWN, _MOST_LASTING, _MOST_SILENT = 40, 12, 12, 8
_SAME = 5_000_000_000  # ns: silences and gaps that begin so near to one another are one
_TOLD = frozenset({Outcome.FAIL, Outcome.WARN, Outcome.INCONCLUSIVE})
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
{% macro moments(some) %}
<table class="chain">{{ m.caption("What happened, in order of time, over all targets") }}
<thead><tr><th>outcome</th><th>when (UTC)</th><th class="num">after the first</th><th>target</th><th>what happened</th>{% if loaded %}<th class="num">load then</th>{% endif %}</tr></thead><tbody>
{% for row in some %}
<tr{% if row.first %} class="first"{% endif %}><td>{% if row.outcome %}{{ m.badge(row.outcome) }}{% else %}<span class="badge not-applicable">{{ "event" if row.cause else "silent" }}</span>{% endif %}</td><td class="keep">{{ m.zoomed(row.zoom, to, row.when) }}</td><td class="num">{{ row.lag }}</td>
<td class="name">{{ row.target or "several" }}</td><td class="why">{% set link = links.get(row.place) if row.cause else "coverage" %}{% if link %}<a href="#{{ link }}">{{ row.text }}</a>{% else %}{{ row.text }}{% endif %}</td>{% if loaded %}<td class="num">{{ row.load or "–" }}</td>{% endif %}</tr>
{% endfor %}
</tbody></table>
{% endmacro %}
{% if rows %}
<div class="card scroll">{{ moments(rows[:shown]) }}
{% if rows|length > shown %}<details class="bulk"><summary>{{ rows|length - shown }} later moments</summary>{{ moments(rows[shown:]) }}</details>{% endif %}
{% if more %}<p class="soft">{{ more }} further moments stand with their causes below.</p>{% endif %}
<p class="soft">A time leads to that moment in the plots, a sentence to its evidence.{% if failed %} Lags count from the first moment of what failed; what came before has a minus.{% endif %}</p></div>
{% endif %}
{% if lasting %}
<div class="card scroll"><table>{{ m.caption("What has no moment of its own") }}
<thead><tr><th>outcome</th><th>judged over (UTC)</th><th>target</th><th>what has no moment of its own: it went on all the time</th></tr></thead><tbody>
{% for place, cause in lasting[:most_lasting] %}
<tr><td>{{ m.badge(cause.outcome) }}</td><td class="keep">{{ m.zoomed(zooms[place], to, spans[place]) }}</td><td class="name">{{ cause.target or "several" }}</td>
<td class="why">{% set link = links.get(place) %}{% if link %}<a href="#{{ link }}">{{ cause.headline|truncate(300) }}</a>{% else %}{{ cause.headline|truncate(300) }}{% endif %}</td></tr>
{% endfor %}
</tbody></table>{% if lasting|length > most_lasting %}<p class="soft">{{ lasting|length - most_lasting }} more are told below.</p>{% endif %}</div>
{% endif %}
{% if not rows and not lasting %}<p>Nothing broke.</p>{% endif %}
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A moment: of which cause (its place; none of a silence), what it came to by itself (None of an event or a
    silence), how long after the first failure, and the load then."""

    place: int
    cause: Cause | None
    outcome: Outcome | None
    target: str
    mark: Mark
    when: str
    lag: str
    text: str
    load: str
    zoom: str
    first: bool


def facts(page: Page) -> Mapping[str, object]:
    """The moments of what fails, warns or is in doubt; causes without a moment of their own apart."""
    told = [(place, cause) for place, cause in enumerate(page.verdict.causes) if cause.outcome in _TOLD]
    timed = [(place, cause) for place, cause in told if cause.timeline]
    lasting = [(place, cause) for place, cause in told if not cause.timeline and _objects(cause)]
    moments = sorted([*_ordered(timed), *_silences(page, timed)], key=lambda one: (one[3].begin_ns, one[0]))
    failed_ns = first_failure_ns(page.verdict)
    first_ns = min((mark.begin_ns for *_, mark in moments), default=0) if failed_ns is None else failed_ns
    run = page.verdict.window
    rows = [_row(page, one, first_ns) for one in moments]
    return {
        "rows": rows,
        "shown": _SHOWN,
        "more": sum(len(cause.timeline) for _, cause in timed) - sum(row.cause is not None for row in rows),
        "lasting": lasting,
        "most_lasting": _MOST_LASTING,
        "loaded": any(row.load for row in rows),
        "failed": failed_ns is not None,
        "links": page.causes_placed,
        "to": "overview" if page.keys else "findings",
        "zooms": {place: zoom_of(_clipped(cause.begin_ns, cause.end_ns, run)) for place, cause in lasting},
        "spans": {place: span_text(cause.begin_ns, cause.end_ns) for place, cause in lasting},
    }


def around(mark: Mark, run: Window) -> Window:
    """The stretch of the run that shows a moment and what is beside it."""
    end_ns = mark.begin_ns if mark.end_ns is None else mark.end_ns
    pad = max((end_ns - mark.begin_ns) // 2, 60_000_000_000)
    return _clipped(mark.begin_ns - pad, end_ns + pad, run)


def _clipped(begin_ns: int, end_ns: int, run: Window) -> Window:
    begin = min(max(begin_ns, run.begin_ns), run.end_ns)
    return Window(begin, max(min(end_ns, run.end_ns), begin + 1))


def _objects(cause: Cause) -> bool:
    """Whether something went on, rather than that it could not be judged."""
    return cause.outcome is not Outcome.INCONCLUSIVE


Moment = tuple[int, Cause | None, str, Mark]
"""The place of a cause, the cause, its target, and one of its moments; a silence has no cause."""


def _silences(page: Page, timed: Sequence[tuple[int, Cause]]) -> list[Moment]:
    """The longest silences of sources that no cause tells of: what does not answer may be what broke."""
    told = {
        (cause.target, mark.begin_ns // _SAME)
        for _, cause in timed
        for mark in cause.timeline
        if mark.kind is MarkKind.SILENCE
    }
    found = []
    for ledger in page.verdict.ledgers:
        name = source_name(ledger)
        for silence in ledger.silences:
            window = silence.window
            near = {(ledger.target, window.begin_ns // _SAME + step) for step in (-1, 0, 1)}
            if not silence.lost or near & told:
                continue
            lost = ", ".join(f"{number(count)} {how}" for how, count in sorted(silence.lost.items()) if count)
            text = f"{name} brought no answer for {show_seconds(window.seconds)}: {lost}"
            found.append((-window.seconds, (-1, None, ledger.target, Mark(window.begin_ns, window.end_ns, text))))
    found.sort(key=lambda one: (one[0], one[1][3].begin_ns, one[1][2]))
    return [moment for _, moment in found[:_MOST_SILENT]]


def _ordered(timed: Sequence[tuple[int, Cause]]) -> list[Moment]:
    """The moments by time: where they are too many the first of each cause, then those of what failed."""
    ranked = []
    for place, cause in timed:
        for nth, mark in enumerate(cause.timeline):
            ranked.append((nth > 0, list(Outcome).index(cause.outcome), nth, mark.begin_ns, place, cause, mark))
    ranked.sort(key=lambda one: one[:5])
    kept = sorted(ranked[:_MOST], key=lambda one: (one[3], one[1], one[4]))
    return [(place, cause, cause.target, mark) for *_, place, cause, mark in kept]


def _row(page: Page, moment: Moment, first_ns: int) -> Row:
    place, cause, target, mark = moment
    ends = mark.end_ns if mark.end_ns is not None and mark.end_ns - mark.begin_ns >= 10**9 else mark.begin_ns
    when = span_text(mark.begin_ns, ends) if ends > mark.begin_ns else span_text(mark.begin_ns, mark.begin_ns)[:19]
    after = (
        lag(first_ns, mark.begin_ns) if mark.begin_ns >= first_ns else lag(mark.begin_ns, first_ns).replace("+", "−")
    )
    return Row(
        place,
        cause,
        mark.outcome,
        target,
        mark,
        when,
        after,
        mark.text,
        page.load_at(mark.begin_ns),
        zoom_of(around(mark, page.verdict.window)),
        mark.begin_ns == first_ns and cause is not None and cause.outcome is Outcome.FAIL,
    )
