"""Who lost it: compares what the generators sent and received with the counters of the device's own interfaces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.fact import Lost, Stage
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.window import Window
from soakwatch_rules.load.loss_account import LossEvidence, Share
from soakwatch_rules.load.offers import Offer
from soakwatch_rules.load.path_ledger import BEHIND, WORDS, PathLedger, Ports
from soakwatch_rules.stats.outage import Bins
from soakwatch_rules.wording.quantities import percent

_MUCH = 0.1  # share of a load: with more lost elsewhere it is unknown what the device withstood
_READINGS = 3
_UNEVEN = 0.02  # share by which counters that are read at different moments may differ


def blamed(case: Case, finding: Finding, seen: LossEvidence, over: Sequence[Share], limit: float) -> Finding:
    """The finding on packets in the light of the device's counters; ``over`` are the phases that fail by their
    share."""
    offer = seen.ratio or next((s.offer for s in seen.stops if s.offer.bins is not None), None)
    if offer is None or offer.bins is None:
        return finding
    bins = offer.bins
    known = np.isfinite(bins.sent) & np.isfinite(bins.lost)
    total = float(np.sum(bins.sent[known]))
    ports = Ports(case, total)
    if finding.outcome is not Outcome.FAIL:
        return _contradicted(case, finding, offer, ports, total, limit) if finding.outcome is Outcome.PASS else finding
    windows = [s.window for s in seen.stops if not s.unsure]
    windows += [x.phase.window for x in over]
    crossings = [c for w in windows if (c := _crossing_in(ports, bins, w)) is not None]
    # Blaming needs the ports in every stretch with losses.
    if not crossings or len(crossings) < len(windows):
        where = "" if ports.names else " (by the device or the path: the device's interfaces are not polled)"
        return replace(finding, reason=f"{finding.reason}{where}")
    worst = max(crossings, key=lambda c: (not c.clear, c.lost))
    stops = sum(not s.unsure for s in seen.stops)
    numbers = dict(finding.numbers) | {k: v for k, v in worst.numbers.items() if math.isfinite(v)}
    known_lost = finding.fact(Lost) or Lost()
    blamed_loss = replace(known_lost, stops=stops, by_ports=True, stage=worst.stage)
    finding = replace(finding, numbers=numbers, facts=(blamed_loss,))
    if not worst.clear:
        where = "" if worst.stage is None else f"lost {WORDS[worst.stage]}: "
        return replace(finding, reason=f"{finding.reason}; {where}{worst.text}")
    if stops > 0 and worst.taken_in < _MUCH * worst.sent:
        reason = (
            f"{finding.reason}; the device's ports received almost nothing: the ports, or the path to them, failed; "
            f"{worst.text}"
        )
        return replace(finding, reason=reason)
    # The device sent it all on, so it does not fail.
    if all(c.behind for c in crossings):
        how = BEHIND.get(worst.stage or Stage.BEHIND, "by the path or the generator's receiver")
        reason = f"{finding.reason}; lost after leaving the device, {how}: {worst.text}"
        if stops <= 0 and worst.lost < _MUCH * worst.sent:
            return finding.warns(reason)
        settle = "fix the path or the generator's receiver, then run again"
        return finding.undecided(reason, InconclusiveReason.GENERATOR, settle)
    if worst.stage is Stage.SENDER:
        reason = f"{finding.reason}; counted as sent, but lost before it left the generator: {worst.text}"
        settle = "fix the generator's sender, or send less, then run again"
        return finding.undecided(reason, InconclusiveReason.GENERATOR, settle)
    # Lost before the device counted it as received.
    how = ", on the path to it" if worst.stage is Stage.WAY_IN else ""
    if worst.dropped is None:
        how = ", or at its own ports, whose drops are not polled"
    reason = f"{finding.reason}; lost before reaching the device{how}: {worst.text}"
    settle = "poll the device's counters of missed packets, or check the path to it"
    return finding.undecided(reason, InconclusiveReason.NO_REFERENCE, settle)


def _contradicted(case: Case, finding: Finding, offer: Offer, ports: Ports, total: float, limit: float) -> Finding:
    """The finding if the generator reports that all came back, but the device's interfaces carried almost none of
    it."""
    assert offer.bins is not None
    if not ports.read or total < 1 / max(limit, 1e-9):
        return finding
    if not ports.names:
        reason = f"{finding.reason}, but none of the device's polled interfaces carried 1 % of it"
        return finding.warns(reason)
    apart_ns = max(round(ports.apart_s * 1e9), 1)
    edges = np.arange(case.window.begin_ns, case.window.end_ns + 1, max(apart_ns * 2, 30 * 10**9), dtype=np.int64)
    crossed = [
        c
        for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        if (c := _crossing_in(ports, offer.bins, Window(a, b))) is not None and c.sent > 0 and c.back > 0.5 * c.sent
    ]
    away = [c for c in crossed if c.let_out < 0.1 * c.back]
    if not away or (len(away) == len(crossed) and len(crossed) < _READINGS):
        return _more_than_let_out(finding, crossed)
    worst = max(away, key=lambda c: c.back)
    reason = f"{finding.reason}, but the device's interfaces carried less than 10 % of it: {worst.text}"
    settle = "find out which figures are right: the generator's or the device's"
    return finding.undecided(reason, InconclusiveReason.GENERATOR, settle)


def _more_than_let_out(finding: Finding, crossed: Sequence[PathLedger]) -> Finding:
    """The finding if everything sent went into the device's read ports, but less left them than came back."""
    sent, taken, let, back = (
        sum(getattr(c, name) for c in crossed) for name in ("sent", "taken_in", "let_out", "back")
    )
    if len(crossed) < _READINGS or abs(taken - sent) > _UNEVEN * sent or let >= (1 - _UNEVEN) * back:
        return finding
    text = PathLedger(sent, taken, let, back, None).text
    reason = f"{finding.reason}, but the device's interfaces sent out {percent(1 - let / back)} less than that: {text}"
    settle = (
        "read every port that carries the load, or find out which figures are right: the generator's or the device's"
    )
    return finding.undecided(reason, InconclusiveReason.GENERATOR, settle)


def _crossing_in(ports: Ports, bins: Bins, window: Window) -> PathLedger | None:
    """The counts of a stretch; a short one is extended by one reading of the device at each side."""
    slack_ns = round(ports.apart_s * 1e9)
    begin_ns, end_ns = window.begin_ns - slack_ns, window.end_ns + slack_ns
    if window.seconds > 20 * ports.apart_s:
        begin_ns, end_ns = window.begin_ns, window.end_ns
    inside = (bins.edges_ns[:-1] >= begin_ns) & (bins.edges_ns[1:] <= end_ns)
    inside &= np.isfinite(bins.sent) & np.isfinite(bins.lost)
    if not inside.any():
        return None
    positions = np.flatnonzero(inside)
    exact = Window(int(bins.edges_ns[positions[0]]), int(bins.edges_ns[positions[-1] + 1]))
    sent, lost = float(np.sum(bins.sent[inside])), float(np.sum(bins.lost[inside]))
    return ports.crossing(exact, sent, sent - lost)
