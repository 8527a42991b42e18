"""What a Linux device has: asked once when it is connected, and again every ten minutes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from soakwatch.sources.transport.ssh.asks import NamedAsk
from soakwatch.sources.transport.ssh.shell import part
from soakwatch_agent.procfs import clean

EVERY_LOOK = (
    "/proc/stat",
    "/proc/meminfo",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/net/dev",
    "/proc/net/snmp",
    "/proc/net/snmp6",
    "/proc/net/netstat",
    "/proc/net/softnet_stat",
    "/proc/net/sockstat",
    "/proc/net/sockstat6",
    *(f"/proc/pressure/{name}" for name in ("cpu", "memory", "io", "irq")),
    "/proc/diskstats",
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/net/netfilter/nf_conntrack_count",
)
SLOW = (  # every 10 s, as the probes read them
    "/proc/vmstat",
    "/proc/interrupts",
    "/proc/sys/net/netfilter/nf_conntrack_max",
    "/proc/sys/net/ipv4/tcp_mem",
    "/proc/sys/net/ipv4/udp_mem",
    "/proc/sys/net/ipv4/tcp_max_orphans",
    "/proc/filesystems",
    "/proc/self/mounts",
    "/proc/cpuinfo",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/core_uses_pid",
)
LEDGER = ("/proc/zoneinfo", "/proc/sysvipc/shm")  # each minute, for the memory ledger
LEDGER_PARTS = ("/proc/slabinfo", "/proc/vmallocinfo", "/proc/allocinfo")  # every 5 minutes
_HWMON = (
    "name",
    *(f"temp*_{what}" for what in ("input", "label", "crit", "emergency", "lcrit", "max")),
    *(f"fan*_{what}" for what in ("input", "label", "fault", "min")),
    *(f"in[0-9]*_{what}" for what in ("input", "label", "crit", "lcrit")),
    *(f"{kind}*_{what}" for kind in ("power", "energy") for what in ("input", "average", "label")),
)
SENSORS = (  # globs
    *(f"/sys/class/hwmon/hwmon*{folder}/{name}" for folder in ("", "/device") for name in _HWMON),
    "/sys/class/powercap/intel-rapl*:*/name",
    "/sys/class/powercap/intel-rapl*:*/energy_uj",
    "/sys/class/powercap/intel-rapl*:*/max_energy_range_uj",
    "/sys/class/thermal/thermal_zone*/type",
    "/sys/class/thermal/thermal_zone*/temp",
    "/sys/devices/system/cpu/cpu*/cpufreq/scaling_cur_freq",
)
_NUMBER = re.compile(r"\d{1,9}")


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found. ``denied`` are files that exist but may not be read; ``asks`` are the programs that answered."""

    files: frozenset[str]
    denied: frozenset[str]
    sensors: tuple[str, ...]
    blocks: tuple[str, ...]
    asks: frozenset[str]
    facts: Mapping[str, str]
    shell_pid: int
    parent_pid: int
    page: int
    ticks: int
    timeout: bool
    stat: bool
    kmsg: str  # yes, busy (there, but this dd cannot read it without waiting), denied or absent

    @property
    def server_file(self) -> str:
        """The line of the sshd that serves the connection, which is the shell's parent."""
        return f"/proc/{self.parent_pid}/stat"

    @property
    def root(self) -> bool:
        """True where the account is root."""
        return self.facts.get("uid") == "0"


def survey_script(asked: tuple[NamedAsk, ...]) -> str:
    """The script of the survey. Programs are tried under ``timeout``; on a device without it they are not tried."""
    files = " ".join(EVERY_LOOK + SLOW + LEDGER + LEDGER_PARTS)
    limit = "timeout -k 1 2 true >/dev/null 2>&1"
    tests = "; ".join(
        f"timeout -k 1 1 sh -c {shlex.quote(each.ask.present)} >/dev/null 2>&1 && echo {each.name}" for each in asked
    )
    return "\n".join(
        [
            "LC_ALL=C; export LC_ALL; PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin:/usr/local/bin; export PATH; cd /",
            part("system", "uname -s; uname -r; uname -m"),
            part("ids", 'echo "$$ $PPID"; id -u'),
            part("sizes", "getconf PAGESIZE || echo 0; getconf CLK_TCK || echo 0"),
            part("release", "head -c 4096 /etc/os-release"),
            part("files", f"for f in {files}; do if [ -r $f ]; then echo $f; elif [ -e $f ]; then echo -$f; fi; done"),
            part("sensors", f"for f in {' '.join(SENSORS)}; do [ -r $f ] && echo $f; done"),
            part("block", "for f in /sys/block/*; do [ -e $f ] && echo ${f##*/}; done"),
            part("timeout", f"{limit} && echo yes"),
            part("stat", "stat -c '%s %Y %i %n' / && stat -f -c '%S %b %f %c %d %n' /"),
            part("kmsg", _KMSG),
            part("asks", f"if {limit}; then {tests}; fi" if tests else ":"),
        ]
    )


# A device node that may be opened is kept open: its reads go on where the look before ended.
_KMSG = (
    'if [ -n "$soakwatch_kmsg" ]; then echo yes; elif [ ! -e /dev/kmsg ]; then echo absent; elif '
    "! ( : </dev/kmsg ); then echo denied; else exec 9</dev/kmsg; "
    "if dd iflag=nonblock bs=8192 count=0 <&9 of=/dev/null; then soakwatch_kmsg=1; echo yes; "
    "else exec 9<&-; echo busy; fi; fi"
)


def survey_of(parts: Mapping[str, bytes]) -> Survey:
    """What a survey's answer means."""

    def lines(name: str) -> list[str]:
        return clean(parts.get(name, b"").decode("utf-8", "surrogateescape")).splitlines()

    system = [*lines("system"), "", "", ""]
    pairs = (line.partition("=") for line in lines("release"))
    release = {key: value.strip().strip('"') for key, _, value in pairs}
    ids = [*" ".join(lines("ids")).split(), "0", "0", ""]
    sizes = [*(int(word) for word in lines("sizes") if _NUMBER.fullmatch(word)), 0, 0]
    paths = lines("files")
    facts = {
        "profile": "linux",
        "system": release.get("PRETTY_NAME") or release.get("NAME") or system[0],
        "version": f"{system[0]} {system[1]}".strip(),
        "architecture": system[2],
        "uid": ids[2],
    }
    return Survey(
        frozenset(line for line in paths if line.startswith("/")),
        frozenset(line[1:] for line in paths if line.startswith("-/")),
        tuple(line for line in lines("sensors") if line.startswith("/sys/")),
        tuple(line for line in lines("block") if "/" not in line),
        frozenset(lines("asks")),
        {key: value for key, value in facts.items() if value},
        int(ids[0]) if _NUMBER.fullmatch(ids[0]) else 0,
        int(ids[1]) if _NUMBER.fullmatch(ids[1]) else 0,
        sizes[0] or 4096,
        sizes[1] or 100,
        "yes" in lines("timeout"),
        len(lines("stat")) == 2,
        (lines("kmsg") or ["absent"])[-1],
    )
