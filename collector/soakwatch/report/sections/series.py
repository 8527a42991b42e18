"""Every series that a finding judged and that has no plot above, drawn over the load; constant ones in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import groupby

from soakwatch.core.formatting import natural
from soakwatch.record.source import SeriesKey
from soakwatch.report.blocks import Block, Layout
from soakwatch.report.page import IDENTITIES, Page, worst_first
from soakwatch_model.finding import Finding, Outcome

ORDER = 50
TITLE = "Other judged series"
HEIGHT, TALL = 230, 320
_MAX_SINGLES, _CROWD, _LINES, _POINTS, _MAX_CONSTANT, _MAX_RULES = 40, 6, 7, 500, 40, 12
_OF_A_METRIC, _MAX_SERIES_READ, _MAX_GROUPS, _MAX_ABOVE = 14, 1500, 40, 60


def blocks(page: Page) -> Sequence[Block]:
    """One plot a series for the first forty, the worst first; the others, and crowds of calm ones, share plots by
    metric."""
    return (Layout("series", partial(_facts, page)),)


def _facts(page: Page) -> Mapping[str, object]:
    """One plot a series for the first forty, the worst first; the others, and crowds of calm ones, share plots by
    metric.

    A series that has a plot with its finding is only named; one that passed and never changed is told in words.
    """
    judged, undrawn = _judged(page)
    everything = sorted(judged, key=lambda k: (judged[k][0].outcome.rank, k.metric, natural(k.object), k.target))
    above = [(key, page.plotted[key]) for key in everything if key in page.plotted]
    apart = [key for key in everything if key not in page.plotted]
    # Forty cores that passed are a crowd: of these only the ones that moved most are drawn.
    calm = Counter((k.target, k.metric) for k in apart if judged[k][0].outcome is Outcome.PASS)
    crowd = {k for k in apart if judged[k][0].outcome is Outcome.PASS and calm[k.target, k.metric] > _CROWD}
    passed = [k for k in apart if judged[k][0].outcome is Outcome.PASS]
    unread = passed[_MAX_SERIES_READ:]
    apart = [k for k in apart if k not in set(unread)]
    glances = {k: page.glance(k) for k in passed[:_MAX_SERIES_READ]}
    still = {k: glance for k, glance in glances.items() if glance.constant}
    ranked = [key for key in apart if key not in still]
    alone = [k for k in ranked if k not in crowd][:_MAX_SINGLES]
    singles = [_single(page, key, judged[key]) for key in alone]
    places = {key: index for index, key in enumerate(ranked)}
    others = sorted(set(ranked).difference(alone), key=lambda k: (k.metric, places[k]))
    rest = _most_varying(page, others, crowd)[: _MAX_GROUPS * _LINES]
    groups = []
    for metric, keys in groupby(rest, key=lambda k: k.metric):
        alike = tuple(keys)
        for first in range(0, len(alike), _LINES):
            groups += _groups(page, metric, alike[first : first + _LINES], judged)
    return {
        "above": above,
        "still": [(k, glance.constant, glance.readings) for k, glance in still.items()],
        "most_still": _MAX_CONSTANT,
        "singles": singles,
        "groups": groups,
        "others": len(rest),
        "calmer": len(others) - len(rest),
        "most_alike": _OF_A_METRIC,
        "unread": len(unread),
        "most_above": _MAX_ABOVE,
        "undrawn": sorted(undrawn),
        "height": HEIGHT,
        "tall": TALL,
        "points": "2000",
        "lines": _LINES,
        "few": _POINTS,
    }


def _judged(page: Page) -> tuple[dict[SeriesKey, list[Finding]], set[str]]:
    """The series that findings judged, each with its findings, the worst first; and words for those without a line."""
    judged: dict[SeriesKey, list[Finding]] = {}
    undrawn = set()
    for finding in sorted(page.verdict.findings, key=worst_first):
        for key in () if finding.outcome is Outcome.NOT_APPLICABLE else page.judged_by(finding):
            if key.metric in IDENTITIES:
                undrawn.add(f"{key.target} {key.metric} (an identity; its value has no magnitude)")
            else:
                judged.setdefault(key, []).append(finding)
    return judged, undrawn


def _most_varying(page: Page, keys: Sequence[SeriesKey], crowd: Collection[SeriesKey]) -> list[SeriesKey]:
    """The keys; of a crowd (one metric of one target) only those that moved most, relative to their size."""
    alike: dict[tuple[str, str], list[tuple[float, SeriesKey]]] = {}
    for key in keys:
        if key in crowd:
            alike.setdefault((key.target, key.metric), []).append((-page.glance(key).moved, key))
    dropped = {key for some in alike.values() for _, key in sorted(some)[_OF_A_METRIC:]}
    return [key for key in keys if key not in dropped]


def _single(page: Page, key: SeriesKey, findings: list[Finding]) -> dict[str, object]:
    curve = page.curve(key)
    marks = tuple(mark for finding in findings for mark in finding.marks)
    return {
        "key": key,
        "curve": curve,
        "outcome": findings[0].outcome,
        "rules": [(f.rule, page.finding_anchors.get(id(f), "")) for f in findings[:_MAX_RULES]],
        "element": page.drawing.draw([curve], marks=marks, height=HEIGHT) if curve.low is not None else "",
    }


def _groups(
    page: Page, metric: str, keys: tuple[SeriesKey, ...], judged: Mapping[SeriesKey, list[Finding]]
) -> list[dict[str, object]]:
    """One plot a unit: the same metric may be large on one target and small on another."""
    curves = [page.curve(key, _POINTS) for key in keys]
    plots = []
    for unit in sorted({curve.unit for curve in curves}):
        alike = [curve for curve in curves if curve.unit == unit]
        outcomes = [judged[curve.key][0].outcome for curve in alike]
        plots.append(
            {
                "metric": metric,
                "curves": len(alike),
                "outcomes": ", ".join(f"{outcomes.count(o)} {o.value}" for o in Outcome if o in outcomes),
                "element": page.drawing.draw(alike, height=TALL),
            }
        )
    return plots
