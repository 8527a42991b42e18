"""Who owns the memory that grew: named in every finding of growth of a host's memory, or of a process's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from soakwatch.judge.adjudicate.context import ALARMS, Context
from soakwatch_model.fact import OwnerGrew
from soakwatch_model.finding import Finding, Place
from soakwatch_model.metric_entry import HELD_MEMORY, HOST_MEMORY
from soakwatch_model.metric_queries import telling
from soakwatch_rules.growth.memory_owners import LEDGER, MAPPING, grown_words, mappings_of_growth, owners_of_growth
from soakwatch_rules.traits import traits_of

_OF_HOST: Final = frozenset(telling(HOST_MEMORY)) - {"system.memory.committed"}  # what is promised has no owner
_OF_PROCESS: Final = frozenset(telling(HELD_MEMORY))


def memory_owners(findings: Sequence[Finding], context: Context) -> list[Finding]:
    """Findings of growth that alarm get a fact for each owner that grew; no outcome changes."""
    return [_owned(finding, context) if _open(finding) else finding for finding in findings]


def _open(finding: Finding) -> bool:
    """Whether it alarms about growth and names no owner yet, as one from before a restart of the monitor does."""
    grew = finding.outcome in ALARMS and traits_of(finding.rule).growth is not None
    return grew and finding.fact(OwnerGrew) is None


def _owned(finding: Finding, context: Context) -> Finding:
    if finding.metric in _OF_HOST:
        ledger = context.series_of(finding.target, LEDGER, finding.window)
        grown = owners_of_growth(ledger, finding.window)
    elif finding.metric in _OF_PROCESS:
        own = context.series_of(finding.target, (MAPPING,), finding.window)
        mine = [series for series in own if series.object.startswith(f"{finding.object},")]
        grown = mappings_of_growth(mine, finding.window)
    else:
        return finding
    if not grown:
        return finding
    named = replace(finding, facts=(*finding.facts, *grown))
    return named.ruled(
        "memory owners", finding.outcome, grown_words(grown), place=Place.BEHIND, why=finding.why, settle=finding.settle
    )
