"""Aruba AOS-CX."""

from soakwatch.sources.transport.network_cli.parsers import appliances
from soakwatch.sources.transport.network_cli.platform import Command, Dialect, Platform

PLATFORM = Platform(
    "aruba_aoscx",
    "Aruba AOS-CX",
    Dialect(setup=("no page",), shown="NAME#"),
    (
        Command(
            "show_system_resource_utilization",
            ("show system resource-utilization",),
            appliances.cx_resources,
        ),
        Command(
            "show_boot_history",
            ("show boot-history",),
            appliances.cx_boot_history,
            every_s=60,
            tells_reason=True,
        ),
        Command("show_version", ("show version",), appliances.cx_version, every_s=3600),
    ),
    says=r"Invalid input: exec",
    introduces=r"ArubaOS-CX|AOS-CX",
)
