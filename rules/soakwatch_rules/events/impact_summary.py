"""The words for an event's impact: both methods, peaks, recovery, and doubts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from soakwatch_rules.events.impact import Impact, Probed
from soakwatch_rules.load.traffic import Traffic
from soakwatch_rules.wording.quantities import counted, digits, duration, moment, plural, quantity

_WHOLE = 0.9  # share lost in an outage that stops all traffic
_PROBES = 3


class EventFault(NamedTuple):
    """What is wrong with an event, or why it is undecided; ``says`` is what the summary then need not repeat: the
    length of the outage, or the levels that are not back."""

    text: str
    says: Literal["outage", "levels", ""] = ""


def summary(event_impact: Impact, load: Traffic | None, faults: Sequence[EventFault] = ()) -> str:
    """One event in one sentence: its ``faults``, the outage, the peaks, and when everything was back."""
    event, clauses, said = event_impact.event, [fault.text for fault in faults], {fault.says for fault in faults}
    length, evidence = _outage(event_impact, load)
    clauses.append(evidence if "outage" in said or not length else f"{length} ({evidence})")
    probes = sorted(event_impact.probes, key=lambda p: -p.time_s)
    if event_impact.traffic is not None:
        clauses += [f"{p.name} {_probe(p)}" for p in probes[:_PROBES]]
    clauses += [
        f"{what} peaked at {quantity(p.highest, p.unit)} ({quantity(p.before, p.unit)} before)"
        for what, p in (("latency", event_impact.latency), ("CPU", event_impact.cpu))
        if p is not None and p.highest > p.before
    ]
    if event_impact.restored_s is not None:
        clauses.append(f"all traffic back {duration(event_impact.restored_s)} after the start")
    clauses += list(_levels(event_impact)) if "levels" not in said else []
    return f"{event.kind} at {moment(event.begin_ns)}: {'; '.join(clauses)}"


def outage_words(seconds: float) -> str:
    """The length of an outage in words."""
    return f"an outage of {duration(seconds)}"


def _levels(event_impact: Impact) -> Iterator[str]:
    """The levels that are not back, else the last that came back; nothing if none left."""
    away = list(dict.fromkeys(b.name for b in event_impact.back if b.away))
    late = [b for b in event_impact.back if b.seconds and not b.away]
    if away:
        yield f"{', '.join(away)} not back at the level before"
    elif late:
        last = max(late, key=lambda b: b.seconds or 0.0)
        yield f"{last.name} back at the level before after {duration(last.seconds or 0.0)}"


def _outage(event_impact: Impact, load: Traffic | None) -> tuple[str, str]:
    """The length of the outage in words (empty if there was none, or it is unknown), and the evidence."""
    outage, time = event_impact.traffic, event_impact.by_time
    if outage is None and event_impact.worst_probe is not None:
        probe = event_impact.worst_probe
        if not probe.spans:
            return "", f"{probe.name} {_probe(probe)}"
        still = "" if all(span.over for span in probe.spans) else _still(event_impact)
        stamps = f"; {duration(probe.time_s)} by time stamps" if event_impact.agree is False else ""
        evidence = f"probes of {probe.name}, ± {duration(probe.error_s)}{stamps}{still}"
        return outage_words(event_impact.seconds or 0.0), evidence
    if outage is None or time is None:
        return "", f"the outage was not measured: {event_impact.blind}"
    unit = "" if load is None else load.unit
    if outage.loss_s <= outage.loss_error_s:
        number, most = round(outage.lost), max(outage.loss_error_s * outage.rate, outage.lost)
        if not number:
            return "", f"no {plural(unit)} lost"
        return "", f"{counted(number, unit)} lost, within the error of {digits(most)}"
    evidence = f"{digits(outage.lost)} {plural(unit)} lost at {quantity(outage.rate, f'{{{unit}}}/s')}"
    if not outage.spans:
        return outage_words(outage.loss_s), f"{evidence}, all between two samples"
    pieces = f" in {len(outage.spans)} parts" if len(outage.spans) > 1 else ""
    stamps = f"; {duration(time[0])} ± {duration(time[1])} by time stamps" if event_impact.agree is False else ""
    return outage_words(outage.loss_s), f"{evidence}{pieces}{stamps}{'' if outage.over else _still(event_impact)}"


def _still(event_impact: Impact) -> str:
    return f"; not back {duration(event_impact.seen_s)} after the start"


def _probe(probe: Probed) -> str:
    if not probe.spans:
        return f"answered every {duration(probe.step_s)}"
    still = "" if all(span.over for span in probe.spans) else ", and has not come back"
    return f"silent for {duration(probe.time_s)} ± {duration(probe.error_s)}{still}"


def doubts(event_impact: Impact, load: Traffic | None, *, overlapped: bool) -> Iterator[str]:
    """What is uncertain about one event."""
    what = f"{event_impact.event.kind} at {moment(event_impact.event.begin_ns)}"
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
            f"{what}: the generator itself sent less than half as much for {duration(outage.unsent_s)}; not counted "
            "as loss"
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
