"""Cisco ASA and the LINA side of Firepower Threat Defense."""

from soakwatch.sources.transport.network_cli.parsers import asa
from soakwatch.sources.transport.network_cli.parsers.ports import show_interfaces
from soakwatch.sources.transport.network_cli.platform import Command, Dialect, Platform

PLATFORM = Platform(
    "cisco_asa",
    "Cisco ASA",
    # No "terminal width": that would be a line of the configuration.
    Dialect(
        prompt=r"{host}(?:/[\w.-]{1,32}){0,3}(?:\([\w-]{1,40}\))?[>#] ?",
        shown="NAME# or NAME>",
        setup=("terminal pager 0",),
        enable="enable",
    ),
    (
        Command("show_cpu", ("show cpu usage detailed", "show cpu usage"), asa.show_cpu),
        Command("show_memory", ("show memory",), asa.show_memory, every_s=5),
        Command("show_processes_cpu", ("show processes cpu-usage",), asa.show_processes_cpu, every_s=5),
        Command(
            "show_processes_memory",
            ("show processes memory",),
            asa.show_processes_memory,
            every_s=30,
        ),
        Command(
            "show_asp_drop",
            ("show asp drop",),
            asa.show_asp_drop,
            every_s=5,
        ),
        Command("show_blocks", ("show blocks",), asa.show_blocks, every_s=10),
        Command("show_conn_count", ("show conn count",), asa.show_conn_count, every_s=5),
        Command("show_xlate_count", ("show xlate count",), asa.show_xlate_count, every_s=10),
        Command(
            "show_resource_usage",
            ("show resource usage",),
            asa.show_resource_usage,
            every_s=60,
        ),
        Command("show_interface", ("show interface",), show_interfaces, every_s=30),
        Command("show_version", ("show version",), asa.show_version, every_s=60, tells_reason=True),
        Command("show_failover", ("show failover",), asa.show_failover, every_s=30),
        Command(
            "show_crashinfo",
            ("show crashinfo | include collected on|Thread Name|rash file", "show crashinfo"),
            asa.show_crashinfo,
            every_s=300,
        ),
    ),
    server=r"CiscoSSH",
    says=r"Cisco (?:Adaptive|ASA)|ASA Version",
    introduces=r"Adaptive Security Appliance|Firepower Threat Defense",
)
