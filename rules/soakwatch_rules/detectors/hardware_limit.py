"""Hardware limits: a sensor beyond its own limit, a fan or supply that failed, an optic below its alarm."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, Outcome
from soakwatch_model.label import label
from soakwatch_model.metric import BY_NAME, CATALOGUE
from soakwatch_model.metric_queries import words_of
from soakwatch_model.roles import DUT
from soakwatch_model.series import Floats, Series
from soakwatch_model.window import Window
from soakwatch_rules.finding_draft import absent, draft, half_unread
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import Input, RuleSpec
from soakwatch_rules.sampling import cadence
from soakwatch_rules.stats.hysteresis import true_runs
from soakwatch_rules.traits import Family, Guide, Inconclusive, Limit, Marks, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, duration, first_few, moment, quantity

_MAX_MARKS = 50
_DARK_DBM = -30.0  # modules report -40 or less without light
_OFF_A = 1e-4  # a laser that is on draws milliamperes
_STATED: Final = ("limit.high", "limit.low", "warning.high", "warning.low")
_PORT: Final = re.compile(r"(?P<kind>[A-Za-z]{2,}|[0-9]{1,3}GE)-?(?P<number>[0-9]+(?:[/:.][0-9]+)*)(?![0-9/:.])")
_EXCUSES: Final = frozenset({"hardware.fault", "reboot"})
_READINGS: Final = tuple(metric.name for metric in CATALOGUE if f"{metric.name}.{_STATED[0]}" in BY_NAME)
"""Metrics for which a device may state limits."""
_OFF: Final = {"dBm": _DARK_DBM, "A": _OFF_A}
"""By unit, the value at or below which a laser is off."""
_STATES: Final = {"hardware.fan.up": ("fan", "fan"), "hardware.power_supply.up": ("power supply", "power_supply")}


@dataclass(frozen=True, slots=True)
class _Past:
    """Readings [first, close) beyond a limit (or down), the worst of them, and the limit in force at that reading."""

    first: int
    close: int
    window: Window
    worst: float
    limit: float
    high: bool
    critical: bool
    to_end: bool
    planned: bool

    @property
    def from_start(self) -> bool:
        """Whether it began at or before the first reading, so that this run did not cause it."""
        return self.first == 0

    @property
    def number(self) -> int:
        """The number of readings in it."""
        return self.close - self.first


@dataclass(frozen=True, slots=True)
class HardwareLimit(Parameters):
    """Fails if hardware passed a limit that the device itself states, or if a fan or power supply failed.

    Each sensor is compared with its own limits (``….limit.high`` and ``….limit.low``: critical; ``….warning.high`` and
    ``….warning.low``): temperatures, voltages, fan speeds, received and sent power and laser current of optics. A limit
    is passed if ``needed`` readings in a row lie beyond the limit in force at each of them. Fans and power supplies
    report whether they work.

    fail: on a device under test a critical limit was passed during the run; or a fan or power supply that worked then
    failed, or is gone, for ``needed`` readings. warn: a warning limit was passed; a single reading lies beyond a
    critical limit; it was beyond the limit, or did not work, at the first reading already; a laser was switched off;
    any of these on a generator or the monitor. pass: it lies entirely within an event that expects ``hardware.fault``
    or ``reboot``; for optics, within an event that expects anything, since the far end of the link may have changed, or
    while the interface that the optic is named after was administratively down.

    An optic that had light and lost it (-30 dBm or less, or a device that now answers "no reading") is below its low
    alarm; if the device states none, ``needed`` dark readings count as one. Unanswered polls are missing, not dark.

    Not judged, only shown: a sensor without a limit; limits that cannot be right (a low one above the high one, a
    highest temperature of 0); an optic that had no light or its laser off for the whole run, as at an unused port.
    Values outside of the catalogue's range (-866597556 °C, 0 K) are no readings.

    How often wrong: `soakwatch rules hardware_limit` shows the measured table. Known weaknesses: limits are the
    maker's, and some makers set them for other parts than those plugged in; a fan may stop between two readings; a
    device may report nothing of a part that was pulled, an optic among them; an optic whose name does not contain its
    interface's is not known to be shut.

    Neighbours: ``level`` judges limits of the plan, ``kernel_fault`` hardware errors that the kernel logs,
    ``saturation`` tables and pools.

    Parameters: ``needed``.

    >>> from soakwatch_rules.signals import readings
    >>> def told(values, limit):
    ...     hot = readings("system.temperature", np.array(values, dtype=float), 60.0, object="sensor=inlet")
    ...     most = readings("system.temperature.limit.high", np.array([limit]), 60.0, object="sensor=inlet")
    ...     case = Case("dut", hot.object, Window(0, len(hot) * 60 * 10**9), (hot, most))
    ...     return HardwareLimit().judge(case)[0]
    >>> for finding in (told([40] * 30, 75), told([40] * 20 + [78] * 10, 75)):
    ...     print(finding.outcome, "-", finding.reason)
    pass - temperature inlet: at most 40 °C, its limit is 75 °C
    fail - temperature inlet: 78 °C, above its limit of 75 °C from 1970-01-01 00:20:00 UTC to the end, 10 min

    References: RFC 3433 (entity sensors); SFF-8472 (alarm and warning thresholds of optics); CISCO-ENTITY-SENSOR-MIB
    (severities of thresholds).
    """

    name: ClassVar[str] = "hardware_limit"
    version: ClassVar[int] = 2
    summary: ClassVar[str] = "a sensor, fan, power supply or optic passed the limit that the device states"
    metrics: ClassVar[tuple[str, ...]] = (
        *_STATES,
        *_READINGS,
        *(f"{metric}.{stated}" for metric in _READINGS for stated in _STATED),
    )
    scope: ClassVar[Literal["object", "metric", "target"]] = "object"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec(
        "two readings of a sensor, and a limit of its own", shortest_s=600.0, inputs=frozenset({Input.SHUT_PORTS})
    )

    needed: float = parameter(
        2.0, "{reading}", "readings in a row beyond a limit", "one may be a glitch of the sensor", within="[1, inf)"
    )

    def definition(self) -> str:
        return (
            f"a limit is passed by {self.needed:g} readings in a row beyond what the device states "
            "for this sensor; a critical one passed in the run fails, as does a fan or power supply that worked and "
            "then did not, and light of an optic that was there and is gone; a warning limit, and what was so from the "
            "first reading, warn"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding for each reading or state of the object."""
        if not case.series:
            return (absent(self, case, "sensor, fan, power supply or optic"),)
        known = {series.metric: series for series in case.series}
        return tuple(
            self._state(case, series) if series.metric in _STATES else self._reading(case, series, known)
            for series in case.series
            if series.metric in _STATES or series.metric in _READINGS
        )

    def _reading(self, case: Case, series: Series, known: dict[str, Series]) -> Finding:
        unit = series.trait.unit
        part = label(series.object, BY_NAME[series.metric].labels[0])
        name = f"{words_of(series.metric)} {part or series.object}".strip()
        series = _sound(series.between(case.window.begin_ns, case.window.end_ns))
        finding = replace(draft(self, case, series), unit=unit)
        limits = _limits(series.metric, known)
        if "limit.low" not in limits and (dark := self._dark_limit(series)) is not None:
            limits["limit.low"] = dark
        if not limits:
            shown = f"; it read {_extent(series.values, unit)}" if len(series) else ""
            reason = f"{name}: the device states no limit of its own{shown}"
            return finding.not_applicable(reason)
        if (short := self._short(finding, series, name)) is not None:
            return short
        value = series.values
        off = _OFF.get(unit)
        if off is not None and bool((value <= off).all()):
            what = "the laser is off" if series.metric.endswith("bias") else "there is no light"
            reason = f"{name}: {what} the whole time, as at a port that is not used"
            return replace(finding, outcome=Outcome.NOT_APPLICABLE, reason=reason, measured=float(value.max()))
        stretches = _once(
            [past for stated, limit in limits.items() for past in self._past(case, series, stated, limit)]
        )
        tight = _tightest(value, limits, logarithmic=unit == "dBm")
        finding = _told(replace(finding, measured=tight[0], limit=tight[1]), series, stretches, self._least(series))
        unplanned = [past for past in stretches if not past.planned]
        failing = [p for p in unplanned if self._grave(p) and not _switched_off(series.metric, p)]
        if failing or unplanned:
            reported = failing or [p for p in unplanned if p.critical] or unplanned
            worst = max(reported, key=lambda past: abs(past.worst - past.limit))
            finding = replace(finding, measured=worst.worst, limit=worst.limit)
            outcome = Outcome.FAIL if failing and case.role == DUT else Outcome.WARN
            words = first_few([self._sentence(series, past) for past in reported])
            return replace(finding, outcome=outcome, reason=f"{name}: {words}")
        reason = f"{name}: {_calm(value, limits, unit)}"
        if stretches:
            shut = " or while its interface was shut" if _shut(case, series) else ""
            reason += f"; beyond it {counted(len(stretches), 'time')} within a planned event{shut}"
        return finding.passes(reason)

    def _state(self, case: Case, series: Series) -> Finding:
        what, key = _STATES[series.metric]
        name = f"{what} {label(series.object, key) or series.object}".strip()
        series = _sound(series.between(case.window.begin_ns, case.window.end_ns))
        finding = replace(draft(self, case, series), unit="1")
        if (short := self._short(finding, series, name)) is not None:
            return short
        down = series.values < 0.5
        stretches = [
            self._stretch(case, series, pair, 1.0, high=False, critical=True) for pair in true_runs(down).tolist()
        ]
        finding = _told(finding, series, stretches, self._least(series))
        unplanned = [past for past in stretches if not past.planned]
        if not unplanned:
            planned = f", but for {counted(len(stretches), 'planned event')}" if stretches else ""
            return finding.passes(f"{name}: it worked the whole time{planned}")
        failing = [past for past in unplanned if self._grave(past)]
        texts = []
        for past in failing or unplanned:
            span = f"for {duration(past.window.seconds)}"
            if past.from_start and past.to_end:
                texts.append("it did not work at any reading: failed, or not connected, since before the run")
            elif past.from_start:
                texts.append(f"it did not work at the first reading, {span}")
            else:
                texts.append(f"it did not work from {moment(past.window.begin_ns)}{_end(past)}")
        outcome = Outcome.FAIL if failing and case.role == DUT else Outcome.WARN
        return replace(finding, outcome=outcome, reason=f"{name}: {first_few(texts)}")

    def _short(self, finding: Finding, series: Series, name: str) -> Finding | None:
        needed = max(2, math.ceil(self.needed))
        if len(series) < needed:
            reason = f"{name}: {counted(len(series), 'reading')}; {needed} needed"
            return finding.undecided(reason, InconclusiveReason.TOO_FEW, f"needs {needed} readings")
        return half_unread(finding, len(series), f"{name} is not judged", of="readings")

    def _least(self, series: Series) -> float | None:
        apart = cadence(series)
        return None if apart is None else math.ceil(self.needed) * apart

    def _grave(self, past: _Past) -> bool:
        return past.critical and not past.from_start and past.number >= math.ceil(self.needed)

    def _dark_limit(self, series: Series) -> Series | None:
        """A low limit just above darkness, for an optic that had light, lost it, and whose device states no alarm."""
        dark = series.values <= _DARK_DBM
        if not series.metric.endswith("rx_power") or not len(series) or bool(dark[0]):
            return None
        if all(close - first < math.ceil(self.needed) for first, close in true_runs(dark).tolist()):
            return None
        stated = replace(series, time_ns=series.time_ns[:1], value=np.array([math.nextafter(_DARK_DBM, 0.0)]))
        return replace(stated, metric=f"{series.metric}.limit.low")

    def _past(self, case: Case, series: Series, stated: str, limit: Series) -> Iterator[_Past]:
        high, critical = stated.endswith("high"), stated.startswith("limit")
        at = np.clip(np.searchsorted(limit.time_ns, series.time_ns, side="right") - 1, 0, None)
        limits = limit.values[at]
        beyond = series.values > limits if high else series.values < limits
        for first, close in true_runs(beyond).tolist():
            if critical or close - first >= math.ceil(self.needed):
                worst = int(np.argmax(series.values[first:close] * (1 if high else -1))) + first
                yield self._stretch(
                    case, series, (first, close), float(limits[worst]), high=high, critical=critical, worst=worst
                )

    def _stretch(
        self,
        case: Case,
        series: Series,
        pair: tuple[int, int],
        limit: float,
        *,
        high: bool,
        critical: bool,
        worst: int | None = None,
    ) -> _Past:
        first, close = pair
        apart_ns = round((cadence(series) or 0.0) * 1e9)
        end_ns = min(int(series.time_ns[close - 1]) + apart_ns, case.window.end_ns)
        span = Window(int(series.time_ns[first]), max(end_ns, int(series.time_ns[first])))
        value = float(series.values[first if worst is None else worst])
        planned = any(
            begin <= span.begin_ns + apart_ns and span.end_ns <= end + 2 * apart_ns
            for begin, end in _excused(case, series)
        )
        return _Past(first, close, span, value, limit, high, critical, close == len(series), planned)

    def _sentence(self, series: Series, past: _Past) -> str:
        unit = series.trait.unit
        kind = "limit" if past.critical else "warning threshold"
        text = f"{quantity(past.worst, unit)}, {'above' if past.high else 'below'} its {kind} of "
        text += quantity(past.limit, unit)
        if _gone_dark(series.metric, past):
            text = f"no light ({text})"
        if _switched_off(series.metric, past):
            text += " (the laser was switched off)"
        if past.number < math.ceil(self.needed):
            return f"{text} at {moment(past.window.begin_ns)}, {counted(past.number, 'reading')} only"
        if past.from_start and past.to_end:
            return (
                f"{text} from the first reading to the last: it did not come of this run, or is no limit of this part"
            )
        begin = "the first reading" if past.from_start else moment(past.window.begin_ns)
        return f"{text} from {begin}{_end(past)}"


def _end(past: _Past) -> str:
    return f" to the end, {duration(past.window.seconds)}" if past.to_end else f" for {duration(past.window.seconds)}"


def _switched_off(metric: str, past: _Past) -> bool:
    """Whether a sending laser fell to nothing: somebody shut the port or the module; a failing laser would be dim."""
    off = _OFF.get(BY_NAME[metric].unit)
    return off is not None and not metric.endswith("rx_power") and not past.high and past.worst <= off


def _gone_dark(metric: str, past: _Past) -> bool:
    """Whether the light that an optic received is gone."""
    return metric.endswith("rx_power") and not past.high and past.worst <= _DARK_DBM


def _shut(case: Case, series: Series) -> list[tuple[int, int]]:
    """The times in which the interface of an optic was administratively down."""
    optic = label(series.object, "optic") if series.metric.startswith("hardware.optic") else ""
    return [
        (window.begin_ns, window.end_ns)
        for name, windows in case.facts.shut.items()
        if optic and _is_of(optic, name)
        for window in windows
    ]


def _is_of(optic: str, interface: str) -> bool:
    """Whether an optic is named after this interface, whose kind may be abbreviated ("Eth1/1", "Ethernet1/1").

    >>> _is_of("Ethernet1/1 Receive Power Sensor", "Eth1/1"), _is_of("Ethernet1/11 Lane 1", "Ethernet1/1")
    (True, False)
    """
    own = _PORT.fullmatch(interface)
    if own is None:
        return interface in optic.split()
    return any(
        found["number"] == own["number"] and _one_begins_with(found["kind"].lower(), own["kind"].lower())
        for found in _PORT.finditer(optic)
    )


def _one_begins_with(kind: str, other: str) -> bool:
    return kind.startswith(other) or other.startswith(kind)


def _sound(series: Series) -> Series:
    """The finite readings inside the range; at its ends a sensor whose range begins below 0 means "no reading"."""
    series = series.finite()
    low, high = series.trait.low, series.trait.high
    if low is None or high is None or low >= 0:
        return series
    good = (series.values > low) & (series.values < high)
    return series if bool(good.all()) else replace(series, time_ns=series.time_ns[good], value=series.value[good])


def _limits(metric: str, known: dict[str, Series]) -> dict[str, Series]:
    """The stated limits that can be right: low below high, and a highest temperature or speed above 0."""
    stated = {name: _sound(known[f"{metric}.{name}"]) for name in _STATED if f"{metric}.{name}" in known}
    stated = {name: limit for name, limit in stated.items() if len(limit)}
    last = {name: float(limit.values[-1]) for name, limit in stated.items()}
    for kind in ("limit", "warning"):
        low, high = last.get(f"{kind}.low"), last.get(f"{kind}.high")
        if low is not None and high is not None and low >= high:
            stated.pop(f"{kind}.low", None)
            stated.pop(f"{kind}.high", None)
    if metric in {"system.temperature", "hardware.fan.speed", "hardware.optic.bias"}:
        stated = {name: one for name, one in stated.items() if not (name.endswith("high") and last[name] <= 0)}
    if metric in {"hardware.fan.speed", "hardware.optic.bias"}:
        stated = {name: one for name, one in stated.items() if last[name] > 0}
    return stated


def _excused(case: Case, series: Series) -> list[tuple[int, int]]:
    """The times of events that excuse the series, and for an optic those in which its interface was shut."""
    optic = series.metric.startswith("hardware.optic")
    return _shut(case, series) + [
        (event.begin_ns, next(end for end in (event.deadline_ns, event.end_ns, case.window.end_ns) if end is not None))
        for event in case.events
        if (event.expect if optic else _EXCUSES & event.expect.keys())
    ]


def _told(finding: Finding, series: Series, stretches: Sequence[_Past], least: float | None) -> Finding:
    """The finding with the numbers and marks of its stretches."""
    numbers = {
        "stretches": float(sum(not past.planned for past in stretches)),
        "planned": float(sum(past.planned for past in stretches)),
        "seconds": float(sum(past.window.seconds for past in stretches)),
    }
    marks = tuple(_mark(series, past) for past in stretches[:_MAX_MARKS])
    of = "" if least is None else "s"
    return replace(finding, marks=marks, numbers=numbers, smallest_detectable=least, detectable_unit=of)


def _mark(series: Series, past: _Past) -> Mark:
    unit = series.trait.unit
    text = f"{quantity(past.worst, unit)}, limit {quantity(past.limit, unit)}"
    text = ("down" if series.metric in _STATES else text) + (" (planned)" if past.planned else "")
    return Mark(past.window.begin_ns, past.window.end_ns, text, planned=past.planned)


def _once(stretches: Sequence[_Past]) -> list[_Past]:
    """The stretches in time order, without warnings that overlap a critical stretch on the same side."""
    grave = [past for past in stretches if past.critical]
    alone = (
        past
        for past in stretches
        if not past.critical
        and not any(g.high == past.high and g.first < past.close and past.first < g.close for g in grave)
    )
    return sorted([*grave, *alone], key=lambda past: past.first)


def _tightest(value: Floats, limits: dict[str, Series], *, logarithmic: bool) -> tuple[float, float]:
    """The extreme reading and the limit that it came nearest to, preferring critical limits. For light (dBm) low limits
    come first, because links fail by too little of it and a share of a limit in dBm means nothing."""
    critical = [name for name in limits if name.startswith("limit")] or list(limits)
    critical = [name for name in critical if logarithmic and name.endswith("low")] or critical
    pairs = [
        (float(value.max() if name.endswith("high") else value.min()), float(limits[name].values[-1]))
        for name in critical
    ]
    return min(pairs, key=lambda pair: abs(pair[1] - pair[0]))


def _calm(value: Floats, limits: dict[str, Series], unit: str) -> str:
    parts = []
    for side, most, words in (("high", value.max(), "at most"), ("low", value.min(), "at least")):
        for kind, noun in (("limit", "limit"), ("warning", "warning threshold")):
            name = f"{kind}.{side}"
            if name in limits:
                stated = quantity(float(limits[name].values[-1]), unit)
                parts.append(f"{words} {quantity(float(most), unit)}, its {noun} is {stated}")
                break
    return "; ".join(parts)


def _extent(value: Floats, unit: str) -> str:
    low, high = quantity(float(value.min()), unit), quantity(float(value.max()), unit)
    return low if low == high else f"{low} to {high}"


TRAITS: Final = Traits(
    words=RuleWords(
        "hardware passed its own limit",
        "hardware past its limit",
        happened="{thing} on {target} passed its own limit",
    ),
    rank=70,
    expected_as="hardware.fault",
    marks=Marks.WITNESSES,
    limit=Limit.DEVICE,
    inconclusive=Inconclusive(by_majority=True),
    family=Family.HARDWARE,
    guide=Guide(
        fails_when=(
            "A sensor passes the critical limit that the device states, or a fan, a supply or the light of an optic is"
            " gone."
        ),
        misses="Sensors without a stated limit: give one with the rule level.",
        change_with="hardware_limit: {needed: 3}",
        next_step="Check cooling, power and optics on site; soak again after the exchange.",
    ),
)
