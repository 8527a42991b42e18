"""What the commands that list neighbours and sessions bring, from the outputs of this folder, in few words."""

from __future__ import annotations

from typing import Any

from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import object_text

_NAMES = {"changes": "network.topology.changes"}


def _listed(text: str) -> dict[str, Any]:
    """Lines such as ``up bgp 198.18.1.2 default = 1`` under the names of ``results_of``."""
    results: dict[str, Any] = {}
    for line in text.strip().splitlines():
        words, _, value = line.strip().partition(" = ")
        name = words.partition(" ")[0]
        metric = _NAMES.get(name, f"network.session.{name}")
        labels = words.split(maxsplit=len(BY_NAME[metric].labels))[1:]
        each = dict(zip(BY_NAME[metric].labels, labels, strict=True))
        number = float(value)
        results[f"{metric} {object_text(**each)}"] = int(number) if number.is_integer() else number
    return results


PEERS: dict[str, dict[str, dict[str, Any]]] = {
    "cisco_ios": {
        "show_bgp_summary": _listed("""
            uptime bgp 198.18.1.2 default = 1987200
            prefixes bgp 198.18.1.2 default ipv4 unicast = 40
            uptime bgp 2001:db8:18:1::2 default = 93600
            prefixes bgp 2001:db8:18:1::2 default ipv6 unicast = 4
            up bgp 198.18.1.2 default = 1
            up bgp 198.18.1.6 default = 0
            up bgp 2001:db8:18:1::2 default = 1
        """),
        "show_ospf_neighbor": _listed("""
            uptime ospf 198.18.2.7 default = 8037
            flaps ospf 198.18.2.7 default = 6
            flaps ospf 198.18.2.8 default = 23
            up ospf 198.18.2.7 default = 1
            up ospf 198.18.2.8 default = 0
        """),
        "show_ospf3_neighbor": _listed("""
            uptime ospf3 fe80::7 GigabitEthernet0/1 = 100800
            flaps ospf3 fe80::7 GigabitEthernet0/1 = 12
            up ospf3 fe80::7 GigabitEthernet0/1 = 1
        """),
        "show_isis_neighbors": _listed("""
            uptime isis pe-north Gi0/2 = 442800
            up isis pe-north Gi0/2 = 1
            up isis pe-south Gi0/3 = 0
        """),
        "show_bfd_neighbors": _listed("""
            uptime bfd 198.18.1.2 Gi0/0 = 176400
            up bfd 198.18.1.2 Gi0/0 = 1
            up bfd 198.18.1.6 Gi0/1 = 0
        """),
        "show_etherchannel": _listed("""
            up lacp Gi1/0/1 Po1 = 1
            up lacp Gi1/0/2 Po1 = 0
            up lacp Gi1/0/3 Po1 = 1
        """),
        "show_standby": _listed("""
            role hsrp 10 Vl10 = 2
            role hsrp 20 Vl20 = 1
            role hsrp 30 Vl30 = 0
        """),
        "show_vrrp": _listed("""
            role vrrp 5 Gi0/5 = 2
            role vrrp 6 Gi0/6 = 1
        """),
        "show_spanning_tree": _listed("""
            changes stp VLAN0001 = 17
            changes stp VLAN0010 = 4
        """),
        "show_crypto_session": _listed("""
            uptime tunnel 203.0.113.2 Tunnel0 = 3723
            up tunnel 203.0.113.2 Tunnel0 = 1
            up tunnel 203.0.113.6 Tunnel1 = 0
        """),
    },
    "cisco_xr": {
        "show_bgp_summary": _listed("""
            uptime bgp 198.18.1.2 default = 864000
            prefixes bgp 198.18.1.2 default ipv4 unicast = 1500
            prefixes bgp 198.18.1.2 default vpnv4 unicast = 222
            up bgp 198.18.1.2 default = 1
            up bgp 198.18.1.6 default = 0
        """),
        "show_bgp_vrf_summary": _listed("""
            uptime bgp 198.18.7.2 TENANT-A = 36487
            prefixes bgp 198.18.7.2 TENANT-A ipv4 unicast = 31
            up bgp 198.18.7.2 TENANT-A = 1
        """),
        "show_ospf_neighbor": _listed("""
            uptime ospf 198.18.2.7 TENANT-A = 334800
            flaps ospf 198.18.2.7 TENANT-A = 6
            up ospf 198.18.2.7 TENANT-A = 1
        """),
        "show_ospf3_neighbor": _listed("""
            flaps ospf3 fe80::7 GigabitEthernet0/0/0/1 = 5
            up ospf3 fe80::7 GigabitEthernet0/0/0/1 = 0
        """),
        "show_isis_neighbors": _listed("""
            uptime isis pe-north Gi0/0/0/2 = 1468800
            up isis pe-north Gi0/0/0/2 = 1
            up isis pe-south Gi0/0/0/3 = 0
        """),
        "show_bfd_session": _listed("""
            up bfd 198.18.1.2 Gi0/0/0/1 = 1
            up bfd 198.18.1.10 Gi0/0/0/3 = 0
        """),
        "show_bundle": _listed("""
            up lacp Gi0/0/0/4 Bundle-Ether7 = 1
            up lacp Gi0/0/0/5 Bundle-Ether7 = 0
        """),
        "show_hsrp": _listed("""
            role hsrp 6 Gi0/0/0/6 = 2
        """),
        "show_vrrp": _listed("""
            role vrrp 7 Gi0/0/0/7 = 1
        """),
        "show_te_tunnels": _listed("""
            up tunnel 198.18.255.7 tunnel-te1 = 1
            up tunnel 198.18.255.8 tunnel-te2 = 0
        """),
    },
    "cisco_nxos": {
        "show_bgp_summary": _listed("""
            uptime bgp 198.18.1.2 default = 273600
            prefixes bgp 198.18.1.2 default ipv4 unicast = 40
            uptime bgp 198.18.7.2 TENANT-A = 36487
            prefixes bgp 198.18.7.2 TENANT-A ipv4 unicast = 31
            up bgp 198.18.1.2 default = 1
            up bgp 198.18.1.6 default = 0
            up bgp 198.18.7.2 TENANT-A = 1
        """),
        "show_ospf_neighbors": _listed("""
            uptime ospf 198.18.2.7 default = 95400
            up ospf 198.18.2.7 default = 1
            up ospf 198.18.2.8 default = 0
        """),
        "show_isis_adjacency": _listed("""
            up isis pe-north Ethernet1/2 = 1
        """),
        "show_bfd_neighbors": _listed("""
            up bfd 198.18.1.2 Ethernet1/1 = 1
            up bfd 198.18.1.6 Ethernet1/2 = 0
        """),
        "show_port_channel": _listed("""
            up lacp Ethernet1/10 port-channel10 = 1
            up lacp Ethernet1/11 port-channel10 = 0
        """),
        "show_hsrp": _listed("""
            role hsrp 10 Vlan10 = 2
        """),
        "show_vrrp": _listed("""
            role vrrp 5 Vlan50 = 1
        """),
        "show_spanning_tree": _listed("""
            changes stp VLAN0010 = 6
        """),
    },
    "arista_eos": {
        "show_ip_bgp_summary": _listed("""
            uptime bgp 198.18.1.2 default = 1700000000.5
            prefixes bgp 198.18.1.2 default ipv4 unicast = 40
            uptime bgp 198.18.7.2 TENANT-A = 1700000000.5
            prefixes bgp 198.18.7.2 TENANT-A ipv4 unicast = 31
            up bgp 198.18.1.2 default = 1
            up bgp 198.18.1.6 default = 0
            up bgp 198.18.7.2 TENANT-A = 1
        """),
        "show_ipv6_bgp_summary": _listed("""
            uptime bgp 2001:db8:18:1::2 default = 1700000000.5
            prefixes bgp 2001:db8:18:1::2 default ipv6 unicast = 4
            up bgp 2001:db8:18:1::2 default = 1
        """),
        "show_bgp_evpn_summary": _listed("""
            uptime bgp 198.18.255.9 default = 1700000000.5
            prefixes bgp 198.18.255.9 default l2vpn evpn = 2000
            up bgp 198.18.255.9 default = 1
        """),
        "show_ip_ospf_neighbor": _listed("""
            uptime ospf 198.18.2.7 default = 1700000000.1
            flaps ospf 198.18.2.7 default = 6
            flaps ospf 198.18.2.8 default = 23
            up ospf 198.18.2.7 default = 1
            up ospf 198.18.2.8 default = 0
        """),
        "show_isis_neighbors": _listed("""
            uptime isis pe-north Ethernet4 = 1700000000
            up isis pe-north Ethernet4 = 1
            up isis pe-south Ethernet5 = 0
        """),
        "show_bfd_peers": _listed("""
            uptime bfd 198.18.1.2 Ethernet1 = 1700000000.2
            up bfd 198.18.1.2 Ethernet1 = 1
            up bfd 198.18.1.6 Ethernet2 = 0
        """),
        "show_lacp_interface": _listed("""
            up lacp Ethernet7 Port-Channel7 = 1
            up lacp Ethernet8 Port-Channel7 = 0
        """),
        "show_vrrp": _listed("""
            role vrrp 5 Vlan50 = 2
            role vrrp 6 Vlan60 = 0
        """),
        "show_spanning_tree": _listed("""
            changes stp MST0 = 12
        """),
    },
    "juniper_junos": {
        "show_bgp_summary": _listed("""
            uptime bgp 198.18.1.2 default = 2023872
            flaps bgp 198.18.1.2 default = 3
            prefixes bgp 198.18.1.2 default ipv4 unicast = 40
            prefixes bgp 198.18.1.2 default ipv6 unicast = 4
            flaps bgp 198.18.1.6 default = 7
            uptime bgp 198.18.7.2 TENANT-A = 45
            flaps bgp 198.18.7.2 TENANT-A = 0
            prefixes bgp 198.18.7.2 TENANT-A ipv4 unicast = 31
            up bgp 198.18.1.2 default = 1
            up bgp 198.18.1.6 default = 0
            up bgp 198.18.7.2 TENANT-A = 1
        """),
        "show_ospf_neighbor": _listed("""
            uptime ospf 198.18.2.7 default = 93780
            up ospf 198.18.2.7 default = 1
            up ospf 198.18.2.8 default = 0
        """),
        "show_ospf3_neighbor": _listed("""
            uptime ospf3 fe80::7 ge-0/0/1.0 = 309
            up ospf3 fe80::7 ge-0/0/1.0 = 1
        """),
        "show_isis_adjacency": _listed("""
            uptime isis pe-north ge-0/0/2.0 = 604800
            flaps isis pe-north ge-0/0/2.0 = 5
            flaps isis pe-south ge-0/0/3.0 = 8
            up isis pe-north ge-0/0/2.0 = 1
            up isis pe-south ge-0/0/3.0 = 0
        """),
        "show_bfd_session": _listed("""
            uptime bfd 198.18.1.2 ge-0/0/0.0 = 176400
            up bfd 198.18.1.2 ge-0/0/0.0 = 1
            up bfd 198.18.1.6 ge-0/0/5.0 = 0
        """),
        "show_lacp_interfaces": _listed("""
            up lacp xe-0/0/7 ae7 = 1
            up lacp xe-0/0/8 ae7 = 0
        """),
        "show_vrrp": _listed("""
            role vrrp 5 ge-0/0/9.0 = 2
            role vrrp 6 ge-0/0/10.0 = 1
        """),
        "show_spanning_tree": _listed("""
            changes stp 0 = 9
        """),
        "show_ipsec": _listed("""
            up tunnel 203.0.113.2 131073 = 1
        """),
    },
    "nokia_sros": {
        "show_router_bgp_summary": _listed("""
            uptime bgp 198.18.1.2 default = 273900
            prefixes bgp 198.18.1.2 default ipv4 unicast = 40
            prefixes bgp 198.18.1.2 default ipv6 unicast = 4
            uptime bgp 198.18.7.2 700 = 36487
            prefixes bgp 198.18.7.2 700 ipv4 unicast = 31
            up bgp 198.18.1.2 default = 1
            up bgp 198.18.1.6 default = 0
            up bgp 198.18.7.2 700 = 1
        """),
        "show_router_ospf_neighbor": _listed("""
            uptime ospf 198.18.2.7 default = 95400
            flaps ospf 198.18.2.7 default = 6
            up ospf 198.18.2.7 default = 1
        """),
        "show_router_isis_adjacency": _listed("""
            up isis pe-north to-north = 1
            up isis pe-south to-south = 0
        """),
        "show_router_bfd_session": _listed("""
            up bfd 198.18.1.2 to-north = 1
            up bfd 198.18.1.6 to-south = 0
        """),
        "show_lag_port": _listed("""
            up lacp 1/1/7 lag-7 = 1
            up lacp 1/1/8 lag-7 = 0
        """),
        "show_router_vrrp_instance": _listed("""
            role vrrp 5 to-lan = 2
        """),
        "show_service_sdp": _listed("""
            up tunnel 198.18.255.7 sdp 17 = 1
            up tunnel 198.18.255.8 sdp 18 = 0
        """),
    },
    "huawei_vrp": {
        "display_bgp_peer": _listed("""
            uptime bgp 198.18.1.2 default = 273900
            prefixes bgp 198.18.1.2 default ipv4 unicast = 40
            up bgp 198.18.1.2 default = 1
            up bgp 198.18.1.6 default = 0
        """),
        "display_bgp_ipv6_peer": _listed("""
            uptime bgp 2001:db8:18:1::2 default = 94211
            prefixes bgp 2001:db8:18:1::2 default ipv6 unicast = 4
            up bgp 2001:db8:18:1::2 default = 1
        """),
        "display_ospf_peer": _listed("""
            uptime ospf 198.18.2.7 default = 8037
            up ospf 198.18.2.7 default = 1
            up ospf 198.18.2.8 default = 0
        """),
        "display_isis_peer": _listed("""
            up isis pe-north Eth-Trunk2 = 1
            up isis pe-south GE0/0/3 = 0
        """),
        "display_bfd_session": _listed("""
            up bfd 198.18.1.2 GigabitEthernet0/0/0 = 1
            up bfd 198.18.1.6 GigabitEthernet0/0/2 = 0
        """),
        "display_eth_trunk": _listed("""
            up lacp GigabitEthernet0/0/7 Eth-Trunk7 = 1
            up lacp GigabitEthernet0/0/8 Eth-Trunk7 = 0
        """),
        "display_vrrp": _listed("""
            role vrrp 5 Vlanif50 = 2
            role vrrp 6 Vlanif60 = 1
        """),
        "display_stp_topology_change": _listed("""
            changes stp CIST = 35
        """),
    },
    "hp_comware": {
        "display_bgp_peer": _listed("""
            uptime bgp 198.18.1.2 default = 273900
            prefixes bgp 198.18.1.2 default ipv4 unicast = 40
            up bgp 198.18.1.2 default = 1
            up bgp 198.18.1.6 default = 0
        """),
        "display_ospf_peer": _listed("""
            uptime ospf 198.18.2.7 default = 8037
            up ospf 198.18.2.7 default = 1
        """),
        "display_isis_peer": _listed("""
            up isis 0198.0182.5502 GE1/0/2 = 1
        """),
        "display_bfd_session": _listed("""
            up bfd 198.18.1.2 GE1/0/0 = 1
            up bfd 198.18.1.6 GE1/0/2 = 0
        """),
        "display_link_aggregation": _listed("""
            up lacp GE1/0/7 Bridge-Aggregation7 = 1
            up lacp GE1/0/8 Bridge-Aggregation7 = 0
        """),
        "display_vrrp": _listed("""
            role vrrp 5 Vlan50 = 2
        """),
    },
    "frr": {
        "show_version": {"fact version": "8.4.4"},
        "show_bgp_summary": _listed("""
            flaps bgp 192.0.2.77 default = 0
            uptime bgp 198.18.9.2 default = 50
            flaps bgp 198.18.9.2 default = 1
            prefixes bgp 198.18.9.2 default ipv4 unicast = 1
            up bgp 192.0.2.77 default = 0
            up bgp 198.18.9.2 default = 1
        """),
        "show_ospf_neighbor": _listed("""
            uptime ospf 198.18.9.2 default = 50.137
            flaps ospf 198.18.9.2 default = 5
            up ospf 198.18.9.2 default = 1
        """),
        "show_isis_neighbor": _listed("""
            uptime isis rcB vrcA = 50
            flaps isis rcB vrcA = 2
            up isis rcB vrcA = 1
        """),
        "show_bfd_peers": _listed("""
            uptime bfd 198.18.9.2 vrcA = 49
            up bfd 198.18.9.2 vrcA = 1
        """),
        "show_vrrp": _listed("""
            role vrrp 5 vrcA = 0
        """),
    },
}
