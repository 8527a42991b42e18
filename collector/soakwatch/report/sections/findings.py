# ruff: noqa: E501 - lines of HTML are as long as they are
"""The findings by their causes, grouped by target: failures, warnings and what is inconclusive as cards with plots, the rest as a table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soakwatch.core.formatting import extent, number, quantity, share_text, span_text, zoom_of
from soakwatch.core.units import show_seconds
from soakwatch.judge.problems import clause
from soakwatch.judge.verdict import TargetVerdict
from soakwatch.report.acknowledged import Acknowledgement
from soakwatch.report.page import Page, worst_first
from soakwatch.report.proof_subject import series_of
from soakwatch.report.summaries import confidence_text, has_own_frame, kind_words, undecided
from soakwatch.report.timeline import around
from soakwatch_model.finding import Finding, Mark, Outcome
from soakwatch_model.metric import BY_NAME, GAUGE
from soakwatch_model.roles import GENERATOR
from soakwatch_rules.causes import Cause, CauseKind, lags
from soakwatch_rules.traits import traits_of
from soakwatch_rules.wording.forecast import forecast_words
from soakwatch_rules.wording.words import counted

ORDER = 20
TITLE = "Findings"
OPEN = True
HEIGHT = 280
_MAX_PLOTS, _MAX_LINES, _MAX_CAUSES, _CARDS, _OPEN_TARGETS = 40, 7, 60, 3, 3
_ORDER = tuple(Outcome)
_OF_ITS_SERIES = frozenset(
    {
        *(f"{what}_{part}" for what in ("mean", "sd") for part in ("first", "middle", "last")),
        *("smallest_rise", "rise", "allowed", "level", "usual", "sigma", "first", "last"),
    }
)
"""Numbers of a rule's arithmetic that are in the unit of the series that it judged."""
_MAX_ROWS, _MIN_ROWS, _MAX_DEFINITIONS = 1500, 40, 60  # on the page; of one target at least
TEMPLATE = """\
{% import "macros.html.jinja" as m with context %}
{% macro evidence(card) %}
<div class="split">
<table class="numbers">{{ m.caption("Numbers of " ~ card.finding.rule) }}<tbody>
{% for name, value in card.numbers %}<tr><th>{{ name }}</th><td>{{ value }}</td></tr>
{% endfor %}
<tr><th>window (UTC)</th><td>{{ m.zoomed(card.zoom, card.to, card.window) }}</td></tr>
</tbody></table>
<div>
<p><b>Definition.</b> {{ card.finding.definition }} <span class="soft">(rule version {{ card.finding.version }})</span></p>
{% if card.finding.settle %}<p><b>To resolve.</b> {{ card.finding.settle }}</p>{% endif %}
{% if card.finding.doubts %}<p><b>Caveats</b></p><ul>{% for doubt in card.finding.doubts %}<li>{{ doubt }}</li>{% endfor %}</ul>{% endif %}
<p><b>Load in this window.</b>
{% for load in card.load %}<span class="name">{{ load.name }}</span>: {% for f in load.figures %}{{ f.word }} {% if f.readings %}{{ f.mean|quantity(f.unit) }}{% if f.low != f.high %} ({{ f.low|extent(f.high, f.unit) }}){% endif %}{% else %}no sample{% endif %}{{ ", " if not loop.last }}{% endfor %}{% for word in load.missing %}; {{ word }} {{ "were" if word == "failures" else "was" }} not recorded{% endfor %}{{ "; " if not loop.last else "." }}
{% else %}{% if generators %}{{ generators }} recorded none.{% else %}No traffic generator was recorded.{% endif %}{% endfor %}
{% if card.load %}<span class="soft">Means; lowest to highest in brackets.</span>{% endif %}</p>
{% if card.marks %}<p><b>Where.</b></p><ul class="events">
{% for mark, zoom in card.marks[:12] %}<li>{{ m.zoomed(zoom, card.to, m.when(mark.begin_ns, mark.end_ns)) }} {{ mark.text }}</li>{% endfor %}
{% if card.marks|length > 12 %}<li>and {{ card.marks|length - 12 }} more, marked in the plot</li>{% endif %}</ul>{% endif %}
{% if card.captures %}<p><b>Flight recorder.</b> {% for capture in card.captures[:few_captures] %}<a href="#{{ capture.anchor }}">{{ capture.window.begin_ns|span(capture.window.end_ns) }}</a> ({{ capture.reason }}){{ "; " if not loop.last }}{% endfor %}{% if card.captures|length > few_captures %}; and {{ card.captures|length - few_captures }} more{% endif %}</p>{% endif %}
{% if card.events %}<p><b>Events in this window.</b></p>{{ m.events(card.events) }}{% endif %}
</div></div>
{% if card.arithmetic %}<details class="bulk"><summary>The rule's arithmetic</summary><table class="pairs">{{ m.caption("The arithmetic of " ~ card.finding.rule) }}<tbody>
{% for name, value in card.arithmetic %}<tr><th class="name">{{ name }}</th><td class="num">{{ value }}</td></tr>
{% endfor %}</tbody></table></details>{% endif %}
{% for element in card.plots %}{{ m.plot(element, height) }}{% endfor %}
{% if card.left_out %}<p class="soft">{{ card.left_out }}</p>{% endif %}
{% endmacro %}
{% macro body(card, reason) %}
{% if reason %}<p class="reason">{{ reason }}</p>{% endif %}
{% if card.guide %}<dl class="guide">{% for name, text in card.guide %}<div><dt>{{ name }}</dt><dd>{% if name == "Change it with" %}<code>{{ text }}</code>{% else %}{{ text }}{% endif %}</dd></div>{% endfor %}</dl>{% endif %}
{{ m.said(card.acknowledged) }}<details class="evidence"><summary>Numbers, exact definition, events{% if card.plots %} and plot{% endif %}</summary>{% if card.guide_at %}<p class="soft">When this rule fails, what it misses and which key changes it: <a href="#{{ card.guide_at }}">above</a>.</p>{% endif %}{{ evidence(card) }}</details>
{% endmacro %}
{% macro single(card, reason) %}
<article class="card {{ card.finding.outcome.value|replace(" ", "-") }}" id="{{ card.anchor }}">
<h4>{{ m.badge(card.finding.outcome) }} {{ card.finding.rule }}
<span class="name">{{ subject(card.finding.metric, card.finding.object) }}</span></h4>
{{ body(card, reason) }}</article>
{% endmacro %}
{% macro leading(card, reason) %}
<div id="{{ card.anchor }}"><h4>{{ card.finding.rule }} <span class="name">{{ subject(card.finding.metric, card.finding.object) }}</span></h4>
{{ body(card, reason) }}</div>
{% endmacro %}
{% macro beside(card) %}
<details class="bulk card {{ card.finding.outcome.value|replace(" ", "-") }}" id="{{ card.anchor }}"><summary>{{ m.badge(card.finding.outcome) }} {{ card.finding.rule }}: <span class="told">{{ card.finding.sentence }}</span></summary>
{{ body(card, "") }}</details>
{% endmacro %}
{% macro rows(findings) %}
<table>{{ m.caption("Further findings") }}<thead><tr><th>outcome</th><th>target</th><th>rule</th><th>object</th><th>result</th><th class="num">measured</th><th class="num">limit</th></tr></thead><tbody>
{% for anchor, f, acknowledged in findings %}
<tr id="{{ anchor }}"><td>{{ m.badge(f.outcome) }}</td><td class="name">{{ f.target }}</td><td class="keep">{{ f.rule }}</td><td class="name">{{ subject(f.metric, f.object) or "the target" }}</td>
<td class="told">{{ f.sentence }}{% if f.settle %}<div class="soft">to resolve: {{ f.settle }}</div>{% endif %}{{ m.said(acknowledged) }}</td>
<td class="num">{{ f.measured|quantity(f.unit) if f.measured is not none else "–" }}</td><td class="num">{{ f.limit|quantity(f.unit) if f.limit is not none else "–" }}</td></tr>
{% endfor %}
</tbody></table>
{% endmacro %}
{% macro cause(shown) %}
{% if not shown.framed %}{{ single(shown.cards[0], shown.cause.headline) }}{% else %}
<article class="card cause {{ shown.cause.outcome.value }}" id="{{ shown.anchor }}">
<h4>{{ m.badge(shown.cause.outcome) }} {{ shown.words }}{% if shown.sure %} <span class="soft">confidence {{ shown.sure }}</span>{% endif %}</h4>
<p class="reason">{{ shown.cause.headline }}</p>
{% if shown.line %}<ol class="line">
{% for lag, mark, zoom in shown.line %}<li>{{ m.zoomed(zoom, shown.to, m.when(mark.begin_ns)) }} <b>{{ lag }}</b> {{ mark.text }}{% if mark.end_ns and mark.end_ns > mark.begin_ns %} <span class="soft">until {{ mark.end_ns|utc }}</span>{% endif %}</li>
{% endfor %}</ol>{% endif %}
{% for card in shown.cards %}{% if loop.first %}{{ leading(card, "" if shown.cause.headline.startswith(card.finding.sentence) else card.finding.sentence) }}{% else %}{{ beside(card) }}{% endif %}{% endfor %}
{% if shown.rest %}<details class="bulk"><summary>{{ shown.resting_words }} of this cause</summary><div class="scroll">{{ rows(shown.rest) }}{% if shown.resting > shown.rest|length %}<p class="soft">{{ shown.resting - shown.rest|length }} more are in verdict.json.</p>{% endif %}</div></details>{% endif %}
</article>{% endif %}
{% endmacro %}
{% if shared %}<h3>Several targets</h3>
{% for shown in shared %}{{ cause(shown) }}{% endfor %}{% endif %}
{% macro of_target(target, place) %}
{% if many %}<details class="bulk device {{ target.verdict.outcome.value|replace(" ", "-") }}" id="target-{{ place }}"{% if target.open %} open{% endif %}><summary>{{ m.badge(target.verdict.outcome) }} <span class="name">{{ target.verdict.target }}</span> <span class="soft">{{ target.words|truncate(150) }}</span></summary>{% else %}<h3 id="target-{{ place }}">{{ m.badge(target.verdict.outcome) }} <span class="name">{{ target.verdict.target }}</span>
<span class="soft">{{ target.verdict.role }}</span></h3>{% endif %}
{% if not target.causes and not target.undecided and not target.passed %}<p class="soft">{{ target.verdict.reason }}</p>{% endif %}
{% for shown in target.causes %}{{ cause(shown) }}{% endfor %}
{% if target.undecided %}<details class="bulk"><summary>{{ target.undecided_words }}</summary>{% for shown in target.undecided %}{{ cause(shown) }}{% endfor %}</details>{% endif %}
{% if target.further %}<div class="card scroll"><details class="bulk"><summary>{{ target.further|length }} further findings</summary>{{ rows(target.further) }}</details></div>{% endif %}
{% if target.left_out %}<p class="soft">{{ target.left_out }} more findings: see verdict.json.</p>{% endif %}
{% if target.passed %}
<details class="bulk"><summary>{{ target.passing }} {{ "check" if target.passing == 1 else "checks" }} passed: {{ target.by_rule }}</summary><div class="card scroll"><table>{{ m.caption("Checks that passed") }}
<thead><tr><th>outcome</th><th>rule</th><th>object</th><th>result</th><th class="num">measured</th><th class="num">limit</th>
<th class="num">samples</th><th class="num">smallest detectable</th></tr></thead><tbody>
{% for f in target.passed %}
<tr><td>{{ m.badge(f.outcome) }}</td><td class="keep">{{ f.rule }}</td><td class="name">{{ subject(f.metric, f.object) or "the target" }}</td>
<td class="told">{{ f.sentence }}{% for doubt in f.doubts %}<div class="soft">{{ doubt }}</div>{% endfor %}</td><td class="num">{{ f.measured|quantity(f.unit) if f.measured is not none else "–" }}</td>
<td class="num">{{ f.limit|quantity(f.unit) if f.limit is not none else "–" }}</td>
<td class="num">{{ f.samples|number }}{% if f.expected %} of {{ f.expected|number }}{% endif %}</td>
<td class="num">{{ f.smallest_detectable|quantity(f.detectable_unit) if f.smallest_detectable is not none else "–" }}</td></tr>
{% endfor %}
</tbody></table>{% if target.passing > target.passed|length %}<p class="soft">The {{ target.passed|length }} nearest to their limits are shown; {{ target.passing - target.passed|length }} more are in verdict.json.</p>{% endif %}</div></details>
{% endif %}
{% if many %}</details>{% endif %}
{% endmacro %}
{% for target in targets if not target.calm %}{{ of_target(target, target.place) }}{% endfor %}
{% for words, some in calm %}<details class="bulk"><summary>{{ words }}</summary>{% for target in some %}{{ of_target(target, target.place) }}{% endfor %}</details>{% endfor %}
{% if definitions %}<details class="bulk"><summary>Definitions of the rules that passed</summary><ul>
{% for rule, version, definition in definitions %}<li><b>{{ rule }}</b> (version {{ version }}): {{ definition }}</li>
{% endfor %}</ul></details>{% endif %}
{% if unsettled %}<details class="bulk"><summary>Undecided for several targets</summary>{% for shown in unsettled %}{{ cause(shown) }}{% endfor %}</details>{% endif %}
"""


Row = tuple[str, Finding, tuple[Acknowledgement, ...]]
"""A finding in a table: its element on the page, and who acknowledged it."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A cause on the page: the first finding of each rule as a card, the others as rows, each with its
    element; a time line with the lags, and where a moment is zoomed to."""

    cause: Cause
    anchor: str
    words: str
    sure: str
    line: tuple[tuple[str, Mark, str], ...]
    to: str
    cards: list[dict[str, object]]
    rest: list[Row]
    resting: int  # how many there are: ``rest`` may be fewer
    resting_words: str
    framed: bool  # a single finding needs no frame around its card


def facts(page: Page) -> Mapping[str, object]:
    """Causes in their order, each with a card of the first finding of a rule; a table for what passed."""
    verdict = page.verdict
    by_target: dict[str, list[int]] = {}
    for index, cause in enumerate(verdict.causes):
        by_target.setdefault(cause.target, []).append(index)
    folding = len(verdict.targets) > _OPEN_TARGETS
    most = max(_MAX_ROWS // max(len(verdict.targets), 1), _MIN_ROWS)
    of_several = by_target.get("", ())[:_MAX_CAUSES]
    shared, unsettled = (
        [
            _shown(page, index)
            for index in of_several
            if (verdict.causes[index].kind is CauseKind.UNSETTLED) is unsettled_ones
        ]
        for unsettled_ones in (False, True)
    )
    clauses: dict[str, list[str]] = {}
    for problem in verdict.problems:
        for name in problem.targets:
            clauses.setdefault(name, []).append(clause(problem.finding, where=False).removeprefix(f"{name} "))
    causes_of: list[list[Shown]] = []
    targets: list[dict[str, object]] = []
    first = {name: -n for n, problem in enumerate(reversed(verdict.problems)) for name in problem.targets}

    def rank(entry: tuple[int, TargetVerdict]) -> tuple[int, int]:
        return _ORDER.index(entry[1].outcome), first.get(entry[1].target, 1)

    for place, target in sorted(enumerate(verdict.targets, 1), key=rank):
        own = by_target.get(target.target, [])
        told = [_shown(page, index) for index in own[:_MAX_CAUSES]]
        decided = [shown for shown in told if not undecided(shown.cause)]
        open_ = [shown for shown in told if undecided(shown.cause)]
        causes_of.append([*decided, *open_])
        unread = sum(len(shown.cause.findings) for shown in open_)
        passed = [f for f in verdict.findings if f.target == target.target and f.outcome is Outcome.PASS]
        further = [p for index in own[_MAX_CAUSES:] for p in verdict.causes[index].findings]
        targets.append(
            {
                "verdict": target,
                "place": place,
                "words": "; ".join(clauses.get(target.target, ())) or target.reason,
                "open": target.outcome is Outcome.FAIL and len(targets) < _OPEN_TARGETS,
                "calm": folding and not decided and target.outcome in {Outcome.PASS, Outcome.NOT_APPLICABLE},
                "causes": decided,
                "undecided": open_,
                "undecided_words": f"{counted(unread, 'check')} undecided",
                "further": _rows(page, further[:most]),
                "left_out": len(further[most:]),
                "passed": sorted(sorted(passed, key=_margin)[:most], key=worst_first),
                "passing": len(passed),
                "by_rule": ", ".join(
                    f"{count} {rule}" for rule, count in sorted(Counter(f.rule for f in passed).items())
                ),
            }
        )
    calm = [target for target in targets if target["calm"]]
    lined = [*shared, *(shown for target in causes_of for shown in target), *unsettled]
    _explain_once([card for shown in lined for card in shown.cards])
    defined = {(f.rule, f.version, f.definition) for f in verdict.findings if f.outcome is Outcome.PASS and f.target}
    return {
        "shared": shared,
        "unsettled": unsettled,
        "targets": targets,
        "calm": [(f"{counted(len(calm), 'target')} without a failure or warning", calm)] if calm else [],
        "many": folding,
        "definitions": sorted(defined)[:_MAX_DEFINITIONS],
        "height": HEIGHT,
        "few_captures": _CARDS,
        "generators": " and ".join(t.target for t in page.verdict.targets if t.role == GENERATOR),
    }


def cause_anchor(page: Page, index: int) -> str:
    """The name of a cause's index within the page: that of its card where it has but one."""
    cause = page.verdict.causes[index]
    return f"cause-{index + 1}" if has_own_frame(page.verdict, cause) else _anchor(cause.leading)


def _anchor(index: int) -> str:
    return f"finding-{index + 1}"


def _shown(page: Page, index: int) -> Shown:
    cause = page.verdict.causes[index]
    first_of = {page.verdict.findings[number].rule: number for number in reversed(cause.findings)}
    page.cause_anchors[index] = cause_anchor(page, index)
    rows_only = cause.kind is CauseKind.UNSETTLED and len(cause.findings) > 1
    chosen = [] if rows_only else [number for number in cause.findings if number in first_of.values()][:_CARDS]
    rest = [number for number in cause.findings if number not in chosen]
    cards = [_card(page, number) for number in chosen]
    run = page.verdict.window
    return Shown(
        cause=cause,
        anchor=cause_anchor(page, index),
        words=kind_words(cause),
        sure="" if cause.confidence is None else confidence_text(cause.confidence),
        line=tuple((lag, mark, zoom_of(around(mark, run))) for lag, mark in lags(cause)),
        to=next((str(card["to"]) for card in cards), "overview"),
        cards=cards,
        rest=_rows(page, rest[: _MAX_ROWS // 4]),
        resting=len(rest),
        resting_words=counted(len(rest), "more finding" if cards else "finding"),
        framed=has_own_frame(page.verdict, cause),
    )


def _explain_once(cards: Sequence[dict[str, object]]) -> None:
    """Leave when a rule fails, what it misses and what changes it with its first finding; the others lead there."""
    first: dict[str, object] = {}
    for card in cards:
        finding = card["finding"]
        assert isinstance(finding, Finding)
        at = first.setdefault(finding.rule, card["anchor"])
        if card["guide"] and at != card["anchor"]:
            card["guide"], card["guide_at"] = (), at


def _margin(finding: Finding) -> float:
    """How near a finding came to its limit: zero is at it; what has no limit comes last."""
    if finding.measured is None or not finding.limit:
        return math.inf
    return abs(finding.limit - finding.measured) / abs(finding.limit)


def _rows(page: Page, indices: Sequence[int]) -> list[Row]:
    page.finding_anchors.update({id(page.verdict.findings[index]): _anchor(index) for index in indices})
    rows = [(_anchor(index), page.verdict.findings[index]) for index in indices]
    return [(anchor, finding, page.acknowledged(finding)) for anchor, finding in rows]


def _card(page: Page, index: int) -> dict[str, object]:
    finding, anchor = page.verdict.findings[index], _anchor(index)
    page.finding_anchors[id(finding)] = anchor
    draw = page.drawing.plots < _MAX_PLOTS
    keys = series_of(page, finding)
    plots, left_out = [], ""
    if keys and draw:
        curves = [page.curve(key) for key in keys[:_MAX_LINES]]
        first = curves[0]
        limit = None
        if finding.limit is not None and (finding.unit, finding.metric) == (first.source_unit, first.key.metric):
            limit = finding.limit * first.scale.factor
        alike = [curve for curve in curves if curve.unit == first.unit]
        for key in (curve.key for curve in alike):
            page.plotted.setdefault(key, anchor)
        plots = [page.drawing.draw(alike, marks=finding.marks, judged=finding.window, limit=limit, height=HEIGHT)]
        if len(alike) < len(keys):
            left_out = f"{len(keys) - len(alike)} more series of this finding are not plotted."
    elif keys:
        left_out = f"Not plotted here: the first {_MAX_PLOTS} findings have plots. See every judged series below."
    window = finding.window
    return {
        "window": span_text(window.begin_ns, window.end_ns),
        "zoom": zoom_of(window),
        "to": plots[0] if plots else "overview",
        "acknowledged": page.acknowledged(finding),
        "finding": finding,
        "guide": traits_of(finding.rule).guide.lines,
        "guide_at": "",
        "anchor": anchor,
        "numbers": _numbers(finding),
        "arithmetic": arithmetic(finding),
        "load": page.load_in(finding.window),
        "marks": [(mark, zoom_of(around(mark, page.verdict.window))) for mark in finding.marks],
        "captures": page.captures_for(finding),
        "events": page.events_in(finding.target, finding.window),
        "plots": plots,
        "left_out": left_out,
    }


def _numbers(finding: Finding) -> list[tuple[str, str]]:
    unit = finding.unit
    rows = [("why undecided", finding.why.value)] if finding.why is not None else []
    rows += [("measured", quantity(finding.measured, unit)), ("limit", _stated(finding.limit, unit))]
    if finding.interval is not None:
        low, high = finding.interval
        rows.append(("interval", extent(low, high, unit)))
    if finding.forecast is not None and (words := forecast_words(finding.forecast)):
        rows.append(("forecast", words))
    expected = "" if finding.expected is None else f" of {number(finding.expected)} expected"
    rows += [
        ("samples", number(finding.samples) + expected),
        ("coverage", share_text(finding.coverage)),
        ("smallest detectable", _stated(finding.smallest_detectable, finding.detectable_unit)),
        ("length", show_seconds(finding.window.seconds)),
    ]
    return rows


def _stated(value: float | None, unit: str) -> str:
    return "none" if value is None else quantity(value, unit)


def arithmetic(finding: Finding) -> list[tuple[str, str]]:
    """The numbers of a rule by name, each with its unit."""
    return [(name, _reckoned(name, float(value), finding)) for name, value in sorted(finding.numbers.items())]


def _reckoned(name: str, value: float, finding: Finding) -> str:
    """A number of a rule's arithmetic with the unit that its name says: seconds, or what its series is measured in,
    itself or per hour; a bare number where the name says neither."""
    if name.endswith("_s"):
        return quantity(value, "s")
    entry = BY_NAME.get(finding.metric)
    stem = name.removesuffix("_per_hour")
    if entry is None or entry.kind != GAUGE or stem not in _OF_ITS_SERIES:
        return number(value)
    return quantity(value, entry.unit if stem == name else f"{entry.unit}/h")
