"""Causes: which findings belong together, and what is told of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

from soakwatch_rules.causes.bench import TOLD, Bench
from soakwatch_rules.causes.cause import Cause, CauseKind
from soakwatch_rules.causes.doubt import doubts
from soakwatch_rules.causes.groups import Groups
from soakwatch_rules.causes.growing import Owner, owners, thing_of, things
from soakwatch_rules.causes.telling import Group, tell
from soakwatch_rules.rule import Event, Finding, InconclusiveReason, MarkKind, Outcome, Phase
from soakwatch_rules.traits import STOPS, Crash, traits_of

_WORST = list(Outcome)
_NOTHING_SEEN = frozenset(InconclusiveReason) - {
    InconclusiveReason.GAP,
    InconclusiveReason.PENDING,
    InconclusiveReason.GENERATOR,
}
"""Doubts of these kinds are about what the run could not show; nothing happened at their marks."""


def causes(
    findings: Sequence[Finding], events: Iterable[Event] = (), phases: Iterable[Phase] = ()
) -> tuple[Cause, ...]:
    """Every finding that fails, warns or is in doubt, in exactly one cause; what passed is heard as a witness.

    In this order: what rests on a generator at fault; of one target, deaths that are proven to be one (``proof``), and
    findings whose moments all begin or end at those of something that died, the nearest, or each at the other's (within
    two minutes or a twentieth of the run, and too well for chance); those that follow an event that
    was announced or told; those within a phase that changed the load; findings of growth of one thing, with the
    process that owns a host's growth, and the kill for want of memory that it led to; doubts for the same reason.
    Worst first, then by what broke first.

    >>> from soakwatch_rules.rule import Mark, Window
    >>> def finding(rule, at_s):
    ...     mark = Mark(at_s * 10**9, None, "here")
    ...     window = Window(0, 86_400 * 10**9)
    ...     return Finding(rule, 1, Outcome.FAIL, "dut", "", "", window, "", "died", 9, marks=(mark,))
    >>> found = causes([finding("cpu_spike", 7230), finding("reboot", 7200), finding("level", 50_000)])
    >>> [(one.kind.value, one.findings) for one in found]
    [('incident', (1, 0)), ('finding', (2,))]
    """
    bench = Bench(findings, events, phases)
    told = [place for place, finding in enumerate(findings) if finding.outcome in TOLD]
    groups = Groups(len(findings))
    kinds: dict[int, CauseKind] = {}
    done: dict[int, tuple[Event, ...]] = {}
    loads: dict[int, Phase] = {}

    blamed = [place for place in told if findings[place].why is InconclusiveReason.GENERATOR]
    groups.join(blamed)
    kinds |= dict.fromkeys(blamed, CauseKind.GENERATOR)
    free = [place for place in told if place not in kinds]
    timed = [place for place in free if len(bench.moments[place]) and findings[place].why not in _NOTHING_SEEN]
    _join_moments(bench, groups, timed)
    _join_outages(bench, groups, free)
    _join_events(bench, groups, timed, done)
    _join_phases(bench, groups, [place for place in timed if place not in done], loads)
    owner = _join_growth(bench, groups, free)
    kinds |= dict.fromkeys(done, CauseKind.EVENT) | dict.fromkeys(loads, CauseKind.LOAD)

    alone = {group[0] for group in groups.joined(told) if len(group) == 1}
    unsure = [p for p in told if p in alone and findings[p].outcome is Outcome.INCONCLUSIVE and p not in kinds]
    for row in doubts(findings, unsure):
        groups.join(row.places)
        kinds |= dict.fromkeys(row.places, CauseKind.UNSETTLED)
    made = []
    heard: set[int] = set()
    for members in groups.joined(told):
        witnesses = _witnesses(bench, [p for p in members if p in timed], heard)
        heard.update(witnesses)
        at = next((p for p in members if p in done), None)
        phase = next((loads[p] for p in members if p in loads), None)
        group = Group(
            kind=_kind(bench, members, kinds),
            places=tuple(members),
            witnesses=witnesses,
            events=() if at is None else done[at],
            phase=phase,
            owner=next((owner[p] for p in members if p in owner), None),
        )
        made.append(tell(bench, group))
    return tuple(sorted(made, key=lambda c: _rank(c, findings)))


def _rank(cause: Cause, findings: Sequence[Finding]) -> tuple[object, ...]:
    """Worst first; then what broke first, and behind that what has no moment."""
    first = findings[cause.leading]
    traits = traits_of(first.rule)
    return (
        _WORST.index(cause.outcome),
        cause.kind is CauseKind.UNSETTLED,
        not cause.timeline,
        _first_ns(cause, findings) if cause.timeline else -len(cause.findings),
        cause.kind is CauseKind.FINDING,
        (0, traits.rank) if traits.crash is not None else (1, 0),
        cause.target,
        first.rule,
        first.metric,
        first.object,
        cause.leading,
    )


def _first_ns(cause: Cause, findings: Sequence[Finding]) -> int:
    """When the first of its own moments was: its time line has those of others beside them."""
    own = (findings[place] for place in cause.findings if findings[place].outcome is cause.outcome)
    return min((mark.begin_ns for finding in own for mark in finding.marks), default=cause.begin_ns)


def _join_moments(bench: Bench, groups: Groups, timed: Sequence[int]) -> None:
    by_target: dict[str, list[int]] = {}
    for place in timed:
        by_target.setdefault(bench.findings[place].target, []).append(place)
    for places in by_target.values():
        dead = [p for p in places if bench.traits[p].crash is not None]
        for one, other in combinations(dead, 2):
            if bench.together(one, other):
                groups.join((one, other))
        rest = (pair for pair in combinations(places, 2) if not (pair[0] in dead and pair[1] in dead))
        for one, other in sorted(rest, key=lambda pair: bench.apart_ns(*pair)):
            led = {groups.root(p) for p in dead}
            if (
                groups.root(one) != groups.root(other)
                and not {groups.root(one), groups.root(other)} <= led  # of two deaths it would make one
                and bench.together(one, other)
            ):
                groups.join((one, other))
        _join_covered(bench, groups, places)


def _join_outages(bench: Bench, groups: Groups, free: Sequence[int]) -> None:
    """A standstill is told once, however long it lasts: what begins with it or lies in it belongs to it."""
    marks = {p: bench.findings[p].marks for p in free if not bench.traits[p].trend}
    for one in free:
        first = bench.findings[one]
        if not (bench.traits[one].standstill or first.numbers.get(STOPS, 0.0) > 0):
            continue
        spans = [(m.begin_ns - bench.slack_ns, (m.end_ns or m.begin_ns) + bench.slack_ns) for m in first.marks]
        for other, own in marks.items():
            if not own or other == one or bench.findings[other].target != first.target:
                continue
            if all(
                any(
                    abs(m.begin_ns - b - bench.slack_ns) <= bench.slack_ns
                    or (b <= m.begin_ns and (m.end_ns or m.begin_ns) <= e)
                    for b, e in spans
                )
                for m in own
            ):
                groups.join((one, other))


def _join_covered(bench: Bench, groups: Groups, places: Sequence[int]) -> None:
    """What lies at the moments of several crashes, but of no single one, belongs to the first of them."""
    dead = [p for p in places if bench.traits[p].leads and not bench.aside(p)]
    if not dead:
        return
    when = bench.at(dead)
    by_time = sorted(dead, key=lambda p: (bench.moments[p].begin[0], p))
    for place in places:
        free = not bench.traits[place].leads and groups.root(place) not in {groups.root(p) for p in dead}
        if free and bench.witness(place, when) and bench.after(place, dead):
            first = bench.moments[place].begin[0]
            last = bench.moments[place].end[0]
            near = [
                p
                for p in by_time
                if any(bench.moments[p].touched(edge, edge, bench.slack_ns) for edge in (first, last))
            ]
            groups.join((place, *near[:1]))


def _join_events(bench: Bench, groups: Groups, timed: Sequence[int], done: dict[int, tuple[Event, ...]]) -> None:
    """Groups all of whose moments follow events that were told; those of the same first event are one."""
    first_of: dict[int, int] = {}
    for members in groups.joined(timed):
        targets = {"", *(bench.findings[p].target for p in members)}
        found = bench.at(members)
        near = [(n, e) for n, e in enumerate(bench.done) if e.target in targets and _touches(bench, e, members)]
        if near and bench.follows(found, [bench.stretch(event) for _, event in near]):
            done |= dict.fromkeys(members, tuple(event for _, event in near))
            groups.join((first_of.setdefault(near[0][0], members[0]), *members))


def _touches(bench: Bench, event: Event, members: Sequence[int]) -> bool:
    begin, end = bench.stretch(event)
    return any(bench.moments[p].touched(begin, end + bench.slack_ns, bench.slack_ns // 10) for p in members)


def _join_phases(bench: Bench, groups: Groups, timed: Sequence[int], loads: dict[int, Phase]) -> None:
    """What shows only while the load is changed on purpose; a crash is not the load's, whenever it comes."""
    first_of: dict[tuple[int, str], int] = {}
    for members in groups.joined(timed):
        if any(bench.traits[p].crash is not None for p in members) or _silent(bench, members):
            continue
        found = bench.at(members)
        for number, phase in enumerate(bench.phases):
            stretch = (phase.window.begin_ns, phase.window.end_ns)
            if bench.follows(found, [stretch]):
                loads |= dict.fromkeys(members, phase)
                groups.join((first_of.setdefault((number, bench.findings[members[0]].target), members[0]), *members))
                break


def _join_growth(bench: Bench, groups: Groups, free: Sequence[int]) -> dict[int, Owner]:
    """Growth of one thing; the owner of a host's growth with it; a kill for want of memory with what grew."""
    findings = bench.findings
    against = [p for p in free if findings[p].outcome is not Outcome.INCONCLUSIVE]
    found, owner = things(findings, against), owners(findings)
    owned: dict[int, Owner] = {}
    for places in found.values():
        groups.join(places)
    full = {_series(findings[p]): p for p in against if bench.traits[p].fills}
    series = full | {_series(findings[p]): p for places in found.values() for p in places}
    size = Counter(groups.root(place) for place in free)
    for place in against:
        if size[groups.root(place)] == 1 and thing_of(findings[place]) is None and _series(findings[place]) in series:
            groups.join((series[_series(findings[place])], place))
    for target, one in owner.items():
        host = found.get(("memory", target), [])
        groups.join([*host, *found.get(("process", target, one.process), [])])
        owned |= dict.fromkeys(host, one)
    for place in against:
        if bench.traits[place].crash is Crash.MEMORY:
            for thing, places in found.items():
                if thing[1] == findings[place].target and (
                    (thing[0] == "memory" and not _of_group(findings[place])) or _killed(bench, groups, place, thing)
                ):
                    groups.join((place, *places))
    return owned


def _of_group(finding: Finding) -> bool:
    """Whether all that was killed had used up the memory of its own control group: the host had some left."""
    return bool(finding.marks) and all(mark.kind is MarkKind.GROUP_KILL for mark in finding.marks)


def _killed(bench: Bench, groups: Groups, place: int, thing: tuple[str, ...]) -> bool:
    """Whether a kill for want of memory hit this process: the kernel names it, or it restarted then."""
    if thing[0] != "process":
        return False
    if any(f"({thing[2]})" in mark.text for mark in bench.findings[place].marks):
        return True
    mates = [
        f
        for p, f in enumerate(bench.findings)
        if bench.traits[p].crash is Crash.PROCESS and groups.root(p) == groups.root(place)
    ]
    return any(thing[2] in {part.rpartition("=")[2] for part in f.object.split(",")} for f in mates)


def _series(finding: Finding) -> tuple[str, str, str]:
    return finding.target, finding.metric, finding.object


def _witnesses(bench: Bench, timed: Sequence[int], heard: set[int]) -> tuple[int, ...]:
    """What passed and yet points at nothing but these moments: an announced restart, a gap that is explained."""
    if not timed:
        return ()
    when, targets = bench.at(timed), {bench.findings[p].target for p in timed}
    return tuple(
        place
        for place, finding in enumerate(bench.findings)
        if finding.outcome is Outcome.PASS
        and finding.target in targets
        and place not in heard
        and bench.witness(place, when)
    )


def _silent(bench: Bench, members: Sequence[int]) -> bool:
    return any(bench.traits[p].availability_only and not bench.traits[p].generator for p in members)


def _kind(bench: Bench, members: Sequence[int], kinds: dict[int, CauseKind]) -> CauseKind:
    told = {kinds[p] for p in members if p in kinds}
    for kind in (CauseKind.GENERATOR, CauseKind.EVENT):
        if kind in told:
            return kind
    own = [bench.findings[p] for p in members]
    if any(bench.traits[p].leads for p in members) and any(f.marks for f in own):
        return CauseKind.INCIDENT
    if CauseKind.LOAD in told:
        return CauseKind.LOAD
    if any(thing_of(f) for f in own) and CauseKind.UNSETTLED not in told:
        return CauseKind.GROWTH
    if len(members) == 1:
        return CauseKind.FINDING
    return CauseKind.UNSETTLED if CauseKind.UNSETTLED in told else CauseKind.INCIDENT
