"""What changed in the set-up since an earlier run: versions, machines, plan, and who the devices said they were."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff

from soakwatch.core.leaves import leaves, tree_of
from soakwatch.record.meta import EARLIER, SETUP, setup_of
from soakwatch.record.source import ReportSource

_LONGEST = 2_000_000


@dataclass(frozen=True, slots=True)
class Change:
    """One fact that is another now; ``before`` or ``now`` is empty where it was not, or is no more, there."""

    about: str
    before: str
    now: str


@dataclass(frozen=True, slots=True)
class Changed:
    """What is another than in ``run``, in order of its names, and the lines of the plan that differ."""

    run: str
    changes: tuple[Change, ...]
    plan: tuple[str, ...]


def changed(source: ReportSource, earlier: ReportSource | None) -> Changed | None:
    """Held against ``earlier``, or else against what the record keeps of a run; None where neither is."""
    kept = setup_of(earlier) if earlier is not None else _kept(source.meta(EARLIER))
    if kept is None:
        return None
    now = setup_of(source)
    before_flat, now_flat = _facts(kept), _facts(now)
    names = sorted(before_flat.keys() | now_flat.keys())
    changes = tuple(
        Change(name, before_flat.get(name, ""), now_flat.get(name, ""))
        for name in names
        if before_flat.get(name) != now_flat.get(name)
    )
    lines = unified_diff(str(kept["plan"]).splitlines(), str(now["plan"]).splitlines(), lineterm="", n=1)
    return Changed(str(kept["run"]), changes, tuple(lines)[2:])


def _kept(text: str | None) -> Mapping[str, object] | None:
    if not text or len(text) > _LONGEST:
        return None
    try:
        told = json.loads(text)
    except ValueError:
        return None
    return told if isinstance(told, dict) and {*SETUP, "run", "identities"} <= told.keys() else None


def _facts(setup: Mapping[str, object]) -> dict[str, str]:
    """Every single fact by the path to it."""
    found: dict[str, str] = {}
    for key in ("versions", "fingerprint"):
        found |= leaves(tree_of(str(setup[key])), key if key == "versions" else "")
    identities = setup["identities"]
    if isinstance(identities, dict):
        found |= {f"{name}": str(value) for name, value in identities.items()}
    return found
