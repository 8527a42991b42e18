"""What is said of an event's impact: both methods, the peaks, the way back, and what is to be doubted."""

from __future__ import annotations

from collections.abc import Iterator

from soakwatch_rules.impact import Impact, Peak, Probed
from soakwatch_rules.traffic import Traffic
from soakwatch_rules.wording.words import counted, duration, moment, plural, quantity, whole

_WHOLE = 0.9  # of what is sent in an outage that is one of all traffic
_PROBES = 3


def told(one: Impact, load: Traffic | None) -> str:
    """One event in one sentence."""
    parts = [_outage(one, load)]
    probes = sorted(one.probes, key=lambda p: -p.time_s)
    if one.traffic is not None:
        parts += [f"{p.name}: {_probe(p)}" for p in probes[:_PROBES]]
    parts += [f"{what} peak {_peak(p)}" for what, p in (("latency", one.latency), ("CPU", one.cpu)) if p is not None]
    if one.restored_s is not None:
        parts.append(f"all traffic back {duration(one.restored_s)} after the start")
    away = [b.name for b in one.back if b.away]
    known = [b for b in one.back if b.seconds is not None and not b.away]
    if away:
        parts.append(f"{', '.join(away)} not back at the level before")
    elif known:
        last = max(known, key=lambda b: b.seconds or 0.0)
        after = f"{duration(last.seconds or 0.0)} after the start ({last.name} last)" if last.seconds else "throughout"
        parts.append(f"levels as before {after}")
    return f"{one.event.kind} of {moment(one.event.begin_ns)}: {'; '.join(parts)}"


def _outage(one: Impact, load: Traffic | None) -> str:
    made, time = one.traffic, one.by_time
    if made is None and one.worst_probe is not None:
        return f"{one.worst_probe.name}: {_probe(one.worst_probe)}{_verdict(one)}"
    if made is None or time is None:
        return f"the outage was not measured: {one.blind}"
    unit = "" if load is None else load.unit
    if not made.spans and made.lost <= 0:
        return f"no loss (± {duration(made.loss_error_s)} at {quantity(made.rate, f'{{{unit}}}/s')})"
    lost = f"{whole(made.lost)} {plural(unit)}"
    by_loss = f"{duration(made.loss_s)} by loss ({lost} at {quantity(made.rate, f'{{{unit}}}/s')})"
    pieces = f" in {len(made.spans)} parts" if len(made.spans) > 1 else ""
    stamps = f"{duration(time[0])} ± {duration(time[1])} by time stamps{pieces}"
    if not made.spans:
        stamps = f"by time stamps shorter than the {duration(made.step_s)} between samples"
    still = "" if made.over else ", and not recovered by the end of the observed time"
    return f"{by_loss}, {stamps}{_verdict(one)}{still}"


def _verdict(one: Impact) -> str:
    return {None: "", True: " (the methods agree)", False: " (the methods disagree)"}[one.agree]


def _probe(probe: Probed) -> str:
    if not probe.spans:
        return f"answered every {duration(probe.step_s)}"
    by_loss = f"{duration(probe.loss_s)} by lost requests, " if probe.loss_s is not None else ""
    still = "" if all(span.over for span in probe.spans) else ", and not recovered"
    return f"{by_loss}{duration(probe.time_s)} ± {duration(probe.error_s)} by time stamps{still}"


def _peak(peak: Peak) -> str:
    return f"{quantity(peak.highest, peak.unit)} ({quantity(peak.before, peak.unit)} before)"


def doubts(one: Impact, load: Traffic | None, *, overlapped: bool) -> Iterator[str]:
    """What is uncertain of one event."""
    what = f"{one.event.kind} of {moment(one.event.begin_ns)}"
    made = one.traffic
    if overlapped:
        yield f"{what}: another event overlaps with it; the loss may be due to either"
    if one.later_ns is not None:
        yield f"{what}: another outage at {moment(one.later_ns)} came too late to be caused by it and is not counted"
    if made is None:
        yield f"{what}: {one.blind}" + (", so only probes measure it" if one.probes else "")
        return
    if load is not None and load.assumed:
        yield (
            f"{what}: the packets sent are not known; the rate received before the event is used instead "
            f"({load.source})"
        )
    if made.blind_s > 0:
        yield f"{what}: received traffic is so noisy that an outage under {duration(made.blind_s)} cannot be detected"
    if one.agree is False:
        part = made.share is not None and made.share < _WHOLE
        why = (
            f"only {quantity(made.share or 0.0, '1')} of what was sent during the outage was lost"
            if part
            else ("queued packets may have arrived late, or the rate changed")
        )
        yield f"{what}: the two methods differ by {duration(abs(made.loss_s - made.time_s))}: {why}"
    if made.unsent_s > 0:
        yield (
            f"{what}: for {duration(made.unsent_s)} the generator itself sent less than half as much; this is not "
            "counted as loss"
        )
    if made.unseen_s > 0:
        yield f"{what}: {duration(made.unseen_s)} were not counted (a counter was reset)"
    apart = [p.name for p in one.probes if p.spans and abs(p.time_s - made.loss_s) > p.error_s + made.loss_error_s]
    if apart:
        yield (
            f"{what}: {counted(len(apart), 'probed peer')} with an outage that differs from that of the traffic: "
            f"{', '.join(apart[:3])}"
        )
