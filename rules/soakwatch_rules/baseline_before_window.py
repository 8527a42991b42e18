"""A baseline before the window: from an earlier run, whose load is unknown, or from before a capacity search."""

from __future__ import annotations

from typing import Final

from soakwatch_model.case import Case
from soakwatch_model.series import Series
from soakwatch_rules.sampling import cadence

_OWN: Final = frozenset({"baseline", "capacity"})
_ALIKE: Final = 2.0  # largest ratio of sampling intervals at which noise over thirty readings can be compared


def which_baseline(case: Case) -> str:
    """Which baseline it is, in words; after a capacity search it is the run's own, if it has one."""
    if {phase.name for phase in case.phases} >= _OWN:
        return "the baseline before the search for the capacity"
    return "the baseline of an earlier run"


def baseline_doubt(case: Case) -> str:
    """The doubt that a comparison with it adds."""
    return f"compared with {which_baseline(case)}"


def baseline_caveat(case: Case) -> tuple[str, ...]:
    """The doubt if the baseline lies before the window, else ()."""
    return (baseline_doubt(case),) if any(_before(case, series) for series in case.before.baseline) else ()


def imported_baseline(case: Case, series: Series, *, alike: bool = False) -> Series | None:
    """The imported readings of one series, None if there are none; with ``alike`` also None if their sampling interval
    differs by more than a factor of two."""
    for other in case.before.baseline:
        if (other.metric, other.object) == (series.metric, series.object) and _before(case, other):
            apart, own = cadence(other.finite()), cadence(series)
            near = apart is not None and own is not None and own / _ALIKE <= apart <= own * _ALIKE
            return other.finite() if near or not alike else None
    return None


def _before(case: Case, series: Series) -> bool:
    return bool(len(series)) and int(series.time_ns[-1]) < case.window.begin_ns
