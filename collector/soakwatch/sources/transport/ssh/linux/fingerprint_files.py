"""The files of a Linux device that a fingerprint is made of, printed by its shell: for a device without Python."""

from __future__ import annotations

from soakwatch_agent.fingerprint import SYSCTLS

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


def files_script() -> str:
    """Each file that is there as a part ``f PATH``, each symbolic link as ``l PATH`` with what it points to.

    Files of one line, by far the most, are read by the shell itself: a program for each costs a small device seconds.
    Not those of /proc/sys and lists of cores: there the kernel gives a shell that reads byte by byte one or none.
    """
    show = 'if [ -f "$p" ] && [ -r "$p" ]; then echo; echo \'@@ f \'"$p";'
    whole, line = f'{show} cat "$p" 2>/dev/null; fi', f'{show} x=; read -r x <"$p"; printf "%s\\n" "$x"; fi'
    follow = 'if [ -L "$p" ]; then echo; echo \'@@ l \'"$p"; readlink "$p"; fi'
    parts = (("w", whole, _WHOLE), ("f", line, _LINES + _FOLDERS), ("l", follow, _LINKS))
    functions = [f"{name}() {{ for p; do {body}; done; }}" for name, body, _ in parts]
    return "\n".join((*functions, *(f"{name} {' '.join(paths)}" for name, _, paths in parts)))
