"""What command lines tell of a device's parts: modules, power supplies, fans, transceivers, licences.

Each reads the text of one command into sections of a fingerprint. None raises: what it does not know is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from soakwatch.core.text import one_line
from soakwatch_model.tree import Tree

Sections = dict[str, Tree]
Row = dict[str, Tree]
MAX_ROWS = 500
_LENGTH = 120
_NOTHING = frozenset({"", "n/a", "builtin", "none", "unknown", "-", "not present"})
_OPTIC = re.compile(r"(?i)\b(?:SFP|QSFP|XFP|CFP|CPAK|GBIC|transceiver|optics?)\b|\dG?BASE-?[A-Z]|SFP[+-]|^Xcvr")
_PORTS = re.compile(r"(?i)\b\d+[ -]?(?:x\d+\w* ?)?ports?\b|\b\d+x\d+G")

_CISCO_NAME = re.compile(r'^\s*NAME: *"(.{0,120}?)" *, *DESCR: *"(.{0,200})"', re.IGNORECASE)
_CISCO_PID = re.compile(r"^\s*PID: *(.{0,60}?) *, *VID: *(.{0,30}?) *, *SN: *(\S{0,60})", re.IGNORECASE)
_CISCO_IMAGE = re.compile(
    r'^\s*(?:System image file is|(?:NXOS|kickstart|system) image file is:?) *"?([^"\s]{1,160})"?'
)
_CISCO_BIOS = re.compile(r"^\s*(?:BIOS: +version|ROM:|BOOTLDR:) *(.{1,100})$")
_CHASSIS = re.compile(r"(?i)chassis|rack 0$|switch 1$")
_REGISTER = re.compile(r"^Configuration register is (0x[0-9A-Fa-f]{1,8})")
_RULE = re.compile(r"^\s*-{5,}[-\s]*$")
_JUNOS_COLUMNS = ("item", "version", "part number", "serial number", "description")
_VRP_ESN = re.compile(r"^\s*(?:ESN|BARCODE).{0,40}?: *(\S{4,40})\s*$", re.IGNORECASE)
_TRANSCEIVER = re.compile(r"^(\S{2,60}) transceiver (?:information|manufacture information) *:?\s*$")
_PAIR = re.compile(r"^\s*([A-Za-z][^:=]{0,80}?)\s*[:=]\s*(.*)$")
_FORTI = {
    "hostname": "name", "serial-number": "serial", "version": "software", "bios version": "firmware",
    "system part-number": "part", "operation mode": "operation_mode", "current ha mode": "ha_mode",
    "license status": "licence",
}  # fmt: skip
_PANOS = {
    "hostname": "name", "model": "model", "serial": "serial", "sw-version": "software", "vm-license": "licence",
    "vm-mode": "virtual", "vm-cores": "cores", "app-version": "app_version", "threat-version": "threat_version",
    "av-version": "antivirus_version", "url-filtering-version": "url_version", "multi-vsys": "multi_vsys",
    "operational-mode": "operation_mode", "device-certificate-status": "",
}  # fmt: skip


def cisco_version(text: str) -> Sections:
    """``show version``: what it booted, its boot loader, its configuration register."""
    device: Row = {}
    for line in text.splitlines()[:500]:
        if (match := _CISCO_IMAGE.match(line)) is not None:
            device.setdefault("boot_image", match[1])
        elif (match := _CISCO_BIOS.match(line)) is not None:
            device.setdefault("firmware", one_line(match[1], _LENGTH))
        elif (match := _REGISTER.match(line)) is not None:
            device["configuration_register"] = match[1]
    return {"device": device} if device else {}


def cisco_inventory(text: str) -> Sections:
    """``show inventory`` of IOS, IOS XE, IOS XR, NX-OS and ASA."""
    rows: list[Row] = []
    for line in text.splitlines():
        if (match := _CISCO_NAME.match(line)) is not None:
            rows.append(_row(name=match[1], description=match[2]))
        elif (match := _CISCO_PID.match(line)) is not None and rows:
            rows[-1] |= _row(model=match[1], hardware=match[2], serial=match[3])
    return _sections(row for row in rows if len(row) > 2)


def eos_inventory(text: str) -> Sections:
    """``show inventory | json``."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(document, dict):
        return {}
    rows: list[Row] = []
    if isinstance(system := document.get("systemInformation"), dict):
        rows.append(_eos_row("Chassis", system) | _row(model=_text(system.get("name"))))
    for key, kind in (("cardSlots", ""), ("powerSupplySlots", "Power supply "), ("fanTraySlots", "Fan tray ")):
        rows += [_eos_row(f"{kind}{slot}", cells) for slot, cells in _slots(document.get(key))]
    optics = [_eos_row(f"Ethernet{slot}", cells) for slot, cells in _slots(document.get("xcvrSlots"))]
    optics = [row for row in optics if len(row) > 1]
    found = _sections(row for row in rows if len(row) > 1)
    return found | ({"transceivers": [*optics[:MAX_ROWS]]} if optics else {})


def junos_hardware(text: str) -> Sections:
    """``show chassis hardware``: columns stand where the head has them, parts of parts are indented."""
    starts: list[int] = []
    path: list[tuple[int, str]] = []
    rows: list[Row] = []
    for line in text.splitlines():
        low = line.lower()
        if all(column in low for column in _JUNOS_COLUMNS):
            starts = [low.index(column) for column in _JUNOS_COLUMNS]
            continue
        if not starts or not line.strip() or len(line) > 400:
            continue
        ends = [*starts[1:], len(line)]
        item, version, part, serial, description = (line[a:b] for a, b in zip(starts, ends, strict=True))
        depth = len(item) - len(item.lstrip())
        path = [(at, name) for at, name in path if at < depth]
        path.append((depth, item.strip()))
        name = " ".join(name for _, name in path)
        rows.append(_row(name=name, description=description, hardware=version, model=part, serial=serial))
    return _sections(row for row in rows if len(row) > 1)


def vrp_esn(text: str) -> Sections:
    """``display esn``: the serial number."""
    found = (match[1] for line in text.splitlines()[:50] if (match := _VRP_ESN.match(line)) is not None)
    serial = next(found, "")
    return {"device": {"serial": serial}} if serial else {}


def transceivers(text: str) -> Sections:
    """``display transceiver`` of VRP, ``display transceiver manuinfo`` of Comware."""
    rows: list[Row] = []
    for line in text.splitlines():
        if (match := _TRANSCEIVER.match(line.strip())) is not None:
            rows.append(_row(name=match[1]))
            continue
        key, value, _ = next(pairs([line]))
        words = key.strip()
        if not rows or not words:
            continue
        if "serial number" in words:
            rows[-1] |= _row(serial=value)
        elif words in {"vendor part number", "vendor pn", "transceiver type", "vendor name"}:
            rows[-1] |= _row(
                **{{"vendor name": "vendor", "transceiver type": "description"}.get(words, "model"): value}
            )
    rows = [row for row in rows if len(row) > 1]
    return {"transceivers": [*rows[:MAX_ROWS]]} if rows else {}


def comware_manuinfo(text: str) -> Sections:
    """``display device manuinfo``: slots, fans and power supplies with name, serial number and maker."""
    rows: list[Row] = []
    keys = {"device_name": "model", "device_serial_number": "serial", "vendor_name": "vendor"}
    for line in text.splitlines():
        key, value, _ = next(pairs([line]))
        if key in keys and rows:
            rows[-1] |= _row(**{keys[key]: value})
        elif line.strip().endswith(":"):
            rows.append(_row(name=line.strip(" :")))
    rows = [row for row in rows if len(row) > 1]
    found = _sections(rows)
    first = rows[0].get("serial") if rows else None
    return found | ({"device": {"serial": first}} if first else {})


def fortios_status(text: str) -> Sections:
    """``get system status``."""
    return _settings(text, _FORTI, (" version", "-db", " db", "-ips", "definitions"))


def panos_info(text: str) -> Sections:
    """``show system info``."""
    return _settings(text, _PANOS, ())


def license_table(text: str) -> Sections:
    """``show license usage`` of NX-OS, ``show license summary`` of IOS XE, ``show system license`` of Junos: a table
    under a rule or a head, its first column the name; counts and states stand behind it."""
    rows: list[Row] = []
    inside = False
    for line in text.splitlines():
        cells = [cell for cell in re.split(r"\s{2,}", line.strip()) if cell]
        if _RULE.match(line) or line.strip().lower().startswith("feature name"):
            inside = not (_RULE.match(line) and rows)
        elif len(cells) < 2:
            inside = inside and not line.strip() and not rows
        elif inside and len(rows) < MAX_ROWS:
            rows.append(_row(name=cells[0], state=" ".join(cells[1:])))
    return {"licences": [*rows]} if rows else {}


def pairs(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Lines as (key in lower case, value, line); lines without a key have an empty one."""
    for line in lines:
        match = _PAIR.match(line)
        yield (match[1].lower(), match[2].strip(), line) if match else ("", "", line)


def _settings(text: str, names: Mapping[str, str], versions: tuple[str, ...]) -> Sections:
    device: Row = {}
    contents: Row = {}
    for key, value, _ in pairs(text.splitlines()[:500]):
        words = one_line(value, _LENGTH)
        if key in names:
            if names[key] and words.lower() not in _NOTHING:
                device.setdefault(names[key], words)
        elif versions and key.endswith(versions) and words:
            contents[key] = words
    licence = device.pop("licence", None)
    if contents:
        device["contents"] = dict(contents)
    found: Sections = {"device": device} if device else {}
    return found | ({"licences": [{"name": "device", "state": licence}]} if licence else {})


def _sections(rows: Iterable[Row]) -> Sections:
    """Parts and optics apart."""
    modules: list[Tree] = []
    optics: list[Tree] = []
    for row in rows:
        words = f"{row.get('name', '')} {row.get('description', '')} {row.get('model', '')}"
        last = str(row.get("name", "")).rpartition("Xcvr ")
        optic = "serial" in row and (bool(last[1]) or (_OPTIC.search(words) is not None and not _PORTS.search(words)))
        (optics if optic else modules).append(dict(row))
    found: Sections = {
        name: rows[:MAX_ROWS] for name, rows in (("modules_hw", modules), ("transceivers", optics)) if rows
    }
    chassis = next((row for row in modules if isinstance(row, dict) and _CHASSIS.match(str(row.get("name")))), None)
    if isinstance(chassis, dict) and "serial" in chassis:
        found["device"] = {"serial": chassis["serial"]}
    return found


def _slots(tree: object) -> list[tuple[str, Mapping[str, object]]]:
    slots = tree.items() if isinstance(tree, dict) else ()
    return [(one_line(str(slot), 40), cells) for slot, cells in slots if isinstance(cells, dict)]


def _eos_row(name: str, cells: Mapping[str, object]) -> Row:
    model = _text(cells.get("modelName")) or _text(cells.get("name"))
    return _row(
        name=name,
        description=_text(cells.get("description")),
        vendor=_text(cells.get("mfgName")),
        model=model,
        serial=_text(cells.get("serialNum")),
        hardware=_text(cells.get("hardwareRev")) or _text(cells.get("hwVersion")),
    )


def _row(**cells: str) -> Row:
    return {key: words for key, text in cells.items() if (words := one_line(text, _LENGTH)).lower() not in _NOTHING}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


READERS: Mapping[str, Callable[[str], Sections]] = {
    read.__name__: read
    for read in (
        *(cisco_version, cisco_inventory, eos_inventory, junos_hardware, vrp_esn, transceivers),
        *(comware_manuinfo, fortios_status, panos_info, license_table),
    )
}
"""By the names that files have for them (``parts``)."""
