"""Saturation: a resource that reached its limit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal, NamedTuple

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.fact import Happened
from soakwatch_model.finding import Finding, Forecast, InconclusiveReason, Mark, Outcome
from soakwatch_model.label import label
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.finding_draft import absent, draft, half_unread
from soakwatch_rules.load.offered import OVERLOADS
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.sampling import cadence, unseen
from soakwatch_rules.spans import overlap_s
from soakwatch_rules.stats.hysteresis import stretches
from soakwatch_rules.stats.judge_trend import judge_trend
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.tally import Tally
from soakwatch_rules.stats.tolerance import Tolerance
from soakwatch_rules.traits import Family, Guide, Limit, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, duration, first_few, moment, quantity

_SHARE: Final = "1"
_FULL = 0.999  # share of the limit: nothing fits in any more
_FILES: Final = "mountpoint"
_FILES_FULL = 0.99  # share of a file system, whose last hundredth is reserved for the superuser
_STILL = 0.005  # share of the limit: what moves by less is constant
_BEGIN = 0.01  # share of the window: what is full by then was full from the start
_ROSE = 0.02  # share of the limit: rising by less from the first to the last quarter is no climb to forecast
_DAY_S = 86400.0
_MAX_VALUE = 1e150
_MAX_MARKS = 50


class _Resource(NamedTuple):
    """A limited resource: its name, the label that names one, what follows when it is full, and the failure counter.

    ``refuses``: reaching the limit fails by itself; otherwise only if the counter rose, else it warns. ``instead``:
    the metric that is judged in place of this one if it has a limit.
    """

    name: str
    key: str
    then: str
    refuses: bool = True
    counter: str = ""
    instead: str = ""


_THINGS: Final = {
    "system.sessions": _Resource("session table", "table", "new sessions are refused"),
    "system.sessions.utilization": _Resource(
        "session table", "table", "new sessions are refused", instead="system.sessions"
    ),
    "system.conntrack.count": _Resource("connection table", "", "new connections are dropped"),
    "queue.depth": _Resource("queue", "queue", "packets are dropped", counter="queue.dropped"),
    "process.open_files": _Resource("open files of process", "process", "no file or connection can be opened"),
    "system.filesystem.usage": _Resource("file system", _FILES, "nothing can be written"),
    "system.filesystem.inodes.usage": _Resource("inodes of file system", _FILES, "no file can be created"),
    "system.sockets.memory": _Resource("memory of sockets", "protocol", "packets are dropped"),
    "system.tcp.orphans": _Resource("orphaned TCP sockets", "", "connections that close are reset"),
    "system.memory.pool.usage": _Resource(
        "memory pool", "pool", "allocations fail", refuses=False, counter="system.memory.pool.failures"
    ),
    "system.memory.pool.utilization": _Resource(
        "memory pool",
        "pool",
        "allocations fail",
        refuses=False,
        counter="system.memory.pool.failures",
        instead="system.memory.pool.usage",
    ),
    "system.memory.swap.usage": _Resource("swap", "", "memory cannot be swapped out", refuses=False),
}
_EVEN: Final = 3.0  # the longest distance of readings is at most this many medians


@dataclass(frozen=True, slots=True)
class _Full:
    """A stretch at the limit: its shares of the limit, whether it began at the start, was planned, and what failed."""

    window: Window
    highest: float
    lowest: float
    first: bool
    to_end: bool
    planned: bool
    refused: str

    def mark(self) -> Mark:
        text = f"{100 * self.highest:.4g} % of the limit{' (planned)' if self.planned else ''}"
        text += f"; {self.refused}" if self.refused else ""
        return Mark(self.window.begin_ns, self.window.end_ns, text, planned=self.planned)


@dataclass(frozen=True, slots=True)
class Saturation(Parameters):
    """Fails if a resource reached its limit: session and connection tables, queues, open files, file systems and their
    inodes, memory of sockets, orphaned TCP sockets, memory pools, swap.

    The limit is the one that the device states (the ceiling of the catalogue); a share in use has 100 %. A resource
    is full from a sample of at least ``enter`` of the limit until one below ``leave``, for at least ``lasting`` and two
    samples.

    fail: a resource that refuses service became full during the run (tables, queues, open files; a file system at 99 %
    or still full at the end); such a resource at its very limit (99.9 %), even from the start; a pool or queue whose
    failure counter rose meanwhile; a pool at its very limit. warn: anything else, and what was full only in phases
    named stress or spike, or was announced. Not applicable: a file system that is full all the time and never changes
    (a read-only image), and a pool that is always full (built so).

    For a rising resource the rule forecasts when it reaches the limit (the trend engine of ``growth``, line through the
    blocks after the bend) and warns if that is less than ``ahead`` away. The memory of the machine is left to
    ``growth`` and ``oom_kill``, since caches use what is free.

    How often wrong: `soakwatch rules saturation` shows the measured table. Known weaknesses: a resource that is full
    for less than two samples is not seen; a device that evicts old entries keeps its table full on purpose; limits that
    the device does not state are unknown, and the last one stated counts.

    Neighbours: ``growth`` and ``queue_growth`` judge the way there, ``drops`` what a full queue lost, ``level`` a limit
    of the plan, ``cpu_saturation`` the CPU.

    Parameters: ``enter``, ``leave``, ``lasting``, ``ahead``.

    >>> from soakwatch_rules.signals import readings
    >>> half, full = np.full(1440, 3e6), np.full(1440, 3e6)
    >>> full[700:760] = 6e6
    >>> for value in (half, full):
    ...     series = readings("system.sessions", value, 60.0, object="table=sessions")
    ...     series = replace(series, trait=replace(series.trait, ceiling=6e6))
    ...     found = Saturation().judge(Case("dut", series.object, Window(0, 86400 * 10**9), (series,)))[0]
    ...     print(found.outcome, "-", found.reason)
    pass - session table: at most 50 % of 6 M sessions
    fail - session table: 100 % of 6 M sessions from 1970-01-01 11:40:00 UTC for 1 h: new sessions are refused

    References: RFC 2544 and RFC 3511 (a table at its limit is the capacity of a device); O. H. Schmitt, A thermionic
    trigger, J. Sci. Instrum. 15, 1938 (two thresholds); trend: see ``growth``.
    """

    name: ClassVar[str] = "saturation"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "a table, queue, pool or file system reached its limit"
    metrics: ClassVar[tuple[str, ...]] = (*_THINGS, *sorted({t.counter for t in _THINGS.values() if t.counter}))
    scope: ClassVar[Literal["object", "metric", "target"]] = "object"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec("a limit stated by the device, and two samples", live="recent")

    order: ClassVar[tuple[str, ...]] = ("leave <= enter",)
    enter: float = parameter(
        0.95, "1", "share of the limit from which it is full", "retries and bursts need the rest", within="(0, 1]"
    )
    leave: float = parameter(
        0.9, "1", "share below which it is no longer full", "a noisy plateau counts once", within="(0, 1]"
    )
    lasting: float = parameter(60.0, "s", "minimum duration", "queues exist for bursts")
    ahead: float = parameter(259200.0, "s", "forecast time to the limit below which it warns", "a long weekend")

    def definition(self) -> str:
        return (
            f"full from a sample at {100 * self.enter:g} % of the limit until one below {100 * self.leave:g} %, for "
            f"{duration(self.lasting)} and two samples at least; fails if it filled up in the run and refuses service; "
            f"a limit that will be reached within {duration(self.ahead)} warns"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding for each series that has a limit."""
        used = [s for s in case.series if s.metric in _THINGS]
        if not used:
            return () if case.series else (absent(self, case, "usage with a limit"),)
        bounded = {s.metric for s in used if _limit(s) is not None}
        reported = [s for s in used if s.metric in bounded and _THINGS[s.metric].instead not in bounded]
        if not reported:
            finding = draft(self, case, used[0])
            reason = f"the device states no limit of {used[0].metric}"
            return (finding.not_applicable(reason),)
        return tuple(self._of(case, series) for series in reported)

    def _of(self, case: Case, series: Series) -> Finding:
        resource, limit = _THINGS[series.metric], _limit(series) or 1.0
        series = series.between(case.window.begin_ns, case.window.end_ns).finite()
        finding, apart, name = replace(draft(self, case, series), unit=_SHARE), cadence(series), _name(series)
        if apart is None or len(series) < 2:
            reason = f"{name}: {counted(len(series), 'sample')}"
            return finding.undecided(reason, InconclusiveReason.TOO_FEW, "needs 2 samples")
        used = series.values / limit
        counter = next((s for s in case.series if s.metric == resource.counter), None)
        stretches = list(self._stretches(case, series, used, apart, counter))
        highest = float(used.max())
        finding = replace(
            finding,
            measured=min(highest, _MAX_VALUE),
            limit=self.enter,
            marks=tuple(f.mark() for f in stretches[:_MAX_MARKS]),
            smallest_detectable=max(self.lasting, 2 * apart),
            detectable_unit="s",
            forecast=None if stretches else self._forecast(case, series, limit),
            numbers={
                "stretches": float(sum(not f.planned for f in stretches)),
                "planned": float(sum(f.planned for f in stretches)),
                "seconds": sum(f.window.seconds for f in stretches),
                "highest": min(highest, _MAX_VALUE),
            },
        )
        if stretches:
            return self._conclude(finding, series, limit, stretches)
        most = f"{name}: at most {_percent(highest)} of {_amount(limit, series)}"
        # With few of the expected readings, a maximum proves nothing.
        if not _steady(series, case.window):
            full = int(np.count_nonzero(used >= self.enter))
            how = (
                f"full ({_amount(limit, series)})"
                if full
                else f"at most {_percent(highest)} of {_amount(limit, series)}"
            )
            which = f"{full} of the {len(series)}" if 0 < full < len(series) else f"all {len(series)}"
            of = f"{which} samples read ({finding.expected} expected, so not decided)"
            if unread := half_unread(finding, len(series), said=f"{name} was {how} in {of}"):
                return unread
        soon = finding.forecast
        if soon is not None and soon.after_s <= self.ahead:
            reason = f"{most} and rising: the limit is reached in {duration(soon.after_s)} at this rate"
            return finding.warns(reason)
        return finding.passes(most)

    def _stretches(
        self, case: Case, series: Series, used: np.ndarray, apart: float, counter: Series | None
    ) -> Iterator[_Full]:
        window, positions = case.window, series.time_ns
        apart_ns = round(apart * 1e9)
        begin_ns = window.begin_ns + max(round(_BEGIN * (window.end_ns - window.begin_ns)), 2 * apart_ns)
        count = Tally([counter]) if counter is not None and len(counter) > 1 else None
        planned_windows = [p.window for p in case.phases if p.name in OVERLOADS] + [
            Window(e.begin_ns, max(e.end_ns or e.begin_ns, e.deadline_ns or e.begin_ns))
            for e in case.events
            if e.expect
        ]
        for first, close in stretches(used, self.enter, self.leave).tolist():
            last_ns = min(int(positions[close - 1]) + apart_ns, window.end_ns)
            span = Window(int(positions[first]), last_ns)
            if close - first < 2 or span.seconds < self.lasting:
                continue
            refused = 0.0 if count is None or counter is None else count.between(span.begin_ns - apart_ns, last_ns)[0]
            yield _Full(
                span,
                float(used[first:close].max()),
                float(used[first:close].min()),
                first=first == 0 and span.begin_ns <= begin_ns,
                to_end=close == len(series),
                planned=any(overlap_s(span, [stop]) >= span.seconds - 2 * apart - 1e-6 for stop in planned_windows),
                refused=f"{counter.metric} counted {refused:,.0f}" if counter is not None and refused >= 1 else "",
            )

    def _conclude(self, finding: Finding, series: Series, limit: float, stretches: list[_Full]) -> Finding:
        resource, name = _THINGS[series.metric], _name(series)
        failing = [f for f in stretches if self._fails(series.metric, f)]
        reported = failing or [f for f in stretches if not f.planned] or stretches
        texts = first_few(
            [
                f"{_percent(f.highest)} of {_amount(limit, series)} from {moment(f.window.begin_ns)} "
                + (f"to the end, {duration(f.window.seconds)}" if f.to_end else f"for {duration(f.window.seconds)}")
                + (f" ({f.refused})" if f.refused else "")
                for f in reported
            ]
        )
        reason = f"{name}: {texts}"
        # "/var ran full" would be false for a file system with free space whose inodes are used up: name the resource
        happened = Happened(name, "was full" if reported[0].first else "ran full")
        finding = replace(finding, facts=(*finding.facts, happened))
        if failing:
            return finding.fails(f"{reason}: {resource.then}")
        if all(f.planned for f in stretches):
            return finding.warns(f"{reason}, during a planned overload or event")
        whole = stretches[0]
        if whole.first and whole.to_end and whole.highest - whole.lowest < _STILL:
            if resource.key == _FILES and whole.lowest >= _FILES_FULL:
                return finding.not_applicable(f"{reason}: constantly full, as a read-only image is")
            if not resource.refuses:
                return finding.not_applicable(f"{reason}: it never changed")
        tail = ", from the start of the run" if whole.first else ""
        return finding.warns(f"{reason}{tail}")

    def _fails(self, metric: str, full: _Full) -> bool:
        resource = _THINGS[metric]
        if full.planned:
            return False
        if full.refused:
            return True
        if resource.key == _FILES:
            got_there = not full.first or full.lowest < _FILES_FULL
            return (got_there and full.highest >= _FILES_FULL) or (not full.first and full.to_end)
        if resource.refuses:
            return not full.first or full.highest >= _FULL
        return resource.counter != "" and not full.first and full.highest >= _FULL

    def _forecast(self, case: Case, series: Series, limit: float) -> Forecast | None:
        """When the limit is reached at the present rate; None unless the resource certainly climbs."""
        value, quarter = series.values, len(series) // 4
        if quarter < 8 or float(median(value[-quarter:]) - median(value[:quarter])) < _ROSE * limit:
            return None
        begin_s = (case.window.begin_ns - int(series.time_ns[0])) * 1e-9
        end_s = begin_s + case.window.seconds
        trend = judge_trend(
            series.seconds,
            value,
            allowed=Tolerance(0.0, _DAY_S, _ROSE * limit / 2),
            span_s=(begin_s, end_s),
            quantum=series.trait.quantum,
        )
        line = trend.line
        if trend.outcome is not Outcome.FAIL or line is None or not line.low > 0:
            return None
        with np.errstate(all="ignore"):
            after, soon, late = (
                (limit - line.centre) / slope - (end_s - line.centre_s) for slope in (line.slope, line.high, line.low)
            )
        if not (0 < after < math.inf and math.isfinite(late) and late - soon <= 2 * after):
            return None
        return Forecast(f"{_name(series)} ({_amount(limit, series)})", after, max(0.0, soon), late)


def _steady(series: Series, window: Window) -> bool:
    """Whether it was read evenly over the window; a metric read less often than the polls misses no reading."""
    apart = np.diff(series.time_ns)
    return bool(apart.size) and not unseen(series.time_ns, window) and float(apart.max()) <= _EVEN * median(apart)


def _limit(series: Series) -> float | None:
    if series.trait.unit == _SHARE:
        return 1.0
    ceiling = series.trait.ceiling
    return ceiling if ceiling is not None and 0 < ceiling < _MAX_VALUE else None


def _name(series: Series) -> str:
    resource = _THINGS[series.metric]
    text = label(series.object, resource.key) if resource.key else None
    return (
        resource.name
        if text is None or f"{text} table" == resource.name or text == "sessions"
        else f"{resource.name} {text}"
    )


def _percent(share: float) -> str:
    return quantity(share, "1") if share < _FULL or share > 1 else "100 %"


def _amount(limit: float, series: Series) -> str:
    """The limit in words.

    >>> from soakwatch_rules.signals import readings
    >>> _amount(6e6, readings("system.sessions", np.zeros(0), 1.0))
    '6 M sessions'
    """
    if series.trait.unit == _SHARE:
        return "its size"
    return quantity(limit, series.trait.unit)


TRAITS: Final = Traits(
    words=RuleWords("a table, queue or file system ran full", happened="{thing} on {target} ran full"),
    limit=Limit.ROOM,
    family=Family.MEMORY,
    guide=Guide(
        fails_when=(
            "A table, pool, queue or file system fills up to 95 % of its limit in the run and refuses service; one "
            "that will be full within 72 h warns."
        ),
        misses="What states no limit.",
        change_with="saturation: {enter: 98%, ahead: 24h}",
        next_step=(
            "Find what fills it and how long its entries live; free it or raise the limit before the time in the "
            "forecast."
        ),
    ),
)
