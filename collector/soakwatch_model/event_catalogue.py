"""The catalogue of event kinds: what each means, who reports it, and how it is treated.

Users may record events of any other kind (``flap``): one that is not here, nor of a family below, counts as an
intervention in the device and may explain what follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final


class Origin(StrEnum):
    """What events of a kind are about."""

    DEVICE = "device"  # something happened to it: seen by a probe, or reported by the device
    GENERATOR = "generator"  # something happened to a traffic generator
    OPERATOR = "operator"  # something was done to the device, or announced
    MONITOR = "monitor"  # how the device was monitored
    RUN = "run"  # the run itself: its phases, scripts, hooks, messages


@dataclass(frozen=True, slots=True)
class EventKind:
    """One kind of event. ``about`` is its meaning and ``source`` who reports it, both in a few words.

    ``explains``: later findings may be its consequence. ``intervention``: ``event_impact`` judges what it cost the
    traffic. ``crash``: something died. ``internal``: it is about the monitoring or the initial state. ``admin``: it is
    about scripts, hooks and messages, or what people told the run, so rules ignore it. ``expectable``: a planned event
    may expect it. ``stress``: the device is under stress while it lasts, and ``recovery`` judges what remains.
    """

    name: str
    about: str
    origin: Origin
    source: str
    explains: bool = False
    intervention: bool = False
    crash: bool = False
    internal: bool = False
    admin: bool = False
    expectable: bool = False
    stress: bool = False

    @property
    def notes(self) -> str:
        """Its special properties, for a table; "-" for none."""
        words = {"crash": self.crash, "expectable": self.expectable, "intervention": self.intervention}
        return ", ".join(word for word, holds in words.items() if holds) or "-"


_SEEN: Final = EventKind("", "reported by a source", Origin.DEVICE, "sources")
_ADMIN: Final = EventKind("", "book-keeping", Origin.RUN, "the run", explains=True, admin=True)
_WATCHING: Final = EventKind("", "how it was watched", Origin.MONITOR, "the monitor", internal=True)
_FOREIGN: Final = EventKind("", "recorded by a user", Origin.OPERATOR, "users", explains=True, intervention=True)
FAMILIES: Final[Mapping[str, EventKind]] = {
    **dict.fromkeys(("process", "kernel", "core", "clock", "device", "snmp", "link", "log"), _SEEN),
    **dict.fromkeys(("hardware", "memory", "cpu", "session", "topology"), _SEEN),
    "generator": replace(_SEEN, origin=Origin.GENERATOR),
    **dict.fromkeys(("load", "module"), replace(_SEEN, explains=True)),
    **dict.fromkeys(("recorder", "source"), _WATCHING),
    "phase": replace(_SEEN, origin=Origin.RUN),
    **dict.fromkeys(("hook", "script", "event", "notify", "diagnose"), _ADMIN),
    **dict.fromkeys(("capacity", "terminal"), replace(_ADMIN, explains=False)),
}
"""How kinds outside the catalogue are treated, by the word before their first dot."""


def _entry(
    name: str,
    about: str,
    source: str,
    *,
    origin: Origin | None = None,
    **treated: bool,
) -> EventKind:
    """An entry with its family's properties except those given; without a family it is an intervention."""
    family = FAMILIES.get(name.partition(".")[0], _FOREIGN)
    return replace(family, name=name, about=about, source=source, origin=origin or family.origin, **treated)


_PROBES, _LOGS, _OWN = "agent, SSH, SNMP, CLI", "syslog, traps, CLI", "the run"
_KERNEL = "agent, SSH, syslog"
CATALOGUE: Final[tuple[EventKind, ...]] = (
    # --- what dies ---------------------------------------------------------------------------------------------
    _entry("process.restart", "a watched process is another one than before", _PROBES, crash=True, expectable=True),
    _entry("process.exit", "a watched process ended", _PROBES, crash=True, expectable=True),
    _entry("process.start", "a watched process appeared", _PROBES, expectable=True),
    _entry("process.crash", "a log reports that a program ended badly", f"SSH, {_LOGS}", crash=True, expectable=True),
    _entry("core.dump", "a core file appeared", f"agent, SSH, {_LOGS}", crash=True, expectable=True),
    _entry("core.present", "a core file was there before the run", "agent, SSH", internal=True),
    _entry("device.crash", "the device reports that it crashed", _LOGS, crash=True, expectable=True),
    _entry(
        "reboot",
        "the device started again",
        f"{_PROBES}, syslog, traps",
        crash=True,
        expectable=True,
        origin=Origin.DEVICE,
        explains=False,
        intervention=False,
    ),
    _entry(
        "reboot.unexpected",
        "the device reports a reboot that nobody requested",
        _LOGS,
        expectable=True,
        origin=Origin.DEVICE,
        intervention=False,
    ),
    _entry(
        "watchdog",
        "a watchdog expired",
        f"SSH, {_LOGS}",
        crash=True,
        expectable=True,
        origin=Origin.DEVICE,
        explains=False,
        intervention=False,
    ),
    # --- the kernel's log --------------------------------------------------------------------------------------
    _entry("kernel.panic", "the kernel panicked", _KERNEL, crash=True, expectable=True),
    _entry("kernel.oops", "the kernel logged an oops", "syslog", crash=True, expectable=True),
    _entry("kernel.oom", "the kernel killed a process because memory ran out", _KERNEL, crash=True, expectable=True),
    _entry("kernel.lockup", "a CPU was locked up", _KERNEL, crash=True),
    _entry("kernel.hung_task", "a task was blocked for minutes", _KERNEL, crash=True),
    _entry("kernel.segfault", "a program died of a fatal trap, such as a segmentation fault", _KERNEL, crash=True),
    _entry("kernel.hardware", "an uncorrected hardware error", _KERNEL, crash=True),
    _entry("kernel.hardware_corrected", "a corrected hardware error", _KERNEL),
    _entry("kernel.thermal", "the CPU was throttled for its temperature", _KERNEL),
    # --- what the device reports of itself ---------------------------------------------------------------------
    _entry("hardware.fault", "a fan, supply, sensor or card failed", "syslog, traps", expectable=True),
    _entry("memory.low", "the device reports that memory is short", _LOGS, expectable=True),
    _entry("cpu.hog", "the device reports a process that hogs its CPU", "syslog, traps", expectable=True),
    _entry("link.down", "an interface went down", "syslog, traps, gNMI", expectable=True),
    _entry("link.up", "an interface came up", "syslog, traps, gNMI", expectable=True),
    _entry("session.down", "a session with a peer went down (BGP, OSPF, BFD ...)", _LOGS, expectable=True),
    _entry("session.up", "a session with a peer came up", _LOGS, expectable=True),
    _entry("session.change", "a session with a peer changed its state", "traps", expectable=True),
    _entry("session.role", "another router became the master (VRRP, HSRP)", "syslog, traps", expectable=True),
    _entry("topology.change", "the spanning tree changed", "syslog, traps", expectable=True),
    _entry("module.restart", "a module of the device started again", "syslog, traps", expectable=True),
    _entry(
        "license",
        "a licence expired or was exceeded",
        "syslog, traps",
        expectable=True,
        origin=Origin.DEVICE,
        intervention=False,
    ),
    _entry("service.failed", "a service of systemd failed", "SSH", origin=Origin.DEVICE),
    _entry(
        "pause", "a pause of forwarding or of a program, from a log", "users", origin=Origin.DEVICE, intervention=False
    ),
    _entry("device.identity", "what a source is connected to, and each change of it", "all sources", internal=True),
    _entry(
        "setup.change",
        "a target is not as it was when the run began: its fingerprints differ",
        "all sources",
        origin=Origin.DEVICE,
        explains=False,
        intervention=False,
    ),
    _entry("log.storm", "so many lines of one kind that they are counted, not kept", "syslog, traps"),
    _entry("snmp.agent.restart", "the SNMP agent started again, the device perhaps not", "SNMP"),
    _entry("snmp.engine.changed", "the SNMP engine is another one than before", "SNMP"),
    _entry("snmp.engine.rollback", "the SNMP engine counts fewer boots than before", "SNMP"),
    _entry("snmp.cold_start", "the SNMP agent reports a cold start", "traps"),
    _entry("snmp.warm_start", "the SNMP agent reports a warm start", "traps"),
    _entry("snmp.agent_stop", "the SNMP agent ends", "traps"),
    _entry("snmp.agent_restart", "the SNMP agent reports its restart", "traps"),
    _entry("snmp.authentication_failure", "a request had a wrong community or key", "traps"),
    _entry("snmp.trap", "a trap that no profile knows", "traps"),
    # --- what is done to the device ----------------------------------------------------------------------------
    _entry("failover", "the active unit or path changes over", f"users, plan, {_LOGS}", expectable=True, stress=True),
    _entry("switchover", "the active unit changes over on purpose", "users, plan", stress=True),
    _entry("upgrade", "the software is changed", "users, plan", stress=True),
    _entry("config.change", "the configuration was changed", "users, plan, syslog, traps", expectable=True),
    _entry("reboot.requested", "a reboot was requested", "users, plan, syslog", expectable=True),
    _entry("stress", "a period of stress", "users, plan", intervention=False, stress=True),
    _entry("spike", "a short peak of load", "users, plan", intervention=False, stress=True),
    # --- traffic generators ------------------------------------------------------------------------------------
    _entry("generator.restart", "a generator, or its test, started again", "loads, result files"),
    _entry("generator.cleared", "the counters of a generator were cleared", "loads"),
    _entry("generator.out_of_buffers", "a generator ran out of buffers", "loads"),
    # --- the watching ------------------------------------------------------------------------------------------
    _entry("gap", "the monitor itself was not running", _OWN, internal=True, origin=Origin.MONITOR, intervention=False),
    _entry("clock.step", "the wall clock of the monitor stepped", _OWN, internal=True, origin=Origin.MONITOR),
    replace(
        _WATCHING,
        name="live.forgot",
        about="judging while the run goes on forgot the oldest of what is too much to remember",
        source=_OWN,
    ),
    _entry("recorder.window", "samples of the flight recorder were fetched", "agent"),
    _entry("source.spool.lost", "samples that the agent kept were lost", "agent"),
    _entry("source.requests.lost", "requests were lost on the path to the device, and their share", "SNMP"),
    replace(
        _WATCHING,
        name="observer.rest",
        about="polls paused to measure what they cost the device",
        source="the run, SSH",
    ),
    replace(_WATCHING, name="observer.effect", about="what the polls cost the device", source="SSH"),
    # --- the run -----------------------------------------------------------------------------------------------
    _entry("phase.turn", "one phase ended and the next began", _OWN),
    _entry("capacity.trial", "one trial of a search for the capacity", _OWN),
    _entry("capacity.repeated", "a trial that has to be repeated, and why", _OWN),
    _entry("capacity.result", "what a search for the capacity found", _OWN),
    _entry("capacity.load", "the load of a phase that is a share of the capacity", _OWN),
    _entry("event.skipped", "a planned event was skipped", _OWN),
    _entry("script.failed", "the command of a planned event failed", _OWN),
    _entry("hook.failed", "a hook failed", _OWN),
    _entry("diagnose.look", "a look at a process under suspicion was taken, and for how long it stood", _OWN),
    _entry("diagnose.failed", "a look at a process under suspicion could not be taken", _OWN),
    _entry("notify.sent", "a message was sent", _OWN),
    _entry("notify.failed", "a message could not be sent", _OWN),
    _entry("terminal.lost", "standard output or error was lost; the run went on", _OWN),
    replace(_ADMIN, name="record.damaged", about="another program deleted polls from the record; the run went on"),
    replace(_ADMIN, name="record.rescued", about="the record was taken away, and saved; the run went on"),
    replace(_ADMIN, name="start.warning", about="the first polls of the run showed that something is missing"),
    replace(_ADMIN, name="label.unread", about="a label of the run could not be read"),
    replace(_ADMIN, name="run.decided", about="every required rule had its final answer, so the run ended"),
    replace(_ADMIN, name="run.stop", about="a stop of the run was requested", source="users"),
    replace(
        _ADMIN, name="run.action", about="what a user of a lab server did to the run", source="serve", explains=False
    ),
    replace(_ADMIN, name="drill.fault", about="a drill made a fault on purpose", source="users", explains=False),
    replace(_ADMIN, name="finding.acknowledged", about="a finding was acknowledged", source="users"),
)
BY_NAME: Final[Mapping[str, EventKind]] = {kind.name: kind for kind in CATALOGUE}


def event_kind(name: str) -> EventKind:
    """The entry of a kind; one outside the catalogue gets its family's properties, or those of a user's event.

    >>> event_kind("reboot").crash, event_kind("process.odd").explains, event_kind("flap").intervention
    (True, False, True)
    """
    known = BY_NAME.get(name)
    if known is not None:
        return known
    family, dot, _ = name.partition(".")
    return replace(FAMILIES.get(family, _FOREIGN) if dot else _FOREIGN, name=name)
