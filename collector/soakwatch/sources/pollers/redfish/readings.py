"""What resources of Redfish (DSP2046) say: power, supplies, fans, temperatures and voltages, with their thresholds.

Old services have ``Power`` and ``Thermal`` of a chassis, new ones ``Sensors``, ``PowerSubsystem`` and
``ThermalSubsystem``; many have both, and then the sensors are asked only where the old resources are not there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from soakwatch_agent.metric import fault_of
from soakwatch_agent.sample import object_text

Resource = Mapping[str, object]

_OLD_LIMITS: Final = {
    "limit.high": "UpperThresholdCritical",
    "limit.low": "LowerThresholdCritical",
    "warning.high": "UpperThresholdNonCritical",
    "warning.low": "LowerThresholdNonCritical",
}
_NEW_LIMITS: Final = {
    "limit.high": "UpperCritical",
    "limit.low": "LowerCritical",
    "warning.high": "UpperCaution",
    "warning.low": "LowerCaution",
}
_OF_SENSORS: Final = {
    "Temperature": ("system.temperature", "sensor", 1.0),
    "Rotational": ("hardware.fan.speed", "fan", 1.0),
    "Voltage": ("hardware.voltage", "sensor", 1.0),
    "Power": ("system.power", "sensor", 1.0),
    "EnergyJoules": ("system.energy", "sensor", 1.0),
    "EnergykWh": ("system.energy", "sensor", 3.6e6),
}
_LIMITED: Final = frozenset({"system.temperature", "hardware.fan.speed", "hardware.voltage"})
_GONE: Final = frozenset({"Absent", "UnavailableOffline"})


@dataclass(slots=True)
class Readings:
    """What one look brought: values and limits by metric and object, and why others are missing.

    ``chassis`` stands before the names of parts where a service has several chassis.
    """

    chassis: str = ""
    values: dict[tuple[str, str], float] = field(default_factory=dict)
    limits: dict[tuple[str, str], float] = field(default_factory=dict)
    missing: dict[tuple[str, str], str] = field(default_factory=dict)
    parts: dict[tuple[str, str], bool] = field(default_factory=dict)  # fans and supplies: whether one is there

    def put(self, metric: str, label: str, name: str, value: object, what: Resource | None = None) -> str:
        """A reading of a part; its object. A null is a fault, unless the part is not there or not switched on."""
        thing = self._object(label, name, metric)
        number = number_of(value)
        if number is None:
            if value is None and (what is None or _state(what) not in {"", "Enabled"}):
                return thing
            self.missing[metric, thing] = "the service gives no reading" if value is None else "this is no number"
            return thing
        fault = fault_of(metric, number)
        if fault is None:
            self.values[metric, thing] = number
        else:
            self.missing[metric, thing] = f"the sensor lies: {fault}"
        return thing

    def limit(self, metric: str, thing: str, stated: Callable[[str], object], names: Mapping[str, str]) -> None:
        """What a part states as its limits; a 0 above or null is none."""
        for suffix, key in names.items():
            number = number_of(stated(key))
            unset = number is None or (number <= 0 and (suffix.endswith("high") or metric != "system.temperature"))
            if number is not None and not unset and fault_of(f"{metric}.{suffix}", number) is None:
                self.limits[f"{metric}.{suffix}", thing] = number

    def part(self, metric: str, label: str, name: str, what: Resource) -> None:
        """Whether a fan or a supply works: it is there, and its health is not critical."""
        thing = self._object(label, name, metric)
        status = what.get("Status")
        if not isinstance(status, Mapping):
            return
        there = _state(what) not in _GONE
        self.parts[metric, thing] = there
        if there and not status.get("Health") and not status.get("State"):
            return
        self.values[metric, thing] = float(there and status.get("Health") != "Critical")

    def _object(self, label: str, name: str, metric: str) -> str:
        shown = f"{self.chassis} {name}".strip()
        thing, number = object_text(**{label: shown}), 1
        while (metric, thing) in self.values or (metric, thing) in self.missing:
            number += 1
            thing = object_text(**{label: f"{shown} #{number}"})
        return thing


def number_of(value: object) -> float | None:
    """A finite number; None for anything else.

    >>> number_of(3), number_of("3"), number_of(True), number_of(None)
    (3.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def take_power(into: Readings, power: Resource) -> None:
    """The resource ``Power``: consumption, supplies and voltages."""
    for index, control in enumerate(_members(power, "PowerControl")):
        if "PowerConsumedWatts" in control:
            name = "total" if not index else str(control.get("Name") or f"control {index}")
            into.put("system.power", "sensor", name, control["PowerConsumedWatts"], control)
    for index, supply in enumerate(_members(power, "PowerSupplies")):
        take_supply(into, supply, f"supply {index + 1}")
        for key, side in (("PowerInputWatts", "input"), ("PowerOutputWatts", "output")):
            if supply.get(key) is not None:
                into.put(
                    "system.power", "sensor", f"{_name(supply, f'supply {index + 1}')} {side}", supply[key], supply
                )
    for voltage in _members(power, "Voltages"):
        thing = into.put("hardware.voltage", "sensor", _name(voltage), voltage.get("ReadingVolts"), voltage)
        into.limit("hardware.voltage", thing, voltage.get, _OLD_LIMITS)


def take_thermal(into: Readings, thermal: Resource) -> None:
    """The resource ``Thermal``: temperatures, and fans by their revolutions (a share of the most is no speed)."""
    for sensor in _members(thermal, "Temperatures"):
        thing = into.put("system.temperature", "sensor", _name(sensor), sensor.get("ReadingCelsius"), sensor)
        into.limit("system.temperature", thing, sensor.get, _OLD_LIMITS)
    for index, fan in enumerate(_members(thermal, "Fans")):
        name = _name(fan, f"fan {index + 1}", "FanName")
        into.part("hardware.fan.up", "fan", name, fan)
        if fan.get("ReadingUnits") == "RPM":
            thing = into.put("hardware.fan.speed", "fan", name, fan.get("Reading"), fan)
            into.limit("hardware.fan.speed", thing, fan.get, _OLD_LIMITS)


def take_supply(into: Readings, supply: Resource, name: str) -> None:
    """The state of a power supply, of ``Power`` or of ``PowerSubsystem``."""
    into.part("hardware.power_supply.up", "power_supply", _name(supply, name), supply)


def take_fan(into: Readings, fan: Resource, name: str) -> None:
    """A fan of ``ThermalSubsystem``."""
    into.part("hardware.fan.up", "fan", _name(fan, name), fan)


def take_sensor(into: Readings, sensor: Resource, *, power: bool) -> None:
    """One of ``Sensors``; without ``power`` those of power are left out, which ``Power`` told already."""
    known = _OF_SENSORS.get(str(sensor.get("ReadingType")))
    if known is None or (known[0] in {"system.power", "system.energy"} and not power):
        return
    metric, label, scale = known
    if metric == "hardware.fan.speed" and sensor.get("ReadingUnits") not in {"RPM", "{rev}/min", None}:
        return
    reading = number_of(sensor.get("Reading"))
    thing = into.put(
        metric, label, _name(sensor), sensor.get("Reading") if reading is None else reading * scale, sensor
    )
    thresholds = sensor.get("Thresholds")
    if isinstance(thresholds, Mapping) and metric in _LIMITED:
        into.limit(metric, thing, lambda key: _reading(thresholds.get(key)), _NEW_LIMITS)


def linked(resource: Resource, *keys: str) -> str | None:
    """The address that a resource gives for another one; None where it has none.

    >>> linked({"Power": {"@odata.id": "/redfish/v1/Chassis/1/Power"}}, "Power")
    '/redfish/v1/Chassis/1/Power'
    """
    here: object = resource
    for key in keys:
        here = here.get(key) if isinstance(here, Mapping) else None
    address = here.get("@odata.id") if isinstance(here, Mapping) else None
    return address if isinstance(address, str) else None


def members(collection: Resource) -> list[Resource]:
    """The members of a collection, in full or as links."""
    return list(_members(collection, "Members"))


def _members(resource: Resource, key: str) -> Iterator[Resource]:
    rows = resource.get(key)
    if isinstance(rows, Sequence) and not isinstance(rows, str):
        yield from (row for row in rows if isinstance(row, Mapping))


def _reading(threshold: object) -> object:
    return threshold.get("Reading") if isinstance(threshold, Mapping) else None


def _state(resource: Resource) -> str:
    status = resource.get("Status")
    state = status.get("State") if isinstance(status, Mapping) else None
    return state if isinstance(state, str) else ""


def _name(resource: Resource, otherwise: str = "sensor", *keys: str) -> str:
    for key in (*keys, "Name", "MemberId", "Id"):
        text = resource.get(key)
        if isinstance(text, str) and text.strip():
            return text.strip()
    return otherwise
