"""Check Point Gaia (clish)."""

from soakwatch.sources.transport.network_cli.parsers import appliances
from soakwatch.sources.transport.network_cli.platform import Command, Dialect, Platform

PLATFORM = Platform(
    "checkpoint_gaia",
    "Check Point Gaia",
    Dialect(
        prompt=r"(?:\[[\w.: -]{1,40}\] ?)?{host}(?::[\w-]{1,20})?[>#] ?",
        shown="NAME>",
        setup=("set clienv rows 0",),
    ),
    (
        Command(
            "cpstat_os_perf",
            ("cpstat os -f perf",),
            appliances.gaia_performance,
        ),
        Command("show_uptime", ("show uptime",), appliances.gaia_uptime, every_s=60),
        Command("show_version_all", ("show version all",), appliances.gaia_version, every_s=3600),
    ),
    says=r"CLINFR\d",
    introduces=r"Check Point Gaia",
)
