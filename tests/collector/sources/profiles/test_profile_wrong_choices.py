"""Devices that stand under another family's number: each gets its own profile, or the one of any device."""

from __future__ import annotations

import asyncio

import pytest

from soakwatch.sources.profiles import load_profiles, match

CISCO, NET_SNMP, UBIQUITI = "1.3.6.1.4.1.9", "1.3.6.1.4.1.8072.3.2.10", "1.3.6.1.4.1.41112"
HUAWEI, EXTREME = "1.3.6.1.4.1.2011.2", "1.3.6.1.4.1.1916.2"
LTU, AF60 = f"{UBIQUITI}.1.10.1.3.4.0", f"{UBIQUITI}.1.11.1.2.4.1"
HEADS = load_profiles().heads()

CHOICES = [
    ("Catalyst 1200", f"{CISCO}.1.3186", "Catalyst 1200 Series Smart Switch, 8-port GE, 2x1G Combo", "", "cisco-sb"),
    ("Catalyst 1300", f"{CISCO}.1.3200", "Catalyst 1300 Series Managed Switch, 24-port GE", "", "cisco-sb"),
    ("ESW 500", f"{CISCO}.1.1058", "24-Port 10/100 Switch", "", "cisco-sb"),
    ("CBS 350", f"{CISCO}.6.1.1007.8.1", "CBS350-8P-E-2G 8-Port Gigabit PoE Managed Switch", "", "cisco-sb"),
    ("Catalyst 1000", f"{CISCO}.1.2720", "Cisco IOS Software, C1000 Software, Version 15.2(7)E", "", "cisco-ios"),
    ("CIMC", f"{CISCO}.1.1634", "Cisco Integrated Management Controller(CIMC), Firmware Version 4.0(2)", "", "generic"),
    (
        "UCOS",
        f"{CISCO}.1.1348",
        "Hardware:VMware, 1  Intel(R) Xeon(R), 4096 MB Memory: Software:UCOS 6.0",
        "",
        "generic",
    ),
    ("UCOS 2", f"{CISCO}.1.583", "Hardware:7825I3, 1  Intel(R) Xeon(R): Software:UCOS 4.0.0.0-44", "", "generic"),
    ("ME1200", f"{CISCO}.1.1899", "Cisco ME1200 Ethernet Access Device", "", "generic"),
    ("WAP", f"{CISCO}.6.1.32.4410.1", "Linux Cisco Small Business WAP4410N-A", "", "generic"),
    ("WAP described", f"{CISCO}.1.9999", "Cisco Small Business WAP4410N-A, Version 2.0.5.3", "", "generic"),
    ("SPA phone", f"{CISCO}.6.1.23.1.1.1", "Cisco SPA525G2", "", "generic"),
    ("CBW240", f"{CISCO}.6.1.37.1", "Cisco Business Wireless Access Point 240AC", "", "cisco-wlc"),
    ("iBMC", f"{HUAWEI}.235", "Hardware management system", "", "generic"),
    ("OceanStor", f"{HUAWEI}.91.1", "OceanStor S5500T", "", "generic"),
    ("OptiX RTN", f"{HUAWEI}.25.4", "OptiX RTN 950", "", "generic"),
    (
        "VRP",
        f"{HUAWEI}.224.1",
        "Huawei Versatile Routing Platform Software VRP (R) software,Version 8.1",
        "",
        "huawei-vrp",
    ),
    ("Fabric Engine", f"{EXTREME}.473", "7520-48Y-8C-FabricEngine (9.0.4.0)", "", "extreme-voss"),
    ("XA1440", f"{EXTREME}.364", "XA1440 (8.1.5.0)", "", "extreme-voss"),
    ("ExtremeXOS", f"{EXTREME}.93", "ExtremeXOS (X670V-48x) version 16.2.2.4", "", "extreme-xos"),
    ("FLEX H", NET_SNMP, "USG FLEX 100H", "", "zyxel-zywall"),
    ("UniFi", NET_SNMP, "USG-3P 4.4.57", "", "unifi"),
    ("XClarity", "1.3.6.1.4.1.19046.11.1.1", "Lenovo XClarity Controller", "", "generic"),
    ("ENOS", "1.3.6.1.4.1.19046.1.7.22", "Lenovo RackSwitch G8272", "", "lenovo-enos"),
    ("AT-8000S", "1.3.6.1.4.1.207.1.4.126", "AT-8000S", "", "radlan"),
    ("TQ", "1.3.6.1.4.1.207.1.13.5", "AT-TQ4600 Wireless Access Point", "", "generic"),
    (
        "AlliedWare Plus",
        "1.3.6.1.4.1.207.1.14.120",
        "Allied Telesis router/switch, AW+ v5.4.9",
        "",
        "allied-telesis-awplus",
    ),
    (
        "AOS-W",
        "1.3.6.1.4.1.6486.800.1.1.2.2.2.1.1.7",
        "ArubaOS (MODEL: OAW-4650), Version 6.4.2.5",
        "",
        "aruba-arubaos",
    ),
    (
        "OmniSwitch",
        "1.3.6.1.4.1.6486.800.1.1.2.1.7.1.10",
        "Alcatel-Lucent OS6850-48 6.4.4.743.R01 GA",
        "",
        "alcatel-aos6",
    ),
    (
        "Dell ArubaOS",
        "1.3.6.1.4.1.674.10895.4000",
        "ArubaOS (MODEL: PowerConnect W-650), Version 6.1",
        "",
        "aruba-arubaos",
    ),
    ("airFiber 60", UBIQUITI, "Linux 4.4.242 #1 SMP PREEMPT armv7l", AF60, "ubiquiti-airos"),
    ("airFiber LTU", NET_SNMP, "Linux 3.10.14 #1 armv7l", LTU, "ubiquiti-airos"),
    ("MLOS", NET_SNMP, "Linux host 4.19.232-1.mlos3.x86_64 #1 SMP", "", "linux"),  # which it is
    ("DragonWave", "1.3.6.1.4.1.7262.2.4", "hx50_49_qpsk Omni: 1.3.8", "", "dragonwave-horizon"),
    ("PacketLogic", "1.3.6.1.4.1.15397.2", "Linux", "", "procera-packetlogic"),
]


def chosen(object_id: str, description: str, there: str = "") -> str:
    async def present(oid: str) -> str | None:
        return "there" if oid == there else None

    return asyncio.run(match(object_id, description, present, HEADS)).name


@pytest.mark.parametrize(
    ("object_id", "description", "there", "name"), [c[1:] for c in CHOICES], ids=[c[0] for c in CHOICES]
)
def test_a_device_under_another_families_number_gets_what_it_is(
    object_id: str, description: str, there: str, name: str
) -> None:
    assert chosen(object_id, description, there) == name


def test_slx_is_not_taken_for_extremexos() -> None:
    assert chosen(f"{EXTREME}.306", "Extreme Networks, Inc. SLX9150-48Y Switch, SLX-OS 20.1.1") != "extreme-xos"
