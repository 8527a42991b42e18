"""Configurations of a router's daemons: FRR, keepalived, snmpd and sshd."""

from __future__ import annotations

from pathlib import Path

from swlab.places import NORTH_GATEWAY, SOUTH_GATEWAY, STATE, Router, other

AS_NUMBER = 65010


def write(node: Router, community: str) -> None:
    """Write all of them to the router's folder."""
    frr = node.folder / "frr"
    frr.mkdir(parents=True)
    for name, text in {
        "daemons": _DAEMONS.format(folder=node.folder),
        "frr.conf": frr_conf(node),
        "vtysh.conf": f"hostname {node.name}\n",
    }.items():
        (frr / name).write_text(text)
    (node.folder / "snmp").mkdir()
    (node.folder / "snmp" / "frr.conf").write_text("agentXSocket /run/agentx/master\n")
    (node.folder / "keepalived.conf").write_text(keepalived_conf(node))
    (node.folder / "snmpd.conf").write_text(snmpd_conf(node, community))
    (node.folder / "snmpd.conf").chmod(0o600)
    (node.folder / "sshd_config").write_text(sshd_config(node, STATE))


_DAEMONS = """\
# The routing daemons find the way to snmpd here, whoever starts them.
export SNMPCONFPATH={folder}/snmp
bgpd=yes
ospfd=yes
vtysh_enable=yes
zebra_options="  -A 127.0.0.1 -s 90000000 -M snmp"
bgpd_options="   -A 127.0.0.1 -M snmp"
ospfd_options="  -A 127.0.0.1 -M snmp"
staticd_options="-A 127.0.0.1"
watchfrr_options="--interval 1 --min-restart-interval 2 --max-restart-interval 10"
"""


def frr_conf(node: Router) -> str:
    """BGP with the other router: IPv4 routes of the kernel, and EVPN for the addresses of the tunnel. OSPF is only
    another session between them: it adds no routes."""
    partner = other(node).core
    return f"""\
frr defaults traditional
hostname {node.name}
log syslog informational
agentx
interface core
 ip ospf area 0
 ip ospf network point-to-point
 ip ospf hello-interval 1
 ip ospf dead-interval 3
router ospf
 ospf router-id {node.core}
 log-adjacency-changes
router bgp {AS_NUMBER}
 bgp router-id {node.core}
 bgp log-neighbor-changes
 no bgp default ipv4-unicast
 neighbor {partner} remote-as {AS_NUMBER}
 neighbor {partner} timers 1 3
 neighbor {partner} timers connect 1
 neighbor {partner} advertisement-interval 0
 address-family ipv4 unicast
  neighbor {partner} activate
  redistribute kernel
 exit-address-family
 address-family l2vpn evpn
  neighbor {partner} activate
  advertise-all-vni
 exit-address-family
"""


def keepalived_conf(node: Router) -> str:
    """One virtual address on each side. Both move together; a router that comes back does not preempt."""
    sides = {"north": (51, NORTH_GATEWAY), "south": (52, SOUTH_GATEWAY)}
    instances = "".join(
        f"""\
vrrp_instance {side} {{
    state BACKUP
    nopreempt
    interface {side}
    virtual_router_id {number}
    priority {node.priority}
    version 3
    advert_int 0.3
    virtual_ipaddress {{
        {address}/24
    }}
}}
"""
        for side, (number, address) in sides.items()
    )
    return f"""\
global_defs {{
    router_id {node.name}
    vrrp_garp_master_refresh 0
    vrrp_garp_master_delay 1
}}
vrrp_sync_group sides {{
    group {{
        north
        south
    }}
}}
{instances}"""


def snmpd_conf(node: Router, community: str) -> str:
    """SNMP v2c for the monitor only, with FRR's tables through AgentX."""
    return f"""\
agentAddress udp:{node.management}:161
rocommunity {community} 192.0.2.0/24
sysName {node.name}
sysLocation network namespace {node.space}
master agentx
agentXSocket /run/agentx/master
agentXPerms 0660 0755 frr frr
"""


def sshd_config(node: Router, state: Path) -> str:
    """Root logins with the lab's own key, from the management network."""
    lines = {
        "ListenAddress": node.management,
        "Port": "22",
        "HostKey": f"{state}/host",
        "AuthorizedKeysFile": f"{state}/authorized_keys",
        "PidFile": "none",
        "StrictModes": "no",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "PrintMotd": "no",
        "PermitRootLogin": "prohibit-password",
        "MaxStartups": "100",
        "UseDNS": "no",
        "SetEnv": f"HOME={state}/home",
    }
    return "".join(f"{key} {value}\n" for key, value in lines.items())
