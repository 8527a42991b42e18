"""How the databases beside a run fared: what they were given, how far they were behind, what they refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.formatting import number, utc
from soakwatch.core.units import show_seconds
from soakwatch.record.model import SeriesKey
from soakwatch.record.source import ReportSource
from soakwatch_agent.sample import object_labels
from soakwatch_rules.series import Series

BEHIND_S = 30.0
"""A lag below this is the pace at which a database is fed."""
_LAG, _BACKLOG = "monitor.sink.lag", "monitor.sink.backlog"
_WRITTEN, _REJECTED = "monitor.sink.written", "monitor.sink.rejected"


@dataclass(frozen=True, slots=True)
class SinkAccount:
    """One sink: lines written and refused, its longest lag and when that was, and how it stood when the run ended.

    The end is that of the last poll: what is written while the verdict is made is not in it.
    """

    name: str
    written: int
    refused: int
    longest_s: float
    longest_ns: int
    left_s: float
    left_polls: int

    @property
    def well(self) -> bool:
        """Whether nothing was refused, and it was not behind at the end."""
        return not self.refused and self.left_s < BEHIND_S

    @property
    def lag(self) -> str:
        """How far it was behind at its worst."""
        if self.longest_s < BEHIND_S:
            return f"never more than {show_seconds(BEHIND_S)} behind"
        return f"{show_seconds(round(self.longest_s))} behind at {utc(self.longest_ns)}"

    @property
    def end(self) -> str:
        """How it stood at the end."""
        if self.left_s < BEHIND_S:
            return "up to date at the end"
        return f"{show_seconds(round(self.left_s))} behind at the end, {number(self.left_polls)} polls waited"

    @property
    def words(self) -> str:
        """All of it in one line."""
        refused = f"{number(self.refused)} refused" if self.refused else "none refused"
        return f"{self.name}: {number(self.written)} lines written, {refused}; {self.lag}; {self.end}"


def sink_accounts(source: ReportSource) -> tuple[SinkAccount, ...]:
    """The sinks that a run fed, by name; () for a run without one."""
    found = source.keys((_LAG, _BACKLOG, _WRITTEN, _REJECTED))
    by_name: dict[str, dict[str, Series]] = {}
    for key in found:
        by_name.setdefault(_name(key), {})[key.metric] = source.series(key).finite()
    return tuple(_account(name, series) for name, series in sorted(by_name.items()) if len(series.get(_LAG, ())))


def sinks_text(accounts: Iterable[SinkAccount]) -> tuple[str, ...]:
    """A line for each."""
    return tuple(f"sink {account.words}" for account in accounts)


def _name(key: SeriesKey) -> str:
    return dict(object_labels(key.object)).get("sink", key.object)


def _account(name: str, series: dict[str, Series]) -> SinkAccount:
    lag = series[_LAG]
    worst = int(np.argmax(lag.value))
    backlog = series.get(_BACKLOG, ())
    return SinkAccount(
        name=name,
        written=_total(series.get(_WRITTEN)),
        refused=_total(series.get(_REJECTED)),
        longest_s=float(lag.value[worst]),
        longest_ns=int(lag.time_ns[worst]),
        left_s=float(lag.value[-1]),
        left_polls=int(backlog.value[-1]) if isinstance(backlog, Series) and len(backlog) else 0,
    )


def _total(series: Series | None) -> int:
    """What a counter came to over all lives of the monitor; each begins at nothing."""
    if series is None or not len(series):
        return 0
    values: NDArray[np.float64] = series.value.astype(np.float64)
    ends = np.append(values[1:] < values[:-1], True)
    return round(float(values[ends].sum()))
