"""Kernel log lines that mean trouble: the records of /dev/kmsg and the patterns of their texts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, Optional, Tuple

KINDS = ("oom", "segfault", "panic", "hung_task", "lockup", "hardware", "hardware_corrected", "thermal")

# The first match wins. Only one line of an incident matches; the call trace around it does not.
_PATTERNS: Tuple[Tuple[str, re.Pattern[str]], ...] = (
    (
        "oom",
        re.compile(
            r"(?:Out of memory(?: \(oom_kill_allocating_task\))?|Memory cgroup out of memory): "
            r"Kill(?:ed)? process (?P<pid>\d+) \((?P<process>.*?)\)"
        ),
    ),
    ("segfault", re.compile(r"(?P<process>\S.*?)\[(?P<pid>\d+)\]: segfault at ")),
    (
        "segfault",
        re.compile(r"traps: (?P<process>.+?)\[(?P<pid>\d+)\] (?:general |control )?(?:protection|trap |bad frame)"),
    ),
    (
        "segfault",
        re.compile(r"(?P<process>\S.*?)\[(?P<pid>\d+)\]: (?:unhandled|potentially unexpected fatal) signal"),
    ),
    (
        "segfault",
        re.compile(r"(?P<process>\S.*?)\[(?P<pid>\d+)\]: unhandled (?:level \d )?.*(?:fault|exception|abort)"),
    ),
    ("panic", re.compile(r"Kernel panic - not syncing")),
    ("panic", re.compile(r"\b(?:kernel )?BUG(?::| at )(?!.*(?:soft lockup|workqueue lockup))")),
    ("panic", re.compile(r"(?:Internal error: )?Oops(?::| - )")),
    ("panic", re.compile(r"general protection fault.*: [0-9a-f]{4} \[#\d+\]")),
    ("panic", re.compile(r"Unable to handle kernel ")),
    (
        "hung_task",
        re.compile(r"INFO: task (?P<process>.+):(?P<pid>\d+) (?:<.*> )?(?:is )?blocked .*for more than \d+ seconds"),
    ),
    ("lockup", re.compile(r"BUG: soft lockup - CPU#\d+ stuck for .*\[(?P<process>.+):(?P<pid>\d+)\]")),
    ("lockup", re.compile(r"BUG: workqueue lockup")),
    ("lockup", re.compile(r"[Ww]atchdog: (?:BUG: |CPU\d+: )?(?:Watchdog detected )?hard LOCKUP on cpu")),
    (
        "lockup",
        re.compile(r"rcu(?:_\w+)?: INFO: .*detected (?:expedited )?stalls? on CPU|INFO: rcu_\w+ (?:self-)?detected "),
    ),
    ("hardware_corrected", re.compile(r"mce: \[Hardware Error\]: Machine check events logged")),
    # Bit 61 of the bank's status (UC) is clear: the hardware corrected it (Intel SDM vol. 3, 16.3.2.2).
    ("hardware_corrected", re.compile(r"Machine [Cc]heck: 0 Bank \d+: [014589cd][0-9a-f]{15}")),
    ("hardware", re.compile(r"mce: \[Hardware Error\]: (?:CPU \d+: )?Machine [Cc]heck")),
    ("hardware_corrected", re.compile(r"\[Hardware Error\]: (?:event severity: (?:corrected|info)|Corrected error)")),
    ("hardware", re.compile(r"\[Hardware Error\]: (?:event severity: (?:fatal|recov)|Uncorrected|Deferred error)")),
    ("hardware", re.compile(r"EDAC \S+: \d+ UE ")),
    ("hardware_corrected", re.compile(r"EDAC \S+: \d+ CE ")),
    ("hardware", re.compile(r"AER: (?:Multiple )?(?:Uncorrect(?:ed|able)|Fatal)")),
    ("hardware_corrected", re.compile(r"AER: (?:Multiple )?Correct(?:ed|able) error")),
    ("hardware", re.compile(r"critical temperature reached")),
    ("thermal", re.compile(r"temperature(?:/speed)? (?:is )?above threshold, cpu clock (?:is )?throttled")),
)
# Searched first: nearly every line matches nothing.
_ANY = re.compile(
    r"[Oo]ut of memory|segfault|traps: |signal|unhandled|panic|BUG|Oops|protection fault|Unable to handle|"
    r"blocked|LOCKUP|stall|Hardware Error|EDAC|AER: |temperature"
)


@dataclass(frozen=True)
class KernelMessage:
    """One record of the kernel log; ``usec`` is microseconds after boot."""

    __slots__ = ("priority", "seq", "text", "usec")
    priority: int
    seq: int
    usec: int
    text: str


def parse_record(text: str) -> Optional[KernelMessage]:
    """Parses a record of /dev/kmsg (``prio,seq,usec,flags[,...];text``) without its continuation lines; else None.

    >>> parse_record("6,339,5140900,-;NET: Registered\\n SUBSYSTEM=net\\n").text
    'NET: Registered'
    """
    head, semicolon, body = text.partition(";")
    words = head.split(",")
    if not semicolon or len(words) < 3 or not all(word.isdigit() for word in words[:3]):
        return None
    return KernelMessage(int(words[0]), int(words[1]), int(words[2]), body.partition("\n")[0])


@dataclass(frozen=True)
class Alarm:
    """A line that means trouble: its kind (one of KINDS), and the process and pid it names, if any."""

    __slots__ = ("kind", "owner")
    kind: str
    owner: Dict[str, str]


def alarm_of(text: str) -> Optional[Alarm]:
    """The alarm of a kernel log line; None if it means no trouble.

    Sources: mm/oom_kill.c, arch/*/mm/fault.c, kernel/hung_task.c, kernel/watchdog*.c, kernel/rcu/tree_stall.h,
    arch/x86/kernel/cpu/mce (with therm_throt.c), drivers/acpi/apei/ghes.c, drivers/edac, drivers/pci/pcie/aer.c. Texts
    change with kernels: a new wording is missed, unless ``system.memory.oom_kills`` or the core folder shows it.

    >>> alarm_of("Out of memory: Killed process 77 (bgpd) total-vm:1kB, anon-rss:1kB")
    Alarm(kind='oom', owner={'pid': '77', 'process': 'bgpd'})
    >>> alarm_of("eth0: link up") is None
    True
    """
    if _ANY.search(text) is None:
        return None
    for kind, pattern in _PATTERNS:
        match = pattern.search(text)
        if match is not None:
            return Alarm(kind, {key: value for key, value in match.groupdict().items() if value})
    return None
