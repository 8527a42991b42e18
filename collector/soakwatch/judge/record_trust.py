"""Whether a record can be trusted: its targets agree with its plan, and nothing was changed since it was sealed."""

from __future__ import annotations

from dataclasses import replace

from soakwatch.core.errors import PlanError, RecordError
from soakwatch.core.ssh_signature import key_of
from soakwatch.core.yaml import parse
from soakwatch.judge.verdict import Verdict
from soakwatch.record import RecordView
from soakwatch.record.seal import Checked
from soakwatch_model.finding import Outcome
from soakwatch_model.roles import DUT, MONITOR, ROLES


def refuse_contradictions(view: RecordView) -> None:
    """Raise RecordError for a record that contradicts itself or its plan: a target of unknown role, or one that the
    plan lacks or gives another role."""
    roles = view.roles()
    for name, role in roles.items():
        if role not in ROLES:
            raise _refused(view, f"its target {name!r} has the role {role!r}, and there are only {', '.join(ROLES)}")
    planned = _planned_roles(view)
    sources = {source.target for source in view.sources()}
    if not roles and planned is None:
        return  # readings without a run
    series = view.keys()
    named = sources | {key.target for key in series}
    for name in sorted(named - roles.keys() - {MONITOR}):
        raise _refused(view, f"its target {name!r} has no role")
    if planned is None or not roles:
        return
    for name in sorted((planned.keys() | roles.keys()) - {MONITOR}):
        if planned.get(name) != roles.get(name):
            in_plan = f"as {planned[name]}" if name in planned else "not at all"
            in_table = f"as {roles[name]}" if name in roles else "not at all"
            raise _refused(view, f"its plan has the target {name!r} {in_plan}, its table of targets {in_table}")


def with_record_check(verdict: Verdict, checked: Checked) -> Verdict:
    """The verdict with the result of checking its record. A changed record is inconclusive whatever the rules say, as
    nothing tells what it held before."""
    if not checked.changed:
        return replace(verdict, checked=checked)
    reason = f"the record was {checked.words}; by what it says now: {verdict.outcome.value}, {verdict.reason}"
    return replace(verdict, checked=checked, outcome=Outcome.INCONCLUSIVE, reason=reason)


def seal_words(checked: Checked | None) -> str:
    """The result of checking a record in one line: its digest, what was changed, or why it has no seal; "" if
    unchecked."""
    if checked is None:
        return ""
    if checked.changed:
        return f"record {checked.words}"
    if checked.seal is None:
        return f"not sealed: its chain of {checked.links} links is whole"
    key = key_of(checked.seal.signature)
    signed = f", signed with {key}" if key else ", not signed"
    since = f", {checked.events_since} events added since" if checked.events_since else ""
    return f"sealed {checked.seal.digest}{signed}{since}"


def _planned_roles(view: RecordView) -> dict[str, str] | None:
    """The targets of the recorded plan with their roles; None without a plan or targets in it."""
    text = view.meta("plan")
    if text is None:
        return None
    try:
        document = parse(text, "plan in the record").data
    except PlanError:
        return None  # reported by whoever needs the plan
    targets = document.get("targets") if isinstance(document, dict) else None
    if not isinstance(targets, dict):
        return None
    return {
        str(name): str(target.get("role", DUT)) if isinstance(target, dict) else DUT for name, target in targets.items()
    }


def _refused(view: RecordView, why: str) -> RecordError:
    return RecordError(f"{view.path} contradicts itself: {why}: it was changed or is damaged, and is not judged")
