"""The rulings in their order, and the one function that every judging goes through, live and final."""

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
from soakwatch.judge.adjudicate.required import required
from soakwatch.judge.adjudicate.role import role
from soakwatch.judge.adjudicate.set_aside import set_aside
from soakwatch.judge.adjudicate.shared_load import shared_load
from soakwatch.judge.adjudicate.so_far import so_far
from soakwatch_model.finding import Finding

Decide = Callable[[Sequence[Finding], Context], list[Finding]]
"""Appends its ruling to the findings that it concerns; all of them come back, in their order."""


@dataclass(frozen=True, slots=True)
class RulingStep:
    """One ruling: its function, and ``when`` it is made; one at the "end" needs the whole run."""

    decide: Decide
    when: Literal["always", "live", "end"]


RULINGS: Final = (
    RulingStep(lifetime, "end"),
    RulingStep(set_aside, "end"),
    RulingStep(role, "always"),
    RulingStep(memory_parts, "end"),
    RulingStep(memory_shape, "end"),
    RulingStep(memory_of_shared_hosts, "end"),
    RulingStep(so_far, "live"),
    RulingStep(required, "end"),
    RulingStep(generator, "always"),
    RulingStep(loss_elsewhere, "always"),
    RulingStep(shared_load, "always"),
    RulingStep(management_path, "always"),
)
"""Each sees what those before it decided."""


def adjudicate(findings: Sequence[Finding], context: Context, *, live: bool) -> list[Finding]:
    """The findings as they stand after all rulings, in the same order; ``live`` of a run that goes on."""
    decided = list(findings)
    for step in RULINGS:
        if step.when in {"always", "live" if live else "end"}:
            decided = step.decide(decided, context)
    return decided
