"""A real sshd on loopback with its own configuration, host key, user key and known_hosts."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from soakwatch_testing.ports import free_port

SSHD = "/usr/sbin/sshd"
_MAX_START_S = 15.0


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "", *more: str) -> Path:
    """A key pair; the public key has the suffix ``.pub``."""
    command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "test", "-f", str(path), *more]
    subprocess.run(command, check=True, capture_output=True)
    return path


def fingerprint_of(path: Path) -> str:
    """``SHA256:...`` of a key file, as ssh-keygen prints it."""
    printed = subprocess.run(["ssh-keygen", "-lf", str(path)], check=True, capture_output=True, text=True)
    return printed.stdout.split()[1]


@dataclass
class Sshd:
    """One server. ``options`` are lines of its configuration."""

    folder: Path
    port: int
    options: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def user_key(self) -> Path:
        """The private key of the account that runs it."""
        return self.folder / "user"

    @property
    def host_key(self) -> Path:
        """Its private host key."""
        return self.folder / "host"

    @property
    def known_hosts(self) -> Path:
        """The file that makes clients trust its host key."""
        return self.folder / "known_hosts"

    @property
    def keys(self) -> dict[str, object]:
        """The keys of a source that logs in there."""
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "user": getpass.getuser(),
            "key": str(self.user_key),
            "known_hosts": str(self.known_hosts),
        }

    def trust(self) -> None:
        """Write the host's key to known_hosts."""
        public = self.host_key.with_suffix(".pub").read_text()
        self.known_hosts.write_text(f"# the device\n[127.0.0.1]:{self.port} {public}")

    def start(self) -> None:
        """Start it and wait until it listens. Raises AssertionError with its output if it does not."""
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd does not start without it
        lines = {
            "Port": str(self.port),
            "ListenAddress": "127.0.0.1",
            "HostKey": str(self.host_key),
            "AuthorizedKeysFile": str(self.folder / "authorized_keys"),
            "PidFile": "none",
            "StrictModes": "no",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "PrintMotd": "no",
            "PermitRootLogin": "yes",
            "MaxStartups": "100",
            "SetEnv": f"HOME={self.folder / 'home'}",  # otherwise each command would run this machine's .bashrc
        } | dict(self.options)
        config, log = self.folder / "sshd_config", self.folder / "sshd.log"
        config.write_text("".join(f"{key} {value}\n" for key, value in lines.items()))
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [SSHD, "-D", "-e", "-f", str(config)], stdin=subprocess.DEVNULL, stderr=errors
            )
        deadline = time.monotonic() + _MAX_START_S
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.02)
        raise AssertionError(log.read_text())

    def stop(self) -> None:
        """Stop the listener; sessions continue."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(10)
            self.process = None

    def sessions(self) -> list[psutil.Process]:
        """The processes that serve connections, and everything started through them."""
        if self.process is None:
            return []
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill_sessions(self) -> None:
        """SIGKILL the processes that serve connections, but not what was started through them."""
        for session in self.sessions():
            with suppress(psutil.NoSuchProcess):
                if session.name().startswith("sshd"):
                    os.kill(session.pid, signal.SIGKILL)

    def close(self) -> None:
        """Stop it and everything started through it."""
        left = self.sessions()
        self.stop()
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()


@contextmanager
def run_sshd(folder: Path, **options: str) -> Iterator[Sshd]:
    """Make keys in a new folder, and run a server that trusts them. Raises AssertionError."""
    (folder / "home").mkdir(parents=True)
    server = Sshd(folder, free_port(), options)
    make_key(server.host_key)
    make_key(server.user_key)
    (folder / "authorized_keys").write_bytes(server.user_key.with_suffix(".pub").read_bytes())
    server.trust()
    try:
        server.start()
        yield server
    finally:
        server.close()
