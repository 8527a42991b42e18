"""What a device tells of itself by gNMI, at a target that speaks the protocol on loopback."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from soakwatch.core.fingerprints import differences, merged
from soakwatch.sources.abc import Fingerprints, SourceContext, SourceUnreadyError
from soakwatch_gnmi import Config, start
from soakwatch_gnmi.paths import Plain
from soakwatch_model.tree import Tree, parse_json
from soakwatch_testing.gnmi_target import GnmiTarget, gnmi_target

POLLED = "/interfaces/interface[name=Ethernet1]/state/counters/in-discards"
SYSTEM: dict[str, Plain] = {
    "/system/state": {
        "openconfig-system:hostname": "leaf1",
        "boot-time": "1700000000000000000",
        "current-datetime": "2023-11-15T22:13:20Z",
        "software-version": "4.30.1F",
    }
}
PARTS: dict[str, Plain] = {
    "/components/component[name=Chassis]/state": {
        "type": "openconfig-platform-types:CHASSIS",
        "mfg-name": "Arista Networks",
        "part-no": "DCS-7280SR-48C6",
        "serial-no": "JPE1",
        "hardware-version": "21.05",
        "description": "48 SFP+ and 6 QSFP100",
    },
    "/components/component[name=Linecard3]/state": {
        "type": "openconfig-platform-types:LINECARD",
        "part-no": "7500R-36CQ",
        "serial-no": "L3",
    },
    "/components/component[name=PowerSupply1]/state": {
        "type": "openconfig-platform-types:POWER_SUPPLY",
        "model-name": "PWR-500AC",
        "part-no": "PWR-500AC-F",
        "serial-no": "K1",
    },
    "/components/component[name=EOS]/state": {"type": "OPERATING_SYSTEM", "software-version": "4.30.1F-old"},
    "/components/component[name=Sensor1]/state": {"type": "openconfig-platform-types:SENSOR", "serial-no": "N/A"},
    "/components/component[name=Ethernet1 transceiver]/state": {"type": "TRANSCEIVER", "serial-no": "X1"},
    "/components/component[name=Ethernet2 transceiver]/state": {"type": "TRANSCEIVER"},  # an empty cage
    "/components/component[name=Ethernet1 transceiver]/transceiver/state": {
        "form-factor": "openconfig-transport-types:SFP_PLUS",
        "vendor": "Arista Networks",
        "vendor-part": "SFP-10G-SR",
        "serial-no": "X1",
    },
}


def told(target: GnmiTarget) -> Mapping[str, Tree]:
    """What the poller tells of a target once it polls it."""

    async def ask() -> Mapping[str, Tree]:
        path = {"path": POLLED.replace("Ethernet1", "*"), "metric": "system.network.packet.dropped"}
        labels = {"labels": {"interface": "{name}", "direction": "receive"}}
        keys = {"host": "127.0.0.1", "port": target.port, "plaintext": True, "paths": [path | labels]}
        site = SourceContext("dut", "dut", (), None, Path(), time.time_ns, 1.0)
        async with AsyncExitStack() as stack:
            poller = await start(Config.model_validate(keys), site, stack)
            assert isinstance(poller, Fingerprints)
            with pytest.raises(SourceUnreadyError, match="the stream is not open"):
                await poller.fingerprint()
            await poller.poll(time.time_ns())
            return await poller.fingerprint()

    target.leaves.setdefault(POLLED, 0)
    with gnmi_target(target):
        return asyncio.run(ask())


def kept(tree: Mapping[str, Tree], source: str = "gnmi") -> dict[str, Tree]:
    """As the engine keeps it in the record."""
    plain = parse_json(json.dumps(tree))
    assert isinstance(plain, dict)
    return merged([(source, plain)])


def notes(tree: Mapping[str, Tree]) -> list[str]:
    lines = tree["notes"]
    assert isinstance(lines, list)
    return [str(line) for line in lines]


@pytest.mark.parametrize("once", [True, False])
def test_a_switch_tells_what_snmp_would_and_what_it_speaks(*, once: bool) -> None:
    """By ONCE, or by Get of a device without it; empty cages and sensors are no parts."""
    tree = told(GnmiTarget({**SYSTEM, **PARTS}, models={"openconfig-platform": "0.24.0"}, once_served=once))
    assert tree["device"] == {
        "name": "leaf1",
        "software": "4.30.1F",
        "vendor": "Arista Networks",
        "model": "DCS-7280SR-48C6",
        "serial": "JPE1",
        "hardware": "21.05",
        "uptime_s": 86400,
    }
    modules = tree["modules_hw"]
    assert isinstance(modules, list)
    assert [row["name"] for row in modules if isinstance(row, dict)] == ["Chassis", "Linecard3", "PowerSupply1"]
    assert modules[1:] == [
        {"name": "Linecard3", "class": "module", "serial": "L3", "model": "7500R-36CQ"},
        {"name": "PowerSupply1", "class": "power supply", "serial": "K1", "part": "PWR-500AC-F", "model": "PWR-500AC"},
    ]
    assert tree["transceivers"] == [
        {
            "name": "Ethernet1 transceiver",
            "serial": "X1",
            "type": "SFP_PLUS",
            "vendor": "Arista Networks",
            "model": "SFP-10G-SR",
        }
    ]
    assert tree["gnmi"] == {
        "version": "0.8.0",
        "encodings": "JSON_IETF, PROTO",
        "models": {"openconfig-platform": "0.24.0"},
    }
    assert notes(tree) == ["licences: not read over gNMI"]


def test_leaf_by_leaf_is_the_same_and_another_optic_is_a_difference() -> None:
    """A device that sends single leaves tells the same; what was changed is found by name, the uptime is no change."""
    leaves: dict[str, Plain] = {
        f"{path}/{name.rpartition(':')[2]}": leaf
        for path, tree in {**SYSTEM, **PARTS}.items()
        if isinstance(tree, dict)
        for name, leaf in tree.items()
    }
    begin = kept(told(GnmiTarget({**SYSTEM, **PARTS})))
    assert differences(begin, kept(told(GnmiTarget(dict(leaves))))) == {}
    cage = "/components/component[name=Ethernet1 transceiver]"
    changed = {f"{cage}/state/serial-no": "X2", f"{cage}/transceiver/state/serial-no": "X2"}
    later = told(GnmiTarget({**leaves, **changed, "/system/state/boot-time": "1700000009"}))
    assert differences(begin, kept(later)) == {"transceivers Ethernet1 transceiver serial": "X1 -> X2"}


def test_what_is_not_served_is_said_with_the_reason() -> None:
    """A path that is refused, one under which nothing lies, and leaves that are not told: a note each, no value."""
    tree = told(GnmiTarget({}, refuses=("components",)))
    assert "modules_hw" not in tree
    assert tree["device"] == {}
    said = notes(tree)
    assert "name, boot time: /system/state is served, and nothing lies there" in said
    (refused,) = [line for line in said if line.startswith("hardware modules: ")]
    assert refused.startswith("hardware modules: /components/component/state is not served: 127.0.0.1 port ")
    assert refused.endswith("refuses a path or a mode: unknown element components")
    assert "serial: the device does not tell it over gNMI" in said
    assert "uptime: the device does not tell over gNMI when it was booted" in said


def test_a_device_without_get_and_once_tells_what_it_speaks() -> None:
    """Neither is served: notes, and what Capabilities told."""
    tree = told(GnmiTarget({**SYSTEM}, once_served=False, get_served=False))
    assert tree["gnmi"] == {"version": "0.8.0", "encodings": "JSON_IETF, PROTO"}
    assert sum(line.endswith("has neither subscriptions ONCE nor Get") for line in notes(tree)) == 3
