"""Loss: what was offered and did not come back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from soakwatch_rules.crossing import DROPPED, PORTS, Crossing, Ports
from soakwatch_rules.draft import draft
from soakwatch_rules.labels import label
from soakwatch_rules.offered import OVERLOADS, parts, together
from soakwatch_rules.offers import CONNECTIONS, PACKETS, PINGS, REQUESTS, Offer, offers
from soakwatch_rules.parameter import parameter
from soakwatch_rules.peers import peer_name
from soakwatch_rules.rule import Case, Event, Finding, Manner, Mark, Outcome, Phase, Why, Window
from soakwatch_rules.sight import unseen
from soakwatch_rules.stats.distributions import gamma_cdf, gamma_quantile
from soakwatch_rules.stats.level import robust
from soakwatch_rules.stats.outage import Bins, settled
from soakwatch_rules.stats.standstill import Stop, stops, stops_of_rate
from soakwatch_rules.throughput import Curve
from soakwatch_rules.words import lasting, moment, quantity

_LEAST = {PACKETS: 3.0, REQUESTS: 3.0, CONNECTIONS: 3.0, PINGS: 5.0}
_LEAST_STOPPED = 5.0  # lost in a stop: at one packet a minute each that is lost would be one
_IN_A_ROW = 3  # probes that are lost one after the other: one or two are not down
_EXPECTED = 20.0  # that a commanded rate would have brought in a stop
_SIGMAS = 3.0
_BLOCKS = 32
_WORSE = 1e-4
_WORSE_TIMES = 2.0
_SURE = 0.999
_DRAIN_NS = 5 * 10**9
_AFTER_NS = 600 * 10**9  # of an event without a deadline
_TOTAL = 0.99  # lost in an overload: that is no longer what was offered too much
_MUCH = 0.1  # of a load: without it nobody knows what the device stood
_TAIL_S, _TAIL = 60.0, 0.01
_CHANGING = frozenset({"ramp", "cooldown"})
_ENDING = frozenset({"cooldown", "recovery"})
_MARKS = 50
_READINGS = 3
_CHANCE = 0.01


@dataclass(frozen=True, slots=True)
class _Share:
    """What was sent and lost in one phase; ``error`` is what sampled rates leave open of ``lost``."""

    phase: Phase
    sent: float
    lost: float
    error: float
    spread: float  # variance of the blocks' losses / their mean: 1 for losses at random

    @property
    def share(self) -> float:
        return min(1.0, max(0.0, self.lost / self.sent)) if self.sent > 0 else 0.0


@dataclass(frozen=True, slots=True)
class _Told:
    """One stop, and whether it may be the generator that ended (then ``unsure`` says why)."""

    stop: Stop
    window: Window
    offer: Offer
    unsure: str = ""

    @property
    def text(self) -> str:
        until = "to the end of the run" if self.stop.last else f"until {moment(self.window.end_ns)}"
        if self.stop.blurred:
            much = f"as much was lost as in {lasting(self.stop.lost_s)} of nothing"
            return f"from {moment(self.window.begin_ns)} {until} {much}"
        return f"from {moment(self.window.begin_ns)} {until} ({lasting(self.window.seconds)})"


@dataclass(slots=True)
class _Seen:
    """All that was found of one kind."""

    shares: list[_Share] = field(default_factory=list)
    base: _Share | None = None
    stops: list[_Told] = field(default_factory=list)
    unknown: float = 0.0  # lost of an unknown number sent
    ratio: Offer | None = None
    blind: str = ""
    readings: int = 0


@dataclass(frozen=True, slots=True)
class Loss:
    """Says whether what was offered came back: packets, requests, connections, pings.

    Lost are packets sent and not received (load.tx.packets, load.rx.packets or their rates), those that the generator
    counts (load.lost.packets) or tells as a share (load.loss); requests and connections that failed, of those answered
    (opened) and failed; requests to a peer that it did not answer (reach.*). What comes back within a second, or a
    reading, was only late; what is under way at the end of the readings is left out, and so is what a counter counted
    about a restart. Judged is each phase by itself, all but those named stress and spike (``overload_loss``) and what
    lies in an announced event, to its deadline, else to 10 min after it (``event_impact``).

    Fails, each kind by its own limit: a share above ``packets``, ``requests``, ``connections`` or ``pings`` of a phase
    (3 lost at least, 5 pings; of sampled rates by three standard errors); a share that is more than .01 % above that
    of the baseline phase, and twice it, with 99.9 % probability (blocks of the phase give the spread of bursts), where
    the limit is not above its default; and each stretch of ``seconds`` in which less than a tenth came back of what
    was sent, or of what was commanded while the generator does not say that it rests, or, where neither is known, of
    the running level (``stats.standstill``). A stretch to the end of the readings before which the level sank step by
    step, or one of under a minute or a hundredth of the run, may be a generator that ended: inconclusive, unless it
    tells of users, connections or itself that it goes on. In an overload a stretch counts in which 99 % are lost.

    Who lost it: where the device's interfaces are read (system.network.packets), the four numbers are given: sent,
    device in, device out, received. If all that came in went out and the device's own counters of drops say nothing,
    it was lost by the path or by the generator's receiver, and the device is not to blame: a warning; inconclusive
    from a tenth of the load on, for stops, and if it was lost before the device took it in (but a stop in which its
    ports take in next to nothing is taken for theirs). If interfaces that carried the load
    stop, or never carried it, while the generator says that all came back, that is a contradiction: inconclusive, or
    a warning.

    How often wrong: on 300 seeded runs of 6 h at 10 s of each kind none failed without a loss, with .005 % (pings 1 in
    2000), a load that comes up, has levels or ends in its cooldown, and half lost under stress; all failed with 1 and
    99 % lost and with none for 30 s and 10 min. Of 33 real database clients each standstill of 10 s and more was found
    (31), and one more of 10 s with a request in it. Known weaknesses: what a generator asks and gets answered (other
    packets than were sent) can only be seen to stop; where nothing tells what was offered, a generator that pauses by
    itself looks the same; a stop shorter than half of the distance of readings may stay below the limit, and one ping a
    minute does not see 30 s.

    Neighbours: ``drops`` for the device's own counters, ``overload_loss``, ``event_impact``, ``hang`` for a device that
    answers nothing, ``periodic_pause`` for short stops again and again, ``generator_health``.

    Parameters: ``packets``, ``requests``, ``connections``, ``pings``, ``seconds`` (below).

    >>> from soakwatch_rules.synthetic import readings
    >>> at = np.arange(0.0, 3600.0, 10.0)
    >>> for carried in (1.0, 0.98):
    ...     load = (readings("load.tx.packets", 1e4 * at, 10.0), readings("load.rx.packets", carried * 1e4 * at, 10.0))
    ...     print(Loss().judge(Case("dut", "", Window(0, 3600 * 10**9), load=load))[0].outcome)
    pass
    fail

    References: ITU-T Y.1540 (2019) 6.4 and 7 (IP loss ratio; service is unavailable from the begin of 10 s without it,
    as in G.826); RFC 2544 sections 26.3, 26.5 and RFC 6201 (loss and outage by loss); RFC 7680 (loss of one way); R.
    Wedderburn, Biometrika 61, 1974 (quasi-likelihood: variance in proportion to the mean).
    """

    name: ClassVar[str] = "loss"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "what was offered did not come back"
    metrics: ClassVar[tuple[str, ...]] = ("reach.sent", "reach.lost", "reach.up", PORTS, *DROPPED)
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ()
    manner: ClassVar[Manner] = Manner(
        "two readings of what was sent and came back, 1/limit packets, requests, connections or pings",
        needs_load=True,
        live="end",
    )

    packets: float = parameter(0.001, "1", "lost packets of those sent that are allowed", "a soak stays below capacity")
    requests: float = parameter(0.001, "1", "failed requests of those sent that are allowed", "as for packets")
    connections: float = parameter(0.001, "1", "failed connections of those tried that are allowed", "as for packets")
    pings: float = parameter(0.003, "1", "lost pings (icmp, tcp, http) of those sent", "one in a thousand is common")
    seconds: float = parameter(10.0, "s", "a stretch without any that fails", "ITU-T Y.1540, G.826: unavailable")

    def __post_init__(self) -> None:
        """Refuses parameters that mean nothing."""
        if not all(0 <= x < 1 for x in (self.packets, self.requests, self.connections, self.pings)):
            raise ValueError("loss: packets, requests, connections and pings are shares: use 0 <= x < 1, 0.1% say")
        if not 0 < self.seconds < math.inf:
            raise ValueError(f"loss: {self.seconds} s are no duration: use more than 0, such as 10s")

    def definition(self) -> str:
        """The definition with its parameters."""
        return (
            f"in no phase but stress and spike, and outside of announced events, may more than {100 * self.packets:g} "
            f"% of the packets, {100 * self.requests:g} % of the requests, {100 * self.connections:g} % of the "
            f"connections and {100 * self.pings:g} % of the pings be lost, nor provably more than in the baseline "
            f"phase; nor may next to nothing come back for {self.seconds:g} s while it is offered"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a kind (and generator, or peer); none for targets that are no device under test."""
        if case.role != "dut":
            return ()
        groups: dict[tuple[str, str], list[Offer]] = {}
        for one in offers(case):
            groups.setdefault((one.kind, one.label), []).append(one)
        if not groups:
            reason = "nothing tells of what was sent and came back: packets, requests, connections or pings"
            return (replace(draft(self, case), outcome=Outcome.NOT_APPLICABLE, reason=reason),)
        return tuple(self._of(case, kind, group) for (kind, _), group in groups.items())

    def _limit(self, kind: str) -> float:
        return {PACKETS: self.packets, REQUESTS: self.requests, CONNECTIONS: self.connections, PINGS: self.pings}[kind]

    # --- what is found of one kind -----------------------------------------------------------------------------

    def _of(self, case: Case, kind: str, group: Sequence[Offer]) -> Finding:
        seen, limit = _Seen(), self._limit(kind)
        for one in group:
            bare = _Seen(readings=len(one.series.finite()))
            with np.errstate(all="ignore"):
                self._look(case, one, bare)
            seen.stops += bare.stops
            seen.unknown += bare.unknown
            seen.readings = max(seen.readings, bare.readings)
            seen.blind = seen.blind or bare.blind
            worse = max((x.share for x in bare.shares), default=-1.0)
            if one.ratio and worse > max((x.share for x in seen.shares), default=-2.0):
                seen.shares, seen.base, seen.ratio = bare.shares, bare.base, one
        about = seen.ratio or group[0]
        thing = about.series
        made = replace(
            draft(self, case, thing), metric=about.metric, object=about.label, samples=seen.readings, unit="1",
            limit=limit, detectable_unit="1",
        )  # fmt: skip
        made = self._measured(made, kind, seen)
        doubts = []
        if case.devices > 1:
            doubts.append(f"{case.devices} devices share the load: which of them lost it is not known")
        if seen.ratio is None and kind != PINGS:
            doubts.append("what was sent is not known: a share that is lost is not seen, only that nothing comes back")
        made = replace(made, doubts=tuple(doubts))
        said = self._said(kind, made, seen, limit)
        return self._blamed(case, said, seen) if kind == PACKETS else said

    def _look(self, case: Case, one: Offer, seen: _Seen) -> None:
        begins, ends = _readings_of(one)
        if not begins.size:
            return
        out, over = _left_out(case, begins, ends), _inside(_overloads(case, _DRAIN_NS), begins, ends)
        if one.bins is not None:
            self._look_at_bins(case, one, one.bins, out, over, seen)
        elif one.rate is not None:
            self._look_at_rate(case, one, one.rate, out | over, seen)
        last = together(case.phases)[-1:]
        until = min((p.window.begin_ns for p in last if p.name in _ENDING), default=case.window.end_ns)
        if until > case.window.begin_ns:
            times = one.series.finite().time_ns
            seen.blind = unseen(times, Window(case.window.begin_ns, until)) if times.size > 1 else "under two readings"

    def _look_at_bins(
        self, case: Case, one: Offer, bins: Bins, out: NDArray[np.bool_], over: NDArray[np.bool_], seen: _Seen
    ) -> None:
        known = np.isfinite(bins.sent) & np.isfinite(bins.lost)
        if one.ratio:
            if not bool((np.nan_to_num(bins.sent) > 0).any()):
                seen.unknown += float(np.nansum(bins.lost[~out & ~over]))
                return
            late = settled(np.where(known, np.clip(bins.lost, -1e120, 1e120), 0.0), bins)
            counted = known & ~out & ~over
            ahead = max(1, round(1.0 / max(float(np.median(bins.seconds)), 1e-3)))
            if bins.sent.size > 2 * ahead + 1:
                counted[-ahead:] = False  # under way at the end
            for part in _phases(case):
                here = counted & (bins.edges_ns[1:] > part.window.begin_ns) & (bins.edges_ns[1:] <= part.window.end_ns)
                found = _share(part, bins.sent[here], late[here], exact=one.exact)
                if found is not None:
                    seen.shares.append(found)
                    if part.name == "baseline":
                        seen.base = found
        share = np.clip(bins.lost / np.where(bins.sent > 0, bins.sent, np.nan), -1, 1)
        lost = np.where(over & ~(share >= _TOTAL), 0.0, bins.lost)
        sent = np.where(out, np.nan, bins.sent)
        if not one.ratio:
            sent = sent if one.on is None else np.where(one.on == 0, np.nan, sent)
            came = (sent - bins.lost)[(sent > 0) & (sent > bins.lost)] / sent[(sent > 0) & (sent > bins.lost)]
            usual = float(np.median(came)) if came.size else 1.0
            if _MUCH <= usual < 1:  # what was commanded, or asked in larger packets, need not come back whole
                sent, lost = usual * sent, lost - (1 - usual) * sent
        looked = Bins(bins.edges_ns, sent, lost)
        for stop in stops(looked, self.seconds, one.longest_s, exact=one.exact, whole=not one.ratio):
            inside = (bins.edges_ns[:-1] >= stop.begin_ns) & (bins.edges_ns[1:] <= stop.end_ns)
            wanted, missing = float(np.nansum(sent[inside])), float(np.nansum(lost[inside]))
            if one.kind == PINGS and (int(inside.sum()) < _IN_A_ROW or missing < _IN_A_ROW):
                continue
            if missing < _LEAST_STOPPED and one.kind != PINGS:
                continue
            if not one.ratio and (wanted < _EXPECTED or _chance(wanted, wanted - missing, sent.size) > _CHANCE):
                continue
            seen.stops.append(_Told(stop, Window(stop.begin_ns, stop.end_ns), one))

    def _look_at_rate(self, case: Case, one: Offer, rate: Curve, out: NDArray[np.bool_], seen: _Seen) -> None:
        """Where only what came back is known: it is held against its own level, phase by phase."""
        counts = rate_is_count(one)
        level = 0.0
        for part in _phases(case):
            here = ~out & (rate.end_ns > part.window.begin_ns) & (rate.end_ns <= part.window.end_ns)
            begins, ends, value = rate.begin_ns[here], rate.end_ns[here], rate.rate[here]
            on = None if one.on is None else one.on[here]
            if part.name in _CHANGING and (on is None or not bool((on == 1).any())):
                continue
            if value.size and not bool((value > 0).any()) and level > 0 and ends[-1] - begins[0] >= self.seconds * 1e9:
                last = bool(ends[-1] >= rate.end_ns[-1])
                found = [Stop(int(begins[0]), int(ends[-1]), float((ends[-1] - begins[0]) * 1e-9), last)]
            else:
                found = list(stops_of_rate(begins, ends, value, self.seconds, counts=counts))
            for stop in found:
                self._tell(case, one, rate, stop, seen)
            level = max(level, float(np.median(value[value > 0])) if bool((value > 0).any()) else 0.0)

    def _tell(self, case: Case, one: Offer, rate: Curve, stop: Stop, seen: _Seen) -> None:
        inside = (rate.begin_ns >= stop.begin_ns) & (rate.end_ns <= stop.end_ns)
        told = np.empty(0) if one.on is None else one.on[inside]
        rests, works = int(np.count_nonzero(told == 0)), int(np.count_nonzero(told == 1))
        if rests and rests >= works:
            return  # nothing was offered
        after = rate.end_ns > stop.end_ns
        level = float(np.median(rate.rate[rate.rate > 0]))
        last = stop.last and not bool((rate.rate[after] >= 0.1 * level).any())
        end_ns = int(rate.end_ns[-1]) if last else stop.end_ns
        window = Window(stop.begin_ns, end_ns)
        unsure = ""
        if not works:
            apart_ns = round(2 * one.apart_s * 1e9)
            near = [p.name for p in together(case.phases) if abs(stop.begin_ns - p.window.begin_ns) <= apart_ns]
            begun = [name for name in near if stop.begin_ns - case.window.begin_ns > apart_ns]
            if _CHANGING & set(begun):
                return  # the load was turned off with the phase
            if begun and stop.last:
                unsure = f"it stopped with the begin of the phase {begun[-1]}"
            elif last and stop.turned_down:
                unsure = "it sank step by step before"
            elif last and window.seconds <= max(_TAIL_S, _TAIL * case.window.seconds):
                unsure = "it is only the end of the run"
        seen.stops.append(_Told(replace(stop, last=last), window, one, unsure))

    # --- what is said ------------------------------------------------------------------------------------------

    def _measured(self, made: Finding, kind: str, seen: _Seen) -> Finding:
        sent, lost = (sum(getattr(x, name) for x in seen.shares) for name in ("sent", "lost"))
        numbers = {"stops": float(sum(not s.unsure for s in seen.stops)),
                   "stopped_s": sum(s.window.seconds for s in seen.stops if not s.unsure)}  # fmt: skip
        longest = max((s.window.seconds for s in seen.stops), default=None)
        numbers |= {} if longest is None else {"longest_stop_s": longest}
        marks = [Mark(s.window.begin_ns, s.window.end_ns, f"no {kind} came back") for s in seen.stops]
        if seen.ratio is not None:
            numbers |= {"offered": sent, "lost": max(0.0, lost)}
            for one in seen.shares:
                if one.phase.name:
                    key = f"lost_share_{one.phase.name}"
                    numbers[key] = max(numbers.get(key, 0.0), one.share)
            worst = max(seen.shares, key=lambda x: x.share, default=None)
            if worst is not None:
                wide = _interval(worst)
                least = max(made.limit or 0.0, _LEAST[kind] / max(worst.sent, 1.0))
                made = replace(made, measured=worst.share, interval=wide, smallest_detectable=min(1.0, least))
        elif longest is not None:
            made = replace(made, measured=longest, unit="s", limit=self.seconds)
        good = {name: value for name, value in numbers.items() if math.isfinite(value)}
        return replace(made, numbers=good, marks=tuple(marks[:_MARKS]))

    def _said(self, kind: str, made: Finding, seen: _Seen, limit: float) -> Finding:
        who = f"{_whose(made.object)}: " if made.object else ""
        sure = [s for s in seen.stops if not s.unsure]
        over = [x for x in seen.shares if self._over(kind, x, limit)]
        worse = [x for x in seen.shares if x not in over and limit <= _default(kind) and _worse(x, seen.base)]
        told = []
        if sure:
            sure.sort(key=lambda s: (s.stop.blurred, s.window.begin_ns))
            first = "; ".join(dict.fromkeys(s.text for s in sure[:3]))
            first += f" and {len(sure) - 3} more" if len(sure) > 3 else ""
            told.append(first if sure[0].stop.blurred else f"{_nothing(kind)} {first}")
        marks = made.marks
        told += [f"{_lost(kind, x)}, over {_percent(limit)}" for x in sorted(over, key=lambda x: -x.share)[:2]]
        for one in sorted(worse, key=lambda x: -x.share)[:1]:
            before = _percent(seen.base.share) if seen.base is not None else ""
            told.append(f"{_lost(kind, one)}, provably more than in the baseline phase ({before})")
        if told:
            if not sure:
                hit = sorted([*over, *worse], key=lambda x: -x.share)
                spans = [(x.phase.window, _lost(kind, x)) for x in hit[:_MARKS]]
                marks = tuple(Mark(window.begin_ns, window.end_ns, text) for window, text in spans)
            return replace(made, outcome=Outcome.FAIL, reason=who + "; ".join(told), marks=marks)
        if seen.stops:
            last = seen.stops[-1]
            reason = f"{who}{_nothing(kind)} {last.text}: {last.unsure}, so it may be the generator that ended"
            settle = "record what the generator offers (load.sending, load.users, the rate it is told to send)"
            return replace(made, reason=reason, why=Why.NO_REFERENCE, settle=settle)
        if seen.unknown > 0:
            reason = f"{who}{seen.unknown:,.0f} {kind} failed, of an unknown number"
            settle = "record how many there were (load.requests, load.connections.opened)"
            return replace(made, reason=reason, why=Why.NO_REFERENCE, settle=settle)
        return self._quiet(kind, made, seen, limit, who)

    def _quiet(self, kind: str, made: Finding, seen: _Seen, limit: float, who: str) -> Finding:
        """What is said where nothing is above a limit."""
        if seen.readings < 2:
            reason = f"{who}{seen.readings} readings: it takes two to see what came back"
            return replace(made, reason=reason, why=Why.TOO_FEW, settle="needs 2 readings")
        if seen.blind:
            settle = "read what came back near both ends of the run"
            return replace(made, reason=f"{who}{seen.blind}", why=Why.GAP, settle=settle)
        if seen.ratio is None:
            reason = f"{who}{kind} came back all along, without a stop of {lasting(self.seconds)}"
            return replace(made, outcome=Outcome.PASS, reason=reason)
        sent, lost = sum(x.sent for x in seen.shares), max(0.0, sum(x.lost for x in seen.shares))
        if sent <= 0:
            reason = f"{who}no {kind} were sent outside of stress, spike and announced events"
            return replace(made, outcome=Outcome.NOT_APPLICABLE, reason=reason)
        few = limit > 0 and sent < 1 / limit
        much = f"{lost:,.0f} of {sent:,.0f} {kind} lost"
        if few:
            reason = f"{who}{much}: too few to show a loss of {_percent(limit)}, which takes {1 / limit:,.0f}"
            return replace(made, outcome=Outcome.NOT_APPLICABLE, reason=reason)
        high = [x for x in seen.shares if x.lost > limit * x.sent and x.sent * limit >= 1]
        if high:
            one = max(high, key=lambda x: x.share)
            reason = f"{who}{_lost(kind, one)}: over {_percent(limit)}, but "
            if one.error > 0 and one.lost >= _LEAST[kind]:
                settle = "record counters (load.tx.packets, load.rx.packets) instead of rates"
                reason += "within the error of rates that are sampled"
                return replace(made, reason=reason, why=Why.NOISE, settle=settle)
            return replace(made, outcome=Outcome.WARN, reason=reason + f"{one.lost:.0f} are too few to be sure")
        within = f", within {_percent(limit)}" if lost > 0 else ""
        return replace(made, outcome=Outcome.PASS, reason=f"{who}{much}{within}")

    def _over(self, kind: str, one: _Share, limit: float) -> bool:
        if one.lost < _LEAST[kind] and not (limit == 0 and one.lost >= 1):
            return False
        return one.lost - _SIGMAS * one.error > limit * one.sent

    # --- who lost it -------------------------------------------------------------------------------------------

    def _blamed(self, case: Case, said: Finding, seen: _Seen) -> Finding:
        """Whether the device's own counters say that it was the device."""
        one = seen.ratio or next((s.offer for s in seen.stops if s.offer.bins is not None), None)
        if one is None or one.bins is None:
            return said
        bins = one.bins
        known = np.isfinite(bins.sent) & np.isfinite(bins.lost)
        total = float(np.sum(bins.sent[known]))
        ports = Ports(case, total)
        if said.outcome is not Outcome.FAIL:
            return self._contradicted(case, said, one, ports, total) if said.outcome is Outcome.PASS else said
        limit = self._limit(PACKETS)
        windows = [s.window for s in seen.stops if not s.unsure]
        windows += [x.phase.window for x in seen.shares if self._over(PACKETS, x, limit) or _worse(x, seen.base)]
        found = [c for w in windows if (c := _crossed(ports, bins, w)) is not None]
        if not found or len(found) < len(windows):
            where = "" if ports.names else " (the device or the path: the device's own interfaces are not read)"
            return replace(said, reason=f"{said.reason}{where}")
        worst = max(found, key=lambda c: (not c.clear, c.lost))
        said = replace(said, numbers=dict(said.numbers) | {k: v for k, v in worst.numbers.items() if math.isfinite(v)})
        if not worst.clear:
            return replace(said, reason=f"{said.reason}; {worst.text}")
        if said.numbers["stops"] > 0 and worst.taken_in < _MUCH * worst.sent:
            reason = (
                f"{said.reason}; the device's ports took in next to nothing: they, or the path to them; {worst.text}"
            )
            return replace(said, reason=reason)
        if all(c.behind for c in found):
            reason = f"{said.reason}; the generator's receiver or the path lost them, not the device: {worst.text}"
            if said.numbers["stops"] <= 0 and worst.lost < _MUCH * worst.sent:
                return replace(said, outcome=Outcome.WARN, reason=reason)
            settle = "mend the path or the generator's receiver, then run again"
            return replace(said, outcome=Outcome.INCONCLUSIVE, reason=reason, why=Why.GENERATOR, settle=settle)
        reason = f"{said.reason}; they were lost before the device took them in: {worst.text}"
        settle = "read the device's counters of what its ports miss, or look at the path to it"
        return replace(said, outcome=Outcome.INCONCLUSIVE, reason=reason, why=Why.NO_REFERENCE, settle=settle)

    def _contradicted(self, case: Case, said: Finding, one: Offer, ports: Ports, total: float) -> Finding:
        """A generator that says all came back, while the device's interfaces carried next to nothing of it."""
        assert one.bins is not None
        if not ports.read or total < 1 / max(self.packets, 1e-9):
            return said
        if not ports.names:
            reason = f"{said.reason}, but no interface of the device that is read carried a hundredth of it"
            return replace(said, outcome=Outcome.WARN, reason=reason)
        apart_ns = max(round(ports.apart_s * 1e9), 1)
        edges = np.arange(case.window.begin_ns, case.window.end_ns + 1, max(apart_ns * 2, 30 * 10**9), dtype=np.int64)
        crossed = [
            c for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
            if (c := _crossed(ports, one.bins, Window(a, b))) is not None and c.sent > 0 and c.back > 0.5 * c.sent
        ]  # fmt: skip
        away = [c for c in crossed if c.let_out < 0.1 * c.back]
        if not away or (len(away) == len(crossed) and len(crossed) < _READINGS):
            return said
        worst = max(away, key=lambda c: c.back)
        reason = f"{said.reason}, but the device's interfaces carried less than a tenth of it: {worst.text}"
        settle = "find out which is right: the generator's figures or the device's"
        return replace(said, outcome=Outcome.INCONCLUSIVE, reason=reason, why=Why.GENERATOR, settle=settle)


def rate_is_count(one: Offer) -> bool:
    """Whether a rate is that of requests or packets, which come at random, and not of bytes or bits."""
    return one.series.trait.unit.startswith("{")


def _crossed(ports: Ports, bins: Bins, window: Window) -> Crossing | None:
    """The four numbers of a stretch, with a reading of the device more at each side of one that is short."""
    slack_ns = round(ports.apart_s * 1e9)
    begin_ns, end_ns = window.begin_ns - slack_ns, window.end_ns + slack_ns
    if window.seconds > 20 * ports.apart_s:
        begin_ns, end_ns = window.begin_ns, window.end_ns
    inside = (bins.edges_ns[:-1] >= begin_ns) & (bins.edges_ns[1:] <= end_ns)
    inside &= np.isfinite(bins.sent) & np.isfinite(bins.lost)
    if not inside.any():
        return None
    at = np.flatnonzero(inside)
    exact = Window(int(bins.edges_ns[at[0]]), int(bins.edges_ns[at[-1] + 1]))
    sent, lost = float(np.sum(bins.sent[inside])), float(np.sum(bins.lost[inside]))
    return ports.crossing(exact, sent, sent - lost)


def _readings_of(one: Offer) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if one.bins is not None:
        return one.bins.edges_ns[:-1], one.bins.edges_ns[1:]
    assert one.rate is not None
    return one.rate.begin_ns, one.rate.end_ns


def _phases(case: Case) -> tuple[Phase, ...]:
    """The phases that are judged, neighbours of one name together; the run where it has none."""
    made = parts(replace(case, phases=together(case.phases)))
    return tuple(p for p in made if p.name not in OVERLOADS)


def _overloads(case: Case, drain_ns: int) -> list[Window]:
    return [Window(p.window.begin_ns, p.window.end_ns + drain_ns) for p in case.phases if p.name in OVERLOADS]


def _left_out(case: Case, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """What lies in an announced event."""
    return _inside([_until(e) for e in case.events if e.expect], begins, ends)


def _until(event: Event) -> Window:
    end_ns = event.begin_ns if event.end_ns is None else event.end_ns
    end_ns = event.deadline_ns if event.deadline_ns is not None else end_ns + _AFTER_NS
    return Window(event.begin_ns, max(end_ns, event.end_ns or event.begin_ns))


def _inside(windows: Sequence[Window], begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    made = np.zeros(begins.size, dtype=bool)
    for window in windows:
        made |= (ends > window.begin_ns) & (begins < window.end_ns)
    return made


def _share(phase: Phase, sent: NDArray[np.float64], lost: NDArray[np.float64], *, exact: bool) -> _Share | None:
    total, missing = float(np.sum(sent)), float(np.sum(lost))
    if not sent.size or total <= 0:
        return None
    count = min(_BLOCKS, sent.size)
    cut = [part.sum() for part in np.array_split(lost, count)]
    blocks = np.array(cut, dtype=np.float64)
    mean = float(np.mean(blocks))
    spread = max(1.0, float(np.var(blocks)) * count / max(count - 1, 1) / mean) if mean > 0 else 1.0
    error = 0.0 if exact else robust(blocks)[1] * math.sqrt(count)
    return _Share(phase, total, missing, error, spread)


def _interval(one: _Share) -> tuple[float, float]:
    """95 % of a Poisson count (F. Garwood, Biometrika 28, 1936), wider by the spread of bursts."""
    lost = min(max(one.lost, 0.0), 1e15)
    low, high = gamma_quantile(lost, 0.025) if lost > 0 else 0.0, gamma_quantile(lost + 1, 0.975)
    wide = math.sqrt(min(one.spread, 1e12))
    return max(0.0, lost - wide * (lost - low)) / one.sent, min(1.0, (lost + wide * (high - lost)) / one.sent)


def _worse(one: _Share, base: _Share | None) -> bool:
    """Whether a phase lost more than the baseline phase for certain."""
    if base is None or one is base or base.sent <= 0:
        return False
    high = gamma_quantile(max(base.lost, 0.0) + 1, _SURE)
    wide = math.sqrt(base.spread)
    most = (max(base.lost, 0.0) + wide * (high - max(base.lost, 0.0))) / base.sent
    least = (one.lost - _SIGMAS * (math.sqrt(one.spread * max(one.lost, 0.0)) + one.error)) / one.sent
    return one.share > base.share + _WORSE and one.share > _WORSE_TIMES * base.share and least > most


def _default(kind: str) -> float:
    return float(getattr(Loss(), kind))


def _chance(wanted: float, came: float, number: int) -> float:
    """How often random arrivals leave a stretch so empty."""
    return number * (1 - gamma_cdf(max(came, 0.0) + 1, wanted))


def _whose(thing: str) -> str:
    """The peer or the generator that a finding is about."""
    return peer_name(thing) if label(thing, "peer") else label(thing, "generator") or thing


def _nothing(kind: str) -> str:
    return {PINGS: "no answer", PACKETS: "next to nothing came back", REQUESTS: "no request was answered",
            CONNECTIONS: "no connection was opened"}[kind]  # fmt: skip


def _lost(kind: str, one: _Share) -> str:
    verb = "failed" if kind in {REQUESTS, CONNECTIONS} else "were lost"
    where = f" in the phase {one.phase.name}" if one.phase.name else ""
    return f"{_percent(one.share)} of {one.sent:,.0f} {kind} {verb}{where} ({max(one.lost, 0.0):,.0f})"


def _percent(share: float) -> str:
    return quantity(share, "1") if share >= 0.01 or share == 0 else f"{100 * share:.2g} %"
