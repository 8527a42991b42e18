"""Cisco NX-OS."""

from soakwatch.sources.transport.network_cli.parsers import nxos, peers_cisco, peers_json
from soakwatch.sources.transport.network_cli.platform import Command, Dialect, Platform

PLATFORM = Platform(
    "cisco_nxos",
    "Cisco NX-OS",
    Dialect(setup=("terminal length 0", "terminal width 511")),
    (
        Command(
            "show_system_resources",
            ("show system resources",),
            nxos.show_system_resources,
        ),
        Command("show_processes_cpu", ("show processes cpu",), nxos.show_processes_cpu, every_s=5),
        Command(
            "show_processes_memory",
            ("show processes memory",),
            nxos.show_processes_memory,
            every_s=30,
        ),
        Command(
            "show_queuing_interface",
            ("show queuing interface",),
            nxos.show_queuing_interface,
            every_s=30,
        ),
        Command("show_cores", ("show cores",), nxos.show_cores, every_s=60),
        Command("show_version", ("show version",), nxos.show_version, every_s=60, tells_reason=True),
        Command("show_bgp_summary", ("show bgp vrf all all summary | json",), peers_json.nxos_bgp, every_s=60),
        Command("show_ospf_neighbors", ("show ip ospf neighbors vrf all | json",), peers_json.nxos_ospf, every_s=60),
        Command("show_isis_adjacency", ("show isis adjacency vrf all | json",), peers_json.nxos_isis, every_s=60),
        Command("show_bfd_neighbors", ("show bfd neighbors vrf all | json",), peers_json.nxos_bfd, every_s=60),
        Command("show_port_channel", ("show port-channel summary | json",), peers_json.nxos_lacp, every_s=60),
        Command("show_hsrp", ("show hsrp brief | json",), peers_json.nxos_hsrp, every_s=60),
        Command("show_vrrp", ("show vrrp | json",), peers_json.nxos_vrrp, every_s=60),
        Command(
            "show_spanning_tree",
            ("show spanning-tree detail | include is executing|topology changes", "show spanning-tree detail"),
            peers_cisco.show_spanning_tree,
            every_s=60,
        ),
    ),
    says=r"NX-OS|Syntax error while parsing '",
    introduces=r"Nexus Operating System|NX-OS|NXOS:",
)
