"""Deaths and silences: restarts, reboots, core files, kills, hangs, and sources that do not answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from soakwatch_rules.rule import Case, Event, Ledger, Phase, Silence, Window
from soakwatch_rules.scenarios.shapes import Floats, times
from soakwatch_rules.scenarios.synthetic import PROCESS, Scenario, Signal, Truth, readings
from soakwatch_rules.series import Series

S = 10**9
BOOT_S = 86400.0 * 3  # the device has been up for three days when the run begins
_EPOCH_S = 1_700_000_000


@dataclass
class Device:
    """A device in the making: its readings at times in seconds, its events, its account of polls."""

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

    def event(self, kind: str, at: float, thing: str = "", **expect: int) -> None:
        """Adds an event; ``expect`` makes it a planned one that has ten minutes."""
        told = {name.replace("_", "."): number for name, number in expect.items()}
        deadline = round((at + 600) * S) if told else None
        self.events.append(Event(kind, "dut", thing, round(at * S), round(at * S), {}, told, deadline))

    def silent(self, source: str, at: float, seconds: float, how: str) -> None:
        """No answer of a source for a time."""
        many = max(1, round(seconds / self.apart))
        window = Window(round(at * S), round((at + seconds) * S))
        self.silences.setdefault(source, []).append(Silence(window, {how: many}))


def _calm(t: Floats, rng: np.random.Generator) -> Device:
    made, ones = Device(t, rng), np.ones(t.size)
    made.values = {
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
    made.load = {"load.tx.packets": sent, "load.rx.packets": sent.copy()}
    return made


Blow = Callable[[Device], None]


def device(family: str, name: str, *blows: Blow, hours: float = 6.0) -> Scenario:
    """A calm device with two sources, and what befalls it."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        t = times(hours, apart)
        made = _calm(t, np.random.default_rng(seed))
        for blow in blows:
            blow(made)
        return Signal(_case(made), Truth(deaths=tuple(made.deaths)))

    return Scenario(family, name, make, hours)


def _case(made: Device) -> Case:
    window = Window(0, round(made.end * S))
    series = tuple(_seen(made, metric, thing, value) for (metric, thing), value in made.values.items())
    load = tuple(_counted(made, metric, value) for metric, value in made.load.items())
    ledgers = tuple(_ledger(made, source) for source in ("local", "snmp"))
    phases, events = (Phase("soak", window),), tuple(made.events)
    return Case("dut", "", window, series, phases=phases, events=events, ledgers=ledgers, load=load)


def _counted(made: Device, metric: str, value: Floats) -> Series:
    return readings(metric, value.astype(np.uint64), made.apart)


def _seen(made: Device, metric: str, thing: str, value: Floats) -> Series:
    """The readings that came: none while the source ``local`` was silent."""
    series = readings(metric, value, made.apart, object=thing)
    here = np.ones(made.t.size, dtype=bool)
    for silence in made.silences.get("local", []):
        here &= ~((series.time_ns >= silence.window.begin_ns) & (series.time_ns < silence.window.end_ns))
    return replace(series, time_ns=series.time_ns[here], value=series.value[here])


def _ledger(made: Device, source: str) -> Ledger:
    found = tuple(made.silences.get(source, []))
    lost: dict[str, int] = {}
    for silence in found:
        for how, many in silence.lost.items():
            lost[how] = lost.get(how, 0) + many
    due = made.t.size
    longest = max((s.window for s in found), key=lambda w: w.seconds, default=None)
    return Ledger("dut", source, made.apart, due, due - sum(lost.values()), lost, longest, silences=found)


def _restart(made: Device, *, told: bool = True) -> float:
    at = made.moment()
    made.values["process.start_time", PROCESS][made.t >= at] = _EPOCH_S + at
    made.values["process.pid", PROCESS][made.t >= at] = 778.0
    if told:
        made.event("process.restart", at, PROCESS)
    made.deaths.append(at)
    return at


def _restarts(made: Device) -> None:
    _restart(made)


def _untold(made: Device) -> None:
    _restart(made, told=False)


def _announced(made: Device) -> None:
    made.event("upgrade", _restart(made) - 60, PROCESS, process_restart=1)


def _gone(made: Device) -> None:
    at = made.moment()
    made.values["process.up", PROCESS][made.t >= at] = 0.0
    made.event("process.exit", at, PROCESS)
    made.deaths.append(at)


def _reboot(made: Device) -> None:
    at = made.moment()
    late = made.t >= at
    made.values["system.boot.id", ""][late] = 43.0
    made.values["system.boot.time", ""][late] = _EPOCH_S + at
    made.values["system.uptime", ""][late] = made.t[late] - at
    made.values["process.start_time", PROCESS][late] = _EPOCH_S + at + 20
    made.values["system.memory.oom_kills", ""][late] = 0.0
    made.deaths.append(at)
    for source in ("local", "snmp"):
        made.silent(source, at, 90.0, "failed")


def _unplanned(made: Device) -> None:
    _reboot(made)
    made.event("reboot", made.deaths[-1])


def _planned(made: Device) -> None:
    _reboot(made)
    made.event("reboot", made.deaths[-1])
    made.event("upgrade", made.deaths[-1] - 60, reboot=1)


def _no_boot_id(made: Device) -> None:
    del made.values["system.boot.id", ""], made.values["system.boot.time", ""]


def _wrap(made: Device) -> None:
    """An uptime of 32 bits in hundredths of a second comes round."""
    _no_boot_id(made)
    at = made.moment()
    wrapped = 2**32 / 100
    made.values["system.uptime", ""] = (wrapped - at + made.t) % wrapped


def _agent_again(made: Device) -> None:
    """The agent that counts the uptime begins anew; the device does not."""
    del made.values["system.boot.id", ""]
    at = made.moment()
    late = made.t >= at
    made.values["system.uptime", ""][late] = made.t[late] - at


def _clock_step(made: Device) -> None:
    at = made.moment()
    made.values["system.boot.time", ""][made.t >= at] += 300.0
    made.event("clock.step", at)


def _core(made: Device) -> None:
    at = made.moment()
    made.values["system.core.files", "folder=/var/crash"][made.t >= at] += 1
    made.event("core.dump", at, "folder=/var/crash")
    made.deaths.append(at)


def _kill(made: Device) -> None:
    at = _restart(made)
    made.values["system.memory.oom_kills", ""][made.t >= at] += 1
    made.values["system.kernel.alarms", "kind=oom"][made.t >= at] += 1


def _segfault(made: Device) -> None:
    """The watched process falls and is started again; no core is left."""
    at = _restart(made)
    made.values["system.kernel.alarms", "kind=segfault"][made.t >= at] += 1
    made.events.append(Event("kernel.segfault", "dut", "", round(at * S), None, {"process": "web", "pid": "777"}))


def _tenant(made: Device) -> None:
    """Another process of the machine falls."""
    at = made.moment()
    made.values["system.kernel.alarms", "kind=segfault"][made.t >= at] += 1
    made.events.append(Event("kernel.segfault", "dut", "", round(at * S), None, {"process": "tenant", "pid": "9"}))


def _lockup(made: Device) -> None:
    """The counter alone tells of it."""
    at = made.moment()
    made.values["system.kernel.alarms", "kind=lockup"][made.t >= at] += 1
    made.deaths.append(at)


def _hang(made: Device) -> None:
    """Management falls silent and forwarding stops for five minutes, without a reboot."""
    at = made.moment()
    _stop(made, at, 300)
    for source in ("local", "snmp"):
        made.silent(source, at, 300.0, "timeout")
    made.deaths.append(at)


def _stop(made: Device, at: float, seconds: float) -> None:
    inside = (made.t >= at) & (made.t < at + seconds)
    steps = np.diff(made.load["load.rx.packets"], prepend=0.0)
    made.load["load.rx.packets"] = np.cumsum(np.where(inside, 0.0, steps))


def _pinned(made: Device) -> None:
    """The CPU stands at 100 % and nothing is forwarded; management still answers."""
    at = made.moment()
    _stop(made, at, 300)
    made.values["system.cpu.utilization", ""][(made.t >= at) & (made.t < at + 300)] = 1.0
    made.deaths.append(at)


def _deaf(made: Device) -> None:
    """All management is silent for five minutes while forwarding goes on."""
    at = made.moment()
    for source in ("local", "snmp"):
        made.silent(source, at, 300.0, "timeout")


def _path(made: Device) -> None:
    made.silent("snmp", made.moment(), 300.0, "timeout")


def _late(made: Device) -> None:
    at = made.moment()
    for source in ("local", "snmp"):
        made.silent(source, at, 300.0, "missed")


def _long(made: Device) -> None:
    made.silent("local", made.moment(0.2, 0.5), 0.2 * made.end, "timeout")


SCENARIOS = (
    device("crash", "calm device"),
    device("crash", "restart", _restarts),
    device("crash", "restart that no event tells", _untold),
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
"""All of them."""
