"""What the monitor's own polls cost each device: their share of its CPU, or that it is not known."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.core.formatting import natural
from soakwatch.report.blocks import Block, Text
from soakwatch.report.page import Page
from soakwatch_model.fact import PollCost
from soakwatch_model.finding import Finding
from soakwatch_rules.detectors.observer_cost import ObserverCost

ORDER = 32
TITLE = "Cost of the monitor"


def blocks(page: Page) -> Sequence[Block] | None:
    """A sentence for each device whose polls were weighed, or of which only the answers were timed; None without such a
    finding, as for an imported table."""
    mine = [f for f in page.verdict.findings if f.rule == ObserverCost.name]
    judged = [f for f in mine if f.fact(PollCost) is not None]  # not of a run that was too short
    return [Text(f"{f.target}: {_sentence(f)}") for f in sorted(judged, key=lambda f: natural(f.target))] or None


def _sentence(finding: Finding) -> str:
    caveat = f" ({finding.doubts[0]})" if finding.doubts else ""
    return f"{finding.sentence}{caveat}"
