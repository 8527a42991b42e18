"""Pktgen's Lua port for tests: a shell without a prompt that serves one client at a time and knows a little Lua.

It executes the lines that Soakwatch and people send: tables written with ``io.write``, ``prints("name", pktgen.info)``,
``pktgen.set``, ``start``, ``stop`` and ``clr``. Like the real one it shows errors on its own screen only, and cuts long
lines. ``dialect`` is the output format of that year's version; ``mood`` is how it misbehaves.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

Dialect = Literal["2014", "2020", "2022", "2023", "2026"]
Mood = Literal["well", "garbage", "silent", "reset", "half", "flood", "foreign"]

_CUT = 1023
_PRINTS = re.compile(r'prints\("(\w+)", (.+)\)$')
_TELLS = re.compile(r"do local ok,t=pcall\(function\(\) return (.+?) end\) if ok .*'\\n(\w+) = '\) w\(t\) .* end end$")
_WRITES = re.compile(r'io\.write\("\\n(\w+ = \{\})\\n"\) io\.flush\(\)$')
_CALL = re.compile(r"pktgen\.(\w+)\((.*)\);?$")
_ARGUMENT = re.compile(r'"([^"]*)"|([-\d.eE+]+)')

LuaTable = dict[str | int, object]


@dataclass(slots=True)
class FakePort:
    """One port: counters and settings. ``step`` packets go out and come back for each poll; with ``line`` (packets per
    second at 100 % of the link) time advances by ``PktgenServer.advance`` instead."""

    step: int = 0
    tx: int = 0
    rx: int = 0
    frame: int = 64
    lost: int = 0  # per step
    rate: float = 100.0
    sending: bool = False
    link: str = "<UP-10000-FD>"
    latency_us: tuple[float, float, float] | None = None  # smallest, mean, largest
    more: dict[str, int] = field(default_factory=dict)  # ierrors, oerrors, imissed, tx_failed ...
    line: float = 0.0
    loss: float = 0.0  # loss ratio, with ``line``

    @property
    def sends(self) -> float:
        """Packets per second now, with ``line``."""
        return self.line * self.rate / 100 if self.sending else 0.0

    def second(self) -> tuple[int, int]:
        """Packets sent and returned within a second or a step."""
        if not self.sending:
            return 0, 0
        return (
            (round(self.sends), round(self.sends * (1 - self.loss)))
            if self.line
            else (self.step, self.step - self.lost)
        )


@dataclass(slots=True)
class PktgenServer:
    """The state of the double; it may be changed while serving. ``lines`` has every line received."""

    dialect: Dialect = "2022"
    mood: Mood = "well"
    ports: dict[int, FakePort] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    port: int = 0
    clients: int = 0

    def advance(self, seconds: float) -> None:
        """Send for a time, on ports with ``line``."""
        for port in self.ports.values():
            sent = round(port.sends * seconds)
            port.tx += sent
            port.rx += round(sent * (1 - port.loss))

    def answer(self, line: str) -> str:
        """The output of one line; empty for unknown ones, whose error goes to the screen."""
        self.lines.append(line)
        writes = _WRITES.match(line)
        if writes is not None:
            return f"\n{writes[1]}\n"
        match = _TELLS.match(line)
        if match is not None:
            value = self._value(match[1])
            return "" if value is None else f"\n{match[2]} = {_compact(value)}\n"
        prints = _PRINTS.match(line)
        if prints is not None:
            value = self._value(prints[2])
            return "" if value is None else printed(prints[1], value)
        self._value(line)
        return ""

    def _value(self, text: str) -> LuaTable | None:
        if text == "pktgen.info":
            return {
                "Pktgen_Version": f"{self.dialect[2:]}.07.1",
                "DPDK_Version": "DPDK 22.07.0",
                "maxPktSize": 1518,
                "Lua_Version": "Lua 5.4",
                "Pktgen_Copyright": 'Copyright "(c)"\nIntel',
            }
        call = _CALL.match(text)
        if call is None:
            return None
        words = [quoted or plain for quoted, plain in _ARGUMENT.findall(call[2])]
        known: dict[str, Callable[[list[str]], LuaTable | None]] = {
            "portStats": self._port_stats,
            "linkState": self._links,
            "isSending": self._sending,
            "pktStats": self._packets,
            "portInfo": self._info,
            "start": self._start,
            "stop": self._stop,
            "set": self._set,
            "clr": self._clear,
        }
        function = known.get(call[1])
        return function(words) if function is not None else None

    def _chosen(self, text: str) -> list[tuple[int, FakePort]]:
        if text == "all":
            return sorted(self.ports.items())
        chosen = set()
        for part in text.split(","):
            first, _, last = part.partition("-")
            chosen |= set(range(int(first), int(last or first) + 1))
        return [(number, port) for number, port in sorted(self.ports.items()) if number in chosen]

    def _port_stats(self, words: list[str]) -> LuaTable | None:
        new = self.dialect == "2026"
        if len(words) != (1 if new else 2):
            return None
        if words[-1] != "rate":
            for _, port in self._chosen(words[0]):
                if port.sending and not port.line:
                    port.tx += port.step
                    port.rx += port.step - port.lost
        if new:
            return _counted(
                {
                    number: {
                        "curr": _counters(port, port.tx, port.rx),
                        "ext": {"tx_failed": port.more.get("tx_failed", 0)},
                        "qstats": {0: {"ipackets": port.rx, "opackets": port.tx, "errors": 0}},
                    }
                    for number, port in self._chosen(words[0])
                }
            )
        if words[1] == "rate":
            return _counted({number: self._rates(port) for number, port in self._chosen(words[0])})
        zero = self.dialect == "2023"
        return _counted(
            {
                number: _counters(port, 0 if zero else port.tx, 0 if zero else port.rx, old=self.dialect == "2014")
                for number, port in self._chosen(words[0])
            }
        )

    def _rates(self, port: FakePort) -> LuaTable:
        sent, got = port.second() if self.dialect != "2023" else (0, 0)
        wire = (port.frame + 24) * 8
        return {
            **_counters(port, sent, got, old=self.dialect == "2014"),
            "pkts_tx": sent,
            "pkts_rx": got,
            "mbits_tx": sent * wire // 10**6,
            "mbits_rx": got * wire // 10**6,
        }

    def _links(self, words: list[str]) -> LuaTable:
        return _counted({number: port.link for number, port in self._chosen(words[0])})

    def _sending(self, words: list[str]) -> LuaTable:
        return _counted({number: "y" if port.sending else "n" for number, port in self._chosen(words[0])})

    def _packets(self, words: list[str]) -> LuaTable | None:
        if self.dialect == "2026":
            return None
        table: dict[int, LuaTable] = {}
        for number, port in self._chosen(words[0]):
            table[number] = {"arp_pkts": 0, "dropped_pkts": 0, "tx_failed": port.more.get("tx_failed", 0)}
            if self.dialect != "2014":
                table[number]["mac_addr"] = "3C:FD:FE:AD:76:C8"
            if self.dialect in {"2022", "2023"}:
                low, mean, high = port.latency_us or (0.0, 0.0, 0.0)
                table[number]["latency"] = {
                    "min_us": low,
                    "avg_us": mean,
                    "max_us": high,
                    "num_pkts": 8,
                    "jitter_threshold": 50,
                    "min_cycles": int(low * 2400),
                }
            elif port.latency_us is not None and self.dialect == "2020":
                low, mean, high = port.latency_us
                table[number] |= {
                    "min_avg_latency": int(low),
                    "avg_latency": int(mean),
                    "max_avg_latency": int(high),
                    "jitter_count": 3,
                }
        return _counted(table)

    def _info(self, words: list[str]) -> LuaTable | None:
        if self.dialect == "2014":
            return None
        return _counted(
            {
                number: {
                    "total_stats": {"max_opackets": 0},
                    "info": {
                        "tx_count": "Forever",
                        "tx_rate": int(port.rate),
                        "pkt_size": port.frame,
                        "tx_debug": {"tx_pps": int((port.line or port.step) * port.rate / 100), "tx_cycles": 77},
                        "VxLAN": {"link_state": port.link},
                    },
                }
                for number, port in self._chosen(words[0])
            }
        )

    def _start(self, words: list[str]) -> None:
        for _, port in self._chosen(words[0]):
            port.sending = "UP" in port.link

    def _stop(self, words: list[str]) -> None:
        for _, port in self._chosen(words[0]):
            port.sending = False

    def _set(self, words: list[str]) -> None:
        if len(words) == 3 and words[1] == "rate":
            for _, port in self._chosen(words[0]):
                port.rate = float(words[2])

    def _clear(self, _words: list[str]) -> None:
        for port in self.ports.values():
            port.tx = port.rx = 0


def _counters(port: FakePort, tx: int, rx: int, *, old: bool = False) -> LuaTable:
    table: LuaTable = {
        "ipackets": rx,
        "opackets": tx,
        "ibytes": rx * port.frame,
        "obytes": tx * port.frame,
        "ierrors": 0,
        "oerrors": 0,
        "rx_nombuf": 0,
    }
    if not old:
        table["imissed"] = 0
    table.update({key: value for key, value in port.more.items() if key in table})
    return table


def _counted(table: Mapping[int, object]) -> LuaTable:
    return {**dict(table.items()), "n": len(table)}


def _compact(value: object) -> str:
    """A value in the format of Soakwatch's own lines."""
    if isinstance(value, dict):
        keys = {key: _quoted(key) if isinstance(key, str) else str(key) for key in value}
        return "{" + "".join(f"[{keys[key]}]={_compact(inner)}," for key, inner in value.items()) + "}"
    return _quoted(value) if isinstance(value, str) else str(value)


def printed(name: str, table: LuaTable) -> str:
    """A table in the format of ``prints`` of Pktgen's library."""
    return f"{name} = {{\n{_entries(table, 2)}}}\n"


def _entries(table: LuaTable, indent: int) -> str:
    text = ""
    for key, value in table.items():
        shown = f'"{key}"' if isinstance(key, str) else str(key)
        if isinstance(value, dict):
            text += f"{' ' * indent}[{shown}] = {{\n{_entries(value, indent + 2)}{' ' * indent}}},\n"
        else:
            literal = _quoted(value) if isinstance(value, str) else str(value)
            text += f"{' ' * indent}[{shown}] = {literal},\n"
    return text


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\\n")
    return f'"{escaped}"'


@contextmanager
def pktgen_server(state: PktgenServer, port: int = 0) -> Iterator[PktgenServer]:
    """Serve on a port of loopback (0: any free one) within the block; ``state.port`` is the port."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        state.port = listener.getsockname()[1]
        ended = threading.Event()
        thread = threading.Thread(target=_serve, args=(listener, state, ended), daemon=True)
        thread.start()
        try:
            yield state
        finally:
            ended.set()
            with socket.socket() as last:  # wakes the thread that waits for a client
                last.settimeout(5)
                last.connect_ex(("127.0.0.1", state.port))
            thread.join(10)


def _serve(listener: socket.socket, state: PktgenServer, ended: threading.Event) -> None:
    while not ended.is_set():
        client, _ = listener.accept()
        with client:
            client.settimeout(0.05)
            state.clients += 1
            try:
                _shell(client, state, ended)
            except OSError:
                continue


def _shell(client: socket.socket, state: PktgenServer, ended: threading.Event) -> None:
    heard = b""
    while not ended.is_set():
        try:
            part = client.recv(4096)
        except TimeoutError:
            continue
        if not part:
            return
        if state.mood == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            return
        heard += part
        while b"\n" in heard or len(heard) >= _CUT:
            index = heard.find(b"\n", 0, _CUT)
            line, heard = (heard[:index], heard[index + 1 :]) if index >= 0 else (heard[:_CUT], heard[_CUT:])
            reply = state.answer(line.decode("utf-8", "replace"))
            if not _send_reply(client, state.mood, reply):
                return


def _send_reply(client: socket.socket, mood: Mood, reply: str) -> bool:
    """Send the output according to the mood; returns whether the connection stays open."""
    client.settimeout(5)
    if mood == "garbage":
        reply = reply.replace("[", "{{").replace("=", "\x00\xff")
    elif mood == "half" and reply:
        client.sendall(reply[: len(reply) // 2].encode())
        client.shutdown(socket.SHUT_WR)
        while client.recv(4096):  # unread data at the end would cause a reset
            pass
        return False
    elif mood == "flood":
        reply = "x = 1,\n" * 50_000
    elif mood == "foreign":
        reply = "500 unknown command\r\n"
    if mood != "silent":
        client.sendall(reply.encode())
    client.settimeout(0.05)
    return True
