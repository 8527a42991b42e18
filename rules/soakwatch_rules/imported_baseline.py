"""A baseline before the window: of an earlier run, whose load is not known, or before a search for the capacity."""

from __future__ import annotations

from typing import Final

from soakwatch_model.case import Case
from soakwatch_model.series import Series
from soakwatch_rules.sampling import cadence

_OWN: Final = frozenset({"baseline", "capacity"})
_ALIKE: Final = 2.0  # noise over thirty readings can only be compared where they lie about as far apart


def which_baseline(case: Case) -> str:
    """The baseline before the window in words: behind a search for the capacity it is the run's own, if it has one."""
    if {phase.name for phase in case.phases} >= _OWN:
        return "the baseline before the search for the capacity"
    return "the baseline of an earlier run"


def baseline_doubt(case: Case) -> str:
    """What is said of a comparison with it."""
    return f"compared with {which_baseline(case)}"


def baseline_caveat(case: Case) -> tuple[str, ...]:
    """The doubt where the baseline lies before the window."""
    return (baseline_doubt(case),) if any(_before(case, series) for series in case.before.baseline) else ()


def imported_baseline(case: Case, series: Series, *, alike: bool = False) -> Series | None:
    """The lent readings of one series, None where there are none; ``alike``: and none that lie twice or half as far
    apart as its own."""
    for other in case.before.baseline:
        if (other.metric, other.object) == (series.metric, series.object) and _before(case, other):
            apart, own = cadence(other.finite()), cadence(series)
            near = apart is not None and own is not None and own / _ALIKE <= apart <= own * _ALIKE
            return other.finite() if near or not alike else None
    return None


def _before(case: Case, series: Series) -> bool:
    return bool(len(series)) and int(series.time_ns[-1]) < case.window.begin_ns
