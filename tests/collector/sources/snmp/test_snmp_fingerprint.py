"""What a device tells of itself over SNMP, at a responder on UDP: tables as devices of these kinds serve them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from soakwatch.core.fingerprints import differences, merged
from soakwatch.sources.abc import Fingerprints, SourceContext
from soakwatch.sources.pollers.snmp import start
from soakwatch.sources.transport.snmp.config import Config
from soakwatch_model.tree import Tree, parse_json
from soakwatch_testing.snmp_recording import parse_recording
from soakwatch_testing.snmp_responder import responder

ENTITY = "1.3.6.1.2.1.47.1.1.1.1"
COLUMNS = {"class": 5, "description": 2, "name": 7, "hardware": 8, "firmware": 9, "software": 10, "serial": 11}
COLUMNS |= {"vendor": 12, "model": 13}
SYSTEM = [
    "1.3.6.1.2.1.1.1.0|4|Arista Networks EOS version 4.20.12.1M running on an Arista Networks DCS-7150S-24",
    "1.3.6.1.2.1.1.2.0|6|1.3.6.1.4.1.30065.1.3011.7150.3282.24",
    "1.3.6.1.2.1.1.3.0|67|8640000",
    "1.3.6.1.2.1.1.4.0|4|Jane Doe, +1 555 0100",
    "1.3.6.1.2.1.1.5.0|4|leaf1",
    "1.3.6.1.2.1.1.6.0|4|cellar of the main office",
]


def part(index: int, kind: int, **cells: str) -> list[str]:
    """One row of entPhysicalTable: all its columns, as agents serve them."""
    words = dict.fromkeys(COLUMNS, "") | {"class": str(kind)} | cells
    return [f"{ENTITY}.{arc}.{index}|{2 if name == 'class' else 4}|{words[name]}" for name, arc in COLUMNS.items()]


CHASSIS = part(
    1, 3, description="24-port SFP+ 10GigE 1RU", serial="JPE1", model="DCS-7150S-24", vendor="Arista Networks",
    software="4.20.12.1M", firmware="Aboot-2.0.10", hardware="02.01",
)  # fmt: skip


def told(lines: list[str], version: object = "2c") -> Mapping[str, Tree]:
    """What the poller tells of a device that serves these lines."""

    async def ask(port: int, stack: AsyncExitStack) -> Mapping[str, Tree]:
        keys = {"host": "127.0.0.1", "port": port, "interval": "30s", "profile": "auto", "version": version}
        site = SourceContext("dut", "dut", (), None, Path(), time.time_ns, 30.0)
        poller = await start(Config.model_validate(keys), site, stack)
        await poller.poll(time.time_ns())
        assert isinstance(poller, Fingerprints)
        return await poller.fingerprint()

    async def main() -> Mapping[str, Tree]:
        with responder(parse_recording(lines, "here").rows) as agent:
            async with AsyncExitStack() as stack:
                return await ask(agent.address[1], stack)

    return asyncio.run(main())


def kept(tree: Mapping[str, Tree]) -> dict[str, Tree]:
    """As the engine keeps it in the record."""
    plain = parse_json(json.dumps(tree))
    assert isinstance(plain, dict)
    return merged([("snmp", plain)])


def named(section: Tree) -> dict[str, dict[str, Tree]]:
    assert isinstance(section, list)
    return {str(row["name"]): row for row in section if isinstance(row, dict)}


def test_a_switch_tells_chassis_power_supplies_and_optics_and_no_sensors() -> None:
    lines = SYSTEM + CHASSIS
    lines += part(2, 6, name="PowerSupply1", serial="K1", model="PWR-460AC-F")
    lines += part(3, 7, name="Fan1", model="FAN-7000")
    lines += part(4, 9, name="empty slot")  # says nothing of itself
    lines += part(
        5, 9, name="module mau 0/0", description="10GBASE-LR SFP+ Module for SMF", serial="S1", model="SFP-10G-LR"
    )
    lines += part(6, 9, name="0/PM0-IDPROM", serial="K1", model="PWR-460AC-F")
    lines += part(7, 5, description="Xcvr for Ethernet1", serial="X1", model="SFP-1G-T")
    lines += part(8, 5, description="Power supply slot", serial="N/A")
    lines += part(9, 9, name="module 0", description="20-port 10GBASE SFP+ line card", serial="L1", model="LC-20")
    for index in range(100, 130):
        lines += part(index, 8, description=f"sensor {index}", serial="not of interest")
        lines += part(index + 100, 10, name=f"Ethernet{index}")
    tree = told(lines)
    device = tree["device"]
    assert isinstance(device, dict)
    assert {key: device[key] for key in ("vendor", "model", "serial", "software", "firmware", "uptime_s")} == {
        "vendor": "Arista Networks", "model": "DCS-7150S-24", "serial": "JPE1", "software": "4.20.12.1M",
        "firmware": "Aboot-2.0.10", "uptime_s": 86400,
    }  # fmt: skip
    assert device["name"] == "leaf1"
    assert device["profile"] == "arista-eos"
    assert set(named(tree["modules_hw"])) == {"24-port SFP+ 10GigE 1RU", "PowerSupply1", "Fan1", "module 0"}
    assert named(tree["transceivers"])["Xcvr for Ethernet1"] == {
        "name": "Xcvr for Ethernet1", "serial": "X1", "model": "SFP-1G-T"
    }  # fmt: skip
    assert set(named(tree["transceivers"])) == {"Xcvr for Ethernet1", "module mau 0/0"}
    assert tree["notes"] == ["licences: not read over SNMP"]
    assert "Jane" not in str(tree)
    assert "cellar" not in str(tree)


def test_another_optic_and_another_software_are_differences_and_the_uptime_is_none() -> None:
    optic = part(5, 10, name="Ethernet1", serial="S1", model="SFP-10G-LR")
    later = [line.replace("S1", "S2").replace("|8640000", "|8643000") for line in SYSTEM + CHASSIS + optic]
    begin = told(SYSTEM + CHASSIS + optic, version=1)  # of which the table is the last: an error ends it
    end = told(later)
    assert differences(kept(begin), kept(end)) == {"transceivers Ethernet1 serial": "S1 -> S2"}


def test_what_the_agent_does_not_have_is_a_note() -> None:
    tree = told([*SYSTEM[:1], "1.3.6.1.2.1.1.2.0|6|1.3.6.1.4.1.6527.1.1", *SYSTEM[2:]])
    assert "modules_hw" not in tree
    notes = tree["notes"]
    assert isinstance(notes, list)
    assert "hardware modules, transceivers: the agent has no entPhysicalTable (ENTITY-MIB)" in notes
    assert "serial: the device does not tell it over SNMP" in notes


def test_junos_tells_its_parts_by_its_own_table() -> None:
    base = "1.3.6.1.4.1.2636.3.1.8.1"
    lines = ["1.3.6.1.2.1.1.1.0|4|Juniper Networks, Inc. qfx5100-48s-6q Ethernet Switch, kernel JUNOS 17.3R3-S3.3"]
    lines += ["1.3.6.1.2.1.1.2.0|6|1.3.6.1.4.1.2636.1.1.1.4.82.8", *SYSTEM[2:], "1.3.6.1.4.1.2636.3.1.3.0|4|TA37"]
    rows = {"2.1.1.0": ("Power Supply 0 @ 0/0/*", "1GA1", "REV 04"), "9.1.0.0": ("Routing Engine 0", "BUILTIN", "")}
    for index, cells in rows.items():
        lines += [f"{base}.{arc}.{index}|4|{words}" for arc, words in zip((6, 7, 8), cells, strict=True)]
    tree = told(lines)
    assert named(tree["modules_hw"]) == {
        "Power Supply 0 @ 0/0/*": {"name": "Power Supply 0 @ 0/0/*", "serial": "1GA1", "hardware": "REV 04"}
    }
    device = tree["device"]
    assert isinstance(device, dict)
    assert (device["vendor"], device["serial"]) == ("Juniper Networks", "TA37")
