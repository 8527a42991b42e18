"""Service manager (systemd): how often it restarted each service, and services that failed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from soakwatch.sources.transport.ssh.ask import Ask, Wants, whole
from soakwatch_agent.context import ProbeAnswer
from soakwatch_agent.procfs import clean
from soakwatch_model.sample import object_text

_MAX_UNITS = 300


class Systemd(Ask):
    """``NRestarts`` counts since the unit was loaded; systemd sets it back to 0 when somebody starts the unit by hand.
    Without services in the plan, all that systemd would restart are asked."""

    metrics = ("system.service.restarts",)
    every_s = 10.0
    present = "systemctl show -p NRestarts init.scope"

    def __init__(self, wants: Wants) -> None:
        super().__init__(wants)
        self._states: dict[str, str] = {}

    def command(self) -> str:
        """One call."""
        names = [name if "." in name else f"{name}.service" for name in self._wants.services] or ["*.service"]
        units = " ".join(shlex.quote(name) for name in names)
        return f"systemctl --no-pager show -p Id,NRestarts,Restart,ActiveState,Result -- {units}"

    def read(self, text: str, notes: ProbeAnswer) -> None:
        """Notes restarts; event ``service.failed`` when a service becomes failed."""
        for block in text.split("\n\n")[:_MAX_UNITS]:
            unit = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
            name, restarts = unit.get("Id", ""), whole(unit.get("NRestarts"))
            if not name or restarts is None or (not self._wants.services and unit.get("Restart") in (None, "no")):
                continue
            object_label = object_text(service=clean(name))
            notes.sample("system.service.restarts", object_label, restarts)
            self._follow(name, unit, object_label, notes)

    def _follow(self, name: str, unit: Mapping[str, str], object_label: str, notes: ProbeAnswer) -> None:
        state = unit.get("ActiveState", "")
        if state == "failed" and self._states.get(name, state) != "failed":
            notes.event("service.failed", object_label, result=clean(unit.get("Result", "")), service=clean(name))
        self._states[name] = state
