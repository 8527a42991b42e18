"""Tenant isolation: does a change of one tenant's load affect the others?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.event_catalogue import event_kind
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, Outcome
from soakwatch_model.roles import DUT
from soakwatch_model.series import Ints, Mask
from soakwatch_rules.finding_draft import draft
from soakwatch_rules.load.tenant_load import (
    BY_DEVICE,
    Measure,
    RaisedLoad,
    TenantBins,
    bin_edges,
    raised_load,
    tenant_bins,
)
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.peers import finite_numbers
from soakwatch_rules.rule import Input, RuleSpec
from soakwatch_rules.stats.contrast import Contrast, contrast
from soakwatch_rules.traits import Family, Guide, Limit, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, duration, first_few, quantity

_RISK: Final = 0.05
_LEAST: Final = 3  # bins needed with the load raised, and with it at its base
_SETTLE_S: Final = 120.0  # after an event that is not the tenant's own
_APART: Final = "raise the load of one tenant at a time, while the others send as before"
_AGAIN: Final = "raise its load for some minutes and lower it again, three times or more"
_MOST_MARKS: Final = 20


@dataclass(frozen=True, slots=True)
class _Effect:
    """The effect of one tenant's load on one measure of another tenant."""

    victim: str
    measure: Measure
    outcome: Outcome
    contrast: Contrast | None
    measured: float
    limit: float
    interval: tuple[float, float]
    detectable: float
    text: str
    why: InconclusiveReason | None = None
    settle: str = ""
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class TenantIsolation(Parameters):
    """Fails if the load of one tenant (virtual function, VDOM, context, VRF, tunnel) affects the others.

    Tenants are named in the plan (``tenants``), by a label ``tenant`` of their objects, or by the device (``VDOM x``,
    ``vsys x``, ``context x``). Each tenant whose load changed gets one finding. Time is cut into bins of 10 s (of three
    readings if they are rarer). Its load is *raised* where it is in the upper half between its base and its highest
    value, if that exceeds the base by ``change`` (or in events that name it: ``tenant=NAME``); it is *calm* in the
    lowest quarter. Each raised stretch is compared with the calm bins just before and after it: the share lost of what
    was sent to the others (or of failed requests), what came back, the latency (of the 99th percentile if there is one,
    as a factor) and, as a warning only, their share of the CPU. Left out are bins in which a third tenant changed, and
    those of reboots, failovers and other events, with 2 min after them.

    fail: worse by more than the tolerance with 95 % probability, over all others and figures of this tenant
    (Bonferroni). pass: certainly less than the tolerance. inconclusive: between the two; if the effect does not show
    against the time after as well (something else began); or if less came back because less was sent. warn: a load that
    was raised once and stayed.

    How often wrong: 300 seeded runs each (two hours, a poll each 5 s): tenants that wander by themselves, a reboot
    while the load is raised, and a third tenant that rises as well never failed; 2 % lost, half as much latency more
    and a fifth of the throughput less always did. Known weaknesses: two tenants that always change together cannot be
    told apart; an effect that takes hours to build up looks like a trend; a shared generator that is itself overloaded
    looks like the device (``generator_health``); with several devices it is unknown which one.

    Neighbours: ``loss`` and ``latency`` judge the whole load, ``management_isolation`` the operators; ``recovery``.

    Parameters: ``change``, ``loss``, ``throughput``, ``latency``, ``cpu`` (below).

    >>> from soakwatch_model.case import TargetFacts, Tenant
    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import readings
    >>> raised = np.tile(np.repeat([0.0, 1.0], 60), 4)
    >>> red = readings("load.flow.tx.packets", np.cumsum(1e3 * (1 + 3 * raised)), 5.0, object="flow=red")
    >>> sent = readings("load.flow.tx.packets", np.arange(480) * 1e3, 5.0, object="flow=blue")
    >>> for lost in (0.0, 0.02):
    ...     back = readings("load.flow.rx.packets", np.cumsum(1e3 * (1 - lost * raised)), 5.0, object="flow=blue")
    ...     both = TargetFacts(tenants=(Tenant("red", (red,)), Tenant("blue", (sent, back))))
    ...     print(TenantIsolation().judge(Case("dut", "", Window(0, 2400 * 10**9), facts=both))[0].outcome)
    pass
    fail

    References: RFC 8172 (benchmarking of virtual network functions: noisy neighbours); ETSI GS NFV-TST 001; O. J. Dunn,
    J. Am. Stat. Assoc. 56, 1961.
    """

    name: ClassVar[str] = "tenant_isolation"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "the load of one tenant cost the others"
    metrics: ClassVar[tuple[str, ...]] = BY_DEVICE  # metrics of the generators come with the tenants
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec(
        "two tenants, and a load of one that changes for a minute while the other goes on",
        shortest_s=300.0,
        live="end",
        inputs=frozenset({Input.ONE_BY_ONE, Input.TENANTS}),
    )

    change: float = parameter(
        0.25, "1", "least rise of a tenant's load, of its base", "above the waves of a load", within="(0, inf)"
    )
    loss: float = parameter(
        0.001, "1", "share that the others may lose more", "one packet in a thousand", within="[0, 1)"
    )
    throughput: float = parameter(
        0.05, "1", "share of their throughput that the others may lose", "as for decline", within="[0, 1)"
    )
    latency: float = parameter(0.2, "1", "share by which the latency of the others may rise", "a fifth is noticed")
    cpu: float = parameter(0.2, "1", "share by which the CPU time of the others may rise before it warns", "as latency")

    def definition(self) -> str:
        return (
            f"while the load of one tenant is raised ({100 * self.change:g} % above its base, and more), the others "
            f"may lose at most {100 * self.loss:g} % of their packets or requests more than just before and after it, "
            f"{100 * self.throughput:g} % of their throughput, and their latency may rise by {100 * self.latency:g} %, "
            f"with 95 % certainty for all of them together ({100 * self.cpu:g} % more of the CPU warns)"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding for each tenant whose load changed; a single one if none did or there are no two tenants."""
        if case.role != DUT:
            return ()
        if len(case.facts.tenants) < 2:
            reason = "the plan names no two tenants, and nothing that was read belongs to any: see tenants in the plan"
            return (draft(self, case).not_applicable(reason),)
        edges_ns = bin_edges(case.facts.tenants, case.window)
        every = [tenant_bins(tenant, edges_ns) for tenant in case.facts.tenants]
        loads = {x.name: raised_load(x.name, x.load, case.events, edges_ns, self.change) for x in every}
        findings = [
            self._of(case, each, load, every, loads, edges_ns)
            for each in every
            if (load := loads[each.name]) is not None
        ]
        return tuple(findings) or (self._unchanged(case, every),)

    def _unchanged(self, case: Case, every: Sequence[TenantBins]) -> Finding:
        names = first_few([x.name for x in every], 5)
        finding = replace(draft(self, case), samples=sum(x.samples for x in every))
        if not any(x.load is not None for x in every):
            reason = f"no load of a tenant is known ({names}): neither flows nor ports of a generator, nor interfaces"
            settle = "name the generator's ports or flows, or the device's interfaces, in tenants"
        else:
            reason = f"no tenant's load ({names}) rose by {quantity(self.change, '1')} of its base in this run"
            settle = _AGAIN
        if not any(tenant.named for tenant in case.facts.tenants):
            return finding.not_applicable(reason)
        return finding.undecided(reason, InconclusiveReason.NO_REFERENCE, settle)

    def _of(
        self,
        case: Case,
        actor: TenantBins,
        load: RaisedLoad,
        every: Sequence[TenantBins],
        loads: dict[str, RaisedLoad | None],
        edges_ns: Ints,
    ) -> Finding:
        """The finding on one tenant: the effects of its raised load on all others."""
        others = [x for x in every if x is not actor]
        disturbed, because = _disturbed(case.events, actor.name, edges_ns)
        bystanders = np.ones(load.raised.size, np.bool_)
        together = []
        for other in others:
            if (own := loads[other.name]) is not None:
                bystanders &= own.usual
                together += [other.name] if int((load.raised & own.usual).sum()) < _LEAST else []
        kept = bystanders & ~disturbed
        raised, calm = load.raised & kept, load.calm & kept
        finding = replace(
            draft(self, case),
            object=f"tenant={actor.name}",
            samples=sum(x.samples for x in every),
            marks=_marks(load, edges_ns, actor.name),
            doubts=(f"{case.devices} devices share the load: it may be due to another one",) * (case.devices > 1),
        )
        width_s = float(edges_ns[1] - edges_ns[0]) * 1e-9
        times = f", {load.times:.3g} times its base" if math.isfinite(load.times) else ""
        head = f"while the load of {actor.name} was raised ({duration(float(load.raised.sum()) * width_s)}{times})"
        if min(int(raised.sum()), int(calm.sum())) < _LEAST:
            return _unclear(finding, head, load, together, because, disturbed)
        compared = [(other, measure) for other in others for measure in other.measures]
        risk = _RISK / max(1, sum(measure.kind != "cpu" for _, measure in compared))
        effects = [e for other, m in compared if (e := self._effect(actor.name, other, m, (raised, calm), risk))]
        if not effects:
            reason = f"{head}: how {first_few([x.name for x in others], 5)} fared is not known"
            settle = "read the flows or ports of the generator, a latency, or probe a peer of each tenant"
            return finding.undecided(reason, InconclusiveReason.NO_REFERENCE, settle)
        return _folded(finding, head, effects, len(others))

    def _effect(
        self, actor: str, other: TenantBins, measure: Measure, sides: tuple[Mask, Mask], risk: float
    ) -> _Effect | None:
        found, limit = contrast(measure.value, *sides), getattr(self, measure.kind)
        if found is None:
            return None
        scale = abs(found.calm) if measure.kind in {"throughput", "cpu"} else 1.0
        if not scale > 0:
            return None
        low, high, middle = found.low(risk) / scale, found.high(risk) / scale, found.effect / scale
        detectable = found.detectable(risk) / scale
        near = [x / scale for x in (found.before, found.after) if x is not None]
        if measure.kind == "latency":
            low, high, middle, *near = (math.expm1(min(x, 50.0)) for x in (low, high, middle, *near))
            detectable = math.expm1(min(detectable, 50.0))
        text = _words(other.name, measure.kind, found, middle)
        effect = _Effect(other.name, measure, Outcome.PASS, found, middle, limit, (low, high), detectable, text)
        if measure.kind == "cpu":
            return replace(effect, outcome=Outcome.WARN) if low > limit else effect
        if low > limit:
            return self._beyond(actor, effect, other, sides, near)
        if high > limit:
            return replace(
                effect,
                outcome=Outcome.INCONCLUSIVE,
                why=InconclusiveReason.NOISE,
                settle=_AGAIN,
                text=f"{text}, which may be more than {quantity(limit, '1')}",
            )
        return effect

    def _beyond(
        self, actor: str, effect: _Effect, other: TenantBins, sides: tuple[Mask, Mask], near: Sequence[float]
    ) -> _Effect:
        """The outcome of an effect above its limit: a failure unless something else explains it."""
        doubtful = replace(effect, outcome=Outcome.INCONCLUSIVE, why=InconclusiveReason.NO_REFERENCE)
        sent = None if other.sent is None else contrast(other.sent, *sides)
        if effect.measure.kind == "throughput" and sent is not None and sent.calm > 0:
            less = -sent.effect / sent.calm
            if less > 0.5 * effect.measured:
                text = f"{effect.text}, of {quantity(less, '1')} less that was sent to it"
                return replace(doubtful, text=text, settle=_APART)
        if min(near) <= effect.limit:
            text = f"{effect.text}, but not against the time both before and after: something else began there"
            return replace(doubtful, text=text, settle=_AGAIN)
        found = effect.contrast
        if found is not None and (found.before is None or found.after is None) and found.stretches == 1:
            doubt = f"the load of {actor} changed once and stayed: whatever else began then would look the same"
            return replace(effect, outcome=Outcome.WARN, doubt=doubt)
        return replace(effect, outcome=Outcome.FAIL)


def _disturbed(events: Sequence[Event], actor: str, edges_ns: Ints) -> tuple[Mask, list[str]]:
    """The bins of events that are not the tenant's own, with 2 min after them, and the kinds of these events."""
    result, kinds = np.zeros(edges_ns.size - 1, np.bool_), []
    for event in events:
        kind = event_kind(event.kind)
        own = event.detail.get("tenant") == actor
        family = event.kind.partition(".")[0]
        if own or family in {"load", "phase"} or not (kind.explains or kind.intervention or kind.crash):
            continue
        first_ns = event.begin_ns - int(edges_ns[1] - edges_ns[0])  # the loss may show a bin before its event
        last_ns = max(event.begin_ns, event.end_ns or event.begin_ns) + round(_SETTLE_S * 1e9)
        touched = (edges_ns[1:] > first_ns) & (edges_ns[:-1] <= last_ns)
        if bool(touched.any()):
            result |= touched
            kinds.append(event.kind)
    return result, list(dict.fromkeys(kinds))


def _unclear(
    finding: Finding, head: str, load: RaisedLoad, together: Sequence[str], because: Sequence[str], disturbed: Mask
) -> Finding:
    """The undecided finding if too few bins are left to compare, with what removed them."""
    if together:
        reason = f"{head}, that of {first_few(list(together))} changed as well: they cannot be told apart"
        return finding.undecided(reason, InconclusiveReason.NO_REFERENCE, _APART)
    if because and min(int((side & ~disturbed).sum()) for side in (load.raised, load.calm)) < _LEAST:
        reason = f"{head}, something else happened ({first_few(list(because))}), and little is left to compare"
        return finding.undecided(reason, InconclusiveReason.NO_REFERENCE, _AGAIN)
    reason = f"{head}, there were too few readings with it raised or at its base, and the others as usual"
    return finding.undecided(reason, InconclusiveReason.TOO_FEW, _AGAIN)


def _folded(finding: Finding, head: str, effects: Sequence[_Effect], others: int) -> Finding:
    """One finding for all effects: the worst decides, and the reason names two more of that outcome."""
    worst = min(
        effects,
        key=lambda e: (e.outcome.rank, e.measure.kind == "cpu", -e.measured / max(e.limit, 1e-6)),
    )
    same = [e for e in effects if e.outcome is worst.outcome and e is not worst]
    numbers = {"others": float(others), "comparisons": float(len(effects))}
    for effect in effects:
        numbers[f"{effect.victim}_{effect.measure.kind}"] = effect.measured
    finding = replace(
        finding,
        outcome=worst.outcome,
        metric=worst.measure.metric,
        measured=worst.measured,
        limit=worst.limit,
        unit="1",
        interval=worst.interval if all(map(math.isfinite, worst.interval)) else None,
        smallest_detectable=worst.limit + worst.detectable if math.isfinite(worst.detectable) else None,
        detectable_unit="1",
        numbers=finite_numbers(numbers),
        doubts=(*finding.doubts, *dict.fromkeys(e.doubt for e in effects if e.doubt)),
        why=worst.why,
        settle=worst.settle,
    )
    if worst.outcome is Outcome.PASS:
        reason = f"{head}, {counted(others, 'other')} did not fare worse: at most {worst.text}"
        return replace(finding, reason=reason, marks=())
    text = "; ".join([worst.text, *(e.text for e in same[:2])])
    allowed = f" (allowed {quantity(worst.limit, '1')})" if worst.outcome is not Outcome.INCONCLUSIVE else ""
    return replace(finding, reason=f"{head}, {text}{allowed}")


def _words(name: str, kind: str, found: Contrast, measured: float) -> str:
    """The effect as part of a sentence."""
    if kind == "loss":
        return f"{name} lost {quantity(found.raised, '1')} ({quantity(found.calm, '1')} beside it)"
    if kind == "latency":
        raised, calm = (duration(math.exp(x)) for x in (found.raised, found.calm))
        return f"the latency of {name} was {raised} ({calm} beside it)"
    if kind == "cpu":
        return f"the CPU share of {name} was {quantity(found.raised, '1')} ({quantity(found.calm, '1')} beside it)"
    less = "less" if measured >= 0 else "more"
    return f"{quantity(abs(measured), '1')} {less} came back to {name}"


def _marks(load: RaisedLoad, edges_ns: Ints, name: str) -> tuple[Mark, ...]:
    """A mark for each stretch in which the load was raised, 20 at most."""
    marks, place = [], 0
    for is_raised, group in groupby(load.raised.tolist()):
        length = len(list(group))
        if is_raised:
            marks.append(Mark(int(edges_ns[place]), int(edges_ns[place + length]), f"load of {name} raised"))
        place += length
    return tuple(marks[:_MOST_MARKS])


TRAITS: Final = Traits(
    words=RuleWords("one tenant's load cost the others"),
    rank=420,
    limit=Limit.PLAN,
    family=Family.TRAFFIC,
    guide=Guide(
        fails_when=(
            "While the load of one tenant is raised, another loses packets, throughput or latency beyond its limits."
        ),
        misses="Runs in which no tenant's load changes alone.",
        change_with="tenant_isolation: {loss: 1%, latency: 50%}",
        next_step="Give the tenants limits or queues of their own, and repeat the change of load.",
    ),
)
