"""Deaths and silences: restarts, reboots, core files, kills, hangs, and sources that do not answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from soakwatch_model.case import Case, Ledger, Silence
from soakwatch_model.event import Event
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.signals import PROCESS, readings
from soakwatch_testing.scenarios.scenario import Scenario, Signal, Truth
from soakwatch_testing.scenarios.shapes import Floats, times

S = 10**9
BOOT_S = 86400.0 * 3  # the device booted three days before the run
_EPOCH_S = 1_700_000_000


@dataclass
class Device:
    """A device being built: readings at times in seconds, events, and poll accounts."""

    t: Floats
    rng: np.random.Generator
    values: dict[tuple[str, str], Floats] = field(default_factory=dict)
    load: dict[str, Floats] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    silences: dict[str, list[Silence]] = field(default_factory=dict)
    deaths: list[float] = field(default_factory=list)
    keep: dict[str, Floats] = field(default_factory=dict)

    @property
    def apart(self) -> float:
        """Seconds between readings."""
        return float(self.t[1] - self.t[0])

    @property
    def end(self) -> float:
        """The end of the run in seconds."""
        return float(self.t[-1]) + self.apart

    def moment(self, low: float = 0.3, high: float = 0.7) -> float:
        """A random second between two shares of the run."""
        return float(self.rng.uniform(low, high)) * self.end

    def event(self, kind: str, at_s: float, object_name: str = "", **expect: int) -> None:
        """Add an event; with ``expect`` it is a planned one with a deadline of ten minutes."""
        reported = {name.replace("_", "."): number for name, number in expect.items()}
        deadline = round((at_s + 600) * S) if reported else None
        self.events.append(Event(kind, "dut", object_name, round(at_s * S), round(at_s * S), {}, reported, deadline))

    def silent(self, source: str, at_s: float, seconds: float, how: str) -> None:
        """A source does not answer for a time."""
        many = max(1, round(seconds / self.apart))
        window = Window(round(at_s * S), round((at_s + seconds) * S))
        self.silences.setdefault(source, []).append(Silence(window, {how: many}))


def _calm(t: Floats, rng: np.random.Generator) -> Device:
    device, ones = Device(t, rng), np.ones(t.size)
    device.values = {
        ("process.up", PROCESS): ones.copy(),
        ("process.start_time", PROCESS): np.full(t.size, _EPOCH_S - 3600.0),
        ("process.pid", PROCESS): np.full(t.size, 777.0),
        ("system.boot.id", ""): np.full(t.size, 42.0),
        ("system.boot.time", ""): np.full(t.size, _EPOCH_S - BOOT_S),
        ("system.uptime", ""): BOOT_S + t,
        ("system.memory.oom_kills", ""): np.full(t.size, 2.0),
        ("system.kernel.alarms", "kind=oom"): np.zeros(t.size),
        ("system.kernel.alarms", "kind=segfault"): np.zeros(t.size),
        ("system.kernel.alarms", "kind=lockup"): np.zeros(t.size),
        ("system.core.files", "folder=/var/crash"): np.ones(t.size),
        ("system.cpu.utilization", ""): np.clip(0.3 + 0.03 * rng.standard_normal(t.size), 0, 1),
    }
    sent: Floats = 1000.0 * t
    device.load = {"load.tx.packets": sent, "load.rx.packets": sent.copy()}
    return device


Blow = Callable[[Device], None]


def device(family: str, name: str, *blows: Blow, hours: float = 6.0) -> Scenario:
    """A calm device with two sources, and what happens to it."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        t = times(hours, apart)
        device = _calm(t, np.random.default_rng(seed))
        for blow in blows:
            blow(device)
        return Signal(_case(device), Truth(deaths=tuple(device.deaths)))

    return Scenario(family, name, make, hours)


def _case(device: Device) -> Case:
    window = Window(0, round(device.end * S))
    series = tuple(_seen(device, metric, object_name, value) for (metric, object_name), value in device.values.items())
    load = tuple(_counted(device, metric, value) for metric, value in device.load.items())
    ledgers = tuple(_ledger(device, source) for source in ("local", "snmp"))
    phases, events = (Phase("soak", window),), tuple(device.events)
    return Case("dut", "", window, series, phases=phases, events=events, ledgers=ledgers, load=load)


def _counted(device: Device, metric: str, value: Floats) -> Series:
    return readings(metric, value.astype(np.uint64), device.apart)


def _seen(device: Device, metric: str, object_name: str, value: Floats) -> Series:
    """The readings that arrived: none while the source ``local`` was silent."""
    series = readings(metric, value, device.apart, object=object_name)
    here = np.ones(device.t.size, dtype=bool)
    for silence in device.silences.get("local", []):
        here &= ~((series.time_ns >= silence.window.begin_ns) & (series.time_ns < silence.window.end_ns))
    return replace(series, time_ns=series.time_ns[here], value=series.value[here])


def _ledger(device: Device, source: str) -> Ledger:
    silences = tuple(device.silences.get(source, []))
    lost: dict[str, int] = {}
    for silence in silences:
        for how, many in silence.lost.items():
            lost[how] = lost.get(how, 0) + many
    due = device.t.size
    longest = max((s.window for s in silences), key=lambda w: w.seconds, default=None)
    return Ledger("dut", source, device.apart, due, due - sum(lost.values()), lost, longest, silences=silences)


def _restart(device: Device, *, reported: bool = True) -> float:
    at_s = device.moment()
    device.values["process.start_time", PROCESS][device.t >= at_s] = _EPOCH_S + at_s
    device.values["process.pid", PROCESS][device.t >= at_s] = 778.0
    if reported:
        device.event("process.restart", at_s, PROCESS)
    device.deaths.append(at_s)
    return at_s


def _restarts(device: Device) -> None:
    _restart(device)


def _unreported(device: Device) -> None:
    _restart(device, reported=False)


def _announced(device: Device) -> None:
    device.event("upgrade", _restart(device) - 60, PROCESS, process_restart=1)


def _gone(device: Device) -> None:
    at_s = device.moment()
    device.values["process.up", PROCESS][device.t >= at_s] = 0.0
    device.event("process.exit", at_s, PROCESS)
    device.deaths.append(at_s)


def _reboot(device: Device) -> None:
    at_s = device.moment()
    late = device.t >= at_s
    device.values["system.boot.id", ""][late] = 43.0
    device.values["system.boot.time", ""][late] = _EPOCH_S + at_s
    device.values["system.uptime", ""][late] = device.t[late] - at_s
    device.values["process.start_time", PROCESS][late] = _EPOCH_S + at_s + 20
    device.values["system.memory.oom_kills", ""][late] = 0.0
    device.deaths.append(at_s)
    for source in ("local", "snmp"):
        device.silent(source, at_s, 90.0, "failed")


def _unplanned(device: Device) -> None:
    _reboot(device)
    device.event("reboot", device.deaths[-1])


def _planned(device: Device) -> None:
    _reboot(device)
    device.event("reboot", device.deaths[-1])
    device.event("upgrade", device.deaths[-1] - 60, reboot=1)


def _no_boot_id(device: Device) -> None:
    del device.values["system.boot.id", ""], device.values["system.boot.time", ""]


def _wrap(device: Device) -> None:
    """A 32-bit uptime in hundredths of a second wraps."""
    _no_boot_id(device)
    at_s = device.moment()
    wrapped = 2**32 / 100
    device.values["system.uptime", ""] = (wrapped - at_s + device.t) % wrapped


def _agent_again(device: Device) -> None:
    """The agent that counts the uptime restarts; the device does not."""
    del device.values["system.boot.id", ""]
    at_s = device.moment()
    late = device.t >= at_s
    device.values["system.uptime", ""][late] = device.t[late] - at_s


def _clock_step(device: Device) -> None:
    at_s = device.moment()
    device.values["system.boot.time", ""][device.t >= at_s] += 300.0
    device.event("clock.step", at_s)


def _core(device: Device) -> None:
    at_s = device.moment()
    device.values["system.core.files", "folder=/var/crash"][device.t >= at_s] += 1
    device.event("core.dump", at_s, "folder=/var/crash")
    device.deaths.append(at_s)


def _kill(device: Device) -> None:
    at_s = _restart(device)
    device.values["system.memory.oom_kills", ""][device.t >= at_s] += 1
    device.values["system.kernel.alarms", "kind=oom"][device.t >= at_s] += 1


def _segfault(device: Device) -> None:
    """The watched process crashes and is restarted, without a core file."""
    at_s = _restart(device)
    device.values["system.kernel.alarms", "kind=segfault"][device.t >= at_s] += 1
    device.events.append(Event("kernel.segfault", "dut", "", round(at_s * S), None, {"process": "web", "pid": "777"}))


def _tenant(device: Device) -> None:
    """Another process of the machine crashes."""
    at_s = device.moment()
    device.values["system.kernel.alarms", "kind=segfault"][device.t >= at_s] += 1
    device.events.append(Event("kernel.segfault", "dut", "", round(at_s * S), None, {"process": "tenant", "pid": "9"}))


def _lockup(device: Device) -> None:
    """Only the counter shows it."""
    at_s = device.moment()
    device.values["system.kernel.alarms", "kind=lockup"][device.t >= at_s] += 1
    device.deaths.append(at_s)


def _hang(device: Device) -> None:
    """Management is silent and forwarding stops for five minutes, without a reboot."""
    at_s = device.moment()
    _stop(device, at_s, 300)
    for source in ("local", "snmp"):
        device.silent(source, at_s, 300.0, "timeout")
    device.deaths.append(at_s)


def _stop(device: Device, at_s: float, seconds: float) -> None:
    inside = (device.t >= at_s) & (device.t < at_s + seconds)
    steps = np.diff(device.load["load.rx.packets"], prepend=0.0)
    device.load["load.rx.packets"] = np.cumsum(np.where(inside, 0.0, steps))


def _pinned(device: Device) -> None:
    """The CPU is at 100 % and nothing is forwarded; management still answers."""
    at_s = device.moment()
    _stop(device, at_s, 300)
    device.values["system.cpu.utilization", ""][(device.t >= at_s) & (device.t < at_s + 300)] = 1.0
    device.deaths.append(at_s)


def _deaf(device: Device) -> None:
    """All management is silent for five minutes, while forwarding continues."""
    at_s = device.moment()
    for source in ("local", "snmp"):
        device.silent(source, at_s, 300.0, "timeout")


def _path(device: Device) -> None:
    device.silent("snmp", device.moment(), 300.0, "timeout")


def _late(device: Device) -> None:
    at_s = device.moment()
    for source in ("local", "snmp"):
        device.silent(source, at_s, 300.0, "missed")


def _long(device: Device) -> None:
    device.silent("local", device.moment(0.2, 0.5), 0.2 * device.end, "timeout")


SCENARIOS = (
    device("crash", "calm device"),
    device("crash", "restart", _restarts),
    device("crash", "restart that no event tells", _unreported),
    device("crash", "restart that was announced", _announced),
    device("crash", "process gone", _gone),
    device("crash", "reboot", _unplanned),
    device("crash", "reboot seen by uptime only", _unplanned, _no_boot_id),
    device("crash", "reboot that was announced", _planned),
    device("crash", "uptime wraps after 497 days", _wrap),
    device("crash", "agent begins anew", _agent_again),
    device("crash", "clock step", _clock_step),
    device("crash", "core file", _core),
    device("crash", "killed for want of memory", _kill),
    device("crash", "segfault without a core", _segfault),
    device("crash", "segfault of another tenant", _tenant),
    device("crash", "lockup that the counter shows", _lockup),
    device("silence", "no silence"),
    device("silence", "hang of 5 min", _hang),
    device("silence", "pinned CPU, nothing forwarded", _pinned),
    device("silence", "management silent, forwarding on", _deaf),
    device("silence", "one protocol silent", _path),
    device("silence", "monitor late", _late),
    device("silence", "silent for a fifth of the run", _long),
    device("silence", "reboot with its silence", _unplanned),
)
