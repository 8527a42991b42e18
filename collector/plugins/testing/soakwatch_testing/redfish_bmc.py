"""A management controller's Redfish service for tests: real HTTP or HTTPS, with resources according to DSP2046.

``old`` serves ``Power`` and ``Thermal``, otherwise ``PowerSubsystem``, ``ThermalSubsystem`` and ``Sensors``. ``tree``
has every resource by address and may be changed while serving.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_CHASSIS = "/redfish/v1/Chassis"
_OK = {"State": "Enabled", "Health": "OK"}


def _linked(address: str) -> dict[str, object]:
    return {"@odata.id": address}


def _collection(address: str, names: Sequence[str]) -> dict[str, object]:
    return {"@odata.id": address, "Members": [_linked(f"{address}/{name}") for name in names]}


def resources(*, old: bool = True, expands: bool = False, name: str = "1") -> dict[str, dict[str, object]]:
    """The resources of a server with two supplies, two fans, and a few sensors."""
    here = f"{_CHASSIS}/{name}"
    root: dict[str, object] = {"@odata.id": "/redfish/v1", "RedfishVersion": "1.15.0", "Product": "Double"}
    root |= {"Chassis": _linked(_CHASSIS), "ProtocolFeaturesSupported": {"ExpandQuery": {"NoLinks": expands}}}
    tree: dict[str, dict[str, object]] = {"/redfish/v1": root, _CHASSIS: _collection(_CHASSIS, [name])}
    chassis: dict[str, object] = {"@odata.id": here, "Id": name, "Name": "Computer"}
    if old:
        tree[here] = chassis | {key: _linked(f"{here}/{key}") for key in ("Power", "Thermal")}
        tree[f"{here}/Power"] = {
            "PowerControl": [{"Name": "System Power Control", "PowerConsumedWatts": 344}],
            "PowerSupplies": [
                {"Name": f"PSU {number}", "PowerInputWatts": 172.0, "Status": dict(_OK)} for number in (1, 2)
            ],
            "Voltages": [{"Name": "VRM1", "ReadingVolts": 12.1, "UpperThresholdCritical": 13, "Status": dict(_OK)}],
        }
        tree[f"{here}/Thermal"] = {
            "Temperatures": [
                {
                    "Name": "Inlet",
                    "ReadingCelsius": 21,
                    "UpperThresholdCritical": 45,
                    "UpperThresholdNonCritical": 42,
                    "LowerThresholdCritical": None,
                    "Status": dict(_OK),
                },
                {"Name": "CPU2", "ReadingCelsius": None, "Status": {"State": "Absent"}},
            ],
            "Fans": [
                {"Name": "Fan 1", "Reading": 5400, "ReadingUnits": "RPM", "LowerThresholdCritical": 600} | _status(),
                {"Name": "Fan 2", "Reading": 30, "ReadingUnits": "Percent"} | _status(),
            ],
        }
        return tree
    tree[here] = chassis | {key: _linked(f"{here}/{key}") for key in ("PowerSubsystem", "ThermalSubsystem", "Sensors")}
    for subsystem, parts, one in (("PowerSubsystem", "PowerSupplies", "PSU"), ("ThermalSubsystem", "Fans", "Fan")):
        at = f"{here}/{subsystem}/{parts}"
        tree[f"{here}/{subsystem}"] = {parts: _linked(at)}
        tree[at] = _collection(at, ["1", "2"])
        tree |= {
            f"{at}/{number}": _linked(f"{at}/{number}") | {"Name": f"{one} {number}"} | _status() for number in "12"
        }
    at = f"{here}/Sensors"
    sensors: dict[str, dict[str, object]] = {
        "Inlet": {"ReadingType": "Temperature", "Reading": 21.5, "Thresholds": {"UpperCritical": {"Reading": 45}}},
        "Total": {"ReadingType": "Power", "Reading": 344.0},
        "Meter": {"ReadingType": "EnergykWh", "Reading": 2.0},
        "Fan1": {"ReadingType": "Rotational", "ReadingUnits": "RPM", "Reading": 5400},
        "Humid": {"ReadingType": "Humidity", "Reading": 40},
    }
    tree[at] = _collection(at, list(sensors))
    tree |= {f"{at}/{key}": _linked(f"{at}/{key}") | {"Name": key} | _status() | rest for key, rest in sensors.items()}
    return tree


def _status() -> dict[str, object]:
    return {"Status": dict(_OK)}


@dataclass(slots=True)
class RedfishBmc:
    """The state of the double. ``asked`` has every requested address with its query."""

    tree: dict[str, dict[str, object]] = field(default_factory=resources)
    login: tuple[str, str] | None = None  # accepted user and password
    token: str | None = None  # accepted X-Auth-Token
    asked: list[str] = field(default_factory=list)
    port: int = 0

    def lets_in(self, authorization: str, token: str) -> bool:
        """Whether a request with these headers may read."""
        if self.login is None and self.token is None:
            return True
        basic = base64.b64encode(":".join(self.login or ("", "")).encode()).decode()
        return (self.login is not None and authorization == f"Basic {basic}") or (
            self.token is not None and token == self.token
        )

    def answer(self, path: str) -> dict[str, object] | None:
        """A resource, with the full members of a collection if the query asks for that."""
        address, _, query = path.partition("?")
        found = self.tree.get(address.rstrip("/"))
        rows = None if found is None else found.get("Members")
        if found is None or "$expand" not in query or not isinstance(rows, list):
            return found
        return found | {"Members": [self.tree[row["@odata.id"]] for row in rows]}


@contextmanager
def redfish_bmc(bmc: RedfishBmc, context: ssl.SSLContext | None = None) -> Iterator[RedfishBmc]:
    """Serve it on a free port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            bmc.asked.append(self.path)
            let_in = bmc.lets_in(self.headers.get("Authorization", ""), self.headers.get("X-Auth-Token", ""))
            found = bmc.answer(self.path) if let_in else None
            body = json.dumps(found or {"error": {"code": "Base.1.0.GeneralError"}}).encode()
            self.send_response(200 if found is not None else 404 if let_in else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Do not log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        bmc.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield bmc
        finally:
            server.shutdown()
            thread.join()
