"""Fans and voltages of /sys/class/hwmon, with the limits that their chips state."""

from __future__ import annotations

from typing import List

from soakwatch_agent.context import HostContext, Periodic, ProbeAnswer
from soakwatch_agent.hwmon import Input, inputs, read_input
from soakwatch_model.metric import fault_of
from soakwatch_model.sample import Answer, object_text


class FansProbe:
    """Reads fans and voltages; a PC board's monitoring chip gives fans only: nobody scaled its voltages."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._notes = ProbeAnswer()
        self._slow, self._search, self._limits = Periodic(60), Periodic(600), Periodic(3600)
        self._fans: List[Input] = []
        self._voltages: List[Input] = []

    def read(self, now_ns: int) -> Answer:
        """Readings every minute, limits every hour; new inputs are searched for every 10 minutes."""
        notes = self._notes
        notes.begin(now_ns)
        if not self._slow.due(now_ns):
            return notes.answer()
        if self._search.due(now_ns):
            self._fans = inputs(self._context, "fan")
            self._voltages = [each for each in inputs(self._context, "in") if each.trusted]
        limits = self._limits.due(now_ns)
        for fan in self._fans:
            label = object_text(fan=fan.name)
            read_input(notes, "hardware.fan.speed", label, fan, 1)
            fault = fan.number("fault")
            if fault in (0, 1):
                notes.sample("hardware.fan.up", label, 1 - fault)
            least = fan.number("min") if limits and fan.trusted else None
            if least is not None and least > 0:
                self._limit("hardware.fan.speed.limit.low", label, least)
        for voltage in self._voltages:
            label = object_text(sensor=voltage.name)
            read_input(notes, "hardware.voltage", label, voltage, 1000)
            for file, side in (("crit", "high"), ("lcrit", "low")) if limits else ():
                stated = voltage.number(file)
                if stated:
                    self._limit(f"hardware.voltage.limit.{side}", label, stated / 1000)
        return notes.answer()

    def _limit(self, metric: str, label: str, value: float) -> None:
        if fault_of(metric, value) is None:
            self._notes.sample(metric, label, value)

    def close(self) -> None:
        """Does nothing: the probe keeps nothing open."""


def open_probe(context: HostContext) -> FansProbe:
    """Opens the probe of a host."""
    return FansProbe(context)
