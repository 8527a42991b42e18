"""Findings in a plot: their numbers, a shape for each outcome, and where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from soakwatch.core.formatting import printable
from soakwatch.report.palette import OUTCOMES
from soakwatch.report.plot import FindingSpots, PlotMoment, PlotMoments
from soakwatch_model.finding import Outcome
from soakwatch_model.window import Window

_MAX_NAMED = 4


@dataclass(frozen=True, slots=True)
class FindingFlag:
    """A finding as a plot marks it: number, outcome, text, and time (UTC ns).

    With ``moment`` the time is when something happened, with an end if it lasted; else it is the window that was
    judged.
    """

    number: int
    outcome: Outcome
    text: str
    begin_ns: int
    end_ns: int | None = None
    moment: bool = True


def flagged(flags: Sequence[FindingFlag], window: Window) -> tuple[list[PlotMoments], list[FindingSpots]]:
    """The moments of the findings as verticals; and signs with their numbers at the bottom, with bars along the windows
    of findings without a moment."""
    moments: list[PlotMoments] = []
    spots: list[FindingSpots] = []
    present = [outcome for outcome in OUTCOMES if any(flag.outcome is outcome for flag in flags)]
    for row, outcome in enumerate(present):
        colour, shape = OUTCOMES[outcome]
        here = [flag for flag in flags if flag.outcome is outcome]
        words = f"finding, {outcome.value}"
        happened = tuple(moment(f.begin_ns, f.end_ns, f"{f.number} {f.text}", 0.12, window) for f in here if f.moment)
        if happened:
            moments.append(PlotMoments("", words, colour, happened))
        edge = window.begin_ns + (window.end_ns - window.begin_ns) // 120  # a mark at the very edge would be cut
        signs = tuple(
            (max(some[0].begin_ns, edge) // 10**6, _numbers(some), _texts(some)) for some in _clusters(here, window)
        )
        bars = _bars([flag for flag in here if not flag.moment], window)
        spots.append(FindingSpots(f"finding: {outcome.value}", colour, shape, 0.05 + 0.08 * row, signs, bars))
    return moments, spots


def moment(begin_ns: int, end_ns: int | None, text: str, alpha: float, window: Window, name: str = "") -> PlotMoment:
    """A moment in ms. One that lasted longer than a twentieth of the window is shaded lightly, so that phases stay
    visible."""
    end = end_ns if end_ns is not None and end_ns > begin_ns else None
    long = end is not None and end - begin_ns > (window.end_ns - window.begin_ns) / 20
    shade = 0.0 if end is None else min(0.07, alpha) if long else alpha
    return PlotMoment(begin_ns // 10**6, None if end is None else end // 10**6, printable(text), name, shade)


def _bars(flags: Sequence[FindingFlag], window: Window) -> tuple[tuple[float, float], ...]:
    """The windows that are shorter than the run; equal windows have one bar."""
    spans = {(flag.begin_ns, flag.end_ns or flag.begin_ns) for flag in flags}
    whole = 0.97 * (window.end_ns - window.begin_ns)
    return tuple(sorted((begin // 10**6, end // 10**6) for begin, end in spans if end - begin < whole))


def _clusters(flags: Sequence[FindingFlag], window: Window) -> list[list[FindingFlag]]:
    """The flags in groups: those of a group are so close that their numbers would overlap."""
    near = (window.end_ns - window.begin_ns) // 40
    clusters: list[list[FindingFlag]] = []
    for flag in sorted(flags, key=lambda each: (each.begin_ns, each.number)):
        if clusters and flag.begin_ns - clusters[-1][0].begin_ns < near:
            clusters[-1].append(flag)
        else:
            clusters.append([flag])
    return clusters


def _numbers(flags: Sequence[FindingFlag]) -> str:
    """Their numbers in few characters.

    >>> _numbers([FindingFlag(n, Outcome.FAIL, "", 0) for n in (1, 2, 3, 5, 9, 11)])
    '1-3 5 9 …'
    """
    runs: list[list[int]] = []
    for number in sorted({flag.number for flag in flags}):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return " ".join(texts[:3] + ["…"] * (len(texts) > 3))


def _texts(flags: Sequence[FindingFlag]) -> str:
    texts = [f"{flag.number} {flag.text}" for flag in flags[:_MAX_NAMED]]
    return printable("; ".join(texts + [f"and {len(flags) - _MAX_NAMED} more"] * (len(flags) > _MAX_NAMED)))
