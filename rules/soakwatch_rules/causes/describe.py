"""The description of a cause: headline, time line with lags, and confidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from soakwatch_model.event import Event
from soakwatch_model.fact import Happened, OwnerGrew
from soakwatch_model.finding import Finding, Mark, MarkKind, Outcome
from soakwatch_model.label import label
from soakwatch_model.window import Phase
from soakwatch_rules.causes.cause import Cause, CauseKind
from soakwatch_rules.causes.cause_context import CauseContext
from soakwatch_rules.causes.growth_owner import Owner
from soakwatch_rules.causes.moments import since_of, until_ns
from soakwatch_rules.causes.reasons import rows_by_reason
from soakwatch_rules.traits import Judges, Marks, traits_of
from soakwatch_rules.wording.quantities import duration, first_few, moment

_GRAVE = (Outcome.FAIL, Outcome.WARN, Outcome.INCONCLUSIVE, Outcome.PASS, Outcome.NOT_APPLICABLE)
_ALARMS = (Outcome.FAIL, Outcome.WARN)
_MAX_MARKS, _MAX_WEIGHED = 40, 30
_MIN_CHANCE = 0.05
"""The least probability taken for two findings to coincide by chance: many pairs are compared, so one close pair proves
little."""
_BROKE = 76
"""The rank of a finding that says that something itself failed: after deaths, before what followed from it."""
_UNWATCHED = "gap"
"""The kind of event that says that the monitor itself was not running."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line of a time line: a mark, its target (empty if there is only one), and the rule or event that it comes
    from."""

    mark: Mark
    target: str
    source: str
    object: str

    def worded(self, objects: Iterable[str]) -> Mark:
        """The mark, with its text prefixed by target, source and objects."""
        about = (self.target, self.source, first_few([name for name in objects if name]))
        return replace(self.mark, text=" ".join(part for part in about if part) + f": {self.mark.text}")


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings that belong together, passing findings at the same moments, and what explains them."""

    kind: CauseKind
    indexes: tuple[int, ...]
    witnesses: tuple[int, ...] = ()
    events: tuple[Event, ...] = ()
    phase: Phase | None = None
    owner: Owner | None = None


def describe(context: CauseContext, group: FindingGroup) -> Cause:
    every = (*group.indexes, *group.witnesses)
    first_ns = _first_ns(context, every)
    indexes = sorted(every, key=lambda index: _order(context, index, first_ns))
    own = [context.findings[index] for index in indexes]
    timed = [index for index in indexes if len(context.moments[index])]
    loose = group.kind in {CauseKind.UNSETTLED, CauseKind.GENERATOR}
    line = () if loose else _timeline(context, timed, group)
    targets = {finding.target for finding in own}
    outcome = min(own, key=lambda f: f.outcome.rank).outcome
    deciding = [f for f in own if f.outcome is outcome]
    since = None if loose else since_of([*deciding, *_same_growth(deciding[0], own)])
    if not line and since is not None:  # no marks, but an onset is known: show that
        entry = _Entry(
            Mark(since, deciding[0].window.end_ns, "goes on since then", outcome=outcome), "", deciding[0].rule, ""
        )
        line = (entry.worded([_object(deciding[0])]),)
    return Cause(
        kind=group.kind,
        target=targets.pop() if len(targets) == 1 else "",
        begin_ns=min((mark.begin_ns for mark in line), default=min(f.window.begin_ns for f in own)),
        end_ns=max(
            (mark.begin_ns if mark.end_ns is None else mark.end_ns for mark in line),
            default=max(f.window.end_ns for f in own),
        ),
        headline=_headline(context, indexes, group),
        outcome=outcome,
        findings=tuple(indexes),
        confidence=None if loose else _confidence(context, timed, group),
        timeline=line,
        owner="" if group.owner is None else group.owner.process,
        share=None if group.owner is None else group.owner.share,
        since_ns=since,
        until_ns=None if since is None else until_ns(deciding[0]),
    )


def _same_growth(finding: Finding, own: Sequence[Finding]) -> Iterator[Finding]:
    """Alarms of other methods about the same series; one of them may know when it began."""
    if traits_of(finding.rule).marks is Marks.WHOLE:
        yield from (f for f in own if f.outcome in _ALARMS and f.subject == finding.subject)


def lag(first_ns: int, at_ns: int) -> str:
    """The lag behind the first moment, in words.

    >>> lag(0, 12 * 10**9), lag(5, 5)
    ('+12 s', '+0 s')
    """
    return f"+{duration((at_ns - first_ns) * 1e-9)}" if at_ns > first_ns else "+0 s"


def lags(cause: Cause) -> tuple[tuple[str, Mark], ...]:
    """The time line of a cause, each mark with its lag behind the first."""
    return tuple((lag(cause.begin_ns, mark.begin_ns), mark) for mark in cause.timeline)


def _first_ns(context: CauseContext, indexes: Sequence[int]) -> int:
    """The latest time at which the first of the gravest deaths can have happened."""
    dead = [p for p in indexes if context.traits[p].leads is not None and len(context.moments[p])]
    gravest = min((_GRAVE.index(context.findings[p].outcome) for p in dead), default=0)
    ends = (context.moments[p].end[0] for p in dead if _GRAVE.index(context.findings[p].outcome) == gravest)
    return min(ends, default=context.end_ns) + context.early_ns


def _order(context: CauseContext, index: int, first_ns: int) -> tuple[object, ...]:
    """The sort key for the leading finding: gravest first, then what may have been first, then by rank (what others
    follow from), the host before its processes."""
    finding, moments, traits = context.findings[index], context.moments[index], context.traits[index]
    first = moments.begin[0] if len(moments) else finding.window.begin_ns
    later = traits.leads is not None and first > first_ns
    said = finding.fact(Happened)
    rank = min(traits.rank, _BROKE) if said is not None and said.broke else traits.rank
    return _GRAVE.index(finding.outcome), later, rank, finding.metric.startswith("process."), first, index


def _headline(context: CauseContext, indexes: Sequence[int], group: FindingGroup) -> str:
    lead, rest = context.findings[indexes[0]], [context.findings[index] for index in indexes[1:]]
    if group.kind is CauseKind.UNSETTLED:
        return rows_by_reason(context.findings, sorted(group.indexes))[0].words
    if group.kind is CauseKind.GENERATOR:
        resting = sum(context.traits[index].judges is not Judges.GENERATOR for index in indexes)
        many = f", {resting} finding{'s rest' if resting != 1 else ' rests'} on its load" if resting else ""
        return f"generator at fault{many}: {lead.sentence}"
    text = lead.sentence
    if group.owner is not None and lead.fact(OwnerGrew) is None:  # the sentence names the owners already
        text += f"; {group.owner.words}"
    signs = list(dict.fromkeys(words for index in indexes if (words := context.traits[index].words.effect)))
    if group.kind is CauseKind.INCIDENT and len(signs) > 1 and context.traits[indexes[0]].words.effect:
        text = f"{', '.join(signs[:-1])} and {signs[-1]} at once: {text}"
    if group.events:
        text = f"after {group.events[0].kind} at {moment(group.events[0].begin_ns)}: {text}"
    elif group.phase is not None:
        text = f"with the change of load in phase {group.phase.name}: {text}"
    counted = Counter(f.rule for f in rest)
    others = first_few([f"{rule} ({number})" if number > 1 else rule for rule, number in counted.items()], 5)
    beside = "also found by" if group.kind is CauseKind.GROWTH else "with it"
    return f"{text}; {beside}: {others}" if rest else text


def _timeline(context: CauseContext, timed: Sequence[int], group: FindingGroup) -> tuple[Mark, ...]:
    """The moments of all findings in time order, the leading finding first within a moment; the same report about
    several objects at once is one line."""
    several = len({context.findings[index].target for index in timed}) > 1
    entries = [
        _entry(context, context.findings[index], mark, several=several)
        for index in timed
        for mark in context.findings[index].marks
    ]
    entries += _of_others(context, timed, several=several)
    entries += [_of_event(event) for event in _events(context, timed, group)]
    leads = {rule: -place for place, rule in enumerate(reversed([context.findings[index].rule for index in timed]))}
    entries.sort(key=lambda e: (e.mark.begin_ns, leads.get(e.source, 0), e.source, e.object, e.mark.text, e.target))
    latest: dict[tuple[str, str, str], int] = {}
    rows: list[tuple[_Entry, list[str]]] = []
    for entry in entries:
        key = (entry.target, entry.source, entry.mark.text)
        row = latest.get(key)
        if row is not None:
            first, objects = rows[row]
            if entry.mark.begin_ns - first.mark.begin_ns <= context.slack_ns and entry.object not in objects:
                objects.append(entry.object)
                continue
        latest[key] = len(rows)
        rows.append((entry, [entry.object]))
    kept = rows if len(rows) <= _MAX_MARKS else rows[: _MAX_MARKS - 1]
    marks = tuple(entry.worded(objects) for entry, objects in kept)
    left = [entry.mark for entry, _ in rows[len(kept) :]]
    if not left:
        return marks
    ends = max(mark.begin_ns if mark.end_ns is None else mark.end_ns for mark in left)
    return (*marks, Mark(left[0].begin_ns, ends, f"and {len(left)} more moments"))


def _entry(context: CauseContext, finding: Finding, mark: Mark, *, several: bool) -> _Entry:
    """A mark of a finding with that finding's outcome."""
    outcome = context.outcomes[mark.begin_ns, finding.rule, mark.text]
    target = finding.target if several else ""
    return _Entry(replace(mark, outcome=outcome), target, finding.rule, _object(finding))


def _of_event(event: Event) -> _Entry:
    kind = MarkKind.SILENCE if event.kind == _UNWATCHED else MarkKind.MOMENT
    return _Entry(Mark(event.begin_ns, event.end_ns, _detail(event), kind), "", event.kind, event.object)


def _of_others(context: CauseContext, timed: Sequence[int], *, several: bool) -> Iterator[_Entry]:
    """Marks at these moments of findings that have further moments and so belong to another cause."""
    if not any(context.traits[index].leads is not None for index in timed):
        return
    when, targets, own = context.at(timed), {context.findings[index].target for index in timed}, frozenset(timed)
    for index in context.partial:
        finding = context.findings[index]
        if index not in own and finding.target in targets:
            for mark in finding.marks:
                end_ns = mark.begin_ns if mark.end_ns is None else mark.end_ns
                if when.touched(mark.begin_ns, end_ns, context.slack_ns):
                    yield _entry(context, finding, mark, several=several)


def _events(context: CauseContext, timed: Sequence[int], group: FindingGroup) -> Iterable[Event]:
    """The events that explain the group, and events at its moments that none of its rules judges."""
    if not timed:
        return ()
    judged = {kind for index in timed for kind in context.traits[index].event_kinds}
    targets = {"", *(context.findings[p].target for p in timed)}
    when = context.at(timed)
    seen = (
        e
        for e in context.seen
        if e.target in targets
        and e.kind not in judged
        and not e.expect
        and when.touched(e.begin_ns, e.begin_ns, context.slack_ns)
    )
    return (*group.events, *seen)


def _detail(event: Event) -> str:
    words = event.detail.get("line") or event.detail.get("cause") or event.detail.get("why")
    return words or ("planned" if event.expect or event.deadline_ns is not None else "recorded")


def _object(finding: Finding) -> str:
    name, instance = label(finding.object, "process"), label(finding.object, "instance")
    if name is None:
        return finding.object
    return name if instance in {None, "0"} else f"{name} #{instance}"


def _confidence(context: CauseContext, timed: Sequence[int], group: FindingGroup) -> float | None:
    """1 - the probability that everything would coincide by chance; each rule counts once, at most 19 to 1."""
    weighed = timed[:_MAX_WEIGHED]
    chances: dict[str, float] = {}
    for index in weighed[1:]:
        finding, others = context.findings[index], [p for p in weighed if p != index]
        chance = context.moments[index].chance(context.at(others), context.slack_ns, context.length_ns)
        chances[finding.rule] = max(chance, chances.get(finding.rule, _MIN_CHANCE))
    if len(chances) > 1:
        chances.pop(context.findings[weighed[0]].rule, None)
    if weighed and group.events:
        chances["event"] = context.chance_after(context.at(weighed), [context.stretch(e) for e in group.events])
    elif weighed and group.phase is not None:
        window = group.phase.window
        chances["phase"] = context.chance_after(context.at(weighed), [(window.begin_ns, window.end_ns)])
    if not chances:
        return None
    by_chance = 1.0
    for chance in chances.values():
        by_chance *= chance
    return 1.0 - by_chance
