"""What is said of an event's impact: both methods, the peaks, the way back, and what is to be doubted."""

from __future__ import annotations

from collections.abc import Iterator

from soakwatch_rules.impact import Impact, Peak, Probed
from soakwatch_rules.traffic import Traffic
from soakwatch_rules.wording.words import counted, lasting, moment, quantity

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
        parts.append(f"all traffic back {lasting(one.restored_s)} after its begin")
    away = [b.name for b in one.back if b.away]
    known = [b for b in one.back if b.seconds is not None and not b.away]
    if away:
        parts.append(f"{', '.join(away)} not back where it was")
    elif known:
        last = max(known, key=lambda b: b.seconds or 0.0)
        after = f"{lasting(last.seconds or 0.0)} after its begin ({last.name} last)" if last.seconds else "all along"
        parts.append(f"levels in the bands of before {after}")
    return f"{one.event.kind} of {moment(one.event.begin_ns)}: {'; '.join(parts)}"


def _outage(one: Impact, load: Traffic | None) -> str:
    made, time = one.traffic, one.by_time
    if made is None and one.worst_probe is not None:
        return f"{one.worst_probe.name}: {_probe(one.worst_probe)}{_verdict(one)}"
    if made is None or time is None:
        return f"its outage was not measured: {one.blind}"
    unit = "" if load is None else load.unit
    if not made.spans and made.lost <= 0:
        return f"nothing lost (± {lasting(made.loss_error_s)} at {quantity(made.rate, f'{{{unit}}}/s')})"
    lost = f"{made.lost:,.0f} {unit}s" if made.lost < 1e12 else f"{made.lost:.3g} {unit}s"
    by_loss = f"{_seconds(made.loss_s)} by loss ({lost} at {quantity(made.rate, f'{{{unit}}}/s')})"
    pieces = f" in {len(made.spans)} pieces" if len(made.spans) > 1 else ""
    stamps = f"{_seconds(time[0])} ± {_seconds(time[1])} by time stamps{pieces}"
    if not made.spans:
        stamps = f"by time stamps under a reading of {lasting(made.step_s)}"
    still = "" if made.over else ", and had not come back by the end of the look"
    return f"{by_loss}, {stamps}{_verdict(one)}{still}"


def _verdict(one: Impact) -> str:
    return {None: "", True: ", which agree", False: ", which do not agree"}[one.agree]


def _probe(probe: Probed) -> str:
    if not probe.spans:
        return f"answered each {lasting(probe.step_s)}"
    by_loss = f"{_seconds(probe.loss_s)} by lost requests, " if probe.loss_s is not None else ""
    still = "" if all(span.over for span in probe.spans) else ", and had not come back"
    return f"{by_loss}{_seconds(probe.time_s)} ± {_seconds(probe.error_s)} by time stamps{still}"


def _peak(peak: Peak) -> str:
    return f"{_value(peak.highest, peak.unit)} ({_value(peak.before, peak.unit)} before)"


def _value(value: float, unit: str) -> str:
    return f"{1e3 * value:.3g} ms" if unit == "s" and abs(value) < 1 else quantity(value, unit)


def _seconds(value: float) -> str:
    return f"{1e3 * value:.3g} ms" if value < 1 else lasting(value) if value >= 60 else f"{value:.3g} s"


def doubts(one: Impact, load: Traffic | None, *, overlapped: bool) -> Iterator[str]:
    """What is uncertain of one event."""
    what = f"{one.event.kind} of {moment(one.event.begin_ns)}"
    made = one.traffic
    if overlapped:
        yield f"{what}: another event lies within its time, and what was lost may be due to either"
    if one.later_ns is not None:
        yield f"{what}: something went down again at {moment(one.later_ns)}, too late to be due to it: not counted"
    if made is None:
        yield f"{what}: {one.blind}" + (", so only probes tell of it" if one.probes else "")
        return
    if load is not None and load.assumed:
        yield f"{what}: nobody tells what was sent, so it is taken to be what came before ({load.source})"
    if made.blind_s > 0:
        yield f"{what}: what comes back scatters so much that an outage of under {lasting(made.blind_s)} is not seen"
    if one.agree is False:
        part = made.share is not None and made.share < _WHOLE
        why = (
            f"only {quantity(made.share or 0.0, '1')} of what was sent in it was lost"
            if part
            else ("what was queued may have come late, or the rate have changed")
        )
        yield f"{what}: the two methods differ by {lasting(abs(made.loss_s - made.time_s))}: {why}"
    if made.unsent_s > 0:
        yield f"{what}: for {lasting(made.unsent_s)} the generator itself sent under half as much, which is no loss"
    if made.unseen_s > 0:
        yield f"{what}: {lasting(made.unseen_s)} were not counted (a counter began anew)"
    apart = [p.name for p in one.probes if p.spans and abs(p.time_s - made.loss_s) > p.error_s + made.loss_error_s]
    if apart:
        yield f"{what}: {counted(len(apart), 'probed peer')} away for another time than traffic: {', '.join(apart[:3])}"
