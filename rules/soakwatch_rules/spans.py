"""Spans: operations on stretches of time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice

from soakwatch_model.window import Window


def joined(spans: Iterable[Window], apart_ns: int = 0) -> tuple[Window, ...]:
    """Stretches sorted, those that touch (or lie at most ``apart_ns`` apart) joined.

    >>> [(w.begin_ns, w.end_ns) for w in joined([Window(5, 9), Window(0, 5), Window(20, 30)])]
    [(0, 9), (20, 30)]
    """
    windows: list[Window] = []
    for span in sorted(spans, key=lambda w: (w.begin_ns, w.end_ns)):
        if windows and span.begin_ns <= windows[-1].end_ns + apart_ns:
            windows[-1] = Window(windows[-1].begin_ns, max(windows[-1].end_ns, span.end_ns))
        else:
            windows.append(span)
    return tuple(windows)


def common(group: Sequence[Window], two: Sequence[Window]) -> tuple[Window, ...]:
    """The intersection; each of the two sorted and without overlap.

    >>> [(w.begin_ns, w.end_ns) for w in common([Window(0, 10), Window(20, 30)], [Window(5, 25)])]
    [(5, 10), (20, 25)]
    """
    windows: list[Window] = []
    i = j = 0
    while i < len(group) and j < len(two):
        begin, end = max(group[i].begin_ns, two[j].begin_ns), min(group[i].end_ns, two[j].end_ns)
        if begin < end:
            windows.append(Window(begin, end))
        if group[i].end_ns < two[j].end_ns:
            i += 1
        else:
            j += 1
    return tuple(windows)


def without(spans: Sequence[Window], others: Sequence[Window]) -> tuple[Window, ...]:
    """The stretches minus the others; both sorted and disjoint.

    >>> [(w.begin_ns, w.end_ns) for w in without([Window(0, 10)], [Window(2, 4)])]
    [(0, 2), (4, 10)]
    """
    left = []
    for span in spans:
        begin_ns = span.begin_ns
        for other in others:
            if other.end_ns <= begin_ns or other.begin_ns >= span.end_ns:
                continue
            if other.begin_ns > begin_ns:
                left.append(Window(begin_ns, other.begin_ns))
            begin_ns = max(begin_ns, other.end_ns)
        if begin_ns < span.end_ns:
            left.append(Window(begin_ns, span.end_ns))
    return tuple(left)


def overlap_s(window: Window, spans: Sequence[Window]) -> float:
    """How many seconds of a window these sorted, disjoint stretches cover.

    >>> overlap_s(Window(5 * 10**9, 25 * 10**9), [Window(0, 10 * 10**9), Window(20 * 10**9, 90 * 10**9)])
    10.0
    """
    first = bisect_right(spans, window.begin_ns, key=lambda s: s.end_ns)
    total = 0
    for span in islice(spans, first, None):
        if span.begin_ns >= window.end_ns:
            break
        total += min(window.end_ns, span.end_ns) - max(window.begin_ns, span.begin_ns)
    return total * 1e-9
