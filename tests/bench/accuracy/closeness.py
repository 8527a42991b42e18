"""How near the numbers of a finding come to the truth: rates, periods, times to recover, forecasts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from soakwatch_model.finding import Finding
from soakwatch_testing.scenarios.scenario import Truth


class Near(NamedTuple):
    """One number of one finding: what it tells, its error (relative, or in seconds), whether its interval holds
    the truth (None: it has none); ``error`` is None where the finding does not tell the number."""

    what: str
    unit: str
    error: float | None
    held: bool | None


def near(name: str, truth: Truth, finding: Finding) -> list[Near]:
    """The numbers of a finding of which the truth is known."""
    rows = []
    if name in {"growth", "queue_growth"} and truth.growth > 0:
        rows.append(_rate(truth.growth * 3600, finding))
        if truth.full_s is not None:
            rows.append(_forecast(truth.full_s, finding))
    if name == "periodic_pause" and truth.period_s:
        period = finding.numbers.get("period_s")
        low, high = finding.numbers.get("period_low_s"), finding.numbers.get("period_high_s")
        held = None if low is None or high is None else low <= truth.period_s <= high
        rows.append(Near("period", "%", None if period is None else 100 * (period / truth.period_s - 1), held))
    if name == "recovery" and truth.back_s is not None and np.isfinite(truth.back_s):
        recovered = finding.numbers.get("recovered", 0.0) > 0 and finding.measured is not None
        low, high = finding.interval or (0.0, 0.0)
        held = low <= truth.back_s <= high if recovered and finding.interval else None
        rows.append(Near("time to recover", "s", (finding.measured or 0.0) - truth.back_s if recovered else None, held))
    if name == "run_difference" and "change" in finding.numbers:
        low, high = finding.interval or (float("nan"), float("nan"))
        held = low <= truth.change <= high if finding.interval else None
        rows.append(Near("change", "points", 100 * (finding.numbers["change"] - truth.change), held))
    return rows


def _rate(per_hour: float, finding: Finding) -> Near:
    if finding.measured is None or finding.interval is None:
        return Near("rate at the end", "%", None, None)
    low, high = finding.interval
    if finding.limit is not None and finding.limit < 0:  # what counts downwards: its growth is reported as a fall
        per_hour = -per_hour
    return Near("rate at the end", "%", 100 * (finding.measured / per_hour - 1), low <= per_hour <= high)


def _forecast(full_s: float, finding: Finding) -> Near:
    forecast = finding.forecast
    if forecast is None:
        return Near("time until full", "%", None, None)
    return Near(
        "time until full", "%", 100 * (forecast.after_s / full_s - 1), forecast.low_s <= full_s <= forecast.high_s
    )


def closeness_lines(scenario: str, numbers: Iterable[Near]) -> list[list[str]]:
    """Rows of a table: how often the number was given, its error (median, 10 to 90 %), how often its interval held."""
    rows = []
    numbers = list(numbers)
    for what in dict.fromkeys(n.what for n in numbers):
        own = [n for n in numbers if n.what == what]
        errors = [n.error for n in own if n.error is not None]
        held = [n.held for n in own if n.held is not None]
        if not errors:
            rows.append([scenario, what, "·", "-", "-"])
            continue
        low, middle, high = (float(x) for x in np.percentile(errors, [10, 50, 90]))
        span = f"{middle:+.1f} ({low:+.1f} to {high:+.1f}) {own[0].unit}"
        inside = f"{100 * sum(held) / len(held):.0f}" if held else "-"
        rows.append([scenario, what, f"{100 * len(errors) / len(own):.0f}", span, inside])
    return rows
