"""Tables in Markdown, and pictures of series: a sparkline in text, a small SVG by our own hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from soakwatch_rules.wording.quantities import duration, quantity

_BARS = "▁▂▃▄▅▆▇█"
WIDE, HIGH, EDGE, LEFT = 760, 200, 34, 80


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the first column is to the left, the others to the right.

    >>> print(table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|--:|
    | 1 | 2 |
    """
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def percent(part: int, whole: int) -> str:
    """A share in percent; ``·`` for none at all, so that what happens stands out.

    >>> percent(0, 300), percent(1, 300), percent(150, 300), percent(300, 300)
    ('·', '0.3', '50', '100')
    """
    if not part or not whole:
        return "·"
    share = 100 * part / whole
    return f"{share:.0f}" if share >= 10 or share == round(share) else f"{share:.1f}"


def upper(part: int, whole: int) -> float:
    """The upper 95 % bound of a share in percent (Wilson, one-sided): what no case in so many trials still allows.

    >>> round(upper(0, 300), 1)
    0.9
    """
    z = 1.645
    p, n = part / whole, whole
    mid = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * float(np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))) / (1 + z * z / n)
    return 100 * (mid + half)


def spark(value: NDArray[np.float64], wide: int = 48) -> str:
    """A series in one line of text, by means of equal stretches.

    >>> spark(np.array([0.0, 1.0, 2.0, 7.0]))
    '▁▂▃█'
    """
    value = value[np.isfinite(value)]
    if not value.size:
        return ""
    means = np.array([part.mean() for part in np.array_split(value, min(wide, value.size))])
    low, high = float(means.min()), float(means.max())
    step = (high - low) / (len(_BARS) - 1) or 1.0
    return "".join(_BARS[round((m - low) / step)] for m in means.tolist())


def svg(
    title: str, note: str, time_s: NDArray[np.float64], value: NDArray[np.float64], unit: str, marks: Iterable[float]
) -> str:
    """A series as an SVG: least and greatest of each stretch as a band, the mean as a line, marks as verticals."""
    good = np.isfinite(value)
    time_s, value = time_s[good], value[good]
    if not value.size:
        return ""
    first, last = float(time_s[0]), float(time_s[-1])
    low, high = float(value.min()), float(value.max())

    def x(moment: float) -> float:
        return round(LEFT + (WIDE - LEFT - EDGE) * (moment - first) / ((last - first) or 1.0), 1)

    def y(level: float) -> float:
        return round(HIGH - EDGE - (HIGH - 2 * EDGE) * (level - low) / ((high - low) or 1.0), 1)

    parts = list(np.array_split(np.arange(value.size), min(240, value.size)))
    places = [x(float(time_s[part].mean())) for part in parts]
    top = [f"{p},{y(float(value[part].max()))}" for p, part in zip(places, parts, strict=True)]
    bottom = [f"{p},{y(float(value[part].min()))}" for p, part in zip(places, parts, strict=True)]
    line = [f"{p},{y(float(value[part].mean()))}" for p, part in zip(places, parts, strict=True)]
    lines = "".join(
        f'<line x1="{x(m)}" x2="{x(m)}" y1="{EDGE}" y2="{HIGH - EDGE}" stroke="#c33"/>' for m in list(marks)[:40]
    )
    text = 'font-family="sans-serif" font-size="11" fill="#333"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" height="{HIGH}">'
        f'<rect width="{WIDE}" height="{HIGH}" fill="#fff"/><text x="2" y="14" {text}>{escape(title)}</text>'
        f'<text x="2" y="{HIGH - 6}" {text}>{escape(note)}</text>'
        f'<text x="2" y="{EDGE + 4}" {text}>{quantity(high, unit)}</text>'
        f'<text x="2" y="{HIGH - EDGE + 4}" {text}>{quantity(low, unit)}</text>'
        f'<text x="{WIDE - EDGE}" y="{HIGH - EDGE + 14}" text-anchor="end" {text}>{duration(last - first)}</text>'
        f'<polygon points="{" ".join(top + bottom[::-1])}" fill="#9bc" opacity=".6"/>'
        f'<polyline points="{" ".join(line)}" fill="none" stroke="#246" stroke-width="1.2"/>{lines}</svg>\n'
    )
