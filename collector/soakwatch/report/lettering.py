"""The words in a plot: names of lines, units in tooltips, and text that BokehJS takes for nothing but text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from soakwatch.core.formatting import printable
from soakwatch.record.source import SeriesKey
from soakwatch.report.curves import Curve

_LONGEST = 90


def plain(text: str) -> str:
    """Text that BokehJS takes neither for TeX nor for anything else: delimiters of formulas are taken apart."""
    line = printable(text)
    return line.replace("$$", "$\u200b$").replace("\\(", "\\\u200b(").replace("\\[", "\\\u200b[")


def shortened(text: str, longest: int = _LONGEST) -> str:
    """At most ``longest`` characters; begin and end are kept, because names mostly differ at one of them.

    >>> shortened("GigabitEthernet0/0/0/12", 12)
    'Gigabi…/0/12'
    """
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 2
    return f"{text[: longest - 1 - tail]}…{text[len(text) - tail :]}"


def names_of(curves: Sequence[Curve]) -> list[str]:
    """The words of a legend: the metric of one line, numbered objects of several."""
    if len(curves) == 1:
        return [plain(curves[0].key.metric)]
    return numbered([name_of(curve, metric=False) for curve in curves])


def numbered(names: Sequence[str]) -> list[str]:
    """The names with the numbers that their lines carry in the plot."""
    return [f"{place} {name}" for place, name in enumerate(names, 1)] if len(names) > 1 else list(names)


def name_of(curve: Curve, *, metric: bool = True) -> str:
    """Target, metric and object of a line in one text."""
    parts = (curve.key.target, curve.key.metric if metric else "", curve.key.object)
    return plain(shortened(" ".join(part for part in parts if part)))


def tip_unit(unit: str) -> str:
    """A unit inside a tooltip's template, where @, $ and braces would be read as fields."""
    return re.sub(r"[^\w %°µ/.-]", "", unit)


def source_name(key: SeriesKey) -> str:
    """The name that a data source of a series carries in the browser, which can fetch the series by it."""
    return "series:" + json.dumps([key.target, key.metric, key.object], ensure_ascii=False, separators=(",", ":"))
