"""Event impact: the outage and loss that a failover, an upgrade or a configuration change caused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.fact import Happened, Onset
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, Outcome
from soakwatch_model.roles import DUT
from soakwatch_rules.events.expectations import UnmetAnnouncement, unmet_announcements
from soakwatch_rules.events.impact import EventScope, Impact, ReturnTime, event_scopes, impact
from soakwatch_rules.events.impact_summary import EventFault, doubts, outage_words, summary
from soakwatch_rules.events.operator_events import operator_events
from soakwatch_rules.finding_draft import draft
from soakwatch_rules.load.traffic import Traffic, traffic
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import Input, RuleSpec
from soakwatch_rules.sampling import spacing
from soakwatch_rules.stats.medians import median
from soakwatch_rules.traits import Guide, Inconclusive, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, digits, duration, plural, plus_minus, quantity

_MAX_EVENTS = 300  # events of one kind: a log may report thousands
_MAX_NUMBERED_EVENTS = 50  # events whose own figures are listed


@dataclass(frozen=True, slots=True)
class _Assessment:
    """The outcome of one event."""

    impact: Impact
    outcome: Outcome
    faults: tuple[EventFault, ...] = ()  # what is wrong, or why it is undecided
    why: InconclusiveReason | None = None
    settle: str = ""


def _undecided(impact: Impact, reason: str, why: InconclusiveReason, settle: str) -> _Assessment:
    """An event that could not be judged, with what would decide it."""
    return _Assessment(impact, Outcome.INCONCLUSIVE, (EventFault(reason),), why, settle)


@dataclass(frozen=True, slots=True)
class EventImpact(Parameters):
    """Measures the impact of each planned or reported event and compares it with its limits.

    Events are those that the plan announced or a tester reported (failover, upgrade, config ...), and those of the same
    kind in the device's log. Log events within a minute of a reported one, or of each other, are one event; two reports
    by testers are two. Events that probes detect do not count. The judged stretch runs from ``lead`` before the event's
    start to ``look`` after its end, or to its deadline, and not beyond into the next phase, whose load differs. The
    calm that it is compared with is as long, directly before.

    The outage is measured twice:
    * By loss: what was lost beyond the usual share / the rate offered. Lost is packets sent less received, lost packets
      as the generator counts them, or requests offered less answered; with none of these, the traffic that arrived
      against its median before (noted as uncertain).
    * By time stamps: from the first sample with a loss to the last. Of these two edge samples only the share counts
      that they lost relative to the samples between them (all, if there are none), because traffic that stops and
      starts in step with the samples would otherwise be off by one. A sample shows a loss if it lost more than 5 sigma
      of the calm, than one in fifty calm samples, 0.5 % of what was sent (30 % if that is assumed) and two packets, and
      the packets were not merely late. Where usually nothing is lost, half a packet beside such a sample belongs to it.
      If the loss is 0 within its error, time stamps give no outage.
    Probes (``reach.up``) give both for each peer. The methods *agree* if they differ by at most the sampling interval
    per piece; if not, only part of the traffic stopped, or a queue held it.

    Also reported: the highest latency and CPU against the median before, and when they were proven back within
    ``tolerance`` (as in ``recovery``; a latency within a millisecond, or its double if that is less, a CPU within 5
    points). A further failure more than three minutes after recovery, and after the deadline, is not charged to the
    event. Events of one kind make one finding: median, worst and each.

    fail: an outage longer than ``outage``; more lost than ``loss``; traffic or latency not back in time (``within``,
    else the event's deadline, from its start); or an announced effect that did not happen (``outage: N`` stretches, or
    N events of a kind that no crash rule judges). warn: traffic never recovered and there is no limit, or only the CPU
    was late. pass: within the limits, or measured without any. inconclusive: a limit, but no data to measure it by.

    How often wrong: over 1900 seeded outages of 0.3 to 10 s at 1000 packets/s, read each second, the error by loss was
    at most 1 ms (one packet), by time stamps 1 ms (median) and at most 4 ms, always within the stated error; both
    agreed in all. Known weaknesses: time stamps take both edges from the loss there, so in a full outage the methods
    differ only by what lies between; where rates change within a reading, an edge is off by up to one reading; an
    outage shorter than 0.5 % of the sampling interval is seen by loss only; events closer together than the recovery
    blur; generators that stop sending lose nothing (reported); the event's time is that of whoever reported it.

    Neighbours: ``recovery`` judges levels after stress; ``reboot`` and ``process_restart`` their announced events;
    ``hang`` unannounced ones; ``management_isolation`` whether the device can be managed under load.

    Parameters: ``outage``, ``loss``, ``within``, ``look``, ``lead``, ``tolerance`` (below).

    >>> import numpy as np
    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import readings
    >>> sent = np.arange(600) * 1000.0
    >>> back = sent - 1000.0 * np.clip(np.arange(600) - 300.25, 0, 3)
    >>> load = (readings("load.tx.packets", sent, 1.0), readings("load.rx.packets", back, 1.0))
    >>> event = Event("failover", "dut", "", 300 * 10**9, None)
    >>> case = Case("dut", "", Window(0, 600 * 10**9), events=(event,), load=load)
    >>> made = EventImpact(outage=2.0).judge(case)[0]
    >>> made.outcome.value, made.measured, made.numbers["outage_1_time_s"]
    ('fail', 3.0, 3.0)

    References: RFC 2544 section 26.6 and RFC 6201 (reset: frame loss and time stamp methods); RFC 6414 (benchmarking
    terms for protection); RFC 6412 and RFC 6413 (convergence derived from loss and from rates).
    """

    name: ClassVar[str] = "event_impact"
    version: ClassVar[int] = 3
    summary: ClassVar[str] = "impact of an event: outage by loss and by time stamps, peaks, recovery"
    metrics: ClassVar[tuple[str, ...]] = (
        "reach.up",
        "reach.round_trip",
        "reach.sent",
        "reach.lost",
        "system.cpu.utilization",
    )
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec(
        "a planned or reported event, and samples of load or probes before and after it",
        needs_load=True,
        live="end",
        inputs=frozenset({Input.EVENTS}),
    )

    outage: float = parameter(0.0, "s", "longest allowed outage", "0: measured, not limited")
    loss: float = parameter(0.0, "{packet}", "packets that one event may lose", "0: measured, not limited")
    within: float = parameter(
        0.0, "s", "time to recover, from the start of the event; 0: the event's deadline", "set in the plan"
    )
    look: float = parameter(
        600.0, "s", "time judged after the end of the event", "proving recovery takes 60 samples", within="(0, inf)"
    )
    lead: float = parameter(5.0, "s", "time judged before the start of the event", "events may be reported late")
    tolerance: float = parameter(0.05, "1", "band around the level before", "as for recovery", within="(0, inf)")

    def definition(self) -> str:
        outage = duration(self.outage) if self.outage else "any length (0: not limited)"
        loss = quantity(self.loss, "{packet}") if self.loss else "any number of packets (0: not limited)"
        when = f"{duration(self.within)} after its start" if self.within else "the event's deadline"
        return (
            f"an outage (lost / rate offered, and by time stamps; from {duration(self.lead)} before an event to "
            f"{duration(self.look)} after it) may last {outage} and cost {loss}; by {when} traffic and latency are "
            f"back within {quantity(self.tolerance, '1')} of the level before (a late CPU only warns); what an event "
            "announces must happen"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding for each kind of event; none unless the target is the device under test."""
        if case.role != DUT:
            return ()
        case = replace(case, series=tuple(s.between(case.window.begin_ns, case.window.end_ns) for s in case.series))
        events, load = operator_events(case.events), traffic(case)
        places = event_scopes(case, events, self.lead, self.look, _step_s(case, load))
        if not places:
            reason = "no event was planned or reported"
            return (draft(self, case).not_applicable(reason),)
        kinds = dict.fromkeys(stretch.event.kind for stretch in places)
        blurred = _overlapped(places)
        result = []
        for kind in kinds:
            own = [(stretch, blur) for stretch, blur in zip(places, blurred, strict=True) if stretch.event.kind == kind]
            result.append(self._of(case, kind, own, load))
        return tuple(result)

    def _of(self, case: Case, kind: str, every: Sequence[tuple[EventScope, bool]], load: Traffic | None) -> Finding:
        # at most _MAX_EVENTS: announced ones first
        own = sorted(every, key=lambda each: not each[0].event.expect)[:_MAX_EVENTS]
        own.sort(key=lambda each: each[0].event.begin_ns)
        unit = "packet" if load is None else load.unit
        assessments = [self._conclude(case, impact(case, stretch, load, self.tolerance), unit) for stretch, _ in own]
        measured = [s for s in assessments if s.impact.seconds is not None]
        worst = min(assessments, key=lambda s: (s.outcome.rank, -(s.impact.seconds or 0.0)))
        caveats = [
            text
            for s, (_, blur) in zip(assessments, own, strict=True)
            for text in doubts(s.impact, load, overlapped=blur)
        ]
        if len(every) > len(own):
            caveats.append(f"only {len(own)} of {len(every)} events were measured: the planned ones and the first ones")
        if broke := [stretch.event.detail["failed"] for stretch, _ in own if "failed" in stretch.event.detail]:
            caveats.append(
                f"{counted(len(broke), 'script')} failed ({broke[0]}): the planned action may not have happened"
            )
        if case.devices > 1 and load is not None:
            caveats.append(f"{case.devices} devices share the load: the loss may be due to another one")
        finding = replace(
            draft(self, case),
            object=f"event={kind}",
            doubts=tuple(caveats),
            samples=_readings(case, assessments, load),
            numbers=_numbers(assessments),
            marks=tuple(_mark(s, load) for s in assessments[: 2 * _MAX_NUMBERED_EVENTS]),
        )
        if measured:
            longest = max(measured, key=lambda s: s.impact.seconds or 0.0).impact
            seconds = longest.seconds or 0.0
            finding = replace(
                finding,
                measured=seconds,
                unit="s",
                limit=self.outage or None,
                interval=(max(0.0, seconds - longest.error_s), seconds + longest.error_s),
                smallest_detectable=max(s.impact.error_s for s in measured),
                detectable_unit="s",
            )
        reason = summary(worst.impact, load, worst.faults)
        if len(assessments) > 1:
            reason = f"{_summary(kind, assessments)}; the worst: {reason}"
        if worst.outcome is Outcome.FAIL:
            cost = Happened(
                kind, f"cost more than allowed ({'; '.join(fault.text for fault in worst.faults)})", broke=True
            )
            finding = replace(finding, facts=(Onset(worst.impact.event.begin_ns), cost))
        return replace(finding, outcome=worst.outcome, reason=reason, why=worst.why, settle=worst.settle)

    def _conclude(self, case: Case, event_impact: Impact, unit: str) -> _Assessment:
        event = event_impact.event
        limit_s = self.within or self._deadline_s(event)
        broken = list(unmet_announcements(case, event_impact))
        faults = [EventFault(u.text) for u in broken if not (u.open or u.blind)] + self._over(
            event_impact, limit_s, unit
        )
        if faults:
            return _Assessment(event_impact, Outcome.FAIL, tuple(faults))
        if (pending := self._pending(case, event_impact, limit_s, broken)) is not None:
            return pending
        # Not measured: undecided only if the plan limits it, or announced what nothing could observe.
        if event_impact.seconds is None:
            limits = self.outage or self.loss or self.within
            blind = next((u.text for u in broken if u.blind), "")
            if limits or blind:
                reason = blind or f"the outage could not be measured: {event_impact.blind}"
                settle = "use a generator that reports packets sent and received, or probe a peer (icmp, tcp)"
                return _undecided(event_impact, reason, InconclusiveReason.NO_REFERENCE, settle)
            return _Assessment(event_impact, Outcome.PASS if event_impact.back else Outcome.NOT_APPLICABLE)
        blind = next((u.text for u in broken if u.blind), "")
        if blind:
            settle = "receive syslog or traps from the device, or announce something that is polled"
            return _undecided(event_impact, blind, InconclusiveReason.NO_REFERENCE, settle)
        # Measured, but too coarsely to hold the limits.
        blind_s = 0.0 if event_impact.traffic is None or event_impact.spans else event_impact.traffic.blind_s
        if blind_s > (self.outage or event_impact.seen_s):
            reason = f"received traffic is so noisy that an outage under {duration(blind_s)} cannot be detected"
            settle = "record packets sent and received, or probe a peer (icmp, tcp) more often"
            return _undecided(event_impact, reason, InconclusiveReason.NOISE, settle)
        if self.outage and event_impact.seconds + event_impact.error_s > self.outage:
            reason = (
                f"an outage of {plus_minus(event_impact.seconds, event_impact.error_s, 's')} may exceed the limit "
                f"of {duration(self.outage)}"
            )
            return _undecided(event_impact, reason, InconclusiveReason.CADENCE, "probe, or poll the load, more often")
        if self.loss and event_impact.traffic is None:
            reason = f"losses could not be counted: {event_impact.blind}"
            return _undecided(event_impact, reason, InconclusiveReason.NO_REFERENCE, "record packets sent and received")
        # No limit is broken; what did not return in time still warns.
        if not event_impact.over:
            return _Assessment(event_impact, Outcome.WARN, (EventFault("traffic did not come back"),))
        if limit_s and (names := _late(event_impact.back, limit_s, event_impact.seen_s)):
            reason = f"traffic came back, but {names} was not at the level before within {duration(limit_s)}"
            return _Assessment(event_impact, Outcome.WARN, (EventFault(reason, "levels"),))
        return _Assessment(event_impact, Outcome.PASS)

    def _deadline_s(self, event: Event) -> float:
        return 0.0 if event.deadline_ns is None else max(0.0, (event.deadline_ns - event.begin_ns) * 1e-9)

    def _over(self, event_impact: Impact, limit_s: float, unit: str) -> list[EventFault]:
        """What exceeds its limit even when the measuring error is deducted."""
        matches: list[EventFault] = []
        if (
            self.outage
            and event_impact.seconds is not None
            and event_impact.seconds - event_impact.error_s > self.outage
        ):
            matches.append(EventFault(f"{outage_words(event_impact.seconds)}, limit {duration(self.outage)}", "outage"))
        if self.loss and event_impact.traffic is not None and event_impact.traffic.lost > self.loss:
            lost = f"{digits(event_impact.traffic.lost)} {plural(unit)} lost"
            matches.append(EventFault(f"{lost}, limit {digits(self.loss)}"))
        if not limit_s:
            return matches
        seen_s = event_impact.seen_s
        down_s = max(((span.down_ns - event_impact.event.begin_ns) * 1e-9 for span in event_impact.spans), default=0.0)
        if down_s > limit_s:
            matches.append(EventFault(f"traffic was not back within {duration(limit_s)} of the start"))
        if names := _late([b for b in event_impact.back if b.served], limit_s, seen_s):
            text = f"{names} was not at the level before within {duration(limit_s)} of the start"
            matches.append(EventFault(text, "levels"))
        return matches

    def _pending(
        self, case: Case, event_impact: Impact, limit_s: float, broken: Sequence[UnmetAnnouncement]
    ) -> _Assessment | None:
        """An undecided outcome if the run ended before a deadline at which it would be known; else None."""
        left_s = limit_s - (case.window.end_ns - event_impact.event.begin_ns) * 1e-9
        still = next((u.text for u in broken if u.open), "")
        if still:
            return _undecided(event_impact, still, InconclusiveReason.PENDING, "judge again after the deadline")
        if left_s > 0 and (not event_impact.over or any(b.away for b in event_impact.back)):
            reason = f"not recovered when the run ended, {duration(left_s)} before the deadline"
            return _undecided(event_impact, reason, InconclusiveReason.PENDING, f"needs {duration(left_s)} more")
        return None


def _late(back: Sequence[ReturnTime], limit_s: float, seen_s: float) -> str:
    """The names of the levels that were certainly not back within ``limit_s``."""
    late = [b.name for b in back if b.seconds is not None and not b.away and b.seconds > limit_s]
    away = [b.name for b in back if b.away and seen_s >= limit_s]
    return ", ".join(dict.fromkeys((*away, *late)))


def _step_s(case: Case, load: Traffic | None) -> float:
    """The largest median distance of readings in seconds: an event's time is no more exact."""
    apart = [s for series in case.series if series.metric == "reach.up" and (s := spacing(series)) is not None]
    if load is not None and load.bins.sent.size:
        apart.append(median(load.bins.seconds))
    return max(apart, default=0.0)


def _overlapped(places: Sequence[EventScope]) -> list[bool]:
    """Which of the judged stretches, in order of their start, overlap another."""
    result = [False] * len(places)
    reach_ns, last = -(2**62), 0
    for i, stretch in enumerate(places):
        if stretch.window.begin_ns < reach_ns:
            result[i] = result[last] = True
        if stretch.window.end_ns > reach_ns:
            reach_ns, last = stretch.window.end_ns, i
    return result


def _readings(case: Case, assessments: Sequence[_Assessment], load: Traffic | None) -> int:
    """How many samples of traffic and of probes were judged."""
    number = 0
    for assessment in assessments:
        window = assessment.impact.stretch.window
        number += 0 if load is None else load.bins.within(window).sent.size
        number += sum(len(s.between(window.begin_ns, window.end_ns)) for s in case.series)
    return number


def _summary(kind: str, assessments: Sequence[_Assessment]) -> str:
    known = [s.impact.seconds for s in assessments if s.impact.seconds is not None]
    events = counted(len(assessments), f"{kind} event")
    if not known:
        return f"{events}, none measured"
    some_of = "" if len(known) == len(assessments) else f" ({len(known)} measured)"
    usual, worst = median(known), max(known)
    if not worst:
        return f"{events}{some_of}, no outage"
    return f"{events}{some_of}: median outage {duration(usual)}, worst {duration(worst)}"


def _mark(assessment: _Assessment, load: Traffic | None) -> Mark:
    event_impact = assessment.impact
    begin_ns = min([event_impact.event.begin_ns, *(s.window.begin_ns for s in event_impact.spans)])
    end_ns = max((s.window.end_ns for s in event_impact.spans), default=None)
    return Mark(begin_ns, end_ns if end_ns is None or end_ns >= begin_ns else begin_ns, summary(event_impact, load))


def _numbers(assessments: Sequence[_Assessment]) -> dict[str, float]:
    """The figures of all events together, then of each: outage by loss, by time stamps and by the worst probe."""
    ones = [s.impact for s in assessments]
    known = [x.seconds for x in ones if x.seconds is not None]
    agree = [x.agree for x in ones if x.agree is not None]
    numbers = {
        "events": float(len(ones)),
        "measured": float(len(known)),
        "agree": float(sum(agree)),
        "differ": float(len(agree) - sum(agree)),
    }
    if known:
        numbers |= {"outage_median_s": median(known), "outage_worst_s": max(known)}
    lost = [x.traffic.lost for x in ones if x.traffic is not None]
    if lost:
        numbers |= {"lost": sum(lost), "lost_worst": max(lost)}
    for name, peaks in (("latency", [x.latency for x in ones]), ("cpu", [x.cpu for x in ones])):
        highest = max((p for p in peaks if p is not None), key=lambda p: p.highest, default=None)
        if highest is not None:
            numbers |= {f"{name}_peak": highest.highest, f"{name}_before": highest.before}
    back = [b.seconds for x in ones for b in x.back if b.seconds is not None and not b.away]
    if back:
        numbers["back_worst_s"] = max(back)
    restored = [x.restored_s for x in ones if x.restored_s is not None]
    if restored:
        numbers["traffic_back_worst_s"] = max(restored)
    for number, event_impact in enumerate(ones[:_MAX_NUMBERED_EVENTS], 1):
        if event_impact.by_loss_s is not None:
            numbers[f"outage_{number}_loss_s"] = event_impact.by_loss_s
        if event_impact.by_time is not None:
            numbers |= {
                f"outage_{number}_time_s": event_impact.by_time[0],
                f"outage_{number}_time_error_s": event_impact.by_time[1],
            }
        if event_impact.traffic is not None and event_impact.worst_probe is not None:
            numbers[f"outage_{number}_probe_s"] = event_impact.worst_probe.time_s
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


TRAITS: Final = Traits(
    words=RuleWords("an event cost more than allowed", happened="{thing} on {target} cost more than allowed"),
    expected_as="outage",
    inconclusive=Inconclusive(required=True),
    guide=Guide(
        fails_when=(
            "Traffic is not back by the event's deadline, an outage is longer than allowed, or what the event "
            "announced did not happen."
        ),
        misses=(
            "Outages shorter than the distance of two readings, and events so close together that their effects blur."
        ),
        change_with="event_impact: {outage: 3s, tolerance: 10%}",
        next_step=(
            "Compare the outage by loss with the one by time stamps, and read the device's log from 5 s before the "
            "event."
        ),
    ),
)
