"""Huawei VRP."""

from soakwatch.sources.transport.network_cli.parsers import peers_vrp, vrp
from soakwatch.sources.transport.network_cli.platform import Command, Dialect, Platform

PLATFORM = Platform(
    "huawei_vrp",
    "Huawei VRP",
    Dialect(
        prompt=r"(?:HRP_[MSA])?[<\[][~*]?{host}(?:-[\w/.-]{1,60})?[>\]] ?",
        shown="<NAME>",
        setup=("screen-length 0 temporary",),
        greetings=((r"(?i:change (?:it )?now|password needs to be changed)[^\n]{0,40}\[Y/N\]:? ?$", "N\n"),),
    ),
    (
        Command(
            "display_cpu_usage",
            ("display cpu-usage", "display cpu"),
            vrp.display_cpu_usage,
        ),
        Command(
            "display_memory_usage",
            ("display memory-usage", "display memory"),
            vrp.display_memory_usage,
            every_s=5,
        ),
        Command(
            "display_qos_queue_statistics",
            ("display qos queue statistics",),
            vrp.display_qos_queue_statistics,
            every_s=30,
        ),
        Command("display_version", ("display version",), vrp.display_version, every_s=60),
        Command(
            "display_reset_reason",
            ("display reset-reason", "display reboot-info"),
            vrp.display_reset_reason,
            every_s=3600,
            tells_reason=True,
        ),
        Command("display_bgp_peer", ("display bgp peer",), peers_vrp.display_bgp_peer, every_s=60),
        Command("display_bgp_ipv6_peer", ("display bgp ipv6 peer",), peers_vrp.display_bgp_ipv6_peer, every_s=60),
        Command("display_ospf_peer", ("display ospf peer",), peers_vrp.display_ospf_peer, every_s=60),
        Command("display_isis_peer", ("display isis peer",), peers_vrp.display_isis_peer, every_s=60),
        Command("display_bfd_session", ("display bfd session all",), peers_vrp.display_bfd_session, every_s=60),
        Command("display_eth_trunk", ("display eth-trunk",), peers_vrp.display_eth_trunk, every_s=60),
        Command("display_vrrp", ("display vrrp brief",), peers_vrp.display_vrrp, every_s=60),
        Command(
            "display_stp_topology_change",
            ("display stp topology-change",),
            peers_vrp.display_stp_topology_change,
            every_s=60,
        ),
    ),
    server=r"HUAWEI",
    introduces=r"VRP \(R\) software|Huawei Versatile Routing Platform",
)
