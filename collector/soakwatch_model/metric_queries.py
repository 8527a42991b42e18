"""Queries on the catalogue: the metrics of a topic or probe, those of the generic rules, their words."""

from __future__ import annotations

from functools import cache

from soakwatch_model.metric import BY_NAME, CATALOGUE, COUNTER, GAUGE, UP
from soakwatch_model.metric_entry import Metric

_LOST_UNITS = frozenset({"{packet}", "{datagram}", "{segment}", "{error}"})
_NOT_OF_DEVICES = ("monitor.", "source.", "load.", "reach.", "recorder.")


@cache
def turns_of(topic: str) -> tuple[tuple[str, ...], ...]:
    """The metrics of a topic by turn: the first turn that a target reports is drawn.

    >>> from soakwatch_model.shown import QUEUES
    >>> turns_of(QUEUES)
    (('queue.depth',), ('queue.usage',))
    """
    turns: dict[int, tuple[str, ...]] = {}
    for metric in CATALOGUE:
        if metric.shown is not None and metric.shown.topic == topic:
            turns[metric.shown.turn] = (*turns.get(metric.shown.turn, ()), metric.name)
    return tuple(turns[turn] for turn in sorted(turns))


@cache
def shown_in(topic: str) -> tuple[str, ...]:
    """All metrics of a topic, the preferred ones first."""
    return tuple(name for turn in turns_of(topic) for name in turn)


@cache
def usual_in(topic: str) -> tuple[str, ...]:
    """The metrics that may represent a topic where space is short, the preferred ones first.

    >>> from soakwatch_model.shown import CPU
    >>> usual_in(CPU)
    ('system.cpu.utilization', 'system.cpu.core.utilization', 'system.cpu.module.utilization')
    """
    return tuple(name for name in shown_in(topic) if (shown := BY_NAME[name].shown) is not None and shown.usual)


@cache
def drop_counters() -> tuple[str, ...]:
    """Counters of what was lost or damaged within a target.

    >>> "queue.dropped" in drop_counters(), "load.lost.packets" in drop_counters()
    (True, False)
    """
    return tuple(
        metric.name
        for metric in CATALOGUE
        if metric.kind == COUNTER
        and metric.growth == UP
        and metric.unit in _LOST_UNITS
        and not metric.name.startswith(_NOT_OF_DEVICES)
    )


@cache
def telling(what: str) -> tuple[str, ...]:
    """The metrics that say the same thing in different ways, in the catalogue's order.

    >>> from soakwatch_model.metric_entry import BOOT
    >>> telling(BOOT)
    ('system.boot.id', 'system.boot.time', 'system.uptime')
    """
    return tuple(metric.name for metric in CATALOGUE if metric.tells == what)


@cache
def brought_by(probe: str) -> tuple[str, ...]:
    """The metrics that an agent's probe reads.

    >>> brought_by("softnet")
    ('system.softnet.processed', 'system.softnet.dropped', 'system.softnet.squeezed')
    """
    return tuple(metric.name for metric in CATALOGUE if metric.probe == probe)


@cache
def trending(*outcomes: str) -> tuple[str, ...]:
    """The metrics that the generic rule ``trend`` judges; with ``outcomes``, those whose worst outcome is one of them.

    >>> "system.temperature" in trending(), "system.temperature" in trending("warn")
    (True, False)
    """
    return tuple(metric.name for metric in CATALOGUE if metric.trend and (not outcomes or metric.trend in outcomes))


@cache
def changing(*how: str, outcome: str = "") -> tuple[str, ...]:
    """The metrics that the generic rule ``change`` judges; with ``how``, only these signs of a fault, with ``outcome``
    only this worst outcome.

    >>> from soakwatch_model.metric_entry import GOES_OFF
    >>> changing(GOES_OFF)
    ('system.filesystem.writable', 'load.port.up', 'system.network.up')
    """
    changes = ((metric.name, metric.change) for metric in CATALOGUE)
    return tuple(
        name
        for name, change in changes
        if change is not None and (not how or change.how in how) and outcome in {"", change.outcome}
    )


@cache
def finite() -> tuple[str, ...]:
    """The metrics of what can be used up: those whose own limit is stated, and shares in use. A process's memory is not
    among them, since its limit is the machine's.

    >>> "system.conntrack.count" in finite(), "process.open_files" in finite(), "process.memory.usage" in finite()
    (True, True, False)
    """
    return tuple(metric.name for metric in CATALOGUE if metric.growth == UP and metric.kind == GAUGE and _ends(metric))


def _ends(metric: Metric) -> bool:
    if metric.ceiling is None:
        return metric.unit == "1" and metric.high == 1.0
    return metric.ceiling.partition(".")[0] == metric.name.partition(".")[0]


def bad_direction(name: str) -> str:
    """The direction in which a metric gets worse: ``up``, ``down``, or "" if there is none.

    >>> bad_direction("system.temperature"), bad_direction("system.memory.available"), bad_direction("system.disk.io")
    ('up', 'down', '')
    """
    entry = BY_NAME.get(name)
    return "" if entry is None else entry.growth or entry.worse or ""


def why_unjudged(name: str) -> str:
    """Why no rule judges a metric: its own reason, or that it is another's limit; "" if neither.

    >>> why_unjudged("system.sessions.limit"), why_unjudged("system.sessions")
    ('the limit of system.sessions', '')
    """
    own = BY_NAME[name].unjudged
    limited = [metric.name for metric in CATALOGUE if metric.ceiling == name]
    return own or (f"the limit of {limited[0]}" if limited else "")


def why_mild(name: str) -> str:
    """Why a generic rule only warns of a metric; "" if none does.

    >>> why_mild("system.softnet.squeezed"), why_mild("system.cpu.utilization")
    ('no packet is lost by it', '')
    """
    return BY_NAME[name].mild if name in BY_NAME else ""


def words_of(name: str) -> str:
    """What people call a metric; its name if it has no words or is unknown.

    >>> words_of("process.memory.usage"), words_of("system.interrupts")
    ('memory', 'system.interrupts')
    """
    entry = BY_NAME.get(name)
    return entry.words or name if entry is not None else name
