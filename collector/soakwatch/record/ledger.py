"""The account of one source in one window, from the columns of its polls."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from soakwatch.record.columns import PollColumns
from soakwatch.record.model import Source
from soakwatch.record.recent import Ints
from soakwatch.record.rows import OUTCOME_NUMBERS, OUTCOMES
from soakwatch_agent.sample import PollOutcome
from soakwatch_rules.rule import Ledger, Window

_SHOWN_ERRORS = 3


def ledger_of(source: Source, shown: str, polls: PollColumns, errors: Mapping[int, str], window: Window) -> Ledger:
    """Count the polls that were due in the window, by how they ended; ``shown`` is the source's label."""
    answered = polls.outcome == OUTCOME_NUMBERS[PollOutcome.OK]
    numbers, counts = np.unique(polls.outcome[~answered], return_counts=True)
    lost = {OUTCOMES[number].value: count for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)}
    return Ledger(
        target=source.target,
        source=shown,
        interval_s=source.interval_ns * 1e-9,
        due=int(polls.outcome.size),
        got=int(answered.sum()),
        lost=lost,
        longest_gap=_longest_gap(np.sort(polls.start_ns[answered]), window),
        errors=_most_frequent(polls.error[~answered], errors),
        required=source.required,
    )


def _longest_gap(answers_ns: Ints, window: Window) -> Window | None:
    if not answers_ns.size:
        return None
    inside = np.clip(answers_ns, window.begin_ns, window.end_ns)
    edges = np.concatenate([[window.begin_ns], inside, [window.end_ns]])
    at = int(np.argmax(np.diff(edges)))
    return Window(int(edges[at]), int(edges[at + 1]))


def _most_frequent(numbers: Ints, errors: Mapping[int, str]) -> tuple[str, ...]:
    found, counts = np.unique(numbers[numbers > 0], return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_SHOWN_ERRORS]
    return tuple(errors[int(found[at])] for at in order)
