"""Offered and lost load of a trial, counted from the polls of the generators.

A trial goes from rest to rest, so nothing is in flight when counters are read: what was sent and did not come back is
lost. The first trial settles how loss is counted for the whole search: packets that the load knows to be lost, else
those that did not come back, else its own share of loss; for requests, those that failed. Counters are preferred; rates
are integrated over the time between readings. Figures are summed over the driven loads, or over all generators if the
driven ones report no loss (a sender here, a receiver there).

A load may be a new process at each level, whose counters start from 0. That is assumed if a counter fell, or if
extrapolating what it sent back to the trial's begin leads closer to 0 than to the last reading before. Wrong if a
load's rate changes within a trial by more than it had sent in the one before.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from soakwatch.engine.load_driver import LEVEL
from soakwatch.judge.capacity import Way
from soakwatch_model.flow import BACK, FAILED, LOST, OFFERED, PACKETS, PORT, REQUESTS, SENT
from soakwatch_model.metric import BY_NAME, COUNTER, flows
from soakwatch_model.roles import GENERATOR
from soakwatch_model.sample import Poll, PollOutcome

PACKET, REQUEST = "packet", "request"
_REST = 0.0
_MISCOUNTED = 0.001  # share: two ports are not read at the same moment; more than this are duplicates


class UncountedError(Exception):
    """The loss of a trial is unknown, so it must be repeated; if ``final``, repeating will not help."""

    def __init__(self, text: str, *, final: bool = False) -> None:
        super().__init__(text)
        self.final = final


@dataclass(frozen=True, slots=True)
class Basis:
    """How loss is counted: the metric of what was sent, and of what was lost, came back or failed (``told``)."""

    unit: str
    sent: str
    told: str
    how: str  # lost, back, share, failed
    words: str


_TX, _TX_RATE = flows(SENT, PACKETS)
_RX, _RX_RATE = flows(BACK, PACKETS)
_LOST, _SHARE_LOST = flows(LOST, PACKETS)
_ANSWERED, _ANSWERS = flows(BACK, REQUESTS)
_FAILED, _FAILURES = flows(FAILED, REQUESTS)
_BASES = (
    Basis(PACKET, _TX, _LOST, "lost", "packets that the generator knows to be lost"),
    Basis(PACKET, _TX, _RX, "back", "packets sent that did not come back"),
    Basis(PACKET, _RX, _LOST, "of came", "packets that the receiver knows to be lost"),
    Basis(PACKET, _TX_RATE, _RX_RATE, "back", "packets sent that did not come back, by rates"),
    Basis(PACKET, _TX, _SHARE_LOST, "share", "the generator's own share of loss"),
    Basis(PACKET, _TX_RATE, _SHARE_LOST, "share", "the generator's own share of loss"),
    Basis(REQUEST, _ANSWERED, _FAILED, "failed", "requests that failed"),
    Basis(REQUEST, _ANSWERS, _FAILURES, "failed", "requests that failed, by rates"),
)
_SENT = (_TX, _ANSWERED, _RX)
(_PORT_TX,) = flows(SENT, PACKETS, kind=COUNTER, scope=PORT)
(_PORT_RX,) = flows(BACK, PACKETS, kind=COUNTER, scope=PORT)
_PORTS = frozenset({_PORT_TX, _PORT_RX})
_WANTED = {PACKET: flows(OFFERED, PACKETS)[0], REQUEST: flows(OFFERED, REQUESTS)[0]}
METRICS = frozenset(
    {metric for basis in _BASES for metric in (basis.sent, basis.told)} | set(_WANTED.values()) | {LEVEL}
)
NO_LOSS = (
    "no driven load counts what it loses: a capacity needs packets sent and received or lost (load.tx.packets with "
    "load.rx.packets or load.lost.packets), or requests with failures (load.requests, load.failures)"
)


@dataclass(frozen=True, slots=True)
class Counted:
    """Offered and lost of one trial; ``rate`` is per second while sending, ``wanted_rate`` the loads' setting.

    ``rate`` is by the times of polls, which a busy machine takes late. ``least`` is by the counts and the longest time
    in which they can have been sent, ``most`` by the time in which the load was told to send. ``ways`` are the
    directions, where ports are counted."""

    offered: float
    lost: float
    rate: float
    wanted_rate: float | None
    least: float
    most: float
    ways: tuple[Way, ...] = ()


@dataclass(slots=True)
class _SourceAccount:
    """Readings of one source of a generator since the last rest."""

    driven: bool = False
    answered_ns: int = 0  # start of the last answered poll
    failure: str = ""  # of the last poll that was not answered
    failed_ns: int = 0
    interval_ns: int = 0
    readings: dict[str, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))
    # counters of its ports, by metric and port
    ports: dict[tuple[str, str], list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))


class TrialCounts:
    """Counts trials from every poll of the generators: ``restart`` drops what is older than the last rest."""

    def __init__(self) -> None:
        self._sources: dict[int, _SourceAccount] = {}
        self._news = asyncio.Event()
        self.basis: Basis | None = None
        self.watching = False

    def observe(self, role: str, poll: Poll, interval_ns: int) -> None:
        """One poll of a target with this role."""
        if role != GENERATOR:
            return
        account = self._sources.setdefault(poll.source, _SourceAccount())
        account.interval_ns = interval_ns
        self._news.set()
        if poll.outcome is not PollOutcome.OK:
            account.failure = poll.error or account.failure or poll.outcome.value  # a poll not made has no error text
            account.failed_ns = max(poll.start_ns, poll.due_ns)
            return
        account.answered_ns, account.failure = max(account.answered_ns, poll.start_ns), ""
        for sample in poll.answer.samples:
            if sample.metric in _PORTS:
                readings = account.ports[sample.metric, sample.object]
            elif sample.object or sample.metric not in METRICS:
                continue
            else:
                account.driven |= sample.metric == LEVEL
                readings = account.readings[sample.metric]
            if not self.watching:
                readings.clear()
            readings.append((sample.time_ns, float(sample.value)))

    @property
    def interval_s(self) -> float:
        """The longest poll interval of a counted load, seconds."""
        return max((account.interval_ns for account in self._counting()), default=10**9) * 1e-9

    def restart(self) -> None:
        """A trial begins: keeps only the last reading of each series."""
        self.watching = True
        for account in self._sources.values():
            for readings in (*account.readings.values(), *account.ports.values()):
                del readings[:-1]

    def waits_for(self, since_ns: int, driven: int) -> bool:
        """True if a load (``driven`` ones, and others that are counted) was not polled since ``since_ns``."""
        counting = self._counting()
        return sum(account.driven for account in counting) < max(driven, 1) or any(
            account.answered_ns < since_ns for account in counting
        )

    async def polled(self, since_ns: int, driven: int) -> None:
        """Waits until every load was polled since ``since_ns``."""
        while self.waits_for(since_ns, driven):
            self._news.clear()
            await self._news.wait()

    def failure_since(self, since_ns: int) -> str:
        """Why a poll of a load failed since ``since_ns``; "" if none did."""
        return next((a.failure for a in self._counting() if a.failed_ns >= since_ns and a.failure), "")

    def standing(self) -> tuple[tuple[int, str, float], ...]:
        """The last reading of every counter; equal at two times, the loads are at rest."""
        return tuple(
            (number, metric, readings[-1][1])
            for number, account in sorted(self._sources.items())
            for metric, readings in sorted(account.readings.items())
            if readings and BY_NAME[metric].kind == COUNTER
        )

    def counted(
        self, level: float, begin_ns: int, end_ns: int, *, started_ns: int | None = None, stopped_ns: int | None = None
    ) -> Counted:
        """The trial since ``restart``, in which loads sent at ``level`` from ``begin_ns`` to ``end_ns``.

        They had begun by ``started_ns`` and had ended by ``stopped_ns``. Raises UncountedError if its loss is unknown.
        """
        failure = self.failure_since(begin_ns)
        if failure:
            raise UncountedError(f"a poll of the load failed: {failure}")
        driven = [account for account in self._sources.values() if account.driven]
        for account in driven:
            levels = {value for time_ns, value in account.readings[LEVEL] if begin_ns < time_ns < end_ns}
            if levels != {level}:
                raise UncountedError(f"the load was not seen at {level:.2%}")
        if self.basis is None:
            self.basis = self._settled(begin_ns)
        basis = self.basis
        among = self._among(basis, begin_ns)
        if any(_fell(basis.sent, account, begin_ns) for account in among):
            raise UncountedError(f"{basis.sent} fell within the trial: the load, or its counters, began anew")
        sent = _total(among, basis.sent, begin_ns)
        told = _total(among, basis.told, begin_ns)
        if sent is None or told is None:
            raise UncountedError(f"the load did not report {basis.sent if sent is None else basis.told}")
        offered, lost = _loss(basis, sent, told, among, begin_ns)
        if offered <= 0:
            raise UncountedError("the load sent nothing")
        if lost < -_MISCOUNTED * offered:
            raise UncountedError(f"{-lost / offered:.2%} more packets came back than were sent")
        factor = offered / sent if basis.how in {"failed", "of came"} and sent > 0 else 1.0
        steady = _steady_rate(among, basis.sent, begin_ns, end_ns)
        wanted = _mean(driven, _WANTED[basis.unit], begin_ns, end_ns)
        longest_s = ((stopped_ns or end_ns) - begin_ns) * 1e-9
        shortest_s = (end_ns - (started_ns or begin_ns)) * 1e-9
        least = offered / longest_s
        rate = offered / ((end_ns - begin_ns) * 1e-9) if steady is None else steady * factor
        return Counted(
            offered,
            max(lost, 0.0),
            max(rate, least),
            wanted,
            least,
            offered / shortest_s,
            _ways(among, begin_ns) if basis.unit == PACKET else (),
        )

    def _settled(self, begin_ns: int) -> Basis:
        for basis in _BASES:
            among = self._among(basis, begin_ns)
            if all(_total(among, metric, begin_ns) is not None for metric in (basis.sent, basis.told)) and (
                # A generator that never gets anything back only sends: it cannot know loss.
                basis.how != "back" or (_total(among, basis.told, begin_ns) or 0) > 0
            ):
                return basis
        if not any(_total(self._sources.values(), basis.sent, begin_ns) for basis in _BASES):
            raise UncountedError("the load sent nothing")
        raise UncountedError(NO_LOSS, final=True)

    def _among(self, basis: Basis, begin_ns: int) -> list[_SourceAccount]:
        """The driven loads if they report both metrics themselves, else all generators."""
        driven = [account for account in self._sources.values() if account.driven]
        tell = all(_total(driven, metric, begin_ns) is not None for metric in (basis.sent, basis.told))
        return driven if tell else list(self._sources.values())

    def _counting(self) -> list[_SourceAccount]:
        """The sources that must be polled after a trial: driven ones, and those that report what is counted."""
        metrics = () if self.basis is None else (self.basis.sent, self.basis.told)
        return [a for a in self._sources.values() if a.driven or any(a.readings.get(metric) for metric in metrics)]


def _loss(
    basis: Basis, sent: float, told: float, among: Sequence[_SourceAccount], begin_ns: int
) -> tuple[float, float]:
    """Offered and lost."""
    if basis.how == "lost":
        return sent, told
    if basis.how == "back":
        return sent, sent - told
    if basis.how in {"failed", "of came"}:
        return sent + told, told
    seconds = sum(_span(account.readings[basis.told], begin_ns) for account in among)
    return sent, sent * told / seconds if seconds else 0.0


def _total(among: Iterable[_SourceAccount], metric: str, begin_ns: int) -> float | None:
    """A metric's count since the last rest, summed over the sources that report it; None if none does."""
    parts = [part for account in among if (part := _of(metric, account, begin_ns)) is not None]
    return sum(parts) if parts else None


def _of(metric: str, account: _SourceAccount, begin_ns: int) -> float | None:
    readings = account.readings.get(metric, [])
    inside = [(time_ns, value) for time_ns, value in readings if time_ns > begin_ns]
    if not inside:
        return None
    if BY_NAME[metric].kind == COUNTER:
        return _grown(readings, begin_ns, anew=_began_anew(account, begin_ns))
    last_ns, total = begin_ns, 0.0
    for time_ns, value in readings:
        if time_ns > begin_ns:
            total += value * (time_ns - last_ns) * 1e-9
            last_ns = time_ns
    return total


def _grown(readings: Sequence[tuple[int, float]], begin_ns: int, *, anew: bool) -> float | None:
    """How far a counter grew since the last rest; None if that is not known."""
    inside = [value for time_ns, value in readings if time_ns > begin_ns]
    before = next((value for time_ns, value in reversed(readings) if time_ns <= begin_ns), None)
    if not inside or (before is None and not anew and inside[0] > 0):
        return None  # how much of it belongs to this trial is unknown
    return inside[-1] - (0.0 if anew or before is None else before)


def _ways(among: Iterable[_SourceAccount], begin_ns: int) -> tuple[Way, ...]:
    """What each port sent; of two ports that send to each other also what was lost. None of several generators: nobody
    knows which of their ports belong together."""
    having = [account for account in among if account.ports]
    if len(having) != 1:
        return ()
    (account,) = having
    anew = _began_anew(account, begin_ns)
    grown = {key: part for key, r in account.ports.items() if (part := _grown(r, begin_ns, anew=anew)) is not None}
    sent = {port: part for (metric, port), part in sorted(grown.items()) if metric == _PORT_TX and part > 0}
    back = {port: part for (metric, port), part in grown.items() if metric == _PORT_RX and part > 0}
    names = {port: port.removeprefix("port=") for port in sent}
    if len(sent) == 2 and back.keys() == sent.keys():
        one, other = sent
        pairs = ((one, other), (other, one))
        return tuple(Way(names[a], names[b], sent[a], max(0.0, sent[a] - back[b])) for a, b in pairs)
    return tuple(Way(names[port], "", part, None) for port, part in sent.items())


def _fell(metric: str, account: _SourceAccount, begin_ns: int) -> bool:
    """True if a counter fell between two readings of the trial."""
    if BY_NAME[metric].kind != COUNTER:
        return False
    readings = account.readings.get(metric, [])
    inside = [value for time_ns, value in readings if time_ns > begin_ns]
    return any(after < before for before, after in pairwise(inside))


def _began_anew(account: _SourceAccount, begin_ns: int) -> bool:
    """True if a load's counters started from 0 after ``begin_ns``; see the module."""
    for metric in _SENT:
        readings = account.readings.get(metric, [])
        inside = [(time_ns, value) for time_ns, value in readings if time_ns > begin_ns]
        before = next((value for time_ns, value in reversed(readings) if time_ns <= begin_ns), None)
        if not inside:
            continue
        if before is not None and inside[0][1] < before:
            return True
        grown = [(time_ns, value) for time_ns, value in inside if value > inside[0][1]]
        if not grown:
            continue
        (first_ns, first), (last_ns, last) = inside[0], grown[0]
        at_begin = first - (last - first) * (first_ns - begin_ns) / (last_ns - first_ns)
        return abs(at_begin) < (last - first if before is None else abs(at_begin - before))
    return False


def _span(readings: Sequence[tuple[int, float]], begin_ns: int) -> float:
    return max((time_ns - begin_ns) * 1e-9 for time_ns, _ in readings) if readings else 0.0


def _steady_rate(among: Iterable[_SourceAccount], metric: str, begin_ns: int, end_ns: int) -> float | None:
    """Rate per second between the first and the last reading while sending, without start and stop."""
    rates = []
    for account in among:
        inside = [(t, v) for t, v in account.readings.get(metric, []) if begin_ns < t <= end_ns]
        if not inside:
            continue
        if BY_NAME[metric].kind != COUNTER:
            rates.append(sorted(value for _, value in inside)[len(inside) // 2])
            continue
        (first_ns, first), (last_ns, last) = inside[0], inside[-1]
        if last_ns - first_ns < (end_ns - begin_ns) / 3 or last < first:
            return None
        rates.append((last - first) / ((last_ns - first_ns) * 1e-9))
    return sum(rates) if rates else None


def _mean(among: Iterable[_SourceAccount], metric: str, begin_ns: int, end_ns: int) -> float | None:
    means = []
    for account in among:
        inside = [v for t, v in account.readings.get(metric, []) if begin_ns < t <= end_ns and v > _REST]
        if inside:
            means.append(sum(inside) / len(inside))
    return sum(means) if means else None
