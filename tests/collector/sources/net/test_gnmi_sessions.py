"""Sessions with peers by gNMI: OpenConfig and native paths, against a target that speaks the protocol on loopback."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from soakwatch.sources.abc import Facts, SourceContext
from soakwatch.sources.profiles.loading import load_profiles
from soakwatch_gnmi import Config, start
from soakwatch_gnmi.latest import Latest, path_queries
from soakwatch_gnmi.paths import Plain, parse_path
from soakwatch_testing.gnmi_target import GnmiTarget, gnmi_target

NOW = 1_700_003_600 * 10**9
UP, UPTIME = "network.session.up", "network.session.uptime"
BGP = "/network-instances/network-instance[name={}]/protocols/protocol[identifier=BGP][name=BGP]/bgp/neighbors/"
OSPF = (
    "/network-instances/network-instance[name=default]/protocols/protocol[identifier=OSPF][name=1]/ospfv2/areas"
    "/area[identifier=0.0.0.0]/interfaces/interface[id=Ethernet3]/neighbors/neighbor[router-id={}]/state/"
)


def _neighbour(instance: str, peer: str, state: str, enabled: str = "true") -> dict[str, Plain]:
    base = f"{BGP.format(instance)}neighbor[neighbor-address={peer}]"
    return {
        f"{base}/state/session-state": state,
        f"{base}/state/enabled": enabled == "true",
        f"{base}/state/established-transitions": "3",
        f"{base}/state/last-established": str(1_700_000_000 * 10**9),
        f"{base}/afi-safis/afi-safi[afi-safi-name=openconfig-bgp-types:IPV4_UNICAST]/state/prefixes/received": 40,
    }


LEAVES: dict[str, Plain] = {
    **_neighbour("DEFAULT", "198.18.1.2", "ESTABLISHED"),
    **_neighbour("DEFAULT", "198.18.1.6", "ACTIVE"),
    **_neighbour("TENANT-A", "198.18.7.2", "IDLE", "false"),
    OSPF.format("198.18.255.7") + "adjacency-state": "openconfig-ospf-types:FULL",
    OSPF.format("198.18.255.9") + "adjacency-state": "openconfig-ospf-types:TWO_WAY",
    "/lacp/interfaces/interface[name=Port-Channel7]/members/member[interface=Ethernet7]/state/distributing": True,
    "/interfaces/interface[name=Ethernet1]/state/oper-status": "UP",
    "/interfaces/interface[name=Ethernet1]/state/counters/in-discards": 1,
}


def _sessions(profile: str, leaves: dict[str, Plain]) -> dict[str, float]:
    latest = Latest(path_queries(load_profiles()[profile].gnmi))
    for path, value in leaves.items():
        latest.take(parse_path(path), value, NOW)
    samples, _, faults = latest.drain()
    assert faults == ()
    return {
        f"{sample.metric.removeprefix('network.')} {sample.object}": sample.value
        for sample in samples
        if sample.metric.startswith("network.")
    }


def test_openconfig_tells_peers_and_leaves_out_what_is_disabled_or_at_two_way() -> None:
    north = "protocol=bgp,peer=198.18.1.2,context=default"
    down = "protocol=bgp,peer=198.18.1.6,context=default"
    got = _sessions("arista-eos", LEAVES)
    assert {key: value for key, value in got.items() if "198.18.1.2" in key} == {
        f"session.up {north}": 1,
        f"session.flaps {north}": 3,
        f"session.uptime {north}": 3600,
        f"session.prefixes {north},family=ipv4 unicast": 40,
    }
    assert (got[f"session.up {down}"], f"session.uptime {down}" in got) == (0, False)
    assert {key: value for key, value in got.items() if "TENANT-A" in key and "session.up" in key} == {}
    assert got["session.up protocol=ospf,peer=198.18.255.7,context=default"] == 1
    assert "session.up protocol=ospf,peer=198.18.255.9,context=default" not in got
    assert got["session.up protocol=lacp,peer=Ethernet7,context=Port-Channel7"] == 1


def test_native_paths_tell_peers_as_trees_too() -> None:
    tree: Plain = {
        "neighbor": [{"peer-address": "198.18.1.2", "session-state": "established", "admin-state": "enable"}]
    }
    got = _sessions(
        "nokia-srlinux",
        {
            "/network-instance[name=default]/protocols/bgp": tree,
            "/interface[name=lag7]/lag/member[name=ethernet-1/7]/lacp/distributing": False,
        },
    )
    assert got == {
        "session.up protocol=bgp,peer=198.18.1.2,context=default": 1,
        "session.up protocol=lacp,peer=ethernet-1/7,context=lag7": 0,
    }
    router = "/state/router[router-name=Base]/bgp/neighbor[ip-address=198.18.1.2]/statistics/session-state"
    assert _sessions("nokia-timos", {router: "Established"}) == {
        "session.up protocol=bgp,peer=198.18.1.2,context=default": 1
    }
    adjacency = (
        "/isis/instances/instance[instance-name=CORE]/levels/level[level=isis-level2]/adjacencies"
        "/adjacency[system-id=0198.0182.5502][interface-name=GigabitEthernet0/0/0/2]/adjacency-state"
    )
    assert _sessions("cisco-iosxr", {adjacency: "isis-adj-up-state"}) == {
        "session.up protocol=isis,peer=0198.0182.5502,context=GigabitEthernet0/0/0/2 isis-level2": 1
    }
    assert path_queries(load_profiles()["cisco-iosxr"].gnmi)[4].module == "Cisco-IOS-XR-clns-isis-oper"


def test_a_protocol_that_is_refused_costs_neither_the_others_nor_the_stream() -> None:
    target = GnmiTarget(leaves=dict(LEAVES), refuses=("isis", "stp", "bfd"), on_change_refused=("session-state",))

    async def watch() -> tuple[set[str], Facts]:
        site = SourceContext("dut", "dut", (), None, Path(), lambda: NOW, 0.2)
        config = Config.model_validate(
            {"host": "127.0.0.1", "port": target.port, "profile": "arista-eos", "plaintext": True, "interval": "200ms"}
        )
        seen: set[str] = set()
        async with AsyncExitStack() as stack:
            poller = await start(config, site, stack)
            async with asyncio.timeout(200):
                while not (
                    {"bgp", "ospf", "lacp", "system.network.up"} <= seen
                    and sum("not served" in note for note in poller.facts().notes) == 3
                ):
                    answer = await poller.poll(NOW)
                    seen |= {s.object.partition(",")[0].removeprefix("protocol=") for s in answer.samples}
                    seen |= {s.metric for s in answer.samples}
                    await asyncio.sleep(0.02)
            return seen, poller.facts()

    with gnmi_target(target):
        seen, facts = asyncio.run(watch())
    assert {UP, UPTIME} <= seen
    assert not {"isis", "stp", "bfd"} & seen
    assert sorted(note.partition(" is not served")[0] for note in facts.notes if "not served" in note) == [
        "bfd of bfd",
        "isis of network-instances",
        "stp of stp",
    ]
    assert UP not in facts.promised
    assert facts.cadences[UPTIME] == 60
