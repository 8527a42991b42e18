"""Overload loss: a device that is offered more than it can carry may lose the excess and no more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal, NamedTuple

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.fact import Stage
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, Outcome
from soakwatch_model.flow import PACKETS, REQUESTS
from soakwatch_model.roles import DUT
from soakwatch_model.series import Floats, Ints, Series
from soakwatch_model.window import Phase
from soakwatch_rules.finding_draft import absent, draft
from soakwatch_rules.load.load_account import LoadAccount
from soakwatch_rules.load.offered import OVERLOADS, overloads, own_loss, windows_by_phase
from soakwatch_rules.load.path_ledger import BEHIND, DROPPED, PORTS, PathLedger, Ports
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import Input, RuleSpec
from soakwatch_rules.sampling import cadence
from soakwatch_rules.stats.carried_load import NOTHING, Capacity, carried, excess
from soakwatch_rules.stats.counted_amounts import binned
from soakwatch_rules.stats.tally import Tally
from soakwatch_rules.traits import Family, Guide, RuleWords, Traits
from soakwatch_rules.wording.quantities import duration, moment, percent, quantity, three_digits

_BIN_S = 10.0
_CADENCES = 2.0
_SIGMAS = 2.0
_POWER_SIGMAS = 0.84  # one-sided, 80 %
_SEEN = 0.5
_READINGS = 5  # of the device's interfaces that a phase must hold


class _Flow(NamedTuple):
    sent: tuple[Series, ...]
    back: tuple[Series, ...]  # what came back; failed requests are in ``sent`` only
    unit: str


@dataclass(frozen=True, slots=True)
class _Overload:
    phase: Phase
    sent: float
    lost: float
    excess: float
    best: float
    seconds: float

    @property
    def ratio(self) -> float:
        """Excess loss relative to what could have been carried."""
        return self.excess / self.best if self.best > NOTHING else 0.0

    def without(self, own: float) -> _Overload:
        """The same without the share ``own`` of what was sent, as if the generator itself had lost it."""
        return replace(self, excess=self.excess - own * self.sent)

    @property
    def share(self) -> float:
        """Lost / offered."""
        return self.lost / self.sent if self.sent > NOTHING else 0.0

    @property
    def explained(self) -> float:
        """The share of what was offered that the overload explains: offered - capacity."""
        return (self.lost - self.excess) / self.sent if self.sent > NOTHING else 0.0

    @property
    def points(self) -> str:
        """How many percentage points more (or less) than explained were lost, in words."""
        beyond = 100 * (self.share - self.explained)
        more = "more" if beyond >= 0 else "less"
        return f"{three_digits(abs(beyond))} points {more} than offered - capacity ({quantity(self.explained, '1')})"


@dataclass(frozen=True, slots=True)
class OverloadLoss(Parameters):
    """Fails if a device lost more in an overload phase (stress or spike) than the overload explains.

    Excess = sum over 10 s bins of (lost - max(0, offered - capacity)), from the start of the phase to ``drain`` after
    its end, relative to the sum of min(offered, capacity). Offered is what all generators together sent
    (load.tx.packets, else their rates times time), lost is that minus load.rx.packets; without packets, offered is the
    requests that were answered or failed, lost the failed ones. Adjacent phases of one name are one phase: a rest that
    is still called spike drains what the spike filled.

    Capacity is the parameter ``capacity`` with ``error``; if it is 0, the highest rate carried for 30 s in the other
    phases with a loss of at most ``clean``. If a higher rate did lose there, capacity lies between the two (e =
    half-width / sqrt 3); if not, it is only a lower bound.

    It fails above ``limit`` + 2 e, where e is the capacity's relative error, and passes up to ``limit``. Between them
    it is inconclusive and says how well the capacity must be known. With a lower bound, loss beyond what even the bound
    explains still fails; less passes only if the device carried at most ``near`` more than the bound, which then was
    near its capacity; otherwise it is inconclusive, since a device that carries more than was ever offered without loss
    may still lose more than necessary. At most ``limit`` of everything lost always passes.

    Two things soften a failure. If the generators were calibrated (``load.ceiling.loss``), it is inconclusive if the
    share that they lose by themselves, looped back at their ceiling, explains it. If the device's interfaces are read
    (system.network.packets), it only warns if packets lost after leaving the device explain it (bursts that the
    generator cannot take); the finding gives four numbers: sent, device in, device out, received.

    How often wrong, measured on 2000 overloads of 1.2 to 2 times a capacity that was known to 1 %: a healthy device
    failed in 0.1 % (16 % inconclusive, else pass); 5 % of excess failed in 98 %, 2 % in 15 % and passed in 15 %:
    measure the capacity well. On 300 with a soak at 98 % of the capacity as the only hint: healthy 100 % pass, 5 % of
    excess 100 % fail, 2 % of excess pass; with a soak at half of it 100 % inconclusive. Known weaknesses: capacity
    depends on packet size and mix of flows, so measure it with the same; counters read further apart than a tenth of
    the phase blur its edges.

    Neighbours: ``drops`` judges the device's own counters in the same phase, ``recovery`` whether it came back,
    ``generator_health`` whether the load was as commanded, ``management_isolation`` whether it still answered.

    Parameters: ``capacity``, ``error``, ``limit``, ``clean``, ``near``, ``drain`` (below).

    >>> import numpy as np
    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import readings
    >>> at = np.arange(0.0, 121.0)
    >>> sent = readings("load.tx.packets", 1500 * at, 1.0)
    >>> stress = Phase("stress", Window(0, 100 * 10**9))
    >>> for kept in (1000, 900):
    ...     load = (sent, readings("load.rx.packets", kept * at, 1.0))
    ...     case = Case("dut", "", Window(0, 120 * 10**9), phases=(stress,), load=load)
    ...     print(OverloadLoss(capacity=1000.0).judge(case)[0].outcome)
    pass
    fail

    References: RFC 2544 sections 26.1 to 26.3 (throughput, frame loss) and 26.5 (system recovery; a percentage of
    overload there says nothing of what was lost beyond it); RFC 9004 (loss at rates above the forwarding rate).
    """

    name: ClassVar[str] = "overload_loss"
    version: ClassVar[int] = 3
    summary: ClassVar[str] = "more was lost in overload than the overload explains"
    metrics: ClassVar[tuple[str, ...]] = (PORTS, *DROPPED)
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec(
        "a phase named stress or spike, packets sent and received, and the capacity (stated, or shown in other phases)",
        needs_load=True,
        inputs=frozenset({Input.GENERATOR_PORTS}),
        live="end",
    )

    capacity: float = parameter(0.0, "{packet}/s", "capacity of the device", "0: taken from the phases without loss")
    error: float = parameter(
        0.01, "1", "standard error of a stated capacity", "a good RFC 2544 search", within="[0, 1)"
    )
    limit: float = parameter(
        0.01,
        "1",
        "allowed excess loss, as a share of what could be carried",
        "definition of a soak",
        within="[0, 1)",
    )
    clean: float = parameter(
        0.001, "1", "share of loss that is ignored", "packets in flight when counters are polled", within="[0, 1)"
    )
    near: float = parameter(
        0.05, "1", "margin within which a rate without loss counts as the capacity", "", within="[0, 1)"
    )
    drain: float = parameter(
        5.0, "s", "time after the phase in which packets still arrive", "deep queues", within="[0, 86400]"
    )

    def definition(self) -> str:
        stated = f"stated {self.capacity:g}/s ± {100 * self.error:g} %"
        shown = f"the highest rate carried elsewhere with a loss of at most {100 * self.clean:g} %"
        shown += f" (if overload carried at most {100 * self.near:g} % more)"
        capacity = f"{stated}, not {shown}" if self.capacity > 0 else f"{shown}, not {stated}"
        return (
            f"in phases named stress or spike (and {duration(self.drain)} after) the loss beyond max(0, offered - "
            f"capacity) may be at most {100 * self.limit:g} % + 2 relative errors of the capacity; capacity is "
            f"{capacity}"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding, of the worst overload phase; none unless the target is the device under test."""
        if case.role != DUT:
            return ()
        phases, flow = overloads(case), _flow(case.load)
        if not phases:
            finding = draft(self, case)
            reason = "the run has no phase named stress or spike"
            return (finding.not_applicable(reason),)
        if flow is None:
            return (absent(self, case, "count of packets sent and received (load.tx.packets, load.rx.packets)"),)
        return (self._of(case, phases, flow),)

    def _of(self, case: Case, phases: tuple[Phase, ...], flow: _Flow) -> Finding:
        first = flow.back[0]
        bin_s = max(_BIN_S, _CADENCES * (cadence(first) or 0.0))
        finding = replace(draft(self, case, first), object="", unit="1", limit=self.limit)
        known = (
            Capacity(self.capacity, self.error, bound=False) if self.capacity > 0 else self._shown(case, flow, bin_s)
        )
        per_bin_s = known.rate if known is not None else math.inf
        seen, unseen = [], 0.0
        for phase in phases:
            overload = self._overload(case, phase, flow, bin_s, per_bin_s)
            length = phase.window.seconds
            if overload is None or overload.seconds < _SEEN * length:
                unseen = max(unseen, length)
            else:
                seen.append(overload)
        if not seen:
            reason = f"too few samples in the {phases[0].name} phase ({duration(phases[0].window.seconds)})"
            settle = f"poll packets sent and received at least every {duration(max(1.0, unseen / 10))} in it"
            return finding.undecided(reason, InconclusiveReason.GAP, settle)
        worst = max(
            seen, key=lambda overload: overload.ratio if known is not None else overload.lost / max(overload.sent, 1.0)
        )
        finding = replace(
            self._measured(finding, worst, known), marks=tuple(_mark(overload, known) for overload in seen)
        )
        doubts = (
            [f"{len(phases) - len(seen)} of {len(phases)} overload phases could not be evaluated"] if unseen else []
        )
        if case.devices > 1:
            doubts.append(f"{case.devices} devices under test: which of them lost the packets is not known")
        if known is not None and worst.sent <= known.rate * worst.seconds:
            doubts.append("the offered load did not exceed the capacity: not an overload")
        finding = replace(finding, doubts=tuple(doubts))
        result = self._blamed(case, finding, seen, worst, known, flow.unit)
        if result.outcome is Outcome.FAIL and (crossed := _crossed(case, worst, flow)) is not None:
            result = self._behind(result, worst, crossed, known, flow.unit)
        if result.outcome is Outcome.FAIL and case.devices > 1:
            return replace(result, outcome=Outcome.WARN)
        return result

    def _blamed(
        self, case: Case, finding: Finding, seen: list[_Overload], worst: _Overload, known: Capacity | None, unit: str
    ) -> Finding:
        """The finding of the worst phase; inconclusive if the generators' own loss explains a failure."""
        result, own = self._conclude(finding, worst, known, unit), own_loss(case.load) or 0.0
        if own <= 0:
            return result
        result = replace(result, numbers=dict(result.numbers) | {"own_loss": own})
        if result.outcome is not Outcome.FAIL:
            return result
        rest = max((overload.without(own) for overload in seen), key=lambda overload: overload.ratio)
        text = f"the generator itself loses up to {quantity(own, '1')} (calibrated)"
        if self._conclude(finding, rest, known, unit).outcome is Outcome.FAIL:
            return replace(result, doubts=(*result.doubts, f"{text}, which does not explain it"))
        settle = "fix the generator's own loss, or send less, and calibrate again"
        reason = f"{result.reason}; {text}, which explains it"
        return result.undecided(reason, InconclusiveReason.GENERATOR, settle)

    def _behind(
        self, finding: Finding, worst: _Overload, crossed: PathLedger, known: Capacity | None, unit: str
    ) -> Finding:
        """The finding, given how much was lost after it had left the device."""
        result = replace(
            finding, numbers=dict(finding.numbers) | crossed.numbers, reason=f"{finding.reason}; {crossed.text}"
        )
        behind = max(0.0, crossed.let_out - crossed.back) / max(crossed.sent, NOTHING)
        if self._conclude(finding, worst.without(behind), known, unit).outcome is Outcome.FAIL:
            return result
        how = BEHIND.get(crossed.stage or Stage.BEHIND, "by the path or the generator's receiver")
        reason = f"{finding.reason}; lost after leaving the device, {how}: {crossed.text}"
        return result.warns(reason)

    def _shown(self, case: Case, flow: _Flow, bin_s: float) -> Capacity | None:
        """The capacity as the other phases show it."""
        rows = []
        for i, part in enumerate(cut := windows_by_phase(case)):
            if part.name not in OVERLOADS:
                begin_ns, end_ns, bin_ns = part.window.begin_ns, part.window.end_ns, round(bin_s * 1e9)
                if i and cut[i - 1].name in OVERLOADS:
                    begin_ns += round(self.drain * 1e9) + bin_ns
                if i + 1 < len(cut) and cut[i + 1].name in OVERLOADS:
                    end_ns -= round(_CADENCES / 2 * (cadence(flow.back[0]) or 0.0) * 1e9)  # one reading spans both
                edges = np.arange(begin_ns, end_ns + 1, bin_ns, dtype=np.int64)
                rows.append(_counted(flow, edges))
        apart = np.full((2, 1), np.nan)
        sent, lost = np.concatenate([apart, *(x for row in rows for x in (row, apart))], axis=1)
        return carried(sent, lost, bin_s, self.clean)

    def _overload(self, case: Case, phase: Phase, flow: _Flow, bin_s: float, rate: float) -> _Overload | None:
        begin_ns = max(phase.window.begin_ns, case.window.begin_ns)
        end_ns = min(phase.window.end_ns + round(self.drain * 1e9), case.window.end_ns)
        others = [p.window.begin_ns for p in overloads(case) if p.window.begin_ns >= phase.window.end_ns]
        end_ns = min([end_ns, *others])
        turns = [p.window.end_ns for p in case.phases if begin_ns < p.window.end_ns < phase.window.end_ns]
        turns = [*sorted(set(turns)), min(phase.window.end_ns, end_ns)]
        edges = _edges(flow.back[0], begin_ns, turns, end_ns, bin_s, self.drain)
        sent, lost = _counted(flow, edges)
        good = np.isfinite(sent) & np.isfinite(lost)
        if not good.any():
            return None
        widths_s = np.diff(edges) * 1e-9
        over, best = excess(sent, lost, rate * widths_s)
        total, missing = float(sent[good].sum()), float(lost[good].sum())
        return _Overload(phase, total, missing, over, best, float(widths_s[good].sum()))

    def _measured(self, finding: Finding, worst: _Overload, known: Capacity | None) -> Finding:
        numbers = {"offered": worst.sent, "lost": worst.lost, "seconds": worst.seconds, "lost_share": worst.share}
        finding = replace(finding, numbers=numbers, smallest_detectable=self.limit, detectable_unit="1")
        if known is None:
            return finding
        wide = 1.96 * known.error
        detectable = self.limit + (_SIGMAS + _POWER_SIGMAS) * known.error + (self.near if known.bound else 0.0)
        return replace(
            finding,
            measured=max(worst.ratio, 0.0),  # below 0 the device carried more than its stated capacity
            interval=(worst.ratio - wide, worst.ratio + wide),
            limit=self.limit + _SIGMAS * known.error,
            smallest_detectable=detectable,
            numbers=numbers
            | {
                "explained_share": worst.explained,
                "points": 100 * (worst.share - worst.explained),
                "excess": worst.excess,
                "capacity": known.rate,
                "capacity_error": known.error,
                "capacity_is_bound": float(known.bound),
            },
        )

    def _conclude(self, finding: Finding, worst: _Overload, known: Capacity | None, unit: str) -> Finding:
        if worst.sent <= NOTHING or worst.seconds <= 0:
            reason = f"nothing was sent in the {worst.phase.name} phase"
            return finding.not_applicable(reason)
        share, ratio = worst.lost / worst.sent, worst.ratio
        offered = quantity(worst.sent / worst.seconds, f"{unit}/s")
        text = f"{worst.phase.name} of {moment(worst.phase.window.begin_ns)}: {quantity(max(share, 0.0), '1')} of "
        text += f"{offered} lost"
        text += f", {worst.points}" if known is not None and share > 0 and worst.explained > -NOTHING else ""
        remedy = "state the capacity, or add a ramp phase up to the rate at which the device starts to lose packets"
        if known is None:
            if share <= self.limit:
                return replace(
                    finding, outcome=Outcome.PASS, measured=share, reason=f"{text}; allowed {quantity(self.limit, '1')}"
                )
            reason = f"{text}; the capacity is not known, so the loss may be due to overload"
            return finding.undecided(reason, InconclusiveReason.NO_REFERENCE, remedy)
        can = f"a capacity of {'at least ' * known.bound}{quantity(known.rate, f'{unit}/s')} ± {percent(known.error)}"
        if ratio > self.limit + _SIGMAS * known.error:
            least = "at least " if known.bound else ""
            reason = f"{text}, {least}{quantity(ratio, '1')} of {can} more than the overload explains"
            return finding.fails(reason)
        through = (worst.sent - worst.lost) / worst.seconds
        if known.bound and share > self.limit and through > (1 + self.near) * known.rate:
            reason = f"{text}; {can} was never exceeded without loss, so overload may explain it or not"
            return finding.undecided(reason, InconclusiveReason.NO_REFERENCE, remedy)
        if ratio > self.limit:
            settle = f"measure the capacity to ± {50 * (ratio - self.limit):.2g} %"
            reason = (
                f"{text}, {quantity(ratio, '1')} of {can} more than the overload explains, within the error of "
                "the capacity"
            )
            return finding.undecided(reason, InconclusiveReason.NOISE, settle)
        return finding.passes(f"{text}, no more than the overload explains at {can}")


def _crossed(case: Case, worst: _Overload, flow: _Flow) -> PathLedger | None:
    """What the device's own interfaces counted during the phase; None if they were read too rarely."""
    if flow.unit != "{packet}":
        return None
    window, sent = worst.phase.window, Tally(flow.sent)
    ports = Ports(case, sent.between(case.window.begin_ns, case.window.end_ns)[0])
    if window.seconds < _READINGS * ports.apart_s:
        return None
    whole, back = (side.between(window.begin_ns, window.end_ns)[0] for side in (sent, Tally(flow.back)))
    return ports.crossing(window, whole, back)


def _mark(overload: _Overload, known: Capacity | None) -> Mark:
    lost = f"{overload.phase.name}: {quantity(max(overload.share, 0.0), '1')} lost"
    text = f"{lost}, {overload.points}" if known is not None and overload.share > 0 else lost
    return Mark(overload.phase.window.begin_ns, overload.phase.window.end_ns, text)


def _flow(load: tuple[Series, ...]) -> _Flow | None:
    account = LoadAccount.of(load)
    if packets := account.pair(PACKETS):
        return _Flow(packets.into, packets.back, "{packet}")
    asked = account.request_counters()
    return _Flow(asked, account.back(REQUESTS), "{request}") if asked else None


def _edges(series: Series, begin_ns: int, turns: Sequence[int], drained_ns: int, bin_s: float, drain_s: float) -> Ints:
    """Reading times about ``bin_s`` apart, but every reading near a change of the load and after it.

    At the end of an overload (or a change of its level) the offered load falls within one reading. Averaged with the
    readings before, that reading would count as unused capacity.
    """
    positions = series.time_ns[(series.time_ns >= begin_ns) & (series.time_ns <= drained_ns)]
    apart = cadence(series) or bin_s
    result, since_ns = [], begin_ns
    for turn_ns in turns:
        until_ns = max(since_ns, turn_ns - round(_CADENCES * apart * 1e9))
        after_ns = drained_ns + 1 if turn_ns == turns[-1] else max(until_ns, turn_ns + round(drain_s * 1e9))
        early = positions[(positions >= since_ns) & (positions < until_ns)]
        result += [early[:: max(1, round(bin_s / apart))], positions[(positions >= until_ns) & (positions < after_ns)]]
        since_ns = after_ns
    return np.concatenate(result)


def _counted(flow: _Flow, edges: Ints) -> Floats:
    """Sent and lost per bin, shape (2, n)."""
    sent, back = binned(flow.sent, edges), binned(flow.back, edges)
    return np.stack([sent, sent - back])


TRAITS: Final = Traits(
    words=RuleWords(
        "it lost more under overload than allowed",
        "packets lost",
        happened="{target} lost more under overload than allowed",
    ),
    family=Family.TRAFFIC,
    guide=Guide(
        fails_when="In stress phases more is lost than the load beyond the capacity explains, by more than 1 %.",
        misses="Runs whose capacity is not known: give it with capacity.",
        change_with="overload_loss: {capacity: 9e6, limit: 2%}",
        next_step="Look for the queue or core that dropped: an overloaded device must carry its capacity, not less.",
    ),
)
