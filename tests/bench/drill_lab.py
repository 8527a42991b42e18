"""A device and a collector in network namespaces of their own, with one cable between them that can be cut.

Nothing of this machine's own network is touched. Needs root, iproute2, iptables, snmpd and sshd.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

DEVICE, COLLECTOR = "198.18.0.2", "198.18.0.1"
COMMUNITY, AUTH, PRIV = "drill-community", "drill auth phrase", "drill priv phrase"
SOAKWATCH = Path(sys.executable).with_name("soakwatch")
_PATIENCE_S = 30.0


def _call(*words: str) -> None:
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{words[-3:]}: {done.stderr.strip() or done.stdout.strip()}")


@dataclass
class Lab:
    """The two namespaces, and the device's parts. Everything that is started is on the stack."""

    folder: Path
    stack: ExitStack
    name: str = field(default_factory=lambda: f"soakdrill{os.getpid()}")
    snmpd: subprocess.Popen[bytes] | None = None
    sshd: subprocess.Popen[bytes] | None = None
    _lives: int = 0

    @property
    def here(self) -> str:
        """The namespace of the collector."""
        return f"{self.name}m"

    @property
    def there(self) -> str:
        """The namespace of the device."""
        return f"{self.name}d"

    def within(self, namespace: str, words: Sequence[str | Path]) -> list[str]:
        """A command that runs in a namespace."""
        return ["ip", "netns", "exec", namespace, *map(str, words)]

    def open(self) -> None:
        """Namespaces, cable, servers, agent."""
        for namespace in (self.here, self.there):
            _call("ip", "netns", "add", namespace)
            self.stack.callback(_call, "ip", "netns", "del", namespace)
            _call("ip", "-n", namespace, "link", "set", "lo", "up")
        cable = ["link", "add", "cable0", "type", "veth", "peer", "name", "cable1", "netns", self.there]
        _call("ip", "-n", self.here, *cable)
        for namespace, address, end in ((self.here, COLLECTOR, "cable0"), (self.there, DEVICE, "cable1")):
            _call("ip", "-n", namespace, "address", "add", f"{address}/30", "dev", end)
            _call("ip", "-n", namespace, "link", "set", end, "up")
        for stop in (self.stop_snmpd, self.stop_sshd):
            self.stack.callback(stop)
        self.start_snmpd()
        self._keys()
        self.start_sshd()
        self._agent()

    # --- the cable -----------------------------------------------------------------------------------------------

    def cut(self) -> None:
        """Take the device's end of the cable down."""
        _call("ip", "-n", self.there, "link", "set", "cable1", "down")

    def mend(self) -> None:
        """Put it up again."""
        _call("ip", "-n", self.there, "link", "set", "cable1", "up")

    def drop(self, share: float) -> str:
        """Lose this share of the packets in each direction; the name of what does it."""
        netem = ["tc", "-n", "", "qdisc", "add", "dev", "", "root", "netem", "loss", f"{share:.0%}"]
        ends = ((self.here, "cable0"), (self.there, "cable1"))
        for namespace, end in ends:
            netem[2], netem[6] = namespace, end
            if subprocess.run(netem, check=False, capture_output=True).returncode:
                break
        else:
            return "netem"
        for namespace, end in ends:
            words = ["iptables", "-A", "INPUT", "-i", end, "-m", "statistic", "--mode", "random", "--probability"]
            _call(*self.within(namespace, [*words, str(share), "-j", "DROP"]))
        return "iptables"

    def drop_no_more(self) -> None:
        """All packets come through again."""
        for namespace, end in ((self.here, "cable0"), (self.there, "cable1")):
            subprocess.run(
                ["tc", "-n", namespace, "qdisc", "del", "dev", end, "root"], check=False, capture_output=True
            )
            _call(*self.within(namespace, ["iptables", "-F", "INPUT"]))

    # --- the device ----------------------------------------------------------------------------------------------

    def start_snmpd(self, *, new_engine: bool = False) -> None:
        """Start the SNMP agent; ``new_engine`` gives it another engine ID and boots = 1."""
        conf, state = self.folder / "snmpd", self.folder / f"snmpd-state{self._lives}"
        if new_engine or not state.exists():
            self._lives += 1
            state = self.folder / f"snmpd-state{self._lives}"
        for each in (conf, state):
            each.mkdir(exist_ok=True)
        (conf / "snmpd.conf").write_text(
            f'rocommunity {COMMUNITY}\ncreateUser drill SHA "{AUTH}" AES "{PRIV}"\nrouser drill priv\nsysName drill\n'
        )
        words: list[str | Path] = ["snmpd", "-f", "-Lf", self.folder / "snmpd.log", "-I", "-smux", "-m", ""]
        environment = {**os.environ, "SNMPCONFPATH": f"{conf}:{state}", "SNMP_PERSISTENT_DIR": str(state)}
        self.snmpd = subprocess.Popen(self.within(self.there, [*words, f"udp:{DEVICE}:161"]), env=environment)
        self._wait_for("-Hlun", 161)

    def stop_snmpd(self) -> None:
        """SIGKILL."""
        if self.snmpd is not None:
            self.snmpd.kill()
            self.snmpd.wait()
            self.snmpd = None

    def _keys(self) -> None:
        ssh = self.folder / "ssh"
        (ssh / "home").mkdir(parents=True)
        for name in ("host", "user"):
            _call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(ssh / name))
        (ssh / "known_hosts").write_text(f"{DEVICE} {(ssh / 'host.pub').read_text()}")
        (ssh / "config").write_text(
            f"Port 22\nListenAddress {DEVICE}\nHostKey {ssh / 'host'}\nPidFile none\nStrictModes no\nUsePAM no\n"
            f"AuthorizedKeysFile {ssh / 'user.pub'}\nPasswordAuthentication no\nPermitRootLogin yes\n"
            f"SetEnv HOME={ssh / 'home'}\n"
        )

    @property
    def login(self) -> dict[str, str]:
        """The keys of a source that logs in."""
        ssh = self.folder / "ssh"
        return {"host": DEVICE, "user": "root", "key": str(ssh / "user"), "known_hosts": str(ssh / "known_hosts")}

    def start_sshd(self) -> None:
        """Start the SSH server and wait until it listens."""
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        command: list[str | Path] = ["/usr/sbin/sshd", "-D", "-f", self.folder / "ssh" / "config"]
        self.sshd = subprocess.Popen(self.within(self.there, command), stderr=subprocess.DEVNULL)
        self._wait_for("-Hltn", 22)

    def _wait_for(self, kind: str, port: int) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        listening = self.within(self.there, ["ss", kind, f"sport = :{port}"])
        while not subprocess.run(listening, check=True, capture_output=True).stdout.strip():
            if time.monotonic() > deadline:
                raise RuntimeError(f"nothing listens on port {port} of the device")
            time.sleep(0.02)

    def kill_sessions(self) -> None:
        """SIGKILL for the processes that serve connections."""
        for session in psutil.Process(self.sshd.pid).children(recursive=True) if self.sshd else []:
            with suppress(psutil.NoSuchProcess):
                if session.name().startswith("sshd"):
                    session.kill()

    def stop_sshd(self) -> None:
        """SIGKILL for the server and its sessions."""
        if self.sshd is not None:
            self.kill_sessions()
            self.sshd.kill()
            self.sshd.wait()
            self.sshd = None

    def _agent(self) -> None:
        words: list[str | Path] = [f"root@{DEVICE}", "--key", self.folder / "ssh" / "user"]
        words += ["--known-hosts", self.folder / "ssh" / "known_hosts", "--dir", self.agent_folder]
        self.stack.callback(self._no_agents)
        _call(*self.within(self.here, [SOAKWATCH, "agent", "install", *words]))
        remove = self.within(self.here, [SOAKWATCH, "agent", "remove", *words])
        self.stack.callback(lambda: subprocess.run(remove, check=False, capture_output=True))

    @property
    def agent_folder(self) -> str:
        """The agent's folder on the device."""
        return str(self.folder / "agent")

    def agents(self, *, keepers: bool = False) -> list[psutil.Process]:
        """The agent's process, with ``keepers`` that which starts it anew as well."""
        agents_found = []
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if self.agent_folder in words and "run" in words and (keepers or "--keep" not in words):
                agents_found.append(process)
        return agents_found

    def _no_agents(self) -> None:
        for process in self.agents(keepers=True):
            with suppress(psutil.NoSuchProcess):
                process.kill()
