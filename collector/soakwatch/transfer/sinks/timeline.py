"""State strips: which phase a run was in and the state of each rule, as points at which the state changed.

A state holds until the next point. Points are never deleted from a database, so a point that is no longer right (a live
finding that was withdrawn) is rewritten with the right state for its time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from soakwatch.record import RecordView
from soakwatch.transfer.sinks.annotations import RANK
from soakwatch.transfer.sinks.lines import key, line
from soakwatch.transfer.sinks.phases import Phases
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.window import Window
from soakwatch_rules.causes.moments import moments_of, since_ns

MEASUREMENT = "soakwatch_timeline"
OK, NO_PHASE, NO_READING, ENDED = "ok", "no phase", "no reading", "ended"
SILENCE_NS = 300 * 10**9
"""A run may be declared without readings only at multiples of this, which limits the number of points."""
VISIBLE_SHARE = 200
"""A single moment is drawn as this fraction of the run: 1/200."""

_STATES = {RANK[outcome]: outcome.value for outcome in (Outcome.FAIL, Outcome.WARN, Outcome.INCONCLUSIVE)}
Steps = Sequence[tuple[int, str]]
"""Ascending times (UTC ns), each with the state from then on."""
Times = tuple[int, int | None]
"""Begin and end (UTC ns); None: still open."""


@dataclass(slots=True)
class Timeline:
    """The strips of a run as lines; only those that changed since the last call."""

    run: str
    _written: dict[str, dict[int, str]] = field(default_factory=dict)
    _forgotten: dict[str, set[int]] = field(default_factory=dict)

    def lines(
        self,
        view: RecordView,
        phases: Phases,
        current: Sequence[Finding],
        gone: Sequence[Finding],
        *,
        goes_on: bool,
        planned_end_ns: int | None,
        silent_ns: int | None = None,
    ) -> list[bytes]:
        """``current`` are the newest findings, ``gone`` those that were withdrawn. While the run ``goes_on``, what
        reaches up to now has no end yet. ``silent_ns``: from then on the run is without readings if none arrives;
        written ahead, since a killed process writes nothing.

        Raises RecordError without a poll.
        """
        window = view.window()
        steps = phase_steps(phases, view.spans(), None if goes_on else window.end_ns)
        silences = silent_times(window.begin_ns, window.end_ns if silent_ns is None else silent_ns)
        if steps and goes_on and silent_ns is not None:
            steps = (*(step for step in steps if step[0] < silences[-1]), (silences[-1], NO_READING))
        fresh = self._fresh(
            key(MEASUREMENT, {"run": self.run, "kind": "phase", "row": "phase"}, {}),
            steps,
            {*silences, *(span.end_ns for span in view.spans()[:-1])},
        )
        length_ns = (planned_end_ns if goes_on and planned_end_ns is not None else window.end_ns) - window.begin_ns
        visible_ns = max(1, length_ns // VISIBLE_SHARE)
        open_from_ns = None if not goes_on else phases[-1][1] if phases else window.begin_ns
        rows: dict[tuple[str, str], set[tuple[float, Times]]] = {}
        edges: dict[tuple[str, str], set[int]] = {}
        for finding in (*current, *gone):
            if finding.outcome in RANK:
                edges.setdefault((finding.rule, finding.target), set()).update(_edges(finding, visible_ns))
        for finding in current:
            if finding.outcome not in RANK:
                continue
            row = rows.setdefault((finding.rule, finding.target), set())
            if finding.outcome is not Outcome.PASS:
                rank = RANK[finding.outcome]
                row.update((rank, part) for part in shown(finding, window, visible_ns, open_from_ns))
        begun = {begin_ns for _, begin_ns, _ in phases}
        for (rule, target), times in edges.items():
            head = key(MEASUREMENT, {"run": self.run, "kind": "rule", "row": rule, "target": target}, {})
            steps = rule_steps(rows.get((rule, target), ()), window.begin_ns)
            fresh += self._fresh(head, steps, {time for time in begun | times if time < window.end_ns})
        return fresh

    def forget(self) -> None:
        """Write everything again at the next call; remember the points written, to correct them."""
        for head, points in self._written.items():
            self._forgotten.setdefault(head, set()).update(points)
        self._written.clear()

    def _fresh(self, head: str, steps: Steps, checked: Iterable[int]) -> list[bytes]:
        """Lines of the steps, and of the state at ``checked`` times and at every point written before."""
        if not steps:
            return []
        before = self._written.get(head, {})
        times = [time_ns for time_ns, _ in steps]
        points = dict(steps)
        for time_ns in {*checked, *before, *self._forgotten.get(head, ())} - points.keys():
            index = bisect_right(times, time_ns)
            if index or time_ns in before:
                points[time_ns] = steps[max(0, index - 1)][1] if index else OK
        self._written[head] = points
        return [
            line(head, {"state": state}, time_ns)
            for time_ns, state in sorted(points.items())
            if before.get(time_ns) != state
        ]


def silent_times(begin_ns: int, end_ns: int) -> tuple[int, ...]:
    """The times at which a run may have been declared without readings, up to the first one after ``end_ns``.

    >>> [time // 10**9 for time in silent_times(100 * 10**9, 700 * 10**9)]
    [300, 600, 900]
    """
    first, last = begin_ns // SILENCE_NS + 1, end_ns // SILENCE_NS + 1
    return tuple(number * SILENCE_NS for number in range(first, last + 1))


def phase_steps(phases: Phases, spans: Sequence[Window], over_ns: int | None) -> Steps:
    """Each phase from its begin on; "no phase" in a gap between two; "ended" at the end of the last one.

    ``over_ns`` is the end of a complete record, None while the run goes on. If the monitor was killed, the phase ends
    with its last sign of life: ``spans`` are the lives of the monitor.

    >>> phase_steps([("soak", 0, 5), ("spike", 5, 7), ("soak", 9, None)], [Window(0, 12)], 15)
    ((0, 'soak'), (5, 'spike'), (7, 'no phase'), (9, 'soak'), (12, 'ended'))
    """
    steps: dict[int, str] = {}
    last_ns = spans[-1].end_ns if spans and over_ns is not None else over_ns
    for index, (name, begin_ns, end_ns) in enumerate(phases):
        steps[begin_ns] = name
        last = index == len(phases) - 1
        until_ns = last_ns if last and end_ns is None else end_ns
        if until_ns is not None:
            steps[max(until_ns, begin_ns + 1)] = ENDED if last and over_ns is not None else NO_PHASE
    return tuple(sorted(steps.items()))


def rule_steps(stretches: Iterable[tuple[float, Times]], begin_ns: int) -> Steps:
    """The worst state at each time, from the start of the run; "ok" outside of all stretches.

    >>> rule_steps([(1.0, (0, 9)), (3.0, (2, 4)), (2.0, (3, 6)), (2.0, (12, None))], 0)
    ((0, 'inconclusive'), (2, 'fail'), (4, 'warn'), (6, 'inconclusive'), (9, 'ok'), (12, 'warn'))
    """
    changes: dict[int, list[tuple[float, int]]] = {begin_ns: []}
    for rank, (low_ns, high_ns) in stretches:
        changes.setdefault(low_ns, []).append((rank, 1))
        if high_ns is not None:
            changes.setdefault(max(high_ns, low_ns + 1), []).append((rank, -1))
    active: Counter[float] = Counter()
    steps: list[tuple[int, str]] = []
    for time_ns in sorted(changes):
        for rank, more in changes[time_ns]:
            active[rank] += more
        state = next((_STATES[rank] for rank in sorted(_STATES, reverse=True) if active[rank] > 0), OK)
        if not steps or steps[-1][1] != state:
            steps.append((time_ns, state))
    return tuple(steps)


def shown(finding: Finding, run: Window, visible_ns: int, open_from_ns: int | None) -> list[Times]:
    """The intervals of a finding in its strip: at its marks, each long enough to be visible; without marks, its window.

    ``open_from_ns`` is the begin of the current phase: what reaches the newest reading there has no end yet.
    """
    window = finding.window
    moments = moments_of(finding)
    if not len(moments):
        moment_ns = since_ns(finding)
        begin_ns = window.begin_ns if moment_ns is None else moment_ns
        if open_from_ns is not None and window.end_ns > open_from_ns and window.end_ns > begin_ns:
            return [(begin_ns, None)]
        return [(begin_ns, max(window.end_ns, begin_ns + visible_ns))]
    longest = _ends(finding)
    parts: list[Times] = []
    for begin_ns, end_ns in zip(moments.begin, moments.end, strict=True):
        until_ns = max(end_ns, longest.get(begin_ns, end_ns))
        if open_from_ns is not None and until_ns >= window.end_ns > open_from_ns and until_ns > begin_ns:
            parts.append((begin_ns, None))
            continue
        from_ns = begin_ns if open_from_ns is not None else max(run.begin_ns, min(begin_ns, run.end_ns - visible_ns))
        parts.append((from_ns, max(until_ns, from_ns + visible_ns)))
    return parts


def _ends(finding: Finding) -> Mapping[int, int]:
    """The end of each mark by its begin; the latest one if several begin together."""
    ends: dict[int, int] = {}
    for mark in finding.marks:
        end_ns = mark.begin_ns if mark.end_ns is None else mark.end_ns
        ends[mark.begin_ns] = max(end_ns, ends.get(mark.begin_ns, end_ns))
    return ends


def _edges(finding: Finding, visible_ns: int) -> set[int]:
    """Times at which a point of a finding may have been written, also by a feed that was killed since."""
    times = {finding.window.begin_ns, finding.window.end_ns}
    for begin_ns, end_ns in _ends(finding).items():
        times |= {begin_ns, max(end_ns, begin_ns + visible_ns)}
    return times
