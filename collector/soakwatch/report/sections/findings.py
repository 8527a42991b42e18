"""The findings by cause and target: what failed, warned or is undecided as cards with plots, the rest as a table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from soakwatch.core.formatting import extent, number, quantity, share_text, span_text, zoom_of
from soakwatch.core.units import show_seconds
from soakwatch.diagnose.wording import looks_words
from soakwatch.judge.problems import clause
from soakwatch.judge.verdict import TargetVerdict
from soakwatch.report.blocks import Block, Layout
from soakwatch.report.page import Acknowledgement, Page, worst_first
from soakwatch.report.proof_subject import series_of
from soakwatch.report.summaries import confidence_text, has_own_frame, kind_words, undecided
from soakwatch.report.timeline import around
from soakwatch_model.finding import Finding, Mark, Outcome
from soakwatch_model.metric import BY_NAME, GAUGE
from soakwatch_model.roles import GENERATOR
from soakwatch_rules.causes import Cause, CauseKind, lags
from soakwatch_rules.traits import traits_of
from soakwatch_rules.wording.forecast import forecast_words
from soakwatch_rules.wording.quantities import counted

ORDER = 20
TITLE = "Findings"
OPEN = True
HEIGHT = 280
_MAX_PLOTS, _MAX_LINES, _MAX_CAUSES, _CARDS, _OPEN_TARGETS = 40, 7, 60, 3, 3
_OF_ITS_SERIES = frozenset(
    {
        *(f"{what}_{part}" for what in ("mean", "sd") for part in ("first", "middle", "last")),
        *("smallest_rise", "rise", "allowed", "level", "usual", "sigma", "first", "last"),
    }
)
"""Numbers of a rule's arithmetic that are in the unit of the series that it judged."""
_MAX_ROWS, _MIN_ROWS, _MAX_DEFINITIONS = 1500, 40, 60  # on the page; of one target at least


Row = tuple[str, Finding, tuple[Acknowledgement, ...]]
"""A finding in a table: its element on the page, and who acknowledged it."""


@dataclass(frozen=True, slots=True)
class ShownCause:
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


def blocks(page: Page) -> Sequence[Block]:
    """Causes in their order, each with a card of the first finding of a rule; a table for what passed."""
    return (Layout("findings", partial(_facts, page)),)


def _facts(page: Page) -> Mapping[str, object]:
    """What the page draws of the findings, the targets in the order in which they failed."""
    verdict = page.verdict
    by_target: dict[str, list[int]] = {}
    for index, cause in enumerate(verdict.causes):
        by_target.setdefault(cause.target, []).append(index)
    of_several = by_target.get("", ())[:_MAX_CAUSES]
    # A cause gets its plots and anchors when it is made: causes are made in the order in which they are read.
    shared, unsettled = (
        [_shown(page, n) for n in of_several if (verdict.causes[n].kind is CauseKind.UNSETTLED) is unsettled_ones]
        for unsettled_ones in (False, True)
    )
    first = {name: -n for n, problem in enumerate(reversed(verdict.problems)) for name in problem.targets}

    def rank(entry: tuple[int, TargetVerdict]) -> tuple[int, int]:
        return entry[1].outcome.rank, first.get(entry[1].target, 1)

    lined, targets = [*shared], []
    for place, target in sorted(enumerate(verdict.targets, 1), key=rank):
        own = by_target.get(target.target, [])
        told = sorted((_shown(page, n) for n in own[:_MAX_CAUSES]), key=lambda shown: undecided(shown.cause))
        further = [f for n in own[_MAX_CAUSES:] for f in verdict.causes[n].findings]
        targets.append(_target(page, target, told, further) | {"place": place})
        targets[-1]["open"] = target.outcome is Outcome.FAIL and len(targets) <= _OPEN_TARGETS
        lined += told
    calm = [target for target in targets if target["calm"]]
    _explain_once([card for shown in (*lined, *unsettled) for card in shown.cards])
    defined = {(f.rule, f.version, f.definition) for f in verdict.findings if f.outcome is Outcome.PASS and f.target}
    return {
        "shared": shared,
        "unsettled": unsettled,
        "targets": targets,
        "calm": [(f"{counted(len(calm), 'target')} without a failure or warning", calm)] if calm else [],
        "many": len(verdict.targets) > _OPEN_TARGETS,
        "definitions": sorted(defined)[:_MAX_DEFINITIONS],
        "height": HEIGHT,
        "few_captures": _CARDS,
        "generators": " and ".join(t.target for t in verdict.targets if t.role == GENERATOR),
    }


def _target(page: Page, target: TargetVerdict, told: Sequence[ShownCause], further: Sequence[int]) -> dict[str, object]:
    """One target: its causes as ``told``, the ``further`` findings as rows, and what passed, the nearest to its limit
    first. With many targets each has fewer rows, and one without a failure or warning is folded."""
    verdict = page.verdict
    most = max(_MAX_ROWS // len(verdict.targets), _MIN_ROWS)
    decided = [shown for shown in told if not undecided(shown.cause)]
    open_ = [shown for shown in told if undecided(shown.cause)]
    own = [problem for problem in verdict.problems if target.target in problem.targets]
    clauses = [clause(problem.finding, where=False).removeprefix(f"{target.target} ") for problem in own]
    passed = [f for f in verdict.findings if f.target == target.target and f.outcome is Outcome.PASS]
    unread = sum(len(shown.cause.findings) for shown in open_)
    folded = len(verdict.targets) > _OPEN_TARGETS and not decided
    return {
        "verdict": target,
        "words": "; ".join(clauses) or target.reason,
        "calm": folded and target.outcome in {Outcome.PASS, Outcome.NOT_APPLICABLE},
        "causes": decided,
        "undecided": open_,
        "undecided_words": f"{counted(unread, 'check')} undecided",
        "further": _rows(page, further[:most]),
        "left_out": len(further[most:]),
        "passed": sorted(sorted(passed, key=_margin)[:most], key=worst_first),
        "passing": len(passed),
        "by_rule": ", ".join(f"{count} {rule}" for rule, count in sorted(Counter(f.rule for f in passed).items())),
    }


def cause_anchor(page: Page, index: int) -> str:
    """The element that a link to a cause leads to: its frame, or its card if it has only one."""
    cause = page.verdict.causes[index]
    return f"cause-{index + 1}" if has_own_frame(page.verdict, cause) else _anchor(cause.leading)


def _anchor(index: int) -> str:
    return f"finding-{index + 1}"


def _shown(page: Page, index: int) -> ShownCause:
    cause = page.verdict.causes[index]
    first_of = {page.verdict.findings[number].rule: number for number in reversed(cause.findings)}
    page.cause_anchors[index] = cause_anchor(page, index)
    rows_only = cause.kind is CauseKind.UNSETTLED and len(cause.findings) > 1
    chosen = [] if rows_only else [number for number in cause.findings if number in first_of.values()][:_CARDS]
    rest = [number for number in cause.findings if number not in chosen]
    cards = [_card(page, number) for number in chosen]
    run = page.verdict.window
    return ShownCause(
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
    """Keep the explanation of a rule (when it fails, what it misses, what changes it) with its first finding only; the
    others link to it."""
    first: dict[str, object] = {}
    for card in cards:
        finding = card["finding"]
        assert isinstance(finding, Finding)
        at = first.setdefault(finding.rule, card["anchor"])
        if card["guide"] and at != card["anchor"]:
            card["guide"], card["guide_at"] = (), at


def _margin(finding: Finding) -> float:
    """The distance of a finding from its limit, as a share of the limit; infinite without a limit."""
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
        "taken": looks_words(looks) if (looks := page.looks_for(finding)) else "",
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
    """A number of a rule's arithmetic with the unit that its name says: seconds, the unit of its series, or that unit
    per hour; a bare number if the name says none."""
    if name.endswith("_s"):
        return quantity(value, "s")
    entry = BY_NAME.get(finding.metric)
    stem = name.removesuffix("_per_hour")
    if entry is None or entry.kind != GAUGE or stem not in _OF_ITS_SERIES:
        return number(value)
    return quantity(value, entry.unit if stem == name else f"{entry.unit}/h")
