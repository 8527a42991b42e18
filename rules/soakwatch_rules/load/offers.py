"""Offers: what was offered and what of it came back, for each kind that a generator or probe reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.flow import (
    BACK,
    BITS,
    BYTES,
    CONNECTIONS,
    FAILED,
    LOST,
    OFFERED,
    PACKETS,
    REQUESTS,
    SENDING,
    SENT,
    USERS,
)
from soakwatch_model.metric import BY_NAME, COUNTER, GAUGE
from soakwatch_model.series import Floats, Ints, Series
from soakwatch_rules.load.load_account import LoadAccount, LoadPair, drive_of
from soakwatch_rules.load.throughput import Curve, curve
from soakwatch_rules.sampling import cadence
from soakwatch_rules.stats.counted_amounts import binned
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.outage import Bins

PINGS = "pings"
_ALIKE, _IN_A_ROW, _FEW = 0.001, 8, 100.0  # one for one: 8 bins in a row of 100 packets or more, equal to 0.1 %
_SIZE = 0.1  # packets whose mean size differs by more than this share are not those that were sent
_GOES_ON = 0.5  # share of its usual users or connections above which a generator is working
_GAP = 3.0  # cadences


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """One account of a ``kind``: what was sent and lost in ``bins``, or only the ``rate`` of what came back.

    ``ratio``: a share of ``bins`` lost is a loss; otherwise only a standstill counts, since what was commanded need not
    have been sent. ``exact``: counted, not sampled. ``on`` says for each bin or reading whether a load was offered (1)
    or not (0), NaN if unknown. ``metric`` and ``label`` are what findings name; ``source`` says in a few words what was
    compared. ``open``: what is missing of something that need not come back, because it may not have been sent
    (``missing`` is ``was to send``) or may be answered in other packets (``missing`` is ``sent``).
    """

    kind: str
    label: str
    metric: str
    source: str
    series: Series
    bins: Bins | None = None
    rate: Curve | None = None
    ratio: bool = True
    exact: bool = True
    on: Floats | None = None
    open: Bins | None = None
    missing: str = ""

    @property
    def what(self) -> str:
        """What is counted: the kind, or bytes or bits that stand for packets."""
        flow = BY_NAME[self.metric].flow if self.metric in BY_NAME else None
        return flow.what if flow is not None and flow.what in {BYTES, BITS} else self.kind

    @property
    def apart_s(self) -> float:
        """The distance of readings in seconds."""
        return cadence(self.series.finite()) or 1.0

    @property
    def longest_s(self) -> float:
        """The longest bin in seconds that counts; a counter covers any gap, a sampled rate does not."""
        return float("inf") if self.exact else _GAP * self.apart_s


def offers(case: Case) -> tuple[Offer, ...]:
    """Every account of a case: packets of all generators together, since what one sends may come back to another;
    packets of each generator that sends requests; requests and connections of each generator; pings of each peer."""
    account = LoadAccount.of(case.load, case.window)
    generators = account.generators
    asking = {name for name in generators if account.only((name,)).side(BACK, REQUESTS)}
    offers = [*_packets(account.only(set(generators) - asking), "", asks=False)]
    for generator in generators:
        own = account.only((generator,))
        label = f"generator={generator}" if len(generators) > 1 else ""
        if generator in asking:
            offers += _packets(own, label, asks=True)
        offers += [*_requests(own, label), *_connections(own, label)]
    return (*offers, *_pings(case.series))


def _packets(load: LoadAccount, label: str, *, asks: bool) -> Iterator[Offer]:
    """With ``asks`` the packets belong to requests, and only those certain to return one for one can be lost."""
    sent, lost = load.side(SENT, PACKETS), load.side(LOST, PACKETS, kind=COUNTER)
    pair, back = load.pair(PACKETS), load.side(BACK, PACKETS)
    on = _Activity(load)
    if pair is not None and not pair.commanded:
        between = _between(pair, label, "packets sent and received", on, ratio=True)
        alike = _same_size(load)
        sure = alike is not False if not asks else alike or (alike is None and _one_for_one(between))
        if sure:
            yield between
        elif alike is None:
            yield replace(between, ratio=False, open=between.bins, missing="sent")
        else:
            yield replace(between, ratio=False)
    elif pair is not None:
        between = _between(pair, label, "packets commanded and received", on, ratio=False)
        yield replace(between, open=between.bins, missing="was to send")
    elif back and not asks:
        yield _alone(PACKETS, label, back, "packets received", on)
    if sent and lost:
        edges = _edges(lost)
        bins = Bins(edges, binned(sent, edges), binned(lost, edges))
        bins = _whole(bins, (*sent, *lost))
        yield Offer(PACKETS, label, lost[0].metric, "packets that the generator counted as lost", lost[0], bins)
    for series in load.side(LOST, PACKETS, kind=GAUGE):
        yield _share(series, sent)
    if not sent and not back and not asks:
        if size := load.pair(BYTES) or load.pair(BITS):
            between = _between(size, label, "data sent and received", on, ratio=False)
            if not size.commanded and _one_for_one(between):
                yield replace(between, ratio=True)
            else:
                yield replace(between, open=between.bins, missing="was to send" if size.commanded else "sent")
        elif came := load.back(BYTES, BITS):
            yield _alone(PACKETS, label, came, "data received", on)


def _one_for_one(offer: Offer) -> bool:
    """Whether for a while as many packets came back as were sent, unlike questions and answers."""
    if offer.bins is None:
        return False
    with np.errstate(invalid="ignore"):
        alike = (offer.bins.sent >= _FEW) & (np.abs(offer.bins.lost) <= _ALIKE * offer.bins.sent)
    return bool((np.convolve(alike, np.ones(_IN_A_ROW, dtype=np.int64)) >= _IN_A_ROW).any())


def _requests(own: LoadAccount, label: str) -> Iterator[Offer]:
    answered, failed, reported = (own.side(side, REQUESTS) for side in (BACK, FAILED, OFFERED))
    pair = own.pair(REQUESTS)
    on = _Activity(own)
    if answered and failed:
        edges = _edges(answered)
        sent, lost = binned((*answered, *failed), edges), binned(failed, edges)
        exact = all(s.trait.kind == "counter" for s in (*answered, *failed))
        bins = _whole(Bins(edges, sent, lost), (*answered, *failed))
        yield Offer(
            REQUESTS,
            label,
            answered[0].metric,
            "requests answered and failed",
            answered[0],
            bins,
            exact=exact,
            on=on.activity(edges),
        )
    elif failed:
        edges = _edges(failed)
        sent = binned(reported, edges) if reported else np.full(max(edges.size - 1, 0), np.nan)
        bins = _whole(Bins(edges, sent, binned(failed, edges)), failed)
        yield Offer(REQUESTS, label, failed[0].metric, "requests that failed", failed[0], bins, on=on.activity(edges))
    if pair is not None:
        between = _between(pair, label, "requests commanded and answered", on, ratio=False)
        assert between.bins is not None
        without = between.bins.lost - binned(failed, between.bins.edges_ns) if failed else between.bins.lost
        bins = _whole(replace(between.bins, lost=without), failed)
        yield replace(between, open=bins, missing="was to send")
    elif answered:
        yield _alone(REQUESTS, label, answered, "requests answered", on)


def _connections(own: LoadAccount, label: str) -> Iterator[Offer]:
    failed, opened = own.side(FAILED, CONNECTIONS), own.side(BACK, CONNECTIONS)
    if not failed:
        return
    edges = _edges(failed)
    lost = binned(failed, edges)
    sent = binned((*opened, *failed), edges) if opened else np.full(lost.size, np.nan)
    bins = _whole(Bins(edges, sent, lost), (*opened, *failed))
    yield Offer(
        CONNECTIONS,
        label,
        failed[0].metric,
        "connections opened and failed",
        failed[0],
        bins,
        on=_Activity(own).activity(edges),
    )


def _pings(series: Iterable[Series]) -> Iterator[Offer]:
    by_peer: dict[str, dict[str, Series]] = {}
    for samples in series:
        if samples.metric.startswith("reach.") and len(samples.finite()):
            by_peer.setdefault(samples.object, {})[samples.metric] = samples.finite()
    for peer, own in sorted(by_peer.items()):
        sent, lost, up = own.get("reach.sent"), own.get("reach.lost"), own.get("reach.up")
        if sent is not None and lost is not None and len(lost) > 1:
            edges = lost.time_ns
            bins = _whole(Bins(edges, binned([sent], edges), binned([lost], edges)), (sent, lost))
            yield Offer(PINGS, peer, "reach.lost", "requests sent to the peer and lost", lost, bins)
        elif up is not None and len(up) > 1:
            gone = 1.0 - np.clip(up.values[1:], 0.0, 1.0)
            yield Offer(
                PINGS,
                peer,
                "reach.up",
                "samples in which the peer answered",
                up,
                Bins(up.time_ns, np.ones(gone.size), gone),
            )


def _between(pair: LoadPair, label: str, source: str, on: _Activity, *, ratio: bool) -> Offer:
    """Both sides compared in bins; bytes and bits count as an account of packets."""
    kind, first = pair.what if pair.what == REQUESTS else PACKETS, pair.back[0]
    edges = _edges(pair.back)
    into, out = binned(pair.into, edges), binned(pair.back, edges)
    with np.errstate(invalid="ignore", over="ignore"):
        bins = _whole(Bins(edges, into, into - out), (*pair.into, *pair.back))
    return Offer(kind, label, first.metric, source, first, bins, ratio=ratio, exact=pair.exact, on=on.activity(edges))


def _alone(kind: str, label: str, came: tuple[Series, ...], source: str, on: _Activity) -> Offer:
    """An offer of which only the returned rate is known, summed over all series at the times of the first."""
    first = came[0]
    if len(came) == 1:
        rates = curve(first)
    else:
        edges = _edges(came)
        with np.errstate(all="ignore"):
            rate = binned(came, edges) / (np.diff(edges) * 1e-9)
        good = np.isfinite(rate)
        rates = Curve(edges[:-1][good], edges[1:][good], rate[good])
    if first.trait.kind == "counter" and rates.rate.size:
        edges = np.append(rates.begin_ns[:1], rates.end_ns)
        kept = np.isfinite(_whole(Bins(edges, rates.rate, rates.rate), came).sent)
        rates = Curve(rates.begin_ns[kept], rates.end_ns[kept], rates.rate[kept])
    edges = np.append(rates.begin_ns[:1], rates.end_ns)
    return Offer(kind, label, first.metric, source, first, rate=rates, ratio=False, exact=False, on=on.activity(edges))


def _share(loss: Series, sent: tuple[Series, ...]) -> Offer:
    """A lost share that the generator reports, weighted by what it sent; without that by time."""
    good = loss.finite()
    edges = good.time_ns
    much = binned(sent, edges) if sent else np.diff(edges) * 1e-9
    share = np.clip(good.values[1:], 0.0, 1.0)
    return Offer(
        PACKETS,
        loss.object,
        loss.metric,
        "the share that the generator says is lost",
        loss,
        Bins(edges, much, much * share),
        exact=False,
    )


def _same_size(load: LoadAccount) -> bool | None:
    """Whether the mean size of packets is equal both ways, unlike that of questions and answers; None if unknown."""
    sizes = []
    for side in (SENT, BACK):
        many, much = load.side(side, PACKETS, kind=COUNTER), load.side(side, BYTES, kind=COUNTER)
        if not many or not much:
            return None
        number, total = (float(np.nansum(binned(x, _edges(x)))) for x in (many, much))
        if number <= 0 or total <= 0:
            return None
        sizes.append(total / number)
    return abs(sizes[0] - sizes[1]) <= _SIZE * max(sizes)


def _whole(bins: Bins, series: Iterable[Series]) -> Bins:
    """The bins with NaN around restarts of a counter, since what it counted just before is unknown and no loss."""
    gone = np.zeros(bins.sent.size, dtype=bool)
    for samples in series:
        good = samples.finite()
        if good.trait.kind != "counter" or len(good) < 2:
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            fell = np.flatnonzero(np.isnan(good.increments().values))
        for index in fell.tolist():
            gone |= (bins.edges_ns[1:] > good.time_ns[index]) & (bins.edges_ns[:-1] < good.time_ns[index + 1])
    if not gone.any():
        return bins
    near = np.convolve(gone, np.ones(3))[1:-1] > 0
    return Bins(bins.edges_ns, np.where(near, np.nan, bins.sent), np.where(near, np.nan, bins.lost))


def _edges(series: tuple[Series, ...]) -> Ints:
    return series[0].finite().time_ns


class _Activity:
    """Whether a load was offered, by what the generators report apart from traffic."""

    __slots__ = ("_reported",)

    def __init__(self, load: LoadAccount) -> None:
        good = [(drive_of(series), series.finite()) for series in load.drives()]
        self._reported = [(what, series.time_ns, series.values) for what, series in good]

    def activity(self, edges: Ints) -> Floats | None:
        """1, 0 or NaN (unknown) for each bin; None without reports.

        One working generator of several is enough. Open connections prove work; having none does not prove rest, since
        a dead device has none either.
        """
        if not self._reported or edges.size < 2:
            return None
        rests, works = np.zeros(edges.size - 1, dtype=bool), np.zeros(edges.size - 1, dtype=bool)
        for what, time_ns, value in self._reported:
            positions = np.searchsorted(time_ns, edges[1:], side="right") - 1
            now = np.where(positions >= 0, value[np.clip(positions, 0, None)], np.nan)
            usual = median(value[value > 0]) if bool((value > 0).any()) else 0.0
            if what in {USERS, CONNECTIONS}:
                works |= now > _GOES_ON * usual
            elif what == SENDING:
                works |= now > 0
            if what != CONNECTIONS:
                rests |= now <= 0
        return np.where(works & ~rests, 1.0, np.where(rests & ~works, 0.0, np.nan))
