"""A simulated TRex: its ports, flows, counters and owners, and its answers to requests.

Names, errors and checks are those of the real server; packets are rate times time. Time only passes by ``advance``.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from soakwatch_testing.trex_parts import Answered, Group, Port, bucket, latency_json

NOT_FOUND, BAD_PARAMS, EXECUTE, TRY_AGAIN = -32601, -32602, -32000, -32001
_MUL_TYPES = ("raw", "bps", "bpsl1", "pps", "percentage")
_COUNTERS = (
    "m_active_flows",
    "m_est_flows",
    "tcps_connattempt",
    "tcps_connects",
    "tcps_closed",
    "tcps_conndrops",
    "tcps_drops",
    "tcps_sndrexmitpack",
    "udps_connects",
    "udps_keepdrops",
)
_OWNED = {"start_traffic", "stop_traffic", "update_traffic", "pause_traffic", "resume_traffic", "validate", "release"}
_FREE = {"get_version", "api_sync", "api_sync_v2", "ping"}  # methods that need no handle


class WrongError(Exception):
    """An error answered by the server."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


@dataclass
class TrexModel:
    """The generator. A test sets its faults; ``questions`` are the requested methods."""

    mode: str = "STL"
    api: tuple[int, int] = (5, 1)
    version: str = "v3.04"
    old: bool = False  # only knows api_sync, and publishes its totals
    asks_flows: bool = True  # False in the oldest releases, which publish flows too
    handle: str = field(default_factory=lambda: secrets.token_hex(4))
    ports: list[Port] = field(default_factory=lambda: [Port(), Port()])
    groups: dict[int, Group] = field(default_factory=dict)
    loss: float = 0.0  # share of the packets that do not come back
    frame: int = 64  # bytes
    line_bps: float = 100e9  # per port, including preamble and gap of each frame
    under_way: int = 0  # packets in transit, which come back later
    cpu: float = 42.0
    cps: float = 12.5  # connections per second, with ASTF
    queue_full: int = 0
    alloc_errors: int = 0
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)  # errors by method
    stack: dict[str, dict[str, int]] = field(default_factory=lambda: {"client": {}, "server": {}})
    epoch: int = 1
    probes: dict[int, Group] = field(default_factory=dict)  # latency of ASTF by port
    questions: list[str] = field(default_factory=list)
    excess: Callable[[], float] = lambda: 1.0  # what a start sends of what it was asked for

    def advance(self, seconds: float) -> None:
        """Send for a time."""
        for number, port in enumerate(self.ports):
            packets = round(port.sends * seconds)
            back = self.ports[number ^ 1] if len(self.ports) > 1 else port
            came = round(packets * (1 - self.loss))
            for counter, value in (("opackets", packets), ("obytes", packets * self.frame)):
                port.counters[counter] += value
            for counter, value in (("ipackets", came), ("ibytes", came * self.frame)):
                back.counters[counter] += value
        flowing = any(port.sends for port in self.ports)
        for group in [*self.groups.values(), *self.probes.values()]:
            if flowing:
                self._flow(group, round(group.pps * seconds))

    @property
    def bits(self) -> int:
        """Bits of a frame."""
        return 8 * self.frame

    def restart(self, *, streams: bool = False) -> None:
        """Become another process: new handle, no owners, counters at zero, and no streams unless ``streams``."""
        self.handle = secrets.token_hex(4)
        self.ports = [Port(pps=port.pps, state="STREAMS" if streams else "IDLE") for port in self.ports]
        self.groups = {}

    def answer(self, method: str, params: Mapping[str, object]) -> object:
        """The result of one request. Raises WrongError."""
        self.questions.append(method)
        if method in self.refused:
            raise WrongError(*self.refused[method])
        known = self._methods()
        if method not in known:
            raise WrongError(NOT_FOUND, f"Method {method} not registered")
        if method not in _FREE and params.get("api_h") != self.handle:
            raise WrongError(EXECUTE, "API verification failed - API handler provided mismatch for class: 'core'")
        if method in _OWNED:
            port = self._port(params)
            if not port.owner:
                raise WrongError(EXECUTE, "please acquire the port before modifying port state")
            if params.get("handler") != port.handler:
                raise WrongError(EXECUTE, "port is not owned by you or your current executing session")
        return known[method](params)

    def totals(self) -> Answered:
        """The totals as requested; an older server publishes them with those of the ports."""
        add = {name: sum(port.counters[name] for port in self.ports) for name in self.ports[0].counters}
        sends = sum(port.sends for port in self.ports)
        back = sends * (1 - self.loss)
        return {
            "m_cpu_util": self.cpu,
            "m_rx_cpu_util": 1.5,
            "m_platform_factor": 1.0,
            "m_tx_pps": sends,
            "m_rx_pps": back,
            "m_tx_bps": sends * self.bits,
            "m_rx_bps": back * self.bits,
            "m_tx_expected_pps": 0.0,
            "m_tx_expected_bps": 0.0,
            "m_tx_expected_cps": 0.0,
            "m_tx_cps": self.cps if self.mode == "ASTF" else 0.0,
            "m_rx_drop_bps": 0.0,
            "m_active_flows": float(self.stack["client"].get("m_active_flows", 0)),
            "m_open_flows": 0.0,
            "m_total_queue_full": self.queue_full,
            "m_total_queue_drop": 0,
            "m_total_alloc_error": self.alloc_errors,
            "m_total_tx_pkts": add["opackets"],
            "m_total_rx_pkts": add["ipackets"] - self.under_way,
            "m_total_tx_bytes": add["obytes"],
            "m_total_rx_bytes": add["ibytes"],
        }

    def published(self) -> list[Answered]:
        """What an older server publishes at once."""
        fields = {
            f"{name}-{number}": value
            for number, port in enumerate(self.ports)
            for name, value in self._port_stats(port).items()
        }
        flows = {
            str(group): {"tx_pkts": {"0": flow.sent}, "rx_pkts": {"1": flow.received}}
            for group, flow in self.groups.items()
        }
        latency = {
            str(group): {
                "latency": {**latency_json(flow), "jitter": 3},
                "err_cntrs": {"dropped": flow.lost, "out_of_order": flow.disordered, "dup": 0},
            }
            for group, flow in self.groups.items()
            if flow.latency is not None
        }
        parts: dict[str, Answered] = {
            "trex-global": {"ts": {"value": 1, "freq": 1}, **self.totals(), **fields, "unknown": 0}
        }
        parts |= {} if self.asks_flows else {"flow_stats": {**flows}, "latency_stats": {**latency}}
        return [{"name": name, "type": 0, "data": data} for name, data in parts.items()]

    def _flow(self, group: Group, packets: int) -> None:
        lost = round(packets * self.loss)
        group.sent, group.received, group.lost = (
            group.sent + packets,
            group.received + packets - lost,
            group.lost + lost,
        )
        if group.latency is not None and packets > lost:
            key = bucket(group.latency)
            if key is not None:
                group.histogram[key] = group.histogram.get(key, 0) + packets - lost
            group.last_max = int(group.latency)
            group.total_max = max(group.total_max, group.last_max)

    def _methods(self) -> dict[str, Callable[[Mapping[str, object]], object]]:
        common: dict[str, Callable[[Mapping[str, object]], object]] = {
            "get_version": lambda _: {
                "version": self.version,
                "build_date": "",
                **({} if self.old else {"mode": self.mode}),
            },
            "api_sync": self._api_sync,
            "ping": lambda _: {"ts": 1.0},
            "publish_now": lambda _: {},
            "get_supported_cmds": lambda _: sorted(self._methods()),
            "get_system_info": self._system,
            "get_owner": lambda params: {"owner": self._port(params).owner},
            "get_port_status": self._status,
            "get_port_stats": lambda params: self._port_stats(self._port(params)),
            "acquire": self._acquire,
        }
        if not self.old:
            common["api_sync_v2"] = self._api_sync_v2
            common["get_global_stats"] = lambda _: self.totals()
        if self.mode == "ASTF":
            return {
                **common,
                "get_counter_desc": self._described,
                "get_counter_values": self._counted,
                "get_latency_stats": lambda _: self._probed(),
            }
        if self.asks_flows:
            common["get_active_pgids"] = self._active
            common["get_pgid_stats"] = self._pgid_stats
        return {
            **common,
            "release": self._release,
            "validate": self._validate,
            "start_traffic": self._start,
            "update_traffic": self._update,
            "stop_traffic": self._stop,
            "pause_traffic": lambda params: self._turn(params, "PAUSE"),
            "resume_traffic": lambda params: self._turn(params, "TX"),
            "get_all_streams": lambda _: {"streams": {}},
        }

    def _api_sync(self, params: Mapping[str, object]) -> object:
        (wanted,) = params["api_vers"]  # type: ignore[misc]
        self._verify("STL", wanted["major"], wanted["minor"])  # type: ignore[has-type]
        return {"api_vers": [{"type": wanted["type"], "api_h": self.handle}]}  # type: ignore[has-type]

    def _api_sync_v2(self, params: Mapping[str, object]) -> object:
        self._verify(str(params["name"]), params["major"], params["minor"])
        return {"api_h": self.handle}

    def _verify(self, name: str, major: object, minor: object) -> None:
        if name != self.mode:
            raise WrongError(
                EXECUTE,
                f"RPC configuration mismatch - server RPC configuration: '{self.mode}', "
                f"client RPC configuration: '{name}'",
            )
        assert isinstance(major, int)
        assert isinstance(minor, int)
        why = "RPC version mismatch: a newer client version is required"
        if (major, minor) > self.api if major == self.api[0] else major > self.api[0]:
            why = "Version mismatch: your client version is too new to be supported by the server"
        if major != self.api[0] or minor > self.api[1]:
            server, client = f"{self.api[0]}.{self.api[1]}", f"{major}.{minor}"
            raise WrongError(EXECUTE, f"{why}\n(API type '{name}': - server: '{server}', client: '{client}')")

    def _system(self, _: Mapping[str, object]) -> object:
        ports = [{"index": number, "driver": "net_ice", "supp_speeds": [100000]} for number in range(len(self.ports))]
        return {
            "hostname": "tg",
            "uptime": "1:02:03",
            "dp_core_count": 2,
            "core_type": "cpu",
            "ports": ports,
            "port_count": len(self.ports),
        }

    def _port(self, params: Mapping[str, object]) -> Port:
        number = params.get("port_id")
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise WrongError(BAD_PARAMS, "field 'port_id' is missing")
        if number >= len(self.ports):
            raise WrongError(EXECUTE, f"invalid port id - should be between 0 and {len(self.ports) - 1}")
        return self.ports[number]

    def _status(self, params: Mapping[str, object]) -> object:
        port = self._port(params)
        attributes = {"link": {"up": port.up}, "speed": 100, "promiscuous": {"enabled": False}}
        return {
            "owner": port.owner,
            "state": port.state,
            "service": False,
            "max_stream_id": 1,
            "attr": attributes,
            "rx_info": {},
        }

    def _port_stats(self, port: Port) -> Answered:
        back = port.sends * (1 - self.loss)
        rates = {"m_total_tx_pps": port.sends, "m_total_rx_pps": back}
        return {
            **port.counters,
            **rates,
            **{name.replace("pps", "bps"): self.bits * rate for name, rate in rates.items()},
            "m_cpu_util": self.cpu,
        }

    def _acquire(self, params: Mapping[str, object]) -> object:
        port, user, session = self._port(params), str(params["user"]), params.get("session_id")
        if not isinstance(session, int) or not 0 <= session < 2**32:
            raise WrongError(BAD_PARAMS, "field 'session_id' is missing")
        if port.owner and not params["force"]:
            if port.owner != user:
                raise WrongError(EXECUTE, f"port is already taken by '{port.owner}'")
            if port.session != session:
                raise WrongError(EXECUTE, f"port is already owned by another session of '{user}'")
            return port.handler
        port.owner, port.session, port.handler = user, session, secrets.token_hex(4)
        return port.handler

    def _release(self, params: Mapping[str, object]) -> object:
        port = self._port(params)
        port.owner, port.handler = "", ""
        return {}

    def _validate(self, params: Mapping[str, object]) -> object:
        port = self._port(params)
        return {"rate": {"max_pps": port.pps, "max_bps_l2": port.pps * self.bits, "max_line_util": 1.0}, "graph": {}}

    def _start(self, params: Mapping[str, object]) -> object:
        port = self._in_state(params, "STREAMS", "start")
        if not isinstance(params.get("duration"), int | float):
            raise WrongError(BAD_PARAMS, "field 'duration' is missing")
        if not port.up and not params["force"]:
            raise WrongError(EXECUTE, "Link state is DOWN.")
        port.factor, port.excess = self._factor(port, params), self.excess()
        port.state = "TX"
        return {"multiplier": port.factor, "ts": 1.0}

    def _update(self, params: Mapping[str, object]) -> object:
        port = self._in_state(params, "TX PAUSE", "update")
        port.factor = self._factor(port, params)
        return {"multiplier": port.factor}

    def _stop(self, params: Mapping[str, object]) -> object:
        port = self._port(params)
        port.state = "STREAMS" if port.state in {"TX", "PAUSE", "PCAP_TX"} else port.state
        return {}

    def _turn(self, params: Mapping[str, object], state: str) -> object:
        port = self._in_state(params, "PAUSE" if state == "TX" else "TX", "resume" if state == "TX" else "pause")
        port.state = state
        return {}

    def _in_state(self, params: Mapping[str, object], states: str, command: str) -> Port:
        port = self._port(params)
        if port.state not in states.split():
            raise WrongError(EXECUTE, f"command '{command}' cannot be executed on current state: '{port.state}'")
        return port

    def _factor(self, port: Port, params: Mapping[str, object]) -> float:
        mul = params.get("mul")
        if not isinstance(mul, dict) or not isinstance(params.get("force"), bool):
            raise WrongError(BAD_PARAMS, "field 'mul' is missing")
        if mul["type"] not in _MUL_TYPES or mul["op"] != "abs" or not mul["value"] > 0:
            raise WrongError(BAD_PARAMS, "start message can only specify absolute speed rate")
        wire = self.bits + 160
        full = {
            "raw": 1.0,
            "pps": 1 / port.pps,
            "bps": 1 / (port.pps * self.bits),
            "bpsl1": 1 / (port.pps * wire),
            "percentage": self.line_bps / 100 / (port.pps * wire),
        }
        factor = float(mul["value"]) * full[mul["type"]]
        if factor * port.pps * wire > self.line_bps * (1 + 1e-9):
            line = f"{self.line_bps / 1e9:g} Gbps"
            raise WrongError(EXECUTE, f"Expected L1 B/W: 'more' exceeds port line rate: '{line}'")
        return factor

    def _active(self, _: Mapping[str, object]) -> object:
        kinds: dict[str, list[int]] = {"flow_stats": [], "latency": []}
        for number, group in self.groups.items():
            kinds["flow_stats" if group.latency is None else "latency"].append(number)
        return {"ids": kinds}

    def _pgid_stats(self, params: Mapping[str, object]) -> object:
        wanted = params["pgids"]
        assert isinstance(wanted, list)
        chosen = {str(number): self.groups[number] for number in wanted if number in self.groups}
        latency: Answered = {"g": {}}
        for number, group in chosen.items():
            if group.latency is not None:
                errors = {"drp": group.lost, "ooo": group.disordered}
                latency[number] = {
                    "lat": {**latency_json(group), "jit": 3},
                    "er": {k: v for k, v in errors.items() if v},
                }
        flows: Answered = {}
        for number, group in chosen.items():
            sent, came = {"0": group.sent, "1": 0}, {"0": 0, "1": group.received}
            counts = {"tp": sent, "rp": came}
            size = {
                name.replace("p", "b"): {port: self.frame * many for port, many in part.items()}
                for name, part in counts.items()
            }
            rates = {name: {"0": group.pps, "1": 0.0} for name in ("tps", "tbs", "rps", "rbs")}
            flows[number] = {**counts, **size, **rates}
        versions = {number: group.version for number, group in chosen.items()}
        return {"flow_stats": {**flows, "g": {}}, "latency": latency, "ver_id": versions}

    def _described(self, _: Mapping[str, object]) -> object:
        flags = {"info": "info", "real": True, "abs": False, "units": "", "zero": False}
        data = [{"id": number, "name": name, "help": name, **flags} for number, name in enumerate(_COUNTERS)]
        return {"name": "counter desc", "epoch": self.epoch, "data": data}

    def _counted(self, _: Mapping[str, object]) -> object:
        numbers = {name: str(number) for number, name in enumerate(_COUNTERS)}
        sides: Answered = {
            side: {numbers[name]: value for name, value in values.items() if value}
            for side, values in self.stack.items()
        }
        return {"name": "counter vals", "epoch": self.epoch, **sides}

    def _probed(self) -> object:
        ports = {
            f"port-{number}": {
                "hist": {
                    "min_usec": 10,
                    "max_usec": probe.total_max,
                    "high_cnt": probe.received - probe.histogram.get(0, 0),
                    "cnt": probe.received,
                    "s_avg": probe.latency,
                    "s_max": probe.last_max,
                    "histogram": [{"key": key, "val": many} for key, many in probe.histogram.items() if key],
                },
                "stats": {"m_tx_pkt_ok": probe.sent, "m_pkt_ok": probe.received, "m_jitter": 4, "m_seq_error": 0},
            }
            for number, probe in self.probes.items()
        }
        return {"name": "trex-latecny-v2", "type": 0, "data": {"epoch": self.epoch, **ports, "unknown": 0}}
