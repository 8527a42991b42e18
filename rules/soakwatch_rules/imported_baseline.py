"""The baseline that an earlier run lent to this one: readings before the window, of which the load is not known."""

from __future__ import annotations

from typing import Final

from soakwatch_model.case import Case
from soakwatch_model.series import Series
from soakwatch_rules.sampling import cadence

BASELINE_DOUBT: Final = "compared with the baseline of an earlier run"
_ALIKE: Final = 2.0  # noise over thirty readings can only be compared where they lie about as far apart


def baseline_caveat(case: Case) -> tuple[str, ...]:
    """What is to be told where the baseline is lent."""
    return (BASELINE_DOUBT,) if any(_before(case, series) for series in case.before.baseline) else ()


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
