"""What a management controller says of a chassis: readings and their limits, and which of them go into an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from soakwatch_model.metric import CATALOGUE, fault_of
from soakwatch_model.sample import Answer, Fault, Sample, object_text

_HOUR_NS = 3600 * 10**9
_MINUTE_S = 60.0
_AT_EACH_POLL = tuple(
    metric.name
    for metric in CATALOGUE
    if metric.name.startswith(("system.temperature", "hardware.")) and "optic" not in metric.labels
    if 0 < metric.every <= _MINUTE_S
)
"""What a controller reads of the chassis, which other sources read each minute at most; limits come each hour."""


def cadences(interval_s: float) -> dict[str, float]:
    """How often a controller's readings come: at each poll, where most other sources bring them each minute."""
    return dict.fromkeys(_AT_EACH_POLL, interval_s)


@dataclass(slots=True)
class HardwareReadings:
    """What one look brought: values and limits by metric and object, and why others are missing.

    ``chassis`` stands before the names of parts where a service has several chassis.
    """

    chassis: str = ""
    values: dict[tuple[str, str], float] = field(default_factory=dict)
    limits: dict[tuple[str, str], float] = field(default_factory=dict)
    missing: dict[tuple[str, str], str] = field(default_factory=dict)
    parts: dict[tuple[str, str], bool] = field(default_factory=dict)  # fans and supplies: whether one is there

    def take(self, metric: str, thing: str, value: float) -> None:
        """A reading of an object; one that cannot be is a fault."""
        fault = fault_of(metric, value)
        if fault is None:
            self.values[metric, thing] = value
        else:
            self.missing[metric, thing] = f"the sensor lies: {fault}"

    def limit(self, metric: str, thing: str, stated: Mapping[str, float | None]) -> None:
        """What a part states as its limits, by their suffix (``limit.high``); a 0 above or None is none."""
        for suffix, number in stated.items():
            if number is None or (number <= 0 and (suffix.endswith("high") or metric != "system.temperature")):
                continue
            if fault_of(f"{metric}.{suffix}", number) is None:
                self.limits[f"{metric}.{suffix}", thing] = number

    def part(self, metric: str, thing: str, *, there: bool, works: bool | None) -> None:
        """Whether a fan or a supply is there and works; None: nobody says whether it does."""
        self.parts[metric, thing] = there
        if works is not None or not there:
            self.values[metric, thing] = float(there and bool(works))

    def object(self, label: str, name: str, metric: str) -> str:
        """The object of a part; a second one of the same name has a number behind it."""
        shown = f"{self.chassis} {name}".strip()
        thing, number = object_text(**{label: shown}), 1
        while (metric, thing) in self.values or (metric, thing) in self.missing:
            number += 1
            thing = object_text(**{label: f"{shown} #{number}"})
        return thing


class HardwareAnswers:
    """Readings at each poll, limits each hour and when they change; a part that never was there is left out."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], float] = {}
        self._told_ns = 0
        self._seen: set[tuple[str, str]] = set()

    def answer(self, every: HardwareReadings, now_ns: int) -> Answer:
        """The answer of this look."""
        self._seen |= {key for key, there in every.parts.items() if there}
        values = {key: value for key, value in every.values.items() if key not in every.parts or key in self._seen}
        if every.limits != self._told or now_ns - self._told_ns >= _HOUR_NS:
            self._told, self._told_ns = dict(every.limits), now_ns
            values |= every.limits
        samples = tuple(Sample(metric, thing, value, now_ns) for (metric, thing), value in values.items())
        return Answer(samples, (), tuple(Fault(metric, thing, why) for (metric, thing), why in every.missing.items()))
