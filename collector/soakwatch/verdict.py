"""The verdict: the fold of all findings, for the run and for each target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from soakwatch_rules.rule import Finding, Ledger, Outcome, Phase, Window

from soakwatch.errors import EXIT_FAIL, EXIT_INCONCLUSIVE, EXIT_PASS

VERDICTS = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)
EXIT_CODES: Mapping[Outcome, int] = {
    Outcome.FAIL: EXIT_FAIL,
    Outcome.INCONCLUSIVE: EXIT_INCONCLUSIVE,
    Outcome.PASS: EXIT_PASS,
}


@dataclass(frozen=True, slots=True)
class TargetVerdict:
    """What holds for one target: its role, the fold of its findings, and why in one sentence."""

    target: str
    role: str
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What holds for the run. ``outcome`` is fail, inconclusive or pass; ``reason`` is one line for a manager."""

    run: str
    outcome: Outcome
    reason: str
    window: Window
    targets: tuple[TargetVerdict, ...]
    findings: tuple[Finding, ...]
    ledgers: tuple[Ledger, ...]
    phases: tuple[Phase, ...]

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
    optional_rules: frozenset[str] = frozenset(),
) -> Verdict:
    """Fail if any finding fails; else inconclusive if any required rule is; else pass.

    A run in which nothing was judged is inconclusive, never pass; so is a target of role ``dut`` of which nothing
    was judged. Findings are ordered worst first, then by target, rule and object, so that equal records give equal
    verdicts.
    """
    order = list(Outcome)
    ordered = tuple(sorted(findings, key=lambda f: (order.index(f.outcome), f.target, f.rule, f.metric, f.object)))
    targets = tuple(
        _of_target(name, role, [f for f in ordered if f.target == name], optional_rules)
        for name, role in sorted(roles.items(), key=lambda item: (item[1] != "dut", item[0]))
    )
    outcome = _worst([t.outcome for t in targets])
    return Verdict(
        run, outcome, _headline(outcome, targets, ordered), window, targets, ordered, tuple(ledgers), tuple(phases)
    )


def _of_target(name: str, role: str, findings: list[Finding], optional: frozenset[str]) -> TargetVerdict:
    judged = [f for f in findings if f.outcome is not Outcome.NOT_APPLICABLE]
    failed = [f for f in judged if f.outcome is Outcome.FAIL]
    unsure = [f for f in judged if f.outcome is Outcome.INCONCLUSIVE and f.rule not in optional]
    if failed:
        rules = sorted({f.rule for f in failed})
        return TargetVerdict(name, role, Outcome.FAIL, f"{', '.join(rules)}: {failed[0].reason}")
    if unsure:
        return TargetVerdict(name, role, Outcome.INCONCLUSIVE, f"{unsure[0].rule}: {unsure[0].reason}")
    if not judged and role == "dut":
        return TargetVerdict(name, role, Outcome.INCONCLUSIVE, "nothing was judged: no rule found its metrics here")
    warned = [f for f in judged if f.outcome is Outcome.WARN]
    if warned:
        return TargetVerdict(name, role, Outcome.PASS, f"passed with a warning: {warned[0].reason}")
    return TargetVerdict(name, role, Outcome.PASS, f"{len(judged)} findings, none against it")


def _worst(outcomes: list[Outcome]) -> Outcome:
    if not outcomes:
        return Outcome.INCONCLUSIVE
    return next(outcome for outcome in VERDICTS if outcome in outcomes)


def _headline(outcome: Outcome, targets: tuple[TargetVerdict, ...], findings: tuple[Finding, ...]) -> str:
    if outcome is Outcome.PASS:
        judged = sum(f.outcome is not Outcome.NOT_APPLICABLE for f in findings)
        return f"all {judged} findings on {len(targets)} targets are without objection"
    told = [t for t in targets if t.outcome is outcome]
    if not told:
        return "nothing was judged"
    return "; ".join(f"{t.target}: {t.reason}" for t in told[:3]) + (
        "" if len(told) <= 3 else f"; and {len(told) - 3} more"
    )
