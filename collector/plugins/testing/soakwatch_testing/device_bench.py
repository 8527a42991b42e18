"""A test bench without gear: a generator (TRex or Pktgen by their protocols) with a device behind it, on loopback.

``python -m soakwatch_testing.device_bench SHEET size=64 kind=L4`` makes a bench stand for that cell of a sheet
(``device_model.py``): where none runs on these ports it starts one in the background, else the one that runs takes the
cell. It answers

* as TRex or Pktgen on ``--generator-port``, to be driven or read by the sources ``trex`` and ``pktgen``;
* as node_exporter on ``--page``, for the CPU, memory and watts of the device, by the source ``prometheus``.

It ends by itself when nobody has asked it for ``--idle``. Words and the seed may come from the environment, see
``--help``.
"""

from __future__ import annotations

import argparse
import http.client
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from soakwatch.core.units import seconds
from soakwatch_testing.device_model import BadSheetError, DeviceModel, Sheet, read_sheet
from soakwatch_testing.pktgen_server import FakePort, PktgenServer, pktgen_server
from soakwatch_testing.trex_model import TrexModel
from soakwatch_testing.trex_server import TrexServer, trex_server

HOST = "127.0.0.1"
_START_S = 60.0
_STOP_S = 20.0


@dataclass
class Bench:
    """A generator and a device; time advances whenever either is queried."""

    sheet: Sheet
    device: DeviceModel
    trex: TrexModel = field(default_factory=TrexModel)
    pktgen: PktgenServer = field(default_factory=PktgenServer)
    lock: threading.RLock = field(default_factory=threading.RLock)
    asked_s: float = field(default_factory=time.monotonic)
    at_s: float = field(default_factory=time.monotonic)
    core_s: list[float] = field(default_factory=list)  # busy seconds of each core
    up_s: float = 0.0
    first_s: float | None = None  # of the questions to the generator, since the bench stands for its cell

    def asked(self) -> None:
        """The generator is asked now."""
        self.asked_s = time.monotonic()
        self.first_s = self.asked_s if self.first_s is None else self.first_s

    @property
    def connections(self) -> float:
        """Connections that are open now: none before the generator has opened them."""
        traits = self.device.traits
        since_s = 0.0 if self.first_s is None else time.monotonic() - self.first_s
        return traits.established if since_s >= traits.empty else 0.0

    def stand_for(self, words: Mapping[str, str], seed: str) -> None:
        """Switch to another cell: idle generator with its streams, idle device. Raises BadSheetError."""
        with self.lock:
            self.advance()
            self.device = DeviceModel(self.sheet, words, seed)
            self.core_s = [0.0] * max(1, round(self.device.traits.cores))
            self.up_s, self.first_s = 0.0, None
            self.load_streams()

    def load_streams(self) -> None:
        """Load the cell's streams on idle ports; with ASTF they send."""
        device, traits = self.device, self.device.traits
        reached = device.line_packets if traits.ceiling is None else min(device.line_packets, traits.ceiling)
        if self.sheet.generator == "pktgen":
            self.pktgen.ports = {0: FakePort(frame=round(traits.frame), line=reached)}
            return
        astf = self.sheet.generator == "astf"
        model = self.trex
        model.mode = "ASTF" if astf else "STL"
        model.api = (2, 3) if astf else (5, 1)
        model.frame, model.line_bps = round(traits.frame), device.line_bps
        model.excess = device.excess if traits.overshoots else lambda: 1.0
        for port in model.ports:
            port.pps, port.factor = self._astf_pps if astf else reached, 1.0
            port.state = "TX" if astf else "STREAMS"
            port.owner = port.handler = ""

    def advance(self) -> None:
        """Advance by the time that has passed."""
        now = time.monotonic()
        passed, self.at_s = now - self.at_s, now
        if self.sheet.generator == "astf" and self.device.traits.empty:
            for side in self.trex.ports:
                side.pps = self._astf_pps if self.connections else 0.0
        offered = self.offered
        lost = self.device.lost(offered) if self.sheet.generator != "astf" else 0.0
        self.up_s += passed
        for core, busy in enumerate(self.device.busy_cores(offered)):
            self.core_s[core] += passed * busy
        if self.sheet.generator == "pktgen":
            for port in self.pktgen.ports.values():
                port.loss = lost
            self.pktgen.advance(passed)
            return
        self.trex.loss = lost
        self.trex.advance(passed)
        if self.sheet.generator == "astf":
            opens = self.connections or not self.device.traits.empty
            self.trex.cps = self.device.connection_rate() if opens else 0.0
            clients = self.trex.stack["client"]
            clients["tcps_connects"] = clients.get("tcps_connects", 0) + round(self.trex.cps * passed)
            clients["m_active_flows"] = round(self.connections)

    @property
    def _astf_pps(self) -> float:
        return (self.device.traits.packets or 0.0) * self.device.factor / 2

    @property
    def offered(self) -> float:
        """Packets per second that reach the device now; with ASTF, those of its connections."""
        if self.sheet.generator == "pktgen":
            return sum(port.sends for port in self.pktgen.ports.values())
        return sum(port.sends for port in self.trex.ports)

    def page(self) -> str:
        """The page of the device's exporter."""
        with self.lock:
            self.advance()
            device, offered = self.device, self.offered
            lines = ["# TYPE node_cpu_seconds_total counter"]
            for core, busy in enumerate(self.core_s):
                lines.append(f'node_cpu_seconds_total{{cpu="{core}",mode="system"}} {busy:.6f}')
                lines.append(f'node_cpu_seconds_total{{cpu="{core}",mode="idle"}} {self.up_s - busy:.6f}')
            used = device.memory(self.connections)
            lines += [f"node_memory_MemTotal_bytes {4 * device.traits.memory + used:.0f}"]
            lines += [f"node_memory_MemAvailable_bytes {4 * device.traits.memory:.0f}"]
            watts = device.watts(offered)
            if watts is not None:
                lines.append(f'node_hwmon_power_average_watt{{chip="psu",sensor="power1"}} {watts:.3f}')
            if device.traits.established:
                lines.append(f"node_nf_conntrack_entries {self.connections:.0f}")
            return "\n".join(lines) + "\n"


@dataclass
class _AskedTrex(TrexServer):
    """A TRex that advances time at each request."""

    bench: Bench | None = None

    def reply(self, body: bytes) -> bytes | None:
        assert self.bench is not None
        with self.bench.lock:
            self.bench.asked()
            self.bench.advance()
            return super().reply(body)


@dataclass(slots=True)
class _AskedPktgen(PktgenServer):
    """A Pktgen that advances time at each request."""

    bench: Bench | None = None

    def answer(self, line: str) -> str:
        assert self.bench is not None
        with self.bench.lock:
            self.bench.asked()
            self.bench.advance()
            return PktgenServer.answer(self, line)


class _Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bench: ClassVar[Bench]
    about: ClassVar[str]
    ended: ClassVar[threading.Event]

    def do_GET(self) -> None:
        self.bench.asked_s = time.monotonic()
        self._send(200, self.bench.page() if self.path == "/metrics" else self.about)

    def do_POST(self) -> None:
        self.bench.asked_s = time.monotonic()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/end":
            self._send(200, "")
            self.ended.set()
            return
        asked = json.loads(body)
        try:
            self.bench.stand_for(asked["words"], asked["seed"])
        except BadSheetError as error:
            self._send(400, str(error))
        else:
            self._send(200, "")

    def _send(self, code: int, text: str) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's signature
        """Do not log."""


def serve(sheet: Sheet, device: DeviceModel, *, generator_port: int, page_port: int, about: str, idle_s: float) -> None:
    """Serve until no request came for ``idle_s``, or until a signal ends it. Raises OSError if a port is in use."""
    bench, ended = Bench(sheet, device), threading.Event()
    generator: AbstractContextManager[object]
    if sheet.generator == "pktgen":
        asked = _AskedPktgen(bench=bench)
        bench.pktgen, generator = asked, pktgen_server(asked, generator_port)
    else:
        generator = trex_server(_AskedTrex(bench.trex, bench=bench), period_s=0.05, port=generator_port)
    bench.core_s = [0.0] * max(1, round(device.traits.cores))
    bench.load_streams()
    handler = type("Page", (_Page,), {"bench": bench, "about": about, "ended": ended})
    with ExitStack() as stack:
        stack.enter_context(generator)
        server = stack.enter_context(http.server.ThreadingHTTPServer((HOST, page_port), handler))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
        stack.callback(server.shutdown)
        while not ended.wait(0.2):
            if time.monotonic() - bench.asked_s > idle_s:
                return


def _ask(port: int, method: str, path: str, body: object = None) -> tuple[int, str] | None:
    """The answer of a bench; None if nothing answers."""
    connection = http.client.HTTPConnection(HOST, port, timeout=10)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _started(command: Sequence[str], page_port: int, about: str) -> str | None:
    """Start a bench in the background; returns why it failed, or None."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            _, errors = process.communicate()
            return errors.decode(errors="replace").strip().splitlines()[-1] if errors else "it ended at once"
        if _ask(page_port, "GET", "/") == (200, about):
            return None
        time.sleep(0.05)
    process.kill()
    return f"it did not answer within {_START_S:g} s"


def _ended(page_port: int) -> None:
    """End the bench on this port and wait until the port is free."""
    deadline = time.monotonic() + _STOP_S
    while _ask(page_port, "POST", "/end") is not None and time.monotonic() < deadline:
        time.sleep(0.1)


def main(argv: list[str] | None = None) -> int:
    """Switch a bench to a cell; exit code 2 if the sheet or cell does not exist."""
    parser = argparse.ArgumentParser(
        prog="python -m soakwatch_testing.device_bench", description=main.__doc__, epilog=__doc__
    )
    parser.add_argument("sheet", type=Path, help="what the device can: a YAML file")
    parser.add_argument("words", nargs="*", metavar="NAME=VALUE", help="the cell, such as size=64; $NAME is filled in")
    parser.add_argument("--generator-port", type=int, default=4501, help="port of TRex or Pktgen (default: 4501)")
    parser.add_argument("--page", type=int, default=9100, help="port of the device's exporter (default: 9100)")
    parser.add_argument(
        "--bed", default="a", metavar="NAME", help="its last letter a: these ports; b: the next ones, ..."
    )
    parser.add_argument("--seed", default="", help="text that draws how good a run this is")
    parser.add_argument("--idle", default="60s", help="end when nobody has asked for so long (default: 60s)")
    parser.add_argument("--serve", action="store_true", help="stay in the foreground")
    parser.add_argument("--end", action="store_true", help="end the bench on this port, and nothing else")
    options = parser.parse_intermixed_args(argv)
    if not "a" <= options.bed[-1:] <= "z":
        parser.error(f"--bed {options.bed}: its last character is no letter from a to z")
    options.generator_port += ord(options.bed[-1]) - ord("a")
    options.page += ord(options.bed[-1]) - ord("a")
    if options.end:
        _ended(options.page)
        return 0
    pairs = [os.path.expandvars(word).partition("=") for word in options.words]
    words = {name: value for name, _, value in pairs}
    seed = os.path.expandvars(options.seed)
    about = json.dumps({"sheet": str(options.sheet.resolve()), "generator": options.generator_port})
    try:
        sheet = read_sheet(options.sheet)
        device = DeviceModel(sheet, words, seed)
        if options.serve:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
            serve(
                sheet,
                device,
                generator_port=options.generator_port,
                page_port=options.page,
                about=about,
                idle_s=seconds(options.idle),
            )
            return 0
    except (BadSheetError, OSError) as error:
        print(f"device_bench: {error}", file=sys.stderr)
        return 2
    there = _ask(options.page, "GET", "/")
    if there == (200, about) and _ask(options.page, "POST", "/cell", {"words": words, "seed": seed}) == (200, ""):
        return 0
    _ended(options.page)
    command = [sys.executable, "-m", "soakwatch_testing.device_bench", str(options.sheet.resolve())]
    command += [f"{name}={value}" for name, value in words.items()]
    command += ["--generator-port", str(options.generator_port), "--page", str(options.page)]
    command += ["--seed", seed, "--idle", options.idle, "--serve"]
    why = _started(command, options.page, about)
    if why is not None:
        print(f"device_bench: the bench did not start: {why}", file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
