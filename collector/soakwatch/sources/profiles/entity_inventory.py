"""What a device is made of, by its tables of parts: ENTITY-MIB (RFC 6933), of Juniper jnxContentsTable.

Sensors, and parts that say nothing of themselves, are left out. A transceiver is what sits in a port or a cage and has
a serial number, or a module whose description is that of an optic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from soakwatch.sources.profiles.rows import by_column, index_key
from soakwatch.sources.profiles.value import Asker, Value, text
from soakwatch_model.tree import Tree

MAX_PARTS = 400
"""Parts that are asked for and reported; a chassis with more says how many it has besides."""

_ENTITY = "1.3.6.1.2.1.47.1.1.1.1"
_CLASS, _SERIAL = f"{_ENTITY}.5", f"{_ENTITY}.11"
_COLUMNS: Mapping[str, str] = {
    "description": f"{_ENTITY}.2",
    "name": f"{_ENTITY}.7",
    "hardware": f"{_ENTITY}.8",
    "firmware": f"{_ENTITY}.9",
    "software": f"{_ENTITY}.10",
    "serial": _SERIAL,
    "vendor": f"{_ENTITY}.12",
    "model": f"{_ENTITY}.13",
}
_CLASSES = {3: "chassis", 5: "container", 6: "power supply", 7: "fan", 9: "module", 10: "port", 11: "stack", 12: "cpu"}
_WANTED = (3, 11, 6, 7, 9, 12)
_UNKNOWN = 2
_WITH_SERIAL = (5, 10, _UNKNOWN)  # containers and ports hold optics; some agents have no column of classes
_JUNIPER = "1.3.6.1.4.1.2636.3.1.8.1"
_JUNIPER_COLUMNS: Mapping[str, str] = {
    "name": f"{_JUNIPER}.6",
    "serial": f"{_JUNIPER}.7",
    "hardware": f"{_JUNIPER}.8",
    "part": f"{_JUNIPER}.10",
    "model": f"{_JUNIPER}.14",
}
_JUNIPER_ARC = "1.3.6.1.4.1.2636."
_NOTHING = frozenset({"", "n/a", "na", "none", "not available", "unknown", "null", "builtin", "-"})
_OPTIC = re.compile(
    r"(?i)\b(?:[QO]?SFP(?:-?DD|\+|28|56)?|XFP|C?X2|CFP\d?|GBIC|X[e]?nPAK|xcvr|transceiver)\b|\dG?BASE-?[A-Z]"
)
_PORTS = re.compile(r"(?i)\b\d+[ -]?(?:x ?\d+\w*[ -])?ports?\b|\b\d+ ?x ?\d+ ?G")
_COPY = re.compile(r"(?i)-?IDPROM$")  # the memory chip of a part that has a row of its own


@dataclass(frozen=True, slots=True)
class Inventory:
    """The parts of a device, and sentences about what of it could not be read."""

    modules: tuple[Mapping[str, str], ...] = ()
    transceivers: tuple[Mapping[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    chassis: Mapping[str, str] = field(default_factory=dict)

    def sections(self) -> dict[str, Tree]:
        """Those sections of a fingerprint that there is something for."""
        tree: dict[str, Tree] = {}
        if self.modules:
            tree["modules_hw"] = [dict(part) for part in self.modules]
        if self.transceivers:
            tree["transceivers"] = [dict(part) for part in self.transceivers]
        return tree


async def read_inventory(asker: Asker, object_id: str, *, sparse: bool = True) -> Inventory:
    """The parts of the device whose sysObjectID this is. Raises what the asker raises.

    The table is walked for classes and serial numbers; ``sparse``: where few of its rows are parts that matter, the
    other columns are asked for these alone.
    """
    tree = by_column((_CLASS, _SERIAL), await asker.walk((_CLASS, _SERIAL)))
    classes = dict.fromkeys(tree[_SERIAL], _UNKNOWN)
    classes |= {index: value for index, value in tree[_CLASS].items() if isinstance(value, int)}
    if not classes:
        return await _juniper(asker) if object_id.startswith(_JUNIPER_ARC) else _without()
    chosen = _chosen(classes, tree[_SERIAL])
    kept = chosen[:MAX_PARTS]
    others = [column for column in _COLUMNS.values() if column != _SERIAL]
    if sparse and len(kept) * 2 < len(classes):
        rest = await asker.get([f"{column}.{index}" for index in kept for column in others])
    else:
        rest = await asker.walk(others)
    values = {**rest, **{f"{_SERIAL}.{index}": value for index, value in tree[_SERIAL].items()}}
    names = {index: _CLASSES.get(number, "part") for index, number in classes.items() if index in tree[_CLASS]}
    rows = [_row(values, _COLUMNS, index, names.get(index, "")) for index in kept]
    found = sorted_out(rows)
    notes = list(found.notes)
    if len(chosen) > len(kept):
        notes.append(
            f"hardware: {len(chosen) - len(kept)} of {len(chosen)} parts of entPhysicalTable were not asked for"
        )
    if not found.transceivers:
        notes.append(f"transceivers: none is reported among the {len(classes)} parts of entPhysicalTable")
    return Inventory(found.modules, found.transceivers, tuple(notes), found.chassis)


def _without() -> Inventory:
    return Inventory(notes=("hardware modules, transceivers: the agent has no entPhysicalTable (ENTITY-MIB)",))


def _chosen(classes: Mapping[str, int], serials: Mapping[str, Value]) -> list[str]:
    """The indexes of the parts that matter, chassis first, then by class."""
    ranks = {number: rank for rank, number in enumerate(_WANTED)}

    def matters(index: str) -> bool:
        return classes[index] in ranks or (classes[index] in _WITH_SERIAL and bool(said(serials.get(index))))

    indexes = (index for index in classes if matters(index))
    return sorted(indexes, key=lambda index: (ranks.get(classes[index], len(ranks)), index_key(index)))


async def _juniper(asker: Asker) -> Inventory:
    columns = tuple(_JUNIPER_COLUMNS.values())
    values = await asker.walk(columns)
    tree = by_column(columns, values)
    indexes = sorted({index for column in tree.values() for index in column}, key=index_key)
    if not indexes:
        return _without()
    rows = [_row(values, _JUNIPER_COLUMNS, index, "") for index in indexes[:MAX_PARTS]]
    found = sorted_out(rows)
    return Inventory(found.modules, found.transceivers, ("transceivers: jnxContentsTable does not tell them",))


def _row(values: Mapping[str, Value], columns: Mapping[str, str], index: str, kind: str) -> dict[str, str]:
    row = {"class": kind} if kind else {}
    return {**row, **{key: words for key, base in columns.items() if (words := said(values.get(f"{base}.{index}")))}}


def said(value: Value | None) -> str:
    """The words of a cell; none for one that is there and says nothing, such as ``N/A``."""
    words = "" if value is None else text(value)
    return "" if words.lower() in _NOTHING else words


def sorted_out(rows: Iterable[Mapping[str, str]]) -> Inventory:
    """Modules, transceivers and the chassis among rows of parts with ``class`` and what they say of themselves."""
    modules: list[dict[str, str]] = []
    optics: list[dict[str, str]] = []
    chassis: Mapping[str, str] = {}
    for row in rows:
        if _COPY.search(row.get("name", "")) or not row.keys() & {"serial", "model", "hardware", "firmware", "part"}:
            continue
        if _is_optic(row):
            optics.append({key: words for key, words in row.items() if key != "class"})
        elif row.get("class") not in {"port", "container"}:
            modules.append(dict(row))
            chassis = chassis or (
                row if row.get("class", "chassis") in {"chassis", "stack"} and "serial" in row else {}
            )
    return Inventory(by_name(modules), by_name(optics), (), chassis)


def _is_optic(row: Mapping[str, str]) -> bool:
    kind = row.get("class")
    if "serial" not in row or kind not in {"port", "container", "module"}:
        return False
    words = " ".join(row.get(key, "") for key in ("description", "model"))
    return kind == "port" or (_OPTIC.search(words) is not None and (kind == "container" or not _PORTS.search(words)))


def by_name(rows: Iterable[Mapping[str, str]]) -> tuple[Mapping[str, str], ...]:
    """Each under a name of its own: a comparison finds it by that."""
    named: dict[str, Mapping[str, str]] = {}
    for row in rows:
        name = first = row.get("name") or row.get("description") or row.get("model") or row.get("class", "part")
        count = 1
        while name in named:
            count += 1
            name = f"{first} ({count})"
        named[name] = {"name": name, **{key: words for key, words in row.items() if key != "name" and words != name}}
    return tuple(named.values())
