"""Sessions with peers by SNMP, poll after poll, up to what the rule says; what logs and traps tell."""

from __future__ import annotations

import numpy as np
import pytest
from tests.collector.sources.profiles.kit import IFX, Device, poll, table

from soakwatch.sources.profiles import Value, load_profiles
from soakwatch.sources.profiles.profile_reader import ProfileReader
from soakwatch_model.case import Case, Ledger
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.series import Series, trait_of
from soakwatch_model.window import Window
from soakwatch_rules.detectors.session_flap import SessionFlap

S = 10**9
BGP, OSPF = "1.3.6.1.2.1.15.3.1", "1.3.6.1.2.1.14.10.1"
LAG, VRRP, BRIDGE = "1.2.840.10006.300.43.1.2.1.1", "1.3.6.1.2.1.68.1.3.1.3", "1.3.6.1.2.1.17"
PEER, NEIGHBOUR = "protocol=bgp,peer=10.0.0.2,context=default", "protocol=ospf,peer=10.0.1.2,context=default"
UP, UPTIME, FLAPS = "network.session.up", "network.session.uptime", "network.session.flaps"
PREFIXES = "network.session.prefixes"


def router() -> dict[str, Value]:
    """Two peers of BGP, one of them shut down on purpose; one neighbour of OSPF, and one that stays at two-way."""
    return {
        **{f"{BGP}.{column}.10.0.0.2": value for column, value in ((2, 6), (3, 2), (15, 4), (16, 9000))},
        **{f"{BGP}.{column}.10.0.0.9": value for column, value in ((2, 1), (3, 1), (15, 0), (16, 0))},
        **{f"{OSPF}.{column}.10.0.1.2.0": value for column, value in ((6, 8), (7, 6))},
        **{f"{OSPF}.{column}.10.0.1.3.0": value for column, value in ((6, 4), (7, 3))},
    }


def judged(
    device: Device, happens: dict[int, dict[str, Value | None]], events: tuple[Event, ...] = ()
) -> list[Finding]:
    """Forty polls, ten seconds apart, while values change (None: the device has it no more), and the rule's word."""
    reader = ProfileReader(device, load_profiles()["generic"])
    seen: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for number in range(40):
        device.values = {k: v + 10 if k.startswith(f"{BGP}.16") else v for k, v in device.values.items()}  # type: ignore[operator]
        for oid, value in happens.get(number, {}).items():
            device.values.pop(oid, None)
            device.values |= {oid: value} if value is not None else {}
        for key, value in table(poll(reader, 10 * number)).items():
            seen.setdefault(key, []).append((10 * number * S, value))
    series = tuple(
        Series(
            "dut",
            metric,
            name,
            trait_of(metric),
            np.array([t for t, _ in of]),
            np.array([v for _, v in of], dtype=float),
        )
        for (metric, name), of in seen.items()
        if metric.startswith("network.")
    )
    ledger = Ledger("dut", "dut/snmp", 10.0, 40, 40, {}, None)
    case = Case("dut", "", Window(0, 400 * S), series, events=events, ledgers=(ledger,))
    return list(SessionFlap().judge(case))


FLAP: dict[int, dict[str, Value | None]] = {
    10: {f"{BGP}.2.10.0.0.2": 3, f"{BGP}.16.10.0.0.2": 0, f"{OSPF}.6.10.0.1.2.0": None, f"{OSPF}.7.10.0.1.2.0": None},
    20: {f"{BGP}.2.10.0.0.2": 6, f"{BGP}.16.10.0.0.2": 0, f"{BGP}.15.10.0.0.2": 5},
    21: {f"{OSPF}.6.10.0.1.2.0": 8, f"{OSPF}.7.10.0.1.2.0": 6},
}


def test_a_flap_fails_with_the_peer_and_is_excused_by_an_announced_failover() -> None:
    """BGP says that it is down; the neighbour of OSPF leaves the table, and comes back with a later poll."""
    bgp, ospf = [f for f in judged(Device(router()), FLAP) if f.outcome is Outcome.FAIL]
    assert (bgp.object, ospf.object) == (PEER, NEIGHBOUR)
    assert bgp.sentence == "BGP session with 10.0.0.2 went down once: 1970-01-01 00:01:40 UTC for 1 min 40 s (down)"
    assert ospf.sentence.startswith("OSPF session with 10.0.1.2 went down once: 1970-01-01 00:01:40 UTC for ")
    assert ospf.sentence.endswith("(no longer listed)")
    failover = Event("failover", "dut", "", 99 * S, None, {}, {"outage": 1}, 390 * S)
    (calm,) = judged(Device(router()), FLAP, (failover,))
    assert (calm.outcome, calm.sentence) == (
        Outcome.PASS,
        "2 sessions (1 bgp, 1 ospf): 2 announced times down, back in time",
    )


def test_a_flap_between_two_polls_is_found_by_uptime_and_count() -> None:
    """Each poll finds it established."""
    short = {15: {f"{BGP}.16.10.0.0.2": 4, f"{BGP}.15.10.0.0.2": 5}}
    (found,) = [f for f in judged(Device(router()), short) if f.outcome is Outcome.FAIL]  # type: ignore[arg-type]
    assert found.object == PEER
    assert "its uptime began anew; between two polls: the device counted 1 change" in found.sentence


def test_standard_tables_are_read_with_the_names_of_their_interfaces() -> None:
    """A bundle in either order of its bits, a virtual router, the spanning tree; what is shut or idle is not there."""
    device = Device(
        {
            **router(),
            f"{IFX}.1.7": b"Gi1",
            f"{IFX}.1.8": b"Gi2",
            f"{IFX}.1.50": b"Po1",
            f"{LAG}.21.7": b"\x3d",
            f"{LAG}.21.8": b"\xa0",
            f"{LAG}.21.9": b"\x3d",
            f"{LAG}.12.7": 50,
            f"{LAG}.12.8": 50,
            f"{LAG}.12.9": 0,
            f"{VRRP}.7.51": 3,
            f"{BRIDGE}.2.4.0": 12,
            f"{BRIDGE}.2.15.1.3.1": 5,
            f"{BRIDGE}.2.15.1.3.2": 1,
            f"{BRIDGE}.1.4.1.2.1": 7,
        }
    )
    values = table(poll(ProfileReader(device, load_profiles()["generic"]), 0))
    assert {key: value for key, value in values.items() if key[0].startswith("network.")} == {
        (UP, PEER): 1,
        (UPTIME, PEER): 9000,
        (FLAPS, PEER): 4,
        (UP, NEIGHBOUR): 1,
        (FLAPS, NEIGHBOUR): 6,
        (FLAPS, NEIGHBOUR.replace("1.2,", "1.3,")): 3,
        (UP, "protocol=lacp,peer=Gi1,context=Po1"): 1,
        (UP, "protocol=lacp,peer=Gi2,context=Po1"): 0,
        ("network.session.role", "protocol=vrrp,peer=51,context=Gi1"): 2,
        ("network.topology.changes", "protocol=stp,context=default"): 12,
        ("network.session.role", "protocol=stp,peer=Gi1,context=default"): 2,
    }


def test_vendor_tables_name_peers_by_their_address() -> None:
    """The index holds it in another way each time; Cisco's serves both families and the prefixes of each."""
    cisco, v6 = "1.3.6.1.4.1.9.9.187.1.2", "2.16.32.1.13.184.0.0.0.0.0.0.0.0.0.0.0.5"
    arista, huawei = "1.3.6.1.4.1.30065.4.1.1", "1.3.6.1.4.1.2011.5.25.177.1.1.2.1"
    tables: dict[str, tuple[dict[str, Value], set[tuple[str, str, float]]]] = {
        "cisco-iosxr": (
            {f"{cisco}.5.1.3.{v6}": 6, f"{cisco}.5.1.4.{v6}": 2, f"{cisco}.8.1.1.{v6}.2.1": 77},
            {
                (UP, "2001:db8::5,context=default", 1),
                (PREFIXES, "2001:db8::5,context=default,family=ipv6 unicast", 77),
            },
        ),
        "arista-eos": (
            {
                f"{arista}.2.1.12.1.1.4.10.0.0.2": 2,
                f"{arista}.2.1.13.1.1.4.10.0.0.2": 3,
                f"{arista}.8.1.4.1.1.4.10.0.0.2.1.1": 9,
            },
            {
                (UP, "10.0.0.2,context=default", 0),
                (PREFIXES, "10.0.0.2,context=default,family=ipv4 unicast", 9),
            },
        ),
        "huawei-vrp": (
            {f"{huawei}.5.0.1.1.1.4.10.0.0.2": 6, f"{huawei}.7.0.1.1.1.4.10.0.0.2": 60},
            {(UP, "10.0.0.2,context=default", 1), (UPTIME, "10.0.0.2,context=default", 60)},
        ),
    }
    for name, (values, expected) in tables.items():
        seen = table(poll(ProfileReader(Device(values), load_profiles()[name]), 0))
        found = {(m, o.removeprefix("protocol=bgp,peer="), v) for (m, o), v in seen.items() if m.startswith("network.")}
        assert found == expected, name


PATTERNS = load_profiles()["generic"].logs


LINES = """
session.down | 10.0.0.2 | %BGP-5-ADJCHANGE: neighbor 10.0.0.2 Down BGP Notification sent
session.up | 10.0.0.2 | %BGP-5-ADJCHANGE: neighbor 10.0.0.2 vpn vrf RED Up
session.down | 2001:db8::2 | bgp[1052]: %ROUTING-BGP-5-ADJCHANGE : neighbor 2001:db8::2 Down - Peer closed
session.down | 10.0.0.2 | %BGP-5-ADJCHANGE:  bgp-65000 [123] (default) neighbor 10.0.0.2 Down - holdtimer expired
session.down | 198.18.3.12 | bgpd[44]: %ADJCHANGE: neighbor 198.18.3.12(rb) Down BGP Notification send
session.down | 10.0.0.2 | %BGP-5-ADJCHANGE: peer 10.0.0.2 (AS 1) old state Established event Stop new state Idle
session.up | 10.0.0.2 | %BGP-5-ADJCHANGE: peer 10.0.0.2 (AS 1) old state OpenConfirm new state Established
session.down | 10.0.0.2 | RPD_BGP_NEIGHBOR_STATE_CHANGED: BGP peer 10.0.0.2 (x) changed state from Established to Idle
session.down | 10.0.0.2 | %%01BGP/3/STATE_CHG_UPDOWN(l): peer 10.0.0.2 changed from ESTABLISHED to IDLE.
session.down | 10.0.0.2 | %OSPF-5-ADJCHG: Process 1, Nbr 10.0.0.2 on Gi0/0 from FULL to DOWN, Dead timer expired
session.up | 10.0.0.2 | %OSPF-5-ADJCHG: Process 1, Nbr 10.0.0.2 on Gi0/0 from LOADING to FULL, Loading Done
session.down | 198.18.3.12 | ospfd[5]: AdjChg: Nbr 198.18.3.12, NbrIP 198.18.3.12 on core: Full -> Deleted
session.down | R2 | %CLNS-5-ADJCHANGE: ISIS: Adjacency to R2 (Gi0/1) Down, hold time expired
session.role | 1 | %HSRP-5-STATECHANGE: Vlan10 Grp 1 state Standby -> Active
session.down | Gi1/0/1 | %EC-5-UNBUNDLE: Interface Gi1/0/1 left the port-channel Po1
"""


@pytest.mark.parametrize("row", LINES.strip().splitlines())
def test_lines_of_logs_are_events_with_the_peer(row: str) -> None:
    """The first pattern that fits decides."""
    kind, peer, line = (cell.strip() for cell in row.split(" | ", 2))
    match = next((p, m) for p in PATTERNS if (m := p.match.search(line)) is not None)
    assert (match[0].kind, match[1].groupdict()["peer"]) == (kind, peer)


def test_notifications_of_routing_are_events() -> None:
    """Both numberings of BGP's, those of OSPF and BFD; every profile has them."""
    kinds = {trap.oid: trap.kind for trap in load_profiles()["juniper-junos"].traps}
    assert [kinds[f"1.3.6.1.2.1.15.{end}"] for end in ("7.1", "7.2", "0.1", "0.2")] == [
        "session.up",
        "session.down",
    ] * 2
    assert kinds["1.3.6.1.2.1.14.16.2.2"] == "session.change"
    assert kinds["1.3.6.1.2.1.222.0.2"] == "session.down"
