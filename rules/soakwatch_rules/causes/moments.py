"""Moments that findings point at: the first and the last, whether they coincide, how likely that is by chance."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from soakwatch_model.fact import Onset
from soakwatch_model.finding import Finding, Mark
from soakwatch_rules.traits import Marks, traits_of

NEAR_NS = 120 * 10**9
"""What belongs together comes within two minutes: a watchdog's timeout, a core being written, a peer's timeout ..."""
NEAR_SHARE = 0.05
"""... but in a short run within this share of it, or everything would coincide."""
_LONG = 0.5  # share of the window: a longer mark is no moment, but may begin at one
_ENDLESS = 9 * 10**18


@dataclass(frozen=True, slots=True)
class Moments:
    """Stretches of time sorted by begin; ``reach[i]`` is the latest end among the first i + 1."""

    begin: tuple[int, ...]
    end: tuple[int, ...]
    reach: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.begin)

    def touched(self, begin_ns: int, end_ns: int, slack_ns: int) -> bool:
        """Whether one of them overlaps this stretch within ``slack_ns``."""
        before = bisect_right(self.begin, end_ns + slack_ns)
        return before > 0 and self.reach[before - 1] >= begin_ns - slack_ns

    def began(self, begin_ns: int, slack_ns: int) -> bool:
        """Whether one of them began at ``begin_ns``, within ``slack_ns``."""
        before = bisect_right(self.begin, begin_ns + slack_ns)
        return before > 0 and self.begin[before - 1] >= begin_ns - slack_ns

    def within(self, other: Moments, slack_ns: int) -> bool:
        """Whether each of them begins or ends at one of ``other``."""
        return len(self) > 0 and all(
            other.touched(begin, begin, slack_ns) or other.touched(end, end, slack_ns)
            for begin, end in zip(self.begin, self.end, strict=True)
        )

    def chance(self, other: Moments, slack_ns: int, length_ns: int, least: float = 0.0) -> float:
        """The probability that as many random moments of the run would all begin or end at those of ``other``.

        If two begin together only the begin counts, however long they last. The product stops below ``least``, since
        further moments only lower it.
        """
        if not len(self) or length_ns <= 0:
            return 1.0
        covered = sum(end - begin for begin, end in zip(other.begin, other.end, strict=True))
        log, low = 0.0, math.log(least) if least > 0 else -math.inf
        for begin, end in zip(self.begin, self.end, strict=True):
            width = 2 * slack_ns * len(other)
            if not other.began(begin, slack_ns):
                width = (width + covered) * (1 if begin == end else 2)
            log += math.log(min(1.0, max(width / length_ns, 1e-300)))
            if log < low:
                break
        return math.exp(log)


def moments(stretches: Iterable[tuple[int, int]]) -> Moments:
    """Stretches sorted by begin; an end before its begin is taken for the begin.

    >>> moments([(5, 9), (1, 2)]).within(moments([(0, 4), (9, 9)]), 0)
    True
    """
    kept = sorted((_held(begin), _held(max(begin, end))) for begin, end in stretches)
    ends = tuple(end for _, end in kept)
    return Moments(tuple(begin for begin, _ in kept), ends, tuple(accumulate(ends, max)))


def merged(stretches: Iterable[tuple[int, int]], slack_ns: int) -> Moments:
    """Stretches sorted by begin, those within ``slack_ns`` of each other merged.

    >>> merged([(1, 2), (3, 4), (9, 9)], 1).begin
    (1, 9)
    """
    apart: list[tuple[int, int]] = []
    every = moments(stretches)
    for begin, end in zip(every.begin, every.end, strict=True):
        if apart and begin <= apart[-1][1] + slack_ns:
            apart[-1] = apart[-1][0], max(apart[-1][1], end)
        else:
            apart.append((begin, end))
    return moments(apart)


def marks_of(finding: Finding) -> Sequence[Mark]:
    """The marks of what nobody planned; all of them if everything was planned."""
    return [mark for mark in finding.marks if not mark.planned] or finding.marks


def moments_of(finding: Finding) -> Moments:
    """The moments of a finding; none if its rule judges a whole stretch."""
    if traits_of(finding.rule).marks is Marks.WHOLE:
        return moments(())
    longest = _LONG * (finding.window.end_ns - finding.window.begin_ns)
    ends = ((m.begin_ns, m.begin_ns if m.end_ns is None else m.end_ns) for m in marks_of(finding))
    began_ns = finding.window.begin_ns + slack_of(finding.window.end_ns - finding.window.begin_ns)
    return moments(
        (begin, end if end - begin <= longest else begin)
        for begin, end in ends
        if end - begin <= longest or begin > began_ns  # a long mark that begins during the run has its begin as moment
    )


def slack_of(length_ns: int) -> int:
    """How far apart moments of one happening may lie in a run of this length, in ns."""
    return min(NEAR_NS, int(NEAR_SHARE * max(length_ns, 0)))


def since_ns(finding: Finding) -> int | None:
    """The onset of a finding, else its first mark; None if unknown.

    >>> from soakwatch_model.finding import Outcome
    >>> from soakwatch_model.window import Window
    >>> reboot = Finding("reboot", 1, Outcome.FAIL, "fw", "", "", Window(0, 90), "", "", 9, marks=(Mark(40, 50, ""),))
    >>> since_ns(reboot), until_ns(reboot)
    (40, 50)
    """
    onset = finding.fact(Onset)
    if onset is not None:
        return None if onset.from_first else onset.begin_ns
    if traits_of(finding.rule).marks is Marks.WHOLE:
        return None
    return min((mark.begin_ns for mark in marks_of(finding)), default=None)


def until_ns(finding: Finding) -> int | None:
    """The last moment of a finding; None if it went on to the end, or no moment is known."""
    if traits_of(finding.rule).marks is Marks.WHOLE:
        return None
    ends = [mark.begin_ns if mark.end_ns is None else mark.end_ns for mark in finding.marks]
    last_ns = max(ends, default=None)
    return None if last_ns is None or last_ns >= finding.window.end_ns else last_ns


def since_of(findings: Iterable[Finding]) -> int | None:
    """The begin of the first of these findings that knows it."""
    return next((at_ns for finding in findings if (at_ns := since_ns(finding)) is not None), None)


def _held(time_ns: int) -> int:
    return max(-_ENDLESS, min(_ENDLESS, time_ns))
