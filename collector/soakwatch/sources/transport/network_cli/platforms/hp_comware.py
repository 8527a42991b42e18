"""HPE and H3C Comware."""

from soakwatch.sources.transport.network_cli.parsers import comware, peers_vrp
from soakwatch.sources.transport.network_cli.platform import Command, Dialect, Platform

PLATFORM = Platform(
    "hp_comware",
    "Comware",
    Dialect(
        prompt=r"(?:RBM_[PS])?[<\[][~*]?{host}(?:-[\w/.-]{1,60})?[>\]] ?",
        shown="<NAME>",
        setup=("screen-length disable",),
    ),
    (
        Command(
            "display_cpu_usage",
            ("display cpu-usage", "display cpu"),
            comware.display_cpu_usage,
        ),
        Command(
            "display_memory",
            ("display memory",),
            comware.display_memory,
            every_s=5,
        ),
        Command(
            "display_process_memory",
            ("display process memory",),
            comware.display_process_memory,
            every_s=30,
        ),
        Command("display_process_log", ("display process log",), comware.display_process_log, every_s=60),
        Command(
            "display_version",
            ("display version",),
            comware.display_version,
            every_s=60,
            tells_reason=True,
        ),
        Command(
            "display_bgp_peer",
            ("display bgp peer ipv4 unicast", "display bgp peer ipv4", "display bgp peer"),
            peers_vrp.display_bgp_peer,
            every_s=60,
        ),
        Command("display_ospf_peer", ("display ospf peer verbose",), peers_vrp.display_ospf_peer, every_s=60),
        Command("display_isis_peer", ("display isis peer",), peers_vrp.display_isis_peer, every_s=60),
        Command("display_bfd_session", ("display bfd session",), peers_vrp.display_bfd_session, every_s=60),
        Command(
            "display_link_aggregation",
            ("display link-aggregation verbose",),
            peers_vrp.display_link_aggregation,
            every_s=60,
        ),
        Command("display_vrrp", ("display vrrp",), peers_vrp.display_vrrp, every_s=60),
    ),
    server=r"Comware",
    introduces=r"Comware",
)
