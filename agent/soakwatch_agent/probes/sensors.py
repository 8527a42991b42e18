"""Sensors: temperatures with the limits that they state, and the current clock of each core, where there are any."""

from __future__ import annotations

import os
import re
from typing import Dict, List

from soakwatch_agent.context import HostContext, Periodic, ProbeAnswer
from soakwatch_agent.hwmon import Input, inputs, listing, read_input
from soakwatch_agent.procfs import parse_cpuinfo, read_line, read_text
from soakwatch_model.metric import fault_of
from soakwatch_model.sample import Answer, object_text

_LIMITS = (  # file and metric; the first file with a value counts
    ("crit", "limit.high"),
    ("emergency", "limit.high"),
    ("lcrit", "limit.low"),
    ("max", "warning.high"),
)
_CORE = re.compile(r"cpu(\d+)$")


def find_sensors(context: HostContext) -> List[Input]:
    """Temperature inputs of hwmon, else thermal zones, without limits: their trip points start cooling."""
    sensors = inputs(context, "temp")
    if not sensors:
        zones = context.path("/sys/class/thermal")
        for zone in listing(zones):
            if zone.startswith("thermal_zone"):
                kind = read_line(f"{zones}/{zone}/type") or "thermal"
                sensors.append(Input(f"{kind} {zone[12:]}", f"{zones}/{zone}/temp", "", trusted=False))
    return sensors


class SensorsProbe:
    """Reads /sys/class/hwmon and cpufreq itself: psutil ignores another root."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._notes = ProbeAnswer()
        self._slow, self._search, self._limits = Periodic(10), Periodic(600), Periodic(3600)
        self._sensors: List[Input] = []
        self._clocks: Dict[int, str] = {}

    def read(self, now_ns: int) -> Answer:
        """Temperatures and clocks every 10 s, limits every hour; new sensors are searched for every 10 minutes."""
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
            read_input(notes, "system.temperature", object_text(sensor=sensor.name), sensor, 1000)
        if self._limits.due(now_ns):
            for sensor in self._sensors:
                self._read_limits(sensor)
        self._read_clocks()
        return notes.answer()

    def _read_limits(self, sensor: Input) -> None:
        """The limits a chip states, if plausible: an unset one reads 0, 127 or 65261 degrees."""
        if not sensor.trusted:
            return
        stated: Dict[str, float] = {}
        for file, name in _LIMITS:
            number = sensor.number(file)
            degrees = None if number is None else number / 1000
            if degrees is None or (name.endswith("high") and not 0 < degrees < 127):
                continue
            if fault_of(f"system.temperature.{name}", degrees) is None:
                stated.setdefault(name, degrees)
        if stated.get("warning.high", 0.0) >= stated.get("limit.high", 127.0):
            del stated["warning.high"]
        for name, degrees in stated.items():
            self._notes.sample(f"system.temperature.{name}", object_text(sensor=sensor.name), degrees)

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
