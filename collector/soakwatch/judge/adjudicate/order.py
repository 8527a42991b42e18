"""All rulings in order, and the one function that applies them, live and at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from soakwatch.judge.adjudicate.context import Context
from soakwatch.judge.adjudicate.generator import generator
from soakwatch.judge.adjudicate.lifetime import lifetime
from soakwatch.judge.adjudicate.loss_elsewhere import loss_elsewhere
from soakwatch.judge.adjudicate.management_path import management_path
from soakwatch.judge.adjudicate.memory import memory_of_shared_hosts, memory_parts, memory_shape
from soakwatch.judge.adjudicate.memory_owners import memory_owners
from soakwatch.judge.adjudicate.required import required
from soakwatch.judge.adjudicate.role import role
from soakwatch.judge.adjudicate.set_aside import set_aside
from soakwatch.judge.adjudicate.shared_load import shared_load
from soakwatch.judge.adjudicate.so_far import so_far
from soakwatch_model.finding import Finding

Decide = Callable[[Sequence[Finding], Context], list[Finding]]
"""Appends its ruling to the findings that it concerns; returns all findings in the same order."""


@dataclass(frozen=True, slots=True)
class RulingStep:
    """One ruling: its function and when it applies; "end" ones need the whole run."""

    decide: Decide
    when: Literal["always", "live", "end"]


RULINGS: Final = (
    RulingStep(lifetime, "end"),
    RulingStep(set_aside, "end"),
    RulingStep(role, "always"),
    RulingStep(memory_parts, "end"),
    RulingStep(memory_shape, "end"),
    RulingStep(memory_of_shared_hosts, "end"),
    RulingStep(memory_owners, "always"),
    RulingStep(so_far, "live"),
    RulingStep(required, "end"),
    RulingStep(generator, "always"),
    RulingStep(loss_elsewhere, "always"),
    RulingStep(shared_load, "always"),
    RulingStep(management_path, "always"),
)
"""Each ruling sees what those before it decided."""


def adjudicate(findings: Sequence[Finding], context: Context, *, live: bool) -> list[Finding]:
    """Apply all rulings, in order; ``live`` while the run goes on. The findings keep their order."""
    decided = list(findings)
    for step in RULINGS:
        if step.when in {"always", "live" if live else "end"}:
            decided = step.decide(decided, context)
    return decided
