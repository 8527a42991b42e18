"""A device of this machine's own parts: net-snmpd, sshd, an agent, and what sends traps and lines; all with secrets."""

from __future__ import annotations

import getpass
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.collector.sources.snmp.snmpd import AUTH, PRIV, Snmpd
from tests.needs import needs

from soakwatch_testing.agents import LocalAgent
from soakwatch_testing.ports import free_port
from soakwatch_testing.sshd import Sshd, run_sshd

COMMUNITY, PASSPHRASE = "c0mmunity-of-the-lab", "pass-phrase-of-the-key"
SECRETS = {
    "SOAK_COMMUNITY": COMMUNITY,
    "SOAK_AUTH": AUTH,
    "SOAK_PRIV": PRIV,
    "SOAK_PASSPHRASE": PASSPHRASE,
    "SOAK_WRONG": "wr0ng-secret-of-somebody",
    "SOAK_SHORT": "sh0rt",
}
"""Variables that plans and addresses of the tests refer to. Their texts may stand nowhere."""
_PROGRAMS = ("snmpd", "snmpget", "snmptrap", "logger", "ssh-keygen", "sshd")


@dataclass
class Device:
    """One device, reached by all ways; ``trap_port`` and ``log_port`` are where a collector may listen to it."""

    snmpd: Snmpd
    sshd: Sshd
    agent: LocalAgent
    key: Path
    trap_port: int
    log_port: int

    @property
    def login(self) -> dict[str, object]:
        """The keys of a source that logs in with a key that needs its passphrase."""
        return {**self.sshd.keys, "key": str(self.key), "passphrase": "env:SOAK_PASSPHRASE"}

    @property
    def snmp(self) -> dict[str, object]:
        """The keys of a source that asks with SNMPv3, authenticated and encrypted."""
        return {
            "host": "127.0.0.1",
            "port": self.snmpd.port,
            "version": "3",
            "user": "common",
            "auth": "env:SOAK_AUTH",
            "priv": "env:SOAK_PRIV",
        }

    def snmp_address(self, tail: str = "version=2c&community=env:SOAK_COMMUNITY", user: str = "") -> str:
        """The agent as one word."""
        return f"snmp://{user}127.0.0.1:{self.snmpd.port}?{tail}"

    def ssh_address(self) -> str:
        """The SSH server as one word."""
        folder = self.sshd.folder
        keys = f"key={folder / 'user'}&known_hosts={folder / 'known_hosts'}"
        return f"ssh://{getpass.getuser()}@127.0.0.1:{self.sshd.port}?{keys}"

    def trap(self, oid: str, *binds: str) -> None:
        """Sends a trap of v2c; ``binds`` are OID, type and value each."""
        where = f"127.0.0.1:{self.trap_port}"
        subprocess.run(["snmptrap", "-m", "", "-v2c", "-c", COMMUNITY, where, "", oid, *binds], check=True)

    def log(self, line: str, tag: str = "kernel") -> None:
        """Sends a line of syslog over UDP."""
        to = ["-n", "127.0.0.1", "-P", str(self.log_port)]
        subprocess.run(["logger", "--udp", *to, "-p", "kern.err", "-t", tag, line], check=True)


@contextmanager
def run_device(folder: Path) -> Iterator[Device]:
    """Starts all its parts; ends them."""
    with ExitStack() as stack:
        snmpd = Snmpd(folder / "snmpd", lines=[f"rocommunity {COMMUNITY} 127.0.0.1"])
        stack.callback(snmpd.kill)
        snmpd.start()
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd will not start without it
        sshd = stack.enter_context(run_sshd(folder / "sshd"))
        agent = LocalAgent(folder / "agent")
        stack.callback(agent.kill)
        agent.start()
        yield Device(snmpd, sshd, agent, _guarded_key(sshd), free_port(), free_port())


def _guarded_key(sshd: Sshd) -> Path:
    """A key with a passphrase that opens the server's account."""
    key = sshd.folder / "guarded"
    make = ["ssh-keygen", "-q", "-t", "ecdsa", "-m", "PKCS8", "-N", PASSPHRASE, "-f", str(key)]
    subprocess.run(make, check=True)
    with (sshd.folder / "authorized_keys").open("a") as file:
        file.write(key.with_suffix(".pub").read_text())
    return key


def needs_programs() -> None:
    """Skips where Debian's parts are not installed; fails in CI."""
    needs(*_PROGRAMS)


def spilled(folder: Path) -> list[str]:
    """The files below a folder in which a secret stands, with the name of its variable."""
    texts = {name: text.encode() for name, text in SECRETS.items() if name != "SOAK_SHORT"}
    leaks = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        leaks += [f"{name} in {path}" for name, text in texts.items() if text in data]
    return leaks
