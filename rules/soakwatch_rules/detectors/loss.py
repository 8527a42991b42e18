"""Loss: traffic that was offered and did not come back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.fact import Lost
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, Outcome
from soakwatch_model.flow import BITS, BYTES, CONNECTIONS, PACKETS, REQUESTS
from soakwatch_model.roles import DUT
from soakwatch_model.series import Floats, Mask
from soakwatch_model.window import Window
from soakwatch_rules.finding_draft import draft
from soakwatch_rules.load.loss_account import (
    SIGMAS,
    LossEvidence,
    Share,
    Standstill,
    chance_of,
    in_announced_events,
    interval_of,
    intervals_of,
    judged_phases,
    lost_words,
    overload_spans,
    percent,
    provably_worse,
    rate_is_count,
    share_of,
    standstill_words,
    subject_name,
    touching,
)
from soakwatch_rules.load.loss_blame import blamed
from soakwatch_rules.load.offered import phases_joined
from soakwatch_rules.load.offers import PINGS, Offer, offers
from soakwatch_rules.load.path_ledger import DROPPED, PORTS
from soakwatch_rules.load.throughput import Curve
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import Input, RuleSpec
from soakwatch_rules.sampling import unseen
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.outage import Bins, lost_for_good
from soakwatch_rules.stats.standstill import Stop, stops, stops_of_rate
from soakwatch_rules.traits import Family, Guide, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, duration, moment

_MIN_LOST = {PACKETS: 3.0, REQUESTS: 3.0, CONNECTIONS: 3.0, PINGS: 5.0}
_MIN_LOST_IN_STOP = 5.0  # packets; at one packet a minute a single loss would otherwise be a stop
_IN_A_ROW = 3  # lost probes: one or two are not an outage
_EXPECTED = 20.0  # packets that a commanded rate would have brought during a stop
_TOTAL = 0.99  # share lost in an overload that is no longer explained by offering too much
_MUCH = 0.1  # share of what was sent that usually comes back
_TAIL_S, _TAIL = 60.0, 0.01  # a stop at the end up to this long (seconds, share of the run) may be the generator's end
_CHANGING = frozenset({"ramp", "cooldown"})
_ENDING = frozenset({"cooldown", "recovery"})
_RESTING = frozenset({"baseline"})  # before the load: some generators report nothing until they send
_MARKS = 50
_SINGLE = 0.05  # share of the loss of the worst stretch: stretches below it get no mark
_CHANCE = 0.01
_MAY_DIFFER = {
    PACKETS: "they belong to requests",
    BYTES: "what comes back may be of another size",
    BITS: "what comes back may be of another size",
}
_MUCH_OPEN = 0.1  # share whose fate is unknown: with more the run cannot pass


@dataclass(frozen=True, slots=True)
class Loss(Parameters):
    """Fails if too much of what was offered did not come back: packets, requests, connections, pings.

    What counts as lost: packets sent and not received (load.tx.packets, load.rx.packets or their rates), packets that
    the generator counts as lost (load.lost.packets) or reports as a share (load.loss); failed requests and connections
    out of answered (opened) and failed ones; requests that a peer did not answer (reach.*). Packets that arrive within
    a second, or within one sample, were only late. Packets in flight at the end of the samples, and counts around a
    counter restart, are left out. Each phase is judged by itself, except phases named stress and spike
    (``overload_loss``) and announced events up to their deadline, else 10 min after them (``event_impact``).

    Fails, by the limit of its kind:
    * A share above ``packets``, ``requests``, ``connections`` or ``pings`` in a phase (at least 3 lost, 5 pings; for
      sampled rates by three standard errors).
    * A share more than .01 % above that of the baseline phase, and twice it, with 99.9 % probability (blocks of the
      phase give the spread of bursts), unless the limit was raised above its default.
    * A stop: ``seconds`` in which less than a tenth came back of what was sent; or, if that is unknown, of the command
      while the generator does not report that it rests; or else of the running level (``stats.standstill``). In an
      overload a stop counts if 99 % are lost.

    Inconclusive:
    * A stop up to the end of the readings that may be a generator that ended, because the level sank in steps before
      it, or because it lasts under a minute or a hundredth of the run; unless the generator reports users, connections
      or that it is sending.
    * Readings that do not reach from start to end. They may end in the recovery, and the load (not pings) may begin in
      the baseline, as if it was at rest, which the finding notes.
    * A tenth of what a generator was commanded to send neither came back nor failed.

    Each generator has its own account; only packets that are not answered requests are added up over all generators,
    since what one sends may come back to another. Packets of a generator that sends requests are questions and answers.
    They are compared if their sizes are alike, or if as many came back as were sent in eight samples in a row. With
    unknown sizes the finding is inconclusive if a tenth or more has no counterpart, and warns below that. Bytes and
    bits are compared likewise where no packets are reported.

    Who lost it: if the device's interfaces are read (system.network.packets), the finding gives four numbers: sent,
    device in, device out, received. If all that came in went out and the device's drop counters show nothing, the path
    or the generator's receiver lost it and the device is not to blame: a warning; inconclusive from a tenth of the
    load, for stops, and if it was lost before the device received it (but a stop in which its ports receive next to
    nothing is attributed to them). If interfaces that carried the load stop, or never carried it, while the generator
    reports that all came back, the figures contradict each other: inconclusive, or a warning.

    How often wrong: on 300 seeded runs of 6 h at 10 s of each kind none failed without a loss, with .005 % (pings 1 in
    2000), with a load that ramps up, has levels or ends in its cooldown, or with half lost under stress; all failed
    with 1 and 99 % lost and with nothing for 30 s and 10 min. Of 33 real database clients each standstill of 10 s and
    more was found (31), and one more of 10 s with a request in it. Known weaknesses: for requests whose answers are
    other packets only stops are seen; if the offered load is unknown, a generator that pauses by itself looks the same;
    a stop shorter than half of the sampling interval may stay below the limit, and one ping a minute does not see 30 s.

    Neighbours: ``drops`` judges the device's own counters, ``hang`` a device that answers nothing, ``periodic_pause``
    short repeated stops; ``overload_loss``, ``event_impact``, ``generator_health``.

    Parameters: ``packets``, ``requests``, ``connections``, ``pings``, ``seconds`` (below).

    >>> from soakwatch_rules.signals import readings
    >>> at = np.arange(0.0, 3600.0, 10.0)
    >>> for carried in (1.0, 0.98):
    ...     load = (readings("load.tx.packets", 1e4 * at, 10.0), readings("load.rx.packets", carried * 1e4 * at, 10.0))
    ...     print(Loss().judge(Case("dut", "", Window(0, 3600 * 10**9), load=load))[0].outcome)
    pass
    fail

    References: ITU-T Y.1540 (2019) 6.4 and 7 (IP loss ratio; service is unavailable from the start of 10 s without it,
    as in G.826); RFC 2544 sections 26.3, 26.5 and RFC 6201 (loss and outage by loss); RFC 7680 (loss of one way); R.
    Wedderburn, Biometrika 61, 1974 (quasi-likelihood: variance in proportion to the mean).
    """

    name: ClassVar[str] = "loss"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "offered traffic did not come back"
    metrics: ClassVar[tuple[str, ...]] = ("reach.sent", "reach.lost", "reach.up", PORTS, *DROPPED)
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec(
        "two samples of what was sent and received, and 1/limit packets, requests, connections or pings",
        needs_load=True,
        inputs=frozenset({Input.GENERATOR_PORTS}),
        live="end",
    )

    packets: float = parameter(
        0.001, "1", "allowed share of packets lost", "a soak stays below capacity", within="[0, 1)"
    )
    requests: float = parameter(0.001, "1", "allowed share of requests failed", "as for packets", within="[0, 1)")
    connections: float = parameter(0.001, "1", "allowed share of connections failed", "as for packets", within="[0, 1)")
    pings: float = parameter(
        0.003, "1", "allowed share of pings (icmp, tcp, http) lost", "one in a thousand is common", within="[0, 1)"
    )
    seconds: float = parameter(
        10.0, "s", "shortest interruption that fails", "ITU-T Y.1540, G.826: unavailable", within="(0, inf)"
    )

    def definition(self) -> str:
        return (
            f"outside of stress and spike phases and of planned events, at most {100 * self.packets:g} "
            f"% of the packets, {100 * self.requests:g} % of the requests, {100 * self.connections:g} % of the "
            f"connections and {100 * self.pings:g} % of the pings may be lost, and not provably more than in the "
            "baseline "
            f"phase; nor may almost nothing come back for {duration(self.seconds)} while load is offered"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding for each kind and generator or peer; none unless the target is the device under test."""
        if case.role != DUT:
            return ()
        groups: dict[tuple[str, str], list[Offer]] = {}
        for offer in offers(case):
            groups.setdefault((offer.kind, offer.label), []).append(offer)
        if not groups:
            reason = "no source reports what was sent and received: packets, requests, connections or pings"
            return (draft(self, case).not_applicable(reason),)
        return tuple(self._of(case, kind, group) for (kind, _), group in groups.items())

    def _limit(self, kind: str) -> float:
        return {PACKETS: self.packets, REQUESTS: self.requests, CONNECTIONS: self.connections, PINGS: self.pings}[kind]

    # --- what is found of one kind -----------------------------------------------------------------------------

    def _of(self, case: Case, kind: str, group: Sequence[Offer]) -> Finding:
        seen, limit = LossEvidence(), self._limit(kind)
        for offer in group:
            bare = LossEvidence(readings=len(offer.series.finite()))
            with np.errstate(all="ignore"):
                self._examine(case, offer, bare)
            seen.stops += bare.stops
            seen.losing += bare.losing
            seen.unknown += bare.unknown
            seen.readings = max(seen.readings, bare.readings)
            seen.blind = seen.blind or bare.blind
            seen.rested = seen.rested or bare.rested
            seen.open += bare.open
            worse = max((x.share for x in bare.shares), default=-1.0)
            if offer.ratio and worse > max((x.share for x in seen.shares), default=-2.0):
                seen.shares, seen.base, seen.ratio = bare.shares, bare.base, offer
        about = seen.ratio or group[0]
        series = about.series
        finding = replace(
            draft(self, case, series),
            metric=about.metric,
            object=about.label,
            samples=seen.readings,
            unit="1",
            limit=limit,
            detectable_unit="1",
        )
        finding = self._measured(finding, kind, seen)
        doubts = []
        if case.devices > 1:
            doubts.append(f"{case.devices} devices share the load: which of them lost traffic is not known")
        if seen.ratio is None and kind != PINGS:
            doubts.append("what was sent is not known: only interruptions can be detected, not a share that is lost")
        if seen.rested and not seen.blind:
            doubts.append(
                f"the generator reported nothing before {seen.rested}: if it was not at rest until then, what was lost "
                "in the baseline phase is not known"
            )
        finding = replace(finding, doubts=tuple(doubts))
        result = self._conclude(kind, finding, seen, limit)
        if kind != PACKETS:
            return result
        over = [x for x in seen.shares if self._over(kind, x, limit) or provably_worse(x, seen.base)]
        return blamed(case, result, seen, over, limit)

    def _examine(self, case: Case, offer: Offer, seen: LossEvidence) -> None:
        begins, ends = intervals_of(offer)
        if not begins.size:
            return
        out, over = in_announced_events(case, begins, ends), touching(overload_spans(case), begins, ends)
        if offer.bins is not None:
            self._examine_bins(case, offer, offer.bins, out, over, seen)
        elif offer.rate is not None:
            self._examine_rate(case, offer, offer.rate, out | over, seen)
        if offer.open is not None:
            self._examine_open(case, offer, offer.open, ~out & ~over, seen)
        last = phases_joined(case.phases)[-1:]
        until = min((p.window.begin_ns for p in last if p.name in _ENDING), default=case.window.end_ns)
        if until > case.window.begin_ns:
            self._look_at_ends(case, offer, until, seen)

    def _look_at_ends(self, case: Case, offer: Offer, until_ns: int, seen: LossEvidence) -> None:
        """Whether the readings reach from start to end; a generator that reports only while sending may miss the
        baseline."""
        times = offer.series.finite().time_ns
        if times.size < 2:
            seen.blind = "only one sample"
            return
        begin_ns = case.window.begin_ns
        seen.blind = unseen(times, Window(begin_ns, until_ns))
        rest = [
            p.window for p in phases_joined(case.phases)[:1] if p.name in _RESTING and p.window.begin_ns <= begin_ns
        ]
        if seen.blind and rest and rest[0].end_ns < until_ns and offer.kind != PINGS:
            seen.blind = unseen(times, Window(rest[0].end_ns, until_ns))
            seen.rested = moment(int(times[0]))

    def _examine_bins(self, case: Case, offer: Offer, bins: Bins, out: Mask, over: Mask, seen: LossEvidence) -> None:
        known = np.isfinite(bins.sent) & np.isfinite(bins.lost)
        if offer.ratio:
            if not bool((np.nan_to_num(bins.sent) > 0).any()):
                seen.unknown += float(np.nansum(bins.lost[~out & ~over]))
                return
            late = lost_for_good(np.where(known, np.clip(bins.lost, -1e120, 1e120), 0.0), bins)
            counted = known & ~out & ~over
            ahead = max(1, round(1.0 / max(median(bins.seconds), 1e-3)))
            if bins.sent.size > 2 * ahead + 1:
                counted[-ahead:] = False  # still in flight at the end
            for part in judged_phases(case):
                here = counted & (bins.edges_ns[1:] > part.window.begin_ns) & (bins.edges_ns[1:] <= part.window.end_ns)
                phase_share = share_of(part, bins.sent[here], late[here], exact=offer.exact)
                if phase_share is not None:
                    seen.shares.append(phase_share)
                    if part.name == "baseline":
                        seen.base = phase_share
            seen.losing += _losing(bins, late, counted, self._limit(offer.kind), seen)
        share = np.clip(bins.lost / np.where(bins.sent > 0, bins.sent, np.nan), -1, 1)
        lost = np.where(over & ~(share >= _TOTAL), 0.0, bins.lost)
        sent = np.where(out, np.nan, bins.sent)
        if not offer.ratio:
            sent = sent if offer.on is None else np.where(offer.on == 0, np.nan, sent)
            came = (sent - bins.lost)[(sent > 0) & (sent > bins.lost)] / sent[(sent > 0) & (sent > bins.lost)]
            usual = median(came) if came.size else 1.0
            if _MUCH <= usual < 1:  # the command, or requests in larger packets, need not come back completely
                sent, lost = usual * sent, lost - (1 - usual) * sent
        observed = Bins(bins.edges_ns, sent, lost)
        for stop in stops(observed, self.seconds, offer.longest_s, exact=offer.exact, whole=not offer.ratio):
            inside = (bins.edges_ns[:-1] >= stop.begin_ns) & (bins.edges_ns[1:] <= stop.end_ns)
            wanted, missing = float(np.nansum(sent[inside])), float(np.nansum(lost[inside]))
            if offer.kind == PINGS and (int(inside.sum()) < _IN_A_ROW or missing < _IN_A_ROW):
                continue
            if missing < _MIN_LOST_IN_STOP and offer.kind != PINGS:
                continue
            if not offer.ratio and (wanted < _EXPECTED or chance_of(wanted, wanted - missing, sent.size) > _CHANCE):
                continue
            seen.stops.append(Standstill(stop, Window(stop.begin_ns, stop.end_ns), offer))

    def _examine_open(self, case: Case, offer: Offer, bins: Bins, counted: Mask, seen: LossEvidence) -> None:
        """The phases in which too much is missing of what may not have been sent, or need not come back."""
        counted = counted & np.isfinite(bins.sent) & np.isfinite(bins.lost)
        if offer.on is not None:
            counted &= offer.on != 0
        for part in judged_phases(case):
            here = counted & (bins.edges_ns[:-1] >= part.window.begin_ns) & (bins.edges_ns[1:] <= part.window.end_ns)
            share = share_of(part, bins.sent[here], bins.lost[here], exact=offer.exact)
            if share is not None and self._over(offer.kind, share, self._limit(offer.kind)):
                seen.open.append((share, offer))

    def _examine_rate(self, case: Case, offer: Offer, rate: Curve, out: Mask, seen: LossEvidence) -> None:
        """Stops of a rate for which only what came back is known: it is compared with its own level in each phase."""
        counts = rate_is_count(offer)
        level = 0.0
        for part in judged_phases(case):
            here = ~out & (rate.end_ns > part.window.begin_ns) & (rate.end_ns <= part.window.end_ns)
            begins, ends, value = rate.begin_ns[here], rate.end_ns[here], rate.rate[here]
            on = None if offer.on is None else offer.on[here]
            if part.name in _CHANGING and (on is None or not bool((on == 1).any())):
                continue
            if value.size and not bool((value > 0).any()) and level > 0 and ends[-1] - begins[0] >= self.seconds * 1e9:
                last = bool(ends[-1] >= rate.end_ns[-1])
                stops = [Stop(int(begins[0]), int(ends[-1]), float((ends[-1] - begins[0]) * 1e-9), last)]
            else:
                stops = list(stops_of_rate(begins, ends, value, self.seconds, counts=counts))
            for stop in stops:
                self._add_stop(case, offer, rate, stop, seen)
            level = max(level, median(value[value > 0]) if bool((value > 0).any()) else 0.0)

    def _add_stop(self, case: Case, offer: Offer, rate: Curve, stop: Stop, seen: LossEvidence) -> None:
        inside = (rate.begin_ns >= stop.begin_ns) & (rate.end_ns <= stop.end_ns)
        reported = np.empty(0) if offer.on is None else offer.on[inside]
        rests, works = int(np.count_nonzero(reported == 0)), int(np.count_nonzero(reported == 1))
        if rests and rests >= works:
            return  # nothing was offered
        after = rate.end_ns > stop.end_ns
        level = median(rate.rate[rate.rate > 0])
        last = stop.last and not bool((rate.rate[after] >= 0.1 * level).any())
        end_ns = int(rate.end_ns[-1]) if last else stop.end_ns
        window = Window(stop.begin_ns, end_ns)
        unsure, ended = "", False
        if not works:
            apart_ns = round(2 * offer.apart_s * 1e9)
            near = [p.name for p in phases_joined(case.phases) if abs(stop.begin_ns - p.window.begin_ns) <= apart_ns]
            begun = [name for name in near if stop.begin_ns - case.window.begin_ns > apart_ns]
            if _CHANGING & set(begun):
                return  # the load was turned off with the phase
            if begun and stop.last:
                unsure = f"when phase {begun[-1]} began"
            elif last and stop.turned_down:
                unsure = f"step by step until {moment(stop.begin_ns)}"
            elif last and window.seconds <= max(_TAIL_S, _TAIL * case.window.seconds):
                unsure, ended = f"at {moment(stop.begin_ns)}", True
        here = rate.rate[(rate.begin_ns >= window.begin_ns) & (rate.end_ns <= window.end_ns)]
        left = min(median(here) / level, 1.0) if here.size else 0.0
        seen.stops.append(Standstill(replace(stop, last=last), window, offer, unsure, left, ended))

    # --- what is said ------------------------------------------------------------------------------------------

    def _measured(self, finding: Finding, kind: str, seen: LossEvidence) -> Finding:
        sent, lost = (sum(getattr(x, name) for x in seen.shares) for name in ("sent", "lost"))
        numbers = {
            "stops": float(sum(not s.unsure for s in seen.stops)),
            "stopped_s": sum(s.window.seconds for s in seen.stops if not s.unsure),
        }
        longest = max((s.window.seconds for s in seen.stops), default=None)
        numbers |= {} if longest is None else {"longest_stop_s": longest}
        marks = [Mark(s.window.begin_ns, s.window.end_ns, f"no {kind} came back") for s in seen.stops]
        if seen.ratio is not None:
            numbers |= {"offered": sent, "lost": max(0.0, lost)}
            for part in seen.shares:
                if part.phase.name:
                    key = f"lost_share_{part.phase.name}"
                    numbers[key] = max(numbers.get(key, 0.0), part.share)
            worst = max(seen.shares, key=lambda x: x.share, default=None)
            if worst is not None:
                wide = interval_of(worst)
                least = max(finding.limit or 0.0, _MIN_LOST[kind] / max(worst.sent, 1.0))
                finding = replace(finding, measured=worst.share, interval=wide, smallest_detectable=min(1.0, least))
        elif longest is not None:
            finding = replace(finding, measured=longest, unit="s", limit=self.seconds)
        good = {name: value for name, value in numbers.items() if math.isfinite(value)}
        return replace(finding, numbers=good, marks=tuple(marks[:_MARKS]), facts=(_lost(kind, numbers, seen),))

    def _conclude(self, kind: str, finding: Finding, seen: LossEvidence, limit: float) -> Finding:
        who = f"{subject_name(finding.object)}: " if finding.object else ""
        sure = [s for s in seen.stops if not s.unsure]
        over = [x for x in seen.shares if self._over(kind, x, limit)]
        worse = [x for x in seen.shares if x not in over and limit <= _default(kind) and provably_worse(x, seen.base)]
        reported = []
        if sure:
            sure.sort(key=lambda s: (s.stop.blurred, s.window.begin_ns))
            first = "; ".join(dict.fromkeys(s.text for s in sure[:3]))
            first += f" and {len(sure) - 3} more" if len(sure) > 3 else ""
            reported.append(first if sure[0].stop.blurred else f"{standstill_words(kind)} {first}")
        marks = finding.marks
        reported += [
            f"{lost_words(kind, x)}; allowed {percent(limit)}" for x in sorted(over, key=lambda x: -x.share)[:2]
        ]
        for part in sorted(worse, key=lambda x: -x.share)[:1]:
            before = percent(seen.base.share) if seen.base is not None else ""
            reported.append(f"{lost_words(kind, part)}; provably more than in the baseline phase ({before})")
        if reported:
            if not sure:
                hit = sorted([*over, *worse], key=lambda x: -x.share)
                marks = tuple(_marks_of(seen.losing, [x.phase.window for x in hit], kind))
            return replace(finding, outcome=Outcome.FAIL, reason=who + "; ".join(reported), marks=marks)
        if seen.stops:
            last = seen.stops[-1]
            reason = f"{who}{last.unsure_text}"
            settle = "record what the generator offers (load.sending, load.users, the commanded rate)"
            return finding.undecided(reason, InconclusiveReason.NO_REFERENCE, settle)
        if left := self._left_open(finding, seen, limit, who):
            return left
        if seen.unknown > 0:
            reason = f"{who}{seen.unknown:,.0f} {kind} failed; the total is not known"
            settle = "record the total (load.requests, load.connections.opened)"
            return finding.undecided(reason, InconclusiveReason.NO_REFERENCE, settle)
        return self._quiet(kind, finding, seen, limit, who)

    def _left_open(self, finding: Finding, seen: LossEvidence, limit: float, who: str) -> Finding | None:
        """The finding if much is missing and it is unknown whether it was lost; None if little is."""
        # The generator's own count of lost packets accounts for what was sent, not for what was commanded.
        unexplained = [x for x in seen.open if seen.ratio is None or x[1].missing != "sent"]
        if not unexplained:
            return None
        part, offer = max(unexplained, key=lambda x: x[0].share)
        where = f" in phase {part.phase.name}" if part.phase.name else ""
        much = f"{who}{percent(part.share)} of {part.sent:,.0f} {offer.what}"
        sure = part.lost - SIGMAS * part.error >= _MUCH_OPEN * part.sent
        finding = replace(finding, measured=part.share, interval=interval_of(part), unit="1", limit=limit)
        if offer.missing == "sent":
            reason = (
                f"{much} sent have no counterpart{where} ({max(part.lost, 0.0):,.0f}); {_MAY_DIFFER[offer.what]}, so "
                "it is not known whether each was to come back"
            )
            if not sure:
                # Unread samples take precedence over a doubt: a warning would let the run pass.
                unseen_too = seen.blind or seen.unknown > 0
                return None if unseen_too else finding.warns(reason)
            more = "load.tx.bytes and load.rx.bytes" if offer.what == PACKETS else "load.tx.packets and load.rx.packets"
            settle = f"record load.lost.packets, or {more}: they tell whether they are the same"
        elif sure:
            came = "were neither answered nor failed" if offer.kind == REQUESTS else "did not come back"
            reason = (
                f"{much} that the generator was to send {came}{where} ({max(part.lost, 0.0):,.0f}): it did not "
                "send them, or they were lost"
            )
            settle = "record what was sent (load.tx.packets), or what failed (load.failures)"
        else:
            return None
        return finding.undecided(reason, InconclusiveReason.NO_REFERENCE, settle)

    def _quiet(self, kind: str, finding: Finding, seen: LossEvidence, limit: float, who: str) -> Finding:
        """The finding if nothing is above a limit."""
        if seen.readings < 2:
            reason = f"{who}{counted(seen.readings, 'sample')}; 2 needed"
            return finding.undecided(reason, InconclusiveReason.TOO_FEW, "needs 2 samples")
        if seen.blind:
            settle = "poll received traffic near both ends of the run"
            return finding.undecided(f"{who}{seen.blind}", InconclusiveReason.GAP, settle)
        if seen.ratio is None:
            reason = f"{who}{kind} came back throughout, without an interruption of {duration(self.seconds)}"
            return finding.passes(reason)
        sent, lost = sum(x.sent for x in seen.shares), max(0.0, sum(x.lost for x in seen.shares))
        if sent <= 0:
            reason = f"{who}no {kind} were sent outside of stress, spike and planned events"
            return finding.not_applicable(reason)
        few = limit > 0 and sent < 1 / limit
        much = f"{lost:,.0f} of {sent:,.0f} {kind} lost"
        if few:
            reason = f"{who}{much}; a loss of {percent(limit)} takes at least {1 / limit:,.0f}"
            return finding.not_applicable(reason)
        high = [x for x in seen.shares if x.lost > limit * x.sent and x.sent * limit >= 1]
        if high:
            part = max(high, key=lambda x: x.share)
            reason = f"{who}{lost_words(kind, part)}; over the limit of {percent(limit)}, but "
            if part.error > 0 and part.lost >= _MIN_LOST[kind]:
                settle = "record counters (load.tx.packets, load.rx.packets) instead of rates"
                reason += "within the error of sampled rates"
                return finding.undecided(reason, InconclusiveReason.NOISE, settle)
            return finding.warns(reason + f"{part.lost:.0f} are too few to be certain")
        within = f"; allowed {percent(limit)}" if lost > 0 else ""
        return finding.passes(f"{who}{much}{within}")

    def _over(self, kind: str, part: Share, limit: float) -> bool:
        if part.lost < _MIN_LOST[kind] and not (limit == 0 and part.lost >= 1):
            return False
        return part.lost - SIGMAS * part.error > limit * part.sent


def _default(kind: str) -> float:
    return float(getattr(Loss(), kind))


def _losing(bins: Bins, late: Floats, counted: Mask, limit: float, seen: LossEvidence) -> list[tuple[Window, float]]:
    """The stretches in which more was lost than is allowed and than twice the baseline's share, with how much."""
    usual = 0.0 if seen.base is None else 2.0 * seen.base.share
    with np.errstate(all="ignore"):
        bad = counted & (late > 0) & (late > max(limit, usual) * bins.sent)
    if not bad.any():
        bad = counted & (late > 0)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], bad.astype(np.int8), [0]))))
    return [
        (Window(int(bins.edges_ns[a]), int(bins.edges_ns[b])), float(late[a:b].sum()))
        for a, b in edges.reshape(-1, 2).tolist()
    ]


def _marks_of(losing: Sequence[tuple[Window, float]], phases: Sequence[Window], kind: str) -> Iterator[Mark]:
    """Marks for the first and the worst losing stretches of the failing phases, without small ones beside them."""
    inside = [
        (span, lost)
        for span, lost in sorted(losing, key=lambda one: one[0].begin_ns)
        if any(span.begin_ns < phase.end_ns and span.end_ns > phase.begin_ns for phase in phases)
    ]
    least = _SINGLE * max((lost for _, lost in inside), default=0.0)
    inside = [(span, lost) for span, lost in inside if lost >= least]
    most = sorted(inside[1:], key=lambda one: -one[1])[: _MARKS - 1]
    for span, lost in sorted([*inside[:1], *most], key=lambda one: one[0].begin_ns):
        yield Mark(span.begin_ns, span.end_ns, f"{lost:,.0f} {kind} lost")


def _lost(kind: str, numbers: Mapping[str, float], seen: LossEvidence) -> Lost:
    """The amount lost, if what was sent is known, and the number of stops."""
    return Lost(round(numbers["stops"]), count=None if seen.ratio is None else numbers.get("lost"), what=kind)


TRAITS: Final = Traits(
    words=RuleWords("traffic was lost", "traffic lost", happened="traffic through {target} was lost"),
    rank=110,
    family=Family.TRAFFIC,
    guide=Guide(
        fails_when=(
            "More than 0.1 % of the offered packets or requests do not come back outside stress phases, or nothing "
            "comes back for 10 s."
        ),
        misses=(
            "Losses while the offered load is not known, and stops shorter than half of the distance of two readings."
        ),
        change_with="loss: {packets: 0.01%, seconds: 5s}",
        next_step=(
            "Compare with the device's own drop counters: what it did not count was lost on the path or in the "
            "generator."
        ),
    ),
)
