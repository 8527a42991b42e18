"""Arista EOS."""

from soakwatch.sources.transport.network_cli.parsers import eos
from soakwatch.sources.transport.network_cli.platform import Command, Dialect, Platform

PLATFORM = Platform(
    "arista_eos",
    "Arista EOS",
    Dialect(
        prompt=r"{host}(?:\.{1,3})?(?:\([\w.-]{1,40}\)){0,2}[>#] ?",
        setup=("terminal length 0", "terminal width 32767"),
        shown="NAME# or NAME>",
        enable="enable",
    ),
    (
        Command(
            "show_processes_top",
            ("show processes top once | json", "show processes top once"),
            eos.show_processes_top,
            ("system.cpu.utilization", "system.memory.usage", "process.cpu.utilization", "process.memory.usage"),
        ),
        Command(
            "show_hardware_counter_drop",
            ("show hardware counter drop | json", "show hardware counter drop"),
            eos.show_hardware_counter_drop,
            every_s=10,
        ),
        Command(
            "show_interfaces_counters_discards",
            ("show interfaces counters discards | json", "show interfaces counters discards"),
            eos.show_interfaces_counters_discards,
            ("system.network.packet.dropped",),
            every_s=10,
        ),
        Command(
            "show_interfaces_counters_queue",
            ("show interfaces counters queue",),
            eos.show_interfaces_counters_queue,
            every_s=30,
        ),
        Command(
            "show_version",
            ("show version | json", "show version"),
            eos.show_version,
            ("system.uptime", "system.memory.limit"),
            every_s=60,
        ),
        Command(
            "show_reload_cause",
            ("show reload cause | json", "show reload cause"),
            eos.show_reload_cause,
            every_s=3600,
            tells_reason=True,
        ),
    ),
    says=r"% Invalid input \(at token",
    introduces=r"(?m)^Arista |Arista Networks",
)
