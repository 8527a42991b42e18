"""What passed, rule by rule, with the smallest effect that the run would have shown."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.report.blocks import BRIEF, Block, Folded, Text
from soakwatch.report.page import Page
from soakwatch.report.summaries import passed
from soakwatch_model.finding import Outcome
from soakwatch_rules.wording.quantities import counted

ORDER = 29
TITLE = "Passed"


def blocks(page: Page) -> Sequence[Block] | None:
    """A sentence for each rule; on the page each check stands with its target, among the findings."""
    rules = passed(page.verdict.findings)
    if not rules:
        return None
    summary = f"{counted(sum(rule.number for rule in rules), 'check')} passed"
    texts = tuple(Text(rule.words, outcome=Outcome.PASS) for rule in rules)
    return (Folded(summary, texts, BRIEF, more="rules in the report"),)
