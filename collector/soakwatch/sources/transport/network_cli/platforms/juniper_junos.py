"""Juniper Junos."""

from soakwatch.sources.transport.network_cli.parsers import junos, peers_junos
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
            tells_reason=True,
        ),
        Command(
            "show_system_processes_extensive",
            ("show system processes extensive",),
            junos.show_system_processes_extensive,
            every_s=10,
        ),
        Command(
            "show_interfaces_queue",
            ("show interfaces queue",),
            junos.show_interfaces_queue,
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
        Command("show_bgp_summary", ("show bgp summary | display json",), peers_junos.show_bgp_summary, every_s=60),
        Command(
            "show_ospf_neighbor",
            ("show ospf neighbor extensive instance all | display json", "show ospf neighbor extensive | display json"),
            peers_junos.show_ospf_neighbor,
            every_s=60,
        ),
        Command(
            "show_ospf3_neighbor",
            ("show ospf3 neighbor extensive | display json",),
            peers_junos.show_ospf3_neighbor,
            every_s=60,
        ),
        Command(
            "show_isis_adjacency",
            ("show isis adjacency extensive | display json",),
            peers_junos.show_isis_adjacency,
            every_s=60,
        ),
        Command(
            "show_bfd_session",
            ("show bfd session extensive | display json", "show bfd session | display json"),
            peers_junos.show_bfd_session,
            every_s=60,
        ),
        Command(
            "show_lacp_interfaces",
            ("show lacp interfaces | display json",),
            peers_junos.show_lacp_interfaces,
            every_s=60,
        ),
        Command("show_vrrp", ("show vrrp summary | display json",), peers_junos.show_vrrp, every_s=60),
        Command(
            "show_spanning_tree",
            ("show spanning-tree bridge | display json",),
            peers_junos.show_spanning_tree,
            every_s=60,
        ),
        Command(
            "show_ipsec",
            ("show security ipsec security-associations | display json",),
            peers_junos.show_ipsec,
            every_s=60,
        ),
    ),
    says=r"error: (?:unknown command|command is not valid)|JUNOS",
    introduces=r"(?m)^Junos: |JUNOS ",
)
