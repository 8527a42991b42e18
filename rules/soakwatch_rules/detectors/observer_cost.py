"""Observer cost: the share of the device's CPU that the monitor's own polls take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.fact import PollCost
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.label import label
from soakwatch_model.roles import DUT
from soakwatch_model.series import Floats, Series
from soakwatch_rules.finding_draft import draft
from soakwatch_rules.management.poll_pauses import CPU_FORMS, LEAST_PAIRS, CpuComparison, Pauses, compare_cpu, pauses_of
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.peers import finite_numbers
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.stats.counted_amounts import amount, binned
from soakwatch_rules.stats.distributions import student_quantile
from soakwatch_rules.stats.medians import median
from soakwatch_rules.traits import Guide, RuleWords, Traits
from soakwatch_rules.wording.quantities import duration, first_few, quantity

COST: Final = "source.device.cpu.time"
"""CPU time that a source's polls cost the device, by the device's own count."""
_PROCESS: Final = "process.cpu.time"
_CORES: Final = "system.cpu.logical.count"
_TOOK: Final = "source.poll.duration"
_ANSWERS: Final = ("snmpd*", "bsnmpd*", "mini_snmpd", "sshd*", "dropbear*", "telemetry*", "gnmi*", "node_exporter")
"""Programs that answer polls, this monitor's or another's."""
_BLOCKS: Final = 16
_LEAST_BLOCKS: Final = 4
_LEAST_S: Final = 120.0
_SMEARED_S: Final = 180.0
_MOST_PAIRS: Final = 100


@dataclass(frozen=True, slots=True)
class ObserverCost(Parameters):
    """Warns if the monitor took too much of the device's CPU: a soak must not measure the monitor.

    By count: the CPU time of whatever polls on the device, over the run, as a share of all cores: the agent by its own
    count; an SSH shell with its children and its sshd; on a local target the whole collector process. Programs that
    answer polls (snmpd, sshd, a gNMI server) are added if they are watched (``watch: processes``) and no source counts
    them; that is an upper bound, since they may answer others too. Above ``limit`` it warns, above ``fail`` it fails
    (0: never). The interval is that of the mean of 16 stretches of the run (batch means). Runs under 2 min are not
    judged, because starting the sources is most of the cost.

    By pauses: if the plan asks for them (``observer: {probe: 60s}``), only the CPU is read in some windows, and the
    mean CPU there is subtracted from that of the neighbouring window with polls. The measure is the mean difference of
    all pairs, the interval that of Student's t (95 %). Entirely above the limit it warns or fails, entirely below it
    passes; an interval that contains the limit is inconclusive. If the cost is counted too, the count decides and the
    finding states both.

    If the device counts nothing and polls never paused, the cost is unknown; the finding says so, with the time that
    its answers took. Watch the daemon that answers, use the agent, or let polls pause.

    How often wrong: a count does not estimate; it is as exact as the device's own, in steps of 10 ms on Linux. Pauses
    err in at most 2.5 % on each side if the differences are about normal. Known weaknesses: a count leaves out
    interrupts and network stack work for the polls, the relay of an agent over SSH, and processes that the collector
    starts on a local target (sinks); one core may be full while the share of all cores is small (the numbers include
    the share of one core). Pauses leave out reading the CPU, streams (gNMI), agents, traps and syslog; a device that
    averages its CPU over a minute smears windows of 60 s, so that too little is found (the first third of each window
    is left out for that: take 3 min or more); a load that changes within pairs widens the interval; CPU read in whole
    percents that hardly moves may hide up to one percent, which the interval includes.

    Neighbours: ``management_isolation`` judges what load costs the management; ``cpu_saturation``, ``coverage``.

    Parameters: ``limit``, ``fail`` (below).

    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import readings
    >>> for share in (0.001, 0.1):
    ...     cost = readings(COST, share * np.arange(600.0), 1.0, object="source=agent")
    ...     cores = readings(_CORES, np.full(600, 4.0), 1.0)
    ...     finding = ObserverCost().judge(Case("dut", "", Window(0, 600 * 10**9), (cost, cores)))[0]
    ...     print(finding.outcome, round(finding.measured, 5))
    pass 0.00025
    warn 0.025

    References: G. S. Fishman, Management Science 24, 1978 (batch means); A. D. Malony, D. A. Reed, H. Wijshoff, IEEE
    Trans. Parallel Distrib. Syst. 3, 1992 (perturbation by measurement); Student, Biometrika 6, 1908 (paired
    differences); R. A. Fisher, The Design of Experiments, 1935 (blocks of two in an order drawn by lot).
    """

    name: ClassVar[str] = "observer_cost"
    version: ClassVar[int] = 2
    summary: ClassVar[str] = "the monitor's own polls took too much of the device's CPU"
    metrics: ClassVar[tuple[str, ...]] = (COST, _PROCESS, _CORES, _TOOK, *CPU_FORMS)
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec(
        "an agent, an SSH shell or a watched daemon that answers, for 2 min; or pauses (observer: of the plan)",
        shortest_s=600.0,
        live="end",
    )

    limit: float = parameter(
        0.01, "1", "share of the device's CPU that the monitor may take before it warns", "1 %", within="(0, 1)"
    )
    fail: float = parameter(
        0.0, "1", "share from which it fails; 0: it only warns", "it is no fault of the device", within="[0, 1)"
    )

    def definition(self) -> str:
        beyond = f"more than {100 * self.fail:g} % fails" if self.fail else f"{100 * self.fail:g} %: it never fails"
        return (
            f"the monitor's polls may take {100 * self.limit:g} % of the device's CPU time (all cores, over the run); "
            f"more warns, {beyond}; where polls paused for it, by the mean difference of the CPU with and without them "
            "(95 % interval of Student's t)"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding for a device under test; none for other targets."""
        if case.role != DUT:
            return ()
        window = case.window
        inside = [s.between(window.begin_ns, window.end_ns).finite() for s in case.series]
        counted = _counted(inside)
        finding = replace(draft(self, case), unit="1", limit=self.limit, samples=sum(len(s) for s in counted))
        pauses = pauses_of(case)
        if not counted:
            if pauses is not None:
                return (self._compared(finding, pauses, inside),)
            return (_not_counted(finding, case, inside),)
        if window.seconds < _LEAST_S:
            reason = f"{duration(window.seconds)} are too short: the start of the sources is most of their cost"
            return (finding.not_applicable(reason),)
        edges = np.linspace(window.begin_ns, window.end_ns, _BLOCKS + 1).astype(np.int64)
        begin_ns = max(int(s.time_ns[0]) for s in counted)
        spent, seen_s = amount(counted, begin_ns, int(min(s.time_ns[-1] for s in counted)))
        rate = binned(counted, edges) / (np.diff(edges) * 1e-9)
        rate = rate[np.isfinite(rate)]
        if rate.size < _LEAST_BLOCKS or not (0 <= spent < 1e12 and seen_s > 0):
            reason = "too few readings of the CPU time that the polls cost"
            settle = f"needs readings in {_LEAST_BLOCKS} of {_BLOCKS} stretches of the run"
            return (finding.undecided(reason, InconclusiveReason.TOO_FEW, settle),)
        judged = self._judged(case, finding, counted, spent / seen_s, rate, _cores(case, inside))
        return (judged if pauses is None else _with_pauses(judged, self._compared(finding, pauses, inside)),)

    def _compared(self, finding: Finding, pauses: Pauses, inside: Sequence[Series]) -> Finding:
        """The finding by pauses of the polls."""
        finding = replace(finding, metric=COST, numbers={"pauses": float(len(pauses.pairs))}, facts=(PollCost(),))
        window, kept_s = duration(pauses.window_s), pauses.window_s - pauses.skipped_s
        if kept_s < pauses.renewal_s or kept_s <= 0:
            reason = (
                f"the device renews its CPU every {duration(pauses.renewal_s)}, which is too seldom for windows of "
                f"{window} without their first {duration(pauses.skipped_s)}"
            )
            settle = f"observer: {{probe: {math.ceil(3 * pauses.renewal_s)}s}}"
            return finding.undecided(reason, InconclusiveReason.CADENCE, settle)
        found = compare_cpu(pauses, inside)
        if found is None:
            reason = (
                f"{len(pauses.pairs)} of {pauses.planned} pauses of polls are whole, and too few of them have readings "
                f"of the CPU with and without polls: {LEAST_PAIRS} are needed"
            )
            settle = "a run that is not cut short, and a source that reads the CPU of the device"
            return finding.undecided(reason, InconclusiveReason.TOO_FEW, settle)
        share, half = found.difference, found.half_width
        low, high = share - half, share + half
        outcome = self._by_interval(low, high)
        limit = self.fail if outcome is Outcome.FAIL else self.limit
        pairs = int(found.polled.size)
        reason = (
            f"the monitor took {quantity(share, '1')} of the device's CPU ({quantity(low, '1')} to "
            f"{quantity(high, '1')}): {quantity(float(found.polled.mean()), '1')} with its polls, "
            f"{quantity(float(found.rested.mean()), '1')} without, in {pairs} pairs of {window}"
        )
        if outcome is not Outcome.PASS:
            reason += f"; allowed {quantity(limit, '1')}"
        doubtful = outcome is Outcome.INCONCLUSIVE
        return replace(
            finding,
            outcome=outcome,
            measured=share,
            limit=limit,
            samples=found.readings,
            interval=(low, high),
            smallest_detectable=found.detectable,
            detectable_unit="1",
            numbers=finite_numbers(
                {
                    "pauses": float(pairs),
                    "with_polls": float(found.polled.mean()),
                    "without_polls": float(found.rested.mean()),
                }
            ),
            reason=reason,
            why=InconclusiveReason.NOISE if doubtful else None,
            settle=_more_pairs(pairs, half, abs(share - self.limit)) if doubtful else "",
            doubts=_doubts(pauses, found),
        )

    def _by_interval(self, low: float, high: float) -> Outcome:
        if self.fail and low > self.fail:
            return Outcome.FAIL
        if low > self.limit:
            return Outcome.WARN
        return Outcome.PASS if high <= self.limit else Outcome.INCONCLUSIVE

    def _judged(
        self,
        case: Case,
        finding: Finding,
        counted: Sequence[Series],
        taken: float,
        rate: Floats,
        cores: float | None,
    ) -> Finding:
        of = cores or 1.0
        share = taken / of
        half = student_quantile(rate.size - 1.0, 0.975) * float(np.std(rate, ddof=1)) / math.sqrt(rate.size) / of
        begin_ns, end_ns = case.window.begin_ns, case.window.end_ns
        parts = {_name(s): amount([s], begin_ns, end_ns) for s in counted}
        by_part = {name: spent / seconds / of for name, (spent, seconds) in parts.items() if seconds > 0}
        numbers = {"of_one_core": taken, "cores": of, **{f"by_{name}": value for name, value in by_part.items()}}
        words = first_few(
            [f"{name} {quantity(value, '1')}" for name, value in sorted(by_part.items(), key=lambda x: -x[1])]
        )
        whose = f"of the device's CPU ({of:g} cores)" if cores is not None else "of one core"
        over = Outcome.FAIL if self.fail and share > self.fail else Outcome.WARN if share > self.limit else Outcome.PASS
        reason = f"the monitor took {quantity(share, '1')} {whose}: {words}"
        if over is not Outcome.PASS:
            reason += f"; allowed {quantity(self.fail if over is Outcome.FAIL else self.limit, '1')}"
        doubts: tuple[str, ...] = (
            () if cores is not None else ("the number of cores is not known: it is a share of one of them",)
        )
        if any(s.metric == _PROCESS for s in counted):
            doubts += ("watched daemons may answer others too: it is the most that the polls can have cost",)
        return replace(
            finding,
            outcome=over,
            metric=COST,
            measured=share,
            limit=self.fail if over is Outcome.FAIL else self.limit,
            interval=(max(0.0, share - half), share + half),
            numbers=finite_numbers(numbers),
            facts=(PollCost(),),
            reason=reason,
            doubts=doubts,
        )


def _counted(inside: Iterable[Series]) -> list[Series]:
    """The series that count the cost: the sources' own counts, and watched daemons that these do not include."""
    kept = [s for s in inside if len(s) > 1]
    own = [s for s in kept if s.metric == COST]
    shells = any(label(s.object, "source") == "ssh" for s in own)
    daemons = [
        s
        for s in kept
        if s.metric == _PROCESS
        and any(fnmatchcase(label(s.object, "process") or "", glob) for glob in _ANSWERS)
        and not (shells and (label(s.object, "process") or "").startswith(("sshd", "dropbear")))
    ]
    return own + daemons


def _name(series: Series) -> str:
    return label(series.object, "source") or label(series.object, "process") or series.object or "polls"


def _cores(case: Case, inside: Iterable[Series]) -> float | None:
    """The number of cores; None if the device does not report it."""
    stated = case.facts.stated.get(_CORES)
    read = next((float(s.values[-1]) for s in inside if s.metric == _CORES and len(s)), None)
    cores = read if stated is None else stated
    return cores if cores is not None and math.isfinite(cores) and cores >= 1 else None


def _more_pairs(pairs: int, half: float, away: float) -> str:
    """How many pairs would resolve the distance to the limit at the present noise."""
    needed = math.ceil(pairs * (half / max(away, 1e-9)) ** 2)
    if needed > _MOST_PAIRS:
        return "longer pauses in a phase in which the load does not change"
    return f"about {max(needed, pairs + 1)} pairs (observer: pairs), or a phase in which the load does not change"


def _doubts(pauses: Pauses, found: CpuComparison) -> tuple[str, ...]:
    doubts: tuple[str, ...] = ()
    if found.step:
        doubts += ("the device tells its CPU in whole percents: up to one of them may be hidden",)
    if pauses.window_s < _SMEARED_S and not pauses.renewal_s:
        doubts += (
            f"if the device averages its CPU over a minute, windows of {duration(pauses.window_s)} show too little",
        )
    return doubts


def _with_pauses(counted: Finding, paused: Finding) -> Finding:
    """The finding by count, with the numbers of the pauses added."""
    numbers = {**counted.numbers, **{f"paused_{name}": value for name, value in paused.numbers.items()}}
    if paused.measured is None:
        return replace(counted, numbers=numbers)
    by_pauses = f"; by pauses of its polls {quantity(paused.measured, '1')}"
    return replace(
        counted, reason=counted.reason + by_pauses, numbers={**numbers, "paused_difference": paused.measured}
    )


def _not_counted(finding: Finding, case: Case, inside: Iterable[Series]) -> Finding:
    """The finding if the cost is unknown, with the time that answers took."""
    took = [
        f"polls of {label(s.object, 'source') or s.object or 'it'} took {duration(median(s.values))}"
        for s in inside
        if s.metric == _TOOK and len(s)
    ]
    if not took:
        reason = "this target reports no CPU time of the monitor's polls"
        return finding.not_applicable(reason)
    reason = (
        f"what the polls cost {case.target} is not known: it does not count the CPU time of what answers "
        f"({first_few(took)}, median); "
        "use the agent or SSH, watch the daemon that answers (snmpd), or let its polls pause (observer: of the plan)"
    )
    return replace(finding, outcome=Outcome.NOT_APPLICABLE, reason=reason, facts=(PollCost(),))


TRAITS: Final = Traits(
    words=RuleWords("the monitor took too much of its CPU"),
    rank=600,
    guide=Guide(
        fails_when="Never by default: it warns if the monitor's own polls take more than 1 % of the device's CPU.",
        misses="Devices whose polls were never paused or counted.",
        change_with="observer_cost: {limit: 2%}",
        next_step="Poll less often, or leave out the most expensive source named in the finding.",
    ),
)
