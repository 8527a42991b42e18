"""What of the set-up is not the same in several runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.event_kinds import IDENTITY
from soakwatch.core.fingerprints import BYTES, comparable_trees, readable
from soakwatch.core.formatting import natural
from soakwatch.core.yaml import parse
from soakwatch.record import RecordView
from soakwatch_model.tree import Tree, flatten, parse_json

ABSENT = "–"
_MAX_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table of runs: its head, and a cell a run. ``differs`` where runs that have it do not agree."""

    head: str
    of: str
    cells: tuple[str, ...]
    differs: bool


def setup_of(view: RecordView, names: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Everything of a run's set-up that can differ, by its way: labels, machines, versions, the plan, the command;
    and whether its record was changed. Targets are called as ``names`` says."""
    names = names or {}
    metas = view.metas()
    setup = {f"label {name}": text for name, text in view.labels.items()}
    setup["record"] = view.check().words or "as it was written"
    for what in ("fingerprint", "versions"):
        tree = _named(comparable_trees(parse_json(metas.get(what))), names)
        setup.update(flatten(tree, what.replace("fingerprint", "machine")))
    try:
        data = parse(metas.get("plan") or "{}", "plan").data
        if isinstance(data, dict) and "targets" in data:
            data = data | {"targets": _named(data["targets"], names)}
        plan = flatten(data, "plan")
        setup.update({key: text for key, text in plan.items() if not key.startswith("plan labels ")})
    except SoakwatchError:
        setup["plan"] = "cannot be read"
    for stored in view.events():
        event = stored.event
        if event.kind == IDENTITY and "changed" not in event.detail:
            device = f"device {_named_source(event.object or event.target, names)}"
            setup.update({f"{device} {key}": text for key, text in event.detail.items() if key != "notes"})
    return setup


def _named(tree: Tree, names: Mapping[str, str]) -> Tree:
    """A tree by targets, with the targets called as in the reference."""
    return {names.get(key, key): value for key, value in tree.items()} if isinstance(tree, dict) else tree


def _named_source(label: str, names: Mapping[str, str]) -> str:
    target, slash, source = label.partition("/")
    return f"{names.get(target, target)}{slash}{source}"


def differences(setups: Sequence[Mapping[str, str]]) -> tuple[Line, ...]:
    """The lines of the set-ups that are not the same in all runs; those that all runs have come first."""
    keys = sorted({key for setup in setups for key in setup}, key=natural)
    lines = []
    for key in keys:
        cells = tuple(setup.get(key, ABSENT) for setup in setups)
        if len(set(cells)) > 1:
            what, _, path = key.partition(" ")
            # Cut and rounded only where it is shown: the end may differ.
            texts = tuple(readable(key, cell) for cell in cells)
            texts = texts if len(set(texts)) == len(set(cells)) else cells
            shown = tuple(text[:_MAX_CHARACTERS] for text in texts)
            lines.append(Line((path or what).removesuffix(BYTES), what, shown, differs=ABSENT not in cells))
    return tuple(sorted(lines, key=lambda line: not line.differs))
