"""``prometheus`` as a load: the exporter of a traffic generator, mapped by the plan."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from soakwatch.sources.abc import SourceError
from soakwatch_testing.load_bench import LoadBench, last

MAPPING = [
    {"from": "gen_tx_packets_total", "metric": "load.tx.packets", "total": True},
    {"from": "gen_tx_packets_total", "metric": "load.port.tx.packets", "labels": {"port": "{port}"}},
    {
        "from": "gen_latency_us",
        "where": {"quantile": "0.99"},
        "metric": "load.latency",
        "labels": {"quantile": "p99"},
        "scale": 1e-6,
    },
    {"from": "gen_cpu_percent", "metric": "load.cpu.utilization", "scale": 0.01},
    {"from": "gen_running", "metric": "load.sending"},
]
PAGE = """# TYPE gen_tx_packets_total counter
gen_tx_packets_total{{port="0"}} {first}
gen_tx_packets_total{{port="1"}} 5
# TYPE gen_latency_us gauge
gen_latency_us{{quantile="0.5"}} 20
gen_latency_us{{quantile="0.99"}} 350
gen_cpu_percent {cpu}
gen_running 1
"""


class Exporter(ThreadingHTTPServer):
    """A page on loopback."""

    daemon_threads = True
    page = ""
    status = 200

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_address[1]}/metrics"


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    """The exporter of a generator."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert isinstance(self.server, Exporter)
            body = self.server.page.encode()
            self.send_response(self.server.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with Exporter(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_generator_is_mapped_to_the_load(exporter: Exporter) -> None:
    """The sum of the ports, the ports, a percentile in seconds, a share of percent, and that it sends."""
    exporter.page = PAGE.format(first=2**40, cpu=80)
    with LoadBench("prometheus", {"url": exporter.url, "metrics": MAPPING}) as bench:
        latest = last(bench.poll(1))
        assert latest == {
            "load.tx.packets": 2**40 + 5,
            "load.port.tx.packets{port=0}": 2**40,
            "load.port.tx.packets{port=1}": 5,
            "load.latency{quantile=p99}": pytest.approx(350e-6),
            "load.cpu.utilization": pytest.approx(0.8),
            "load.sending": 1,
        }
        exporter.page = PAGE.format(first=3, cpu=180)
        answer = bench.poll(2)
        assert last(answer)["load.tx.packets"] == 8  # it began anew: stored as it is
        assert [fault.metric for fault in answer.faults] == ["load.cpu.utilization"]
        exporter.status = 503
        with pytest.raises(SourceError, match="answers with status 503"):
            bench.poll(3)
