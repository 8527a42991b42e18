"""Packet processing (DPDK): each port's lost and failed packets from the telemetry socket of each application."""

from __future__ import annotations

import shlex

from soakwatch.sources.transport.ssh.ask import Ask, parsed, rows, whole
from soakwatch_agent.context import ProbeAnswer
from soakwatch_agent.procfs import clean
from soakwatch_model.sample import object_text

_LOSS = (("imissed", "rx_missed"), ("ierrors", "rx_errors"), ("oerrors", "tx_errors"), ("rx_nombuf", "rx_no_buffer"))
# The telemetry socket speaks SEQPACKET, which no shell and few netcats do: a Python of the device has to.
_ASK = """\
import glob, json, socket
def ask(s, what):
    s.send(what.encode())
    return json.loads(s.recv(65536))
for path in glob.glob("/var/run/dpdk/*/dpdk_telemetry.v2")[:8]:
    try:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(1)
        s.connect(path)
        s.recv(65536)
        for port in ask(s, "/ethdev/list")["/ethdev/list"][:32]:
            stats = ask(s, "/ethdev/stats,%d" % port)["/ethdev/stats"]
            print(json.dumps({"app": path.split("/")[-2], "port": port, "stats": stats}))
        s.close()
    except Exception:
        pass
"""


class Dpdk(Ask):
    """One line of JSON a port. Reading the socket needs the account of the application, or root."""

    metrics = ("system.forwarding.dropped",)
    every_s = 10.0
    present = "command -v python3 && ls /var/run/dpdk/*/dpdk_telemetry.v2"

    def command(self) -> str:
        """One Python of the device, without its site packages."""
        return f"python3 -I -S -c {shlex.quote(_ASK)}"

    def read(self, text: str, notes: ProbeAnswer) -> None:
        """Notes what each port lost."""
        for row in rows([parsed(line) for line in text.splitlines()]):
            stats = row.get("stats")
            for key, reason in _LOSS if isinstance(stats, dict) else ():
                value = whole(stats.get(key)) if isinstance(stats, dict) else None
                if value is not None:
                    port = clean(f"dpdk {row.get('app')} port {row.get('port')}")
                    notes.sample("system.forwarding.dropped", object_text(place=port, reason=reason), value)
