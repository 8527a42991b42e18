"""The lab's life cycle: prerequisites, start, state, and removal whatever happened before."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from swlab import configs, topology
from swlab.places import GENERATOR, LOCK, MONITOR, ROUTERS, SINK, SPACES, STATE, Router
from swlab.trouble import LabError, call, wait_for

_NEEDED = {
    "iproute2": "/usr/sbin/ip /usr/bin/ip /bin/ip",
    "frr": "/usr/lib/frr/bgpd",
    "frr-snmp": "/usr/lib/*/frr/modules/bgpd_snmp.so",
    "keepalived": "/usr/sbin/keepalived",
    "snmpd": "/usr/sbin/snmpd",
    "openssh-server": "/usr/sbin/sshd",
    "openssh-client": "/usr/bin/ssh-keygen",
    "iperf3": "/usr/bin/iperf3",
    "util-linux": "/usr/bin/nsenter",
    "procps": "/usr/sbin/sysctl /sbin/sysctl",
}
"""Debian packages, each with a file that it installs."""


def missing() -> tuple[str, ...]:
    """Packages that are not installed."""
    return tuple(name for name, files in _NEEDED.items() if not any(_there(file) for file in files.split()))


def install() -> None:
    """Install what is missing by apt, without starting any daemon on this machine. Raises LabError."""
    wanted = missing()
    if not wanted:
        return
    if os.geteuid() != 0:
        raise LabError(f"missing: {' '.join(wanted)} - run `lab install` as root, for instance with sudo")
    if shutil.which("apt-get") is None:
        raise LabError(f"missing: {' '.join(wanted)} - this is no Debian system; install them by its own means")
    words = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *wanted]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for attempt in (words, ["apt-get", "update", "-qq"], words):
        done = subprocess.run(attempt, env=environment, capture_output=True, text=True, check=False)
        if done.returncode == 0 and attempt is words:
            return
    raise LabError(f"apt-get could not install {' '.join(wanted)}: {' '.join(done.stderr.split())[:300]}")


def check_ground() -> None:
    """Raise LabError if the lab cannot run here: no root, not Linux, something missing."""
    if sys.platform != "linux":
        raise LabError("the lab is made of Linux's network namespaces: run it on Linux")
    if os.geteuid() != 0:
        raise LabError("the lab needs root for its network namespaces: run it as root, for instance with sudo")
    if wanted := missing():
        raise LabError(f"missing: {' '.join(wanted)} - `deploy/lab/lab install` installs them")


@contextmanager
def held(patience_s: float = 600.0) -> Iterator[None]:
    """Lock the lab against other commands. Raises LabError."""
    with LOCK.open("w") as file:
        deadline = time.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise LabError("the lab is in use by another command: wait for its end") from None
                time.sleep(0.2)
        yield


def up(*, forwards: bool = True) -> None:
    """Make the lab anew and wait until it forwards, or with ``forwards=False`` until its routers can be polled. Raises
    LabError, and then leaves nothing behind."""
    check_ground()
    down()
    try:
        _keys()
        topology.build()
        for each in ROUTERS:
            configs.write(each, (STATE / "community").read_text())
            _start(each)
        _background("sink", "ip", "netns", "exec", SINK, sys.executable, "-m", "swlab.probe", "echo")
        wait_for(lambda: all((each.folder / "ready").exists() for each in ROUTERS), "the start of both routers", 60)
        if forwards:
            wait_for(lambda: settled() == "", "a lab that forwards, with VRRP, BGP and SSH", 180)
        else:
            wait_for(lambda: reachable() == "", "a lab whose routers let the monitor log in", 60)
    except BaseException:
        if os.environ.get("SWLAB_KEEP") is None:
            down()
        raise


def reachable() -> str:
    """Why the routers cannot be polled; "" if they can."""
    if len(topology.existing()) < len(SPACES) or any(pid_of(each) is None for each in ROUTERS):
        return "it is not up"
    for each in ROUTERS:
        if not _says_yes(MONITOR, "bash", "-c", f"echo >/dev/tcp/{each.management}/22"):
            return f"{each.name} does not let the monitor log in"
    return ""


def settled() -> str:
    """What is not as it should be; "" if all is."""
    if trouble := reachable():
        return trouble
    if sum(is_master(each) for each in ROUTERS) != 1:
        return "VRRP has not one master"
    for each in ROUTERS:
        if not established(each):
            return f"BGP of {each.name} has no session"
    if not _says_yes(GENERATOR, sys.executable, "-m", "swlab.probe", "try"):
        return "what the generator sends does not come back"
    return ""


def down() -> None:
    """Kill every process in the lab's namespaces, remove these and the files; a missing lab is no error."""
    for name in [*(each.name for each in ROUTERS), "sink"]:
        _end(_kept(name))
    deadline = time.monotonic() + 10
    while inhabitants := [pid for space in topology.existing() for pid in _inhabitants(space)]:
        if time.monotonic() > deadline:
            raise LabError(f"processes {inhabitants} of the lab do not end: look at what they wait for")
        for pid in inhabitants:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
    topology.remove()
    shutil.rmtree(STATE, ignore_errors=True)


def inside(node: Router, *words: str, patience_s: float = 20.0) -> str:
    """The output of a command in a router. Raises LabError."""
    return call(*entry_command(node), *words, patience_s=patience_s)


def start_inside(node: Router, *words: str) -> subprocess.Popen[bytes]:
    """Start a command in a router."""
    return subprocess.Popen([*entry_command(node), *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def is_master(node: Router) -> bool:
    """Whether the router has the virtual addresses."""
    addresses = call("ip", "-n", node.space, "-o", "-4", "address", "show", "dev", "north")
    return "198.18.1.1/24" in addresses


def established(node: Router) -> bool:
    """Whether its BGP session is up for EVPN."""
    try:
        return '"state":"Established"' in inside(node, "vtysh", "-c", "show bgp l2vpn evpn summary json").replace(
            " ", ""
        )
    except LabError:
        return False


def master() -> Router:
    """The router that forwards now. Raises LabError unless there is exactly one."""
    masters = [each for each in ROUTERS if is_master(each)]
    if len(masters) != 1:
        raise LabError(f"{len(masters)} routers hold the virtual address: wait until VRRP has settled")
    return masters[0]


def master_or_none() -> Router | None:
    """The router that forwards now, if any."""
    return next((each for each in ROUTERS if is_master(each)), None)


def end_inside(node: Router, word: str) -> None:
    """Kill the processes of a router whose command line contains a word."""
    first = pid_of(node)
    space = None if first is None else Path(f"/proc/{first}/ns/pid").readlink()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "ns/pid").readlink() == space and word.encode() in (folder / "cmdline").read_bytes():
                os.kill(int(folder.name), signal.SIGKILL)
        except OSError:
            continue  # it ended meanwhile


def pid_of(node: Router) -> int | None:
    """PID of the router's first process on this machine; None if it does not run."""
    return _child(_kept(node.name))


def _keys() -> None:
    STATE.mkdir(mode=0o755, parents=True)
    (STATE / "home").mkdir()
    (STATE / "community").write_text(secrets.token_hex(8))
    (STATE / "community").chmod(0o600)
    for name in ("host", "key"):
        call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(STATE / name))
    shutil.copy(STATE / "key.pub", STATE / "authorized_keys")
    public = (STATE / "host.pub").read_text()
    (STATE / "known_hosts").write_text("".join(f"{each.management} {public}" for each in ROUTERS))


def _start(node: Router) -> None:
    spaces = ("unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child=KILL", "--mount-proc")
    _background(node.name, "ip", "netns", "exec", node.space, *spaces, sys.executable, "-m", "swlab.init", node.name)


def _background(name: str, *words: str) -> None:
    with (STATE / f"{name}.log").open("ab") as log:
        started = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=_environment(),
        )
    (STATE / f"{name}.pid").write_text(f"{started.pid} {_began(started.pid)}")


def _kept(name: str) -> int | None:
    """PID of a process that `up` started, if it still runs: PID and start time must match."""
    try:
        pid, began = (STATE / f"{name}.pid").read_text().split()
        return int(pid) if _began(int(pid)) == began else None
    except (OSError, ValueError):
        return None


def _began(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _child(pid: int | None) -> int | None:
    if pid is None:
        return None
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return None
    return int(children[0]) if children else None


def entry_command(node: Router) -> tuple[str, ...]:
    """The command prefix that runs a command in a router. Raises LabError."""
    pid = pid_of(node)
    if pid is None:
        raise LabError(f"the router {node.name} does not run: `deploy/lab/lab up` makes the lab")
    return ("nsenter", "-t", str(pid), "-m", "-u", "-i", "-n", "-p", "--")


def _says_yes(space: str, *words: str) -> bool:
    try:
        done = subprocess.run(
            ["ip", "netns", "exec", space, *words], capture_output=True, timeout=5, check=False, env=_environment()
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}


def _end(pid: int | None) -> None:
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _inhabitants(space: str) -> list[int]:
    return [int(word) for word in call("ip", "netns", "pids", space).split()]


def _there(pattern: str) -> bool:
    return any(Path("/").glob(pattern.lstrip("/")))
