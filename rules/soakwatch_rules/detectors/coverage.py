"""Coverage: were enough polls answered to judge the run at all?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

from soakwatch_model.case import Case, Ledger
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, MarkKind, Outcome
from soakwatch_rules.finding_draft import absent, draft, faults
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.silences import monitor_did_not_poll
from soakwatch_rules.traits import Family, Guide, Inconclusive, Judges, RuleWords, Traits
from soakwatch_rules.wording.polls import lost_polls
from soakwatch_rules.wording.quantities import counted, duration, moment, quantity

_ALMOST = 0.999  # a share below 1 is never rounded up to 100 %
_ONE_POLL = 1.5  # intervals: one missed poll is shorter, two are longer


@dataclass(frozen=True, slots=True)
class Coverage(Parameters):
    """Passes if enough polls of each source were answered; otherwise inconclusive, never a failure, since missing data
    neither proves nor excludes a fault of the device. For a source that the plan does not require it only warns.

    Coverage is answered polls / due polls. It passes at ``floor`` or more if no gap is longer than ``gap`` of the
    window. A gap is the longest silence minus one interval; a single missed poll lowers the coverage and is no gap,
    however short the window.

    How often wrong: it counts and does not estimate. Known weaknesses: it counts polls, not metrics: a source that
    answers with half of its metrics is covered (the other rules report missing samples). The causes it names are the
    errors of the polls, not a diagnosis.

    Neighbours: every other rule counts its own readings.

    Parameters: ``floor``, ``gap`` (below).

    >>> from soakwatch_model.case import Case, Ledger
    >>> from soakwatch_model.window import Window
    >>> ledger = Ledger("dut", "local", 1.0, due=100, got=90, lost={"timeout": 10}, longest_gap=None)
    >>> finding = Coverage().judge(Case("dut", "", Window(0, 100 * 10**9), ledgers=(ledger,)))[0]
    >>> finding.outcome.value, finding.reason
    ('inconclusive', 'local: 90 of 100 polls answered (90 %); 10 timed out')

    References: none; floor and gap are those of the project's definition of a verdict.
    """

    name: ClassVar[str] = "coverage"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "too few polls were answered, or a gap lasted too long"
    metrics: ClassVar[tuple[str, ...]] = ()
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec("one due poll", live="whole")

    floor: float = parameter(
        0.95, "1", "minimum share of due polls that must be answered", "definition of a verdict", within="(0, 1]"
    )
    gap: float = parameter(
        0.05, "1", "longest allowed gap, as a share of the window", "definition of a verdict", within="(0, 1]"
    )

    def definition(self) -> str:
        return (
            f"covered if at least {100 * self.floor:g} % of the due polls were answered and no gap lasted "
            f"longer than {100 * self.gap:g} % of the window beyond one interval (one missed poll is not a gap); else "
            "inconclusive, or a warning if the source is not required"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a source; its object is the source's label."""
        if not case.ledgers:
            return (absent(self, case, "poll statistics (no source polled it)"),)
        return tuple(self._of(case, ledger) for ledger in case.ledgers)

    def _of(self, case: Case, ledger: Ledger) -> Finding:
        finding = replace(
            draft(self, case),
            object=ledger.source,
            samples=ledger.got,
            expected=ledger.due,
            unit="1",
            limit=self.floor,
        )
        share = ledger.coverage
        if share is None:
            return finding.undecided(
                f"{ledger.source}: no poll was due",
                InconclusiveReason.TOO_SHORT,
                "run for longer than the poll interval",
            )
        silence = ledger.longest_gap
        beyond_s = 0.0 if silence is None else max(0.0, silence.seconds - ledger.interval_s)
        long = beyond_s > max(self.gap * case.window.seconds, _ONE_POLL * ledger.interval_s)
        lost = lost_polls(ledger.lost)
        polls = f"{ledger.got:,} of {counted(ledger.due, 'poll')}"
        # A share just below 100 % is not shown as 100 %.
        shown = share if share >= 1 else min(share, _ALMOST)
        text = f"{ledger.source}: {polls} answered ({quantity(shown, '1')})"
        text += f", {ledger.recovered:,} of them delivered late" if ledger.recovered else ""
        text += f"; {lost}" if lost else ""
        if silence is not None and beyond_s > 0.5 * ledger.interval_s:
            text += f"; longest gap {duration(silence.seconds)} from {moment(silence.begin_ns)}"
        if ledger.errors:
            text += f"; {faults(ledger.errors, 1)}"
        marks = (
            (Mark(silence.begin_ns, silence.end_ns, f"{ledger.source} silent", MarkKind.SILENCE),)
            if silence and long
            else ()
        )
        numbers = {
            "due": float(ledger.due),
            "got": float(ledger.got),
            "gap_s": beyond_s,
            "gap_limit_s": self.gap * case.window.seconds,
        }
        finding = replace(finding, reason=text, measured=share, marks=marks, numbers=numbers)
        if share >= self.floor and not long and ledger.got:
            return replace(finding, outcome=Outcome.PASS)
        outcome = Outcome.INCONCLUSIVE if ledger.required else Outcome.WARN
        return replace(
            finding,
            outcome=outcome,
            why=InconclusiveReason.GAP if outcome is Outcome.INCONCLUSIVE else None,
            settle=_OWN_FAULT if monitor_did_not_poll(ledger.lost) else _FIX,
        )


_FIX: Final = "fix the source or the path to it (or poll it less often), then run again"
_OWN_FAULT: Final = "keep the monitor's machine awake and less busy, then run again"

TRAITS: Final = Traits(
    words=RuleWords(
        "too many samples are missing", "management silent", happened="too many samples of {target} are missing"
    ),
    rank=920,
    judges=Judges.ANSWERS,
    inconclusive=Inconclusive(any_role=True, required=True),
    family=Family.POLLS,
    guide=Guide(
        fails_when=(
            "Never: too few answered polls (below 95 %), or a gap longer than 5 % of the run, make it undecided."
        ),
        misses="A source that answers but leaves out half of its metrics.",
        change_with="coverage: {floor: 90%, gap: 10%}",
        next_step=(
            "Look at the strip of the source under Coverage: its errors say whether the device, the path or the "
            "monitor was at fault."
        ),
    ),
)
