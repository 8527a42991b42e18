"""LoadAccount: what was offered, sent, came back, was lost and failed, in whatever units the generators report it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from soakwatch_model.flow import (
    BACK,
    BITS,
    BYTES,
    CONNECTIONS,
    DRIVE,
    FAILED,
    LEVEL,
    OFFERED,
    PACKETS,
    REQUESTS,
    SENT,
    USERS,
)
from soakwatch_model.metric import BY_NAME, flows
from soakwatch_model.metric_load import WHOLE_LOAD
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.load.offered import first_reported

KINDS = (PACKETS, REQUESTS, BYTES, BITS)
"""What may be counted on both sides of a device; sizes come last, since answers may have other sizes."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadPair:
    """One kind of traffic with both sides known: what went ``into`` the network and what came ``back``.

    ``commanded``: ``into`` is only what a generator was configured to send. Each side is one metric, of all generators
    and objects that report it.
    """

    what: str
    into: tuple[Series, ...]
    back: tuple[Series, ...]
    commanded: bool

    @property
    def exact(self) -> bool:
        """Whether both sides are counted, and not sampled as rates."""
        return all(series.trait.kind == "counter" for series in (*self.into, *self.back))


@dataclass(frozen=True, slots=True, eq=False)
class LoadAccount:
    """The load of a case by side and by what is counted, in whatever unit a generator counts.

    If several metrics report one side, the first with two readings is taken, counters before rates, because a counter
    includes what happened between two polls. A side that nothing reports is empty.
    """

    series: tuple[Series, ...]

    @classmethod
    def of(cls, load: Iterable[Series], window: Window | None = None) -> LoadAccount:
        """The account of a load, cut to ``window`` if given."""
        if window is None:
            return cls(tuple(load))
        return cls(tuple(series.between(window.begin_ns, window.end_ns) for series in load))

    @property
    def generators(self) -> tuple[str, ...]:
        """The names of all that report the load."""
        return tuple(sorted({series.target for series in self.series if series.metric in WHOLE_LOAD}))

    def only(self, generators: Iterable[str]) -> LoadAccount:
        """The account of these generators only."""
        wanted = frozenset(generators)
        return LoadAccount(tuple(series for series in self.series if series.target in wanted))

    def side(self, side: str, *what: str, kind: str | None = None) -> tuple[Series, ...]:
        """The series of one side of the traffic (see ``flow``), in the first of ``what`` that has two readings.

        >>> import numpy as np
        >>> from soakwatch_rules.signals import readings
        >>> count = np.arange(3.0)
        >>> tells = [readings(f"load.tx.{unit}", count, 1.0) for unit in ("packet.rate", "bytes", "packets")]
        >>> account = LoadAccount.of(tells)
        >>> [account.side(SENT, what)[0].metric for what in (PACKETS, BYTES)], account.side(BACK, PACKETS)
        (['load.tx.packets', 'load.tx.bytes'], ())
        """
        metrics = [name for one in what for name in flows(side, one, kind=kind)] if what else flows(side, kind=kind)
        return first_reported(self.series, *metrics)

    def any_of(self, side: str, what: str) -> tuple[Series, ...]:
        """All series of one side, however few their readings, sorted by the order of their metrics in the catalogue."""
        ranks = {metric: rank for rank, metric in enumerate(flows(side, what))}
        return tuple(sorted((s for s in self.series if s.metric in ranks), key=lambda s: ranks[s.metric]))

    def into(self, what: str) -> tuple[Series, ...]:
        """What was sent, else what was commanded."""
        return self.side(SENT, what) or self.side(OFFERED, what)

    def pair(self, what: str) -> LoadPair | None:
        """Both sides of one kind of traffic; None if one of them is not reported."""
        sent, back = self.side(SENT, what), self.side(BACK, what)
        into = sent or self.side(OFFERED, what)
        return LoadPair(what, into, back, commanded=not sent) if into and back else None

    def pairs(self) -> tuple[LoadPair, ...]:
        """Every kind of traffic with both sides reported, in the order of ``KINDS``."""
        return tuple(pair for what in KINDS if (pair := self.pair(what)) is not None)

    def back(self, *kinds: str) -> tuple[Series, ...]:
        """What came back, in the first kind that is reported."""
        return next((series for what in kinds or KINDS if (series := self.side(BACK, what))), ())

    def request_counters(self) -> tuple[Series, ...]:
        """Counters of answered and of failed requests, whose sum is what the device was asked; empty unless both."""
        answered, failed = self.side(BACK, REQUESTS, kind="counter"), self.side(FAILED, REQUESTS, kind="counter")
        return (*answered, *failed) if answered and failed else ()

    def demand(self) -> tuple[Series, ...]:
        """How much the device is asked for, in the best unit reported: commanded, else sent, else users, else answered
        requests (last, since they fall when the device fails)."""
        ways = (
            *((OFFERED, what) for what in (PACKETS, REQUESTS, BITS)),
            *((SENT, what) for what in (PACKETS, BYTES, BITS)),
            (DRIVE, USERS),
            (BACK, REQUESTS),
        )
        return next((series for side, what in ways if (series := self.side(side, what))), ())

    def commands(self) -> tuple[Series, ...]:
        """What the generators were commanded; for one that does not report it, what it sent."""
        set_to = {*flows(OFFERED), *flows(DRIVE, LEVEL, CONNECTIONS)}
        found: list[Series] = []
        for generator in self.generators:
            own = self.only((generator,))
            stated = tuple(series for series in own.series if series.metric in set_to)
            found += stated or own.side(SENT, PACKETS, BYTES, BITS)
        return tuple(found)

    def drives(self) -> tuple[Series, ...]:
        """How hard the generators work, apart from traffic: level, users, connections, sending or not."""
        drives = flows(DRIVE)
        return tuple(series for series in self.series if series.metric in drives and len(series.finite()))


def is_of_side(metric: str, side: str) -> bool:
    """Whether a metric of the load reports this side of it.

    >>> is_of_side("load.tx.bytes", SENT), is_of_side("load.tx.bytes", BACK), is_of_side("system.uptime", BACK)
    (True, False, False)
    """
    entry = BY_NAME.get(metric)
    return entry is not None and entry.flow is not None and entry.flow.side == side


def drive_of(series: Series) -> str:
    """What a figure of how hard a generator works counts (level, users, connections, sending); "" for others."""
    entry = BY_NAME.get(series.metric)
    return entry.flow.what if entry is not None and entry.flow is not None and entry.flow.side == DRIVE else ""
