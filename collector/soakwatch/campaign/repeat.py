"""Whether a cell was run often enough: a fixed number of times, or until the median of a figure is known well enough.

The interval is that of order statistics, which assumes no distribution (``soakwatch_rules.stats.repetitions``). To look
at it after every run and to stop when it is narrow enough makes it a little too narrow now and then: Maricq et al.,
OSDI 2018, accept that for the same purpose, and ``at_least`` keeps the worst of it away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from soakwatch.campaign.campaign_keys import Repeat
from soakwatch.core.errors import SoakwatchError
from soakwatch.record import RecordView
from soakwatch.runs.key_figures import figure_of, parse_figure
from soakwatch_rules.stats.repetitions import median_interval


@dataclass(frozen=True, slots=True)
class Precision:
    """How well the median of a figure is known after some runs.

    ``half_width`` is half the width of its interval as a share of it; None where these runs cannot tell: too few of
    them have the figure, or its median is 0. ``without`` says of each run that has no figure why.
    """

    half_width: float | None
    without: tuple[str, ...] = ()


def precision(repeat: Repeat, folders: Sequence[Path]) -> Precision:
    """How well the runs in some folders tell the median of the figure that repetitions are made for."""
    spec = parse_figure(repeat.of)
    values, without = [], []
    for folder in folders:
        try:
            with RecordView.open(folder) as view:
                found = figure_of(view, spec)
        except SoakwatchError as error:
            without.append(f"{folder.name}: {error}")
            continue
        if found.value is not None:
            values.append(found.value)
        else:
            without.append(f"{folder.name}: {found.reason}")
    return Precision(median_interval(values).half_width if values else None, tuple(without))


def enough(repeat: Repeat, repetition: int, width: float | None) -> bool:
    """Whether a cell needs no more runs after so many."""
    if repetition >= repeat.at_most:
        return True
    if repetition < repeat.at_least:
        return False
    return repeat.half_width is None or (width is not None and width <= repeat.half_width)
