"""A comparison of runs as JSON."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.runs.compare.comparison import Compared
from soakwatch.runs.compare.figures import Change, FigureRow


def compared_data(data: Compared) -> Mapping[str, object]:
    """The comparison; lists of cells are in the order of ``runs``, of which the first is the reference."""
    return {
        "runs": [
            {
                "run": run.line.folder.name,
                "verdict": run.line.verdict,
                "release": run.release,
                "seconds": run.line.seconds,
                "targets": dict(targets.shown),
                "alone": list(targets.alone),
                "phases": phases,
            }
            for run, targets, phases in zip(data.runs, data.targets, data.phases, strict=True)
        ],
        "outcomes": [
            {
                "rule": row.rule,
                "target": row.target,
                "differs": row.differs,
                "cells": [
                    {"outcome": None if cell.outcome is None else cell.outcome.value, "reason": cell.reason}
                    for cell in row.cells
                ],
            }
            for row in data.matrix
        ],
        "figures": [_figure(row) for row in data.figures],
        "setup": [
            {"setting": f"{line.of} {line.head}", "cells": list(line.cells)} for line in (*data.setup, *data.partly)
        ],
    }


def _figure(row: FigureRow) -> Mapping[str, object]:
    return {
        "figure": row.head,
        "of": row.of,
        "cells": list(row.cells),
        "values": list(row.values),
        "unit": row.unit,
        "changes": [None if change is None else _change(change) for change in row.changes],
    }


def _change(change: Change) -> Mapping[str, object]:
    return {"relative": change.relative, "low": change.low, "high": change.high, "result": change.result}
