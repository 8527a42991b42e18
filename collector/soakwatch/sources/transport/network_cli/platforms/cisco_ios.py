"""Cisco IOS and IOS XE."""

from soakwatch.sources.transport.network_cli.parsers import ios, peers_cisco
from soakwatch.sources.transport.network_cli.parsers.ports import show_interfaces
from soakwatch.sources.transport.network_cli.platform import Command, Dialect, Platform

PLATFORM = Platform(
    "cisco_ios",
    "Cisco IOS / IOS XE",
    Dialect(
        shown="NAME# or NAME>",
        setup=("terminal length 0", "terminal width 511"),
        enable="enable",
    ),
    (
        Command(
            "show_processes_cpu",
            ("show processes cpu",),
            ios.show_processes_cpu,
        ),
        Command(
            "show_processes_memory",
            ("show processes memory",),
            ios.show_processes_memory,
            every_s=10,
        ),
        Command(
            "show_interfaces",
            ("show interfaces",),
            show_interfaces,
            also=("queue.depth", "queue.dropped"),
            every_s=10,
        ),
        Command(
            "show_policy_map_interface",
            ("show policy-map interface",),
            ios.show_policy_map_interface,
            every_s=10,
        ),
        Command(
            "show_platform_status",
            ("show platform software status control-processor brief",),
            ios.show_platform_status,
            every_s=10,
        ),
        Command("show_platform_resources", ("show platform resources",), ios.show_platform_resources, every_s=30),
        Command(
            "show_qfp_drop",
            ("show platform hardware qfp active statistics drop",),
            ios.show_qfp_drop,
            every_s=10,
        ),
        Command("show_version", ("show version",), ios.show_version, every_s=60, tells_reason=True),
        Command(
            "show_bgp_summary",
            ("show bgp all summary", "show ip bgp summary"),
            peers_cisco.show_bgp_summary,
            every_s=60,
        ),
        Command("show_ospf_neighbor", ("show ip ospf neighbor detail",), peers_cisco.show_ospf_neighbor, every_s=60),
        Command(
            "show_ospf3_neighbor",
            ("show ospfv3 neighbor detail", "show ipv6 ospf neighbor detail"),
            peers_cisco.show_ospf3_neighbor,
            every_s=60,
        ),
        Command(
            "show_isis_neighbors",
            ("show isis neighbors detail", "show isis neighbors"),
            peers_cisco.show_isis_neighbors,
            every_s=60,
        ),
        Command(
            "show_bfd_neighbors",
            ("show bfd neighbors details", "show bfd neighbors"),
            peers_cisco.show_bfd_neighbors,
            every_s=60,
        ),
        Command("show_etherchannel", ("show etherchannel summary",), peers_cisco.show_etherchannel, every_s=60),
        Command("show_standby", ("show standby brief",), peers_cisco.show_standby, every_s=60),
        Command("show_vrrp", ("show vrrp brief",), peers_cisco.show_vrrp, every_s=60),
        Command(
            "show_spanning_tree",
            ("show spanning-tree detail | include is executing|topology changes", "show spanning-tree detail"),
            peers_cisco.show_spanning_tree,
            every_s=60,
        ),
        Command(
            "show_crypto_session",
            ("show crypto session detail", "show crypto session"),
            peers_cisco.show_crypto_session,
            every_s=60,
        ),
    ),
    says=r"Line has invalid autocommand",
    introduces=r"Cisco IOS(?:[ -]XE)? Software|IOS \(tm\)|Cisco Internetwork Operating System",
)
