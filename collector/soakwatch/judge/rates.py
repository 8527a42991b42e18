"""Growth rates while the run goes on: provisional values, separate from the findings.

The live judge computes them, the record keeps the newest, and every display shows the same words.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from soakwatch.core.formatting import quantity
from soakwatch.core.plain_names import plain_name
from soakwatch_model.finding import Forecast
from soakwatch_rules.wording.forecast import forecast_time

META = "so_far"
"""Record meta: when the live judge last looked, and the rates it found."""
STRONG = 0.2
"""From this relative change on, growth is shown next to the verdict so far, and early."""


@dataclass(frozen=True, slots=True)
class Rate:
    """The growth rate of one series in its ``unit`` per hour (negative: falling) with its 5 to 95 % interval.

    ``since_ns``: first reading used. ``limit``: what it would reach in ``limit_s`` seconds (interval ``soonest_s`` to
    ``latest_s``), None if no limit is known or none would be reached. ``change``: relative change since the start; None
    if it started at zero.
    """

    target: str
    metric: str
    object: str
    unit: str
    since_ns: int
    per_hour: float
    low: float
    high: float
    limit: float | None = None
    limit_s: float | None = None
    soonest_s: float | None = None
    latest_s: float | None = None
    change: float | None = None

    @property
    def is_strong(self) -> bool:
        """Whether the change is too large to say that all is well."""
        return self.change is not None and abs(self.change) >= STRONG

    @property
    def brief(self) -> str:
        """What has changed by how much so far, and how fast.

        >>> Rate("fw", "process.memory.usage", "process=bgpd", "By", 0, 54525952.0, 46e6, 63e6, change=1.7).brief
        'memory of bgpd on fw has changed by +170 % so far (+52 MiB/h)'
        """
        share = "" if self.change is None else f" by {100 * self.change:+,.0f} %"
        return f"{plain_name(self.metric, self.object)} on {self.target} has changed{share} so far ({self._rate})"

    @property
    def forecast(self) -> Forecast | None:
        """When the limit would be reached; None if unknown."""
        if self.limit is None or self.limit_s is None or self.soonest_s is None or self.latest_s is None:
            return None
        return Forecast(quantity(self.limit, self.unit), self.limit_s, self.soonest_s, self.latest_s)

    @property
    def short_words(self) -> str:
        """For a legend: the rate, and when the limit would be reached.

        >>> Rate("fw", "process.memory.usage", "process=bgpd", "By", 0, 54525952.0, 46e6, 63e6).short_words
        'trend +52 MiB/h'
        """
        text = f"trend {self._rate}"
        if self.forecast is not None and (when := forecast_time(self.forecast)):
            text += f", {self.forecast.what} reached {when}"
        return text

    @property
    def _rate(self) -> str:
        return f"{'+' if self.per_hour > 0 else '−'}{quantity(abs(self.per_hour), f'{self.unit}/h')}"

    @property
    def words(self) -> str:
        """One line: what, how fast, when it would reach its limit, and that it may be a warm-up.

        >>> Rate("fw", "process.memory.usage", "process=bgpd", "By", 0, 54525952.0, 46e6, 63e6).words
        'fw: memory of bgpd +52 MiB/h so far (provisional: it may be a warm-up)'
        >>> to = 4.0 * 2**30, 31 * 3600.0, 25 * 3600.0, 37 * 3600.0
        >>> Rate("fw", "process.memory.usage", "process=bgpd", "By", 0, 54525952.0, 46e6, 63e6, *to).words[29:]
        'so far, would reach its limit of 4 GiB in 31 h ± 6 h (provisional: it may be a warm-up)'
        """
        text = f"{self.target}: {plain_name(self.metric, self.object)} {self._rate} so far"
        if self.forecast is not None and (when := forecast_time(self.forecast)):
            to = f"reach its limit of {self.forecast.what}" if self.limit else "be used up"
            text += f", would {to} {when}"
        return f"{text} (provisional: it may be a warm-up)"


@dataclass(frozen=True, slots=True)
class LiveSnapshot:
    """When the live judge last judged (UTC ns), and the growth rates so far."""

    judged_ns: int
    rates: tuple[Rate, ...] = ()


def snapshot_text(snapshot: LiveSnapshot) -> str:
    """As JSON for the record."""
    return json.dumps({"judged_ns": snapshot.judged_ns, "rates": rates_json(snapshot.rates)})


def snapshot_of(text: str | None) -> LiveSnapshot | None:
    """From the record's JSON; None if it is missing or not understood."""
    try:
        document = json.loads(text or "null")
        return None if document is None else LiveSnapshot(int(document["judged_ns"]), rates_of(document["rates"]))
    except (KeyError, TypeError, ValueError):
        return None


def rates_json(rates: Sequence[Rate]) -> list[dict[str, object]]:
    """Rates as JSON-able data."""
    return [asdict(rate) for rate in rates]


def rates_of(rows: Sequence[dict[str, object]]) -> tuple[Rate, ...]:
    """The inverse. Raises TypeError for anything else."""
    return tuple(Rate(**row) for row in rows)  # type: ignore[arg-type]
