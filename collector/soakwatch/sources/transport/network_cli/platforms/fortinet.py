"""Fortinet FortiOS."""

from soakwatch.sources.transport.network_cli.parsers import fortios
from soakwatch.sources.transport.network_cli.platform import Command, Dialect, Platform

PLATFORM = Platform(
    "fortinet",
    "FortiOS",
    # Its paging is part of the configuration, so pages are turned instead of switching it off.
    Dialect(
        prompt=r"{host} (?:\([\w .-]{1,60}\) )?[#$] ?",
        shown="NAME #",
        greetings=((r"\(Press 'a' to accept\):?\s*$", "a"),),
    ),
    (
        Command(
            "get_system_performance_status",
            ("get system performance status",),
            fortios.get_system_performance_status,
        ),
        Command(
            "diagnose_sys_top",
            ("diagnose sys top 1 200 1", "diagnose sys top 1 99"),
            fortios.diagnose_sys_top,
            every_s=10,
            stop="q",
        ),
        Command(
            "diagnose_sys_session_stat",
            ("diagnose sys session stat", "diagnose sys session full-stat"),
            fortios.diagnose_sys_session_stat,
            every_s=5,
        ),
        Command(
            "get_system_session_status", ("get system session status",), fortios.get_system_session_status, every_s=10
        ),
        Command(
            "diagnose_debug_crashlog_read",
            ("diagnose debug crashlog read",),
            fortios.diagnose_debug_crashlog_read,
            every_s=60,
        ),
        Command("get_system_status", ("get system status",), fortios.get_system_status, every_s=3600),
    ),
    server=r"Forti",
    introduces=r"(?m)^Version: Forti",
)
