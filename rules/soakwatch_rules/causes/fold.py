"""Causes: groups findings that belong together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations

from soakwatch_model.event import Event
from soakwatch_model.fact import Gone, Lost
from soakwatch_model.finding import Finding, InconclusiveReason, MarkKind, Outcome
from soakwatch_model.window import Phase
from soakwatch_rules.causes.cause import Cause, CauseKind
from soakwatch_rules.causes.cause_context import REPORTED, CauseContext
from soakwatch_rules.causes.describe import FindingGroup, describe
from soakwatch_rules.causes.growth_owner import Owner, by_growth_subject, growth_subject, owners
from soakwatch_rules.causes.moments import since_ns
from soakwatch_rules.causes.reasons import rows_by_reason
from soakwatch_rules.traits import Crash, Judges, Limit, Marks, traits_of

_NOTHING_SEEN = frozenset(InconclusiveReason) - {
    InconclusiveReason.GAP,
    InconclusiveReason.PENDING,
    InconclusiveReason.GENERATOR,
}
"""Reasons about what the run could not show: nothing happened at the marks of such findings."""


def causes(
    findings: Sequence[Finding], events: Iterable[Event] = (), phases: Iterable[Phase] = ()
) -> tuple[Cause, ...]:
    """Every finding that fails, warns or is inconclusive, in exactly one cause; passing findings may add moments.

    Findings are joined in this order: those that rest on a generator at fault; within one target, deaths proven to be
    one (``proof``), and findings whose moments all begin or end at those of the nearest death, or each at the other's
    (within two minutes or a twentieth of the run, and beyond chance); those that follow an announced or recorded event;
    those within a phase that changed the load; findings of growth of one object, with the process that owns a host's
    growth and the OOM kill that it led to; inconclusive findings with the same reason.
    The causes are sorted worst first, then by what broke first.

    >>> from soakwatch_model.finding import Mark
    >>> from soakwatch_model.window import Window
    >>> def finding(rule, at_s):
    ...     mark = Mark(at_s * 10**9, None, "here")
    ...     window = Window(0, 86_400 * 10**9)
    ...     return Finding(rule, 1, Outcome.FAIL, "dut", "", "", window, "", "died", 9, marks=(mark,))
    >>> found = causes([finding("cpu_spike", 7230), finding("reboot", 7200), finding("level", 50_000)])
    >>> [(cause.kind.value, cause.findings) for cause in found]
    [('incident', (1, 0)), ('finding', (2,))]
    """
    context = CauseContext(findings, events, phases)
    reported = [index for index, finding in enumerate(findings) if finding.outcome in REPORTED]
    groups = Groups(len(findings))
    kinds: dict[int, CauseKind] = {}
    done: dict[int, tuple[Event, ...]] = {}
    loads: dict[int, Phase] = {}

    blamed = [index for index in reported if findings[index].why is InconclusiveReason.GENERATOR]
    groups.join(blamed)
    kinds |= dict.fromkeys(blamed, CauseKind.GENERATOR)
    free = [index for index in reported if index not in kinds]
    timed = [index for index in free if len(context.moments[index]) and findings[index].why not in _NOTHING_SEEN]
    _join_moments(context, groups, timed)
    _join_outages(context, groups, free)
    _join_gone(context, groups, free)
    _join_events(context, groups, timed, done)
    _join_phases(context, groups, [index for index in timed if index not in done], loads)
    owner = _join_growth(context, groups, free)
    kinds |= dict.fromkeys(done, CauseKind.EVENT) | dict.fromkeys(loads, CauseKind.LOAD)

    alone = {group[0] for group in groups.joined(reported) if len(group) == 1}
    unsure = [p for p in reported if p in alone and findings[p].outcome is Outcome.INCONCLUSIVE and p not in kinds]
    for row in rows_by_reason(findings, unsure):
        groups.join(row.indexes)
        kinds |= dict.fromkeys(row.indexes, CauseKind.UNSETTLED)
    found = []
    heard: set[int] = set()
    for members in groups.joined(reported):
        witnesses = _witnesses(context, [p for p in members if p in timed], heard)
        heard.update(witnesses)
        first = next((p for p in members if p in done), None)
        phase = next((loads[p] for p in members if p in loads), None)
        group = FindingGroup(
            kind=_kind(context, members, kinds),
            indexes=tuple(members),
            witnesses=witnesses,
            events=() if first is None else done[first],
            phase=phase,
            owner=next((owner[p] for p in members if p in owner), None),
        )
        found.append(describe(context, group))
    fallen = [findings[p] for p in reported if context.traits[p].crash is not None]
    dead = {(finding.target, finding.object) for finding in fallen if finding.object}
    return tuple(sorted(found, key=lambda c: _rank(c, findings, dead)))


def _rank(cause: Cause, findings: Sequence[Finding], dead: AbstractSet[tuple[str, str]]) -> tuple[object, ...]:
    """The sort key of causes: worst first, then by when it began, then those without a moment. Growth in a process that
    died (``dead``) began before its death."""
    first = findings[cause.leading]
    traits = traits_of(first.rule)
    began_ns = cause.since_ns
    if began_ns is None and traits.growth is not None and (first.target, first.object) in dead:
        began_ns = min((mark.begin_ns for mark in first.marks), default=first.window.begin_ns)
    return (
        cause.outcome.rank,
        cause.kind is CauseKind.UNSETTLED,
        began_ns is None,
        -len(cause.findings) if began_ns is None else began_ns,
        cause.kind is CauseKind.FINDING,
        (0, traits.rank) if traits.crash is not None else (1, 0),
        cause.target,
        first.rule,
        first.metric,
        first.object,
        cause.leading,
    )


def _join_moments(context: CauseContext, groups: Groups, timed: Sequence[int]) -> None:
    by_target: dict[str, list[int]] = {}
    for index in timed:
        by_target.setdefault(context.findings[index].target, []).append(index)
    for indexes in by_target.values():
        dead = [p for p in indexes if context.traits[p].crash is not None]
        for first, other in combinations(dead, 2):
            if context.together(first, other):
                groups.join((first, other))
        rest = (pair for pair in combinations(indexes, 2) if not (pair[0] in dead and pair[1] in dead))
        for first, other in sorted(rest, key=lambda pair: context.apart_ns(*pair)):
            led = {groups.root(p) for p in dead}
            if (
                groups.root(first) != groups.root(other)
                and not {groups.root(first), groups.root(other)} <= led  # it would join two deaths
                and context.together(first, other)
            ):
                groups.join((first, other))
        _join_covered(context, groups, indexes)


def _join_outages(context: CauseContext, groups: Groups, free: Sequence[int]) -> None:
    """Joins to a standstill, however long, whatever begins with it or lies in it."""
    marks = {p: context.findings[p].marks for p in free if context.traits[p].marks is not Marks.WHOLE}
    for first_index in free:
        first = context.findings[first_index]
        lost = first.fact(Lost)
        if not (context.traits[first_index].standstill or (lost is not None and lost.stops > 0)):
            continue
        spans = [(m.begin_ns - context.slack_ns, (m.end_ns or m.begin_ns) + context.slack_ns) for m in first.marks]
        for other, own in marks.items():
            if not own or other == first_index or context.findings[other].target != first.target:
                continue
            if all(
                any(
                    abs(m.begin_ns - b - context.slack_ns) <= context.slack_ns
                    or (b <= m.begin_ns and (m.end_ns or m.begin_ns) <= e)
                    for b, e in spans
                )
                for m in own
            ):
                groups.join((first_index, other))


def _join_gone(context: CauseContext, groups: Groups, free: Sequence[int]) -> None:
    """Joins to a process that exited for good the losses since then, up to the end of the run."""
    for index in free:
        gone = context.findings[index].fact(Gone)
        if gone is None:
            continue
        effects = [
            p
            for p in free
            if p != index
            and context.findings[p].target == context.findings[index].target
            and context.traits[p].words.effect
            and context.traits[p].leads is None
            and context.traits[p].growth is None
            and (began := since_ns(context.findings[p])) is not None
            and began >= gone.time_ns - _blur_ns(context, p)
        ]
        firsts = (since_ns(context.findings[p]) or 0 for p in effects)
        if any(first <= gone.time_ns + context.slack_ns for first in firsts):
            groups.join((index, *effects))


def _blur_ns(context: CauseContext, index: int) -> int:
    """How much earlier than in truth a finding may seem to begin, in ns; an onset is known to a 48th of its window."""
    window = context.findings[index].window
    whole = context.traits[index].marks is Marks.WHOLE
    return (window.end_ns - window.begin_ns) // 48 if whole else context.unsure_ns(index)


def _join_covered(context: CauseContext, groups: Groups, indexes: Sequence[int]) -> None:
    """Joins what lies at the moments of several crashes together, but of no single one, to the first of them."""
    dead = [p for p in indexes if context.traits[p].leads is not None and not context.aside(p)]
    if not dead:
        return
    when = context.at(dead)
    by_time = sorted(dead, key=lambda p: (context.moments[p].begin[0], p))
    for index in indexes:
        free = context.traits[index].leads is None and groups.root(index) not in {groups.root(p) for p in dead}
        if free and context.witness(index, when) and context.after(index, dead):
            first = context.moments[index].begin[0]
            last = context.moments[index].end[0]
            near = [
                p
                for p in by_time
                if any(context.moments[p].touched(edge, edge, context.slack_ns) for edge in (first, last))
            ]
            groups.join((index, *near[:1]))


def _join_events(
    context: CauseContext, groups: Groups, timed: Sequence[int], done: dict[int, tuple[Event, ...]]
) -> None:
    """Joins groups whose moments all follow recorded events, those with the same first event together."""
    first_of: dict[int, int] = {}
    for members in groups.joined(timed):
        targets = {"", *(context.findings[p].target for p in members)}
        moments = context.at(members)
        near = [(n, e) for n, e in enumerate(context.done) if e.target in targets and _touches(context, e, members)]
        if near and context.follows(moments, [context.stretch(event) for _, event in near]):
            done |= dict.fromkeys(members, tuple(event for _, event in near))
            groups.join((first_of.setdefault(near[0][0], members[0]), *members))


def _touches(context: CauseContext, event: Event, members: Sequence[int]) -> bool:
    begin, end = context.stretch(event)
    return any(context.moments[p].touched(begin, end + context.slack_ns, context.slack_ns // 10) for p in members)


def _join_phases(context: CauseContext, groups: Groups, timed: Sequence[int], loads: dict[int, Phase]) -> None:
    """Joins what shows only while the load is changed on purpose; a crash is never attributed to the load."""
    first_of: dict[tuple[int, str], int] = {}
    for members in groups.joined(timed):
        if any(context.traits[p].crash is not None for p in members) or _silent(context, members):
            continue
        moments = context.at(members)
        for number, phase in enumerate(context.phases):
            stretch = (phase.window.begin_ns, phase.window.end_ns)
            if context.follows(moments, [stretch]):
                loads |= dict.fromkeys(members, phase)
                groups.join((first_of.setdefault((number, context.findings[members[0]].target), members[0]), *members))
                break


def _join_growth(context: CauseContext, groups: Groups, free: Sequence[int]) -> dict[int, Owner]:
    """Joins growth of one object, the owner of a host's growth with it, and an OOM kill with what grew."""
    findings = context.findings
    against = [p for p in free if findings[p].outcome is not Outcome.INCONCLUSIVE]
    found, owner = by_growth_subject(findings, against), owners(findings)
    owned: dict[int, Owner] = {}
    for indexes in found.values():
        groups.join(indexes)
    full = {findings[p].subject: p for p in against if context.traits[p].limit is Limit.ROOM}
    series = full | {findings[p].subject: p for indexes in found.values() for p in indexes}
    size = Counter(groups.root(index) for index in free)
    for index in against:
        if (
            size[groups.root(index)] == 1
            and growth_subject(findings[index]) is None
            and findings[index].subject in series
        ):
            groups.join((series[findings[index].subject], index))
    for target, holder in owner.items():
        host = found.get(("memory", target), [])
        groups.join([*host, *found.get(("process", target, holder.process), [])])
        owned |= dict.fromkeys(host, holder)
    for index in against:
        if context.traits[index].crash is Crash.MEMORY:
            for grown_object, indexes in found.items():
                if grown_object[1] == findings[index].target and (
                    (grown_object[0] == "memory" and not _of_group(findings[index]))
                    or _killed(context, groups, index, grown_object)
                ):
                    groups.join((index, *indexes))
    return owned


def _of_group(finding: Finding) -> bool:
    """Whether all that was killed had used up the memory of its own control group: the host had some left."""
    return bool(finding.marks) and all(mark.kind is MarkKind.GROUP_KILL for mark in finding.marks)


def _killed(context: CauseContext, groups: Groups, index: int, grown_object: tuple[str, ...]) -> bool:
    """Whether a kill for want of memory hit this process: the kernel names it, or it restarted then."""
    if grown_object[0] != "process":
        return False
    marks = context.findings[index].marks
    if any(mark.victim is not None and mark.victim.process == grown_object[2] for mark in marks):
        return True
    mates = [
        f
        for p, f in enumerate(context.findings)
        if context.traits[p].crash is Crash.PROCESS and groups.root(p) == groups.root(index)
    ]
    return any(grown_object[2] in {part.rpartition("=")[2] for part in f.object.split(",")} for f in mates)


def _witnesses(context: CauseContext, timed: Sequence[int], heard: set[int]) -> tuple[int, ...]:
    """Passing findings whose moments all lie at these: an announced restart, an explained gap."""
    if not timed:
        return ()
    when, targets = context.at(timed), {context.findings[p].target for p in timed}
    return tuple(
        index
        for index, finding in enumerate(context.findings)
        if finding.outcome is Outcome.PASS
        and finding.target in targets
        and index not in heard
        and context.witness(index, when)
    )


def _silent(context: CauseContext, members: Sequence[int]) -> bool:
    return any(context.traits[p].judges is Judges.ANSWERS for p in members)


def _kind(context: CauseContext, members: Sequence[int], kinds: dict[int, CauseKind]) -> CauseKind:
    known = {kinds[p] for p in members if p in kinds}
    for kind in (CauseKind.GENERATOR, CauseKind.EVENT):
        if kind in known:
            return kind
    own = [context.findings[p] for p in members]
    if any(context.traits[p].leads is not None for p in members) and any(f.marks for f in own):
        return CauseKind.INCIDENT
    if CauseKind.LOAD in known:
        return CauseKind.LOAD
    if any(growth_subject(f) for f in own) and CauseKind.UNSETTLED not in known:
        return CauseKind.GROWTH
    if len(members) == 1:
        return CauseKind.FINDING
    return CauseKind.UNSETTLED if CauseKind.UNSETTLED in known else CauseKind.INCIDENT


class Groups:
    """Indexes that are joined step by step; the root of a group is its lowest index."""

    def __init__(self, size: int) -> None:
        self._above = list(range(size))

    def root(self, index: int) -> int:
        """The lowest index of the group."""
        while self._above[index] != index:
            self._above[index] = self._above[self._above[index]]
            index = self._above[index]
        return index

    def join(self, indexes: Iterable[int]) -> None:
        """Joins the groups of these indexes."""
        roots = sorted({self.root(index) for index in indexes})
        for root in roots[1:]:
            self._above[root] = roots[0]

    def joined(self, indexes: Iterable[int]) -> list[list[int]]:
        """The groups among these indexes, each sorted, ordered by their roots."""
        groups: dict[int, list[int]] = {}
        for index in sorted(indexes):
            groups.setdefault(self.root(index), []).append(index)
        return list(groups.values())
