"""The first process of a router: sets up mounts, starts the daemons and receives syslog; everything ends with it.

It has process, mount and UTS namespaces of its own, so each router has its own /run, /dev/log, process table and
/etc/frr. Only ``lab up`` runs it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from swlab.places import MONITOR_ADDRESS, STATE, SYSLOG_PORT, Router, router
from swlab.trouble import call

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_MAX_LINE_BYTES = 2048


def main(name: str) -> None:
    """Run until SIGTERM; reaps orphaned processes, as a first process must."""
    node = router(name)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    _mounts(node)
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as syslog,
    ):
        heard.bind("/dev/log")
        Path("/dev/log").chmod(0o666)
        heard.settimeout(0.2)
        syslog.setblocking(False)  # noqa: FBT003
        _daemons(node)
        (node.folder / "ready").write_text("")
        with (node.folder / "syslog").open("ab", buffering=0) as kept:
            while True:
                with contextlib.suppress(TimeoutError):
                    line = heard.recv(_MAX_LINE_BYTES)
                    kept.write(line.rstrip(b"\0\n") + b"\n")
                    # the path to the monitor may be cut: syslog over UDP is then lost
                    with contextlib.suppress(OSError):
                        syslog.sendto(_with_host(line, name), (MONITOR_ADDRESS, SYSLOG_PORT))
                with contextlib.suppress(ChildProcessError):
                    while os.waitpid(-1, os.WNOHANG)[0]:
                        pass


def _mounts(node: Router) -> None:
    socket.sethostname(node.name)
    # Keep the outer /run/swlab visible; the rest of /run is the router's own.
    call("mount", "--make-rprivate", "/")
    held = f"/tmp/{node.space}"  # noqa: S108 - a mount point in a private mount namespace
    Path(held).mkdir(exist_ok=True)
    call("mount", "--bind", str(STATE), held)
    call("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    STATE.mkdir()
    call("mount", "--move", held, str(STATE))
    Path(held).rmdir()
    call("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/var/tmp")  # noqa: S108 - in this mount namespace
    for folder in ("frr", "sshd", "agentx"):
        Path("/run", folder).mkdir(mode=0o755)
    call("chown", "frr:frr", "/run/frr", "/run/agentx")
    call("chown", "-R", "frr:frr", str(node.folder / "frr"))
    call("mount", "--bind", str(node.folder / "frr"), "/etc/frr")
    devices = Path("/run/dev")
    devices.mkdir()
    call("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(devices))
    for name in _DEVICES:
        was = Path("/dev", name).stat()
        os.mknod(devices / name, was.st_mode, was.st_rdev)
        (devices / name).chmod(0o666)
    for name in ("shm", "pts"):
        (devices / name).mkdir()
    call("mount", "-t", "devpts", "-o", "newinstance,ptmxmode=0666", "devpts", str(devices / "pts"))
    (devices / "ptmx").symlink_to("pts/ptmx")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        (devices / name).symlink_to(f"/proc/self/fd/{number}")
    (devices / "fd").symlink_to("/proc/self/fd")
    call("mount", "--move", str(devices), "/dev")


def _daemons(node: Router) -> None:
    """Start each in the background; the routing daemons through their own script, with watchfrr."""
    folder = node.folder
    with (folder / "daemons.log").open("ab") as log:
        for words in (
            ("snmpd", "-f", "-Lsd", "-C", "-c", str(folder / "snmpd.conf")),
            ("/usr/sbin/sshd", "-D", "-f", str(folder / "sshd_config")),
            ("keepalived", "--dont-fork", "--vrrp", "--log-detail", "--use-file", str(folder / "keepalived.conf")),
            ("/usr/lib/frr/frrinit.sh", "start"),
        ):
            subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _with_host(line: bytes, name: str) -> bytes:
    """A line of /dev/log for the network: with the host's name (RFC 3164, section 4.1.2)."""
    text = line.rstrip(b"\0\n")
    end = text.find(b">") + 1
    stamp = text[end : end + 16]
    if 0 < end <= 5 and len(stamp) == 16 and stamp[3:4] == b" " and stamp[15:16] == b" ":
        return text[: end + 16] + name.encode() + b" " + text[end + 16 :]
    return text


if __name__ == "__main__":
    main(sys.argv[1])
