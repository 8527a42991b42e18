"""CPU time and memory of `soakwatch import --prometheus`, judging and report included; prints a table, asserts nothing.

    python tests/bench/import_prometheus.py
    python tests/bench/import_prometheus.py --python OLD/bin/python --python NEW/bin/python --hours 12

A server of this process answers as Prometheus does, with a node_exporter of 16 CPUs, 40 interfaces and 8 file systems
that was scraped each 15 s; its CPU time is not counted. Each ``python``, which may be the one of another checkout,
imports the same, in turn.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench.importing import Cost, measured

BEGIN_S, APART_S = 1_790_000_000, 15
MODES = ("user", "system", "idle", "iowait", "irq", "softirq", "steal", "nice")
PORT = ("receive_bytes", "transmit_bytes", "receive_drop", "receive_errs", "receive_packets")


@dataclass(frozen=True, slots=True)
class Answers:
    """The times of all scrapes, and each series as text: its labels, and its samples."""

    time_s: NDArray[np.float64]
    series: list[tuple[str, list[str]]]

    def answer(self, query: str, end_s: float) -> str:
        """What Prometheus answers to a query at a time."""
        if query == "time()":
            return f'{{"resultType":"scalar","result":[{self.time_s[-1]},"{self.time_s[-1]}"]}}'
        window = re.search(r"\[(\d+)ms\]$", query)
        if window is None:
            return "{}"
        low, high = np.searchsorted(self.time_s, [end_s - int(window[1]) / 1000, end_s], side="right").tolist()
        rows = (f'{{"metric":{labels},"values":[{",".join(texts[low:high])}]}}' for labels, texts in self.series)
        return f'{{"resultType":"matrix","result":[{",".join(rows) if low < high else ""}]}}'


def drawn(pages: int) -> Iterator[tuple[str, dict[str, str], NDArray[np.float64]]]:
    """Name, labels and values of each series of the exporter."""
    rng = np.random.default_rng(1)
    for cpu in range(16):
        shares = rng.dirichlet(np.ones(len(MODES)), pages) * APART_S
        for index, mode in enumerate(MODES):
            yield "node_cpu_seconds_total", {"cpu": str(cpu), "mode": mode}, shares[:, index].cumsum().round(2)
    for name, base in (("MemTotal", 64e9), ("MemAvailable", 32e9), ("SwapTotal", 8e9), ("SwapFree", 8e9)):
        yield f"node_memory_{name}_bytes", {}, sizes(rng, pages, base, moves=name == "MemAvailable")
    for port in range(40):
        for name in PORT:
            grows = rng.poisson(0.001 if name.endswith(("drop", "errs")) else 1e5, pages)
            yield f"node_network_{name}_total", {"device": f"eth{port}"}, grows.cumsum().astype(np.float64)
    for disk in range(8):
        for name, base in (("size", 90e9), ("avail", 40e9), ("free", 45e9)):
            labels = {"mountpoint": f"/mnt{disk}", "device": f"sd{disk}", "fstype": "ext4"}
            yield f"node_filesystem_{name}_bytes", labels, sizes(rng, pages, base, moves=name != "size")


def sizes(rng: np.random.Generator, pages: int, base: float, *, moves: bool) -> NDArray[np.float64]:
    """Bytes of memory or of a disk."""
    return np.asarray(base + 4096.0 * rng.integers(0, 9 if moves else 1, pages), dtype=np.float64)


def answers(hours: float) -> Answers:
    """All that the server has to answer."""
    time_s = np.asarray(BEGIN_S + 0.123 + APART_S * np.arange(round(hours * 3600 / APART_S)), dtype=np.float64)
    series = []
    for name, labels, value in drawn(time_s.size):
        named = {"__name__": name, "job": "node", "instance": "fw1:9100", **labels}
        texts = [f'[{at:.3f},"{one:.12g}"]' for at, one in zip(time_s.tolist(), value.tolist(), strict=True)]
        series.append((json.dumps(named), texts))
    return Answers(time_s, series)


def serve(content: Answers) -> ThreadingHTTPServer:
    """A server on loopback, in a thread of this process."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Nothing."""

        def do_POST(self) -> None:
            asked = parse_qs(self._body().decode())
            self._send(content.answer(asked.get("query", [""])[0], float(asked.get("time", ["0"])[0])))

        def do_GET(self) -> None:
            self._body()
            self._send("{}")

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers.get("content-length") or 0))

        def _send(self, data: str) -> None:
            body = f'{{"status":"success","data":{data}}}'.encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=12.0, help="of what Prometheus has")
    parser.add_argument("--rounds", type=int, default=3, help="how often it is imported")
    parser.add_argument("--python", action="append", help="import with this one; may be repeated")
    options = parser.parse_args()
    pythons: list[str] = options.python or [sys.executable]
    content = answers(options.hours)
    count = content.time_s.size * len(content.series)
    server = serve(content)
    begin, end = (datetime.fromtimestamp(at, UTC).isoformat() for at in (BEGIN_S, BEGIN_S + options.hours * 3600))
    url = f"http://127.0.0.1:{server.server_address[1]}"
    asked = ["--prometheus", url, "--from", begin, "--to", end, "--query", '{job="node"}', "--name", "bench"]
    costs: dict[str, list[Cost]] = {python: [] for python in pythons}
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as work:
        for number in range(options.rounds):
            for place, python in enumerate(pythons):
                runs = str(Path(work) / f"{number}-{place}")
                costs[python].append(
                    measured([str(Path(python).with_name("soakwatch")), "import", *asked, "--runs", runs])
                )
    server.shutdown()
    print("| | scraped samples | CPU, s (worst) | µs a sample | most memory |\n|---|--:|--:|--:|--:|")
    for python, some in costs.items():
        cpu_s = [cost.cpu_s for cost in some]
        middle, peak = statistics.median(cpu_s), max(cost.peak_bytes for cost in some) / 1e6
        label = "soakwatch import" if len(pythons) == 1 else python
        print(f"| {label} | {count:,} | {middle:.2f} ({max(cpu_s):.2f}) | {middle / count * 1e6:.2f} | {peak:.0f} MB |")


if __name__ == "__main__":
    main()
