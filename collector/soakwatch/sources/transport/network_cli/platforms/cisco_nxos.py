"""Cisco NX-OS."""

from soakwatch.sources.transport.network_cli.parsers import nxos
from soakwatch.sources.transport.network_cli.platform import Command, Dialect, Platform

PLATFORM = Platform(
    "cisco_nxos",
    "Cisco NX-OS",
    Dialect(setup=("terminal length 0", "terminal width 511")),
    (
        Command(
            "show_system_resources",
            ("show system resources",),
            nxos.show_system_resources,
            ("system.cpu.utilization", "system.memory.usage", "system.memory.limit"),
        ),
        Command(
            "show_processes_cpu", ("show processes cpu",), nxos.show_processes_cpu, ("process.cpu.utilization",), 5
        ),
        Command(
            "show_processes_memory",
            ("show processes memory",),
            nxos.show_processes_memory,
            ("process.memory.usage",),
            every_s=30,
        ),
        Command(
            "show_queuing_interface",
            ("show queuing interface",),
            nxos.show_queuing_interface,
            ("queue.dropped",),
            every_s=30,
        ),
        Command("show_cores", ("show cores",), nxos.show_cores, every_s=60),
        Command(
            "show_version", ("show version",), nxos.show_version, ("system.uptime",), every_s=60, tells_reason=True
        ),
    ),
    says=r"NX-OS|Syntax error while parsing '",
    introduces=r"Nexus Operating System|NX-OS|NXOS:",
)
