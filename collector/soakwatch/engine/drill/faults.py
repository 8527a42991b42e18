"""The faults of a live drill as shell scripts: each first arranges its own end on the device.

A fault that must be undone first starts a dead-man switch in a session of its own (``sleep``, then the undo), so it
ends in time whatever happens to the drill, its connection or the monitor. A fault that is a process ends by
``timeout``. Each script prints ``holds PID`` for every process to kill to end the fault early.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Final

from soakwatch.core.units import show_bytes, show_seconds
from soakwatch.plan.drill_plan import DrillPlan, VictimPlan

_MIB: Final = 1 << 20
_COMM: Final = 15  # characters of a process name that the kernel keeps
_HOLDS: Final = re.compile(rb"^holds (\d{2,10})$", re.MULTILINE)
_NEEDS = "for tool in {tools}; do command -v $tool >/dev/null || {{ echo no $tool here; exit 9; }}; done"
_PATH = 'export PATH="$PATH:/usr/sbin:/sbin"'  # for ip and tc, which only root may have on the path
_QUIET = "</dev/null >/dev/null 2>&1"
CRASH = "soakwatchdrill[4242]: segfault at 0 ip 0000000000401136 sp 00007ffd5f0 error 4 in soakwatchdrill[401000+1000]"
"""The logged line: as the kernel writes it, but of a process that does not exist."""


@dataclass(frozen=True, slots=True)
class LiveFault:
    """One fault on one target. ``words`` describe it; ``inject`` and ``undo`` are scripts for ``sh``; ``lasts_s`` is
    its duration, 0 if it is momentary."""

    kind: str
    target: str
    object: str
    words: str
    inject: str
    undo: str
    lasts_s: float

    @property
    def name(self) -> str:
        """Its name in tables."""
        return f"{self.kind} {self.object}".strip()


def held_by(output: bytes) -> tuple[int, ...]:
    """The PIDs that hold a fault, from the output of its script.

    >>> held_by(b"holds 4711\\nsaid\\nholds 4712\\n")
    (4711, 4712)
    """
    return tuple(int(pid) for pid in _HOLDS.findall(output))


def end_script(fault: LiveFault, held: tuple[int, ...]) -> str:
    """The script that ends a fault now: undoes it, then kills its dead-man switch."""
    kills = [f"kill -TERM -{pid} 2>/dev/null" for pid in held]
    return "; ".join([_PATH, *([fault.undo] if fault.undo else []), *kills, "true"])


def faults_of(target: str, drill: DrillPlan, lasts_s: float, token: str) -> tuple[LiveFault, ...]:
    """The faults that a target's key ``drill`` allows; ``token`` makes names on the device unique."""
    return tuple(fault for make in MAKERS.values() for fault in make(target, drill, lasts_s, token))


def _script(tools: str, *steps: str) -> str:
    return "\n".join((_PATH, _NEEDS.format(tools=tools), *steps))


def _apart(command: str) -> str:
    """Starts a command in its own session and waits until that exists: whoever runs the script may end
    its process group with it. ``$( )`` reads the PID until the writer closes its output."""
    begun = quote(f"echo $$; exec </dev/null >/dev/null 2>&1; {command}")
    return (
        f"man=$(setsid sh -c {begun} </dev/null 2>/dev/null &)\n"
        '[ -n "$man" ] || { echo no session of its own here; exit 9; }; echo holds $man'
    )


def _dead_man(lasts_s: float, undo: str) -> str:
    """Undoes a fault after ``lasts_s``, from a session that outlives the connection."""
    return _apart(f"sleep {lasts_s:g}; {undo}")


def _or_give_up(command: str) -> str:
    return f"{command} || {{ code=$?; kill -TERM -$man 2>/dev/null; exit $code; }}"


def _cpu(target: str, drill: DrillPlan, lasts_s: float, token: str) -> Iterator[LiveFault]:
    del token
    if drill.cpu:
        burn = _apart(f"exec timeout -k 1 {lasts_s:g} sh -c 'while :; do :; done'")
        script = _script("setsid timeout nproc", f"for core in $(seq $(nproc)); do\n{burn}\ndone")
        yield LiveFault("cpu", target, "", f"keep every core busy for {show_seconds(lasts_s)}", script, "", lasts_s)


def _leak(target: str, drill: DrillPlan, lasts_s: float, token: str) -> Iterator[LiveFault]:
    del token
    if drill.memory:
        pieces = math.ceil(drill.memory / _MIB)
        grow = (
            f"i=0; while [ $i -lt {pieces} ]; do head -c {_MIB} /dev/zero; i=$((i+1)); sleep {lasts_s / pieces:.4f};"
            f" done | tail -c {drill.memory + _MIB} >/dev/null"
        )
        script = _script("setsid timeout head tail", _apart(f"exec timeout -k 1 {lasts_s:g} sh -c {quote(grow)}"))
        words = (
            f"a process of its own (tail) leaks {show_bytes(drill.memory)} within {show_seconds(lasts_s)}, then ends"
        )
        yield LiveFault("leak", target, "", words, script, "", lasts_s)


def _kill(target: str, drill: DrillPlan, lasts_s: float, token: str) -> Iterator[LiveFault]:
    del token
    for victim in drill.processes:
        yield _killed(target, victim, lasts_s)


def _killed(target: str, victim: VictimPlan, lasts_s: float) -> LiveFault:
    name = quote(victim.name[:_COMM])
    living = "case \"$(sed 's/.*) //' /proc/$p/stat 2>/dev/null)\" in ''|Z*) ;; *) pid=$p; break;; esac"
    find = (
        f"pid=; for p in $(pgrep -x {name}); do {living}; done\n"
        f'[ "${{pid:-0}}" -gt 1 ] || {{ echo no process {name} here; exit 9; }}'
    )
    # In its own session: the start command may never return, and the dead-man may be killed then.
    later = f"{{ setsid sh -c {quote(victim.start or '')} {_QUIET} & }}"
    man = _dead_man(lasts_s, later) if victim.start else "man=0"
    hit = _or_give_up("kill -9 $pid") if victim.start else "kill -9 $pid"
    how = (
        f"started again after {show_seconds(lasts_s)} by: {victim.start}"
        if victim.start
        else "its supervisor starts it again"
    )
    return LiveFault(
        "kill",
        target,
        victim.name,
        f"kill -9 of the first process {victim.name} ({how})",
        _script("pgrep setsid", find, man, hit),
        _apart(victim.start) if victim.start else "",
        lasts_s if victim.start else 0.0,
    )


def _interfaces(target: str, drill: DrillPlan, lasts_s: float, token: str) -> Iterator[LiveFault]:
    del token
    for name in drill.interfaces:
        up, down = f"ip link set dev {name} up", f"ip link set dev {name} down"
        lose = f"tc qdisc add dev {name} root netem loss {100 * drill.loss:g}%"
        whole = f"tc qdisc del dev {name} root netem"
        is_up = f"ip link show dev {name} up | grep -q . || {{ echo {name} is not up; exit 9; }}"
        own = (
            'peer=${SSH_CONNECTION%% *}; [ -z "$peer" ] || ! ip route get "$peer" | grep -qw '
            f"{quote('dev ' + name)} || {{ echo {name} carries this connection; exit 9; }}"
        )
        for kind, words, make, undo in (
            ("link", f"take interface {name} down for {show_seconds(lasts_s)}", down, up),
            ("loss", f"lose {100 * drill.loss:g} % of what {name} sends for {show_seconds(lasts_s)}", lose, whole),
        ):
            guard = (is_up, own) if kind == "link" else (is_up,)
            tools = "setsid ip" if kind == "link" else "setsid ip tc"
            script = _script(tools, *guard, _dead_man(lasts_s, undo), _or_give_up(make))
            yield LiveFault(kind, target, name, words, script, undo, lasts_s)


def _filesystem(target: str, drill: DrillPlan, lasts_s: float, token: str) -> Iterator[LiveFault]:
    if drill.filesystem:
        folder = f"/tmp/soakwatch-drill-{token}"  # noqa: S108 - on the device; mkdir refuses one that is there
        undo = f"umount -l {folder} 2>/dev/null; rmdir {folder} 2>/dev/null"
        script = _script(
            "setsid mount umount dd",
            f"mkdir -m 700 {folder} || exit 9",
            _dead_man(lasts_s, undo),
            _or_give_up(f"mount -t tmpfs -o size={drill.filesystem},mode=700 tmpfs {folder}"),
            f"dd if=/dev/zero of={folder}/full bs={_MIB} {_QUIET}; true",
        )
        words = f"fill a tmpfs of its own of {show_bytes(drill.filesystem)} at {folder} for {show_seconds(lasts_s)}"
        yield LiveFault("filesystem", target, folder, words, script, undo, lasts_s)


def _log(target: str, drill: DrillPlan, lasts_s: float, token: str) -> Iterator[LiveFault]:
    del lasts_s, token
    if drill.log:
        host, _, port = drill.log.rpartition(":")
        to = f"--udp --server {quote(host.strip('[]'))} --port {port} --rfc3164 " if host else ""
        where = drill.log if host else "the host's log"
        script = _script("logger", f"logger {to}-p kern.err -t kernel {quote(CRASH)}")
        yield LiveFault("log", target, "", f"write a line on a segfault to {where}", script, "", 0.0)


MAKERS: Final[Mapping[str, Callable[[str, DrillPlan, float, str], Iterator[LiveFault]]]] = {
    "cpu": _cpu,
    "leak": _leak,
    "kill": _kill,
    "interfaces": _interfaces,
    "filesystem": _filesystem,
    "log": _log,
}
"""What makes the faults, in the order they are injected."""
LIVE_KINDS: Final = ("cpu", "leak", "kill", "link", "loss", "filesystem", "log")
