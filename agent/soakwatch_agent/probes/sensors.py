"""Sensors: temperatures, and the current clock of each core, where the machine has them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Dict, Iterator, List

from soakwatch_agent.context import HostContext, Periodic, ProbeAnswer, why
from soakwatch_agent.metric import fault_of
from soakwatch_agent.procfs import parse_cpuinfo, read_line, read_text
from soakwatch_agent.sample import Answer, object_text

METRICS = ("system.temperature", "system.cpu.frequency")
_INPUT = re.compile(r"temp\d+_input$")
_CORE = re.compile(r"cpu(\d+)$")


@dataclass(frozen=True)
class Sensor:
    """A temperature input: the name that is shown and the file with thousandths of a degree."""

    __slots__ = ("name", "path")
    name: str
    path: str


def listing(folder: str) -> List[str]:
    """Names in a folder in natural order (cpu2 before cpu10); none where there is no such folder."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(names, key=lambda name: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", name)])


def find_sensors(context: HostContext) -> List[Sensor]:
    """Inputs of /sys/class/hwmon (also under its ``device`` folder, as old drivers have it), else thermal zones.

    Chips of one name get a number from the second on, in the order of the kernel.
    """
    sensors: Dict[str, Sensor] = {}
    for name, path in _inputs(context.path("/sys/class/hwmon")):
        shown, number = name, 1
        while shown in sensors:
            number += 1
            shown = f"{name} #{number}"
        sensors[shown] = Sensor(shown, path)
    if not sensors:
        zones = context.path("/sys/class/thermal")
        for zone in listing(zones):
            if zone.startswith("thermal_zone"):
                kind = read_line(f"{zones}/{zone}/type") or "thermal"
                sensors[zone] = Sensor(f"{kind} {zone[12:]}", f"{zones}/{zone}/temp")
    return list(sensors.values())


def _inputs(folder: str) -> Iterator[tuple[str, str]]:
    for chip in listing(folder):
        for base in (f"{folder}/{chip}", f"{folder}/{chip}/device"):
            names = [name for name in listing(base) if _INPUT.match(name)]
            title = read_line(f"{base}/name") or chip
            for name in names:
                label = read_line(f"{base}/{name[:-6]}_label") or name[:-6]
                yield f"{title} {label}", f"{base}/{name}"
            if names:
                break  # the same inputs show again under device


class SensorsProbe:
    """Reads /sys/class/hwmon and cpufreq (psutil would read those of this machine whatever the root)."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._notes = ProbeAnswer()
        self._slow, self._search = Periodic(10), Periodic(600)
        self._sensors: List[Sensor] = []
        self._clocks: Dict[int, str] = {}

    def read(self, now_ns: int) -> Answer:
        """Every 10 s; new sensors are searched for every 10 minutes."""
        notes = self._notes
        notes.begin(now_ns)
        if not self._slow.due(now_ns):
            return notes.answer()
        if self._search.due(now_ns):
            self._sensors = find_sensors(self._context)
            self._clocks = self._find_clocks()
            if not self._sensors:
                notes.fault("system.temperature", "", "this machine shows no temperature sensor")
        for sensor in self._sensors:
            self._read_sensor(sensor)
        self._read_clocks()
        return notes.answer()

    def _read_sensor(self, sensor: Sensor) -> None:
        notes, label = self._notes, object_text(sensor=sensor.name)
        try:
            degrees = int(read_text(sensor.path)) / 1000
        except OSError as error:
            notes.fault("system.temperature", label, f"the sensor cannot be read: {why(error)}")
            return
        except ValueError:
            notes.fault("system.temperature", label, "the sensor gives no number")
            return
        fault = fault_of("system.temperature", degrees)
        if fault is None:
            notes.sample("system.temperature", label, degrees)
            notes.recovered("system.temperature", label)
        else:
            notes.fault("system.temperature", label, f"the sensor lies: {fault}")

    def _find_clocks(self) -> Dict[int, str]:
        folder = self._context.path("/sys/devices/system/cpu")
        clocks = {}
        for name in listing(folder):
            match = _CORE.match(name)
            path = f"{folder}/{name}/cpufreq/scaling_cur_freq"
            if match and os.path.exists(path):  # noqa: PTH110
                clocks[int(match[1])] = path
        return clocks

    def _read_clocks(self) -> None:
        notes = self._notes
        for core, path in self._clocks.items():
            text = read_line(path)
            if text is not None and text.isdigit() and int(text) > 0:
                notes.sample("system.cpu.frequency", f"core={core}", int(text) * 1000)
            else:
                notes.fault("system.cpu.frequency", f"core={core}", "the core does not report its clock")
        if self._clocks:
            return
        try:
            cores = parse_cpuinfo(read_text(self._context.path("/proc/cpuinfo")))
        except OSError:
            cores = []
        with_clock = [core for core in cores if "cpu MHz" in core]
        for core_info in with_clock:
            hertz = round(float(core_info["cpu MHz"]) * 1e6)
            notes.sample("system.cpu.frequency", f"core={int(core_info['processor'])}", hertz)
        if not with_clock:
            notes.fault("system.cpu.frequency", "", "this machine does not report the clock of its cores")

    def close(self) -> None:
        """Does nothing: the probe keeps nothing open."""


def open_probe(context: HostContext) -> SensorsProbe:
    """Opens the probe of a host."""
    return SensorsProbe(context)
