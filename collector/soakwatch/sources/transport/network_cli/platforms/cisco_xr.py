"""Cisco IOS XR."""

from soakwatch.sources.transport.network_cli.parsers import peers_cisco, xr
from soakwatch.sources.transport.network_cli.parsers.ports import show_interfaces
from soakwatch.sources.transport.network_cli.platform import Command, Dialect, Platform

PLATFORM = Platform(
    "cisco_xr",
    "Cisco IOS XR",
    Dialect(
        prompt=r"(?:RP/\d{1,2}/[\w/]{1,20}:)?{host}(?:\([\w-]{1,40}\))?[>#] ?",
        shown="RP/0/RP0/CPU0:NAME#",
        setup=("terminal length 0", "terminal width 511", "terminal exec prompt no-timestamp"),
    ),
    (
        Command(
            "show_processes_cpu",
            ("show processes cpu",),
            xr.show_processes_cpu,
            every_s=5,
        ),
        Command(
            "show_memory_summary",
            ("show memory summary location all", "show memory summary"),
            xr.show_memory_summary,
            every_s=10,
        ),
        Command(
            "show_drops_np_all",
            ("show drops np all location all", "show drops np all"),
            xr.show_drops_np_all,
            every_s=10,
        ),
        Command("show_interfaces", ("show interfaces",), show_interfaces, every_s=30),
        Command("show_context", ("show context location all", "show context"), xr.show_context, every_s=60),
        Command("show_version", ("show version",), xr.show_version, every_s=60),
        Command(
            "show_bgp_summary",
            ("show bgp all all summary", "show bgp summary"),
            peers_cisco.show_bgp_summary,
            every_s=60,
        ),
        Command("show_bgp_vrf_summary", ("show bgp vrf all summary",), peers_cisco.show_bgp_summary, every_s=60),
        Command(
            "show_ospf_neighbor",
            ("show ospf vrf all-inclusive neighbor detail", "show ospf neighbor detail"),
            peers_cisco.show_ospf_neighbor,
            every_s=60,
        ),
        Command(
            "show_ospf3_neighbor",
            ("show ospfv3 vrf all-inclusive neighbor detail", "show ospfv3 neighbor detail"),
            peers_cisco.show_ospf3_neighbor,
            every_s=60,
        ),
        Command(
            "show_isis_neighbors",
            ("show isis neighbors detail", "show isis neighbors"),
            peers_cisco.show_isis_neighbors,
            every_s=60,
        ),
        Command("show_bfd_session", ("show bfd session",), peers_cisco.show_bfd_session, every_s=60),
        Command("show_bundle", ("show bundle",), peers_cisco.show_bundle, every_s=60),
        Command("show_hsrp", ("show hsrp brief",), peers_cisco.show_standby, every_s=60),
        Command("show_vrrp", ("show vrrp brief",), peers_cisco.show_vrrp, every_s=60),
        Command("show_te_tunnels", ("show mpls traffic-eng tunnels brief",), peers_cisco.show_te_tunnels, every_s=60),
    ),
    introduces=r"IOS XR Software",
)
