"""The three lines that close the answer: how the run differs from the last one of its plan, whether its verdict can be
trusted, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from soakwatch.core.formatting import number, quantity, share_text, source_name
from soakwatch.core.plain_names import plain_name
from soakwatch.judge.problems import growth_rate, thing_of_rule
from soakwatch.judge.verdict import REACHED, Verdict
from soakwatch.report.load import TrafficGenerator
from soakwatch.runs.previous import PreviousRun
from soakwatch_model.fact import OwnerGrew
from soakwatch_model.finding import Finding, FindingName, Outcome
from soakwatch_rules.growth.memory_owners import step_for
from soakwatch_rules.traits import GrowthMethod, Judges, traits_of
from soakwatch_rules.wording.quantities import counted, first_few

_MAX_NAMED = 2
_FAULTS = frozenset({Outcome.FAIL, Outcome.WARN, Outcome.INCONCLUSIVE})


def difference_words(verdict: Verdict, previous: PreviousRun | None) -> str:
    """What is new, worse, fixed or the same since ``previous``, and which labels differ.

    A failure of what the earlier run did not judge is not called new.
    """
    if previous is None:
        return "This is the first run of this plan in its folder."
    now = {f.name: f.outcome for f in verdict.findings if f.outcome in {Outcome.FAIL, Outcome.WARN}}
    clear = {f.name for f in verdict.findings if f.outcome is Outcome.PASS}
    new = [key for key in now if key in previous.passed]
    worse = [k for k, o in now.items() if o is Outcome.FAIL and previous.objections.get(k) is Outcome.WARN]
    gone = [] if verdict.preliminary else [key for key in previous.objections if key in clear]  # it may still come
    still = [key for key in now if key in previous.objections and key not in worse]
    unknown = [key for key in now if key not in previous.passed and key not in previous.objections]
    failing = [key for key in still if now[key] is Outcome.FAIL]
    warned = [key for key in still if key not in failing]
    lists = (("New", new), ("Worse", worse), ("Fixed", gone), ("Still failing", failing), ("Still warned of", warned))
    parts = [f"{word}: {_named(keys)}{_then(verdict, previous, keys)}" for word, keys in lists if keys]
    parts += [f"Not judged then: {_named(unknown)}"] if unknown else []
    if not (new or worse or gone or unknown):
        parts.append("Nothing failed or warned anew")
    labels = ", ".join(_labels(previous.labels, verdict.labels))
    head = f"{previous.folder}{f' ({labels})' if labels else ''}: {_changed_verdict(verdict, previous)}"
    return f"{'. '.join([head, *parts])}."


def _changed_verdict(verdict: Verdict, previous: PreviousRun) -> str:
    if verdict.preliminary:
        return f"that one ended with {previous.verdict}"
    both = {Outcome.FAIL: "both fail", Outcome.PASS: "both pass"}.get(verdict.outcome, "no verdict then and now")
    return (
        both if verdict.outcome.value == previous.verdict else f"{previous.verdict} then, {verdict.outcome.value} now"
    )


def _named(keys: Sequence[FindingName]) -> str:
    """The first few by object and rule, each once."""
    names = list(dict.fromkeys(_name(key) for key in keys))
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {counted(more, 'other')}" if more > 0 else "")


def _name(key: FindingName) -> str:
    rule, target, metric, object_ = key
    of = thing_of_rule(rule, metric, object_)
    on = f"{of} on {target}" if of and of != target else target
    return f"{on} ({rule})"


def _then(verdict: Verdict, previous: PreviousRun, keys: Sequence[FindingName]) -> str:
    """The measured values of the first of them, then and now; empty unless both are known in one unit."""
    key = keys[0]
    before = previous.figures.get(key)
    finding = next((finding for finding in verdict.findings if finding.name == key), None)
    if before is None or finding is None or finding.measured is None:
        return ""
    now, unit = growth_rate(finding) or (finding.measured, finding.unit)
    if unit != before[1]:
        return ""
    earlier, later = quantity(before[0], unit), quantity(now, unit)
    return f", {later} both times" if earlier == later else f", {earlier} then, {later} now"


def _labels(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    names = sorted(before.keys() | now.keys())
    return [f"{n} {before.get(n, 'none')} → {now.get(n, 'none')}" for n in names if before.get(n) != now.get(n)]


def trust_words(verdict: Verdict, load: Sequence[TrafficGenerator]) -> str:
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
    """The share of polls that were answered; and with False the required source that lost most, if it lost too many."""
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
    """Whether the record is as it was sealed, in words and as a truth value; its digest stands elsewhere."""
    checked = verdict.checked
    if checked is None or verdict.preliminary:
        return "", True
    if checked.changed:
        return f"the record was {checked.words}", False
    if checked.seal is None:
        return "the record is not sealed", True
    return "the record is sealed and signed" if checked.seal.signature else "the record is sealed, not signed", True


def _generator(verdict: Verdict, load: Sequence[TrafficGenerator]) -> tuple[str, bool]:
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


def next_step(verdict: Verdict, finding: Finding | None) -> str:
    """What to do about ``finding``, which decides the verdict; None where nothing failed, warned or is undecided."""
    if finding is None:
        if verdict.preliminary:
            return "Let it go on: it is judged at its planned end, or when soakwatch stop ends it."
        if verdict.outcome is Outcome.INCONCLUSIVE:
            return "Give the plan a target of role dut that can be read, and run it again."
        keep = "To compare the next run with this one: soakwatch judge NEXT --against THIS."
        if undecided := _growth_left_open(verdict):
            return f"{undecided} {keep}"
        return f"Nothing to do. {keep}"
    if finding.outcome is Outcome.INCONCLUSIVE and finding.settle:
        return f"{finding.settle[0].upper()}{finding.settle[1:].rstrip('.')}."
    grew = finding.fact(OwnerGrew)
    if grew is not None and (step := step_for(grew)):
        return step
    return traits_of(finding.rule).guide.next_step or f"See what the rule says: soakwatch rules {finding.rule}."


def _growth_left_open(verdict: Verdict) -> str:
    """What would decide the growth that is undecided although the run passed; "" if all of it is decided."""
    left = [
        f
        for f in verdict.findings
        if f.outcome is Outcome.INCONCLUSIVE and traits_of(f.rule).growth in {GrowthMethod.SHAPE, GrowthMethod.STAGES}
    ]
    if not left:
        return ""
    what = plain_name(left[0].metric, left[0].object)
    more = f" and {len(left) - 1} more" if len(left) > 1 else ""
    would = left[0].settle or left[0].sentence
    return f"Nothing failed, but growth of {what}{more} was not decided: {would.rstrip('.')}."
