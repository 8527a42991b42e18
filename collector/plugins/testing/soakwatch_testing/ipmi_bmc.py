"""An IPMI 2.0 management controller for tests: OpenIPMI's simulator ``ipmi_sim`` on loopback.

It has an account ``reader`` of privilege USER and sensors with thresholds, and does not announce its cipher suites 0 to
3. It lacks DCMI, which ``with_dcmi`` adds with a relay.
"""

from __future__ import annotations

import signal
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from soakwatch_testing.ports import free_port
from soakwatch_testing.servers import ended, started

_OFF = "000000000000000"  # no event of any state
_ORDER: Final = ("unr", "uc", "unc", "lnr", "lc", "lnc")
_BITS: Final = {"lnc": 0, "lc": 1, "lnr": 2, "unc": 3, "uc": 4, "unr": 5}
_GUID = "a123456789abcdefa123456789abcdef"  # without one it only speaks IPMI 1.5
_PLAIN_IPMI: Final = b"\x06\x00"  # format IPMI 2.0, payload IPMI, not encrypted
_GROUP, _POWER_READING = 0x2C, 0x02  # network function and command of DCMI
_PRESENCE_PING = bytes.fromhex("06 00 ff 06 00 00 11 be 80 00 00 00")


@dataclass(frozen=True, slots=True)
class BmcSensor:
    """A sensor: ``kind`` and ``unit`` are numbers of IPMI 2.0 (tables 42-3 and 43-15); without ``unit`` it has states.

    Raw values and thresholds are bytes, in steps of ``scale`` units (0.1 or a whole number).
    """

    name: str
    kind: int
    unit: int
    entity: tuple[int, int]
    raw: int
    scale: float = 1
    thresholds: dict[str, int] | None = None
    scanned: bool = True


SENSORS: Final = (
    BmcSensor("Inlet Temp", 0x01, 1, (64, 1), 23, thresholds={"unc": 42, "uc": 45}),
    BmcSensor("Temp", 0x01, 1, (3, 1), 60, thresholds={"uc": 95}),
    BmcSensor("Temp", 0x01, 1, (3, 2), 0, thresholds={"uc": 95}, scanned=False),
    BmcSensor("FAN1", 0x04, 18, (29, 1), 54, 100, {"lc": 6, "lnr": 3}),
    BmcSensor("12V", 0x02, 4, (7, 1), 121, 0.1, {"lc": 108, "unr": 132}),
    BmcSensor("PS1 Input Power", 0x0B, 6, (10, 1), 43, 4, {"uc": 200}),
    BmcSensor("PS2 Input Power", 0x0B, 6, (10, 2), 42, 4),
    BmcSensor("PS1 Status", 0x08, 0, (10, 1), 0b1),
    BmcSensor("PS2 Status", 0x08, 0, (10, 2), 0b1),
    BmcSensor("PS3 Status", 0x08, 0, (10, 3), 0b0),
    BmcSensor("Fan Redundancy", 0x04, 0, (29, 1), 0b1),
)
"""A server with two of three supplies, and an empty processor socket."""


@dataclass(frozen=True, slots=True)
class IpmiBmc:
    """The running simulator; ``set_raw`` takes effect within 0.1 s."""

    port: int
    folder: Path
    sensors: tuple[BmcSensor, ...]

    def set_raw(self, name: str, raw: int) -> None:
        """Set the raw value of the first sensor of this name."""
        number = next(index for index, each in enumerate(self.sensors, 1) if each.name == name)
        new = self.folder / "new"
        new.write_text(str(raw))
        new.replace(self.folder / f"sensor{number}")


@contextmanager
def ipmi_bmc(folder: Path, password: str, sensors: Sequence[BmcSensor] = SENSORS) -> Iterator[IpmiBmc]:
    """Run it on a free UDP port of loopback; ``folder`` must be empty and its own."""
    port = free_port()
    (folder / "state").mkdir(parents=True)
    methods = "\n".join(
        f"  allowed_auths_{level} none md2 md5 straight" for level in ("callback", "user", "operator", "admin")
    )
    (folder / "lan.conf").write_text(
        'name "bmc"\nset_working_mc 0x20\nstartlan 1\n'
        f"  addr 127.0.0.1 {port}\n  priv_limit admin\n{methods}\n  guid {_GUID}\nendlan\n"
        f'user 2 true "reader" "{password}" user 10 md5\n'
    )
    (folder / "bmc.emu").write_text("\n".join(_commands(folder, sensors)) + "\n")
    command = ["ipmi_sim", "-c", "lan.conf", "-f", "bmc.emu", "-s", "state", "-n"]
    process = started(command, folder / "log", lambda: _answers(port))
    try:
        yield IpmiBmc(port, folder, tuple(sensors))
    finally:
        ended(process, signal.SIGTERM)


def _answers(port: int) -> bool:
    """Whether it answers RMCP's presence ping."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as client:
        client.settimeout(0.2)
        client.connect(("127.0.0.1", port))
        try:
            client.send(_PRESENCE_PING)
            return bool(client.recv(100))
        except OSError:
            return False


def _commands(folder: Path, sensors: Sequence[BmcSensor]) -> Iterator[str]:
    yield "mc_setbmc 0x20"
    yield "mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02"
    for number, each in enumerate(sensors, 1):
        file = folder / f"sensor{number}"
        file.write_text(str(each.raw))
        yield "main_sdr_add 0x20 " + " ".join(f"0x{byte:02x}" for byte in _record(number, each))
        reading = "1" if each.unit else "0x6f"
        yield f'sensor_add 0x20 0 {number} 0x{each.kind:x} {reading} poll 100 file "{file}"'
        scanning = "scanning" if each.scanned else "no-scanning"
        yield f"sensor_set_event_support 0x20 0 {number} enable {scanning} none {_OFF} {_OFF} {_OFF} {_OFF}"
    yield "mc_enable 0x20"


def _record(number: int, sensor: BmcSensor) -> list[int]:
    """The sensor's record in the repository (IPMI 2.0, tables 43-1 and 43-2)."""
    text = [0xC0 | len(sensor.name), *sensor.name.encode()]
    owner = [0x20, 0, number, *sensor.entity, 0x67]
    if not sensor.unit:
        body = [*owner, 0x40, sensor.kind, 0x6F, 0, 0, 0, 0, 0xFF, 0, 0xC0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, *text]
        return [0, 0, 0x51, 0x02, len(body), *body]
    stated = sensor.thresholds or {}
    readable = sum(1 << _BITS[name] for name in stated)
    factor, exponent = (1, 0xF0) if sensor.scale == 0.1 else (round(sensor.scale), 0)
    limits = [stated.get(name, 0) for name in _ORDER]
    body = [*owner, 0x44, sensor.kind, 1, 0, 0, 0, 0, readable, 0, 0, sensor.unit, 0, 0]
    body += [factor, 0, 0, 0, 0, exponent, 0, 0, 0, 0, 0xFF, 0, *limits, 2, 2, 0, 0, 0, *text]
    return [0, 0, 0x51, 0x01, len(body), *body]


@contextmanager
def with_dcmi(bmc_port: int, watts: Callable[[], int | None]) -> Iterator[int]:
    """Puts DCMI's power reading before the simulator; the port to ask, with cipher suite 1, which hides nothing.

    None from ``watts`` is a measurement that is switched off.
    """
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as relay:
        relay.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=_relay, args=(relay, ("127.0.0.1", bmc_port), watts), daemon=True)
        thread.start()
        try:
            yield relay.getsockname()[1]
        finally:
            with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as last:
                last.sendto(b"", relay.getsockname())
            thread.join()


def _relay(relay: socket.socket, bmc: tuple[str, int], watts: Callable[[], int | None]) -> None:
    """Relay one client after the other; an empty datagram ends it."""
    client, session = bmc, b""
    while True:
        data, sender = relay.recvfrom(2000)
        if not data:
            return
        if sender == bmc:
            if data[4:6] == _PLAIN_IPMI:
                session = data[6:10]
            relay.sendto(data, client)
            continue
        client = sender
        ask = data[16:]
        if data[4:6] == _PLAIN_IPMI and ask[1] >> 2 == _GROUP and ask[5] == _POWER_READING:
            relay.sendto(_dcmi_answer(session, data[10:14], ask, watts()), client)
        else:
            relay.sendto(data, bmc)


def _dcmi_answer(session: bytes, sequence: bytes, ask: bytes, watts: int | None) -> bytes:
    """The answer of DCMI 1.5 (table 6-16) in RMCP+ (IPMI 2.0, table 13-8)."""
    now = watts or 0
    said = struct.pack("<BHHHHIIB", 0xDC, now, now, now, now, 0, 1000, 0 if watts is None else 0x40)
    head = bytes([ask[3], (_GROUP + 1) << 2])
    body = bytes([ask[0], ask[4], _POWER_READING, 0]) + said
    message = head + bytes([-sum(head) & 0xFF]) + body + bytes([-sum(body) & 0xFF])
    return b"\x06\x00\xff\x07" + _PLAIN_IPMI + session + sequence + struct.pack("<H", len(message)) + message
