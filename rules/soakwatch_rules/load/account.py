"""LoadAccount: what was offered, sent, came back, was lost and failed, from whatever the generators report of it."""

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
from soakwatch_rules.load.offered import named

KINDS = (PACKETS, REQUESTS, BYTES, BITS)
"""What may be counted at both sides of a device: things before their sizes, which answers need not share."""


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """One kind of traffic of which both sides are known: what went ``into`` the network, and what came ``back``.

    ``commanded``: that it went in is only what a generator was configured to send. Each side is one metric, of all
    generators and objects that report it.
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
    """The load of a case, asked by side and by what is counted, whatever the unit in which a generator counts.

    Of several metrics that tell the same side the first with two readings answers, a counter before a rate: a counter
    knows what happened between two polls. Nothing is made up: a side of which nothing is reported is empty.
    """

    series: tuple[Series, ...]

    @classmethod
    def of(cls, load: Iterable[Series], window: Window | None = None) -> LoadAccount:
        """The account of a load, in a window or as a whole."""
        if window is None:
            return cls(tuple(load))
        return cls(tuple(series.between(window.begin_ns, window.end_ns) for series in load))

    @property
    def generators(self) -> tuple[str, ...]:
        """Those that report anything of the load, by name."""
        return tuple(sorted({series.target for series in self.series if series.metric in WHOLE_LOAD}))

    def only(self, generators: Iterable[str]) -> LoadAccount:
        """What some of them report."""
        wanted = frozenset(generators)
        return LoadAccount(tuple(series for series in self.series if series.target in wanted))

    def side(self, side: str, *what: str, kind: str | None = None) -> tuple[Series, ...]:
        """The series that tell one side of the traffic (see ``flow``), of the first ``what`` that has two readings.

        >>> import numpy as np
        >>> from soakwatch_rules.signals import readings
        >>> count = np.arange(3.0)
        >>> tells = [readings(f"load.tx.{unit}", count, 1.0) for unit in ("packet.rate", "bytes", "packets")]
        >>> account = LoadAccount.of(tells)
        >>> [account.side(SENT, what)[0].metric for what in (PACKETS, BYTES)], account.side(BACK, PACKETS)
        (['load.tx.packets', 'load.tx.bytes'], ())
        """
        metrics = [name for one in what for name in flows(side, one, kind=kind)] if what else flows(side, kind=kind)
        return named(self.series, *metrics)

    def any_of(self, side: str, what: str) -> tuple[Series, ...]:
        """All that tells of one side, however few its readings; the metric that is asked first, first."""
        ranks = {metric: rank for rank, metric in enumerate(flows(side, what))}
        return tuple(sorted((s for s in self.series if s.metric in ranks), key=lambda s: ranks[s.metric]))

    def into(self, what: str) -> tuple[Series, ...]:
        """What went into the network: what was sent, else what was to be sent."""
        return self.side(SENT, what) or self.side(OFFERED, what)

    def pair(self, what: str) -> Pair | None:
        """Both sides of one kind of traffic; None where one of them is not reported."""
        sent, back = self.side(SENT, what), self.side(BACK, what)
        into = sent or self.side(OFFERED, what)
        return Pair(what, into, back, commanded=not sent) if into and back else None

    def pairs(self) -> tuple[Pair, ...]:
        """Every kind of traffic of which both sides are reported, the one that says most first."""
        return tuple(pair for what in KINDS if (pair := self.pair(what)) is not None)

    def back(self, *kinds: str) -> tuple[Series, ...]:
        """What came back, of the first kind that is reported."""
        return next((series for what in kinds or KINDS if (series := self.side(BACK, what))), ())

    def asked(self) -> tuple[Series, ...]:
        """Requests and their failures, counted: together they are what was asked of the device."""
        answered, failed = self.side(BACK, REQUESTS, kind="counter"), self.side(FAILED, REQUESTS, kind="counter")
        return (*answered, *failed) if answered and failed else ()

    def demand(self) -> tuple[Series, ...]:
        """How much is asked of the device, in the best unit there is: what was commanded before what was sent, and
        before what was answered, which falls where the device fails."""
        ways = (
            *((OFFERED, what) for what in (PACKETS, REQUESTS, BITS)),
            *((SENT, what) for what in (PACKETS, BYTES, BITS)),
            (DRIVE, USERS),
            (BACK, REQUESTS),
        )
        return next((series for side, what in ways if (series := self.side(side, what))), ())

    def commands(self) -> tuple[Series, ...]:
        """All that says what the generators were set to do; of one that does not say, what it sent in its best unit."""
        set_to = {*flows(OFFERED), *flows(DRIVE, LEVEL, CONNECTIONS)}
        found: list[Series] = []
        for generator in self.generators:
            own = self.only((generator,))
            stated = tuple(series for series in own.series if series.metric in set_to)
            found += stated or own.side(SENT, PACKETS, BYTES, BITS)
        return tuple(found)

    def drives(self) -> tuple[Series, ...]:
        """Whether and how hard a generator works, in what is no traffic: level, users, connections, sending or not."""
        drives = flows(DRIVE)
        return tuple(series for series in self.series if series.metric in drives and len(series.finite()))


def is_of_side(metric: str, side: str) -> bool:
    """Whether a metric of the load is about one side of it.

    >>> is_of_side("load.tx.bytes", SENT), is_of_side("load.tx.bytes", BACK), is_of_side("system.uptime", BACK)
    (True, False, False)
    """
    entry = BY_NAME.get(metric)
    return entry is not None and entry.flow is not None and entry.flow.side == side


def drive_of(series: Series) -> str:
    """What a figure of how hard a generator works is in: level, users, connections or sending; else empty."""
    entry = BY_NAME.get(series.metric)
    return entry.flow.what if entry is not None and entry.flow is not None and entry.flow.side == DRIVE else ""
