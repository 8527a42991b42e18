"""What a Linux device is, over SSH: the agent's own code, sent to its Python and gone with it; it writes nothing.

Where there is no Python that can run it, a shell prints the same files, and the code reads them here; what only the
kernel can be asked for (firmware, rings, offloads and RSS of cards) is then noted as not known.
"""

from __future__ import annotations

import base64
import json
import secrets
import tempfile
import zlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final, cast

import asyncssh

import soakwatch_agent
import soakwatch_model
from soakwatch.core.daemon_thread import in_daemon_thread
from soakwatch.sources.abc import SourceError
from soakwatch.sources.transport.ssh.abc import DeviceConnection
from soakwatch.sources.transport.ssh.shell import Shell
from soakwatch_agent.fingerprint import SYSCTLS, fingerprint
from soakwatch_model.tree import Tree

_MODULES: Final = {
    soakwatch_agent: ("__init__.py", "fingerprint.py", "nics.py", "procfs.py", "version.py", "facts/*.py"),
    soakwatch_model: ("__init__.py", "core_list.py", "tree.py"),
}
_MAX_OUTPUT = 4 << 20
_CHUNK = 1 << 16
_SHELL_S = 30.0
_COMMAND = (
    "exec sh -c 'if command -v python3 >/dev/null 2>&1; then "
    "if command -v nice >/dev/null 2>&1; then exec nice -n 10 python3 -I -; else exec python3 -I -; fi; fi'"
)
_PROGRAM = """\
import sys
if sys.version_info >= (3, 9):
    import base64, importlib.abc, importlib.util, json, zlib
    modules = json.loads(zlib.decompress(base64.b64decode("{packed}")).decode())
    class Sent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
        def find_spec(self, name, path, target=None):
            package = name.replace(".", "/") + "/__init__.py" in modules
            if package or name.replace(".", "/") + ".py" in modules:
                return importlib.util.spec_from_loader(name, self, is_package=package)
        def create_module(self, spec):
            return None
        def exec_module(self, module):
            path = module.__name__.replace(".", "/")
            exec(modules.get(path + "/__init__.py", modules.get(path + ".py")), module.__dict__)
    sys.meta_path.insert(0, Sent())
    from soakwatch_agent.fingerprint import SYSCTLS, fingerprint
    sys.stdout.write("\\n{mark}" + json.dumps(fingerprint("/", {interfaces})) + "{mark}\\n")
"""
_CPU = "/sys/devices/system/cpu"
_NODE = "/sys/devices/system/node/node[0-9]*"
_NET = "/sys/class/net/*"
_PCI = "/sys/bus/pci/devices/*"
_LINK = ("current_link_width", "max_link_width", "current_link_speed", "max_link_speed", "numa_node")
_WHOLE = (
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/version",
    *("/proc/sys/" + name.replace(".", "/") for name in SYSCTLS),
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/interrupts",
    "/proc/modules",
    "/etc/os-release",
    "/usr/lib/os-release",
    "/sys/firmware/dmi/tables/DMI",
    "/var/lib/dpkg/status",
    "/usr/lib/opkg/status",
    "/lib/apk/db/installed",
    f"{_NODE}/cpulist",
    f"{_NODE}/meminfo",
    f"{_NET}/device/uevent",
    f"{_PCI}/uevent",
)
_LINES = (
    "/proc/cmdline",
    "/proc/uptime",
    "/proc/[0-9]*/stat",
    "/proc/irq/[0-9]*/effective_affinity_list",
    "/proc/irq/[0-9]*/smp_affinity_list",
    "/etc/timezone",
    "/etc/tuned/active_profile",
    "/etc/tuned/profile_mode",
    "/.dockerenv",
    "/run/.containerenv",
    "/sys/hypervisor/type",
    *(
        f"/sys/class/dmi/id/{name}"
        for name in (
            *("product_name", "sys_vendor", "board_name", "bios_vendor", "bios_version", "bios_date"),
            "product_serial",
        )
    ),
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    *(f"{_CPU}/{name}" for name in ("online", "isolated", "nohz_full", "smt/control", "cpufreq/boost")),
    *(f"{_CPU}/{name}" for name in ("intel_pstate/status", "intel_pstate/no_turbo", "amd_pstate/status")),
    *(f"{_CPU}/cpuidle/{name}" for name in ("current_driver", "current_governor")),
    *(
        f"{_CPU}/cpu[0-9]*/cpufreq/{name}"
        for name in (
            *("scaling_governor", "scaling_min_freq", "scaling_max_freq", "scaling_driver"),
            "energy_performance_preference",
        )
    ),
    f"{_CPU}/cpu[0-9]*/power/energy_perf_bias",
    *(f"{_CPU}/cpu[0-9]*/cpuidle/state*/{name}" for name in ("name", "latency", "residency", "disable")),
    f"{_CPU}/intel_uncore_frequency/*/min_freq_khz",
    f"{_CPU}/intel_uncore_frequency/*/max_freq_khz",
    f"{_CPU}/vulnerabilities/*",
    "/sys/module/intel_idle/parameters/max_cstate",
    "/sys/module/processor/parameters/max_cstate",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/transparent_hugepage/defrag",
    *(f"/sys/kernel/mm/hugepages/*/{name}" for name in ("nr_hugepages", "free_hugepages")),
    f"{_NODE}/distance",
    *(f"{_NODE}/hugepages/*/{name}" for name in ("nr_hugepages", "free_hugepages")),
    *(f"{_NET}/{name}" for name in ("address", "operstate", "duplex", "ifalias", "mtu", "speed", "tx_queue_len")),
    *(f"{_NET}/{name}" for name in ("gro_flush_timeout", "napi_defer_hard_irqs", "threaded")),
    f"{_NET}/queues/rx-*/rps_cpus",
    f"{_NET}/queues/tx-*/xps_cpus",
    *(f"{_NET}/device/{name}" for name in _LINK),
    f"{_NET}/device/msi_irqs/*",
    *(f"{_PCI}/{name}" for name in ("class", "vendor", "device", "subsystem_vendor", "subsystem_device", "revision")),
    *(f"{_PCI}/{name}" for name in (*_LINK, "sriov_totalvfs", "sriov_numvfs")),
    "/sys/module/*/version",
    "/sys/module/*/srcversion",
    *(f"/sys/fs/cgroup/{name}" for name in ("cgroup.controllers", "cpu.max", "memory.max", "cpuset.cpus.effective")),
    *(f"/sys/fs/cgroup/{name}" for name in ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us", "cpuset/cpuset.cpus")),
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)
_LINKS = (
    f"{_NET}/device/driver",
    f"{_NET}/master",
    *(f"{_PCI}/{name}" for name in ("driver", "iommu_group", "physfn")),
)
_FOLDERS = (f"{_PCI}/net/*/address", f"{_PCI}/virtio[0-9]*/net/*/address")


async def linux_fingerprint(line: DeviceConnection, interfaces: tuple[str, ...] | None) -> Mapping[str, Tree]:
    """The fingerprint of the device; ``interfaces`` are globs. Raises SourceError."""
    globs = None if interfaces is None else list(interfaces)
    tree = await _by_python(line, globs)
    return tree if tree is not None else await _by_shell(line, globs)


@cache
def _packed() -> str:
    texts: dict[str, str] = {}
    for package, patterns in _MODULES.items():
        (folder,) = map(Path, package.__path__)
        files = (file for pattern in patterns for file in sorted(folder.glob(pattern)))
        texts |= {file.relative_to(folder.parent).as_posix(): file.read_text(encoding="utf-8") for file in files}
    return base64.b64encode(zlib.compress(json.dumps(texts).encode(), 9)).decode()


def _program(mark: str, interfaces: list[str] | None) -> str:
    program = _PROGRAM.replace("{packed}", _packed()).replace("{mark}", mark)
    return program.replace("{interfaces}", repr(interfaces))


async def _by_python(line: DeviceConnection, interfaces: list[str] | None) -> Mapping[str, Tree] | None:
    """None where the device has no Python that can run it."""
    mark = secrets.token_hex(12)
    try:
        process = await (await line.connection()).create_process(_COMMAND, encoding=None)
        try:
            process.stdin.write(_program(mark, interfaces).encode())
            process.stdin.write_eof()
            output = bytearray()
            while chunk := await process.stdout.read(_CHUNK):
                output += chunk
                if len(output) > _MAX_OUTPUT:
                    raise SourceError(f"{line.name} sent more than {_MAX_OUTPUT >> 20} MiB: it was cut off")
        finally:
            process.close()
    except BrokenPipeError:
        return None
    except (OSError, asyncssh.Error) as error:
        raise line.failed(error) from None
    _, _, rest = bytes(output).partition(mark.encode())
    text, end, _ = rest.partition(mark.encode())
    if not end:
        return None
    try:
        tree = json.loads(text)
    except ValueError:
        return None
    return cast("Mapping[str, Tree]", tree) if isinstance(tree, dict) else None


class _Beside:
    """The connection of the polls, which is not cut here if a fingerprint takes too long."""

    def __init__(self, line: DeviceConnection) -> None:
        self._line = line
        self.name, self.device_timeout_s = line.name, line.device_timeout_s
        self.connection, self.failed = line.connection, line.failed
        self.identity, self.notes = line.identity, line.notes

    def drop(self) -> None:
        """Leaves the connection as it is: the channel is closed by whoever opened it."""


def files_script() -> str:
    """Prints the files that a fingerprint is made of.

    Each file that is there as a part ``f PATH``, each symbolic link as ``l PATH`` with what it points to.

    Files of one line, by far the most, are read by the shell itself: a program for each costs a small device seconds.
    Not those of /proc/sys and lists of cores: there the kernel gives a shell that reads byte by byte one or none.
    """
    show = 'if [ -f "$p" ] && [ -r "$p" ]; then echo; echo \'@@ f \'"$p";'
    whole, line = f'{show} cat "$p" 2>/dev/null; fi', f'{show} x=; read -r x <"$p"; printf "%s\\n" "$x"; fi'
    follow = 'if [ -L "$p" ]; then echo; echo \'@@ l \'"$p"; readlink "$p"; fi'
    parts = (("w", whole, _WHOLE), ("f", line, _LINES + _FOLDERS), ("l", follow, _LINKS))
    functions = [f"{name}() {{ for p; do {body}; done; }}" for name, body, _ in parts]
    return "\n".join((*functions, *(f"{name} {' '.join(paths)}" for name, _, paths in parts)))


async def _by_shell(line: DeviceConnection, interfaces: list[str] | None) -> Mapping[str, Tree]:
    shell = Shell(_Beside(line))
    try:
        reply = await shell.run(files_script(), _SHELL_S)
    finally:
        shell.close()
    tree = await in_daemon_thread(lambda: _of_files(reply.parts, interfaces), "soakwatch-fingerprint")
    notes = tree.get("notes")
    lines = list(notes) if isinstance(notes, list) else []
    lines.append("no Python 3.9 or newer answered on the device: a shell read its files, and its kernel was not asked")
    return {**tree, "notes": lines}


def _of_files(parts: Mapping[str, bytes], interfaces: list[str] | None) -> Mapping[str, Tree]:
    """The fingerprint of a copy of the device's files in a folder for the moment."""
    with tempfile.TemporaryDirectory(prefix="soakwatch-") as folder:
        root = Path(folder)
        for name, data in parts.items():
            kind, _, path = name.partition(" ")
            if _is_plain(path):
                _put(root / path.lstrip("/"), data, link=kind == "l")
        tree = dict(fingerprint(folder, interfaces))
    tree.pop("agent", None)  # of this machine
    return tree


def _is_plain(path: str) -> bool:
    """Whether a path that the device named stays in the folder."""
    words: Iterable[str] = path.split("/")[1:]
    return path.startswith("/") and all(word not in ("", ".", "..") and "\0" not in word for word in words)


def _put(path: Path, data: bytes, *, link: bool) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if link:
            path.symlink_to(data.decode("utf-8", "replace").strip().rstrip("/").rpartition("/")[2] or "nowhere")
        elif not path.is_symlink():
            path.write_bytes(data)
    except OSError:
        return  # a file where a folder is: what the device said makes no sense there
