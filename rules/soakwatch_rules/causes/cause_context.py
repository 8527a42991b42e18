"""The data for grouping findings: their moments, and how close together counts as together in this run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from soakwatch_model.event import Event
from soakwatch_model.event_catalogue import event_kind
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.window import Phase
from soakwatch_rules.causes.moments import Moments, merged, moments, moments_of, slack_of
from soakwatch_rules.causes.proof import pids_of, proven
from soakwatch_rules.traits import Crash, Marks, traits_of

REPORTED = frozenset({Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.WARN})
"""Outcomes that causes report; a passing finding only adds its moments."""
_SOON_NS, _BOOTED_NS = 30 * 10**9, 60 * 10**9
LIKELY = 0.5
"""Moments that coincide by chance with a higher probability than this are not taken to belong together."""
_CHANGED_LOAD = frozenset({"ramp", "stress", "spike"})


class CauseContext:
    """Findings with their moments; ``length_ns`` is the part of the run that they judge."""

    def __init__(self, findings: Sequence[Finding], events: Iterable[Event], phases: Iterable[Phase]) -> None:
        self.findings = findings
        self.traits = [traits_of(finding.rule) for finding in findings]
        begins = [f.window.begin_ns for f in findings]
        self.begin_ns = min(begins, default=0)
        self.end_ns = max((f.window.end_ns for f in findings), default=0)
        self.length_ns = self.end_ns - self.begin_ns
        self.slack_ns = slack_of(self.length_ns)
        self.early_ns = self.slack_ns // 10  # an effect seen between two readings may seem to precede its cause
        self.moments = [moments_of(f) for f in findings]
        self.outcomes = _outcomes(findings)
        self.partial = [
            index
            for index, traits in enumerate(self.traits)
            if (traits.marks is Marks.WITNESSES or traits.leads is not None) and len(self.moments[index]) > 1
        ]
        ordered = sorted(events, key=lambda e: (e.begin_ns, e.target, e.kind, e.object))
        self.seen = [event for event in ordered if not event_kind(event.kind).explains]
        self.done = [event for event in ordered if event_kind(event.kind).explains or event.expect]
        self.pids = pids_of(self.seen)
        self.phases = [
            phase
            for phase in phases
            if phase.name in _CHANGED_LOAD and phase.window.end_ns - phase.window.begin_ns <= LIKELY * self.length_ns
        ]

    def together(self, first: int, other: int) -> bool:
        """Whether the moments of two findings coincide beyond chance.

        A death explains whatever lies at its moments, unless that began well before, although it has other moments too.
        If neither is a death, each must lie at the other's moments, or what also happened elsewhere would be explained
        away. Two deaths are one happening only if that is proven.
        """
        if all(self.traits[index].crash is not None for index in (first, other)):
            return self.proven(first, other)
        if any(self.aside(index) for index in (first, other)):
            return False
        own, others = self.moments[first], self.moments[other]
        leads = [self.traits[index].leads is not None for index in (first, other)]
        if leads[0] == leads[1]:
            within, back = self._falls(own, others), self._falls(others, own)
            return (within or back) if leads[0] else (within and back)
        leader, index = (first, other) if leads[0] else (other, first)
        return self.after(index, (leader,)) and self._falls(self.moments[index], self.moments[leader])

    def after(self, index: int, leaders: Iterable[int]) -> bool:
        """Whether each moment of a finding may follow from a death among ``leaders``: it began with it or soon
        after."""
        early_ns = self.unsure_ns(index)
        rooms = [(leader, self._room(leader, index)) for leader in leaders]
        return all(
            any(
                since - early_ns <= begin <= until + room_ns
                for leader, room_ns in rooms
                for since, until in zip(self.moments[leader].begin, self.moments[leader].end, strict=True)
            )
            for begin in self.moments[index].begin
        )

    def _room(self, leader: int, index: int) -> int:
        """How long after a death its effects may begin in ns: longer for a device, which has to boot."""
        leads = self.traits[leader].leads
        soon_ns = _BOOTED_NS if leads is not None and leads.whole_device else _SOON_NS
        return min(self.slack_ns, soon_ns + self.unsure_ns(index))

    def apart_ns(self, first: int, other: int) -> int:
        """The distance of the first moments of two findings in ns."""
        return abs(self.moments[first].begin[0] - self.moments[other].begin[0])

    def aside(self, index: int) -> bool:
        """Whether it is a kernel warning about another tenant, which neither explains nor is explained here."""
        return self.traits[index].crash is Crash.KERNEL and self.findings[index].outcome is Outcome.WARN

    def proven(self, first: int, other: int) -> bool:
        """Whether two deaths are proven to be one happening."""
        pair = (self.findings[first], self.findings[other])
        return proven(*pair, self.pids, self.slack_ns, self.early_ns)

    def unsure_ns(self, index: int) -> int:
        """How much earlier than in truth a finding may seem to begin: two of its readings, in ns."""
        finding = self.findings[index]
        apart_ns = (finding.window.end_ns - finding.window.begin_ns) // max(1, finding.samples)
        return min(self.slack_ns, max(self.early_ns, 2 * apart_ns))

    def _falls(self, inner: Moments, outer: Moments) -> bool:
        if not inner.within(outer, self.slack_ns):
            return False
        return inner.chance(outer, self.slack_ns, self.length_ns, LIKELY) <= LIKELY

    def at(self, indexes: Iterable[int]) -> Moments:
        """The moments of several findings, merged where they lie together."""
        return merged(
            (stretch for p in indexes for stretch in zip(self.moments[p].begin, self.moments[p].end, strict=True)),
            self.slack_ns,
        )

    def witness(self, index: int, outer: Moments) -> bool:
        """Whether all moments of a finding lie at ``outer``, beyond chance."""
        return self._falls(self.moments[index], outer)

    def stretch(self, event: Event) -> tuple[int, int]:
        """How long an event may have consequences: to its deadline, else its end, else only at its begin."""
        last_ns = next((e for e in (event.deadline_ns, event.end_ns) if e is not None), event.begin_ns)
        return event.begin_ns, max(event.begin_ns, last_ns)

    def follows(self, effects: Moments, stretches: Sequence[tuple[int, int]]) -> bool:
        """Whether each moment begins in one of these stretches or soon after, beyond chance."""
        room = merged(((begin, end + self.slack_ns) for begin, end in stretches), 0)
        begins = moments((begin, begin) for begin in effects.begin)
        return begins.within(room, self.early_ns) and self.chance_after(effects, stretches) <= LIKELY

    def chance_after(self, effects: Moments, stretches: Sequence[tuple[int, int]]) -> float:
        """The probability that as many random moments of the run would all begin in these stretches."""
        room = merged(((begin, end + self.slack_ns) for begin, end in stretches), 0)
        share = sum(e - b + 2 * self.early_ns for b, e in zip(room.begin, room.end, strict=True))
        return 1.0 if self.length_ns <= 0 else min(1.0, share / self.length_ns) ** len(effects)


def _outcomes(findings: Iterable[Finding]) -> dict[tuple[int, str, str], Outcome]:
    """The worst outcome among a rule's findings with the same mark, keyed by the mark's begin, the rule and its
    text."""
    worst: dict[tuple[int, str, str], Outcome] = {}
    for finding in findings:
        for mark in finding.marks:
            key = (mark.begin_ns, finding.rule, mark.text)
            worst[key] = min(worst.get(key, finding.outcome), finding.outcome, key=lambda outcome: outcome.rank)
    return worst
