"""``python -m tests.e2e.firewall_and_trex``: the gear of docs/overnight-firewall.md at its addresses, as doubles.

A FortiGate that answers SNMP and has its command line on SSH (198.18.0.1), a TRex server (198.18.0.9), and what takes
messages (127.0.0.1:8080), which writes each as a line to the file that it is given. In a network namespace of its own.
"""

from __future__ import annotations

import asyncio
import http.server
import sys
import threading
from pathlib import Path

from soakwatch_testing.cli_device import CliDevice, run_cli_device
from soakwatch_testing.snmp_cells import COUNTER64, GAUGE32, INTEGER, OCTETS, OID, TIMETICKS, Cell, Moving, name_of
from soakwatch_testing.snmp_responder import responder
from soakwatch_testing.trex_model import TrexModel
from soakwatch_testing.trex_server import TrexServer, trex_server

FIREWALL, GENERATOR, MAILBOX_PORT = "198.18.0.1", "198.18.0.9", 8080
COMMUNITY, PASSWORD = "c0mmunity-of-the-lab", "of the account"  # the double's
_OUTPUTS = Path(__file__).parents[1] / "collector" / "sources" / "network_cli" / "outputs" / "fortinet-fortigate"
_SHOWS = {
    "get system performance status": "get_system_performance_status",
    "diagnose sys top 1 99": "diagnose_sys_top",
    "diagnose sys session stat": "diagnose_sys_session_stat",
    "get system session status": "get_system_session_status",
    "diagnose debug crashlog read": "diagnose_debug_crashlog_read",
    "get system status": "get_system_status",
}
_SYSTEM, _IF, _IFX, _GATE = "1.3.6.1.2.1.1", "1.3.6.1.2.1.2.2.1", "1.3.6.1.2.1.31.1.1.1", "1.3.6.1.4.1.12356.101.4.1"


def _rows() -> dict[tuple[int, ...], Cell]:
    """What its agent holds: system, CPU and memory, and two ports that forward."""
    rows = {
        f"{_SYSTEM}.1.0": Cell(OCTETS, b"FGT_60F"),
        f"{_SYSTEM}.2.0": Cell(OID, name_of("1.3.6.1.4.1.12356.101.1.60")),
        f"{_SYSTEM}.3.0": Cell(TIMETICKS, Moving(104_784_000, 100, 32)),
        f"{_SYSTEM}.5.0": Cell(OCTETS, b"fgt1"),
        f"{_GATE}.3.0": Cell(GAUGE32, 6),
        f"{_GATE}.4.0": Cell(GAUGE32, 41),
        f"{_GATE}.5.0": Cell(GAUGE32, 1_983_180),
        f"{_GATE}.8.0": Cell(GAUGE32, 1234),
    }
    for number in (1, 2):
        rows |= {
            f"{_IF}.1.{number}": Cell(INTEGER, number),
            f"{_IF}.2.{number}": Cell(OCTETS, f"port{number}".encode()),
            f"{_IF}.3.{number}": Cell(INTEGER, 6),
            f"{_IF}.7.{number}": Cell(INTEGER, 1),
            f"{_IF}.8.{number}": Cell(INTEGER, 1),
            f"{_IFX}.1.{number}": Cell(OCTETS, f"port{number}".encode()),
            f"{_IFX}.6.{number}": Cell(COUNTER64, Moving(10**9, 125_000_000, 64)),
            f"{_IFX}.7.{number}": Cell(COUNTER64, Moving(10**6, 150_000, 64)),
            f"{_IFX}.10.{number}": Cell(COUNTER64, Moving(10**9, 125_000_000, 64)),
            f"{_IFX}.11.{number}": Cell(COUNTER64, Moving(10**6, 150_000, 64)),
            f"{_IFX}.15.{number}": Cell(GAUGE32, 10_000),
        }
    return {name_of(oid): cell for oid, cell in rows.items()}


def _mailbox(file: Path) -> http.server.HTTPServer:
    class Box(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            with open(file, "ab") as out:
                out.write(body + b"\n")
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    return http.server.ThreadingHTTPServer(("127.0.0.1", MAILBOX_PORT), Box)


async def main(folder: Path) -> None:
    """Serve until the end; ``folder`` gets known_hosts, the messages, and the file ``ready``."""
    device = CliDevice(prompt="fgt1 # ", refusal="command parse error\nCommand fail. Return code -61", version="Forti")
    device.login_password = PASSWORD
    device.answers = {shown: (_OUTPUTS / f"{file}.txt").read_text() for shown, file in _SHOWS.items()}
    threading.Thread(target=_mailbox(folder / "messages").serve_forever, daemon=True).start()
    trex = TrexServer(TrexModel(), speed=1.0)
    with (
        responder(_rows(), host=FIREWALL, port=161, community=COMMUNITY),
        trex_server(trex, host=GENERATOR, port=4501),
    ):
        async with run_cli_device(device, folder, host=FIREWALL, port=22):
            (folder / "ready").touch()
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
