"""The catalogue of metrics: name, unit, kind, range, directions, words, figures, and where each is shown.

Names follow OpenTelemetry's semantic conventions, or their style if there is none; units are UCUM (``By``, ``s``, ``1``
= a ratio, ``{packet}``). It is the only place that rules, reports, dashboards, figures and sinks take this from. A
value outside its range is refused; a utilisation that exceeds it by at most ``SLACK`` is read as the limit, because a
saturated container reads 100.06 to 101.2 %: its CPU time and clock are not read at the same moment.
"""

from __future__ import annotations

import math
from functools import cache

from soakwatch_model.flow import WHOLE
from soakwatch_model.metric_device import DEVICE
from soakwatch_model.metric_entry import COUNTER, DOWN, GAUGE, OWN, STATE, UP, Metric, entry
from soakwatch_model.metric_hardware import HARDWARE
from soakwatch_model.metric_host import HOST
from soakwatch_model.metric_load import LOAD
from soakwatch_model.metric_process import PROCESSES
from soakwatch_model.shown import MONITOR_CPU, MONITOR_LAG, MONITOR_MEMORY, Shown

__all__ = [
    "BY_NAME",
    "CATALOGUE",
    "COUNTER",
    "DOWN",
    "GAUGE",
    "SLACK",
    "STATE",
    "UP",
    "Metric",
    "clipped",
    "fault_of",
    "flows",
    "slack_of",
]

SLACK = 0.05
"""How far a utilisation may exceed its range: 105 % is read as 100 %, 106 % is a fault."""
ROUNDED = 0.001
"""The same for other shares, such as a loss: rounding of 100 %."""

CATALOGUE: tuple[Metric, ...] = (
    *HOST,
    *PROCESSES,
    *LOAD,
    *DEVICE,
    *HARDWARE,
    # --- the monitor itself --------------------------------------------------------------------------------
    entry("monitor.cpu.time", "s", COUNTER, "CPU time of the collector", shown=Shown(MONITOR_CPU), unjudged=OWN),
    entry(
        "monitor.memory.usage",
        "By",
        GAUGE,
        "resident memory of the collector",
        growth=UP,
        quantum=4096,
        words="memory of the monitor",
        shown=Shown(MONITOR_MEMORY),
    ),
    entry(
        "monitor.open_files",
        "{descriptor}",
        GAUGE,
        "open descriptors of the collector",
        growth=UP,
        quantum=1,
        words="number of open files of the monitor",
    ),
    entry(
        "monitor.threads",
        "{thread}",
        GAUGE,
        "threads of the collector",
        growth=UP,
        quantum=1,
        words="number of threads of the monitor",
    ),
    entry(
        "monitor.loop.lag",
        "s",
        GAUGE,
        "how late the collector's event loop ran at worst since the poll before",
        shown=Shown(MONITOR_LAG),
        unjudged=OWN,
    ),
    entry("monitor.record.size", "By", GAUGE, "bytes of the record on disk", unjudged=OWN),
    entry("monitor.disk.free", "By", GAUGE, "free space where the record lies", growth=None, unjudged=OWN),
    entry("monitor.polls", "{poll}", COUNTER, "polls by how they ended", "outcome", unjudged=OWN),
    entry(
        "monitor.sink.lag",
        "s",
        GAUGE,
        "age of the oldest sample that a sink has not written yet",
        "sink",
        shown=Shown(MONITOR_LAG),
        unjudged=OWN,
    ),
    entry(
        "monitor.sink.backlog", "{poll}", GAUGE, "recorded polls that a sink has not written yet", "sink", unjudged=OWN
    ),
    entry("monitor.sink.written", "{line}", COUNTER, "lines that a sink has written", "sink", unjudged=OWN),
    entry(
        "monitor.sink.rejected",
        "{line}",
        COUNTER,
        "lines that a sink's database refused for good",
        "sink",
        unjudged=OWN,
    ),
    entry(
        "monitor.clock.offset",
        "s",
        GAUGE,
        "wall clock less steady clock: a step is a jump here",
        low=None,
        unjudged=OWN,
    ),
)

BY_NAME: dict[str, Metric] = {metric.name: metric for metric in CATALOGUE}


@cache
def flows(side: str, *what: str, kind: str | None = None, scope: str = WHOLE) -> tuple[str, ...]:
    """The metrics of one side of the traffic, counters before rates; of some ``what``, or of all.

    >>> from soakwatch_model.flow import BACK, LOST, SENT
    >>> flows(SENT, "packets"), flows(BACK, "requests", kind=COUNTER)
    (('load.tx.packets', 'load.tx.packet.rate'), ('load.requests',))
    >>> flows(LOST)
    ('load.lost.packets', 'load.loss')
    """
    found = [
        metric
        for metric in CATALOGUE
        if metric.flow is not None and metric.flow.side == side and metric.flow.scope == scope
        if (not what or metric.flow.what in what) and kind in {None, metric.kind}
    ]
    return tuple(metric.name for metric in sorted(found, key=lambda metric: metric.kind != COUNTER))


_SLACKS = {
    metric.name: SLACK if metric.name.endswith("utilization") else ROUNDED
    for metric in CATALOGUE
    if metric.unit == "1" and metric.kind == GAUGE and metric.high == 1.0
}


def slack_of(name: str) -> float:
    """How far a reading may exceed its range and still be read as its limit: 0 except for shares.

    >>> slack_of("system.cpu.utilization"), slack_of("load.loss"), slack_of("system.memory.usage")
    (0.05, 0.001, 0.0)
    """
    return _SLACKS.get(name, 0.0)


def clipped(name: str, value: float) -> float:
    """The reading; if it is a share slightly outside its range, the limit.

    >>> clipped("system.cpu.utilization", 1.012), clipped("system.cpu.utilization", 1.2)
    (1.0, 1.2)
    >>> clipped("system.cpu.utilization", -0.0002), clipped("process.cpu.utilization", 1.012)
    (0.0, 1.012)
    """
    if 0.0 <= value <= 1.0 or name not in _SLACKS:
        return value
    slack = _SLACKS[name]
    if 1.0 < value <= 1.0 + slack:
        return 1.0
    return 0.0 if -slack <= value < 0.0 else value


def fault_of(name: str, value: float) -> str | None:
    """Why a reading is impossible, in one sentence; None if it is possible.

    >>> fault_of("system.cpu.utilization", 1.2)
    'system.cpu.utilization cannot be 1.2: the catalogue allows 0.0 to 1.0'
    >>> fault_of("system.cpu.utilization", 0.2) is None
    True
    """
    metric = BY_NAME.get(name)
    if metric is None:
        return f"{name} is not in the catalogue"
    if not math.isfinite(value):
        return f"{name} cannot be {value}: a reading is a finite number"
    low, high, slack = metric.low, metric.high, slack_of(name)
    if (low is not None and value < low - slack) or (high is not None and value > high + slack):
        bounds = f"{'no bound' if low is None else low} to {'no bound' if high is None else high}"
        return f"{name} cannot be {value}: the catalogue allows {bounds}"
    return None
