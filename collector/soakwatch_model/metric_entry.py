"""What the catalogue says of one metric: name, unit, kind, range, directions, words, and where it is shown."""

from __future__ import annotations

from dataclasses import dataclass

from soakwatch_model.flow import Flow
from soakwatch_model.shown import Figures, Shown

GAUGE = "gauge"  # a level: may go up and down
COUNTER = "counter"  # only grows, until it wraps or its owner restarts; stored raw
STATE = "state"  # an identity or a switch: a change means something, its size nothing

UP = "up"  # lasting growth is bad (memory, descriptors, queues)
DOWN = "down"  # lasting fall is bad (free memory)

BOOT, HOST_MEMORY, HELD_MEMORY, PRESENCE = "boot", "memory of a host", "memory of a process", "presence of a process"
"""What several metrics say in different ways: which boot it is, a host's memory in use, a process's memory, whether a
watched process runs (also told, as 0, of one that does not)."""

FAILS, WARNS = "fail", "warn"
"""The worst that the generic rules may say of a metric: it fails the device, or it warns."""

GOES_OFF, FALLS, COUNTS, STOPS, SURGES = "goes off", "falls", "counts", "stops", "surges"
"""How a metric shows a fault: a switch goes off, an age or speed falls, a counter counts, traffic stops under load, a
rate or level multiplies."""

OWN = "the monitor's own: it says nothing of a device"
"""Why no rule judges the monitor's own metrics."""
CACHE = "page cache fills up by design"
"""Why no rule judges what a machine keeps of its disks."""

FULL, REASONS, REFUSED = "full", "reasons", "refused"
"""Why packets were dropped: no buffer or time, reasons that the counter names, or on purpose."""


@dataclass(frozen=True)
class Drops:
    """Where a device dropped packets ("interfaces"), and ``why``."""

    place: str
    why: str = FULL


@dataclass(frozen=True)
class Sign:
    """Which sign of a fault the generic rule ``change`` looks for, and its worst outcome; ``off`` is what a switch is
    when it is off."""

    how: str
    outcome: str = FAILS
    off: str = "down"


@dataclass(frozen=True)
class Metric:
    """One entry of the catalogue.

    ``low``/``high`` bound what a reading can be (None = no bound); ``growth`` is ``up``, ``down`` or None;
    ``quantum`` is the smallest step the source can show, in the unit (None = not known);
    ``labels`` names the labels an object of this metric carries; ``every`` is the shortest distance of readings in
    seconds, for what a probe reads less often than it is polled (0 = at every poll); ``floor`` is the growth within one
    run that does not matter (one page, one descriptor); ``ceiling`` names the metric that states the most there can
    be of this one, of the same object or of the whole target; ``worse`` is the direction in which a run is worse than
    another, where nothing may grow (throughput that falls, latency that rises); ``flow`` is what a figure of the load
    tells of the traffic.

    ``words`` are what people call it ("memory in use"; empty: its name). ``by_load``: its level is what the load asks
    for, and only its growth has a direction. ``statistic`` is that of a figure that names none, where kind and
    direction do not say it. ``shown`` is its place on the pages, ``figures`` are the standard figures of it, and
    ``aligned`` says whether runs are laid over one another by it.

    ``tells`` is what it says in common with others (``BOOT``, ``HOST_MEMORY``, ``HELD_MEMORY``, ``PRESENCE``),
    ``drops`` where and why a device dropped what it counts. A change of what is ``urgent`` means that something broke:
    it is judged at once. ``probe`` is the probe of the agent that reads it on a host; empty: none does.

    ``trend`` says what the generic rule ``trend`` may say at worst where it moves steadily in its bad direction
    (``FAILS``, ``WARNS``; empty: it is not judged so), ``change`` the same of a lasting change; ``mild`` says why
    they only warn. ``unjudged`` says why no rule judges it.
    """

    name: str
    unit: str
    kind: str
    about: str
    labels: tuple[str, ...] = ()
    low: float | None = 0.0
    high: float | None = None
    growth: str | None = None
    quantum: float | None = None
    every: float = 0.0
    floor: float = 0.0
    ceiling: str | None = None
    worse: str | None = None
    flow: Flow | None = None
    words: str = ""
    by_load: bool = False
    statistic: str = ""
    shown: Shown | None = None
    figures: Figures | None = None
    aligned: bool = False
    tells: str = ""
    drops: Drops | None = None
    urgent: bool = False
    probe: str = ""
    trend: str = ""
    change: Sign | None = None
    mild: str = ""
    unjudged: str = ""


def entry(
    name: str,
    unit: str,
    kind: str,
    about: str,
    *labels: str,
    low: float | None = 0.0,
    high: float | None = None,
    growth: str | None = None,
    quantum: float | None = None,
    every: float = 0.0,
    ceiling: str | None = None,
    worse: str | None = None,
    flow: Flow | None = None,
    words: str = "",
    by_load: bool = False,
    statistic: str = "",
    shown: Shown | None = None,
    figures: Figures | None = None,
    aligned: bool = False,
    tells: str = "",
    drops: Drops | None = None,
    urgent: bool = False,
    probe: str = "",
    trend: str = "",
    change: Sign | None = None,
    mild: str = "",
    unjudged: str = "",
) -> Metric:
    """An entry of the catalogue; the floor of what must not grow is its quantum."""
    floor = quantum if quantum is not None and growth is not None else 0.0
    return Metric(
        name,
        unit,
        kind,
        about,
        labels,
        low=low,
        high=high,
        growth=growth,
        quantum=quantum,
        every=every,
        floor=floor,
        ceiling=ceiling,
        worse=worse,
        flow=flow,
        words=words,
        by_load=by_load,
        statistic=statistic,
        shown=shown,
        figures=figures,
        aligned=aligned,
        tells=tells,
        drops=drops,
        urgent=urgent,
        probe=probe,
        trend=trend,
        change=change,
        mild=mild,
        unjudged=unjudged,
    )
