"""Explanations of a sudden change: what else happened at that moment."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.flow import SENT
from soakwatch_model.series import Series
from soakwatch_rules.load.load_account import LoadAccount, is_of_side
from soakwatch_rules.stats.medians import median
from soakwatch_rules.wording.quantities import duration, quantity

_NO_CAUSE = frozenset({"gap", "clock.step", "core.present", "core.dump"})
"""Kinds that report an observation, or what a crash left behind, and no action."""
_SIGNS = ("recorder.", "source.", "log.", "phase.", "cpu.", "memory.", "hardware.")
"""Complaints of a device and book-keeping of sources: they may be effects of the same cause."""


def explanations(case: Case, series: Series, time_ns: int, slack_ns: int, share: float, window_s: float) -> list[str]:
    """What explains a change of ``series`` at ``time_ns``, nearest first: events, phase borders, changes of load.

    Events and phases count if they begin or end within ``slack_ns``. The load counts if its command (if unknown, what
    was sent) changed by more than ``share`` between the ``window_s`` before and the ``window_s`` after. What comes back
    (answers, latency) explains nothing, since it may be an effect.
    """
    matches = [
        (abs(happened_ns - time_ns), text)
        for happened_ns, text in _happened(case, series)
        if abs(happened_ns - time_ns) <= slack_ns
    ]
    texts = [f"{text} {_when(away)}" for away, text in sorted(matches)]
    return list(dict.fromkeys(texts)) + list(_load(case, series, time_ns, slack_ns, share, window_s))


def _when(away_ns: int) -> str:
    return f"within {duration(max(1.0, away_ns * 1e-9))}"


def _happened(case: Case, series: Series) -> Iterator[tuple[int, str]]:
    for event in case.events:
        if (
            event.kind in _NO_CAUSE
            or event.kind.startswith(_SIGNS)
            or _is_first_word(event)
            or not _concerns(event, series)
        ):
            continue
        name = f"{event.kind}{f' of {event.object}' if event.object else ''}"
        yield event.begin_ns, name
        if event.end_ns is not None and event.end_ns > event.begin_ns:
            yield event.end_ns, f"end of {name}"
    for phase in case.phases:
        yield phase.window.begin_ns, f"start of phase {phase.name}"
        yield phase.window.end_ns, f"end of phase {phase.name}"


def _is_first_word(event: Event) -> bool:
    """Whether a source identified its peer for the first time; only a changed identity explains anything."""
    return event.kind == "device.identity" and "changed" not in event.detail


def _concerns(event: Event, series: Series) -> bool:
    """A machine is affected by the events of all its processes, a process by its own and the machine's."""
    return not (series.object.startswith("process=") and event.object.startswith("process=")) or (
        event.object == series.object
    )


def _load(case: Case, series: Series, time_ns: int, slack_ns: int, share: float, window_s: float) -> Iterator[str]:
    for load in LoadAccount.of(case.load).commands():
        if load.metric == series.metric or (is_of_side(load.metric, SENT) and series.metric.startswith("load.")):
            continue
        before, after = load_around(load, time_ns, slack_ns, window_s)
        if before is None or after is None:
            continue
        largest = max(abs(before), abs(after))
        if largest > 0 and abs(after - before) > share * largest:
            change = f"{100 * (after - before) / abs(before):+.0f} %" if before else "from none"
            each = _per_load(load_around(series, time_ns, slack_ns, window_s), before, after, series, load)
            yield f"{load.metric} changed by {change}{each}" if before else f"{load.metric} started"


def _per_load(
    value: tuple[float | None, float | None], before: float, after: float, series: Series, load: Series
) -> str:
    """The series per 1000 of load before and after, in words; equal figures show that it follows the load."""
    unit = load.trait.unit if load.trait.kind != "counter" else f"{load.trait.unit}/s"
    if value[0] is None or value[1] is None or before <= 0 or after <= 0:
        return ""
    first, last = (quantity(1000 * v / rate, series.trait.unit) for v, rate in ((value[0], before), (value[1], after)))
    return f" ({first} per 1000 {unit.replace('{', '').replace('}', '')} before, {last} after)"


def load_around(load: Series, time_ns: int, slack_ns: int, window_s: float) -> tuple[float | None, float | None]:
    """The median load in windows of ``window_s`` that end ``slack_ns`` before and begin ``slack_ns`` after a time."""
    width_ns = round(window_s * 1e9)
    return (
        median_load([load], time_ns - slack_ns - width_ns, time_ns - slack_ns),
        median_load([load], time_ns + slack_ns, time_ns + slack_ns + width_ns),
    )


def median_load(load: Sequence[Series], begin_ns: int, end_ns: int) -> float | None:
    """The median of the first of these series with readings in a stretch (counters as rates); None without readings."""
    for series in load:
        part = series.between(begin_ns, end_ns)
        with np.errstate(all="ignore"):
            value = (part.rate() if series.trait.kind == "counter" else part).finite().values
        if value.size:
            middle = median(value / 2) * 2
            if math.isfinite(middle):
                return middle
    return None
