"""A real net-snmpd on a free port of the loopback, with its own folders; killed and started again as a test likes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from soakwatch.sources.transport.snmp.snmp_access import Access
from soakwatch_testing.ports import free_port

AUTH, PRIV = "auth pass phrase", "priv pass phrase"
USERS = {
    "plain": ("", ""),
    "signed": ("SHA", ""),
    "old": ("MD5", "DES"),
    "common": ("SHA", "AES"),
    "sha224": ("SHA-224", "AES"),
    "sha256": ("SHA-256", "AES-192"),
    "sha384": ("SHA-384", "AES"),
    "strong": ("SHA-512", "AES-256"),
    "longer": ("SHA", "AES-256"),
    "cisco": ("SHA", "AES-256-C"),
}
"""Users of the agent and their protocols; all have the same pass phrases."""
_SPELLED = {"AES-192": "AES192", "AES-256": "AES256", "AES-256-C": "AES256C"}


@dataclass
class Snmpd:
    """One agent; ``start`` it, and ``kill`` it at the end."""

    folder: Path
    port: int = 0
    persistent: bool = True
    lines: Sequence[str] = ()
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self, *, settled: bool = True) -> None:
        """Start it and wait until it answers. Without ``persistent`` it has a new engine ID and boots = 1."""
        self.port = self.port or free_port()
        conf, state = self.folder / "conf", self.folder / "state"
        conf.mkdir(parents=True, exist_ok=True)
        state.mkdir(exist_ok=True)
        users = []
        for name, (auth, priv) in USERS.items():
            keys = f' {auth} "{AUTH}"' if auth else ""
            keys += f' {_SPELLED.get(priv, priv)} "{PRIV}"' if priv else ""
            level = "priv" if priv else "auth" if auth else "noauth"
            users += [f"createUser {name}{keys}", f"rouser {name} {level}"]
        own = ["rocommunity public 127.0.0.1", "rocommunity6 public ::1", "sysName soakbox"]
        (conf / "snmpd.conf").write_text("\n".join([*own, *users, *self.lines]) + "\n")
        environment = {**os.environ, "SNMPCONFPATH": f"{conf}:{state}" if self.persistent else str(conf)}
        if self.persistent:
            environment["SNMP_PERSISTENT_DIR"] = str(state)
        else:
            environment["SNMP_PERSISTENT_DIR"] = str(self.folder / f"state-{time.monotonic_ns()}")
        self.process = subprocess.Popen(
            [
                "snmpd",
                "-f",
                "-Lf",
                str(self.folder / "log"),
                "-I",
                "-smux",
                "-m",
                "",
                f"udp:127.0.0.1:{self.port}",
                f"udp6:[::1]:{self.port}",
            ],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if settled:
            self.wait()

    def wait(self) -> None:
        """Until it answers, at most 20 s."""
        until = time.monotonic() + 120
        while self.get("1.3.6.1.2.1.1.3.0") is None:
            if time.monotonic() > until or self.process is None or self.process.poll() is not None:
                raise AssertionError(f"snmpd does not answer: {(self.folder / 'log').read_text()[-500:]}")
            time.sleep(0.05)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End it by a signal."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait()
            self.process = None

    def get(self, oid: str) -> str | None:
        """What net-snmp's own client reads."""
        done = subprocess.run(
            ["snmpget", "-v2c", "-c", "public", "-t", "0.3", "-r", "0", "-OnqetU", "-m", "", self.host_and_port, oid],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.partition(" ")[2].strip() if done.returncode == 0 else None

    @property
    def host_and_port(self) -> str:
        """Address and port."""
        return f"127.0.0.1:{self.port}"

    def access(self, version: str = "2c", user: str = "common", address: str = "127.0.0.1") -> Access:
        """How to ask it."""
        if version != "3":
            return Access(address, self.port, version, community="public")
        auth, priv = USERS[user]
        return Access(
            address,
            self.port,
            "3",
            user=user,
            auth=AUTH if auth else "",
            auth_protocol=auth or "SHA",
            priv=PRIV if priv else "",
            priv_protocol=priv or "AES",
        )
