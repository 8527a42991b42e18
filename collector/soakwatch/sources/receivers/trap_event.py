"""The event of a notification: of a known kind, of the device's profile, or the raw trap."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from soakwatch.sources.profiles.profile_model import TrapPattern
from soakwatch.sources.receivers.notification import STANDARD, Notification, Value
from soakwatch.sources.receivers.text import WORD, octets, shown
from soakwatch_model.event import Event
from soakwatch_model.sample import object_text

_KINDS = {
    f"{STANDARD}.1": "snmp.cold_start",  # the agent restarted, not necessarily the device
    f"{STANDARD}.2": "snmp.warm_start",
    f"{STANDARD}.3": "link.down",
    f"{STANDARD}.4": "link.up",
    f"{STANDARD}.5": "snmp.authentication_failure",
    "1.3.6.1.4.1.8072.4.0.2": "snmp.agent_stop",  # NET-SNMP-AGENT-MIB: the agent ends regularly
    "1.3.6.1.4.1.8072.4.0.3": "snmp.agent_restart",
}
_IF_NAME, _IF_DESCR, _IF_INDEX = "1.3.6.1.2.1.31.1.1.1.1", "1.3.6.1.2.1.2.2.1.2", "1.3.6.1.2.1.2.2.1.1"
_CELL = re.compile(r"1\.3\.6\.1\.2\.1\.(?:2\.2\.1|31\.1\.1\.1)\.[0-9]+\.([0-9]+)")  # ifTable, ifXTable: column, index
_STATES = {"1.3.6.1.2.1.2.2.1.7": "admin", "1.3.6.1.2.1.2.2.1.8": "operational"}
_STATE_WORDS = {1: "up", 2: "down", 3: "testing", 4: "unknown", 5: "dormant", 6: "not present", 7: "lower layer down"}
_SHOWN_BINDS = 24
_ALL_BINDS = 2000  # characters of the raw varbinds


Name = Callable[[str], str | None]
"""The object of an interface by its ifIndex; None if unknown."""


def event_of(
    notification: Notification,
    address: str,
    time_ns: int,
    traps: Mapping[str, TrapPattern],
    known_as: Name = lambda _: None,
) -> Event:
    """The event of a notification from ``address``, with its varbinds, bounded, in ``binds``.

    A link's object is the interface as series name it: by its ifName, by ``known_as`` of its index, by its ifDescr,
    else ``interface=ifIndex N``. Wrong if only the index is sent and the device has renumbered its interfaces since the
    last survey.
    """
    pattern = traps.get(notification.oid)
    kind = pattern.kind if pattern else _KINDS.get(notification.oid, "snmp.trap")
    detail = {"trap": notification.oid, "address": address, "version": notification.version}
    if notification.uptime_s is not None:
        detail["uptime"] = f"{notification.uptime_s:.2f}"
    if pattern is not None:
        for name, oid in pattern.detail.items():
            value = _under(notification, oid)
            if value is not None:
                detail[name] = value
    label = ""
    if kind in {"link.down", "link.up"}:
        index = _index(notification)
        if index is not None:
            detail["ifindex"] = index
        label = _interface(notification, index, known_as)
        detail.update(_states(notification))
    raw = _raw(notification)
    if raw:
        detail["binds"] = raw
    return Event(kind, "", label, time_ns, None, detail)


def _interface(notification: Notification, index: str | None, known_as: Name) -> str:
    known = known_as(index) if index is not None else None
    named = _under(notification, _IF_NAME)
    if named and known != object_text(interface=f"{named} #{index}"):  # "#" distinguishes series of equal names
        return object_text(interface=named)
    if known is not None:
        return known
    described = _under(notification, _IF_DESCR) or (f"ifIndex {index}" if index is not None else "")
    return object_text(interface=described) if described else ""


def _index(notification: Notification) -> str | None:
    """The ifIndex, given as value or as the instance of another object.

    Some agents name a column without instance; its last number is then no index.
    """
    index = next(
        (value for oid, value in notification.binds if oid == _IF_INDEX or oid.startswith(f"{_IF_INDEX}.")), None
    )
    if isinstance(index, int):
        return str(index)
    cells = (_CELL.fullmatch(oid) for oid, _ in notification.binds)
    return next((cell[1] for cell in cells if cell is not None), None)


def _states(notification: Notification) -> dict[str, str]:
    states = {}
    for prefix, name in _STATES.items():
        value = next(
            (value for oid, value in notification.binds if oid == prefix or oid.startswith(f"{prefix}.")), None
        )
        if isinstance(value, int) and value in _STATE_WORDS:
            states[name] = _STATE_WORDS[value]
    return states


def _under(notification: Notification, prefix: str) -> str | None:
    """The first value of an object, of any instance."""
    for oid, value in notification.binds:
        if oid == prefix or oid.startswith(f"{prefix}."):
            return _text(value)
    return None


def _raw(notification: Notification) -> str:
    parts = [f"{oid}={_text(value)}" for oid, value in notification.binds[:_SHOWN_BINDS]]
    left = len(notification.binds) - _SHOWN_BINDS
    if left > 0:
        parts.append(f"and {left} more")
    return shown("; ".join(parts), _ALL_BINDS)


def _text(value: Value) -> str:
    if isinstance(value, bytes):
        return octets(value)
    return shown(str(value), WORD)
