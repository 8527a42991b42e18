"""Whether a verdict can be trusted, in one line: coverage, what is undecided, and the generator."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.core.formatting import number, share_text, source_name
from soakwatch.judge.verdict import REACHED, Verdict
from soakwatch.report.load import Generator
from soakwatch_model.finding import Outcome
from soakwatch_rules.traits import Judges, traits_of
from soakwatch_rules.wording.quantities import counted, first_few

_FAULTS = frozenset({Outcome.FAIL, Outcome.WARN, Outcome.INCONCLUSIVE})


def trust_words(verdict: Verdict, load: Sequence[Generator]) -> str:
    """ "Yes", "Mostly" or "No", and why."""
    coverage, covered = _coverage(verdict)
    undecided, settled = _undecided(verdict)
    generator, sound = _generator(verdict, load)
    record, whole = _record(verdict)
    if verdict.preliminary:
        word = "Not yet, the run goes on"
    elif not whole:
        word = "No"
    elif covered and settled and sound:
        word = "Yes"
    else:
        word = "No" if verdict.outcome is Outcome.INCONCLUSIVE else "Mostly"
    return f"{word}: {'; '.join(part for part in (coverage, undecided, generator, record) if part)}."


def _coverage(verdict: Verdict) -> tuple[str, bool]:
    """The share of all polls, and the required source that lost most where that is too many."""
    due, got = (sum(getattr(ledger, key) for ledger in verdict.ledgers) for key in ("due", "got"))
    if not due:
        return "nothing was polled", False
    text = (
        f"all {number(due)} polls answered"
        if got == due
        else f"{share_text(got / due)} of {number(due)} polls answered"
    )
    required = [(ledger.coverage, source_name(ledger)) for ledger in verdict.ledgers if ledger.required]
    worst, name = min(((share, name) for share, name in required if share is not None), default=(1.0, ""))
    if worst < REACHED:
        return f"{text}, of {name} only {share_text(worst)}", False
    return text, True


def _undecided(verdict: Verdict) -> tuple[str, bool]:
    open_ = [n for n, finding in enumerate(verdict.findings) if finding.outcome is Outcome.INCONCLUSIVE]
    required = [n for n in open_ if n not in verdict.waived]
    if required:
        rules = first_few(sorted({verdict.findings[n].rule for n in required}), 2)
        verb = "is" if len(required) == 1 else "are"
        return f"{counted(len(required), 'required check')} ({rules}) {verb} undecided", False
    return (f"{counted(len(open_), 'check')} undecided, none of them required" if open_ else "no check undecided"), True


def _record(verdict: Verdict) -> tuple[str, bool]:
    """Whether the record is as it was sealed; its digest is told elsewhere."""
    checked = verdict.checked
    if checked is None or verdict.preliminary:
        return "", True
    if checked.changed:
        return f"the record was {checked.words}", False
    if checked.seal is None:
        return "the record is not sealed", True
    return "the record is sealed and signed" if checked.seal.signature else "the record is sealed, not signed", True


def _generator(verdict: Verdict, load: Sequence[Generator]) -> tuple[str, bool]:
    judged = [finding for finding in verdict.findings if traits_of(finding.rule).judges is Judges.GENERATOR]
    faults = [finding for finding in judged if finding.outcome in _FAULTS]
    if faults:
        return f"the generator {faults[0].target} was not as it should be: {faults[0].sentence.rstrip('.')}", False
    if any(finding.outcome is Outcome.PASS for finding in judged):
        return "the generator held its load", True
    return (
        "whether the generator held its load was not checked, for it does not say what it was to send"
        if load or judged
        else "no traffic generator"
    ), True
