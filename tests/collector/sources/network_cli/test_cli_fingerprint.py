"""What a device tells of itself at its command line: the parsers, and a whole session on a real SSH server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.collector.sources.network_cli.conftest import Clock, output, with_poller
from tests.commands import MAX_WAIT_S

from soakwatch.sources.abc import Fingerprints, Poller
from soakwatch.sources.platforms import cli_inventory
from soakwatch.sources.platforms.guard import refusal
from soakwatch.sources.profiles import loading as platforms
from soakwatch_model.tree import Tree
from soakwatch_testing.cli_device import CliDevice

IOS_INVENTORY = """NAME: "Chassis", DESCR: "Cisco ISR4331 Chassis"
PID: ISR4331/K9        , VID: V05  , SN: FDO00000AAA

NAME: "Power Supply Module 0", DESCR: "250W AC Power Supply for Cisco ISR 4330"
PID: PWR-4330-AC       , VID: V03  , SN: PST0001

NAME: "NIM subslot 0/0", DESCR: "Front Panel 3 ports Gigabitethernet Module"
PID: ISR4331-3x1GE     , VID: V01  , SN:

NAME: "subslot 0/0 transceiver 1", DESCR: "GE SX"
PID: GLC-SX-MMD        , VID: V01  , SN: AGJ0001
"""
IOS_LICENSE = """License Usage:
  License                 Entitlement Tag               Count Status
  -----------------------------------------------------------------------------
  appxk9                  (ISR_4331_Application)            1 IN USE
"""
JUNOS_HARDWARE = """Hardware inventory:
Item             Version  Part number  Serial number     Description
Chassis                                TA3710000001      QFX5100-48S-6Q
Routing Engine 0          BUILTIN      BUILTIN           QFX Routing Engine
FPC 0            REV 09   650-064381   TA3710000001      QFX5100-48S-6Q
  PIC 0                   BUILTIN      BUILTIN           48x10G-6x40G
    Xcvr 0       REV 01   740-031980   B11D00001         SFP+-10G-SR
    Xcvr 1       REV 01   740-031980   B11D00002         SFP+-10G-SR
Power Supply 0   REV 04   740-044332   1GA00000001       JPSU-650W-AC-AFO
"""
JUNOS_LICENSE = """License usage:
                                 Licenses     Licenses    Licenses    Expiry
  Feature name                       used    installed      needed
  bgp                                   1            1           0    permanent

Licenses installed: none
"""
EOS_INVENTORY = {
    "systemInformation": {
        "name": "DCS-7150S-24",
        "description": "24-port SFP+",
        "hardwareRev": "02.01",
        "serialNum": "J1",
    },
    "powerSupplySlots": {"1": {"name": "PWR-460AC-F", "serialNum": "K1"}},
    "fanTraySlots": {"1": {"name": "FAN-7000-F", "serialNum": "N/A", "numFans": 1}},
    "xcvrSlots": {
        "1": {"mfgName": "Arista Networks", "modelName": "SFP-10G-SR", "serialNum": "X1", "hardwareRev": "0002"},
        "2": {"mfgName": "Not Present", "modelName": "", "serialNum": "", "hardwareRev": ""},
    },
}
VRP_TRANSCEIVER = """GigabitEthernet0/0/1 transceiver information:
-------------------------------------------------------------
Common information:
  Transceiver Type               :1000_BASE_LX_SFP
  Vendor Name                    :HUAWEI
  Vendor Part Number             :SFP-GE-LX
-------------------------------------------------------------
Manufacture information:
  Manu. Serial Number            :T0001
  Manufacturing Date             :2020-01-01
"""
COMWARE = """Slot 1 CPU 0:
 DEVICE_NAME          : A5500-24G-EI
 DEVICE_SERIAL_NUMBER : CN50000001
 MAC_ADDRESS          : 0000-0000-0001
 VENDOR_NAME          : HP
Power 1:
 The operation is not supported on the specified power.
"""
FORTI = """Version: FortiGate-60F v7.2.6,build1575,230926 (GA.F)
Virus-DB: 91.00001(2024-01-01 01:00)
Serial-Number: FGT60F0000000001
BIOS version: 05000016
Hostname: fgt1
Current HA mode: standalone
License Status: Valid
"""


def named(section: Tree) -> dict[str, dict[str, Tree]]:
    assert isinstance(section, list)
    return {str(row["name"]): row for row in section if isinstance(row, dict)}


def told(device: CliDevice, folder: Path, driver: str) -> Mapping[str, Tree]:
    """What the poller tells after its polls."""
    got: list[Mapping[str, Tree]] = []

    async def ask(poller: Poller, clock: Clock) -> None:
        await poller.poll(clock.now)
        assert isinstance(poller, Fingerprints)
        got.append(await poller.fingerprint())

    asyncio.run(with_poller(device, folder, ask, os=driver, interval="5s"))
    return got[0]


def ios(**answers: str) -> CliDevice:
    known = ("show processes cpu", "show processes memory", "show interfaces", "show version")
    texts = {text: output("cisco-ios", text.replace(" ", "_")) for text in known}
    return CliDevice(
        prompt="edge1{mark}",
        answers={**texts, "show inventory": IOS_INVENTORY, **answers},
        unpage=("terminal length 0", "terminal width 511"),
        refusal="             ^\n% Invalid input detected at '^' marker.\n",
        version="Cisco-1.25",
    )


def test_ios_tells_chassis_parts_optics_and_what_it_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("soakwatch.sources.transport.network_cli.cli_poller._ROOM_S", 0.0)  # no other poll is to come
    tree = told(ios(), tmp_path, "cisco-ios")
    device = tree["device"]
    assert isinstance(device, dict)
    wanted = {
        "name": "edge1", "model": "ISR4331/K9", "serial": "FDO00000AAA", "firmware": "IOS-XE ROMMON",
        "boot_image": "bootflash:isr4300-universalk9.16.09.05.SPA.bin",
    }  # fmt: skip
    assert {key: device.get(key) for key in wanted} == wanted
    assert device["software"]
    assert device["uptime_s"] == (17 * 24 + 1) * 3600 + 300
    assert named(tree["modules_hw"])["Power Supply Module 0"]["serial"] == "PST0001"
    assert set(named(tree["transceivers"])) == {"subslot 0/0 transceiver 1"}
    notes = tree["notes"]
    assert isinstance(notes, list)
    assert any(str(note).startswith("the device refuses 'show license summary': ") for note in notes)


def test_polls_and_questions_take_turns_in_one_session(tmp_path: Path) -> None:
    device = ios(**{"show license summary": IOS_LICENSE})

    async def both(poller: Poller, clock: Clock) -> None:
        await poller.poll(clock.now)
        assert isinstance(poller, Fingerprints)
        asked = asyncio.create_task(poller.fingerprint())
        while not asked.done():
            clock.sleep(1)
            assert (await poller.poll(clock.now)).samples
        licences = named((await asked)["licences"])
        assert licences["appxk9"]["state"] == "(ISR_4331_Application) 1 IN USE"

    asyncio.run(with_poller(device, tmp_path, both, os="cisco-ios"))
    assert device.sessions == 1


def test_a_question_that_has_not_ended_when_a_poll_is_due_gives_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`show inventory` of a large chassis: the poll logs in anew, and does not wait for the end of a question."""
    monkeypatch.setattr("soakwatch.sources.transport.network_cli.cli_poller._ABOUT_S", 10 * MAX_WAIT_S)
    device = ios()
    device.silent.add("show inventory")

    async def both(poller: Poller, clock: Clock) -> None:
        await poller.poll(clock.now)
        assert isinstance(poller, Fingerprints)
        asked = asyncio.create_task(poller.fingerprint())
        await asyncio.sleep(3.0)
        clock.sleep(3)
        async with asyncio.timeout(MAX_WAIT_S):
            assert (await poller.poll(clock.now)).samples
        notes = (await asked)["notes"]
        assert isinstance(notes, list)
        assert any("'show inventory' and what follows it were not read" in str(note) for note in notes)

    asyncio.run(with_poller(device, tmp_path, both, interval_s=3.0, os="cisco-ios"))
    assert device.sessions == 2


def test_a_command_that_hangs_ends_the_questions_and_not_the_polls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("soakwatch.sources.transport.network_cli.cli_poller._ABOUT_S", 0.5)
    monkeypatch.setattr("soakwatch.sources.transport.network_cli.cli_poller._ROOM_S", 0.0)
    device = ios()
    device.silent.add("show inventory")
    tree: list[Mapping[str, Tree]] = []

    async def ask(poller: Poller, clock: Clock) -> None:
        await poller.poll(clock.now)
        assert isinstance(poller, Fingerprints)
        tree.append(await poller.fingerprint())
        clock.sleep(60)
        assert (await poller.poll(clock.now)).samples

    asyncio.run(with_poller(device, tmp_path, ask, os="cisco-ios", interval="5s"))
    assert "modules_hw" not in tree[0]
    notes = tree[0]["notes"]
    assert isinstance(notes, list)
    assert str(notes[0]).startswith("'show inventory' and what follows it were not read: ")


def test_junos_hardware_names_parts_by_their_place() -> None:
    tree = cli_inventory.junos_hardware(JUNOS_HARDWARE)
    assert tree["device"] == {"serial": "TA3710000001"}
    assert named(tree["modules_hw"])["FPC 0"]["hardware"] == "REV 09"
    assert named(tree["modules_hw"])["FPC 0 PIC 0"] == {"name": "FPC 0 PIC 0", "description": "48x10G-6x40G"}
    assert named(tree["transceivers"])["FPC 0 PIC 0 Xcvr 1"] == {
        "name": "FPC 0 PIC 0 Xcvr 1", "description": "SFP+-10G-SR", "hardware": "REV 01", "model": "740-031980",
        "serial": "B11D00002",
    }  # fmt: skip
    assert cli_inventory.license_table(JUNOS_LICENSE) == {"licences": [{"name": "bgp", "state": "1 1 0 permanent"}]}


def test_eos_inventory_leaves_empty_cages_out() -> None:
    tree = cli_inventory.eos_inventory(json.dumps(EOS_INVENTORY))
    assert tree["device"] == {"serial": "J1"}
    assert set(named(tree["modules_hw"])) == {"Chassis", "Power supply 1", "Fan tray 1"}
    assert named(tree["transceivers"]) == {
        "Ethernet1": {
            "name": "Ethernet1", "vendor": "Arista Networks", "model": "SFP-10G-SR", "serial": "X1", "hardware": "0002"
        }
    }  # fmt: skip


def test_the_others() -> None:
    assert cli_inventory.transceivers(VRP_TRANSCEIVER) == {
        "transceivers": [
            {"name": "GigabitEthernet0/0/1", "description": "1000_BASE_LX_SFP", "vendor": "HUAWEI",
             "model": "SFP-GE-LX", "serial": "T0001"}
        ]
    }  # fmt: skip
    assert cli_inventory.vrp_esn("ESN of slot 0: 2102351931P0C3000001\n") == {
        "device": {"serial": "2102351931P0C3000001"}
    }
    assert cli_inventory.comware_manuinfo(COMWARE) == {
        "modules_hw": [{"name": "Slot 1 CPU 0", "model": "A5500-24G-EI", "serial": "CN50000001", "vendor": "HP"}],
        "device": {"serial": "CN50000001"},
    }
    forti = cli_inventory.fortios_status(FORTI)
    assert forti["licences"] == [{"name": "device", "state": "Valid"}]
    device = forti["device"]
    assert isinstance(device, dict)
    assert (device["firmware"], device["ha_mode"]) == ("05000016", "standalone")
    assert device["contents"] == {"virus-db": "91.00001(2024-01-01 01:00)"}
    panos = cli_inventory.panos_info(output("paloalto-panos", "show_system_info"))["device"]
    assert isinstance(panos, dict)
    assert (panos["serial"], panos["software"], panos["app_version"]) == ("012345678901", "10.1.6", "8550-7333")


@pytest.mark.parametrize("name", platforms.platform_names())
def test_only_questions_are_asked_and_nonsense_tells_nothing(name: str) -> None:
    for question, read in platforms.platform(name).parts.items():
        assert refusal(question) is None
        for text in ("", "\x00" * 50, "---- ----\n: : :\n", '{"xcvrSlots": [1]}', "x" * 10_000):
            assert read(text) == {}
