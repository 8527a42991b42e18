"""Levels: samples above a limit that the plan sets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal, NamedTuple

from soakwatch_model.case import Case
from soakwatch_model.finding import Finding, InconclusiveReason, Mark
from soakwatch_model.label import label
from soakwatch_model.roles import DUT
from soakwatch_model.series import Series
from soakwatch_rules.finding_draft import draft, faults, half_unread
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.sampling import cadence
from soakwatch_rules.series_lives import lives
from soakwatch_rules.stats.hysteresis import n_of_last_m
from soakwatch_rules.traits import Guide, Limit, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, duration, first_few, moment, quantity
from soakwatch_rules.wording.series_names import name_of

_MAX_MARKS = 100
_LATENCY: Final = "load.latency"
_JUDGED_QUANTILES = frozenset({None, "p99", "0.99", "99"})


class _Limited(NamedTuple):
    """What a parameter limits: a metric, its equivalent on other devices, and whether the limit is a share of the
    maximum that the device states."""

    metric: str
    of_ceiling: bool = False
    other: str = ""


_LIMITS: Final = {
    "temperature": _Limited("system.temperature"),
    "cpu": _Limited("system.cpu.utilization"),
    "core": _Limited("system.cpu.core.utilization"),
    "memory": _Limited("system.memory.usage", of_ceiling=True),
    "swap": _Limited("system.memory.swap.usage", of_ceiling=True),
    "disk": _Limited("system.filesystem.usage", of_ceiling=True),
    "inodes": _Limited("system.filesystem.inodes.usage", of_ceiling=True),
    "connections": _Limited("system.conntrack.count", of_ceiling=True, other="system.sessions"),
    "queue": _Limited("queue.depth", of_ceiling=True),
    "process_memory": _Limited("process.memory.usage"),
    "descriptors": _Limited("process.open_files"),
    "threads": _Limited("process.threads"),
    "processes": _Limited("system.processes"),
    "sockets": _Limited("system.sockets.usage"),
    "latency": _Limited(_LATENCY),
}


@dataclass(frozen=True, slots=True)
class Level(Parameters):
    """Fails if a value went above a limit of the plan and stayed there: N of the last M samples.

    The limit is exceeded from the first of ``needed`` among the last ``of`` samples that are at or above it, until the
    first below ``leave`` times the limit; then the count starts again. Each parameter named after a quantity is a
    limit; 0, the default, means none. Without any limit the rule is not applicable: an absolute limit is the user's
    choice.

    ``memory``, ``swap``, ``disk``, ``inodes``, ``connections`` and ``queue`` are shares of the maximum that the device
    states (its memory, its table size) and cannot be judged if it states none. ``connections`` means the connection
    table of Linux, or a device's session tables. The others are in the unit of their metric. ``latency`` limits the
    99th percentile that the generators reported. A count never spans a restart of the object.

    How often wrong: on ten million readings of white noise with deviation s, a limit 2·s above the level was exceeded
    by single readings in 2.3 %, by 3 of 5 once in 15 000 readings, at 2.5·s once in 670 000, at 3·s never. Known
    weaknesses: correlated readings vote alike (AR .9: once in 320 readings at 2·s, against once in 110 without votes);
    an exceedance of fewer than N readings passes; a limit does not consider load or time.

    Neighbours: ``growth`` says where a level goes, ``cpu_spike`` and ``cpu_saturation`` judge CPU without a limit.

    Parameters: ``needed``, ``of``, ``leave``, and a limit each (below).

    >>> import numpy as np
    >>> from soakwatch_model.case import Case
    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import readings
    >>> hot = readings("system.temperature", np.array([60.0] * 50 + [85.0] * 4 + [60.0] * 46), 10.0)
    >>> case = Case("dut", "", Window(0, 1000 * 10**9), (hot,))
    >>> for rule in (Level(), Level(temperature=90), Level(temperature=80)):
    ...     finding = rule.judge(case)[0]
    ...     print(finding.outcome, "-", finding.reason.partition(":")[0])
    not applicable - no limit is set
    pass - never 3 of 5 samples at or above 90 °C; highest 85 °C
    fail - 1 time above 80 °C

    References: O. H. Schmitt, A thermionic trigger, J. Sci. Instrum. 15, 1938 (two thresholds); IEC 62682
    (alarm deadband and delay); RFC 2819 (rising and falling thresholds of RMON, which has no votes: one reading is an
    alarm).
    """

    name: ClassVar[str] = "level"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "a sample stayed above the limit that the plan sets"
    metrics: ClassVar[tuple[str, ...]] = tuple(
        metric for each in _LIMITS.values() for metric in (each.metric, each.other) if metric and metric != _LATENCY
    )
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec("a limit in the plan, M samples, half of those expected")

    order: ClassVar[tuple[str, ...]] = ("needed <= of",)
    needed: float = parameter(
        3.0, "{reading}", "N: samples at or above the limit", "one may be a glitch", within="[1, inf)"
    )
    of: float = parameter(
        5.0, "{reading}", "M: of the last M samples", "one sample below does not clear it", within="[1, inf)"
    )
    leave: float = parameter(
        0.95, "1", "share of the limit below which it ends", "a noisy plateau counts once", within="(0, 1]"
    )
    temperature: float = parameter(0.0, "Cel", "limit of each sensor; 0 = none")
    cpu: float = parameter(0.0, "1", "limit of the utilisation of all cores; 0 = none", within="[0, 1]")
    core: float = parameter(0.0, "1", "limit of the utilisation of each core; 0 = none", within="[0, 1]")
    memory: float = parameter(0.0, "1", "limit of the used memory, as a share of the total; 0 = none", within="[0, 1]")
    swap: float = parameter(0.0, "1", "limit of the used swap, as a share of the total; 0 = none", within="[0, 1]")
    disk: float = parameter(0.0, "1", "limit of each filesystem, as a share of its size; 0 = none", within="[0, 1]")
    inodes: float = parameter(
        0.0, "1", "limit of the inodes of each filesystem, as a share of all it has; 0 = none", within="[0, 1]"
    )
    connections: float = parameter(
        0.0,
        "1",
        "limit of connection and session tables, as a share of their size; 0 = none",
        within="[0, 1]",
    )
    queue: float = parameter(0.0, "1", "limit of each queue, as a share of its size; 0 = none", within="[0, 1]")
    process_memory: float = parameter(0.0, "By", "limit of the resident memory of each process; 0 = none")
    descriptors: float = parameter(0.0, "{descriptor}", "limit of the open files of each process; 0 = none")
    threads: float = parameter(0.0, "{thread}", "limit of the threads of each process; 0 = none")
    processes: float = parameter(0.0, "{process}", "limit of the number of processes; 0 = none")
    sockets: float = parameter(0.0, "{socket}", "limit of the sockets of each protocol; 0 = none")
    latency: float = parameter(0.0, "s", "limit of the 99th percentile of the load's latency; 0 = none")

    @property
    def metrics_read(self) -> tuple[str, ...]:
        """The metrics that have a limit; the others need not be read."""
        limits = [_LIMITS[name] for name, value in self._limits() if value and name != "latency"]
        return tuple(metric for limited in limits for metric in (limited.metric, limited.other) if metric)

    def definition(self) -> str:
        texts = [f"{name} {value:g}" for name, value in self._limits() if value]
        return (
            f"exceeded if {self.needed:g} of the last {self.of:g} samples are at or above the limit, until one is "
            f"below {100 * self.leave:g} % of it; {', '.join(texts) or 'no limit is set'}"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a series that has a limit."""
        findings: list[Finding] = []
        limits = [(name, value) for name, value in self._limits() if value]
        for name, value in limits:
            findings.extend(self._of_limit(case, name, value))
        if findings:
            return tuple(findings)
        if limits:
            return ()  # the only limit is on the load's latency, which is judged for devices under test
        reason = "no limit is set: give one in the plan, such as `level: {temperature: 80}`"
        return (draft(self, case).not_applicable(reason),)

    def _limits(self) -> Iterator[tuple[str, float]]:
        for name in _LIMITS:
            value: float = getattr(self, name)
            yield name, value

    def _of_limit(self, case: Case, name: str, value: float) -> Iterator[Finding]:
        limited = _LIMITS[name]
        if limited.metric == _LATENCY:
            if case.role != DUT:
                return
            read = tuple(
                s for s in case.load if s.metric == _LATENCY and label(s.object, "quantile") in _JUDGED_QUANTILES
            )
        else:
            read = tuple(s for s in case.series if s.metric in {limited.metric, limited.other})
            if limited.other:
                read = tuple(s for s in read if s.trait.ceiling) or read  # prefer tables that state their size
        if not read:
            finding = replace(draft(self, case), metric=limited.metric)
            reason = f"{name} has a limit, but {limited.metric} was not polled"
            if case.faults:
                reason += f": {faults(case.faults)}"
            settle = f"poll {limited.metric}, or remove the limit of {name} from the plan"
            yield finding.undecided(reason, InconclusiveReason.UNREAD, settle)
        for series in read:
            yield self._of(case, series, name, value, of_ceiling=limited.of_ceiling)

    def _of(self, case: Case, series: Series, name: str, value: float, *, of_ceiling: bool) -> Finding:
        series = series.between(case.window.begin_ns, case.window.end_ns).finite()
        finding, unit = replace(draft(self, case, series), unit=series.trait.unit), series.trait.unit
        ceiling = series.trait.ceiling
        if of_ceiling and (ceiling is None or not 0 < ceiling < math.inf):
            reason = f"{name}: the limit is a share, but the device does not state the maximum of {series.metric}"
            return finding.undecided(
                reason, InconclusiveReason.NO_REFERENCE, "poll the metric that states the maximum, or give no share"
            )
        limit = value * ceiling if of_ceiling and ceiling is not None else value
        if not 0 < limit < math.inf:
            return finding.undecided(
                f"{name}: the limit is not a finite number", InconclusiveReason.NO_REFERENCE, "correct the limit"
            )
        n, apart = len(series), cadence(series)
        needed, of = math.ceil(self.needed), math.ceil(self.of)
        finding = replace(finding, limit=limit)
        if not n:
            return finding.undecided(
                f"no samples of {name_of(series)}", InconclusiveReason.TOO_FEW, f"needs {of} samples"
            )
        spans: list[Mark] = []
        number, above_s, highest = 0, 0.0, float(series.values.max())
        # Readings before and after a restart do not count together.
        for life in lives(series, case.window, case.events):
            reading, positions = life.series.values, life.series.time_ns
            for first, _, close in n_of_last_m(reading, limit, self.leave * limit, needed, of):
                number += 1
                above_s += (int(positions[close - 1]) - int(positions[first])) * 1e-9 + (apart or 0.0)
                if len(spans) < _MAX_MARKS:
                    text = f"{quantity(float(reading[first:close].max()), unit)}, limit {quantity(limit, unit)}"
                    spans.append(Mark(int(positions[first]), int(positions[close - 1]), text))
        finding = replace(
            finding,
            measured=highest,
            marks=tuple(spans),
            smallest_detectable=None if apart is None else needed * apart,
            detectable_unit="" if apart is None else "s",
            numbers={"exceeded": float(number), "seconds": above_s, "highest": highest, "limit": limit},
        )
        shown = quantity(limit, unit)
        if number:
            times = first_few(
                [f"{moment(m.begin_ns)} for {duration(((m.end_ns or 0) - m.begin_ns) * 1e-9)}" for m in spans]
            )
            reason = f"{counted(number, 'time')} above {shown}: {times}; highest {quantity(highest, unit)}"
            return finding.fails(reason)
        if n < of:
            more = f"needs {counted(of - n, 'more sample')}"
            return finding.undecided(f"{counted(n, 'sample')}; {of} needed", InconclusiveReason.TOO_FEW, more)
        if unread := half_unread(finding, n, f"{shown} may have been exceeded"):
            return unread
        reason = f"never {needed} of {of} samples at or above {shown}; highest {quantity(highest, unit)}"
        return finding.passes(reason)


TRAITS: Final = Traits(
    words=RuleWords("a limit of the plan was exceeded", happened="{thing} on {target} exceeded a limit of the plan"),
    limit=Limit.PLAN,
    of_returned_load=True,
    guide=Guide(
        fails_when="Three of five samples are at or above the limit that the plan sets.",
        misses="What the plan sets no limit for.",
        change_with="level: {cpu: 80%, temperature: 75}",
        next_step=(
            "Decide whether the limit or the load is wrong; if neither is, treat it as a capacity that was reached."
        ),
    ),
)
