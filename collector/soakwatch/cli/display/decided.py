"""What is decided of a run on the terminal: the moment, and a line for each series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from soakwatch.core.tables import harmless, show_table
from soakwatch.core.units import show_seconds
from soakwatch.judge.decided import EVIDENCE_COLUMNS, Decision, Name, evidence_cells, evidence_row
from soakwatch_model.window import Window
from soakwatch_rules.growth.sequential import RISK_FAIL, RISK_PASS, GrowthEvidence, needed
from soakwatch_rules.wording.quantities import counted


def show_decided(windows: Sequence[Window], decision: Decision | None, evidence: Mapping[Name, GrowthEvidence]) -> None:
    """Print it."""
    watched = show_seconds(sum(window.seconds for window in windows))
    if len(windows) > 1:
        click.echo(f"{counted(len(windows), 'run')} together, {watched}")
    elif decision is None:
        click.echo(f"not decided before the end of the run, after {watched}")
    else:
        after = show_seconds((decision.at_ns - windows[0].begin_ns) * 1e-9)
        click.echo(harmless(f"decided after {after} of {watched}: {decision.outcome.value.upper()}; {decision.text}"))
    family = max(len(evidence), 1)
    click.echo(
        f"needed: an e-value of {needed(RISK_FAIL, family):,.0f} for growth, {needed(RISK_PASS, family):,.0f} for none "
        f"({counted(len(evidence), 'series')})"
    )
    click.echo()
    show_table(
        EVIDENCE_COLUMNS,
        [evidence_cells(evidence_row(name, evidence[name])) for name in sorted(evidence)],
    )
