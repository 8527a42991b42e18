"""Fingerprints of machines in a record: trees of sections, merged from several sources, and how two of them differ.

A tree (``soakwatch_agent.fingerprint.Tree``) has sections such as ``host``, ``nics`` or ``device``; ``reported_by``
says which source reported each, ``notes`` are sentences on what could not be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from soakwatch.core.formatting import quantity
from soakwatch_model.tree import Tree, flatten

BEGIN_KEY: Final = "fingerprint"
"""Meta key: the tree of each target at the begin of the run, JSON by target."""
END_KEY: Final = "fingerprint_end"
"""The same at its end; without targets that could not be asked then."""
REPORTED_BY, NOTES = "reported_by", "notes"
ABOUT_KEYS: Final = frozenset({REPORTED_BY, NOTES})
"""Keys of a tree that are about its sources, not about the machine."""
MONITOR_HOST: Final = "monitor host"
"""Name of the tree of the machine that Soakwatch runs on, if that is no target."""

VOLATILE_SECTIONS: Final = frozenset({"processes"}) | ABOUT_KEYS
"""Sections that change by themselves or are not about the machine: never compared."""
VOLATILE_KEYS: Final = frozenset({"uptime", "uptime_s", "up_since", "free", "free_bytes"})
"""The same for keys at any depth."""
_OF_MEMORY: Final = frozenset({"memory", "numa"})
_BREATHING: Final = frozenset({"total_bytes", "memory_bytes"})
"""Amounts in these sections that a virtual machine's memory balloon changes."""
_BREATH = 0.5  # share of the larger amount that a balloon may take
MAX_DIFFERENCES: Final = 20
"""Maximum of paths listed in an event; ``more`` says how many are left out."""
_ABSENT = "absent"
_MAX_VALUE = 200
BYTES: Final = "_bytes"


def merged(
    reported: Iterable[tuple[str, Mapping[str, Tree]]], kept: Mapping[str, Tree] | None = None
) -> dict[str, Tree]:
    """Merges what several sources reported, by their names, into one tree, on top of ``kept``.

    The first to report a fact wins; a later source adds missing sections, and missing keys of a section.

    >>> merged([("snmp", {"device": {"model": "X"}}), ("ssh", {"device": {"model": "x", "serial": "1"}})])
    {'device': {'model': 'X', 'serial': '1'}, 'reported_by': {'device': 'snmp, ssh'}}
    """
    before = kept or {}
    tree = {name: section for name, section in before.items() if name not in ABOUT_KEYS}
    by, notes = dict(reporters(before)), before.get(NOTES)
    lines = list(notes) if isinstance(notes, list) else []
    for source, sections in reported:
        for name, section in sections.items():
            if name == NOTES:
                lines += [line for line in (section if isinstance(section, list) else [section]) if line not in lines]
            elif name not in tree:
                tree[name], by[name] = section, source
            elif (wider := _with_missing(tree[name], section)) is not None:
                tree[name], by[name] = wider, f"{by.get(name, '')}, {source}"
    if by:
        tree[REPORTED_BY] = by
    if lines:
        tree[NOTES] = lines
    return tree


def _with_missing(first: Tree, second: Tree) -> Tree:
    """The keys of both; None if the second adds none."""
    if not (isinstance(first, dict) and isinstance(second, dict)) or second.keys() <= first.keys():
        return None
    return {**second, **first}


def comparable(tree: Tree) -> Tree:
    """A tree without what changes by itself; list items that have a ``name`` become keys."""
    if not isinstance(tree, dict):
        return _named(tree)
    left_out = VOLATILE_SECTIONS | VOLATILE_KEYS
    kept = {key: _named(inner) for key, inner in tree.items() if key not in left_out}
    if isinstance(cards := kept.get("nics"), dict):
        balanced = "irqbalance" in str(tree.get("processes", ""))
        kept["nics"] = {
            name: _settled(card, balanced=balanced)
            for name, card in cards.items()
            if not (isinstance(card, dict) and card.get("virtual"))
        }
    return kept


def _settled(card: Tree, *, balanced: bool) -> Tree:
    """A card without what changes all the time: interrupts moved by irqbalance, delays set by adaptive coalescing."""
    if not isinstance(card, dict):
        return card
    moved = {"irqs", "irq_cores"} if balanced else set()
    settled = {key: value for key, value in card.items() if key not in moved}
    coalescing = settled.get("coalescing")
    if isinstance(coalescing, dict):
        settled["coalescing"] = {
            key: value
            for key, value in coalescing.items()
            if not coalescing.get(f"adaptive_{key[:2]}") or "adap" in key
        }
    return settled


def comparable_trees(trees: Tree) -> Tree:
    """``comparable`` for the trees of all targets."""
    return {target: comparable(tree) for target, tree in trees.items()} if isinstance(trees, dict) else trees


def _named(tree: Tree) -> Tree:
    if isinstance(tree, dict):
        return {key: _named(inner) for key, inner in tree.items() if key not in VOLATILE_KEYS}
    if not isinstance(tree, list):
        return tree
    items = [item for item in tree if isinstance(item, dict) and isinstance(item.get("name"), str)]
    by_name = {str(item["name"]): _named(item) for item in items}
    return dict(by_name) if tree and len(by_name) == len(tree) else [_named(item) for item in tree]


def differences(begin: Mapping[str, Tree], end: Mapping[str, Tree]) -> dict[str, str]:
    """The differences of two trees of one target: ``old -> new`` by path.

    Only sections that the same source reported both times are compared. On a virtual machine (``host virtual``) memory
    that changed by up to half is no difference: its balloon did it.
    >>> differences({"cpu": {"governor": "performance"}}, {"cpu": {"governor": "powersave"}})
    {'cpu governor': 'performance -> powersave'}
    """
    before, after = reporters(begin), reporters(end)
    same = {name for name in begin.keys() & end.keys() if before.get(name) == after.get(name)}
    old, new = (
        flatten(comparable({name: section for name, section in tree.items() if name in same}), "")
        for tree in (begin, end)
    )
    host = begin.get("host")
    breathes = isinstance(host, dict) and bool(host.get("virtual"))
    found: dict[str, str] = {}
    for path in [*old, *(path for path in new if path not in old)]:
        then, now = old.get(path, _ABSENT), new.get(path, _ABSENT)
        if breathes and _of_a_balloon(path, then, now):
            continue
        if then != now and not any(path.startswith(f"{whole} ") for whole in found):
            shown = f"{readable(path, then)} -> {readable(path, now)}"
            found[path.removesuffix(BYTES)] = (
                shown if readable(path, then) != readable(path, now) else f"{then} -> {now}"
            )
    return found


def _of_a_balloon(path: str, then: str, now: str) -> bool:
    """True if both readings are amounts of memory that a balloon may have changed.

    >>> _of_a_balloon("numa node0 memory_bytes", "16603369472", "25276510208")
    True
    >>> _of_a_balloon("memory total_bytes", "16603369472", "8000000000"), _of_a_balloon("memory dimms", "2", "1")
    (False, False)
    """
    names = path.split()
    if names[0] not in _OF_MEMORY or names[-1] not in _BREATHING or not (then.isdecimal() and now.isdecimal()):
        return False
    less, more = sorted((int(then), int(now)))
    return less >= (1 - _BREATH) * more


def event_detail(differing: Mapping[str, str]) -> dict[str, str]:
    """Differences as the detail of an event: the first ones, and how many more there are."""
    detail = dict(list(differing.items())[:MAX_DIFFERENCES])
    if len(differing) > MAX_DIFFERENCES:
        detail["more"] = str(len(differing) - MAX_DIFFERENCES)
    return detail


def reporters(tree: Mapping[str, Tree]) -> dict[str, Tree]:
    """Which source reported each section of a tree.

    >>> reporters({"reported_by": {"cpu": "ssh"}})
    {'cpu': 'ssh'}
    """
    found = tree.get(REPORTED_BY)
    return found if isinstance(found, dict) else {}


def readable(path: str, text: str) -> str:
    """A value of a fingerprint for people: bytes with their unit.

    >>> readable("numa node0 memory_bytes", "12845264896"), readable("cpu governor", "powersave")
    ('12 GiB', 'powersave')
    """
    return quantity(int(text), "By") if path.endswith(BYTES) and text.isdecimal() else text[:_MAX_VALUE]
