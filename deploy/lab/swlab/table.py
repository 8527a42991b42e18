"""Tables of the lab's results."""

from __future__ import annotations

from collections.abc import Sequence

from swlab.running import Came


def scenario_table(came: Sequence[Came]) -> str:
    """One line a scenario."""
    rows = [("scenario", "expected", "verdict", "failed rules", "")]
    for each in came:
        name = each.scenario
        rows.append(
            (name.name, name.expected, each.verdict, ", ".join(each.failed) or "-", each.wrong or "as expected")
        )
    return columns(rows)


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Align texts in columns."""
    wide = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(text.ljust(w) for text, w in zip(row, wide, strict=True)).rstrip() for row in rows)
