"""Juniper Junos."""

from soakwatch.sources.transport.network_cli.parsers import junos
from soakwatch.sources.transport.network_cli.platform import Command, Dialect, Platform

PLATFORM = Platform(
    "juniper_junos",
    "Juniper Junos",
    Dialect(
        prompt=r"(?:\{[\w:.-]{1,40}\})?[\w.-]{1,64}@{host}[>#%] ?",
        shown="USER@NAME>",
        setup=("set cli screen-length 0", "set cli screen-width 511", "set cli complete-on-space off"),
    ),
    (
        Command(
            "show_chassis_routing_engine",
            ("show chassis routing-engine",),
            junos.show_chassis_routing_engine,
            ("system.cpu.utilization", "system.memory.utilization", "system.uptime"),
            tells_reason=True,
        ),
        Command(
            "show_system_processes_extensive",
            ("show system processes extensive",),
            junos.show_system_processes_extensive,
            ("process.cpu.utilization", "process.memory.usage"),
            every_s=10,
        ),
        Command(
            "show_interfaces_queue",
            ("show interfaces queue",),
            junos.show_interfaces_queue,
            ("queue.dropped", "queue.packets"),
            every_s=30,
        ),
        Command(
            "show_pfe_statistics_traffic",
            ("show pfe statistics traffic",),
            junos.show_pfe_statistics_traffic,
            every_s=10,
        ),
        Command("show_system_core_dumps", ("show system core-dumps",), junos.show_system_core_dumps, every_s=60),
        Command("show_system_uptime", ("show system uptime",), junos.show_system_uptime, every_s=60),
        Command("show_version", ("show version",), junos.show_version, every_s=3600),
    ),
    says=r"error: (?:unknown command|command is not valid)|JUNOS",
    introduces=r"(?m)^Junos: |JUNOS ",
)
