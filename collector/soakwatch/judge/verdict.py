"""The verdict: the fold of all findings, for the run and for each target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from soakwatch.core.errors import EXIT_FAIL, EXIT_INCONCLUSIVE, EXIT_PASS
from soakwatch.core.units import show_seconds
from soakwatch.judge.capacity import CapacitySearch
from soakwatch.judge.pass_requirements import Demand
from soakwatch.judge.problems import Problem, fail_words, problems_of
from soakwatch.record.seal import Checked
from soakwatch_model.case import Ledger
from soakwatch_model.event import Event
from soakwatch_model.fact import Sparse
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.roles import DUT
from soakwatch_model.set_aside import SetAside
from soakwatch_model.window import Phase, Window
from soakwatch_rules.causes import Cause, causes
from soakwatch_rules.traits import Judges, traits_of

NOT_REQUIRED = "(not required)"
"""Ends the headline of an inconclusive cause that does not block a pass."""
NOT_OBSERVABLE = "(not observable at this cadence)"
"""The same for one that is inconclusive for lack of cadence, where such rows are listed."""
REACHED = 0.95  # share of the planned length that a run must reach, the same as the floor of coverage
VERDICTS = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)
EXIT_CODES: Mapping[Outcome, int] = {
    Outcome.FAIL: EXIT_FAIL,
    Outcome.INCONCLUSIVE: EXIT_INCONCLUSIVE,
    Outcome.PASS: EXIT_PASS,
}


@dataclass(frozen=True, slots=True)
class TargetVerdict:
    """The verdict on one target: its role, the fold of its findings, and the reason in one sentence.

    ``outcome`` is fail, inconclusive or pass; not applicable for a generator or monitor of which nothing was judged.
    """

    target: str
    role: str
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a run. ``outcome`` is fail, inconclusive or pass; ``reason`` is one line for a manager.

    ``causes`` contain each finding that fails, warns or is inconclusive exactly once, by index in ``findings``;
    ``waived`` are the indexes of inconclusive findings that do not block a pass. ``preliminary``: the run goes on; it
    may have failed already but cannot have passed. ``labels`` are the run's, ``capacity`` its capacity searches.
    ``checked`` is the result of checking the record, None if unchecked (the run goes on). ``set_aside`` are the
    impossible readings that no rule saw, by series. ``course`` says how far a running run is, or how early one ended;
    else "". ``decided`` is the final answer by which a run ended early; "" of any other.
    """

    run: str
    outcome: Outcome
    reason: str
    window: Window
    targets: tuple[TargetVerdict, ...]
    findings: tuple[Finding, ...]
    ledgers: tuple[Ledger, ...]
    phases: tuple[Phase, ...]
    causes: tuple[Cause, ...] = ()
    waived: frozenset[int] = frozenset()
    preliminary: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    capacity: tuple[CapacitySearch, ...] = ()
    checked: Checked | None = None
    set_aside: tuple[SetAside, ...] = ()
    course: str = ""
    decided: str = ""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What failed, in order and with times; what warned if nothing failed."""
        outcome = Outcome.FAIL if self.outcome is Outcome.FAIL else Outcome.WARN
        return problems_of(self.findings, self.causes, outcome)

    @property
    def first_failure_ns(self) -> int | None:
        """The time of the first failure; None if nothing failed, or no time is known."""
        moments = (cause.since_ns for cause in self.causes if cause.outcome is Outcome.FAIL)
        return min((time_ns for time_ns in moments if time_ns is not None), default=None)

    @property
    def words(self) -> str:
        """The verdict in one word; before the end, its preliminary form."""
        if not self.preliminary:
            return self.outcome.value.upper()
        return f"preliminary: {'fails so far' if self.outcome is Outcome.FAIL else 'no failure so far'}"

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 inconclusive."""
        return EXIT_CODES[self.outcome]


def fold(
    run: str,
    window: Window,
    roles: Mapping[str, str],
    findings: Iterable[Finding],
    ledgers: Iterable[Ledger],
    phases: Iterable[Phase],
    demand: Demand | frozenset[str] = frozenset(),
    planned_s: float | None = None,
    events: Iterable[Event] = (),
    *,
    goes_on: bool = False,
    decided: str = "",
) -> Verdict:
    """Fail if any finding fails; else inconclusive if an inconclusive finding blocks a pass; else pass.

    ``demand`` says which ones block; a bare set names the rules whose findings do not.

    A run that ended before ``REACHED`` of its planned length cannot pass, since the polls after its end were due,
    unless it ended because every required rule had its final answer (``decided`` says which). While a run ``goes_on``
    its verdict is preliminary and never a pass. A run, or a target of role ``dut``, of which nothing was judged is
    inconclusive. Findings are ordered worst first, then by cause, then by target, rule and object, so that equal
    records give equal verdicts. Causes only group findings: they change no outcome.
    """
    ordered = tuple(sorted(findings, key=lambda f: (f.outcome.rank, f.target, f.rule, f.metric, f.object)))
    stretches = tuple(phases)
    wanted = demand if isinstance(demand, Demand) else Demand(optional=demand)
    waived = wanted.waived(ordered)
    ordered, ordered_causes, waived = _by_problem(
        ordered, _required_first(causes(ordered, events, stretches), waived), waived
    )
    led = {index: rank for rank, index in enumerate(index for cause in ordered_causes for index in cause.findings)}
    first = sorted(range(len(ordered)), key=lambda index: led.get(index, len(led)))
    targets = tuple(
        _of_target(name, role, [p for p in first if ordered[p].target == name], ordered, waived)
        for name, role in sorted(roles.items(), key=lambda item: (item[1] != DUT, item[0]))
    )
    outcome = _worst(targets)
    headline = _headline(outcome, targets, ordered, waived)
    if outcome is Outcome.FAIL:
        headline = fail_words(problems_of(ordered, ordered_causes, outcome), window, stretches).removesuffix(".")
    # The first poll is due up to a second after the start of the run: that second is not missing at its end.
    begun_ns = min([window.begin_ns, *(stretch.window.begin_ns for stretch in stretches)])
    lasted_s = (window.end_ns - begun_ns) * 1e-9
    course = ""
    if goes_on:
        of = "" if planned_s is None else f" of {show_seconds(planned_s)}"
        course = f"still running, {show_seconds(lasted_s)}{of}"
        headline = f"{course}; so far {headline}"
        outcome = Outcome.INCONCLUSIVE if outcome is Outcome.PASS else outcome
    elif decided and planned_s is not None and lasted_s < REACHED * planned_s:
        course = f"ended when decided, {show_seconds(lasted_s)} of {show_seconds(planned_s)}"
        headline = f"{course}: {headline}"
    elif planned_s is not None and lasted_s < REACHED * planned_s:
        course = f"ended early, {show_seconds(lasted_s)} of {show_seconds(planned_s)}"
        headline = f"{course}: {headline}"
        outcome = Outcome.INCONCLUSIVE if outcome is Outcome.PASS else outcome
    return Verdict(
        run,
        outcome,
        headline,
        window,
        targets,
        ordered,
        tuple(ledgers),
        stretches,
        ordered_causes,
        waived,
        goes_on,
        course=course,
        decided=decided,
    )


def _by_problem(
    findings: tuple[Finding, ...], ordered_causes: tuple[Cause, ...], waived: frozenset[int]
) -> tuple[tuple[Finding, ...], tuple[Cause, ...], frozenset[int]]:
    """Order findings of one outcome by their causes, so that the first one shown is the first that happened."""
    led = {index: rank for rank, index in enumerate(index for cause in ordered_causes for index in cause.findings)}
    places = sorted(range(len(findings)), key=lambda p: (findings[p].outcome.rank, led.get(p, len(findings)), p))
    now = {place: index for index, place in enumerate(places)}
    moved = (replace(c, findings=tuple(now[place] for place in c.findings)) for c in ordered_causes)
    return tuple(findings[place] for place in places), tuple(moved), frozenset(now[place] for place in waived)


def _required_first(causes: Iterable[Cause], indexes: frozenset[int]) -> tuple[Cause, ...]:
    """Mark inconclusive causes that are not required, and put them behind those that are."""
    holding: list[Cause] = []
    waived: list[Cause] = []
    behind: list[Cause] = []
    for cause in causes:
        if cause.outcome not in {Outcome.FAIL, Outcome.INCONCLUSIVE}:
            behind.append(cause)
        elif cause.outcome is Outcome.FAIL or not indexes.issuperset(cause.findings):
            holding.append(cause)
        else:
            waived.append(replace(cause, headline=f"{cause.headline} {NOT_REQUIRED}", waived=True))
    return (*holding, *waived, *behind)


def _of_target(
    name: str, role: str, places: list[int], every: tuple[Finding, ...], open_: frozenset[int]
) -> TargetVerdict:
    """The fold of a target's findings. ``places`` orders them by cause: the first gives the reason."""
    findings = [every[index] for index in places]
    judged = [f for f in findings if f.outcome is not Outcome.NOT_APPLICABLE]
    failed = [f for f in judged if f.outcome is Outcome.FAIL]
    unsure = [every[p] for p in places if every[p].outcome is Outcome.INCONCLUSIVE and p not in open_]
    warned = [f for f in judged if f.outcome is Outcome.WARN]
    if failed:
        return TargetVerdict(name, role, Outcome.FAIL, f"{_rules(failed)}: {failed[0].sentence}")
    if unsure:
        return TargetVerdict(name, role, Outcome.INCONCLUSIVE, f"{_rules(unsure)}: {unsure[0].sentence}")
    if not judged and role == DUT:
        return TargetVerdict(name, role, Outcome.INCONCLUSIVE, "nothing was judged: no rule found its metrics here")
    if not judged:
        return TargetVerdict(name, role, Outcome.NOT_APPLICABLE, "nothing was judged here")
    waived = [f for f in judged if f.outcome is Outcome.INCONCLUSIVE]
    well = [f for f in judged if f.outcome is Outcome.PASS]
    others = [f for f in findings if traits_of(f.rule).judges is Judges.DEVICE]
    sparse = [f for f in waived if f.fact(Sparse) is not None]
    if role == DUT and others and not any(f.outcome in {Outcome.PASS, Outcome.WARN} for f in others) and not sparse:
        first = (waived or others)[0]
        what = "set-up" if any(traits_of(f.rule).judges is Judges.SETUP for f in well + warned) else "availability"
        reason = f"only its {what} was judged: {first.rule}: {first.sentence}"
        return TargetVerdict(name, role, Outcome.INCONCLUSIVE, reason)
    undecided = f"; {len(waived)} inconclusive, not required: {_rules(waived)}" if waived else ""
    if warned:
        reason = f"{_counted(len(warned), 'warning')}, {_rules(warned)}: {warned[0].sentence}{undecided}"
        return TargetVerdict(name, role, Outcome.PASS, reason)
    shown = f"; as far as polls so rare show it: {sparse[0].rule}: {sparse[0].sentence}" if sparse else ""
    return TargetVerdict(name, role, Outcome.PASS, f"{_counted(len(well), 'check')} passed{undecided}{shown}")


def _rules(findings: list[Finding]) -> str:
    return ", ".join(sorted({f.rule for f in findings}))


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")


def _worst(targets: tuple[TargetVerdict, ...]) -> Outcome:
    """The worst outcome of the targets; inconclusive without a device."""
    if not any(target.role == DUT for target in targets):
        return Outcome.INCONCLUSIVE
    return next(outcome for outcome in VERDICTS if outcome in {target.outcome for target in targets})


def _headline(
    outcome: Outcome, targets: tuple[TargetVerdict, ...], findings: tuple[Finding, ...], waived: frozenset[int]
) -> str:
    """One line for a manager: who, by which rule, and which devices passed."""
    if not any(target.role == DUT for target in targets):
        return "no target has the role dut: there is no device to judge"
    well = [t.target for t in targets if t.outcome is Outcome.PASS and t.role == DUT]
    if outcome is Outcome.PASS:
        warned = sum(f.outcome is Outcome.WARN for f in findings)
        text = f"{', '.join(well)}: no rule failed"
        return text + (f" ({_counted(warned, 'warning')})" if warned else "")
    parts = []
    for target in (t for t in targets if t.outcome is outcome):
        rules = _rules(
            [
                f
                for index, f in enumerate(findings)
                if f.target == target.target and f.outcome is outcome and index not in waived
            ]
        )
        parts.append(f"{target.target}: {rules} inconclusive" if rules else f"{target.target}: {target.reason}")
    return "; ".join(parts) + (f"; {', '.join(well)} passed" if well else "")
