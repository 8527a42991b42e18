"""How the databases that a run feeds fared: what was written, how far behind they were, what they refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.formatting import number, utc
from soakwatch.core.units import show_seconds
from soakwatch.record.model import SeriesKey
from soakwatch.record.source import ReportSource
from soakwatch.report.blocks import BRIEF, HTML, Block, ReportColumn, Table, Text
from soakwatch.report.page import Page
from soakwatch_model.sample import object_labels
from soakwatch_model.series import Series

ORDER = 45
TITLE = "Databases"
BEHIND_S = 30.0
"""A lag below this is the pace at which a database is fed."""
_MAX_SENTENCES = 2
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
        return f"{show_seconds(round(self.left_s))} behind at the end, {number(self.left_polls)} polls not written"

    @property
    def words(self) -> str:
        """The whole account in one line."""
        rejected = f"{number(self.refused)} rejected" if self.refused else "none rejected"
        return f"{self.name}: {number(self.written)} lines written, {rejected}; {self.lag}; {self.end}"


def blocks(page: Page) -> Sequence[Block] | None:
    """A row for each sink, a sentence where there is less room; None for a run without one."""
    accounts = sink_accounts(page.source)
    if not accounts:
        return None
    columns = (
        ReportColumn("sink", "name"),
        ReportColumn("lines written", "number"),
        ReportColumn("rejected", "number"),
        ReportColumn("furthest behind"),
        ReportColumn("when the run ended"),
    )
    rows = [
        [account.name, number(account.written), number(account.refused), account.lag, account.end]
        for account in accounts
    ]
    healthy = all(account.well for account in accounts)
    blocks: list[Block] = [
        Text("The verdict is made from the record, never from a database.", tone="soft", formats=HTML),
        Table("Databases that were fed", columns, rows, HTML, tone="" if healthy else "caution"),
    ]
    if any(account.refused for account in accounts):
        text = "Rejected lines are kept beside the record with the database's reason: sink-…-refused.txt."
        blocks.append(Text(text, formats=HTML))
    if any(account.left_s >= BEHIND_S for account in accounts):
        text = "To send what is missing: soakwatch sink RUN --to DATABASE (unless sent meanwhile)."
        blocks.append(Text(text, formats=HTML))
    blocks += [
        Text(f"sink {account.words}", tone="" if account.well else "caution", formats=BRIEF)
        for account in accounts[:_MAX_SENTENCES]
    ]
    if len(accounts) > _MAX_SENTENCES:
        blocks.append(Text(f"… and {len(accounts) - _MAX_SENTENCES} more sinks in the report", formats=BRIEF))
    return blocks


def sink_accounts(source: ReportSource) -> tuple[SinkAccount, ...]:
    """The sinks that a run fed, by name; () for a run without one."""
    keys = source.keys((_LAG, _BACKLOG, _WRITTEN, _REJECTED))
    by_name: dict[str, dict[str, Series]] = {}
    for key in keys:
        by_name.setdefault(_name(key), {})[key.metric] = source.series(key).finite()
    return tuple(_account(name, series) for name, series in sorted(by_name.items()) if len(series.get(_LAG, ())))


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
    """The total of a counter over all lives of the monitor, each of which begins at zero."""
    if series is None or not len(series):
        return 0
    values: NDArray[np.float64] = series.value.astype(np.float64)
    ends = np.append(values[1:] < values[:-1], True)
    return round(float(values[ends].sum()))
