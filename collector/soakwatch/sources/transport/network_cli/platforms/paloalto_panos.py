"""Palo Alto Networks PAN-OS."""

from soakwatch.sources.transport.network_cli.parsers import panos
from soakwatch.sources.transport.network_cli.platform import Command, Dialect, Platform

PLATFORM = Platform(
    "paloalto_panos",
    "PAN-OS",
    Dialect(
        prompt=r"[\w.\\@-]{1,64}@{host}(?:\([\w-]{1,40}\))?[>#] ?",
        shown="USER@NAME>",
        setup=("set cli pager off", "set cli terminal width 500"),
        greetings=((r"(?i:do you accept and acknowledge[^\n]{0,80}\(yes/no\))[^\n]{0,20}$", "yes\n"),),
    ),
    (
        Command(
            "show_system_resources",
            ("show system resources",),
            panos.show_system_resources,
            every_s=5,
        ),
        Command(
            "show_running_resource_monitor",
            ("show running resource-monitor second last 1",),
            panos.show_running_resource_monitor,
        ),
        Command(
            "show_counter_global",
            ("show counter global filter delta no severity drop", "show counter global filter severity drop"),
            panos.show_counter_global,
            every_s=5,
        ),
        Command(
            "show_session_info",
            ("show session info",),
            panos.show_session_info,
            every_s=5,
        ),
        Command("show_system_info", ("show system info",), panos.show_system_info, every_s=60),
    ),
    says=r"PAN-OS|Unknown command: exec",
    introduces=r"(?m)^sw-version: ",
)
