"""What is decided of a run, or of several together, as JSON: e-values as common logarithms of at most 300."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from soakwatch.core.formatting import iso
from soakwatch.judge.decided import Decision, Name, evidence_row
from soakwatch_model.tree import Tree
from soakwatch_model.window import Window
from soakwatch_rules.growth.sequential import RISK_FAIL, RISK_PASS, GrowthEvidence, needed


def decided_data(
    windows: Sequence[Window], decision: Decision | None, evidence: Mapping[Name, GrowthEvidence]
) -> dict[str, Tree]:
    """The decision (null where a run would have gone on to its end) and the evidence of each series at the end."""
    decided: Tree = None
    if decision is not None:
        decided = {
            "outcome": decision.outcome.value,
            "at": iso(decision.at_ns),
            "after_seconds": (decision.at_ns - windows[0].begin_ns) * 1e-9,
            "text": decision.text,
        }
    family = len(evidence)
    return {
        "runs": len(windows),
        "decided": decided,
        "needed": {
            "leaks": math.log10(needed(RISK_FAIL, family)),
            "still": math.log10(needed(RISK_PASS, family)),
        },
        "series": [
            asdict(row) | {"course": row.course.value}
            for row in (evidence_row(name, evidence[name]) for name in sorted(evidence))
        ],
    }
