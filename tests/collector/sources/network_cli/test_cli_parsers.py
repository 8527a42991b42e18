"""What each command of each platform brings, from outputs of its shape."""

from __future__ import annotations

from typing import Any

import pytest
from tests.collector.sources.network_cli.conftest import OUTPUTS, output
from tests.collector.sources.network_cli.peers_expected import PEERS

from soakwatch.sources.platforms import registry as platforms
from soakwatch.sources.platforms.parsed import Parsed
from soakwatch.sources.transport.network_cli.guard import refusal
from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import object_labels

CPU, MEMORY, LIMIT = "system.cpu.utilization", "system.memory.usage", "system.memory.limit"
DROPPED, DENIED = "system.forwarding.dropped", "system.forwarding.denied"
DAYS = 12 * 86400 + 3 * 3600 + 4 * 60

EXPECTED: dict[str, dict[str, dict[str, Any]]] = {
    "cisco_asa": {
        "show_cpu": {CPU: 0.077, "system.cpu.module.utilization module=core 0": 0.125},
        "show_memory": {MEMORY: 2010205958, LIMIT: 5218306208, "system.memory.available": 3208100250},
        "show_processes_cpu": {"cpu DATAPATH-0": 0.024, "cpu IP SLA Mon Event Processor": 0.001},
        "show_processes_memory": {"memory *System Main*": 13471545 - 180, "memory Dispatch Unit": None},
        "show_asp_drop": {
            f"{DENIED} place=frame,reason=acl-drop": 98765,
            f"{DENIED} place=flow,reason=acl-drop": 482,
            f"{DENIED} place=frame,reason=security-failed": 277057,
            f"{DENIED} place=frame,reason=sp-security-failed": 144251,
            f"{DROPPED} place=frame,reason=tcp-buffer-full": 9,
            f"{DROPPED} place=frame,reason=brand-new-reason": 3,
            f"{DROPPED} place=frame,reason=np-socket-lock-failu": 1,
        },
        "show_blocks": {
            "system.memory.pool.usage pool=block 1550": 1550 * 79,
            "system.memory.pool.limit pool=block 1550": 1550 * 6279,
            "event memory.low": "block 1550",
        },
        "show_conn_count": {"system.sessions table=connections": 54},
        "show_xlate_count": {"system.sessions table=translations": 17},
        "show_resource_usage": {
            "system.sessions table=Conns": 54,
            "system.sessions.limit table=Conns": 250000,
            f"{DROPPED} place=resource limit,reason=Conns": 6,
        },
        "show_interface": {
            "system.network.packets interface=GigabitEthernet1/1,direction=receive": 352200,
            "system.network.packet.dropped interface=GigabitEthernet1/1,direction=receive": 4,
            "queue.dropped queue=GigabitEthernet1/1 RX[00]": 3,
            "system.network.admin_up interface=GigabitEthernet1/2": 0,
        },
        "show_version": {"uptime": 12 * 86400 + 3 * 3600, "fact version": "9.16(4)14", "fact model": "ASA5516"},
        "show_failover": {"queue.depth queue=failover xmit": 2, "event failover": "10:11:12 UTC Mar 4 2024"},
        "show_crashinfo": {"event device.crash": "03:04:05.678 UTC Tue Mar 5 2024 Dispatch Unit"},
    },
    "cisco_ios": {
        "show_processes_cpu": {
            CPU: 0.05,
            "system.cpu.module.average module=system,window=5m": 0.07,
            "cpu IP Input": 0.0135,
        },
        "show_processes_memory": {MEMORY: 331546392, "memory IP Input": 345678},
        "show_interfaces": {
            "queue.depth queue=GigabitEthernet0/0/0 input": 3,
            "queue.dropped queue=GigabitEthernet0/0/0 input": 12,
            "system.network.packet.dropped interface=GigabitEthernet0/0/0,direction=transmit": 456,
            "system.network.errors interface=GigabitEthernet0/0/0,direction=receive": 7,
        },
        "show_policy_map_interface": {
            "queue.depth queue=GigabitEthernet0/0/0 output class-default": 17,
            "queue.dropped queue=GigabitEthernet0/0/0 output class-default": 1234,
            "queue.limit queue=GigabitEthernet0/0/0 output class-default": 64,
        },
        "show_platform_status": {
            "system.cpu.module.utilization module=RP0 cpu 1": 0.15,
            "system.memory.pool.usage pool=RP0": 2188404 * 1024,
        },
        "show_platform_resources": {
            "system.cpu.module.utilization module=RP0 Control Processor": 0.0177,
            "system.memory.pool.usage pool=ESP0 QFP DRAM": 79003 * 1024,
        },
        "show_qfp_drop": {f"{DROPPED} place=qfp,reason=TailDrop": 1705, f"{DENIED} place=qfp,reason=Ipv4Acl": 120},
        "show_version": {
            "uptime": 1472700,
            "fact reboot_reason": "Critical software exception, check bootflash:crashinfo",
        },
    },
    "cisco_nxos": {
        "show_system_resources": {CPU: 0.03, "system.cpu.core.utilization core=1": 0.1, MEMORY: 5270532 * 1024},
        "show_processes_cpu": {"cpu bgp": 0.035, CPU: 0.025},
        "show_processes_memory": {"memory bgp": 73449472},
        "show_queuing_interface": {
            "queue.dropped queue=Ethernet1/1 qos group 0 unicast": 321,
            "queue.usage queue=Ethernet1/1 qos group 0 unicast": 4160,
            "queue.dropped queue=Ethernet1/1 control qos group unicast": 1,
        },
        "show_cores": {"event core.dump": "bgp 12345 2024-03-05 03:04:05"},
        "show_version": {"uptime": DAYS + 5, "fact reboot_reason": "Reset Requested by CLI command reload"},
    },
    "cisco_xr": {
        "show_processes_cpu": {CPU: 0.03, "cpu bgp": 0.02},
        "show_memory_summary": {"system.memory.pool.usage pool=0_RP0_CPU0": (24576 - 12345) * 1024**2},
        "show_drops_np_all": {
            f"{DROPPED} place=0/0/CPU0 NP 0,reason=PARSE_DROP_IN_UIDB_DOWN": 14,
            f"{DROPPED} place=0/7/CPU0 NP 0,reason=PARSE_DROP_IN_UIDB_DOWN": 5,
            f"{DENIED} place=0/0/CPU0 NP 0,reason=MDF_RPF_FAIL_DROP": 146019781,
        },
        "show_interfaces": {
            "system.network.packet.dropped interface=GigabitEthernet0/0/0/1,direction=transmit": 34,
        },
        "show_context": {
            "event core.dump": "0_RP0_CPU0 /misc/scratch/core/bgp_1234.by.11.20240305-030405.xr-vm.core.gz"
        },
        "show_version": {"uptime": 788640, "fact version": "6.5.3"},
    },
    "juniper_junos": {
        "show_chassis_routing_engine": {
            CPU: 0.08,
            "system.cpu.module.average module=Routing Engine 0,window=1m": 0.05,
            "system.memory.pool.utilization pool=Routing Engine 1": 0.11,
            "uptime": DAYS + 5,
            "fact reboot_reason": "0x1:power cycle/failure",
        },
        "show_system_processes_extensive": {"cpu rpd": 0.021, "memory chassisd": 512 * 1024**2},
        "show_interfaces_queue": {
            "queue.dropped queue=ge-0/0/0 queue 0": 123,
            "queue.dropped queue=ge-0/0/0 queue 3": 4,
            "queue.packets queue=ge-0/0/0 queue 0": 408000,
        },
        "show_pfe_statistics_traffic": {f"{DENIED} place=pfe,reason=normal discard": 1234},
        "show_system_core_dumps": {"event core.dump": "/var/tmp/rpd.core-tarball.0.tgz 1234567 Mar 5 03:04"},
        "show_system_uptime": {"uptime": 12 * 86400 + 3 * 3600 + 7 * 60},
        "show_version": {"fact version": "20.4R3.8", "fact model": "mx240"},
    },
    "arista_eos": {
        "show_processes_top": {CPU: 0.073, MEMORY: 1200000 * 1024, "cpu Sysdb": 0.031, "memory Sysdb": 201780 * 1024},
        "show_hardware_counter_drop": {
            f"{DROPPED} place=Jericho0,reason=EnqDiscardedPacketCounter": 77,
            f"{DENIED} place=Jericho0,reason=AclDeny": 5,
        },
        "show_interfaces_counters_discards": {
            "system.network.packet.dropped interface=Ethernet1,direction=transmit": 12,
        },
        "show_interfaces_counters_queue": {"queue.dropped queue=Et1 UC0": 12},
        "show_version": {"uptime": 1051445.12, LIMIT: 8099732 * 1024, "fact serial": "JPE00000000"},
        "show_reload_cause": {"fact reboot_reason": "Reload requested by the user."},
    },
    "paloalto_panos": {
        "show_system_resources": {CPU: 0.105, "cpu devsrvr": 0.01, "memory devsrvr": 36612 * 1024},
        "show_running_resource_monitor": {
            "system.cpu.module.utilization module=dp0 core 1": 0.12,
            "system.memory.pool.utilization pool=dp0 packet buffer": 0.09,
            "system.sessions.utilization table=dp0": 0.04,
        },
        "show_counter_global": {
            f"{DROPPED} place=dataplane,reason=flow_fwd_l3_noroute": 55,
            f"{DENIED} place=dataplane,reason=flow_policy_deny": 987,
        },
        "show_session_info": {"system.sessions table=sessions": 1234, "system.sessions.limit table=sessions": 262142},
        "show_system_info": {"uptime": DAYS + 5, "fact version": "10.1.6"},
    },
    "fortinet": {
        "get_system_performance_status": {CPU: 0.06, MEMORY: 813456 * 1024, "uptime": DAYS},
        "diagnose_sys_top": {"cpu ipsengine": 0.12},
        "diagnose_sys_session_stat": {
            "system.sessions table=sessions": 1234,
            f"{DROPPED} place=session,reason=memory tension drop": 2,
        },
        "get_system_session_status": {"system.sessions table=IPv6": 34},
        "diagnose_debug_crashlog_read": {"event process.crash": "2024-03-05 03:04:05 ipsengine 00199 signal 11"},
        "get_system_status": {"fact model": "FortiGate-60F", "fact serial": "FGT60F0000000001"},
    },
    "huawei_vrp": {
        "display_cpu_usage": {CPU: 0.09, "cpu ROUT": 0.03},
        "display_memory_usage": {MEMORY: 268435456, LIMIT: 1073741824},
        "display_qos_queue_statistics": {"queue.dropped queue=GigabitEthernet0/0/1 queue 0": 17},
        "display_version": {"uptime": 7531500, "fact version": "5.170 S5735 V200R019C00SPC500"},
        "display_reset_reason": {"fact reboot_reason": "POWER"},
    },
    "nokia_sros": {
        "show_system_cpu": {CPU: 0.136, "system.cpu.module.utilization module=busiest core": 0.146, "cpu IOM": 0.0378},
        "show_system_memory_pools": {
            MEMORY: 700000000,
            LIMIT: 2000000000,
            "system.memory.pool.usage pool=BGP": 11000000,
        },
        "show_uptime": {"uptime": DAYS + 5},
        "show_system_information": {"uptime": DAYS + 5, "fact model": "7750 SR-12"},
        "show_card_detail": {"system.temperature sensor=Card 1": 35},
        "show_version": {"fact version": "TiMOS-C-16.0.R8"},
    },
    "hp_comware": {
        "display_cpu_usage": {"system.cpu.module.utilization module=slot 2 cpu 0": 0.15},
        "display_memory": {MEMORY: 143096 * 1024, "system.memory.pool.limit pool=slot 1": 507980 * 1024},
        "display_process_memory": {"memory scmd": 2236 * 1024, "memory bgpd": 13972 * 1024},
        "display_process_log": {
            "event core.dump": "bgpd 312 2013-06-11 10:05:41",
            "event process.crash": "routed 313 2013-06-11 10:07:02",
        },
        "display_version": {"uptime": 7531500, "fact reboot_reason": "User reboot"},
    },
    "mikrotik_routeros": {
        "system_resource_print": {CPU: 0.12, LIMIT: 2**30, MEMORY: 124 * 2**20, "uptime": 2023507},
        "system_routerboard_print": {"fact serial": "B8E000000000"},
    },
    "checkpoint_gaia": {
        "cpstat_os_perf": {CPU: 0.08, MEMORY: 3000000000},
        "show_uptime": {"uptime": DAYS, "system.cpu.load minutes=5": 0.38},
        "show_version_all": {"fact version": "Check Point Gaia R81.10"},
    },
    "aruba_aoscx": {
        "show_system_resource_utilization": {CPU: 0.12, "memory ops-switchd": 250 * 2**20},
        "show_boot_history": {"uptime": 79942, "fact reboot_reason": "Reboot requested through database"},
        "show_version": {"fact version": "FL.10.10.1030"},
    },
    "f5_tmsh": {
        "show_sys_performance": {CPU: 0.05, "system.memory.pool.utilization pool=Other Memory": 0.55},
        "show_sys_tmm_info": {"system.cpu.module.utilization module=tmm 0.0": 0.03},
        "show_sys_version": {"fact version": "15.1.5"},
    },
}
for _platform, _commands in PEERS.items():
    EXPECTED.setdefault(_platform, {}).update(_commands)
CASES = [(platform, command) for platform, commands in EXPECTED.items() for command in commands]


def results_of(parsed: Parsed) -> dict[str, Any]:
    """Everything that was found under short names."""
    results: dict[str, Any] = {f"{value.metric} {value.object}".strip(): value.value for value in parsed.values}
    results |= {f"cpu {process.name}": process.cpu for process in parsed.processes}
    results |= {f"memory {process.name}": process.memory for process in parsed.processes}
    results |= {f"fact {name}": text for name, text in parsed.facts.items()}
    results |= {f"event {notable.kind}": notable.key for notable in reversed(parsed.notables)}
    return results | ({"uptime": parsed.uptime.seconds} if parsed.uptime else {})


def parse(platform: str, name: str) -> Parsed:
    return read(platform, name, output(platform, name))


def read(platform: str, name: str, text: str) -> Parsed:
    command = platforms.platform(platform).command(name)
    assert command is not None, f"{platform} has no command {name}"
    return command.parse(text)


@pytest.mark.parametrize(("platform", "name"), CASES)
def test_a_command_brings_what_its_output_says(platform: str, name: str) -> None:
    parsed = parse(platform, name)
    results = results_of(parsed)
    for key, value in EXPECTED[platform][name].items():
        assert key in results
        assert results[key] == (pytest.approx(value) if isinstance(value, float) else value), key
    assert parsed.unknown == ()
    assert parsed.faults == ()


def test_values_have_the_labels_of_the_catalogue() -> None:
    for platform, name in CASES:
        for value in parse(platform, name).values:
            assert tuple(object_labels(value.object)) == BY_NAME[value.metric].labels, f"{platform} {name}"


def test_every_platform_and_every_command_is_tried_here() -> None:
    here = {
        (platform, command.name) for platform in platforms.names() for command in platforms.platform(platform).commands
    }
    assert here == set(CASES)
    assert {folder.name for folder in OUTPUTS.iterdir()} == set(platforms.names())


@pytest.mark.parametrize("platform", list(EXPECTED))
def test_every_text_of_every_command_is_a_question(platform: str) -> None:
    driver = platforms.platform(platform)
    for command in driver.commands:
        assert [text for text in command.texts if refusal(text)] == []
        assert set(command.metrics) <= set(BY_NAME)


@pytest.mark.parametrize(
    "harmful",
    [
        "reload",
        "clear counters",
        "show run\nreload",
        "configure terminal",
        "show version | redirect flash:x",
        "show version | tee flash:x",
        "show version > flash:x",
        "write memory",
        "debug all",
        "show x; reload",
        "display version | reset saved",
        "diagnose sys kill 11 1",
        "diagnose debug crashlog clear",
        "get x && reboot",
        "/system reboot",
        "/user set admin print",
        "show crashinfo | include x | append y",
        "",
        "set cli pager off",
    ],
)
def test_nothing_but_questions_is_sent(harmful: str) -> None:
    assert refusal(harmful) is not None


def test_eos_gives_the_same_as_text_and_as_json() -> None:
    text = read("arista_eos", "show_processes_top", output("arista_eos", "show_processes_top.text"))
    results = results_of(text)
    assert results["memory Sysdb"] == 201780 * 1024
    assert results["memory Bgp-main"] == int(1.1 * 2**30)
    assert results[CPU] == pytest.approx(0.073)
    assert text.unknown == ()


def test_an_invalid_value_is_a_fault_and_not_a_number() -> None:
    faults = [
        read("cisco_nxos", "show_system_resources", "CPU states  :   busy").faults,
        read("hp_comware", "display_cpu_usage", "Slot 1 CPU 0 CPU usage:\n  250% in last 5 seconds").faults,
        read("paloalto_panos", "show_session_info", "Number of allocated sessions:   many").faults,
        read("huawei_vrp", "display_memory_usage", "System Total Memory Is: plenty").faults,
        read(
            "cisco_ios", "show_processes_memory", "Processor Pool Total: 99999999999999999999999 Used: 1 Free: 1"
        ).faults,
        read("cisco_asa", "show_memory", "Used memory: 2000 bytes (39%)\nTotal memory: 1000 bytes (100%)").faults,
    ]
    assert [len(each) for each in faults] == [1, 2, 1, 1, 0, 1]
    assert "is not a number" in faults[2][0].text
    assert "the catalogue allows" in faults[1][0].text


def test_unknown_lines_are_kept_and_counted() -> None:
    text = output("cisco_asa", "show_asp_drop").replace("Flow drop:", "%ASA-6-302013: Built\nFlow drop:")
    parsed = read("cisco_asa", "show_asp_drop", text)
    assert parsed.strange == 1
    assert parsed.unknown == ("%ASA-6-302013: Built",)
    assert len(parsed.values) == 10


def test_older_shapes_are_read_too() -> None:
    old = "CPU utilization for 5 seconds = 12%; 1 minute: 11%; 5 minutes: 10%"
    assert results_of(read("cisco_asa", "show_cpu", old))[CPU] == 0.12
    assert (
        results_of(read("fortinet", "get_system_performance_status", "Memory states: 40% used"))[
            "system.memory.utilization"
        ]
        == 0.4
    )
    assert results_of(read("huawei_vrp", "display_cpu_usage", "System CPU Using Percentage :   8%"))[CPU] == 0.08
    assert (
        results_of(
            read("hp_comware", "display_memory", "System Total Memory(bytes): 400\nTotal Used Memory(bytes): 100")
        )[MEMORY]
        == 100
    )
    single = (
        "Routing Engine status:\n  CPU utilization:\n    User   3 percent\n    Idle   90 percent\n    Uptime   3 days"
    )
    assert results_of(read("juniper_junos", "show_chassis_routing_engine", single))[CPU] == 0.1
    assert (
        results_of(read("nokia_sros", "show_uptime", "System Up Time : 0 days, 00:01:02.03 (hr:min:sec)"))["uptime"]
        == 62
    )
