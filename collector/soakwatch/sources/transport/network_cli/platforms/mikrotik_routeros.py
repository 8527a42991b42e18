"""MikroTik RouterOS, one exec a command: its shell paints the screen."""

from soakwatch.sources.transport.network_cli.parsers import appliances
from soakwatch.sources.transport.network_cli.platform import Command, Dialect, Platform

PLATFORM = Platform(
    "mikrotik_routeros",
    "MikroTik RouterOS",
    Dialect(mode="exec", shown="[USER@NAME] >"),
    (
        Command(
            "system_resource_print",
            ("/system resource print",),
            appliances.routeros_resource,
        ),
        Command(
            "system_routerboard_print",
            ("/system routerboard print",),
            appliances.routeros_routerboard,
            every_s=3600,
        ),
    ),
    server=r"ROSSSH",
    says=r"bad command name exec",
    introduces=r"board-name: ",
)
