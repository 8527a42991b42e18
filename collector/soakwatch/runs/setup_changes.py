"""What of a set-up is not as it was in an earlier run: machines, versions, labels, identities, the plan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff

from soakwatch.core.fingerprints import comparable_trees
from soakwatch.core.labels import LABELS_KEY, labels_in
from soakwatch.record.meta import EARLIER, SETUP, setup_of
from soakwatch.record.source import ReportSource
from soakwatch_model.tree import flatten, parse_json

_MAX_SETUP_CHARACTERS = 2_000_000


@dataclass(frozen=True, slots=True)
class SetupChange:
    """One fact that differs; ``before`` or ``now`` is empty where the run did not have it."""

    about: str
    before: str
    now: str


@dataclass(frozen=True, slots=True)
class Changed:
    """What differs from ``run``, in order of its names, and the lines of the plan that differ."""

    run: str
    changes: tuple[SetupChange, ...]
    plan: tuple[str, ...]


def changed(source: ReportSource, earlier: ReportSource | None) -> Changed | None:
    """Compared with ``earlier``, or else with the set-up that the record keeps of a run; None where neither is."""
    before = setup_of(earlier) if earlier is not None else _kept(source.meta(EARLIER))
    if before is None:
        return None
    now = setup_of(source)
    before_flat, now_flat = _facts(before), _facts(now)
    names = sorted(before_flat.keys() | now_flat.keys())
    changes = tuple(
        SetupChange(name, before_flat.get(name, ""), now_flat.get(name, ""))
        for name in names
        if before_flat.get(name) != now_flat.get(name)
    )
    lines = unified_diff(str(before["plan"]).splitlines(), str(now["plan"]).splitlines(), lineterm="", n=1)
    return Changed(str(before["run"]), changes, tuple(lines)[2:])


def _kept(text: str | None) -> Mapping[str, object] | None:
    if not text or len(text) > _MAX_SETUP_CHARACTERS:
        return None
    try:
        setup = json.loads(text)
    except ValueError:
        return None
    return setup if isinstance(setup, dict) and {*SETUP, "run", "identities"} <= setup.keys() else None


def _facts(setup: Mapping[str, object]) -> dict[str, str]:
    """Every single fact by the path to it."""
    facts: dict[str, str] = {}
    for key in ("versions", "fingerprint"):
        facts |= flatten(comparable_trees(parse_json(str(setup[key]))), key if key == "versions" else "")
    facts |= {f"label {name}": text for name, text in labels_in(str(setup.get(LABELS_KEY) or "")).items()}
    identities = setup["identities"]
    if isinstance(identities, dict):
        facts |= {f"{name}": str(value) for name, value in identities.items()}
    return facts
