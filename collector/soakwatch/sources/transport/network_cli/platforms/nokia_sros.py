"""Nokia SR OS."""

from soakwatch.sources.transport.network_cli.parsers import peers_sros, sros
from soakwatch.sources.transport.network_cli.platform import Command, Dialect, Platform

PLATFORM = Platform(
    "nokia_sros",
    "Nokia SR OS",
    Dialect(
        prompt=r"\*?[AB]:(?:[\w.-]{1,64}@)?{host}(?:>[\w>-]{1,80})?[#$] ?",
        shown="A:NAME#",
        setup=("environment no more", "environment more false"),
    ),
    (
        Command(
            "show_system_cpu",
            ("show system cpu",),
            sros.show_system_cpu,
        ),
        Command(
            "show_system_memory_pools",
            ("show system memory-pools",),
            sros.show_system_memory_pools,
            every_s=5,
        ),
        Command("show_uptime", ("show uptime",), sros.show_uptime, every_s=60),
        Command("show_system_information", ("show system information",), sros.show_system_information, every_s=600),
        Command("show_card_detail", ("show card detail",), sros.show_card_detail, every_s=60),
        Command("show_version", ("show version",), sros.show_version, every_s=3600),
        Command(
            "show_router_bgp_summary",
            ("show router bgp summary all", "show router bgp summary"),
            peers_sros.show_router_bgp_summary,
            every_s=60,
        ),
        Command(
            "show_router_ospf_neighbor",
            ("show router ospf neighbor detail",),
            peers_sros.show_router_ospf_neighbor,
            every_s=60,
        ),
        Command(
            "show_router_isis_adjacency",
            ("show router isis adjacency",),
            peers_sros.show_router_isis_adjacency,
            every_s=60,
        ),
        Command(
            "show_router_bfd_session", ("show router bfd session",), peers_sros.show_router_bfd_session, every_s=60
        ),
        Command("show_lag_port", ("show lag port",), peers_sros.show_lag_port, every_s=60),
        Command(
            "show_router_vrrp_instance",
            ("show router vrrp instance",),
            peers_sros.show_router_vrrp_instance,
            every_s=60,
        ),
        Command("show_service_sdp", ("show service sdp",), peers_sros.show_service_sdp, every_s=60),
    ),
    says=r"MINOR: CLI |TiMOS",
    introduces=r"TiMOS-",
)
