"""The kinds of faults of a drill: what each changes in a record, and the sizes that are tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from soakwatch.judge.cases import stretch
from soakwatch.judge.drill.overlay import Change, Fault, ReadOnce
from soakwatch.record import SeriesKey
from soakwatch.record.meta import UNPOLLED
from soakwatch_model.flow import BACK, CONNECTIONS, FAILED, LOST, PACKETS, PORT, REQUESTS, SENT, STREAM, WHOLE
from soakwatch_model.metric import BY_NAME, COUNTER, flows
from soakwatch_model.metric_entry import HELD_MEMORY
from soakwatch_model.metric_queries import shown_in, telling, usual_in
from soakwatch_model.roles import DUT, GENERATOR
from soakwatch_model.sample import object_labels
from soakwatch_model.series import Series
from soakwatch_model.shown import CPU, MEMORY, PROCESS_MEMORY
from soakwatch_model.window import Window
from soakwatch_rules.signals import counted, leak, missing, raised, risen, thinned, unread
from soakwatch_rules.stats.medians import median

S: Final = 10**9
_AT_EDGE: Final = 0.05  # share of the run: a series that begins later or ends earlier is no subject
_LATEST_LEAK: Final = 0.25  # of the stretch: a leak that begins late must be steeper, whatever the noise
_LATEST: Final = 0.5
_CARRIES: Final = 0.01  # share of what was sent: an interface that carries less carries something else

DRIVEN: Final = tuple(
    name
    for side, what in ((SENT, PACKETS), (BACK, REQUESTS), (BACK, CONNECTIONS))
    for name in flows(side, what, kind=COUNTER)
)
"""Counters of the load: packets sent, requests answered, connections opened."""
RETURNED: Final = tuple(name for scope in (WHOLE, PORT, STREAM) for name in flows(BACK, scope=scope))
"""Returned load."""
_LOST: Final[Mapping[str, str]] = {
    lost: of
    for side, what in ((FAILED, REQUESTS), (FAILED, CONNECTIONS), (LOST, PACKETS))
    for lost, of in zip(flows(side, what, kind=COUNTER), flows(BACK, what, kind=COUNTER), strict=True)
}
"""Counters of loss, each with the counter of what should have come back."""
_CPU: Final = usual_in(CPU)
_PORTS: Final = "system.network.packets"
_MEMORY: Final = (
    shown_in(PROCESS_MEMORY)[0],
    *(name for name in usual_in(MEMORY) if BY_NAME[name].unit == "By"),
)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a fault is applied to: its name for people, its target, the series that change, and the source that goes
    silent."""

    name: str
    target: str
    keys: tuple[SeriesKey, ...]
    source: int | None = None


@dataclass(frozen=True, slots=True)
class Ground:
    """The record and the stretch of it in which faults are placed."""

    record: ReadOnce
    stretch: Window
    devices: tuple[str, ...]
    generators: tuple[str, ...]

    @classmethod
    def of(cls, record: ReadOnce) -> Ground:
        """The soak of a run, else the whole run."""
        devices, generators = (
            tuple(sorted(target for target, role in record.roles.items() if role == wanted))
            for wanted in (DUT, GENERATOR)
        )
        return cls(record, stretch(record.phases, ("soak",)) or record.window, devices, generators)

    def window(self, at: float, seconds: float) -> Window:
        """A window of this length; ``at`` from 0 to 1 places it from the first to the last position in the stretch."""
        free_ns = max(0, self.stretch.end_ns - self.stretch.begin_ns - round(seconds * S))
        begin_ns = self.stretch.begin_ns + round(at * free_ns)
        return Window(begin_ns, begin_ns + round(seconds * S))

    def after(self, at: float) -> Window:
        """From the share ``at`` of the stretch to the end of the record."""
        begin_ns = self.stretch.begin_ns + round(at * (self.stretch.end_ns - self.stretch.begin_ns))
        return Window(begin_ns, self.record.window.end_ns)

    def there(self, keys: Iterable[SeriesKey]) -> tuple[SeriesKey, ...]:
        """Those read from end to end of the stretch."""
        slack_ns = _AT_EDGE * (self.stretch.end_ns - self.stretch.begin_ns)

        def whole(series: Series) -> bool:
            if len(series) < 3:
                return False
            first, last = int(series.time_ns[0]), int(series.time_ns[-1])
            return first <= self.stretch.begin_ns + slack_ns and last >= self.stretch.end_ns - slack_ns

        return tuple(key for key in keys if whole(self.record.series(key)))

    def of_devices(self, *metrics: str) -> tuple[SeriesKey, ...]:
        """The devices' series of the first of these metrics that any device has."""
        for metric in metrics:
            keys = self.there(key for key in self.record.keys([metric]) if key.target in self.devices)
            if keys:
                return keys
        return ()

    def of_generators(self, metrics: Iterable[str]) -> tuple[SeriesKey, ...]:
        """The generators' series of these metrics."""
        return self.there(key for key in self.record.keys(sorted(metrics)) if key.target in self.generators)


Make = Callable[[Ground, Subject, float, float], Fault]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault. ``sizes`` are in ``unit``, ascending; ``what`` says what a size means. ``fault`` makes one of a
    size at a place from 0 to 1 of the stretch. ``lacking`` is what the record of a run without a subject does not
    have."""

    name: str
    unit: str
    what: str
    sizes: tuple[float, ...]
    subjects: Callable[[Ground], tuple[Subject, ...]]
    fault: Make
    lacking: str
    lasts: bool = False  # its size is how long it lasts
    doubt: bool = False  # a finding that becomes inconclusive counts as found: a gap proves nothing

    def sizes_in(self, ground: Ground) -> tuple[float, ...]:
        """The sizes to try in this run; of what ``lasts``, those up to a fifth of the stretch."""
        most = 0.2 * ground.stretch.seconds if self.lasts else float("inf")
        return tuple(size for size in self.sizes if size <= most)


# --- leak ------------------------------------------------------------------------------------------------------------


def _holders_of_memory(ground: Ground) -> tuple[Subject, ...]:
    keys = ground.of_devices(*_MEMORY)
    if not keys:  # an imported table has its own metric names
        every = ground.there(key for key in sorted(ground.record.every) if key.target in ground.devices)
        keys = tuple(key for key in every if _may_not_grow(ground.record.series(key)))
    return tuple(Subject(_name(key), key.target, (key, *_sums(ground, key))) for key in keys)


def _may_not_grow(series: Series) -> bool:
    return series.trait.kind == "gauge" and series.trait.growth == "up" and level(series) > 0


def _sums(ground: Ground, key: SeriesKey) -> tuple[SeriesKey, ...]:
    """The other series that contain the same memory."""
    if key.metric not in _MEMORY:
        return ()
    same = [SeriesKey(key.target, metric, key.object) for metric in telling(HELD_MEMORY)]
    sums = [SeriesKey(key.target, metric, "") for metric in ("system.memory.usage", "system.memory.available")]
    held = ground.record.every
    return tuple(other for other in (*same, *sums) if other in held and other != key)


def level(series: Series) -> float:
    """The median of the readings; 0 without any."""
    values = series.finite().values
    return median(values) if values.size else 0.0


def _leaking(ground: Ground, subject: Subject, at: float, size: float) -> Fault:
    begin_ns = ground.after(_LATEST_LEAK * at).begin_ns
    grown = size * level(ground.record.series(subject.keys[0]))
    rate = grown * S / (ground.stretch.end_ns - begin_ns)
    changes: dict[SeriesKey, Change] = {}
    for key in subject.keys:
        falls = ground.record.series(key).trait.growth == "down"
        changes[key] = partial(_leak, rate=-rate if falls else rate, begin_ns=begin_ns)
    return Fault(changes)


def _leak(series: Series, rate: float, begin_ns: int) -> Series:
    """Add a leak, in steps of the metric's resolution, and never below zero."""
    first_ns, last_ns = int(series.time_ns[0]), int(series.time_ns[-1])
    grown = leak(series, rate, (begin_ns - first_ns) / max(1, last_ns - first_ns))
    quantum = series.trait.quantum
    more = grown.values - series.values
    value = series.values + (np.floor(more / quantum) * quantum if quantum else more)
    return replace(series, value=np.clip(value, 0.0, None))


# --- CPU -------------------------------------------------------------------------------------------------------------


def _processors(ground: Ground) -> tuple[Subject, ...]:
    return tuple(Subject(_name(key), key.target, (key,)) for key in ground.of_devices(*_CPU))


def _busy(ground: Ground, subject: Subject, at: float, size: float) -> Fault:
    window = ground.window(at, size)
    return Fault({key: partial(_raised, window=window) for key in subject.keys})


def _raised(series: Series, window: Window) -> Series:
    return raised(series, (window.begin_ns - int(series.time_ns[0])) / S, window.seconds)


# --- traffic ---------------------------------------------------------------------------------------------------------


def _traffic(ground: Ground) -> tuple[Subject, ...]:
    back = ground.of_generators({*RETURNED, *_LOST, "load.loss"})
    if not any(key.metric in DRIVEN for key in ground.of_generators(DRIVEN)) or not any(
        key.metric in RETURNED for key in back
    ):
        return ()
    target = ground.devices[0] if len(ground.devices) == 1 else ground.generators[0]
    return (Subject("the load", target, (*back, *_carriers(ground))),)


def _carriers(ground: Ground) -> tuple[SeriesKey, ...]:
    """The interfaces of the device that send the returned load."""
    sent = sum(_count(ground.record.series(key)) for key in ground.of_generators(["load.tx.packets"]))
    return tuple(
        key
        for key in ground.of_devices(_PORTS)
        if sent
        and object_labels(key.object).get("direction") == "transmit"
        and _count(ground.record.series(key)) >= _CARRIES * sent
    )


def _count(series: Series) -> float:
    return float(np.nansum(series.increments().values))


def _pings(ground: Ground) -> tuple[Subject, ...]:
    """The probed peers, where no generator reports a load."""
    held = ground.record.every
    return tuple(
        Subject(f"answers of {_name(key)}", key.target, found)
        for key in ground.of_devices("reach.lost")
        if len(found := tuple(k for m in ("lost", "up") if (k := replace(key, metric=f"reach.{m}")) in held)) == 2
    )


def _traffic_or_pings(ground: Ground) -> tuple[Subject, ...]:
    return _traffic(ground) or _pings(ground)


def _losing(ground: Ground, subject: Subject, at: float, size: float) -> Fault:
    return _lost(ground, subject, size, ground.after(_LATEST * at), seed=round(at * 1e9))


def _stalled(ground: Ground, subject: Subject, at: float, size: float) -> Fault:
    return _lost(ground, subject, 1.0, ground.window(at, size), seed=0)


def _lost(ground: Ground, subject: Subject, share: float, window: Window, seed: int) -> Fault:
    if subject.keys[0].metric.startswith("reach."):
        lost = partial(_unanswered, share=share, window=window, seed=seed)
        return Fault({key: partial(lost, up=key.metric == "reach.up") for key in subject.keys})
    changes: dict[SeriesKey, Change] = {}
    for key in subject.keys:
        if key.metric in RETURNED or key.metric == _PORTS:
            changes[key] = partial(thinned, share=share, window=window)
        elif key.metric == "load.loss":
            changes[key] = partial(_share_lost, share=share, window=window)
        else:
            of = ground.record.series(replace(key, metric=_LOST[key.metric], object=""))
            changes[key] = partial(_counted_lost, of=of, share=share, window=window)
    return Fault(changes)


def _share_lost(series: Series, share: float, window: Window) -> Series:
    kept = thinned(replace(series, value=1.0 - series.values), share, window)
    return replace(series, value=1.0 - kept.values)


def _counted_lost(series: Series, of: Series, share: float, window: Window) -> Series:
    """Add what another counter lost to this one, at its next reading."""
    if not len(of):
        return series
    total = np.cumsum(missing(of, share, window))
    position = np.searchsorted(of.time_ns, series.time_ns, side="right") - 1
    there = np.where(position >= 0, total[np.clip(position, 0, None)], 0.0)
    return counted(series, np.diff(there, prepend=0.0))


def _unanswered(series: Series, *, share: float, window: Window, seed: int, up: bool) -> Series:
    """Single requests without an answer, the same ones in each series of the peer."""
    hit = np.random.default_rng(seed).random(len(series)) < share
    hit &= (series.time_ns >= window.begin_ns) & (series.time_ns < window.end_ns)
    if up:
        return replace(series, value=np.where(hit, 0, series.value))
    return counted(series, hit.astype(np.float64))


def _late_answers(ground: Ground) -> tuple[Subject, ...]:
    whole = ground.of_generators(["load.latency"])
    if whole:
        names = sorted({key.target for key in whole})
        target = ground.devices[0] if len(ground.devices) == 1 else names[0]
        return tuple(
            Subject(f"latency at {name}", target, tuple(k for k in whole if k.target == name)) for name in names
        )
    keys = ground.of_devices("reach.round_trip") or ground.of_generators(["load.flow.latency"])
    return tuple(Subject(f"latency of {_name(key)}", key.target, (key,)) for key in keys)


def _slower(ground: Ground, subject: Subject, at: float, size: float) -> Fault:
    window = ground.after(0.25 + _LATEST * at)
    return Fault({key: partial(risen, factor=1.0 + size, window=window) for key in subject.keys})


# --- deaths and silence ----------------------------------------------------------------------------------------------


def _processes(ground: Ground) -> tuple[Subject, ...]:
    held = ground.record.every
    return tuple(
        Subject(_name(key), key.target, tuple(k for m in ("start_time", "pid", "up") if (k := _of(key, m)) in held))
        for key in ground.of_devices("process.start_time")
    )


def _of(key: SeriesKey, metric: str) -> SeriesKey:
    return replace(key, metric=f"process.{metric}")


def _restarted(ground: Ground, subject: Subject, at: float, size: float) -> Fault:
    away = ground.window(at, size)
    return Fault({key: partial(_another_life, metric=key.metric, away=away) for key in subject.keys})


def _another_life(series: Series, metric: str, away: Window) -> Series:
    """Another process from the end of the window on; none within it."""
    within = (series.time_ns >= away.begin_ns) & (series.time_ns < away.end_ns)
    if metric == "process.up":
        return replace(series, value=np.where(within, 0, series.value))
    later = series.time_ns >= away.end_ns
    value = away.end_ns / S if metric == "process.start_time" else level(series) + 1
    return unread(replace(series, value=np.where(later, value, series.values)), away)


def _sources(ground: Ground) -> tuple[Subject, ...]:
    held: dict[int, list[SeriesKey]] = {}
    for key in sorted(ground.record.every):
        source = ground.record.view.source_of(key)
        if source is not None:
            held.setdefault(source.id, []).append(key)
    return tuple(
        Subject(source.label, source.target, tuple(held[source.id]), source.id)
        for source in ground.record.view.sources()
        if source.id in held and source.target in ground.devices and source.name != UNPOLLED and source.interval_ns > 0
    )


def _silent(ground: Ground, subject: Subject, at: float, size: float) -> Fault:
    window = ground.window(at, size)
    changes: dict[SeriesKey, Change] = dict.fromkeys(subject.keys, partial(unread, window=window))
    return Fault(changes, None if subject.source is None else (subject.source, window))


def _name(key: SeriesKey) -> str:
    """The name of a series' object, for people."""
    labels = object_labels(key.object)
    name = labels.get("process") or labels.get("peer") or key.object
    return f"{key.target} {name}".strip() if name else f"{key.target} {key.metric}"


_SECONDS: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
KINDS: Final[tuple[Kind, ...]] = (
    Kind(
        "leak",
        "1",
        "growth by the end of the run, as a share of the level",
        (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0),
        _holders_of_memory,
        _leaking,
        "memory of a process or of a device",
    ),
    Kind(
        "cpu",
        "s",
        "time at 100 %",
        _SECONDS,
        _processors,
        _busy,
        "device CPU",
        lasts=True,
    ),
    Kind(
        "loss",
        "1",
        "share of the traffic lost, from some time in the first half to the end",
        (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3),
        _traffic_or_pings,
        _losing,
        "traffic and no probed peer",
    ),
    Kind(
        "stall",
        "s",
        "time without any traffic coming back",
        _SECONDS,
        _traffic_or_pings,
        _stalled,
        "traffic and no probed peer",
        lasts=True,
    ),
    Kind(
        "restart",
        "s",
        "time that a process is away",
        (1.0, 10.0, 60.0, 300.0),
        _processes,
        _restarted,
        "watched process",
        lasts=True,
    ),
    Kind(
        "latency",
        "1",
        "lasting rise of the latency, as a share of it",
        (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
        _late_answers,
        _slower,
        "latency or round trip",
    ),
    Kind(
        "silence",
        "s",
        "time that a source does not answer",
        (*_SECONDS[2:], 1200.0, 3600.0, 7200.0),
        _sources,
        _silent,
        "source of a device",
        lasts=True,
        doubt=True,
    ),
)
"""In the order of the table."""
KIND_NAMES: Final = tuple(kind.name for kind in KINDS)
