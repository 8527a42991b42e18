"""Parses the sensors (``-c -v sdr list all``) and power (``dcmi power reading``) of ``ipmitool``.

The row of a sensor with a reading is name, value, unit, status, entity, entity's name, type, nominal, normal lowest and
highest, the six thresholds from upper non-recoverable to lower non-critical, lowest, highest. The row of a sensor of
states is name, number, status, entity, states. Nothing is quoted, so columns are located by the entity.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Final

from soakwatch.sources.hardware_readings import HardwareReadings

_ROW: Final = re.compile(
    r"(?P<name>.*?),(?P<value>[^,]*),(?P<unit>[^,]*),(?P<status>[^,]*),(?P<entity>\d+\.\d+),(?P<rest>.*(?:,[^,]*){8})"
)
_STATES: Final = re.compile(r"(?P<name>.*?),[0-9A-F]{2,}h,(?P<status>[^,]*),(?P<entity>\d+\.\d+),(?P<states>.*)")
_UNITS: Final = {
    "degrees C": ("system.temperature", "sensor"),
    "RPM": ("hardware.fan.speed", "fan"),
    "Volts": ("hardware.voltage", "sensor"),
    "Watts": ("system.power", "sensor"),
}
_SUPPLY = "10."  # entity of power supplies (IPMI 2.0, table 43-13)
_PRESENT = "Presence detected"
_FAILURES: Final = ("Failure detected", "Power Supply AC lost", "AC lost or out-of-range", "Config Error")
_INSTANT: Final = re.compile(r"Instantaneous power reading\s*:\s*(\d+) Watts")
_INACTIVE: Final = re.compile(r"Power reading state is\s*:\s*deactivated")

Known = dict[tuple[str, str], tuple[str, str]]
"""Metric and object of a sensor, by its name and entity."""


def power_of_dcmi(said: str) -> float | None:
    """Watts of the whole machine; None while the controller does not measure.

    >>> power_of_dcmi("Instantaneous power reading:   344 Watts\\nPower reading state is:   activated")
    344.0
    """
    found = _INSTANT.search(said)
    return None if found is None or _INACTIVE.search(said) else float(found[1])


def take_sensors(into: HardwareReadings, rows: str, known: Known) -> None:
    """Take the sensors that have a metric. ``known`` are sensors that had a reading before: without one now they are
    faults.

    Sensors of the same name, such as ``Temp`` of each processor, are named with their entity.
    """
    found = [row for line in rows.splitlines() if (row := _ROW.fullmatch(line) or _STATES.fullmatch(line))]
    times = Counter(row["name"] for row in found)
    for row in found:
        place = row["name"], row["entity"]
        name = row["name"] if times[row["name"]] == 1 else " ".join(place)
        if row["status"] == "ns":
            if place in known:
                into.missing[known[place]] = "the controller gives no reading"
        elif row.re is _STATES:
            if row["entity"].startswith(_SUPPLY):
                known[place] = _take_supply(into, name, row["states"])
        elif row["unit"] in _UNITS and (value := _number(row["value"])) is not None:
            known[place] = _take_reading(into, name, row, value)


def _take_reading(into: HardwareReadings, name: str, row: re.Match[str], value: float) -> tuple[str, str]:
    """Take a reading and its limits; returns its metric and object."""
    metric, label = _UNITS[row["unit"]]
    thing = into.object(label, name, metric)
    into.take(metric, thing, value)
    upper_most, upper, upper_warning, lower_most, lower, lower_warning = map(_number, row["rest"].split(",")[-8:-2])
    if metric != "system.power":
        stated = {"warning.high": upper_warning, "warning.low": lower_warning}
        stated["limit.high"] = upper if upper is not None else upper_most
        stated["limit.low"] = lower if lower is not None else lower_most
        into.limit(metric, thing, stated)
    return metric, thing


def _take_supply(into: HardwareReadings, name: str, states: str) -> tuple[str, str]:
    """Take the state of a supply; returns its metric and object. One in standby, or that predicts its failure,
    works."""
    metric = "hardware.power_supply.up"
    thing = into.object("power_supply", name, metric)
    failed = any(words in states.replace("Predictive failure", "") for words in _FAILURES)
    into.part(metric, thing, there=failed or _PRESENT in states, works=not failed)
    return metric, thing


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
