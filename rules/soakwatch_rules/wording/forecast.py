"""A forecast in words: what is reached, when, and how certain that is."""

from __future__ import annotations

import math

from soakwatch_model.fact import FullIn
from soakwatch_model.finding import Forecast
from soakwatch_rules.stats.time_to_full import FARTHEST_S

_YEAR_S = 365.25 * 86400.0
_UNITS = ((3 * 86400.0, 86400.0, "d"), (2 * 3600.0, 3600.0, "h"), (120.0, 60.0, "min"))
_SHARP = 0.005  # share of the time: a smaller error is not worth stating
_LOPSIDED = 1.25  # ratio of the two errors above which ± one number would misstate the interval


def forecast_words(forecast: Forecast) -> str:
    """What is reached at the present rate, when, and how certain; empty if the forecast has no number.

    >>> at = Forecast("system.memory.limit (3.80 GiB)", 31 * 3600, 25 * 3600, 37 * 3600)
    >>> forecast_words(at)
    'system.memory.limit (3.80 GiB) reached in 31 h ± 6 h (90 %)'
    >>> forecast_words(Forecast("the table", 126_000, 125_990, 126_010))
    'the table reached in 35 h (90 %)'
    >>> forecast_words(Forecast("the table", 5400, 3600, 18_000, 0.95))
    'the table reached in 90 min, between 60 and 300 min (95 %)'
    """
    when = forecast_time(forecast)
    return f"{forecast.what} reached {when} ({100 * forecast.confidence:.0f} %)" if when else ""


def forecast_time(forecast: Forecast) -> str:
    """Only the time: "in 31 h ± 6 h"; empty if the forecast has no number."""
    after, low, high = forecast.after_s, forecast.low_s, forecast.high_s
    if math.isnan(after) or math.isnan(low) or math.isnan(high) or math.isinf(low):
        return ""
    if high <= 0:
        return "by the end of the window"
    length, unit = _unit(after if math.isfinite(after) else low)
    if math.isinf(after) or math.isinf(high):
        return f"in {_amount(max(low, 0.0) / length)} {unit} at the earliest"
    early, late = after - low, high - after
    centre = _amount(max(after, 0.0) / length)
    if max(early, late) < _SHARP * after:
        return f"in {centre} {unit}"
    if max(early, late) <= _LOPSIDED * min(early, late):
        return f"in {centre} {unit} ± {_amount((early + late) / 2 / length)} {unit}"
    return f"in {centre} {unit}, between {_amount(max(low, 0.0) / length)} and {_amount(high / length)} {unit}"


def _unit(seconds: float) -> tuple[float, str]:
    return next(((length, unit) for least, length, unit in _UNITS if seconds >= least), (1.0, "s"))


def _amount(number: float) -> str:
    return f"{number:.0f}" if 9.95 <= number < 1e6 else f"{number:.2g}"


def full_words(full: FullIn) -> str:
    """When something is full, and before when it is not, with 95 %.

    >>> full_words(FullIn(36.84 * 86400, 41 * 86400)), full_words(FullIn(400 * 86400.0))
    ('full in 41 d, with 95 % not before 36 d', 'with 95 % not full before 400 d')
    >>> full_words(FullIn(FARTHEST_S)), full_words(FullIn(0.0)), full_words(FullIn(0.0, 0.0))
    ('with 95 % not full within 10 years', 'may be full at any time', 'full')
    """
    bound, after = full.not_before_s, full.after_s
    if after is not None and after <= 0:
        return "full"
    soonest = f"with 95 % not before {time_left(bound)}" if bound > 0 else "perhaps at any time"
    if after is not None and after < FARTHEST_S:
        return f"full in {time_left(after)}, {soonest}"
    if bound >= FARTHEST_S:
        return f"with 95 % not full within {FARTHEST_S / _YEAR_S:.0f} years"
    return f"with 95 % not full before {time_left(bound)}" if bound > 0 else "may be full at any time"


def time_left(seconds: float) -> str:
    """A time until something, rounded down to two digits or a whole day, since a bound must not be rounded up.

    >>> time_left(4 * _YEAR_S), time_left(100.9 * 86400), time_left(90_000.0), time_left(100.0)
    ('4 years', '100 d', '25 h', '100 s')
    """
    if seconds >= 3 * _YEAR_S:
        return f"{math.floor(10 * seconds / _YEAR_S + 1e-9) / 10:g} years"
    length, unit = _unit(seconds)
    number = seconds / length + 1e-9
    return f"{math.floor(number) if number >= 10 else math.floor(10 * number) / 10:g} {unit}"
