"""A real sshd on the loopback, with a configuration and keys of its own."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

_SERVER = "/usr/sbin/sshd"


@dataclass
class Sshd:
    """A server that runs; ``folder`` holds its keys, those of its one user, and known_hosts."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def keys(self) -> dict[str, object]:
        """The keys of a source that logs in there."""
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "user": getpass.getuser(),
            "key": str(self.folder / "user"),
            "known_hosts": str(self.folder / "known_hosts"),
        }

    def sessions(self) -> list[psutil.Process]:
        """The processes that serve connections."""
        return psutil.Process(self.process.pid).children()

    def kill_sessions(self) -> None:
        """SIGKILL for all of them; what they started is left alone."""
        for session in self.sessions():
            for each in [*session.children(recursive=True), session]:
                if each.name().startswith("sshd"):
                    with suppress(psutil.NoSuchProcess):
                        os.kill(each.pid, signal.SIGKILL)


@contextmanager
def run_sshd(folder: Path) -> Iterator[Sshd]:
    """Runs a server; ends it and all that was started over it. Raises AssertionError if it does not listen."""
    (folder / "home").mkdir(parents=True)  # of its own: a .bashrc of this machine would be run by each command
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "authorized_keys").write_text((folder / "user.pub").read_text())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder / 'host'}\nPidFile none\nStrictModes no\nUsePAM no\n"
        f"AuthorizedKeysFile {folder / 'authorized_keys'}\nPasswordAuthentication no\nPermitRootLogin yes\n"
        f"SetEnv HOME={folder / 'home'}\n"
    )
    process = subprocess.Popen([_SERVER, "-D", "-f", str(folder / "config")], stderr=subprocess.DEVNULL)
    try:
        _wait_until_it_listens(port)
        yield Sshd(folder, port, process)
    finally:
        left = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        process.wait(10)
        for each in left:
            with suppress(psutil.NoSuchProcess):
                each.kill()


def _wait_until_it_listens(port: int) -> None:
    deadline = time.monotonic() + 15
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        assert time.monotonic() < deadline, "sshd does not listen"
        time.sleep(0.02)
