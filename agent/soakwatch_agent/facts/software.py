"""What runs on a machine that bears on results: kernel modules, package versions, cgroup limits, the tuned profile."""

from __future__ import annotations

import re
import subprocess
from fnmatch import fnmatchcase
from typing import Dict, Iterable, List, Optional, Tuple

from soakwatch_agent.facts.machine import Machine, Notes
from soakwatch_agent.procfs import clean
from soakwatch_model.tree import Tree

_MODULES = re.compile(
    r"vfio\w*|uio\w*|igb_uio|rte_kni|openvswitch|vport_\w+|vxlan|geneve|gre|ip_gre|ip6_gre|sit|ipip|wireguard|gtp"
    r"|bonding|team\w*|bridge|br_netfilter|8021q|macvlan|macvtap|ipvlan|veth|tun|tap|vhost\w*|virtio_net|vmxnet3|af_packet"
    r"|nf_conntrack\w*|nf_tables|nf_nat\w*|nf_flow_table|ip_tables|ip6_tables|ip_vs\w*|xt_\w+|act_\w+|cls_\w+|sch_\w+"
    r"|tcp_\w+|esp4\w*|esp6\w*|ah4|ah6|xfrm_\w+|aesni_intel|qat_\w+|intel_qat|mpls_\w+|kvm\w*|intel_pstate|acpi_cpufreq"
    r"|intel_rapl\w*|msr"
)
_PACKAGES = (
    *("dpdk", "dpdk-*", "libdpdk*", "vpp", "vpp-*", "libvpp*", "frr", "frr-*", "quagga*", "bird", "bird2", "gobgp*"),
    *("openvswitch*", "ovn", "ovn-*", "openvswitch-dpdk", "nginx", "nginx-*", "haproxy*", "envoy*", "apache2", "httpd"),
    *("strongswan", "strongswan-*", "libreswan", "wireguard*", "openvpn*", "openssl", "libssl*", "openssl-libs"),
    *("suricata*", "snort*", "zeek*", "iptables*", "nftables*", "conntrack*", "keepalived*", "ipvsadm", "ethtool"),
    *(
        "iproute2",
        "iproute",
        "tuned*",
        "irqbalance",
        "linux-image-*",
        "kernel",
        "kernel-core",
        "kernel-default",
        "linux-lts",
    ),
    *("linux-virt", "linux-firmware*", "firmware-*", "intel-microcode", "amd64-microcode", "microcode_ctl", "*-dkms"),
    *("mlnx-*", "ofed*", "rdma-core", "mft", "libbpf*", "bpftool", "xdp-tools", "iperf*", "trex*", "qemu-system-*"),
    *(
        "qemu-kvm",
        "libvirt-daemon*",
        "docker-ce",
        "docker.io",
        "containerd*",
        "libc6",
        "glibc",
        "musl",
        "busybox",
        "systemd",
    ),
    *("accel-ppp*", "kea*", "unbound", "bind9", "powerdns*", "knot*", "snmpd", "net-snmp"),
)
_EXACT = frozenset(pattern for pattern in _PACKAGES if "*" not in pattern)
_GLOBS = tuple(pattern for pattern in _PACKAGES if "*" in pattern)
_MAX_PACKAGES = 200
_RPM_S = 15.0
_MAX_OUTPUT = 4 << 20
_UNLIMITED = 1 << 60  # cgroup v1 without a limit reads a little below 2**63


def modules(machine: Machine, drivers: Iterable[str]) -> Dict[str, Tree]:
    """Loaded modules that affect results, and those of ``drivers``: version, else source digest, else "loaded"."""
    wanted = {driver.replace("-", "_") for driver in drivers}
    found: Dict[str, Tree] = {}
    for line in machine.text("/proc/modules").splitlines():
        name = line.partition(" ")[0]
        if name in wanted or _MODULES.fullmatch(name):
            folder = f"/sys/module/{name}"
            source = machine.line(f"{folder}/srcversion")
            found[name] = machine.line(f"{folder}/version") or (f"source {source}" if source else "loaded")
    return dict(sorted(found.items()))


def is_wanted(name: str) -> bool:
    """True if a package may affect results.

    >>> is_wanted("vpp"), is_wanted("linux-image-6.1.0-13-amd64"), is_wanted("cowsay")
    (True, True, False)
    """
    return name in _EXACT or any(fnmatchcase(name, pattern) for pattern in _GLOBS)


def packages(machine: Machine, notes: Notes) -> Dict[str, Tree]:
    """Versions of the installed packages that may affect results, from the database of dpkg, opkg, apk or rpm."""
    found: List[Tuple[str, str]] = []
    known = False
    for path in ("/var/lib/dpkg/status", "/usr/lib/opkg/status", "/lib/apk/db/installed"):
        text = machine.text(path)
        if text:
            known = True
            found += _apk(text) if "apk" in path else _dpkg(text)
    if not known and machine.names("/var/lib/rpm") + machine.names("/usr/lib/sysimage/rpm"):
        listed = _rpm(machine)
        known = listed is not None
        found += listed or []
    if not known:
        notes.add("package versions are not known: dpkg, opkg, apk and rpm have no account here that can be read")
    chosen = sorted((name, version) for name, version in set(found) if is_wanted(name))
    if len(chosen) > _MAX_PACKAGES:
        notes.add(f"{len(chosen) - _MAX_PACKAGES} more packages are left out")
    versions: Dict[str, Tree] = {}
    for name, version in chosen[:_MAX_PACKAGES]:
        versions[name] = f"{versions[name]}, {version}" if name in versions else version
    return versions


def _dpkg(text: str) -> List[Tuple[str, str]]:
    """The installed packages of dpkg's or opkg's status file.

    >>> _dpkg("Package: vpp\\nStatus: install ok installed\\nVersion: 24.02\\n\\nPackage: x\\nStatus: purge ok half\\n")
    [('vpp', '24.02')]
    """
    found: List[Tuple[str, str]] = []
    for block in text.split("\n\n"):
        head = block.partition("\nDescription:")[0]
        pairs = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line and line[:1] != " ")
        if pairs.get("Status", "").endswith(" installed") and "Package" in pairs and "Version" in pairs:
            found.append((clean(pairs["Package"]), clean(pairs["Version"])))
    return found


def _apk(text: str) -> List[Tuple[str, str]]:
    """The packages of Alpine's database of installed packages.

    >>> _apk("C:Q1\\nP:frr\\nV:9.1-r0\\n\\nP:musl\\nV:1.2.5-r0\\n")
    [('frr', '9.1-r0'), ('musl', '1.2.5-r0')]
    """
    found: List[Tuple[str, str]] = []
    for block in text.split("\n\n"):
        pairs = {line[0]: line[2:] for line in block.splitlines() if line[1:2] == ":"}
        if "P" in pairs and "V" in pairs:
            found.append((clean(pairs["P"]), clean(pairs["V"])))
    return found


def _rpm(machine: Machine) -> Optional[List[Tuple[str, str]]]:
    """What ``rpm -qa`` lists; None if it cannot be run, or the machine is a recorded one."""
    if not machine.real:
        return None
    try:
        answer = subprocess.run(
            ["rpm", "-qa", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\n"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_RPM_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = answer.stdout[:_MAX_OUTPUT].decode("utf-8", "replace").splitlines()
    return [(name, version) for name, _, version in (line.partition(" ") for line in lines) if version] or None


def cgroup(machine: Machine) -> Dict[str, Tree]:
    """The limits of the root cgroup: a container sees its own there, a host none."""
    base = "/sys/fs/cgroup"
    facts: Dict[str, Tree] = {}
    second = machine.line(f"{base}/cgroup.controllers") is not None or machine.line(f"{base}/cpu.max") is not None
    names = machine.names(base)
    if not names:
        return facts
    facts["version"] = 2 if second else 1
    if second:
        quota, _, period = (machine.line(f"{base}/cpu.max") or "").partition(" ")
        cores: Tree = "unlimited" if quota in ("", "max") else _cores(quota, period)
        memory_max = machine.line(f"{base}/memory.max")
        memory: Tree = int(memory_max) if memory_max is not None and memory_max.isdigit() else "unlimited"
        own = machine.line(f"{base}/cpuset.cpus.effective")
    else:
        quota = machine.line(f"{base}/cpu/cpu.cfs_quota_us") or "-1"
        period = machine.line(f"{base}/cpu/cpu.cfs_period_us") or ""
        cores = "unlimited" if quota.startswith("-") else _cores(quota, period)
        limit = machine.whole(f"{base}/memory/memory.limit_in_bytes")
        memory = "unlimited" if limit is None or limit >= _UNLIMITED else limit
        own = machine.line(f"{base}/cpuset/cpuset.cpus")
    facts["cpu_cores"], facts["memory_max_bytes"] = cores, memory
    if own is not None:
        facts["cores"] = own
    return facts


def _cores(quota: str, period: str) -> Tree:
    if not (quota.isdigit() and period.isdigit() and int(period)):
        return f"{quota} {period}".strip()
    return round(int(quota) / int(period), 3)


def tuned(machine: Machine) -> Dict[str, Tree]:
    """The active profile of tuned; empty if it is not installed."""
    facts: Dict[str, Tree] = {}
    for key, name in (("profile", "active_profile"), ("mode", "profile_mode")):
        text = machine.line(f"/etc/tuned/{name}")
        if text is not None:
            facts[key] = text
    return facts
