"""Impact: what one event cost: the outage by two methods, peaks, and the recovery."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.label import label
from soakwatch_model.series import Floats, Ints, Series
from soakwatch_model.window import Window
from soakwatch_rules.load.offered import OVERLOADS, phases_joined
from soakwatch_rules.load.traffic import Traffic
from soakwatch_rules.sampling import cadence
from soakwatch_rules.stats.counted_amounts import steps
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.outage import DownTime, Outage, outage, unanswered
from soakwatch_rules.stats.return_to_level import MIN_WINDOW, Reference, reference, returned
from soakwatch_rules.wording.series_names import name_of

_MIN_SAMPLES_BEFORE = 16
_MIN_EFFECTIVE = 4.0
_CADENCES = 2.0
_APART_NS = 180 * 10**9
_SLIGHT_S = 1e-3  # a latency that rose by less, and did not double, is back
_CPU_SHARE = 0.05  # of the whole CPU
_PEAKS = ("load.latency", "reach.round_trip")
_TOTAL = "system.cpu.utilization"


@dataclass(frozen=True, slots=True)
class EventScope:
    """The time in which an event is judged (``window``, beginning shortly before it), and the ``calm`` before that."""

    event: Event
    calm: Window
    window: Window


@dataclass(frozen=True, slots=True)
class Probed:
    """The probes of one peer: spans without an answer, and the seconds' worth of requests lost (None: not counted)."""

    name: str
    spans: tuple[DownTime, ...]
    step_s: float
    loss_s: float | None

    @property
    def time_s(self) -> float:
        """The total length of all spans."""
        return sum(span.seconds for span in self.spans)

    @property
    def error_s(self) -> float:
        """The error of that."""
        return sum(span.error_s for span in self.spans) or self.step_s


@dataclass(frozen=True, slots=True)
class Peak:
    """The highest reading after the event, and the median before it."""

    unit: str
    before: float
    highest: float


@dataclass(frozen=True, slots=True)
class ReturnTime:
    """A level after the event: seconds from its start to its return (None: not back, or unknown).

    ``away``: at the end of the window it is proven worse than before (a higher latency or CPU). ``served``: it is what
    users feel (a latency).
    """

    name: str
    seconds: float | None
    away: bool
    served: bool


@dataclass(frozen=True, slots=True)
class Impact:
    """What one event cost, as far as it was measured; ``blind`` says why the traffic was not.

    ``later_ns`` is when traffic or a peer went down again, too late for this event to be the cause.
    """

    stretch: EventScope
    traffic: Outage | None
    blind: str
    probes: tuple[Probed, ...]
    latency: Peak | None
    cpu: Peak | None
    back: tuple[ReturnTime, ...]
    later_ns: int | None = None

    @property
    def event(self) -> Event:
        return self.stretch.event

    @property
    def worst_probe(self) -> Probed | None:
        """The peer that was silent longest."""
        return max(self.probes, key=lambda p: p.time_s, default=None)

    @property
    def spans(self) -> tuple[DownTime, ...]:
        """The times down by the load, else by the worst peer."""
        if self.traffic is not None:
            return self.traffic.spans
        return () if self.worst_probe is None else self.worst_probe.spans

    @property
    def by_loss_s(self) -> float | None:
        """The outage in seconds by loss / rate."""
        if self.traffic is not None:
            return self.traffic.loss_s
        return None if self.worst_probe is None else self.worst_probe.loss_s

    @property
    def by_time(self) -> tuple[float, float] | None:
        """The outage in seconds by time stamps, and its error."""
        if self.traffic is not None:
            return self.traffic.time_s, self.traffic.time_error_s
        return None if self.worst_probe is None else (self.worst_probe.time_s, self.worst_probe.error_s)

    @property
    def seconds(self) -> float | None:
        """The outage in seconds by loss if known, else by time stamps."""
        if self.by_loss_s is not None:
            return self.by_loss_s
        return None if self.by_time is None else self.by_time[0]

    @property
    def error_s(self) -> float:
        """The error of ``seconds``."""
        if self.traffic is not None:
            return self.traffic.loss_error_s
        return 0.0 if self.worst_probe is None else self.worst_probe.step_s

    @property
    def agree(self) -> bool | None:
        """Whether both methods agree within their errors; None with one method only."""
        if self.by_loss_s is None or self.by_time is None:
            return None
        return abs(self.by_loss_s - self.by_time[0]) <= self.by_time[1] + self.error_s

    @property
    def seen_s(self) -> float:
        """Seconds from the event's start to the end of the judged window."""
        return (self.stretch.window.end_ns - self.event.begin_ns) * 1e-9

    @property
    def restored_s(self) -> float | None:
        """Seconds from the event's start until nothing was down; None if nothing went down or it never came back."""
        ends = [(span.window.end_ns - self.event.begin_ns) * 1e-9 for span in self.spans]
        return max(0.0, *ends) if ends and self.over else None

    @property
    def over(self) -> bool:
        """Whether everything that went down came back."""
        return all(span.over for span in self.spans)


def event_scopes(case: Case, events: Sequence[Event], lead_s: float, look_s: float, step_s: float) -> list[EventScope]:
    """Where each event is judged: from ``lead_s`` (at least two readings) before its start to ``look_s`` after its end,
    or to its deadline; but not into the next event, into a phase that begins after its deadline (another load has
    another level), or into an overload that begins after its end. The calm is the ``look_s`` before that."""
    lead_ns, look_ns = round(max(lead_s, _CADENCES * step_s) * 1e9), round(look_s * 1e9)
    result = []
    begins = sorted(event.begin_ns for event in events)
    loads = sorted(phase.window.begin_ns for phase in case.phases if phase.name in OVERLOADS)
    changes = sorted(phase.window.begin_ns for phase in phases_joined(case.phases))
    for event in events:
        if not case.window.begin_ns <= event.begin_ns < case.window.end_ns:
            continue
        over_ns = max(event.begin_ns, event.end_ns or event.begin_ns)
        begin_ns = max(case.window.begin_ns, event.begin_ns - lead_ns)
        end_ns = min(case.window.end_ns, max(over_ns + look_ns, event.deadline_ns or 0))
        others = [other_ns - lead_ns for other_ns in begins[bisect_right(begins, over_ns + lead_ns) :][:1]]
        others += loads[bisect_right(loads, over_ns) :][:1]
        others += changes[bisect_right(changes, max(over_ns, event.deadline_ns or 0)) :][:1]
        end_ns = max(begin_ns, min([end_ns, *others]))
        calm = Window(max(case.window.begin_ns, begin_ns - look_ns), begin_ns)
        result.append(EventScope(event, calm, Window(begin_ns, end_ns)))
    return result


def impact(case: Case, stretch: EventScope, load: Traffic | None, tolerance: float) -> Impact:
    """The impact of one event."""
    outage, blind = _counted(stretch, load)
    later = [] if outage is None else _later(outage.spans, stretch.event)
    if later and load is not None:
        outage, blind = _counted(replace(stretch, window=Window(stretch.window.begin_ns, later[0])), load)
    series = [*case.series, *(s for s in case.load if s.metric in _PEAKS)]
    probes = tuple(_probed(case, stretch, later))
    latency = _latency(series, stretch)
    cpu = next((s for s in case.series if s.metric == _TOTAL and not s.object), None)
    levels = [_level(s, stretch) for s in series if s.metric in _PEAKS or s is cpu]
    back = tuple(_back(level, tolerance, stretch) for level in levels if level is not None)
    return Impact(
        stretch,
        outage,
        blind,
        probes,
        latency,
        None if cpu is None else _peak(cpu, stretch),
        back,
        min(later, default=None),
    )


def _counted(stretch: EventScope, load: Traffic | None) -> tuple[Outage | None, str]:
    if load is None:
        return None, "no generator reports what was sent and received"
    parted = load.parted(stretch.calm, stretch.window)
    if parted is None:
        return None, "too few samples before it to know the usual rate"
    with np.errstate(all="ignore"):
        measured = outage(*parted, load.least_share)
    if measured is None or not all(
        map(math.isfinite, (measured.lost, measured.loss_s, measured.loss_error_s, measured.rate))
    ):
        return None, "fewer than two traffic samples around it"
    if measured.loss_s <= measured.loss_error_s:
        # Nothing was lost beyond the error; what a slow, uneven rate lacks in single readings is no outage.
        measured = replace(measured, spans=(), share=None)
    return measured, ""


def _later(spans: Sequence[DownTime], event: Event) -> list[int]:
    """When something went down again over three minutes after recovery (and after the deadline), too late to be caused
    by the event: timers that it starts (a hold time of three minutes, a graceful restart of two) have run out."""
    until_ns = max(event.begin_ns, event.end_ns or 0) + _APART_NS
    until_ns = max(until_ns, event.deadline_ns or 0)
    for span in spans:
        if span.window.begin_ns > until_ns:
            return [span.window.begin_ns]
        until_ns = max(until_ns, span.window.end_ns + _APART_NS)
    return []


def _probed(case: Case, stretch: EventScope, later: list[int]) -> Iterator[Probed]:
    """Each peer with two readings in the window that answered before; later outages are appended to ``later``."""
    for up in case.series:
        good = up.between(stretch.window.begin_ns, stretch.window.end_ns).finite()
        calm = up.between(stretch.calm.begin_ns, stretch.calm.end_ns).finite()
        if up.metric != "reach.up" or len(good) < 2 or (len(calm) and float(np.mean(calm.values > 0)) < 0.5):
            continue
        peer = label(up.object, "peer") or up.object
        protocol = label(up.object, "protocol")
        spans = unanswered(good.time_ns, good.values, stretch.window)
        own_look = stretch
        if again := _later(spans, stretch.event):
            later += again
            own_look = replace(stretch, window=Window(stretch.window.begin_ns, again[0]))
            spans = unanswered(good.time_ns, good.values, own_look.window)
        step_s = cadence(good) or 0.0
        own = {s.metric: s for s in case.series if s.object == up.object}
        sent, lost = own.get("reach.sent"), own.get("reach.lost")
        yield Probed(f"{peer} over {protocol}" if protocol else peer, spans, step_s, _lost_s(sent, lost, own_look))


def _lost_s(sent: Series | None, lost: Series | None, stretch: EventScope) -> float | None:
    """Lost requests / rate at which they were sent, in seconds."""
    if sent is None or lost is None:
        return None
    with np.errstate(all="ignore"):
        asked, missing = (steps(s.between(stretch.window.begin_ns, stretch.window.end_ns)) for s in (sent, lost))
        number, seconds = float(np.nansum(asked.count)), float(asked.seconds.sum())
        value = float(np.nansum(missing.count)) * seconds / number if number > 0 else math.nan
    return value if math.isfinite(value) and value >= 0 else None


def _latency(series: Sequence[Series], stretch: EventScope) -> Peak | None:
    """The peak of the generators' latency that rose most; without one, of the probes' round trip."""
    for metric in _PEAKS:
        peaks = [p for s in series if s.metric == metric and (p := _peak(s, stretch)) is not None]
        if peaks:
            return max(peaks, key=lambda p: p.highest / p.before if p.before > 0 else p.highest)
    return None


def _peak(series: Series, stretch: EventScope) -> Peak | None:
    calm = series.between(stretch.calm.begin_ns, stretch.calm.end_ns).finite().values
    after = series.between(stretch.window.begin_ns, stretch.window.end_ns).finite().values
    if not calm.size or not after.size:
        return None
    return Peak(series.trait.unit, median(calm / 2) * 2, float(after.max()))


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """Readings after an event, the level before it, and the least band around that."""

    name: str
    before: Reference
    after: Floats
    at_ns: Ints
    least: float
    served: bool


def _level(series: Series, stretch: EventScope) -> _Level | None:
    """A latency, whose band is at least a millisecond (or its level, if that is less), or the CPU."""
    calm = series.between(stretch.calm.begin_ns, stretch.calm.end_ns).finite()
    after = series.between(stretch.window.begin_ns, stretch.window.end_ns).finite()
    held = _reference(calm.values, after.values)
    if held is None:
        return None
    late = series.metric in _PEAKS
    least = min(_SLIGHT_S, abs(held.mean)) if late else _CPU_SHARE
    return _Level(name_of(series), held, after.values, after.time_ns, least, served=late)


def _reference(calm: Floats, after: Floats) -> Reference | None:
    if calm.size < _MIN_SAMPLES_BEFORE or after.size < 2 * MIN_WINDOW or float(np.abs(calm).max()) > 1e150:
        return None
    before = reference(calm)
    return before if before.effective >= _MIN_EFFECTIVE else None


def _back(level: _Level, tolerance: float, stretch: EventScope) -> ReturnTime:
    """When the level is proven to be back (``stats.return_to_level.returned``), in seconds from the event's start."""
    back = returned(level.after, level.before, max(tolerance * abs(level.before.mean), level.least))
    away = back is not None and back.outside and back.residue > 0
    if back is None or back.index is None:
        return ReturnTime(level.name, None, away, level.served)
    since = 0.0 if back.last is None else max(0.0, (int(level.at_ns[back.index]) - stretch.event.begin_ns) * 1e-9)
    return ReturnTime(level.name, since, away, level.served)
