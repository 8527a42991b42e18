"""Power and energy: RAPL counters of the processors (powercap, else registers), and the power sensors of hwmon."""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional

from soakwatch_agent.context import SECOND, HostContext, Periodic, ProbeAnswer, why
from soakwatch_agent.hwmon import Input, inputs, listing, read_input
from soakwatch_agent.procfs import read_line, read_text
from soakwatch_agent.rapl_registers import EnergyRegister, energy_registers
from soakwatch_model.metric import fault_of
from soakwatch_model.sample import Answer, object_text

_ROOT_ONLY = (
    "the energy of the processors is counted, but only root may read it (since 2020, CVE-2020-8694): run the agent as "
    "root, or allow it: chmod a+r /sys/class/powercap/*/energy_uj"
)
_REGISTERS_ROOT_ONLY = (
    "the energy of the processors is counted in registers that only root may read: run the agent as root with "
    "CAP_SYS_RAWIO, or load a driver with powercap (modprobe intel_rapl_msr)"
)


class _Meter:
    """An energy counter in microjoules, a file or a processor's register, continued as joules that never fall.

    The counter wraps after ``most``; None if that is unknown.
    """

    __slots__ = ("_last_ns", "_last_uj", "joules", "most", "name", "path", "register", "watts")

    def __init__(self, name: str, path: str, most: Optional[int], register: Optional[EnergyRegister] = None) -> None:
        self.name, self.path, self.most, self.register = name, path, most, register
        self._last_uj: Optional[int] = None
        self._last_ns = 0
        self.joules = 0.0
        self.watts: Optional[float] = None

    def microjoules(self) -> int:
        """The counter now. Raises OSError or ValueError."""
        return int(read_text(self.path)) if self.register is None else self.register.read_uj()

    def take(self, microjoules: int, now_ns: int) -> None:
        """Adds the energy since the previous reading; the first reading is the start of the count.

        A fall is one wrap if ``most`` is known: poll at least once a wrap, 20 minutes at 200 W. Else the counter was
        reset, and that interval has no power.
        """
        last, before_ns = self._last_uj, self._last_ns
        self._last_uj, self._last_ns = microjoules, now_ns
        self.watts = None
        if last is None:
            self.joules = microjoules / 1e6
            return
        step = microjoules - last
        if step < 0:
            if self.most is None:
                self.joules = microjoules / 1e6
                return
            step += self.most
        self.joules += step / 1e6
        if now_ns > before_ns:
            self.watts = step / 1e6 / ((now_ns - before_ns) / SECOND)


class PowerProbe:
    """Reads the files of powercap and hwmon; most virtual machines have none, which is no fault."""

    def __init__(self, context: HostContext) -> None:
        self._context = context
        self._notes = ProbeAnswer()
        self._search = Periodic(600)
        self._meters: Dict[str, _Meter] = {}
        self._sensors: List[Input] = []

    def read(self, now_ns: int) -> Answer:
        """Energy, and mean power since the previous poll; new sensors are searched for every 10 minutes."""
        notes = self._notes
        notes.begin(now_ns)
        if self._search.due(now_ns):
            found = {meter.path: meter for meter in self._find_meters()} or self._find_registers()
            self._meters = {path: self._meters.get(path, meter) for path, meter in found.items()}
            self._sensors = inputs(self._context, "power")
        for meter in self._meters.values():
            self._read_meter(meter, now_ns)
        for sensor in self._sensors:
            read_input(notes, "system.power", object_text(sensor=sensor.name), sensor, 1_000_000)
        return notes.answer()

    def _find_meters(self) -> Iterator[_Meter]:
        folder = self._context.path("/sys/class/powercap")
        names: Dict[str, str] = {}
        for zone in listing(folder):
            kind, _, number = zone.partition(":")
            if not number or kind == "intel-rapl-mmio":  # the same counters as intel-rapl
                continue
            name = read_line(f"{folder}/{zone}/name") or number
            parent = names.get(zone.rpartition(":")[0])
            names[zone] = name if parent is None else f"{parent} {name}"
            most = read_line(f"{folder}/{zone}/max_energy_range_uj")
            path = f"{folder}/{zone}/energy_uj"
            yield _Meter(f"rapl {names[zone]}", path, int(most) if most is not None and most.isdigit() else None)
        for sensor in inputs(self._context, "energy"):
            yield _Meter(sensor.name, sensor.path, None)

    def _find_registers(self) -> Dict[str, _Meter]:
        try:
            found = energy_registers(self._context)
        except PermissionError:
            self._notes.fault("system.energy", "", _REGISTERS_ROOT_ONLY)
            return {}
        return {r.path: _Meter(f"rapl package-{r.package}", r.path, r.most_uj, r) for r in found}

    def _read_meter(self, meter: _Meter, now_ns: int) -> None:
        notes, label = self._notes, object_text(sensor=meter.name)
        try:
            meter.take(meter.microjoules(), now_ns)
        except (PermissionError, FileNotFoundError):
            notes.fault("system.energy", "", _ROOT_ONLY)
            return
        except OSError as error:
            notes.fault("system.energy", label, f"the counter cannot be read: {why(error)}")
            return
        except ValueError:
            notes.fault("system.energy", label, "the counter gives no number")
            return
        notes.recovered("system.energy", label)
        notes.sample("system.energy", label, meter.joules)
        if meter.watts is not None and fault_of("system.power", meter.watts) is None:
            notes.sample("system.power", label, meter.watts)

    def close(self) -> None:
        """Does nothing: the probe keeps nothing open."""


def open_probe(context: HostContext) -> PowerProbe:
    """Opens the probe of a host."""
    return PowerProbe(context)
