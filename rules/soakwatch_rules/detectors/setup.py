"""Set-up: settings of a machine that limit results or make them vary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

from soakwatch_model.case import Case
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.roles import GENERATOR, MONITOR
from soakwatch_rules.finding_draft import draft
from soakwatch_rules.machine.cards import check_duplex, check_links, check_numa_nodes, check_versions
from soakwatch_rules.machine.check_result import CheckResult, Problem, combined
from soakwatch_rules.machine.cores import Uneven, check_governor, check_idle_states, check_receive_spread, check_turbo
from soakwatch_rules.machine.description import Cores, Machine, described
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import Input, RuleSpec
from soakwatch_rules.traits import Family, Guide, Judges, Marks, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, first_few

_CHANGE: Final = "setup.change"
_ACTIONS: Final = ("ignore", "warn", "fail")
_OUTCOMES: Final = {"warn": Outcome.WARN, "fail": Outcome.FAIL}
_CHECKS: Final = ("pcie", "duplex", "firmware", "numa", "governor", "turbo", "cstates", "spread", "change")
_MOST = 6  # items listed in a sentence


@dataclass(frozen=True, slots=True)
class Setup(Parameters):
    """Warns of settings that limit a machine or make its results vary, with the remedy in the sentence.

    It reads what the target reported of itself at the start of the run: hosts by the agent, SSH or as the local
    machine, network devices by SNMP or their command line. One finding for each problem:

    * ``pcie``: a network card whose PCIe link has fewer lanes than the card, or whose slot is slower than the card,
      whatever driver it is bound to (``vfio-pci`` too). Interfaces that are down are left out, since they may rest. A
      lower speed than card and slot allow is not judged: cards lower it when idle, and the load at that time is
      unknown.
    * ``duplex``: an interface with hardware that runs half duplex.
    * ``firmware``: network cards or modules of one model with different firmware, software or drivers.
    * ``numa``: a card whose packets are handled only by cores of another memory node: the cores that poll if a program
      drives the card, else those of its interrupts.
    * ``governor``: a frequency governor other than ``performance`` (or the energy preference ``performance``) on a
      generator, or on a device whose cores poll; on any machine, governors that differ between cores. Other devices are
      judged as shipped: a clock that follows the load is part of them and only reported.
    * ``turbo``: turbo on for some cores, off for others.
    * ``cstates``: idle states with an exit latency above ``exit_latency`` (µs) enabled where cores poll.
    * ``spread``: at most a quarter of the cores do ``share`` of the receive work (softirq time) and spend ``busy`` of
      their time on it, while the others are idle for ``idle`` of theirs. Polling and isolated cores do not count; with
      fewer than 4 cores nothing is judged. If core times are unknown: an RSS table, or interrupts, that use a quarter
      or less of the available queues or cores.
    * ``change``: the set-up at the end of the run differs from that at its start.

    Cores are known to poll by the plan (``poll_mode``), by DPDK or VPP if they answer, by isolated cores, or by cards
    bound to a user-space driver on a host with huge pages.

    What was not reported is not judged but named; if nothing could be judged it is not applicable. The monitor's own
    machine is not judged. A sound set-up proves nothing about the device: it alone lets no run pass.

    How often wrong: it reads settings and does not estimate; ``spread`` is silent at an even load of any level. Known
    weaknesses: a link that trained to a lower speed with all its lanes looks like an idle one and is not found (the
    set-up in the report shows the speed); a slow slot is not found if the system does not report its speed (read with
    Python on the host only); a card with more lanes than its ports need is warned of in a slot that suffices (the
    sentence has both figures); an RSS table may leave out queues on purpose; idle states matter little to cores that
    never rest.

    Neighbours: ``generator_health`` judges what the generator reports, ``cpu_saturation`` saturated cores, ``drops``
    the packets that a backlog lost.

    Parameters: an action each (``ignore``, ``warn`` or ``fail``), and four numbers (below).

    >>> from soakwatch_model.case import Case, TargetFacts
    >>> from soakwatch_model.window import Window
    >>> link = {"current_link_width": 4, "max_link_width": 8, "current_link_speed": 8.0, "max_link_speed": 8.0}
    >>> facts = TargetFacts(fingerprint={"nics": {"eth0": {"driver": "ice", "pcie": link}}})
    >>> case = Case("dut", "", Window(0, 10**9), facts=facts)
    >>> for finding in Setup().judge(case):
    ...     print(finding.outcome, finding.object, "-", finding.reason.partition(";")[0])
    warn interface=eth0,check=pcie - the PCIe link of eth0 runs at x4 at 8 GT/s, which carries 31.5 Gbit/s each way

    References: PCI Express Base Specification 6.0 (link width and speed); kernel documentation, admin-guide/pm/cpufreq,
    admin-guide/pm/cpuidle, networking/scaling (RSS, RPS); DPDK, Getting Started Guide for Linux, section "How to get
    best performance with NICs"; RFC 2544, section 7 (the set-up is part of the report).
    """

    name: ClassVar[str] = "setup"
    version: ClassVar[int] = 2
    summary: ClassVar[str] = "the machine is set up so that results are limited or vary"
    metrics: ClassVar[tuple[str, ...]] = ("system.cpu.core.time",)
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec(
        "what the target reported of itself as the run began",
        live="end",
        objects=("mode=softirq", "mode=idle"),
        inputs=frozenset({Input.MACHINE}),
    )

    pcie: float = parameter(1.0, "1", "a card whose PCIe link or slot is below it", "halves results", _ACTIONS)
    duplex: float = parameter(1.0, "1", "an interface that runs half duplex", "a failed negotiation", _ACTIONS)
    firmware: float = parameter(1.0, "1", "like cards or modules with different versions", "differ alone", _ACTIONS)
    numa: float = parameter(1.0, "1", "a card whose cores are on another memory node", "costs each packet", _ACTIONS)
    governor: float = parameter(1.0, "1", "a clock that follows the load", "results vary", _ACTIONS)
    turbo: float = parameter(1.0, "1", "turbo that differs between cores", "results vary", _ACTIONS)
    cstates: float = parameter(1.0, "1", "deep idle states where cores poll", "results vary", _ACTIONS)
    spread: float = parameter(1.0, "1", "receiving on few cores while others idle", "limits results", _ACTIONS)
    change: float = parameter(1.0, "1", "a set-up that changed during the run", "two runs in one", _ACTIONS)
    exit_latency: float = parameter(
        20.0, "us", "idle states that take longer to leave are deep", "C1E takes 10 µs", within="[0, 1000000)"
    )
    share: float = parameter(0.9, "1", "of the work of receiving on few cores", "nearly all of it", within="(0, 1]")
    busy: float = parameter(0.5, "1", "of their time that these spend on it", "half a core is left", within="(0, 1]")
    idle: float = parameter(
        0.7, "1", "of their time that the others are idle", "they could take it over", within="(0, 1]"
    )

    def definition(self) -> str:
        actions = ", ".join(f"{name} {self._action(name)}" for name in _CHECKS)
        return (
            "amiss is a PCIe link with fewer lanes than the card has or in a slot slower than the card, half duplex, "
            "like cards or modules with different versions, a card on another memory node than its cores, a frequency "
            "governor other than performance on generators and where cores poll, turbo that differs between cores, "
            "idle states that take longer than "
            f"{self.exit_latency:g} µs to leave where cores poll, {100 * self.share:.4g} % of the work of "
            f"receiving on at most a quarter of the cores that spend at least {100 * self.busy:.4g} % of their time on "
            f"it while the others are idle for at least {100 * self.idle:.4g} %, and a set-up that changed during the "
            f"run; {actions}"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding for each problem; one for the target if there is none."""
        finding = draft(self, case)
        if case.role == MONITOR:
            reason = "its role is monitor: how it is set up says nothing of the device"
            return (finding.not_applicable(reason),)
        results = {name: result for name, result in self._checks(case) if self._action(name) != "ignore"}
        seen = combined(results.values())
        problems = [(name, problem) for name, result in results.items() for problem in result.problems]
        if problems:
            return tuple(self._of(finding, name, problem, seen) for name, problem in problems)
        left = f"; not judged: {first_few(list(seen.not_judged), _MOST)}" if seen.not_judged else ""
        if not case.facts.fingerprint:
            reason = "this target reported nothing of how it is set up"
            return (finding.not_applicable(reason),)
        if not seen.in_order:
            reason = f"nothing of what this target reported of its set-up can be judged{left}"
            return (finding.not_applicable(reason),)
        well = f"{counted(seen.seen, 'setting')} as it should be: {first_few(list(seen.in_order), _MOST)}{left}"
        return (replace(finding, outcome=Outcome.PASS, reason=well, samples=seen.seen),)

    def _of(self, finding: Finding, name: str, problem: Problem, seen: CheckResult) -> Finding:
        doubts = (f"not judged: {first_few(list(seen.not_judged), _MOST)}",) if seen.not_judged else ()
        return replace(
            finding,
            outcome=_OUTCOMES[self._action(name)],
            object=",".join(part for part in (problem.part, f"check={name}") if part),
            reason=problem.text,
            samples=seen.seen,
            measured=problem.measured,
            limit=problem.limit,
            unit=problem.unit,
            doubts=doubts,
        )

    def _action(self, name: str) -> str:
        value: float = getattr(self, name)
        return _ACTIONS[int(value)]

    def _checks(self, case: Case) -> Iterator[tuple[str, CheckResult]]:
        machine = described(case.facts.fingerprint)
        polls, polled = _polling(case, machine), _polled(case)
        why_steady = "it is a generator" if case.role == GENERATOR else f"cores poll ({polls})" if polls else ""
        yield "pcie", check_links(machine)
        yield "duplex", check_duplex(machine)
        yield "firmware", check_versions(machine)
        yield "numa", check_numa_nodes(machine, polled | machine.apart)
        yield "governor", check_governor(machine, why_steady)
        yield "turbo", check_turbo(machine)
        yield "cstates", check_idle_states(machine, polls, polled | machine.apart, self.exit_latency * 1e-6)
        uneven = Uneven(self.share, self.busy, self.idle)
        yield "spread", check_receive_spread(case.series, case.window, machine, polled, uneven)
        yield "change", _changes(case)


def _polling(case: Case, machine: Machine) -> str:
    """The evidence that cores poll; "" if there is none."""
    if case.facts.polling:
        return next(iter(case.facts.polling.values()))
    cards = [card for card in machine.cards if card.in_user_space]
    return f"{cards[0].name} is bound to {cards[0].driver}" if cards and machine.huge_pages else ""


def _polled(case: Case) -> Cores:
    """The numbers of the cores that are known to poll."""
    numbers = [name.removeprefix("core=") for name in case.facts.polling]
    return frozenset(int(number) for number in numbers if number.isdecimal())


def _changes(case: Case) -> CheckResult:
    """The settings that changed during the run."""
    problems = []
    for event in case.events:
        if event.kind == _CHANGE:
            paths = [f"{path}: {text}" for path, text in event.detail.items() if path != "more"]
            more = event.detail.get("more", "")
            beyond = f", and {more} more" if more else ""
            text = (
                f"the set-up changed during the run ({first_few(paths, _MOST)}{beyond}): results before and after are "
                "not comparable; find out who changed it, and run again"
            )
            problems.append(Problem("", text, float(len(paths)), 0.0, "{change}"))
    return CheckResult(tuple(problems))


TRAITS: Final = Traits(
    words=RuleWords("its set-up limits results"),
    rank=910,
    event_kinds=(_CHANGE,),
    marks=Marks.WHOLE,
    judges=Judges.SETUP,
    family=Family.HARDWARE,
    guide=Guide(
        fails_when="Never: a set-up that limits results (PCIe link, governor, NUMA, receive queues) warns.",
        misses="What the device does not report of itself.",
        change_with="setup: {governor: ignore}",
        next_step="Mend what it names before you compare results, and run it again.",
    ),
)
