"""A forecast in words: what is reached, when, and how certain that is."""

from __future__ import annotations

import math

from soakwatch_model.finding import Forecast

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
