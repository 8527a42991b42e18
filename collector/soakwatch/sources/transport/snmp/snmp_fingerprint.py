"""What a device tells of itself over SNMP: the sections ``device``, ``modules_hw`` and ``transceivers``."""

from __future__ import annotations

import time
from collections.abc import Mapping

from soakwatch.core.text import one_line
from soakwatch.sources.profiles.entity_inventory import Inventory, read_inventory
from soakwatch.sources.profiles.value import Value
from soakwatch.sources.transport.snmp.snmp_errors import SnmpPollError
from soakwatch.sources.transport.snmp.snmp_session import Session, SessionAsker
from soakwatch_model.tree import Tree

READ_S = 45.0
"""What reading the parts may take: a large chassis has thousands, and requests take turns with those of the polls."""
_SYS_DESCR = "1.3.6.1.2.1.1.1.0"
_DESCRIBED = 1000  # characters of sysDescr that are kept
_FACTS = {"model": "model", "serial": "serial", "version": "software", "cluster": "cluster", "ha_mode": "ha_mode"}
_ENTERPRISE = "1.3.6.1.4.1."
_VENDORS = {  # by IANA's enterprise numbers, where the device does not tell its maker
    9: "Cisco",
    11: "Hewlett Packard",
    674: "Dell",
    1916: "Extreme Networks",
    2011: "Huawei",
    2620: "Check Point",
    2636: "Juniper Networks",
    3375: "F5",
    5951: "Citrix",
    6527: "Nokia",
    12356: "Fortinet",
    14988: "MikroTik",
    22610: "A10 Networks",
    25461: "Palo Alto Networks",
    25506: "H3C",
    30065: "Arista Networks",
    33049: "Mellanox",
    41112: "Ubiquiti",
    47196: "Aruba (HPE)",
}


async def snmp_fingerprint(
    session: Session, system: Mapping[str, str], facts: Mapping[str, str], profile: str, uptime_s: float | None
) -> dict[str, Tree]:
    """The sections, and notes about what could not be told. ``facts`` are those of the profile, ``system`` its name.

    Never sysContact and sysLocation: they name people and places. Parts that were not read to their end are left out
    as a whole, for half of them would differ from all of them.
    """
    deadline = time.monotonic() + READ_S
    asker = SessionAsker(session, deadline_s=deadline)
    notes = ["licences: not read over SNMP"]
    parts, described = Inventory(), system.get("system", "")
    try:
        value = (await asker.get((_SYS_DESCR,))).get(_SYS_DESCR)
        described = _whole(value) or described
        sparse = session.access.version != "1"  # of which a missing object costs a request
        parts = await read_inventory(asker, system.get("object id", ""), sparse=sparse)
    except SnmpPollError as failure:
        notes.append(f"hardware modules, transceivers: {failure}")
    device = _device(system, facts, parts.chassis) | {"description": described, "profile": profile}
    notes += [f"{name}: the device does not tell it over SNMP" for name in ("model", "serial") if not device.get(name)]
    told: dict[str, Tree] = {name: words for name, words in device.items() if words}
    if uptime_s is not None:
        told["uptime_s"] = round(uptime_s)
    return {"device": told, **parts.sections(), "notes": [*notes, *parts.notes]}


def _device(system: Mapping[str, str], facts: Mapping[str, str], chassis: Mapping[str, str]) -> dict[str, str]:
    """What the profile found out, and where it did not, what stands on the chassis."""
    object_id = system.get("object id", "")
    device = {
        "name": system.get("name", ""),
        "vendor": chassis.get("vendor") or _vendor(object_id),
        "object_id": object_id,
        **{theirs: facts[ours] for ours, theirs in _FACTS.items() if facts.get(ours)},
    }
    from_chassis = {
        key: chassis[key] for key in ("model", "serial", "hardware", "firmware", "software") if key in chassis
    }
    return {**from_chassis, **device}


def _vendor(object_id: str) -> str:
    arc = object_id.removeprefix(_ENTERPRISE).partition(".")[0]
    return _VENDORS.get(int(arc), "") if object_id.startswith(_ENTERPRISE) and arc.isdecimal() else ""


def _whole(value: Value | None) -> str:
    """sysDescr at its full length: versions stand at its end."""
    words = value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
    return one_line(words, _DESCRIBED)
