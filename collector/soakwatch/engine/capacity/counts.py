"""What the generators counted over a trial: offered and lost, from the samples of their own polls.

A trial goes from rest to rest, so that nothing is under way when counters are read: what was sent and did not come
back is lost. How a load tells its loss is settled by the first trial and holds for the search: packets that it knows
to be lost, else those that did not come back, else its own share of loss; of requests those that failed. Counters are
read where there are any; rates are summed up over the time between readings. Every figure is summed up over the
driven loads, or over all generators where the driven ones tell no loss (a sender here, a receiver there).

A load that is another process at each level counts from 0 again. It is told by a counter that fell, or by what it sent:
read back to the begin of the trial, that leads to 0 and not to the last reading before. Wrong for a load whose rate
changes within a trial by more than it had sent in the one before.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from soakwatch.engine.load_driver import LEVEL
from soakwatch_model.flow import BACK, FAILED, LOST, OFFERED, PACKETS, REQUESTS, SENT
from soakwatch_model.metric import BY_NAME, COUNTER, flows
from soakwatch_model.roles import GENERATOR
from soakwatch_model.sample import Poll, PollOutcome

PACKET, REQUEST = "packet", "request"
_REST = 0.0
_MISCOUNTED = 0.001  # counters of two ports are not read at the same moment; more than that are duplicates


class UncountedError(Exception):
    """A trial whose loss is not known, in one sentence: it has to be repeated. ``final``: repeating will not help."""

    def __init__(self, text: str, *, final: bool = False) -> None:
        super().__init__(text)
        self.final = final


@dataclass(frozen=True, slots=True)
class Basis:
    """How loss is counted: metrics of what was sent, and of what was lost, came back, or failed."""

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
    """Offered and lost of one trial; ``rate`` per second while it sent, ``wanted_rate`` what the loads were set to."""

    offered: float
    lost: float
    rate: float
    wanted_rate: float | None


@dataclass(slots=True)
class _SourceAccount:
    """What one source of a generator reported since the last rest."""

    driven: bool = False
    answered_ns: int = 0  # start of the last answered poll
    failure: str = ""  # of the last poll that was not answered
    failed_ns: int = 0
    interval_ns: int = 0
    readings: dict[str, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))


class TrialCounts:
    """Sees every poll of a generator. ``forget`` drops what is older than the last rest; ``counted`` gives a trial."""

    def __init__(self) -> None:
        self._sources: dict[int, _SourceAccount] = {}
        self._news = asyncio.Event()
        self.basis: Basis | None = None
        self.watching = False

    def saw(self, role: str, poll: Poll, interval_ns: int) -> None:
        """One poll of a target with this role."""
        if role != GENERATOR:
            return
        account = self._sources.setdefault(poll.source, _SourceAccount())
        account.interval_ns = interval_ns
        self._news.set()
        if poll.outcome is not PollOutcome.OK:
            account.failure = poll.error or account.failure or poll.outcome.value  # one that was held back has none
            account.failed_ns = max(poll.start_ns, poll.due_ns)
            return
        account.answered_ns, account.failure = max(account.answered_ns, poll.start_ns), ""
        for sample in poll.answer.samples:
            if sample.object or sample.metric not in METRICS:
                continue
            account.driven |= sample.metric == LEVEL
            readings = account.readings[sample.metric]
            if not self.watching:
                readings.clear()
            readings.append((sample.time_ns, float(sample.value)))

    @property
    def interval_s(self) -> float:
        """The longest time between two polls of a load."""
        return max((account.interval_ns for account in self._counting()), default=10**9) * 1e-9

    def restart(self) -> None:
        """Another trial begins: of each series only the last reading is kept."""
        self.watching = True
        for account in self._sources.values():
            for readings in account.readings.values():
                del readings[:-1]

    def waits_for(self, since_ns: int, driven: int) -> bool:
        """Whether one of the loads (``driven`` ones, and others that are counted) has not been polled since then."""
        counting = self._counting()
        return sum(account.driven for account in counting) < max(driven, 1) or any(
            account.answered_ns < since_ns for account in counting
        )

    async def polled(self, since_ns: int, driven: int) -> None:
        """Wait until every load has been polled since then."""
        while self.waits_for(since_ns, driven):
            self._news.clear()
            await self._news.wait()

    def failure_since(self, since_ns: int) -> str:
        """Why a poll of a load failed since then; "" if none did."""
        return next((a.failure for a in self._counting() if a.failed_ns >= since_ns and a.failure), "")

    def standing(self) -> tuple[tuple[int, str, float], ...]:
        """The last reading of every counter: at rest it no longer changes."""
        return tuple(
            (number, metric, readings[-1][1])
            for number, account in sorted(self._sources.items())
            for metric, readings in sorted(account.readings.items())
            if readings and BY_NAME[metric].kind == COUNTER
        )

    def counted(self, level: float, begin_ns: int, end_ns: int) -> Counted:
        """What was counted since ``restart`` while loads sent at ``level`` from ``begin_ns`` to ``end_ns``.

        Raises UncountedError.
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
        sent_s = (end_ns - begin_ns) * 1e-9
        rate = _steady_rate(among, basis.sent, begin_ns, end_ns)
        wanted = _mean(driven, _WANTED[basis.unit], begin_ns, end_ns)
        return Counted(offered, max(lost, 0.0), offered / sent_s if rate is None else rate * factor, wanted)

    def _settled(self, begin_ns: int) -> Basis:
        for basis in _BASES:
            among = self._among(basis, begin_ns)
            if all(_total(among, metric, begin_ns) is not None for metric in (basis.sent, basis.told)) and (
                # A generator to which nothing ever comes back only sends, and knows of no loss.
                basis.how != "back" or (_total(among, basis.told, begin_ns) or 0) > 0
            ):
                return basis
        if not any(_total(self._sources.values(), basis.sent, begin_ns) for basis in _BASES):
            raise UncountedError("the load sent nothing")
        raise UncountedError(NO_LOSS, final=True)

    def _among(self, basis: Basis, begin_ns: int) -> list[_SourceAccount]:
        """The driven loads if they tell it themselves, else all generators."""
        driven = [account for account in self._sources.values() if account.driven]
        tell = all(_total(driven, metric, begin_ns) is not None for metric in (basis.sent, basis.told))
        return driven if tell else list(self._sources.values())

    def _counting(self) -> list[_SourceAccount]:
        """The sources that have to be polled after a trial: driven ones, and those that report what is counted."""
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
    """What was counted of a metric since the rest before, over all sources that report it; None where none does."""
    parts = [part for account in among if (part := _of(metric, account, begin_ns)) is not None]
    return sum(parts) if parts else None


def _of(metric: str, account: _SourceAccount, begin_ns: int) -> float | None:
    readings = account.readings.get(metric, [])
    inside = [(time_ns, value) for time_ns, value in readings if time_ns > begin_ns]
    if not inside:
        return None
    if BY_NAME[metric].kind == COUNTER:
        anew = _began_anew(account, begin_ns)
        before = next((value for time_ns, value in reversed(readings) if time_ns <= begin_ns), None)
        if before is None and not anew and inside[0][1] > 0:
            return None  # how much of it is of this trial is not known
        return inside[-1][1] - (0.0 if anew or before is None else before)
    last_ns, total = begin_ns, 0.0
    for time_ns, value in readings:
        if time_ns > begin_ns:
            total += value * (time_ns - last_ns) * 1e-9
            last_ns = time_ns
    return total


def _fell(metric: str, account: _SourceAccount, begin_ns: int) -> bool:
    """Whether a counter fell between two readings of the trial."""
    if BY_NAME[metric].kind != COUNTER:
        return False
    readings = account.readings.get(metric, [])
    inside = [value for time_ns, value in readings if time_ns > begin_ns]
    return any(after < before for before, after in pairwise(inside))


def _began_anew(account: _SourceAccount, begin_ns: int) -> bool:
    """Whether the counters of a load began at 0 after ``begin_ns``."""
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
    """What was sent per second between the first and the last reading while it sent: starts and stops left out."""
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
