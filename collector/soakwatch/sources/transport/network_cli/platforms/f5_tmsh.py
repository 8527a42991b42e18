"""F5 BIG-IP by tmsh, one exec a command: switching its pager off would change the account's preferences."""

from soakwatch.sources.transport.network_cli.parsers import appliances
from soakwatch.sources.transport.network_cli.platform import Command, Dialect, Platform

PLATFORM = Platform(
    "f5_tmsh",
    "F5 BIG-IP",
    Dialect(mode="exec", shown="(tmos)#"),
    (
        Command(
            "show_sys_performance",
            ("show sys performance system",),
            appliances.f5_performance,
        ),
        Command(
            "show_sys_tmm_info",
            ("show sys tmm-info",),
            appliances.f5_tmm,
            every_s=5,
        ),
        Command("show_sys_version", ("show sys version",), appliances.f5_version, every_s=3600),
    ),
    says=r"Syntax Error: unexpected argument \"?exec|tmos\.",
    introduces=r"Sys::Version",
)
