"""Profiles of network vendors: what is recognised, what its log says, and that no line can hold the listener up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from soakwatch.sources.profiles import load_profiles, match

ENTERPRISES = "1.3.6.1.4.1."
PROFILES = load_profiles()
HEADS = PROFILES.heads()
PARTS = ("_checkpoint", "_cisco", "_fortinet")

IOS = "Cisco IOS Software, C2960X Software (C2960X-UNIVERSALK9-M), Version 15.2(4)E7, RELEASE SOFTWARE (fc2)"
IOSXE = "Cisco IOS Software [Cupertino], Catalyst L3 Switch Software (CAT9K_IOSXE), Version 17.9.4a, RELEASE SOFTWARE"
CSR = "Cisco IOS Software, CSR1000V Software (X86_64_LINUX_IOSD-UNIVERSALK9-M), Version 15.5(1)S1"
NXOS = "Cisco NX-OS(tm) n7000, Software (n7000-s1-dk9), Version 6.2(16), RELEASE SOFTWARE Copyright (c) 2002-2013"
JUNOS = "Juniper Networks, Inc. mx480 internet router, kernel JUNOS 20.4R3.8, Build date: 2021-08-20"
BY: tuple[tuple[str, str, str], ...] = (  # sysObjectID under 1.3.6.1.4.1, sysDescr, profile
    ("9.1.1208", IOS, "cisco-ios"),
    ("9.1.620", "Cisco Internetwork Operating System Software IOS (tm) 1841 Software, Version 12.3(8r)T8", "cisco-ios"),
    ("9.1.9999", "somebody's own words", "cisco-ios"),
    ("9.1.2494", IOSXE, "cisco-iosxe"),
    ("9.1.1537", CSR, "cisco-iosxe"),
    ("9.1.2683", "Cisco IE3200-8T2S our switch", "cisco-iosxe"),
    ("9.1.1639", "Cisco IOS XR Software (Cisco ASR9K Series),  Version 6.1.3[Default]", "cisco-iosxr"),
    ("9.12.3.1.3.612", NXOS, "cisco-nxos"),
    ("9.12.3.1.3.1626", "Cisco NX-OS(tm) aci, Software (aci-n9000-system), Version 14.2(7q)", "cisco-aci"),
    ("9.1.1902", "Cisco Adaptive Security Appliance Version 9.8(4)", "cisco-asa"),
    ("9.1.2406", "Cisco Firepower Threat Defense, Version 6.6.1 (Build 91), ASA Version 9.14(1)150", "cisco-ftd"),
    ("9.12.3.1.3.1541", "Cisco FX-OS(tm) Firepower 9300", "cisco-fxos"),
    ("9.6.1.83.28.5", "SG300-28 28-Port Gigabit Managed Switch", "cisco-sb"),
    ("9.1.1069", "Cisco Controller", "cisco-wlc"),
    ("15497.1.1", "Cisco IronPort Model C370, AsyncOS Version: 9.7.1-066, Serial #: X", "cisco-asyncos"),
    ("9.1.2139", "Cisco Identity Services Engine", "cisco-ise"),
    ("41916.3.1.1.1.3.17", "Viptela SNMP agent", "cisco-viptela"),
    ("2636.1.1.1.2.25", JUNOS, "juniper-junos"),
    ("2636.1.1.1.4.141.1", "Juniper Networks, Inc. qfx5130 Ethernet Switch, kernel JUNOS 21.4R1-EVO", "juniper-junos"),
    ("3224.1.51", "SSG-140 version 6.3.0r22.0 (SN: 0185092011000123, Firewall+VPN)", "juniper-screenos"),
    ("30065.1.3011.7280.3735.48", "Arista Networks EOS version 4.28.3M running on an Arista DCS-7280R", "arista-eos"),
    ("12356.101.1.1004", "", "fortinet-fortigate"),
    ("12356.106.5.1241", "FortiSwitch-124D-POE v3.6.11", "fortinet-fortiswitch"),
    ("12356.105", "FortiMail", "fortinet-fortimail"),
    ("12356.107.1.50001", "FortiWeb", "fortinet-fortiweb"),
    ("12356.112", "FortiADC", "fortinet-fortiadc"),
    ("12356.103.1.1000", "FortiManager", "fortinet-fortianalyzer"),
    ("12356.102.1.1000", "FortiAnalyzer", "fortinet-fortianalyzer"),
    ("12356.113.1.1", "FAC", "fortinet-fortiauthenticator"),
    ("12356.118.1.1", "FSA", "fortinet-fortisandbox"),
    ("25461.2.3.29", "Palo Alto Networks VM-Series firewall", "paloalto-panos"),
    ("2620.1.6.123.1.62", "Linux gw 3.10.0-957.21.3cpx86_64 #1 SMP", "checkpoint-gaia"),
    ("3375.2.1.3.4.43", "Linux bigip 3.10.0-862.14.4.el7.ve.x86_64", "f5-bigip"),
    ("12276.1.3.1.4", "Linux 3.10.0 : Appliance services version 1.3.2-13054", "f5-os"),
    ("6527.1.3.8", "TiMOS-C-20.10.R6 cpm/hops64 Nokia 7750 SR Copyright (c) 2000-2021 Nokia.", "nokia-timos"),
    ("6527.6.1.1.2.16", "TiMOS-B-21.10.R1 both/hops Nokia 7705 SAR", "nokia-timos"),
    ("6527.1.20.22", "SRLinux-v22.6.1-281-g705a8c2fdb 7220 IXR-D2", "nokia-srlinux"),
    ("637.61.1", "R6.2.04m NFXS-A FANT-F ISAM", "nokia-isam"),
    (
        "2011.2.23.339",
        "S5720-28X Huawei Versatile Routing Platform Software VRP (R) software,Version 5.170",
        "huawei-vrp",
    ),
    ("2011.2.123", "Huawei Integrated Access Software", "huawei-smartax"),
    ("2011.2.248", "Huawei Integrated Access Software", "huawei-smartax"),
    ("25506.11.1.89", "HPE Comware Platform Software, Software Version 7.1.070, Release 6127HH", "hpe-comware"),
    ("11.2.3.7.11.144", "HP Comware Platform Software, Software Version 5.20.99", "hpe-comware"),
    ("11.2.3.7.11.160", "HP J9773A 2530-24G-PoEP Switch, revision YA.16.02.0022", "hpe-procurve"),
    ("47196.4.1.1.1.50", "Aruba JL635A  GL.10.06.0010", "aruba-aoscx"),
    ("14823.1.1.48", "ArubaOS (MODEL: Aruba7210), Version 8.6.0.4", "aruba-arubaos"),
    ("1991.1.3.62.1.1", "Ruckus Wireless, Inc. ICX7150-48P, IronWare Version 08.0.80aT211", "ruckus-icx"),
    ("1588.2.1.1.1", "Fibre Channel Switch.", "brocade-fos"),
    ("1916.2.167", "ExtremeXOS (X670G2-48x-4q) version 22.5.1.7 by release-manager", "extreme-xos"),
    ("1916.2.386", "5520-24W-FabricEngine Fabric Engine (8.3.0.0)", "extreme-voss"),
    ("2272.209", "VSP-8284XSQ (7.1.0.0)", "extreme-voss"),
    ("45.3.74.1", "Ethernet Routing Switch 4550T-PWR HW:00 FW:5.3.0.3 SW:v5.6.0.008", "avaya-ers"),
    ("22610.1.3.13", "AX Series Advanced Traffic Manager AXvThunder, ACOS 2.7.2-P4-SP1,", "a10-acos"),
)


async def _absent(_: str) -> str | None:
    return None


@pytest.mark.parametrize(("arcs", "description", "name"), BY, ids=[f"{name}-{arcs}" for arcs, _, name in BY])
def test_a_device_is_recognised_among_all_profiles(arcs: str, description: str, name: str) -> None:
    """By sysObjectID and sysDescr, among everything that is shipped."""
    chosen = asyncio.run(match(ENTERPRISES + arcs, description, _absent, HEADS))
    assert chosen.name == name, chosen.why


@pytest.mark.parametrize(("words", "name"), [("Gaia", "checkpoint-gaia"), ("SecurePlatform Pro", "checkpoint-splat")])
def test_a_check_point_behind_net_snmp_is_recognised_by_what_it_answers(words: str, name: str) -> None:
    async def present(oid: str) -> str | None:
        return words if oid == "1.3.6.1.4.1.2620.1.6.5.1.0" else None

    chosen = asyncio.run(match("1.3.6.1.4.1.8072.3.2.10", "Linux fw 2.6.18-92cp #1 SMP", present, HEADS))
    assert chosen.name == name, chosen.why


SAYS: tuple[tuple[str, str, str, Mapping[str, str]], ...] = (
    ("cisco-ios", "%SYS-5-RESTART: System restarted --", "reboot", {}),
    (
        "cisco-ios",
        "%SYS-5-RELOAD: Reload requested by admin on vty0. Reload Reason: patch.",
        "reboot.requested",
        {"reason": "Reload requested by admin on vty0. Reload Reason: patch."},
    ),
    (
        "cisco-ios",
        "%SYS-2-MALLOCFAIL: Memory allocation of 65536 bytes failed from 0x8038",
        "memory.low",
        {"bytes": "65536"},
    ),
    ("cisco-ios", "%SYS-3-CPUHOG: Task is running for (2004)msecs, more than (2000)msecs", "cpu.hog", {}),
    ("cisco-ios", "%SYS-1-CPURISINGTHRESHOLD: Threshold: Total CPU Utilization(Total/Intr): 96%/2%", "cpu.hog", {}),
    (
        "cisco-ios",
        "%LINK-3-UPDOWN: Interface GigabitEthernet0/1, changed state to down",
        "link.down",
        {"interface": "GigabitEthernet0/1"},
    ),
    ("cisco-ios", "%HSRP-5-STATECHANGE: Vlan10 Grp 1 state Standby -> Active", "failover", {}),
    ("cisco-ios", "%REDUNDANCY-3-SWITCHOVER: RP switchover (PEER_DOWN_INTERRUPT)", "failover", {}),
    ("cisco-ios", "%SYS-5-CONFIG_I: Configured from console by admin", "config.change", {}),
    (
        "cisco-iosxe",
        "%PMAN-3-PROCHOLDDOWN: R0/0: pman: The process cpp_ucode has been helddown (rc 134)",
        "process.crash",
        {"process": "cpp_ucode"},
    ),
    (
        "cisco-iosxr",
        "%OS-SYSMGR-3-ERROR : bgp(1) (jid 1052) abnormally terminated, restart scheduled",
        "process.crash",
        {"process": "bgp"},
    ),
    (
        "cisco-iosxr",
        "%PKT_INFRA-LINK-3-UPDOWN : Interface GigabitEthernet0/0/0/1, changed state to Down",
        "link.down",
        {"interface": "GigabitEthernet0/0/0/1"},
    ),
    (
        "cisco-nxos",
        '%SYSMGR-2-SERVICE_CRASHED: Service "bgp" (PID 4371) hasn\'t caught signal 11 (core will be saved).',
        "process.crash",
        {"process": "bgp", "pid": "4371"},
    ),
    (
        "cisco-nxos",
        "%PLATFORM-2-MEMORY_ALERT: Memory Status Alert : CRITICAL. Usage 91% of Available Memory",
        "memory.low",
        {},
    ),
    ("cisco-asa", "%ASA-1-104001: (Secondary) Switching to ACTIVE - HELLO not heard from mate.", "failover", {}),
    ("cisco-asa", "%ASA-1-105005: (Primary) Lost Failover communications with mate on interface in", "failover", {}),
    ("cisco-asa", "%ASA-3-211001: Memory allocation Error", "memory.low", {}),
    ("cisco-asa", "%ASA-3-211002: CPU utilization for 5 minutes = 99%", "cpu.hog", {}),
    ("cisco-asa", "%ASA-6-199002: Startup completed. Beginning operation.", "reboot", {}),
    ("cisco-sb", "%LINK-W-Down:  gi1/0/3", "link.down", {"interface": "gi1/0/3"}),
    (
        "juniper-junos",
        "init: routing (PID 4421) terminated by signal number 6. Core dumped!",
        "process.crash",
        {"process": "routing", "pid": "4421", "signal": "6"},
    ),
    (
        "juniper-junos",
        "/kernel: pid 4421 (rpd), uid 0: exited on signal 6 (core dumped)",
        "core.dump",
        {"process": "rpd", "pid": "4421"},
    ),
    (
        "juniper-junos",
        ("mib2d[1420]: SNMP_TRAP_LINK_DOWN: ifIndex 531, ifAdminStatus up(1), ifOperStatus down(2), ifName xe-0/0/3"),
        "link.down",
        {"interface": "xe-0/0/3"},
    ),
    ("juniper-junos", "rpd[1400]: RPD_SCHED_SLIP: 6 sec 241 ms scheduler slip, user: 5 sec", "cpu.hog", {}),
    (
        "juniper-junos",
        "alarmd[1511]: Alarm set: RE color=YELLOW, class=CHASSIS, reason=Host 0 fxp0 Link Down",
        "hardware.fault",
        {},
    ),
    ("juniper-junos", "mgd[2210]: UI_COMMIT: User 'lab' requested 'commit' operation", "config.change", {}),
    (
        "arista-eos",
        "ProcMgr-worker: %PROCMGR-6-PROCESS_TERMINATED: 'Bgp' (PID=2511, status=139) has terminated.",
        "process.crash",
        {"process": "Bgp", "pid": "2511"},
    ),
    (
        "arista-eos",
        "kernel: [99.1] Out of memory: Kill process 1811 (Sysdb) score 402",
        "kernel.oom",
        {"process": "Sysdb"},
    ),
    (
        "arista-eos",
        "Ebra: %LINEPROTO-5-UPDOWN: Line protocol on Interface Ethernet5, changed state to down",
        "link.down",
        {"interface": "Ethernet5"},
    ),
    (
        "fortinet-fortigate",
        (
            'date=2024-01-02 logid="0100022011" type="event" logdesc="Memory conserve mode entered" '
            'msg="Kernel enters memory conserve mode"'
        ),
        "memory.low",
        {"reason": "Kernel enters memory conserve mode"},
    ),
    (
        "fortinet-fortigate",
        (
            'logid="0100032545" logdesc="Application crashed" action="crash" msg="Pid: 00182, '
            'application: wad, Signal 11 received"'
        ),
        "process.crash",
        {},
    ),
    (
        "fortinet-fortigate",
        ("3: 2024-01-02 03:04:05 <00182> application wad *** signal 11 (Segmentation fault) received ***"),
        "process.crash",
        {"process": "wad", "signal": "11"},
    ),
    (
        "fortinet-fortigate",
        ('logid="0108037893" logdesc="HA member state changed" msg="Virtual cluster\'s member state moved"'),
        "failover",
        {"reason": "Virtual cluster's member state moved"},
    ),
    (
        "paloalto-panos",
        (
            "1,2024/01/02 03:04:05,001,SYSTEM,ha,0,2024/01/02 03:04:05,,state-change,,0,0,general,critical,"
            '"HA Group 1: Moved from state Passive to state Active"'
        ),
        "failover",
        {},
    ),
    (
        "paloalto-panos",
        (
            "1,2024/01/02 03:04:05,001,SYSTEM,general,0,,,general,,0,0,general,high,"
            '"useridd: Exited 4 times, must be manually recovered."'
        ),
        "process.crash",
        {"process": "useridd"},
    ),
    (
        "checkpoint-gaia",
        "kernel: Out of memory: Kill process 8123 (fwk0_dev) score 902",
        "kernel.oom",
        {"process": "fwk0_dev"},
    ),
    (
        "checkpoint-gaia",
        "kernel: [fw4_1];CLUS-114802-1: State change: STANDBY -> ACTIVE! | Reason: No other ACTIVE",
        "failover",
        {},
    ),
    (
        "f5-bigip",
        "sod[5110]: 01140029:5: HA daemon_heartbeat mcpd fails action is go offline.",
        "process.crash",
        {"process": "mcpd"},
    ),
    ("f5-bigip", "sod[5110]: 010c0019:5: Active for traffic group traffic-group-1.", "failover", {}),
    ("f5-bigip", "tmm[11021]: 01010029:5: Clock advanced by 2108 ticks", "watchdog", {"ticks": "2108"}),
    (
        "nokia-timos",
        ("TMNX: 210 Base CHASSIS-MINOR-tmnxEqPowerSupplyFailure-2005 [Power Supply 2]:  Power supply 2, DC failure"),
        "hardware.fault",
        {"place": "Power Supply 2"},
    ),
    (
        "nokia-timos",
        "TMNX: 212 Base CHASSIS-MAJOR-tmnxEqCardFailure-2001 [Card 3]:  Class IO Module : failed",
        "device.crash",
        {"place": "Card 3", "reason": "Class IO Module : failed"},
    ),
    (
        "huawei-vrp",
        (
            "%%01IFNET/2/linkDown_active(l)[15]:Interface 3 turned into DOWN state. Interface GE0/0/1 has "
            "turned into DOWN state."
        ),
        "link.down",
        {},
    ),
    ("huawei-vrp", "%%01VOSCPU/4/CPU_USAGE_HIGH(l)[5]:The CPU is overloaded, and the tasks are", "cpu.hog", {}),
    (
        "hpe-comware",
        "%%10IFNET/3/PHY_UPDOWN: Physical state on the interface GigabitEthernet1/0/5 changed to down.",
        "link.down",
        {"interface": "GigabitEthernet1/0/5"},
    ),
    ("hpe-comware", "%%10DEV/1/BOARD_REMOVED: Board was removed from slot 2", "hardware.fault", {}),
    ("hpe-procurve", "00077 ports: port A5 is now off-line", "link.down", {"interface": "A5"}),
    (
        "aruba-aoscx",
        "Event|403|LOG_INFO|AMM|1/1|Link status for interface 1/1/4 is down",
        "link.down",
        {"interface": "1/1/4"},
    ),
    ("ruckus-icx", "System: Interface ethernet 1/1/3, state down - link down", "link.down", {"interface": "1/1/3"}),
    ("ruckus-icx", "System: Warm start", "reboot", {"reason": "Warm start"}),
    ("extreme-xos", "<Erro:EPM.crash> Process bgp", "process.crash", {"process": "bgp"}),
    ("extreme-xos", "<Info:vlan.msgs.portLinkStateDown> Port 1:5 link down", "link.down", {"interface": "1:5"}),
    ("a10-acos", "[SYSTEM]:The system is going to reboot now", "reboot.requested", {}),
)
QUIET: tuple[tuple[str, str], ...] = (
    ("cisco-ios", "%SEC-6-IPACCESSLOGP: list 101 denied tcp 198.18.0.1(80) -> 198.18.0.2(90), 1 packet"),
    ("cisco-asa", "%ASA-6-302013: Built outbound TCP connection 12 for outside:198.18.0.1/80"),
    ("juniper-junos", "sshd[1212]: Accepted publickey for lab from 198.18.0.9 port 51111 ssh2"),
    ("arista-eos", "Aaa: %AAA-5-LOGIN: user admin logged in [from: 198.18.0.9] [service: sshd]"),
    ("fortinet-fortigate", 'logid="0000000013" type="traffic" subtype="forward" action="close" srcip=198.18.0.9'),
    ("paloalto-panos", "1,2024/01/02 03:04:05,001,TRAFFIC,end,0,2024/01/02 03:04:05,198.18.0.1,198.18.0.2"),
    ("checkpoint-gaia", "sshd[1]: session opened for user admin"),
    ("extreme-xos", "<Info:AAA.authPass> Login passed for user admin through ssh"),
)


def _heard(name: str, line: str) -> tuple[str, Mapping[str, str | None]]:
    for log in PROFILES.part(name).logs:
        if (hit := log.match.search(line)) is not None:
            return log.kind, hit.groupdict()
    return "", {}


@pytest.mark.parametrize(("name", "line", "kind", "detail"), SAYS, ids=[f"{n}-{line[:40]}" for n, line, _, _ in SAYS])
def test_a_line_of_the_log_means_an_event(name: str, line: str, kind: str, detail: Mapping[str, str]) -> None:
    heard, details = _heard(name, line)
    assert heard == kind
    assert {key: details.get(key) for key in detail} == dict(detail)


@pytest.mark.parametrize(("name", "line"), QUIET, ids=[name for name, _ in QUIET])
def test_everyday_lines_mean_nothing(name: str, line: str) -> None:
    assert _heard(name, line) == ("", {})


OWN = tuple(dict.fromkeys((*PARTS, *(name for _, _, name in BY), "checkpoint-splat")))


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_a_long_hostile_line_is_soon_done_with(name: str) -> None:
    """Every pattern, on what nearly matches repeatedly: one that tries each position again three deep would not end."""
    lines = [line for profile, line, _, _ in SAYS if profile == name] or [line for _, line, _, _ in SAYS[::4]]
    for log in PROFILES.part(name).logs:
        for line in lines:
            for piece in (line[:12], line[: len(line) // 2], line[:-3] + " ", "a", "a ", "%a-1-"):
                log.match.search((piece * 4000)[:4000])


def test_notifications_of_failovers_and_faults() -> None:
    kinds = {name: {trap.oid: trap.kind for trap in PROFILES[name].traps} for name in OWN if not name.startswith("_")}
    assert kinds["cisco-asa"]["1.3.6.1.4.1.9.9.109.2.0.1"] == "cpu.hog"
    assert kinds["juniper-junos"]["1.3.6.1.4.1.2636.4.1.4"] == "failover"
    assert kinds["fortinet-fortigate"]["1.3.6.1.4.1.12356.101.2.0.401"] == "failover"
    assert kinds["fortinet-fortiweb"]["1.3.6.1.4.1.12356.100.1.3.0.102"] == "memory.low"
    assert kinds["f5-bigip"]["1.3.6.1.4.1.3375.2.4.0.14"] == "failover"
    assert kinds["huawei-vrp"]["1.3.6.1.4.1.2011.5.25.129.2.4.1"] == "cpu.hog"


def test_telemetry_has_processors_queues_and_links() -> None:
    for name in ("arista-eos", "juniper-junos"):
        paths = {(path.metric, path.mode) for path in PROFILES[name].gnmi}
        assert {("system.cpu.module.utilization", "sample"), ("queue.dropped", "sample")} <= paths, name
        assert ("system.network.up", "on_change") in paths, name
    assert any(path.metric == "system.cpu.utilization" for path in PROFILES["nokia-timos"].gnmi)
    assert any(path.metric == "queue.dropped" for path in PROFILES["nokia-srlinux"].gnmi)


def test_command_lines_have_a_driver() -> None:
    for name, driver in (
        ("cisco-asa", "cisco-asa"),
        ("cisco-ftd", "cisco-asa"),
        ("cisco-ios", "cisco-ios"),
        ("cisco-iosxr", "cisco-iosxr"),
        ("cisco-nxos", "cisco-nxos"),
        ("juniper-junos", "juniper-junos"),
        ("arista-eos", "arista-eos"),
        ("paloalto-panos", "paloalto-panos"),
        ("fortinet-fortigate", "fortinet-fortigate"),
        ("huawei-vrp", "huawei-vrp"),
    ):
        assert PROFILES[name].cli == driver
