"""Converts resources of Redfish (DSP2046): power, supplies, fans, temperatures and voltages, with thresholds.

Older services have ``Power`` and ``Thermal`` of a chassis, newer ones ``Sensors``, ``PowerSubsystem`` and
``ThermalSubsystem``. Many have both: then the newer ones are read only where an older one is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from soakwatch.sources.hardware_readings import HardwareReadings
from soakwatch_model.metric import BY_NAME

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
_LIMITED: Final = frozenset(name for name, _, _ in _OF_SENSORS.values() if f"{name}.limit.high" in BY_NAME)
_GONE: Final = frozenset({"Absent", "UnavailableOffline"})


def number_of(value: object) -> float | None:
    """A finite number; None for anything else.

    >>> number_of(3), number_of("3"), number_of(True), number_of(None)
    (3.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def take_power(into: HardwareReadings, power: Resource) -> None:
    """The resource ``Power``: consumption, supplies and voltages."""
    for index, control in enumerate(_members(power, "PowerControl")):
        if "PowerConsumedWatts" in control:
            name = "total" if not index else str(control.get("Name") or f"control {index}")
            _put(into, "system.power", "sensor", name, control["PowerConsumedWatts"], control)
    for index, supply in enumerate(_members(power, "PowerSupplies")):
        take_supply(into, supply, f"supply {index + 1}")
        for key, side in (("PowerInputWatts", "input"), ("PowerOutputWatts", "output")):
            if supply.get(key) is not None:
                _put(
                    into,
                    "system.power",
                    "sensor",
                    f"{_name(supply, f'supply {index + 1}')} {side}",
                    supply[key],
                    supply,
                )
    for voltage in _members(power, "Voltages"):
        thing = _put(into, "hardware.voltage", "sensor", _name(voltage), voltage.get("ReadingVolts"), voltage)
        _limit(into, "hardware.voltage", thing, voltage.get, _OLD_LIMITS)


def take_thermal(into: HardwareReadings, thermal: Resource) -> None:
    """The resource ``Thermal``: temperatures, and fans whose reading is in RPM (a percentage is no speed)."""
    for sensor in _members(thermal, "Temperatures"):
        thing = _put(into, "system.temperature", "sensor", _name(sensor), sensor.get("ReadingCelsius"), sensor)
        _limit(into, "system.temperature", thing, sensor.get, _OLD_LIMITS)
    for index, fan in enumerate(_members(thermal, "Fans")):
        name = _name(fan, f"fan {index + 1}", "FanName")
        _part(into, "hardware.fan.up", "fan", name, fan)
        if fan.get("ReadingUnits") == "RPM":
            thing = _put(into, "hardware.fan.speed", "fan", name, fan.get("Reading"), fan)
            _limit(into, "hardware.fan.speed", thing, fan.get, _OLD_LIMITS)


def take_supply(into: HardwareReadings, supply: Resource, name: str) -> None:
    """The state of a power supply, of ``Power`` or of ``PowerSubsystem``."""
    _part(into, "hardware.power_supply.up", "power_supply", _name(supply, name), supply)


def take_fan(into: HardwareReadings, fan: Resource, name: str) -> None:
    """A fan of ``ThermalSubsystem``."""
    _part(into, "hardware.fan.up", "fan", _name(fan, name), fan)


def take_sensor(into: HardwareReadings, sensor: Resource, *, power: bool) -> None:
    """One of ``Sensors``; with ``power=False`` sensors of power and energy are skipped, as ``Power`` has them."""
    known = _OF_SENSORS.get(str(sensor.get("ReadingType")))
    if known is None or (known[0] in {"system.power", "system.energy"} and not power):
        return
    metric, label, scale = known
    if metric == "hardware.fan.speed" and sensor.get("ReadingUnits") not in {"RPM", "{rev}/min", None}:
        return
    reading = number_of(sensor.get("Reading"))
    thing = _put(
        into, metric, label, _name(sensor), sensor.get("Reading") if reading is None else reading * scale, sensor
    )
    thresholds = sensor.get("Thresholds")
    if isinstance(thresholds, Mapping) and metric in _LIMITED:
        _limit(into, metric, thing, lambda key: _reading(thresholds.get(key)), _NEW_LIMITS)


def _put(
    into: HardwareReadings, metric: str, label: str, name: str, value: object, what: Resource | None = None
) -> str:
    """Store a reading; returns its object. null is a fault, unless the part is absent or switched off."""
    thing = into.object(label, name, metric)
    number = number_of(value)
    if number is not None:
        into.take(metric, thing, number)
    elif value is not None:
        into.missing[metric, thing] = "this is no number"
    elif what is not None and _state(what) in {"", "Enabled"}:
        into.missing[metric, thing] = "the service gives no reading"
    return thing


def _limit(
    into: HardwareReadings, metric: str, thing: str, stated: Callable[[str], object], names: Mapping[str, str]
) -> None:
    into.limit(metric, thing, {suffix: number_of(stated(key)) for suffix, key in names.items()})


def _part(into: HardwareReadings, metric: str, label: str, name: str, what: Resource) -> None:
    """Store whether a fan or a supply works: it is present, and its health is not critical."""
    status = what.get("Status")
    if isinstance(status, Mapping):
        told = bool(status.get("Health") or status.get("State"))
        works = status.get("Health") != "Critical" if told else None
        into.part(metric, into.object(label, name, metric), there=_state(what) not in _GONE, works=works)


def linked(resource: Resource, *keys: str) -> str | None:
    """The address of a linked resource; None if there is no link.

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
