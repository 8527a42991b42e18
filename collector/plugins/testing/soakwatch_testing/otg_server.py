"""An Open Traffic Generator's REST interface for tests: real HTTP or HTTPS, with the model's JSON.

It has ports and flows, counts while it sends (``step`` frames a flow per poll), accepts ``/control/state`` and changes
of rates, and refuses what the model does not know. ``quoted`` writes 64-bit integers as strings and ``camel`` uses
camelCase keys, as protobuf's JSON does. ``mood`` is how it misbehaves.
"""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Mood = Literal["well", "garbage", "silent", "reset", "half", "flood", "error", "html"]

_WIDE = {"frames_tx", "frames_rx", "bytes_tx", "bytes_rx", "last_change", "speed"}


@dataclass(slots=True)
class FakeFlow:
    """One flow from a port to another."""

    name: str
    tx_port: str = "p1"
    rx_port: str = "p2"
    step: int = 100
    lost: int = 0  # per step
    size: int = 64
    tx: int = 0
    rx: int = 0
    sending: bool = False
    rate: dict[str, Any] = field(default_factory=lambda: {"choice": "pps", "pps": 100})
    latency_ns: tuple[float, float, float] | None = None  # smallest, mean, largest
    more: dict[str, Any] = field(default_factory=dict)  # overrides of a row's fields


@dataclass(slots=True)
class OtgServer:
    """The state of the double; it may be changed while serving. ``asked`` has every request: method, path, body."""

    flows: list[FakeFlow] = field(default_factory=list)
    ports: dict[str, str] = field(default_factory=lambda: {"p1": "up", "p2": "up"})
    quoted: bool = False
    camel: bool = False
    mood: Mood = "well"
    version: str | None = "1.62.0"
    authorization: str | None = None  # the accepted header
    rates_fixed: bool = False
    flow_errors: str | None = None
    per_port: bool = False  # one row of a flow for each receiving port, half each
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Status and JSON for one request."""
        self.asked.append((method, path, body))
        if (method, path) == ("GET", "/capabilities/version"):
            if self.version is None:
                return _error(404, "no such path")
            return 200, {"api_spec_version": self.version, "sdk_version": "", "app_version": "0.1-test"}
        if (method, path) == ("GET", "/config"):
            ports = [{"name": name, "location": f"eth-{name}"} for name in self.ports]
            return 200, {"ports": ports, "flows": [_configured(flow) for flow in self.flows]}
        if (method, path) == ("PATCH", "/config"):
            return self._update(body)
        if (method, path) == ("POST", "/control/state"):
            return self._state(body)
        if (method, path) == ("POST", "/monitor/metrics"):
            return self._metrics(body)
        return _error(404, f"{method} {path} is not known")

    def _metrics(self, body: Any) -> tuple[int, Any]:
        kind = body.get("choice")
        if kind not in {"port", "flow"} or set(body) - {"choice", kind}:
            return _error(400, f"unexpected choice {kind}")
        if kind == "port":
            for flow in self.flows:
                if flow.sending:
                    flow.tx += flow.step
                    flow.rx += flow.step - flow.lost
            return 200, self._encoded(
                {"choice": "port_metrics", "port_metrics": [self._port(name) for name in self.ports]}
            )
        if self.flow_errors is not None:
            return _error(500, self.flow_errors)
        wanted = body.get("flow", {}).get("flow_names")
        rows = [row for flow in self.flows if not wanted or flow.name in wanted for row in self._flow(flow)]
        return 200, self._encoded({"choice": "flow_metrics", "flow_metrics": rows})

    def _port(self, name: str) -> dict[str, Any]:
        out = [flow for flow in self.flows if flow.tx_port == name]
        back = [flow for flow in self.flows if flow.rx_port == name]
        going = [flow for flow in out if flow.sending]
        coming = [flow for flow in back if flow.sending]
        return {
            "name": name,
            "location": f"eth-{name}",
            "link": self.ports[name],
            "capture": "stopped",
            "frames_tx": sum(flow.tx for flow in out),
            "frames_rx": sum(flow.rx for flow in back),
            "bytes_tx": sum(flow.tx * flow.size for flow in out),
            "bytes_rx": sum(f.rx * f.size for f in back),
            "frames_tx_rate": float(sum(flow.step for flow in going)),
            "frames_rx_rate": float(sum(flow.step - flow.lost for flow in coming)),
            "bytes_tx_rate": float(sum(flow.step * flow.size for flow in going)),
            "bytes_rx_rate": float(sum((flow.step - flow.lost) * flow.size for flow in coming)),
            "transmit": "started" if going else "stopped",
            "last_change": 1_767_225_600_000_000_000,
        }

    def _flow(self, flow: FakeFlow) -> list[dict[str, Any]]:
        going = flow.step if flow.sending else 0
        row: dict[str, Any] = {
            "name": flow.name,
            "port_tx": flow.tx_port,
            "port_rx": flow.rx_port,
            "transmit": "started" if flow.sending else "stopped",
            "frames_tx": flow.tx,
            "frames_rx": flow.rx,
            "bytes_tx": flow.tx * flow.size,
            "bytes_rx": flow.rx * flow.size,
            "frames_tx_rate": float(going),
            "frames_rx_rate": float(going - flow.lost if going else 0),
            "tx_rate_bps": float(going * flow.size * 8),
            "rx_rate_bps": float(going * flow.size * 8),
            "loss": 100.0 * (flow.tx - flow.rx) / flow.tx if flow.tx else 0.0,
            "timestamps": {"first_timestamp_ns": 1.5e9, "last_timestamp_ns": 2.5e9},
        }
        if flow.latency_ns is not None:
            low, mean, high = flow.latency_ns
            row["latency"] = {"minimum_ns": low, "average_ns": mean, "maximum_ns": high}
        row |= flow.more
        if not self.per_port:
            return [row]
        half = {key: value // 2 for key, value in row.items() if key in _WIDE}
        return [{**row, **half}, {**row, **{key: row[key] - value for key, value in half.items()}, "port_rx": "p3"}]

    def _encoded(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return [self._encoded(part) for part in tree]
        if not isinstance(tree, dict):
            return tree
        encoded = {}
        for key, value in tree.items():
            quote = self.quoted and key in _WIDE and isinstance(value, int)
            name = re.sub(r"_([a-z])", lambda match: match[1].upper(), key) if self.camel else key
            encoded[name] = str(value) if quote else self._encoded(value)
        return encoded

    def _state(self, body: Any) -> tuple[int, Any]:
        try:
            order = body["traffic"]["flow_transmit"]
            known = body["choice"] == "traffic" and body["traffic"]["choice"] == "flow_transmit"
            state, names = order["state"], order.get("flow_names")
        except (KeyError, TypeError):
            return _error(400, "a state without flow_transmit")
        if not known or state not in {"start", "stop", "pause", "resume"}:
            return _error(400, f"unexpected state {state}")
        for flow in self.flows:
            if not names or flow.name in names:
                flow.sending = state in {"start", "resume"}
        return 200, {"warnings": []}

    def _update(self, body: Any) -> tuple[int, Any]:
        if self.rates_fixed:
            return _error(501, "update of flows is not implemented")
        known = {flow.name: flow for flow in self.flows}
        try:
            if body["choice"] != "flows" or body["flows"]["property_names"] != ["rate"]:
                return _error(400, "only rates of flows can be updated")
            for changed in body["flows"]["flows"]:
                rate = changed["rate"]
                if "tx_rx" not in changed or not float(rate[rate["choice"]]) > 0:
                    return _error(400, f"flow {changed['name']} cannot be updated")
                known[changed["name"]].rate = rate
        except (KeyError, TypeError, ValueError):
            return _error(400, "no update of flows")
        return 200, {"warnings": []}


def _configured(flow: FakeFlow) -> dict[str, Any]:
    ends = {"choice": "port", "port": {"tx_name": flow.tx_port, "rx_names": [flow.rx_port]}}
    return {
        "name": flow.name,
        "tx_rx": ends,
        "rate": flow.rate,
        "duration": {"choice": "continuous"},
        "metrics": {"enable": True, "loss": True},
    }


def _error(status: int, text: str) -> tuple[int, Any]:
    return status, {"code": status, "kind": "validation", "errors": [text]}


@contextmanager
def otg_server(state: OtgServer, context: ssl.SSLContext | None = None) -> Iterator[OtgServer]:
    """Serve on a free port of loopback within the block; ``state.port`` is the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # headers and body in two segments would wait for an acknowledgement
        wbufsize = -1

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def do_PATCH(self) -> None:
            self._serve()

        def _serve(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            try:
                body = json.loads(raw) if raw else None
            except ValueError:
                body = {}
            if state.authorization in {None, self.headers.get("authorization")}:
                status, tree = state.answer(self.command, self.path, body)
            else:
                status, tree = _error(401, "who are you")
            payload, kind = json.dumps(tree).encode(), "application/json"
            if state.mood == "silent":
                state.released.wait(20)
            elif state.mood == "reset":
                self.close_connection = True
                return
            elif state.mood == "error":
                status, payload = 500, b'{"code": 500, "errors": ["the engine is gone\\nand how"]}'
            elif state.mood == "html":
                payload, kind = b"<html>welcome</html>", "text/html"
            elif state.mood == "garbage":
                payload = payload.replace(b'"name"', b'"nome').replace(b":", b":[")
            elif state.mood == "flood":
                payload = b'{"x": "' + b"x" * (9 * 2**20) + b'"}'
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            if state.mood == "half":
                payload, self.close_connection = payload[: len(payload) // 2], True
            self.wfile.write(payload)
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            """Do not log."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Ignore errors: some tests hang up."""

    with Server(("127.0.0.1", 0), Handler) as server:
        state.port = server.server_address[1]
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield state
        finally:
            state.released.set()
            server.shutdown()
            thread.join()
