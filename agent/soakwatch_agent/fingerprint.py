"""The fingerprint of a machine: processors, kernel, memory, cards and settings that affect results.

A report prints it; a comparison of two runs shows where their machines differ. What could not be read is absent and
``notes`` says so: never 0, never an empty text.
"""

from __future__ import annotations

import os
import platform
from collections import Counter
from typing import Dict, List, Mapping, Optional

from soakwatch_agent.facts.cpu import cpu, cstates, numa
from soakwatch_agent.facts.machine import Machine, Notes, whole
from soakwatch_agent.facts.memory import memory
from soakwatch_agent.facts.pci import pci_network
from soakwatch_agent.facts.software import cgroup, modules, packages, tuned
from soakwatch_agent.nics import nics
from soakwatch_agent.procfs import clean, parse_pid_stat
from soakwatch_agent.version import VERSION
from soakwatch_model.tree import Tree

__all__ = ["SYSCTLS", "Tree", "fingerprint"]

_ALWAYS = frozenset({"host", "cpu", "memory", "nics", "sysctls", "kernel_command_line", "processes", "agent"})
SYSCTLS = (
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.rps_sock_flow_entries",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.fib_multipath_hash_policy",
    "net.ipv4.ip_forward",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.neigh.default.gc_thresh3",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
    "net.ipv6.conf.all.forwarding",
    "net.netfilter.nf_conntrack_buckets",
    "net.netfilter.nf_conntrack_max",
    "net.netfilter.nf_conntrack_tcp_timeout_established",
    "vm.dirty_background_ratio",
    "vm.dirty_ratio",
    "vm.max_map_count",
    "vm.min_free_kbytes",
    "vm.nr_hugepages",
    "vm.overcommit_memory",
    "vm.overcommit_ratio",
    "vm.panic_on_oom",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
    "kernel.core_pattern",
    "kernel.hung_task_timeout_secs",
    "kernel.nmi_watchdog",
    "kernel.numa_balancing",
    "kernel.panic",
    "kernel.panic_on_oops",
    "kernel.perf_event_paranoid",
    "kernel.pid_max",
    "kernel.randomize_va_space",
    "kernel.sched_rt_runtime_us",
    "kernel.soft_watchdog",
    "kernel.softlockup_panic",
    "kernel.threads-max",
    "kernel.watchdog_thresh",
    "fs.file-max",
    "fs.nr_open",
)
_MAX_PROCESS_NAMES = 400  # distinct names


def fingerprint(root: str = "/", interfaces: Optional[List[str]] = None) -> Mapping[str, Tree]:
    """The fingerprint of the machine under ``root``: a tree of text, numbers and flags, ready for JSON.

    Process names are included, their command lines are not (they may hold secrets); of the kernel's command line only
    parameters that affect results. ``interfaces`` are globs.
    """
    machine, notes = Machine(root), Notes()
    tree: Dict[str, Tree] = {}
    tree["host"] = _host(machine, notes)
    tree["cpu"] = cpu(machine, notes)
    tree["cstates"] = cstates(machine, notes)
    tree["memory"] = memory(machine, notes)
    tree["numa"] = numa(machine)
    cards = nics(machine, notes, interfaces)
    tree["nics"] = cards
    functions = pci_network(machine, notes)
    tree["pci_network"] = functions
    tree["sysctls"] = _sysctls(machine)
    tree["kernel_command_line"] = _command_line(machine, notes)
    drivers = [each.get("driver") for each in (*cards.values(), *functions.values()) if isinstance(each, dict)]
    tree["modules"] = modules(machine, [driver for driver in drivers if isinstance(driver, str)])
    tree["packages"] = packages(machine, notes)
    tree["cgroup"] = cgroup(machine)
    tree["tuned"] = tuned(machine)
    tree["processes"] = _processes(machine)
    tree["agent"] = _agent()
    full = {name: section for name, section in tree.items() if section or name in _ALWAYS}
    full["notes"] = list(notes.lines)
    return full


def _agent() -> Dict[str, Tree]:
    versions: Dict[str, Tree] = {"version": VERSION, "python": platform.python_version()}
    try:
        import psutil  # a fingerprint alone needs none

        versions["psutil"] = psutil.__version__
    except ImportError:
        pass
    return versions


def _host(machine: Machine, notes: Notes) -> Dict[str, Tree]:
    line = machine.line
    host: Dict[str, Tree] = {}
    notes.put(host, "hostname", line("/proc/sys/kernel/hostname"), "the host name is not known")
    notes.put(host, "kernel", line("/proc/sys/kernel/osrelease"), "the kernel's release is not known")
    notes.put(host, "kernel_build", line("/proc/sys/kernel/version"))
    notes.put(host, "os", _os_name(machine), "the operating system is not known: there is no os-release")
    notes.put(host, "board", line("/sys/class/dmi/id/product_name"))
    notes.put(host, "board_vendor", line("/sys/class/dmi/id/sys_vendor"))
    for key, name in (
        ("board_name", "board_name"),
        ("bios_vendor", "bios_vendor"),
        ("bios", "bios_version"),
        ("bios_date", "bios_date"),
        ("serial", "product_serial"),
    ):
        notes.put(host, key, line(f"/sys/class/dmi/id/{name}"))
    if "bios" not in host:
        notes.add("the BIOS is not known: there is no /sys/class/dmi/id/bios_version")
    elif "serial" not in host:
        notes.add("the serial number of the board is not known: only root may read it")
    notes.put(host, "virtual", _virtual(machine))
    clock = line("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    notes.put(host, "clock_source", clock, "the clock source is not known")
    notes.put(host, "time_zone", line("/etc/timezone"))
    notes.put(host, "uptime_s", _uptime_s(line("/proc/uptime")), "how long it has been up is not known")
    return host


def _uptime_s(words: Optional[str]) -> Optional[int]:
    """Seconds since boot, from ``/proc/uptime``."""
    try:
        return round(float((words or "").split()[0]))
    except (IndexError, ValueError, OverflowError):
        return None


def _os_name(machine: Machine) -> Optional[str]:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        lines = machine.text(path).splitlines()
        pairs = dict(line.split("=", 1) for line in lines if "=" in line)
        name = pairs.get("PRETTY_NAME", pairs.get("NAME", "")).strip("\"'")
        if name:
            return clean(name)
    return None


def _virtual(machine: Machine) -> Optional[str]:
    """The hypervisor or container that this machine hints at; None if nothing does, which proves nothing."""
    if os.path.exists(machine.path("/.dockerenv")) or os.path.exists(machine.path("/run/.containerenv")):  # noqa: PTH110
        return "container"
    hypervisor = machine.line("/sys/hypervisor/type")
    if hypervisor:
        return hypervisor
    product = " ".join(machine.line(f"/sys/class/dmi/id/{name}") or "" for name in ("sys_vendor", "product_name"))
    for word, name in (
        ("QEMU", "kvm"),
        ("KVM", "kvm"),
        ("VMware", "vmware"),
        ("VirtualBox", "virtualbox"),
        ("Microsoft Corporation Virtual", "hyper-v"),
        ("Amazon EC2", "ec2"),
        ("Google Compute", "gce"),
        ("Xen", "xen"),
        ("Parallels", "parallels"),
    ):
        if word in product:
            return name
    return "a hypervisor of unknown kind" if " hypervisor" in machine.text("/proc/cpuinfo") else None


def _sysctls(machine: Machine) -> Dict[str, Tree]:
    """The SYSCTLS that this kernel has; kernels differ, so a missing one is not noted."""
    settings: Dict[str, Tree] = {}
    for name in SYSCTLS:
        value = machine.line("/proc/sys/" + name.replace(".", "/"))
        if value is not None:
            number = whole(value)
            settings[name] = number if number is not None else " ".join(value.split())
    return settings


_BEARING = frozenset(
    [
        "isolcpus",
        "nohz_full",
        "rcu_nocbs",
        "mitigations",
        "intel_pstate",
        "amd_pstate",
        "idle",
        "processor",
        "intel_idle",
        "hugepages",
        "hugepagesz",
        "default_hugepagesz",
        "transparent_hugepage",
        "iommu",
        "intel_iommu",
        "amd_iommu",
        "nosmt",
        "maxcpus",
        "nr_cpus",
        "tsc",
        "clocksource",
        "skew_tick",
        "nosoftlockup",
        "nmi_watchdog",
        "preempt",
        "threadirqs",
        "irqaffinity",
        "mem",
        "spectre_v2",
        "pti",
        "nopti",
        "audit",
        "selinux",
        "crashkernel",
        "panic",
        "numa_balancing",
        "pcie_aspm",
        "cgroup_disable",
    ]
)


def _command_line(machine: Machine, notes: Notes) -> List[Tree]:
    """Kernel parameters that affect results; others (paths, an installer's credentials) are left out."""
    line = machine.line("/proc/cmdline")
    if line is None:
        notes.lines.append("the kernel's command line is not known")
        return []
    parameters = [w for w in line.split() if w.split("=", 1)[0].split(".", 1)[0] in _BEARING]
    return list(parameters)


def _processes(machine: Machine) -> Dict[str, Tree]:
    """How many processes run of each name; kernel threads (no address space) are left out."""
    names: Counter[str] = Counter()
    for entry in machine.names("/proc"):
        if entry.isdigit():
            try:
                stat = parse_pid_stat(machine.text(f"/proc/{entry}/stat"))
            except ValueError:
                continue
            if stat.virtual > 0:
                names[clean(stat.comm)] += 1
    return dict(sorted(names.items())[:_MAX_PROCESS_NAMES])
