"""A record as rules see it: without impossible readings, which are counted and named.

The record keeps every reading. What is set aside is found once per series over all of its readings, so that every rule
and window sees the same ones.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.formatting import share_text
from soakwatch.judge.judged_record import JudgeableRecord
from soakwatch.record import SeriesKey, StoredEvent, StoredFault
from soakwatch_model.case import Case, Ledger
from soakwatch_model.flow import PACKETS, SENT
from soakwatch_model.label import label
from soakwatch_model.metric import BY_NAME, flows
from soakwatch_model.metric_entry import COUNTER
from soakwatch_model.roles import GENERATOR
from soakwatch_model.sample import object_text
from soakwatch_model.series import Ints, Series
from soakwatch_model.set_aside import SetAside
from soakwatch_model.window import Phase, Window
from soakwatch_rules.stats.counted_amounts import amounts
from soakwatch_rules.stats.impossible import LEAST_S, ImpossibleReadings, PlausibleSeries, is_clock, without_impossible
from soakwatch_rules.wording.quantities import digits

Floats = NDArray[np.float64]

_ENOUGH: Final = 0.05  # share of a series' readings; the same that a gap may have
_WAYS = 3  # number of reasons named per series
_SPEED: Final = "system.network.speed"
_BITS = 8.0  # of a byte
_LEAST_BITS = 512.0  # of a packet: the least frame is 64 bytes
LEAST_SPEED = 1e9  # bit/s: virtual interfaces state less than they carry
_ROOM = 2.0  # times what a link can carry, since counters may be read in bursts
_ARRIVED: Final = {"interface": "system.network.packets", "queue": "queue.packets"}
"""By the label of the place where packets were dropped: the counter of the packets that arrived there."""
_UNSEEN = 100.0  # times what arrived: the most that can have been dropped before being counted, if no generator tells
_QUEUED = 10_000.0  # packets that a queue can hold
_KEPT_BYTES: Final = 16 * 2**20
"""Bytes of decoded readings to keep, of the series read last: several rules read each, one after the other. Their
times, which series of one source share, are not counted."""
_BOOTED: Final = ("system.boot.id", "system.uptime")


@dataclass(frozen=True, slots=True, eq=False)
class Sifted:
    """Series that had impossible readings: how many were read and what was impossible, and the series without it."""

    impossible: Mapping[SeriesKey, tuple[int, tuple[ImpossibleReadings, ...]]]
    left: Mapping[SeriesKey, Series]


class Plausible:
    """A record without its impossible readings."""

    def __init__(self, record: JudgeableRecord) -> None:
        self._of = record
        self._impossible: dict[SeriesKey, tuple[int, tuple[ImpossibleReadings, ...]]] = {}
        self._left: dict[SeriesKey, Series] = {}  # series that had impossible readings, without them
        self._still: dict[SeriesKey, Series] = {}  # others whose readings are all the same, which take no room
        self._whole: OrderedDict[SeriesKey, Series] = OrderedDict()  # the rest, those read last
        self._held = 0  # bytes of them
        self._times: WeakValueDictionary[tuple[int, int, int], Ints] = WeakValueDictionary()  # by number and ends
        self._sifting: set[SeriesKey] = set()
        self._restarts: dict[str, tuple[Window, ...]] = {}
        self._speeds: dict[tuple[str, str | None], float] | None = None

    # --- as a record ---------------------------------------------------------------------------------------------

    def meta(self, key: str) -> str | None:
        """The text stored under ``key``, or None."""
        return self._of.meta(key)

    def roles(self) -> Mapping[str, str]:
        """Targets and their roles."""
        return self._of.roles()

    def window(self) -> Window:
        """First due time to last sample."""
        return self._of.window()

    def phases(self) -> tuple[Phase, ...]:
        """The phases so far."""
        return self._of.phases()

    def keys(self, metrics: Sequence[str] | None = None) -> tuple[SeriesKey, ...]:
        """The keys of its series."""
        return self._of.keys(metrics)

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
        """One series without its impossible readings."""
        kept = next((held[key] for held in (self._left, self._still, self._whole) if key in held), None)
        if kept is None:
            kept = self._of.series(key).thin()
            if key not in self._impossible:
                kept = self._sifted_once(key, kept)
            if key not in self._left and key not in self._sifting:
                self._keep(key, kept)
        elif key in self._whole:
            self._whole.move_to_end(key)
        return _between(kept, begin_ns, end_ns)

    def sift(self, keys: Iterable[SeriesKey]) -> None:
        """Finds what is impossible of series that were not read yet; reading finds it as well."""
        for key in keys:
            if key not in self._impossible:
                self.series(key)

    def _sifted_once(self, key: SeriesKey, read: Series) -> Series:
        """The series without what is impossible of it, which is noted."""
        self._impossible[key] = len(read), ()  # its neighbours are read meanwhile, and ask for it as it is
        self._sifting.add(key)
        sifted = self._sifted(key, read)
        self._sifting.discard(key)
        self._impossible[key] = len(read), sifted.impossible
        if sifted.impossible:
            self._left[key] = sifted.series
        return sifted.series

    def _keep(self, key: SeriesKey, read: Series) -> None:
        """Keep it for the next rule, instead of what was read longest ago. Series of one source share their times."""
        if len(read):
            ends = len(read), int(read.time_ns[0]), int(read.time_ns[-1])
            known = self._times.setdefault(ends, read.time_ns)
            if known is not read.time_ns and np.array_equal(known, read.time_ns):
                read = replace(read, time_ns=known)
        if read.held_bytes < read.value.nbytes:
            self._still[key] = read
            return
        self._whole[key] = read
        self._held += read.held_bytes
        while self._held > _KEPT_BYTES:
            self._held -= self._whole.popitem(last=False)[1].held_bytes

    def events(self) -> tuple[StoredEvent, ...]:
        """All events."""
        return self._of.events()

    def faults(self) -> tuple[StoredFault, ...]:
        """What could not be read."""
        return self._of.faults()

    def ledgers(self, window: Window) -> tuple[Ledger, ...]:
        """The account of each source."""
        return self._of.ledgers(window)

    @property
    def sifted(self) -> Sifted:
        """What was impossible of the series read so far."""
        return Sifted({key: self._impossible[key] for key in self._left}, dict(self._left))

    def adopt(self, other: Sifted) -> None:
        """Takes in what another process found of series of the same record."""
        self._impossible.update(other.impossible)
        self._left.update(other.left)

    # --- what was set aside --------------------------------------------------------------------------------------

    def set_aside(self) -> tuple[SetAside, ...]:
        """All that was set aside of the series read so far, ordered by name."""
        found = (self._set_aside(key) for key in sorted(self._left))
        return tuple(each for each in found if each is not None)

    def of(self, case: Case) -> tuple[SetAside, ...]:
        """What was set aside of the series of a case, in its window."""
        return self._of_series(case.series, case.window)

    def of_load(self, case: Case) -> tuple[SetAside, ...]:
        """What was set aside of the load of a case, in its window."""
        return self._of_series(case.load, case.window)

    def _of_series(self, every: Iterable[Series], window: Window) -> tuple[SetAside, ...]:
        if not self._left:
            return ()
        found = []
        for series in every:
            # in a case of a device its object bears the name of the generator, if there are several
            own = series.object.removeprefix(object_text(generator=series.target)).removeprefix(",")
            keys = (SeriesKey(series.target, series.metric, name) for name in (series.object, own))
            key = next((key for key in keys if key in self._left), None)
            aside = None if key is None else self._set_aside(key, window)
            found += [] if aside is None else [replace(aside, object=series.object)]
        return tuple(found)

    def _set_aside(self, key: SeriesKey, window: Window | None = None) -> SetAside | None:
        readings, every = self._impossible.get(key, (0, ()))
        within = [o for o in every if window is None or (window.begin_ns <= o.end_ns and o.begin_ns < window.end_ns)]
        if not within:
            return None
        count, left = sum(o.count for o in within), self._left[key]
        if window is not None:
            readings = count + len(left.between(window.begin_ns, window.end_ns))
        undecided = ""
        if count > _ENOUGH * readings:
            undecided = f"that is {share_text(count / readings)} of them"
        elif self._decides(key, left) and not all(o.sure for o in within):
            undecided = "what was counted then is not known"
        why = tuple(dict.fromkeys(f"it {o.way.format(digits(o.amount))}" for o in within))[:_WAYS]
        return SetAside(
            key.target,
            key.metric,
            key.object,
            count,
            readings,
            within[0].begin_ns,
            within[-1].end_ns,
            why,
            undecided,
        )

    @staticmethod
    def _decides(key: SeriesKey, left: Series) -> bool:
        """Whether a single reading may decide a finding: of what may not grow, of an uptime, of a counter of the
        load."""
        entry = BY_NAME.get(key.metric)
        counted = entry is not None and entry.flow is not None and entry.kind == COUNTER
        return counted or left.trait.growth is not None or is_clock(key.metric)

    # --- what can have been counted ------------------------------------------------------------------------------

    def _sifted(self, key: SeriesKey, series: Series) -> PlausibleSeries:
        if len(series) < 2 or series.trait.kind == "state":
            return PlausibleSeries(series)
        counts = series.trait.kind == COUNTER
        restarts = self._begun_anew(key.target) if counts and _falls(series) else ()
        return without_impossible(series, self._most(key, series) if counts else None, restarts)

    def _most(self, key: SeriesKey, series: Series) -> Floats | None:
        """The most that a counter can show at each reading; None if nothing bounds it."""
        entry = BY_NAME.get(key.metric)
        if entry is None or not entry.labels or entry.labels[0] not in _ARRIVED:
            return None
        values = series.values
        steps = np.append(0.0, np.diff(values))
        if not float(np.max(steps, initial=0.0, where=np.isfinite(steps))) > _QUEUED:
            return None
        most = np.full(len(series), np.inf)
        bits = _BITS if entry.unit == "By" else _LEAST_BITS
        apart = np.maximum(np.diff(series.time_ns) * 1e-9, LEAST_S)
        least = _ROOM * LEAST_SPEED / bits * np.append(0.0, apart)
        if bool((steps > least).any()) and (speed := self._speed(key)) > 0:
            most = least * max(1.0, speed / LEAST_SPEED)
        if entry.growth is not None and (arrived := self._arrived(key, entry.labels[0], series)) is not None:
            most = np.minimum(most, arrived)
        most[0] = np.inf
        return most

    def _speed(self, key: SeriesKey) -> float:
        """The highest speed in bit/s that the interface states; 0 if none."""
        if self._speeds is None:
            stated = {other: self._of.series(other).finite() for other in self.keys([_SPEED])}
            self._speeds = {
                (other.target, label(other.object, "interface")): float(series.values.max(initial=0.0))
                for other, series in stated.items()
            }
        return self._speeds.get((key.target, label(key.object, "interface")), 0.0)

    def _arrived(self, key: SeriesKey, place: str, series: Series) -> Floats | None:
        """The most that can have been dropped by each reading: from what arrived or the generators sent, and what a
        queue holds. None if nothing counts what arrived."""
        own = label(key.object, place)
        of_place = [k for k in self.keys([_ARRIVED[place]]) if k.target == key.target and label(k.object, place) == own]
        # a place without counters of its own got it from some port
        ports = [k for k in self.keys([_ARRIVED["interface"]]) if k.target == key.target]
        came = of_place or [k for k in ports if label(k.object, "direction") == "receive"] or ports
        if not came:
            return None
        arrived = _around(amounts([self.series(k) for k in came], series.time_ns))
        generators = {name for name, role in self.roles().items() if role == GENERATOR}
        sent = [k for k in self.keys(flows(SENT, PACKETS, kind=COUNTER)) if k.target in generators]
        if not sent:
            return np.append(np.inf, _UNSEEN * arrived + _QUEUED)
        offered = _around(amounts(map(self.series, sent), series.time_ns))
        return np.append(np.inf, _ROOM * np.maximum(arrived, offered) + _QUEUED)

    def _begun_anew(self, target: str) -> tuple[Window, ...]:
        """The intervals in which the device is known to have restarted, by its uptime without impossible readings;
        while these are being looked for, by its uptime as it was read."""
        if target in self._restarts:
            return self._restarts[target]
        found: list[Window] = []
        own = [key for key in self.keys(_BOOTED) if key.target == target and not key.object]
        for key in own:
            read = self.series(key).finite()
            fell = read.value[1:] != read.value[:-1] if key.metric == _BOOTED[0] else np.diff(read.values) < 0
            found += [Window(int(read.time_ns[i]), int(read.time_ns[i + 1])) for i in np.flatnonzero(fell)]
        if not self._sifting.intersection(own):
            self._restarts[target] = tuple(found)
        return tuple(found)


def _falls(series: Series) -> bool:
    return bool((series.value[1:] < series.value[:-1]).any())


def _around(counted: Floats) -> Floats:
    """Sum of each step and its neighbours: a drop may be counted one poll before or after the arrival."""
    return np.convolve(counted, np.ones(3), "same") if counted.size >= 3 else np.full(counted.size, counted.sum())


def _between(series: Series, begin_ns: int | None, end_ns: int | None) -> Series:
    ends = np.iinfo(np.int64)
    return series.between(int(ends.min) if begin_ns is None else begin_ns, int(ends.max) if end_ns is None else end_ns)
