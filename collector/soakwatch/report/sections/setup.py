"""The set-up: versions, what each machine is, and what the rule ``setup`` says of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial

from soakwatch.core.event_kinds import IDENTITY
from soakwatch.core.fingerprints import ABOUT_KEYS, BEGIN_KEY, END_KEY, NOTES, differences, reporters
from soakwatch.core.units import show_bytes
from soakwatch.report.blocks import BRIEF, CONSOLE, Block, Layout, Text
from soakwatch.report.page import Page
from soakwatch_model.finding import Outcome
from soakwatch_model.tree import Tree

ORDER = 46
TITLE = "Set-up"
_LONG, _BRIEF = 30, 4
_RULE, _AMISS = "setup", {Outcome.FAIL, Outcome.WARN}
_IDENTIFYING = ("generator", "system", "model", "version", "name")
_WIDE = 6
"""Entries of a property of a card beyond which it has a table of its own."""
_OPEN = frozenset({"general", "host", "device", "generator", "cpu", "memory"})
"""Tables that are not folded, unless they are long."""


def _facts(page: Page) -> Mapping[str, object]:
    """Readable tables of the JSON that the record holds; text that is no JSON is shown as it is."""
    flags = [f"{f.target}: {f.sentence}" for f in page.verdict.findings if f.rule == _RULE and f.outcome in _AMISS]
    machines = []
    changed = _changes(page)
    for target, tree in sorted(_object(page.source.meta(BEGIN_KEY)).items()):
        whole: dict[str, Tree] = tree if isinstance(tree, dict) else {"machine": tree}
        shown = {name: section for name, section in whole.items() if name not in ABOUT_KEYS}
        machines.append((target, _groups(shown), list(changed.get(target, {}).items()), *_about(whole)))
    versions = sorted((name, _text(value)) for name, value in _object(page.source.meta("versions")).items())
    return {"flags": flags, "versions": versions, "machines": machines}


def blocks(page: Page) -> Sequence[Block]:
    """What each machine is, what of it changed during the run, and the versions of the monitor."""
    machines = _machines(page)
    changed = [
        Text(_changed_words(differing), label=f"{target} changed", formats=BRIEF)
        for target, differing in sorted(_changes(page).items())
    ]
    drawn: list[Block] = [Layout("setup", partial(_facts, page))]
    drawn += [Text(words, label=name, formats=CONSOLE) for name, words in machines[:_BRIEF]]
    if len(machines) > _BRIEF:
        drawn.append(Text(f"… and {len(machines) - _BRIEF} more machines in the report", tone="soft", formats=CONSOLE))
    drawn += changed
    versions = _object(page.source.meta("versions"))
    known = [f"{name} {_text(versions[name])}" for name in ("soakwatch", "python") if name in versions]
    if known:
        drawn.append(Text(", ".join(known), label="monitor", formats=CONSOLE))
    return drawn


def _machines(page: Page) -> list[tuple[str, str]]:
    """Each machine in a line: what its devices and generators reported of themselves, else its fingerprint."""
    identities: dict[str, dict[str, str]] = {}
    for event in page.events:
        if event.kind == IDENTITY:
            identities.setdefault(event.target, {}).update(event.detail)
    machines = {
        target: ", ".join(detail[key] for key in _IDENTIFYING if detail.get(key))
        for target, detail in sorted(identities.items())
    }
    for target, tree in sorted(_object(page.source.meta(BEGIN_KEY)).items()):
        if not machines.get(target):
            machines[target] = ", ".join(_hardware(tree))
    return [(target, words) for target, words in machines.items() if words]


def _changes(page: Page) -> dict[str, dict[str, str]]:
    """What differs between the begin and the end of the run, by target."""
    begin, end = (_object(page.source.meta(key)) for key in (BEGIN_KEY, END_KEY))
    pairs = {target: (begin.get(target), tree) for target, tree in end.items()}
    found = {
        target: differences(before, after)
        for target, (before, after) in pairs.items()
        if isinstance(before, dict) and isinstance(after, dict)
    }
    return {target: differing for target, differing in found.items() if differing}


def _changed_words(differing: Mapping[str, str]) -> str:
    shown = [f"{path} {change}" for path, change in list(differing.items())[:_BRIEF]]
    more = len(differing) - len(shown)
    return "during the run: " + "; ".join(shown) + (f"; and {more} more" if more else "")


def _about(tree: dict[str, Tree]) -> tuple[list[str], str]:
    """What could not be read, a sentence each, and which source reported the rest."""
    notes = tree.get(NOTES)
    sources: dict[str, list[str]] = {}
    for section, source in reporters(tree).items():
        sources.setdefault(_text(source), []).append(section.replace("_", " "))
    if len(sources) == 1:
        words = f"Reported by {next(iter(sources))}."
    else:
        words = "; ".join(f"reported by {source}: {', '.join(sections)}" for source, sections in sources.items())
    return [_text(note) for note in notes] if isinstance(notes, list) else [], words


def _hardware(tree: Tree) -> list[str]:
    reported = [
        " ".join(_text(branch[key]) for key in keys if branch.get(key))
        for branch, keys in (
            (_branch(tree, "device"), ("vendor", "model", "software")),
            (_branch(tree, "generator"), ("name", "version")),
        )
    ]
    host, cpu, memory = (_branch(tree, name) for name in ("host", "cpu", "memory"))
    facts = [str(host[name]) for name in ("os", "kernel") if host.get(name)]
    if cpu.get("model"):
        facts.append(f"{cpu['model']}, {cpu.get('logical_cores', '?')} cores")
    total = memory.get("total_bytes")
    facts += [show_bytes(total)] if isinstance(total, int | float) else []
    return [words for words in reported if words] + facts


def _branch(tree: Tree, name: str) -> dict[str, Tree]:
    branch = tree.get(name) if isinstance(tree, dict) else None
    return branch if isinstance(branch, dict) else {}


def _object(text: str | None) -> dict[str, Tree]:
    if not text:
        return {}
    try:
        read: Tree = json.loads(text)
    except (ValueError, RecursionError):
        return {"unreadable": text}
    return read if isinstance(read, dict) else {"": read}


def _groups(tree: dict[str, Tree]) -> list[dict[str, object]]:
    """A table for each branch of the machine; single leaves are gathered in the first."""
    single: dict[str, Tree] = {name: value for name, value in tree.items() if not isinstance(value, dict)}
    groups = []
    if single:
        groups.append(_pairs("general", single))
    for name, branch in tree.items():
        if not isinstance(branch, dict) or not branch:
            continue
        inner = {key: value for key, value in branch.items() if isinstance(value, dict)}
        groups += _tables(name, inner) if len(inner) == len(branch) else [_pairs(name, branch)]
    return groups


def _tables(name: str, branch: dict[str, dict[str, Tree]]) -> list[dict[str, object]]:
    """Items side by side (network cards); what is long of them, such as offloads, in a table of its own each."""
    wide = {
        key: None
        for item in branch.values()
        for key, value in item.items()
        if isinstance(value, dict) and len(value) > _WIDE and "max_link_width" not in value
    }
    tables = [_columns(name, {key: {k: v for k, v in item.items() if k not in wide} for key, item in branch.items()})]
    for key in wide:
        having = {each: item[key] for each, item in branch.items() if key in item}
        tables.append(_pairs(f"{name}: {key}", having, deep=1))
    return tables


def _pairs(name: str, branch: dict[str, Tree], deep: int = 9) -> dict[str, object]:
    rows = [(key, [text]) for key, text in _leaves(branch, "", deep)]
    return _group(name, [], rows)


def _columns(name: str, branch: dict[str, dict[str, Tree]]) -> dict[str, object]:
    """One row an item (a network card), one column a property."""
    columns = list(dict.fromkeys(key for item in branch.values() for key in item))
    rows = [
        (key, [_fact(column, item[column]) if column in item else "–" for column in columns])
        for key, item in branch.items()
    ]
    return _group(name, columns, rows)


def _group(name: str, columns: list[str], rows: list[tuple[str, list[str]]]) -> dict[str, object]:
    shown = [column.replace("_", " ") for column in columns]
    return {
        "name": name.replace("_", " "),
        "columns": shown,
        "rows": rows,
        "size": len(rows),
        "long": len(rows) > _LONG or name not in _OPEN,
    }


def _leaves(tree: Tree, path: str, deep: int) -> list[tuple[str, str]]:
    """The facts of a branch, ``deep`` levels down; items of a list by their names."""
    if isinstance(tree, list) and tree and all(isinstance(item, dict) and "name" in item for item in tree):
        items = [item for item in tree if isinstance(item, dict)]
        tree = {_text(item["name"]): {k: v for k, v in item.items() if k != "name"} for item in items}
        deep = min(deep, 1)
    if isinstance(tree, dict) and deep:
        return [leaf for key, value in tree.items() for leaf in _leaves(value, f"{path} {key}".strip(), deep - 1)]
    return [(path, _fact(path, tree))]


def _fact(key: str, value: Tree) -> str:
    """A value as people read it; a size in bytes in a larger unit, where it is exact enough."""
    sized = key.endswith("_bytes") and isinstance(value, int) and not isinstance(value, bool)
    return show_bytes(value) if sized and isinstance(value, int) else _text(value)


def _text(value: Tree) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "not known"
    if isinstance(value, dict):
        if "max_link_width" in value or "max_link_speed" in value:
            return _link(value)
        if value and all(isinstance(inner, bool) for inner in value.values()):
            on, off = ([key for key, inner in value.items() if inner is flag] for flag in (True, False))
            return "; ".join(f"{word}: {', '.join(keys)}" for word, keys in (("on", on), ("off", off)) if keys)
        return ", ".join(f"{key} {_fact(key, inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(_text(inner) for inner in value)
    return str(value)


def _link(link: dict[str, Tree]) -> str:
    """A PCIe link in words: what it runs at, and what it could."""
    now = f"x{_text(link.get('current_link_width'))} at {_text(link.get('current_link_speed'))} GT/s"
    best = f"x{_text(link.get('max_link_width'))} at {_text(link.get('max_link_speed'))} GT/s"
    return now if now == best else f"{now}, could do {best}"
