"""Switching (Open vSwitch): drops by reason, lost upcalls, flows, and how busy each polling thread is."""

from __future__ import annotations

import re

from soakwatch.sources.transport.ssh.ask import Ask, Wants, lines
from soakwatch_agent.context import ProbeAnswer
from soakwatch_agent.procfs import clean
from soakwatch_model.sample import object_text

_ON_PURPOSE = frozenset({"drop_action_of_pipeline", "drop_action_forwarding_disabled", "datapath_drop_meter"})
_COVERAGE = re.compile(r"(?P<name>(?:datapath_drop|drop_action)_\w{1,60})\s.*total: (?P<total>\d{1,19})")
_DATAPATH = re.compile(r"(\S+@\S+):")
_LOOKUPS = re.compile(r"\s+lookups: hit:\d+ missed:\d+ lost:(\d{1,19})")
_FLOWS = re.compile(r"\s+flows: (\d{1,15})")
_PMD = re.compile(r"pmd thread numa_id (\d+) core_id (\d+):")
_CYCLES = re.compile(r"\s+(processing|idle) cycles: (\d{1,20})")
_MARKS = ("%%%% coverage", "%%%% datapath", "%%%% pmd")


class Ovs(Ask):
    """A polling thread's CPU is always busy; what counts is the share of its cycles that handled packets, since the
    look before."""

    metrics = (
        "system.forwarding.dropped",
        "system.forwarding.denied",
        "system.sessions",
        "system.cpu.module.utilization",
    )
    every_s = 5.0
    present = "ovs-appctl version"

    def __init__(self, wants: Wants) -> None:
        super().__init__(wants)
        self._cycles: dict[str, dict[str, int]] = {}

    def command(self) -> str:
        """Three commands that only read."""
        return (
            f"echo '{_MARKS[0]}'; ovs-appctl coverage/show; echo '{_MARKS[1]}'; ovs-appctl dpctl/show; "
            f"echo '{_MARKS[2]}'; ovs-appctl dpif-netdev/pmd-stats-show"
        )

    def read(self, text: str, notes: ProbeAnswer) -> None:
        """Notes drops, flows and shares. Coverage counters appear with their first event: one not seen yet has no
        series."""
        part, datapath, pmd = "", "", ""
        cycles: dict[str, dict[str, int]] = {}
        for line in lines(text):
            if line in _MARKS:
                part = line
            elif part == _MARKS[0] and (match := _COVERAGE.match(line)) is not None:
                metric = "system.forwarding.denied" if match["name"] in _ON_PURPOSE else "system.forwarding.dropped"
                notes.sample(metric, object_text(place="ovs", reason=match["name"]), int(match["total"]))
            elif part == _MARKS[1] and (match := _DATAPATH.match(line)) is not None:
                datapath = clean(match[1])
            elif part == _MARKS[1] and (match := _LOOKUPS.match(line)) is not None:
                object_label = object_text(place=f"ovs {datapath}", reason="upcall lost")
                notes.sample("system.forwarding.dropped", object_label, int(match[1]))
            elif part == _MARKS[1] and (match := _FLOWS.match(line)) is not None:
                notes.sample("system.sessions", object_text(table=f"ovs {datapath} flows"), int(match[1]))
            elif part == _MARKS[2] and line and not line[0].isspace():
                match = _PMD.match(line)
                pmd = f"pmd core {match[2]}" if match is not None else ""
            elif part == _MARKS[2] and pmd and (match := _CYCLES.match(line)) is not None:
                cycles.setdefault(pmd, {})[match[1]] = int(match[2])
        for name, now in cycles.items():
            self._tell_share(name, now, notes)
        self._cycles = cycles

    def _tell_share(self, name: str, now: dict[str, int], notes: ProbeAnswer) -> None:
        before = self._cycles.get(name)
        if before is None or before.keys() != now.keys() or len(now) != 2:
            return
        busy, idle = now["processing"] - before["processing"], now["idle"] - before["idle"]
        if busy >= 0 and idle >= 0 and busy + idle > 0:
            object_label = object_text(module=f"ovs {name}")
            notes.sample("system.cpu.module.utilization", object_label, busy / (busy + idle))
