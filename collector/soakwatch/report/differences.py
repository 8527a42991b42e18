"""How a run differs from the last one of its plan, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from soakwatch.core.formatting import quantity
from soakwatch.judge.problems import growth_rate, thing_of_rule
from soakwatch.judge.verdict import Verdict
from soakwatch.runs.previous import Key, PreviousRun, key_of
from soakwatch_model.finding import Outcome
from soakwatch_rules.wording.quantities import counted

_MAX_NAMED = 2


def difference_words(verdict: Verdict, previous: PreviousRun | None) -> str:
    """What failed or warned anew and what no longer does, compared with ``previous``; with its labels that differ.

    What the earlier run did not judge is not called new.
    """
    if previous is None:
        return "This is the first run of this plan in its folder."
    now = {key_of(f): f.outcome for f in verdict.findings if f.outcome in {Outcome.FAIL, Outcome.WARN}}
    clear = {key_of(f) for f in verdict.findings if f.outcome is Outcome.PASS}
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


def _named(keys: Sequence[Key]) -> str:
    """The first few by rule and object; what several rules say of one thing is one."""
    names = list(dict.fromkeys(_name(key) for key in keys))
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {counted(more, 'other')}" if more > 0 else "")


def _name(key: Key) -> str:
    rule, target, metric, object_ = key
    of = thing_of_rule(rule, metric, object_)
    on = f"{of} on {target}" if of and of != target else target
    return f"{on} ({rule})"


def _then(verdict: Verdict, previous: PreviousRun, keys: Sequence[Key]) -> str:
    """What was measured of the first then and is now, where both are known in one unit."""
    key = keys[0]
    before = previous.figures.get(key)
    finding = next((finding for finding in verdict.findings if key_of(finding) == key), None)
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
