"""A device's self-description over gNMI: the sections that SNMP and command lines give, plus ``gnmi`` itself.

``/system/state`` (openconfig-system) gives name, software and boot time; ``/components`` (openconfig-platform, with
openconfig-platform-transceiver) the parts. Each is requested separately, as a device that lacks one refuses the
request.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from soakwatch.sources.abc import SourceError
from soakwatch.sources.profiles.entity_inventory import MAX_PARTS, Inventory, by_name, said, sorted_out
from soakwatch_gnmi.paths import Element, Plain, bare, matches, parse_path
from soakwatch_model.tree import Tree

Leaves = Sequence[tuple[tuple[Element, ...], Plain]]
Ask = Callable[[str, float], Awaitable[Leaves]]
"""Returns the values below a path, within a timeout in seconds. Raises SourceError."""

READ_S: Final = 45.0
"""Timeout for reading all of it."""
MAX_MODELS: Final = 500
"""Number of models listed by name; the others are counted."""
_ASK_S: Final = 20.0
_SYSTEM: Final = "/system/state"
_PARTS: Final = "/components/component[name=*]/state"
_OPTICS: Final = "/components/component[name=*]/transceiver/state"
_LEAVES: Final[Mapping[str, str]] = {
    "type": "type",
    "description": "description",
    "mfg-name": "vendor",
    "hardware-version": "hardware",
    "firmware-version": "firmware",
    "software-version": "software",
    "serial-no": "serial",
    "part-no": "part",
    "model-name": "model",
}
_OPTIC_LEAVES: Final[Mapping[str, str]] = {
    "form-factor": "type",
    "vendor": "vendor",
    "vendor-part": "model",
    "serial-no": "serial",
}
_CLASSES: Final[Mapping[str, str]] = {  # identities of openconfig-platform-types, in SNMP's words
    "CHASSIS": "chassis",
    "POWER_SUPPLY": "power supply",
    "FAN": "fan",
    "FAN_TRAY": "fan",
    "FAN_TRAY_CONTROLLER": "fan",
    "LINECARD": "module",
    "CONTROLLER_CARD": "module",
    "FABRIC": "module",
    "FRU": "module",
    "BACKPLANE": "module",
    "CPU": "cpu",
}
_OPTIC: Final = "TRANSCEIVER"
_SYSTEM_PART: Final = "OPERATING_SYSTEM"


@dataclass(frozen=True, slots=True)
class Spoken:
    """From Capabilities: gNMI version, encodings, and the models with their versions."""

    version: str
    encodings: tuple[str, ...]
    models: Mapping[str, str]


async def gnmi_fingerprint(ask: Ask, spoken: Spoken, profile: str) -> dict[str, Tree]:
    """The sections, and notes about what is not served and why. Requests one path after the other."""
    deadline = time.monotonic() + READ_S
    notes = ["licences: not read over gNMI"]
    told: dict[str, Leaves] = {}
    for path, what in ((_SYSTEM, "name, boot time"), (_PARTS, "hardware modules"), (_OPTICS, "transceivers")):
        left_s = max(0.0, min(_ASK_S, deadline - time.monotonic()))
        try:
            told[path] = await ask(path, left_s)
        except SourceError as failure:
            notes.append(f"{what}: {_plain_path(path)} is not served: {failure}")
        else:
            if not told[path]:
                notes.append(f"{what}: {_plain_path(path)} is served, and nothing lies there")
    system = _words(told.get(_SYSTEM, ()), _SYSTEM)
    rows = _rows(told.get(_PARTS, ()), _PARTS, _LEAVES)
    parts, software, unasked = _inventory(rows, _rows(told.get(_OPTICS, ()), _OPTICS, _OPTIC_LEAVES))
    notes += [f"hardware: {unasked} more components are left out"] if unasked else []
    if rows and not parts.transceivers:
        notes.append(f"transceivers: none among {len(rows)} components")
    device = _device(system, parts.chassis, software) | ({"profile": profile} if profile else {})
    missing = ("name", "model", "serial", "software")
    notes += [f"{name}: the device does not tell it over gNMI" for name in missing if not device.get(name)]
    tree: dict[str, Tree] = {"device": dict(device), **parts.sections(), "gnmi": _spoken(spoken)}
    if len(spoken.models) > MAX_MODELS:
        notes.append(f"gnmi: {len(spoken.models) - MAX_MODELS} of {len(spoken.models)} models are left out")
    uptime_s = _uptime_s(system)
    if uptime_s is None:
        notes.append("uptime: the device does not tell over gNMI when it was booted")
    elif isinstance(about := tree["device"], dict):
        about["uptime_s"] = uptime_s
    return {**tree, "notes": list(notes)}


def _spoken(spoken: Spoken) -> dict[str, Tree]:
    section: dict[str, Tree] = {"version": spoken.version, "encodings": ", ".join(spoken.encodings)}
    section = {name: words for name, words in section.items() if words}
    if spoken.models:
        section["models"] = {name: spoken.models[name] or "-" for name in sorted(spoken.models)[:MAX_MODELS]}
    return section


def _device(system: Mapping[str, str], chassis: Mapping[str, str], software: str) -> dict[str, str]:
    """Name and software from the system, everything else from the chassis."""
    device = {
        "name": system.get("hostname", ""),
        "software": system.get("software-version", "") or software or chassis.get("software", ""),
        "vendor": chassis.get("vendor", ""),
        "model": chassis.get("model", "") or chassis.get("description", ""),
        **{key: chassis.get(key, "") for key in ("serial", "hardware", "firmware", "part")},
    }
    return {name: words for name, words in device.items() if words}


def _words(leaves: Leaves, path: str) -> dict[str, str]:
    """The system's own values, by leaf name."""
    found = {}
    for name in ("hostname", "software-version", "boot-time", "current-datetime", "up-time"):
        for _, value in _values(leaves, f"{path}/{name}"):
            found[name] = value
    return found


def _values(leaves: Leaves, path: str) -> Iterable[tuple[str, str]]:
    """Component name and text of a leaf, for each component that has it."""
    steps = parse_path(path)
    for sent, value in leaves:
        for keys, leaf in matches(steps, sent, value):
            if isinstance(leaf, str | int | float) and not isinstance(leaf, bool):
                words = said(str(leaf))
                if words:
                    yield keys.get("name", ""), words


def _rows(leaves: Leaves, path: str, names: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The values of each component, by its name."""
    rows: dict[str, dict[str, str]] = {}
    for leaf, ours in names.items():
        for name, words in _values(leaves, f"{path}/{leaf}"):
            rows.setdefault(name, {})[ours] = bare(words) if ours == "type" else words
    return rows


def _inventory(
    rows: Mapping[str, Mapping[str, str]], optics: Mapping[str, Mapping[str, str]]
) -> tuple[Inventory, str, int]:
    """The parts, the operating system's software version, and how many parts were left out."""
    modules, cages, software = [], [], ""
    for name, row in rows.items():
        kind = row.get("type", "")
        if kind == _SYSTEM_PART:
            software = software or row.get("software", "")
        elif kind == _OPTIC or name in optics:
            cages.append(name)
        elif kind in _CLASSES:
            modules.append(_part(name, _CLASSES[kind], row))
    modules.sort(key=lambda part: part["class"] != "chassis")
    cages += [name for name in optics if name not in rows]
    found = [_optic(name, {**rows.get(name, {}), "type": ""}, optics.get(name, {})) for name in cages]
    found = [optic for optic in found if "serial" in optic]
    kept = sorted_out(modules[:MAX_PARTS])
    chassis = next((part for part in modules if part["class"] == "chassis"), {})
    left_out = max(0, len(modules) - MAX_PARTS) + max(0, len(found) - MAX_PARTS)
    return Inventory(kept.modules, by_name(found[:MAX_PARTS]), (), kept.chassis or chassis), software, left_out


def _part(name: str, kind: str, row: Mapping[str, str]) -> dict[str, str]:
    """A part in SNMP's terms; its part number serves as the model if it has no other."""
    part = {"name": name, "class": kind, **{key: words for key, words in row.items() if key != "type"}}
    if "model" not in part and "part" in part:
        part["model"] = part.pop("part")
    return part


def _optic(name: str, component: Mapping[str, str], told: Mapping[str, str]) -> dict[str, str]:
    part = _part(name, "", {**component, **told})
    optic = {key: words for key, words in part.items() if key != "class"}
    return {**optic, **({"type": told["type"]} if told.get("type") else {})}


def _uptime_s(system: Mapping[str, str]) -> int | None:
    """Uptime by the device's clock if it sends the time, else by this machine's."""
    booted = _epoch_s(system.get("boot-time", ""))
    if booted is None:
        return None
    now = _moment_s(system.get("current-datetime", ""))
    uptime_s = (time.time() if now is None else now) - booted
    return round(uptime_s) if uptime_s >= 0 else None


def _epoch_s(text: str) -> float | None:
    """A boot time in seconds. The model has nanoseconds; devices with an older model send seconds.

    >>> _epoch_s("1700000000000000000") == _epoch_s("1700000000") == 1.7e9
    True
    """
    if not text.isdecimal() or not int(text):
        return None
    value = int(text)
    return value * 1e-9 if value > 10**15 else float(value)


def _moment_s(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo is not None else None


def _plain_path(path: str) -> str:
    return path.replace("[name=*]", "")
