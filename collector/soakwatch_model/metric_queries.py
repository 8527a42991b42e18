"""What is asked of the catalogue: the metrics of a topic, those that runs are laid over one another by, their words."""

from __future__ import annotations

from functools import cache

from soakwatch_model.metric import BY_NAME, CATALOGUE, COUNTER, UP

_LOST_UNITS = frozenset({"{packet}", "{datagram}", "{segment}", "{error}"})
_NOT_OF_DEVICES = ("monitor.", "source.", "load.", "reach.", "recorder.")


@cache
def turns_of(topic: str) -> tuple[tuple[str, ...], ...]:
    """The metrics of a topic turn by turn: the first turn that a target reports is drawn.

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
    """Those metrics of a topic that may stand for it where little room is, the preferred ones first.

    >>> from soakwatch_model.shown import CPU
    >>> usual_in(CPU)
    ('system.cpu.utilization', 'system.cpu.core.utilization', 'system.cpu.module.utilization')
    """
    return tuple(name for name in shown_in(topic) if (shown := BY_NAME[name].shown) is not None and shown.usual)


@cache
def drop_counters() -> tuple[str, ...]:
    """Counters of what was lost or damaged on its way through a target: all that may only grow for the worse.

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
    """The metrics that say one thing in ways of their own, in the order of the catalogue.

    >>> from soakwatch_model.metric_entry import BOOT
    >>> telling(BOOT)
    ('system.boot.id', 'system.boot.time', 'system.uptime')
    """
    return tuple(metric.name for metric in CATALOGUE if metric.tells == what)


@cache
def brought_by(probe: str) -> tuple[str, ...]:
    """The metrics that a probe of the agent reads on a host.

    >>> brought_by("softnet")
    ('system.softnet.processed', 'system.softnet.dropped', 'system.softnet.squeezed')
    """
    return tuple(metric.name for metric in CATALOGUE if metric.probe == probe)


@cache
def trending(*outcomes: str) -> tuple[str, ...]:
    """The metrics that the generic rule ``trend`` judges; those of which it says at worst one of ``outcomes``.

    >>> "system.temperature" in trending(), "system.temperature" in trending("warn")
    (True, False)
    """
    return tuple(metric.name for metric in CATALOGUE if metric.trend and (not outcomes or metric.trend in outcomes))


@cache
def changing(*how: str, outcome: str = "") -> tuple[str, ...]:
    """The metrics that the generic rule ``change`` judges; those that tell of a fault in one of some ways, or of which
    it says at worst ``outcome``.

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


def bad_direction(name: str) -> str:
    """Which way a metric is worse: ``up``, ``down``, or empty where neither is, or it is not known.

    >>> bad_direction("system.temperature"), bad_direction("system.memory.available"), bad_direction("system.disk.io")
    ('up', 'down', '')
    """
    entry = BY_NAME.get(name)
    return "" if entry is None else entry.growth or entry.worse or ""


def why_unjudged(name: str) -> str:
    """Why no rule judges a metric, where the catalogue says so: its own reason, or whose limit it is.

    >>> why_unjudged("system.sessions.limit"), why_unjudged("system.sessions")
    ('the limit of system.sessions', '')
    """
    own = BY_NAME[name].unjudged
    limited = [metric.name for metric in CATALOGUE if metric.ceiling == name]
    return own or (f"the limit of {limited[0]}" if limited else "")


def why_mild(name: str) -> str:
    """Why the generic rules only warn of a metric, where one of them does.

    >>> why_mild("system.softnet.squeezed"), why_mild("system.cpu.utilization")
    ('no packet is lost by it', '')
    """
    return BY_NAME[name].mild if name in BY_NAME else ""


def words_of(name: str) -> str:
    """What people call a metric; its name where the catalogue has no words for it, or does not know it.

    >>> words_of("process.memory.usage"), words_of("system.interrupts")
    ('memory', 'system.interrupts')
    """
    entry = BY_NAME.get(name)
    return entry.words or name if entry is not None else name
