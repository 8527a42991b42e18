"""Readers and pure parsers of the kernel's text files, where psutil reads too much or ignores another root."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Container, Dict, List, Mapping, Optional, Tuple

_CHUNK = 1 << 16


def read_text(path: str) -> str:
    """The whole text of a small file; non-UTF-8 bytes become surrogates. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(fd, _CHUNK)
        if data:
            more = os.read(fd, _CHUNK)
            while more:
                data += more
                more = os.read(fd, _CHUNK)
    finally:
        os.close(fd)
    return data.decode("utf-8", "surrogateescape")


def read_line(path: str) -> Optional[str]:
    """The stripped text of a one-line file; None if it is missing, unreadable or empty."""
    try:
        return clean(read_text(path)).strip() or None
    except OSError:
        return None


def clean(text: str) -> str:
    """Makes text valid UTF-8: bytes that are not become backslash escapes.

    >>> clean("caf\\udce9")
    'caf\\\\xe9'
    """
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


@dataclass(frozen=True)
class PidStat:
    """/proc/PID/stat of a process; times in ticks, ``start`` in ticks after boot."""

    __slots__ = ("comm", "parent", "start", "state", "system", "threads", "user", "virtual")
    comm: str
    state: str
    parent: int
    user: int
    system: int
    threads: int
    start: int
    virtual: int

    @property
    def dead(self) -> bool:
        """True for a zombie; a process whose main thread exited but others run shows Z too, and is alive."""
        return self.state in "ZXx" and self.threads <= 1


def parse_pid_stat(text: str) -> PidStat:
    """Parses /proc/PID/stat; the name in brackets may itself hold brackets and spaces. Raises ValueError.

    >>> parse_pid_stat("7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 11 22 0 0 20 0 3 0 99 4096 5 0").comm
    'a) b'
    """
    begin, end = text.index("("), text.rindex(")")
    part = text[end + 2 :].split(None, 22)
    if len(part) < 22:
        raise ValueError("a process stat line is cut short")
    return PidStat(
        text[begin + 1 : end],
        part[0],
        int(part[1]),
        int(part[11]),
        int(part[12]),
        int(part[17]),
        int(part[19]),
        int(part[20]),
    )


CPU_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


@dataclass(frozen=True)
class CpuStat:
    """/proc/stat: ticks by mode (order of CPU_MODES) in total and by core, context switches, boot time, and processes
    and threads ``created``."""

    __slots__ = ("boot_s", "cores", "created", "switches", "total")
    total: Tuple[int, ...]
    cores: Mapping[int, Tuple[int, ...]]
    switches: Optional[int]
    boot_s: Optional[int]
    created: Optional[int]


def parse_cpu_stat(text: str) -> CpuStat:
    """Parses /proc/stat. User time includes guest time, as the kernel has it; modes that an old kernel lacks are 0.

    >>> stat = parse_cpu_stat("cpu 1 2 3 4 5 6 7 8 0 0\\ncpu3 1 2 3 4 5 6 7 8 0 0\\nctxt 9\\nbtime 10\\nprocesses 7\\n")
    >>> stat.total, sorted(stat.cores), stat.switches, stat.boot_s, stat.created
    ((1, 2, 3, 4, 5, 6, 7, 8), [3], 9, 10, 7)
    """
    total: Tuple[int, ...] = ()
    cores: Dict[int, Tuple[int, ...]] = {}
    switches = boot_s = created = None
    for line in text.split("\n"):
        if line.startswith("cpu"):
            word = line.split()
            ticks = tuple(int(w) for w in word[1:9])
            ticks += (0,) * (8 - len(ticks))
            if word[0] == "cpu":
                total = ticks
            else:
                cores[int(word[0][3:])] = ticks
        elif line.startswith("ctxt "):
            switches = int(line[5:])
        elif line.startswith("btime "):
            boot_s = int(line[6:])
        elif line.startswith("processes "):
            created = int(line[10:])
    if not total:
        raise ValueError("the kernel's stat file has no cpu line")
    return CpuStat(total, cores, switches, boot_s, created)


def parse_keyed_kib(text: str, only: Optional[Container[str]] = None) -> Dict[str, int]:
    """Parses /proc/meminfo and the like: key to bytes (a line without kB to its bare number); ``only`` these keys.

    >>> parse_keyed_kib("MemTotal:  2 kB\\nHugePages_Total:  3\\n")
    {'MemTotal': 2048, 'HugePages_Total': 3}
    """
    values: Dict[str, int] = {}
    for line in text.splitlines():
        key, _, rest = line.partition(":")
        if only is not None and key not in only:
            continue
        word = rest.split()
        if word and word[0].isdigit():
            values[key.strip()] = int(word[0]) * (1024 if len(word) > 1 and word[1] == "kB" else 1)
    return values


def parse_paired(text: str) -> Dict[str, Dict[str, int]]:
    """Parses /proc/net/snmp and netstat: for each protocol a line of names, then one of numbers.

    >>> parse_paired("Udp: InErrors NoPorts\\nUdp: 4 5\\n")
    {'Udp': {'InErrors': 4, 'NoPorts': 5}}
    """
    tables: Dict[str, Dict[str, int]] = {}
    lines = text.splitlines()
    for names, numbers in zip(lines[::2], lines[1::2]):  # noqa: B905 - strict= came with 3.10
        name, value = names.split(), numbers.split()
        if name and value and name[0] == value[0]:
            tables[name[0].rstrip(":")] = {k: int(v) for k, v in zip(name[1:], value[1:])}  # noqa: B905
    return tables


def parse_words(text: str, begin: str = "") -> Dict[str, int]:
    """Parses lines of a key and a number (/proc/vmstat, /proc/net/snmp6), of keys that ``begin`` so.

    >>> parse_words("oom_kill 2\\nUdp6InErrors   \\t 1\\n")
    {'oom_kill': 2, 'Udp6InErrors': 1}
    """
    values: Dict[str, int] = {}
    for line in text.splitlines():
        if not line.startswith(begin):
            continue
        word = line.split()
        if len(word) == 2 and word[1].isdigit():
            values[word[0]] = int(word[1])
    return values


def parse_pressure(text: str) -> Dict[str, int]:
    """Parses a file of /proc/pressure: microseconds since boot by extent (some, full).

    >>> parse_pressure("some avg10=0.00 avg60=0.15 avg300=0.20 total=6541\\nfull avg10=0.00 total=12\\n")
    {'some': 6541, 'full': 12}
    """
    spent: Dict[str, int] = {}
    for line in text.splitlines():
        extent, *pairs = line.split()
        for pair in pairs:
            if pair.startswith("total="):
                spent[extent] = int(pair[6:])
    return spent


def parse_sockstat(text: str) -> Dict[str, Dict[str, int]]:
    """Parses /proc/net/sockstat and sockstat6: numbers by protocol and name.

    >>> parse_sockstat("sockets: used 97\\nTCP: inuse 34 orphan 0 tw 3 alloc 35 mem 2\\n")["TCP"]["tw"]
    3
    """
    tables: Dict[str, Dict[str, int]] = {}
    for line in text.splitlines():
        protocol, colon, rest = line.partition(":")
        word = rest.split()
        if colon:
            tables[protocol] = {name: int(value) for name, value in zip(word[::2], word[1::2])}  # noqa: B905
    return tables


_ERRORS = {
    "receive": {"fifo": 4, "frame": 5},
    "transmit": {"fifo": 12, "collisions": 13, "carrier": 14},
}
"""Columns of /proc/net/dev after the interface's name."""


def parse_interface_errors(text: str) -> Dict[str, Dict[Tuple[str, str], int]]:
    """Parses /proc/net/dev: errors of each interface by direction and kind. ``frame`` sums length, checksum, overrun
    and framing errors; ``carrier`` could not be sent because the link was down; collisions occur on half duplex only.

    >>> rows = parse_interface_errors("h\\nh\\n  lo: 1 2 0 0 3 4 0 0 9 8 0 0 5 6 7 0\\n")
    >>> rows["lo"]["receive", "frame"], rows["lo"]["transmit", "carrier"]
    (4, 7)
    """
    rows: Dict[str, Dict[Tuple[str, str], int]] = {}
    for line in text.splitlines()[2:]:
        name, colon, rest = line.rpartition(":")
        word = rest.split()
        if colon and len(word) >= 16:
            rows[name.strip()] = {
                (direction, kind): int(word[column])
                for direction, kinds in _ERRORS.items()
                for kind, column in kinds.items()
            }
    return rows


@dataclass(frozen=True)
class Softnet:
    """One core's line of /proc/net/softnet_stat; counters of 32 bits."""

    __slots__ = ("core", "dropped", "processed", "squeezed")
    core: int
    processed: int
    dropped: int
    squeezed: int


def parse_softnet(text: str) -> List[Softnet]:
    """Parses /proc/net/softnet_stat: hexadecimal columns; the 13th is the core (kernel 5.10 on), else the line number
    counts as the core, which is wrong if cores are offline.

    >>> parse_softnet("0000000a 00000001 00000002")[0].processed
    10
    """
    rows = []
    for number, line in enumerate(row for row in text.splitlines() if row.strip()):
        word = [int(w, 16) for w in line.split()]
        rows.append(Softnet(word[12] if len(word) > 12 else number, word[0], word[1], word[2]))
    return rows


def parse_interrupts(text: str) -> Dict[int, int]:
    """Parses /proc/interrupts: interrupts served by each core, summed over lines that have a column for each core.

    >>> parse_interrupts("      CPU0 CPU2\\n 1:  3  4  IO-APIC  1-edge  i8042\\nERR:  9\\nNMI:  1  1  x\\n")
    {0: 4, 2: 5}
    """
    lines = text.splitlines()
    cores = [int(word[3:]) for word in lines[0].split()] if lines else []
    sums = [0] * len(cores)
    for line in lines[1:]:
        word = line.split(None, len(cores) + 1)[1 : len(cores) + 1]
        if len(word) == len(cores) and all(map(str.isdigit, word)):
            for index, count in enumerate(word):
                sums[index] += int(count)
    return dict(zip(cores, sums))  # noqa: B905


def parse_cpuinfo(text: str) -> List[Dict[str, str]]:
    """Parses /proc/cpuinfo: one mapping a core.

    >>> parse_cpuinfo("processor\\t: 0\\nmodel name\\t: X\\n\\nprocessor\\t: 1\\n")
    [{'processor': '0', 'model name': 'X'}, {'processor': '1'}]
    """
    cores = []
    for block in text.split("\n\n"):
        pairs = (line.partition(":") for line in block.splitlines() if ":" in line)
        core = {key.strip(): value.strip() for key, _, value in pairs}
        if "processor" in core:
            cores.append(core)
    return cores
