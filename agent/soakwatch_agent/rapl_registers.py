"""Processors' energy counters read from their registers (``/dev/cpu/N/msr``), for kernels without powercap.

Packages only: on some servers DRAM counts in a unit that no register states. Sources: Intel SDM volume 4
(MSR_RAPL_POWER_UNIT 606H, MSR_PKG_ENERGY_STATUS 611H); AMD PPR for family 17h (C001_0299, C001_029B). The counter has
32 bits and wraps about every 20 minutes at 200 W. Needs the module ``msr`` and root with CAP_SYS_RAWIO.
"""

from __future__ import annotations

import os
from typing import Dict, List, NamedTuple, Optional

from soakwatch_agent.context import HostContext
from soakwatch_agent.procfs import read_line

_BY_VENDOR = {
    "GenuineIntel": (0x606, 0x611),
    "AuthenticAMD": (0xC0010299, 0xC001029B),
    "HygonGenuine": (0xC0010299, 0xC001029B),
}
_COUNTER = 0xFFFFFFFF


class EnergyRegister(NamedTuple):
    """A package's energy counter: package number, device file, register, microjoules per count."""

    package: str
    path: str
    register: int
    unit_uj: float

    @property
    def most_uj(self) -> int:
        """Where the counter wraps, in microjoules."""
        return round((_COUNTER + 1) * self.unit_uj)

    def read_uj(self) -> int:
        """The counter in microjoules. Raises OSError."""
        return round((_read(self.path, self.register) & _COUNTER) * self.unit_uj)


def energy_registers(context: HostContext) -> List[EnergyRegister]:
    """The counter of each package. Raises PermissionError if the registers exist but may not be read."""
    vendor = _vendor(context)
    if vendor not in _BY_VENDOR:
        return []
    unit_register, register = _BY_VENDOR[vendor]
    found = []
    for package, processor in sorted(_first_of_each_package(context).items()):
        path = context.path(f"/dev/cpu/{processor}/msr")
        try:
            unit = _read(path, unit_register)
        except PermissionError:
            raise
        except OSError:  # the module msr is not loaded, or a virtual machine lacks the register
            continue
        found.append(EnergyRegister(package, path, register, 1e6 / (1 << (unit >> 8 & 0x1F))))
    return found


def _read(path: str, register: int) -> int:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.pread(fd, 8, register)
    finally:
        os.close(fd)
    if len(data) < 8:
        raise OSError(f"register {register:#x} cannot be read")
    return int.from_bytes(data, "little")


def _vendor(context: HostContext) -> Optional[str]:
    try:
        with open(context.path("/proc/cpuinfo"), encoding="utf-8", errors="replace") as lines:
            named = next((line for line in lines if line.startswith("vendor_id")), "")
    except OSError:
        return None
    return named.partition(":")[2].strip() or None


def _first_of_each_package(context: HostContext) -> Dict[str, int]:
    folder = context.path("/sys/devices/system/cpu")
    first: Dict[str, int] = {}
    try:
        names = os.listdir(folder)
    except OSError:
        return {}
    for number in sorted(int(name[3:]) for name in names if name[:3] == "cpu" and name[3:].isdigit()):
        package = read_line(f"{folder}/cpu{number}/topology/physical_package_id")
        if package is not None:
            first.setdefault(package, number)
    return first
