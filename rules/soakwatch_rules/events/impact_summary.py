"""What is said of an event's impact: both methods, the peaks, the way back, and what is to be doubted."""

from __future__ import annotations

from collections.abc import Iterator

from soakwatch_rules.events.impact import Impact, Peak, Probed
from soakwatch_rules.load.traffic import Traffic
from soakwatch_rules.wording.words import counted, duration, moment, plural, quantity, whole

_WHOLE = 0.9  # of what is sent in an outage that is one of all traffic
_PROBES = 3


def summary(event_impact: Impact, load: Traffic | None) -> str:
    """One event in one sentence."""
    parts = [_outage(event_impact, load)]
    probes = sorted(event_impact.probes, key=lambda p: -p.time_s)
    if event_impact.traffic is not None:
        parts += [f"{p.name}: {_probe(p)}" for p in probes[:_PROBES]]
    parts += [
        f"{what} peak {_peak(p)}"
        for what, p in (("latency", event_impact.latency), ("CPU", event_impact.cpu))
        if p is not None
    ]
    if event_impact.restored_s is not None:
        parts.append(f"all traffic back {duration(event_impact.restored_s)} after the start")
    away = [b.name for b in event_impact.back if b.away]
    known = [b for b in event_impact.back if b.seconds is not None and not b.away]
    if away:
        parts.append(f"{', '.join(away)} not back at the level before")
    elif known:
        last = max(known, key=lambda b: b.seconds or 0.0)
        after = f"{duration(last.seconds or 0.0)} after the start ({last.name} last)" if last.seconds else "throughout"
        parts.append(f"levels as before {after}")
    return f"{event_impact.event.kind} of {moment(event_impact.event.begin_ns)}: {'; '.join(parts)}"


def _outage(event_impact: Impact, load: Traffic | None) -> str:
    outage, time = event_impact.traffic, event_impact.by_time
    if outage is None and event_impact.worst_probe is not None:
        return f"{event_impact.worst_probe.name}: {_probe(event_impact.worst_probe)}{_verdict(event_impact)}"
    if outage is None or time is None:
        return f"the outage was not measured: {event_impact.blind}"
    unit = "" if load is None else load.unit
    if not outage.spans and outage.lost <= 0:
        return f"no loss (± {duration(outage.loss_error_s)} at {quantity(outage.rate, f'{{{unit}}}/s')})"
    lost = f"{whole(outage.lost)} {plural(unit)}"
    by_loss = f"{duration(outage.loss_s)} by loss ({lost} at {quantity(outage.rate, f'{{{unit}}}/s')})"
    pieces = f" in {len(outage.spans)} parts" if len(outage.spans) > 1 else ""
    stamps = f"{duration(time[0])} ± {duration(time[1])} by time stamps{pieces}"
    if not outage.spans:
        stamps = f"by time stamps shorter than the {duration(outage.step_s)} between samples"
    still = "" if outage.over else ", and not recovered by the end of the observed time"
    return f"{by_loss}, {stamps}{_verdict(event_impact)}{still}"


def _verdict(event_impact: Impact) -> str:
    return {None: "", True: " (the methods agree)", False: " (the methods disagree)"}[event_impact.agree]


def _probe(probe: Probed) -> str:
    if not probe.spans:
        return f"answered every {duration(probe.step_s)}"
    by_loss = f"{duration(probe.loss_s)} by lost requests, " if probe.loss_s is not None else ""
    still = "" if all(span.over for span in probe.spans) else ", and not recovered"
    return f"{by_loss}{duration(probe.time_s)} ± {duration(probe.error_s)} by time stamps{still}"


def _peak(peak: Peak) -> str:
    return f"{quantity(peak.highest, peak.unit)} ({quantity(peak.before, peak.unit)} before)"


def doubts(event_impact: Impact, load: Traffic | None, *, overlapped: bool) -> Iterator[str]:
    """What is uncertain of one event."""
    what = f"{event_impact.event.kind} of {moment(event_impact.event.begin_ns)}"
    outage = event_impact.traffic
    if overlapped:
        yield f"{what}: another event overlaps with it; the loss may be due to either"
    if event_impact.later_ns is not None:
        yield (
            f"{what}: another outage at {moment(event_impact.later_ns)} came too late to be caused by it and is not "
            "counted"
        )
    if outage is None:
        yield f"{what}: {event_impact.blind}" + (", so only probes measure it" if event_impact.probes else "")
        return
    if load is not None and load.assumed:
        yield (
            f"{what}: the packets sent are not known; the rate received before the event is used instead "
            f"({load.source})"
        )
    if outage.blind_s > 0:
        yield f"{what}: received traffic is so noisy that an outage under {duration(outage.blind_s)} cannot be detected"
    if event_impact.agree is False:
        part = outage.share is not None and outage.share < _WHOLE
        why = (
            f"only {quantity(outage.share or 0.0, '1')} of what was sent during the outage was lost"
            if part
            else ("queued packets may have arrived late, or the rate changed")
        )
        yield f"{what}: the two methods differ by {duration(abs(outage.loss_s - outage.time_s))}: {why}"
    if outage.unsent_s > 0:
        yield (
            f"{what}: for {duration(outage.unsent_s)} the generator itself sent less than half as much; this is not "
            "counted as loss"
        )
    if outage.unseen_s > 0:
        yield f"{what}: {duration(outage.unseen_s)} were not counted (a counter was reset)"
    apart = [
        p.name
        for p in event_impact.probes
        if p.spans and abs(p.time_s - outage.loss_s) > p.error_s + outage.loss_error_s
    ]
    if apart:
        yield (
            f"{what}: {counted(len(apart), 'probed peer')} with an outage that differs from that of the traffic: "
            f"{', '.join(apart[:3])}"
        )
