"""FRR, where an account's shell is ``vtysh``; with another shell the source ``ssh`` asks the whole host instead."""

from soakwatch.sources.transport.network_cli.parsers import peers_frr
from soakwatch.sources.transport.network_cli.platform import Command, Dialect, Platform

PLATFORM = Platform(
    "frr",
    "FRRouting",
    Dialect(prompt=r"{host}(?:\([\w-]{1,40}\))?[>#] ?", setup=("terminal length 0",)),
    (
        Command("show_version", ("show version",), peers_frr.show_version, every_s=3600),
        Command(
            "show_bgp_summary",
            ("show bgp vrf all summary json",),
            peers_frr.show_bgp_summary,
            every_s=30,
        ),
        Command(
            "show_ospf_neighbor",
            ("show ip ospf vrf all neighbor detail json",),
            peers_frr.show_ospf_neighbor,
            every_s=60,
        ),
        Command("show_isis_neighbor", ("show isis neighbor detail json",), peers_frr.show_isis_neighbor, every_s=60),
        Command("show_bfd_peers", ("show bfd peers json",), peers_frr.show_bfd_peers, every_s=60),
        Command("show_vrrp", ("show vrrp json",), peers_frr.show_vrrp, every_s=60),
    ),
    introduces=r"FRRouting",
)
