"""Arista EOS."""

from soakwatch.sources.transport.network_cli.parsers import eos, peers_cisco, peers_json
from soakwatch.sources.transport.network_cli.platform import Command, Dialect, Platform

PLATFORM = Platform(
    "arista_eos",
    "Arista EOS",
    Dialect(
        prompt=r"{host}(?:\.{1,3})?(?:\([\w.-]{1,40}\)){0,2}[>#] ?",
        setup=("terminal length 0", "terminal width 32767"),
        shown="NAME# or NAME>",
        enable="enable",
    ),
    (
        Command(
            "show_processes_top",
            ("show processes top once | json", "show processes top once"),
            eos.show_processes_top,
        ),
        Command(
            "show_hardware_counter_drop",
            ("show hardware counter drop | json", "show hardware counter drop"),
            eos.show_hardware_counter_drop,
            every_s=10,
        ),
        Command(
            "show_interfaces_counters_discards",
            ("show interfaces counters discards | json", "show interfaces counters discards"),
            eos.show_interfaces_counters_discards,
            every_s=10,
        ),
        Command(
            "show_interfaces_counters_queue",
            ("show interfaces counters queue",),
            eos.show_interfaces_counters_queue,
            every_s=30,
        ),
        Command(
            "show_version",
            ("show version | json", "show version"),
            eos.show_version,
            every_s=60,
        ),
        Command(
            "show_reload_cause",
            ("show reload cause | json", "show reload cause"),
            eos.show_reload_cause,
            every_s=3600,
            tells_reason=True,
        ),
        Command("show_ip_bgp_summary", ("show ip bgp summary vrf all | json",), peers_json.eos_bgp, every_s=60),
        Command("show_ipv6_bgp_summary", ("show ipv6 bgp summary vrf all | json",), peers_json.eos_bgp, every_s=60),
        Command("show_bgp_evpn_summary", ("show bgp evpn summary | json",), peers_json.eos_bgp_evpn, every_s=60),
        Command(
            "show_ip_ospf_neighbor",
            ("show ip ospf neighbor detail | json", "show ip ospf neighbor | json"),
            peers_json.eos_ospf,
            every_s=60,
        ),
        Command(
            "show_isis_neighbors",
            ("show isis neighbors detail | json", "show isis neighbors | json"),
            peers_json.eos_isis,
            every_s=60,
        ),
        Command(
            "show_bfd_peers", ("show bfd peers vrf all | json", "show bfd peers | json"), peers_json.eos_bfd, every_s=60
        ),
        Command("show_lacp_interface", ("show lacp interface | json",), peers_json.eos_lacp, every_s=60),
        Command("show_vrrp", ("show vrrp | json",), peers_json.eos_vrrp, every_s=60),
        Command(
            "show_spanning_tree",
            ("show spanning-tree detail | include is executing|topology changes", "show spanning-tree detail"),
            peers_cisco.show_spanning_tree,
            every_s=60,
        ),
    ),
    says=r"% Invalid input \(at token",
    introduces=r"(?m)^Arista |Arista Networks",
)
