"""What a machine is: processors, kernel, memory, cards and settings that change results.

A report prints it, and a comparison of two runs shows where their machines differ. What could not be read is absent,
and ``notes`` says so: never 0, never an empty text.
"""

from __future__ import annotations

import glob
import os
import platform
from collections import Counter
from typing import Dict, List, Mapping, Optional, Union

import psutil

from soakwatch_agent.context import HostContext
from soakwatch_agent.nics import nics
from soakwatch_agent.procfs import clean, parse_cpuinfo, parse_keyed_kib, parse_pid_stat, read_line, read_text

Tree = Union[str, int, float, bool, List["Tree"], Dict[str, "Tree"]]

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
_MAX_PROCESS_NAMES = 400  # names, not processes


def fingerprint(root: str = "/", interfaces: Optional[List[str]] = None) -> Mapping[str, Tree]:
    """What the machine under ``root`` is, as a tree of text, whole numbers and flags that JSON takes.

    Names of processes are included, command lines are not: they may hold secrets; of the kernel's command line only
    what bears on results. ``interfaces`` are globs.
    """
    context, notes = HostContext(root), _Notes()
    tree: Dict[str, Tree] = {}
    tree["host"] = _host(context, notes)
    tree["cpu"] = _cpu(context, notes)
    tree["memory"] = _memory(context, notes)
    tree["nics"] = nics(context, interfaces)
    tree["sysctls"] = _sysctls(context)
    tree["kernel_command_line"] = _command_line(context, notes)
    tree["processes"] = _processes(context)
    tree["agent"] = {"python": platform.python_version(), "psutil": psutil.__version__}
    tree["notes"] = list(notes.lines)
    return tree


class _Notes:
    """What could not be read, a sentence each."""

    def __init__(self) -> None:
        self.lines: List[Tree] = []

    def put(self, into: Dict[str, Tree], key: str, value: Optional[Tree], missing: str = "") -> None:
        """Keeps a value, or notes that it is missing; ``missing`` empty means that its absence says nothing."""
        if value is not None:
            into[key] = value
        elif missing:
            self.lines.append(missing)


def _number(text: Optional[str]) -> Optional[int]:
    return int(text) if text is not None and text.lstrip("-").isdigit() else None


def _host(context: HostContext, notes: _Notes) -> Dict[str, Tree]:
    def line(path: str) -> Optional[str]:
        return read_line(context.path(path))

    host: Dict[str, Tree] = {}
    notes.put(host, "hostname", line("/proc/sys/kernel/hostname"), "the host name is not known")
    notes.put(host, "kernel", line("/proc/sys/kernel/osrelease"), "the kernel's release is not known")
    notes.put(host, "kernel_build", line("/proc/sys/kernel/version"))
    notes.put(host, "os", _os_name(context), "the operating system is not known: there is no os-release")
    notes.put(host, "board", line("/sys/class/dmi/id/product_name"))
    notes.put(host, "board_vendor", line("/sys/class/dmi/id/sys_vendor"))
    notes.put(host, "bios", line("/sys/class/dmi/id/bios_version"))
    notes.put(host, "virtual", _virtual(context))
    clock = line("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    notes.put(host, "clock_source", clock, "the clock source is not known")
    notes.put(host, "time_zone", line("/etc/timezone"))
    return host


def _os_name(context: HostContext) -> Optional[str]:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        try:
            lines = read_text(context.path(path)).splitlines()
        except OSError:
            continue
        pairs = dict(line.split("=", 1) for line in lines if "=" in line)
        name = pairs.get("PRETTY_NAME", pairs.get("NAME", "")).strip("\"'")
        if name:
            return clean(name)
    return None


def _virtual(context: HostContext) -> Optional[str]:
    """A hint at a hypervisor or a container; None where nothing points to one (which proves nothing)."""
    if os.path.exists(context.path("/.dockerenv")) or os.path.exists(context.path("/run/.containerenv")):  # noqa: PTH110
        return "container"
    hypervisor = read_line(context.path("/sys/hypervisor/type"))
    if hypervisor:
        return hypervisor
    product = " ".join(
        read_line(context.path(f"/sys/class/dmi/id/{name}")) or "" for name in ("sys_vendor", "product_name")
    )
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
    try:
        flagged = " hypervisor" in read_text(context.path("/proc/cpuinfo"))
    except OSError:
        return None
    return "a hypervisor of unknown kind" if flagged else None


def _cpu(context: HostContext, notes: _Notes) -> Dict[str, Tree]:
    cpu: Dict[str, Tree] = {}
    try:
        cores = parse_cpuinfo(read_text(context.path("/proc/cpuinfo")))
    except OSError:
        cores = []
    first = cores[0] if cores else {}
    model = first.get("model name") or first.get("Model") or first.get("cpu model")
    notes.put(cpu, "model", model, "the processor's model is not known")
    notes.put(cpu, "logical_cores", len(cores) or None, "the number of cores is not known")
    packages = {core["physical id"] for core in cores if "physical id" in core}
    notes.put(cpu, "sockets", len(packages) or None)
    physical = {(core.get("physical id"), core["core id"]) for core in cores if "core id" in core}
    notes.put(cpu, "physical_cores", len(physical) or None)
    notes.put(cpu, "microcode", first.get("microcode"), "the microcode's version is not known")
    base = "/sys/devices/system/cpu"
    notes.put(cpu, "smt", read_line(context.path(f"{base}/smt/control")))
    notes.put(cpu, "online", read_line(context.path(f"{base}/online")))
    notes.put(cpu, "isolated", read_line(context.path(f"{base}/isolated")))
    notes.put(cpu, "nohz_full", read_line(context.path(f"{base}/nohz_full")))
    governors = _kinds(context, f"{base}/cpu[0-9]*/cpufreq/scaling_governor")
    notes.put(cpu, "governor", governors, "there is no frequency governor: this system does not control its clock")
    for key, name in (("frequency_min_khz", "scaling_min_freq"), ("frequency_max_khz", "scaling_max_freq")):
        notes.put(cpu, key, _kinds(context, f"{base}/cpu[0-9]*/cpufreq/{name}"))
    notes.put(cpu, "frequency_driver", _kinds(context, f"{base}/cpu[0-9]*/cpufreq/scaling_driver"))
    no_turbo = read_line(context.path(f"{base}/intel_pstate/no_turbo"))
    boost = read_line(context.path(f"{base}/cpufreq/boost"))
    notes.put(cpu, "turbo", no_turbo == "0" if no_turbo is not None else boost == "1" if boost is not None else None)
    idle = read_line(context.path(f"{base}/cpuidle/current_driver"))
    notes.put(cpu, "idle_driver", idle if idle != "none" else None)
    flaws: Dict[str, Tree] = {}
    for path in sorted(glob.glob(context.path(f"{base}/vulnerabilities/*"))):
        notes.put(flaws, path.rpartition("/")[2], read_line(path))
    notes.put(cpu, "mitigations", flaws or None, "the mitigations of processor flaws are not known")
    return cpu


def _kinds(context: HostContext, pattern: str) -> Optional[str]:
    """The value that all cores share, or each value with the number of its cores."""
    values = Counter(value for value in map(read_line, glob.glob(context.path(pattern))) if value is not None)
    if len(values) <= 1:
        return next(iter(values), None)
    return ", ".join(f"{value} ({count} cores)" for value, count in sorted(values.items()))


def _memory(context: HostContext, notes: _Notes) -> Dict[str, Tree]:
    memory: Dict[str, Tree] = {}
    try:
        info = parse_keyed_kib(read_text(context.path("/proc/meminfo")))
    except OSError:
        info = {}
    notes.put(memory, "total_bytes", info.get("MemTotal"), "the size of the memory is not known")
    notes.put(memory, "swap_bytes", info.get("SwapTotal"))
    notes.put(memory, "hugepages", info.get("HugePages_Total"))
    notes.put(memory, "hugepage_bytes", info.get("Hugepagesize"))
    huge = read_line(context.path("/sys/kernel/mm/transparent_hugepage/enabled"))
    notes.put(memory, "transparent_hugepages", huge)
    nodes = len(glob.glob(context.path("/sys/devices/system/node/node[0-9]*")))
    notes.put(memory, "numa_nodes", nodes or None)
    return memory


def _sysctls(context: HostContext) -> Dict[str, Tree]:
    """Settings that this kernel has; one it lacks is absent, which is normal between kernels."""
    settings: Dict[str, Tree] = {}
    for name in SYSCTLS:
        value = read_line(context.path("/proc/sys/" + name.replace(".", "/")))
        if value is not None:
            number = _number(value)
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


def _command_line(context: HostContext, notes: _Notes) -> List[Tree]:
    """Parameters of the kernel that bear on results; others (paths, credentials of an installer) are left out."""
    line = read_line(context.path("/proc/cmdline"))
    if line is None:
        notes.lines.append("the kernel's command line is not known")
        return []
    parameters = [w for w in line.split() if w.split("=", 1)[0].split(".", 1)[0] in _BEARING]
    return list(parameters)


def _processes(context: HostContext) -> Dict[str, Tree]:
    """How many processes of each name run; kernel threads (without address space) are left out."""
    names: Counter[str] = Counter()
    for entry in os.listdir(context.path("/proc")):
        if entry.isdigit():
            try:
                stat = parse_pid_stat(read_text(context.path(f"/proc/{entry}/stat")))
            except (OSError, ValueError):
                continue
            if stat.virtual > 0:
                names[clean(stat.comm)] += 1
    return dict(sorted(names.items())[:_MAX_PROCESS_NAMES])
