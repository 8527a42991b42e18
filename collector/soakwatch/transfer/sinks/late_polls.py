"""Lost polls that were answered late: marks the loss, which is in the database already, as recovered.

A record keeps both the loss and the late answer, and a verdict read back from a database needs both: they differ in
outcome and are two points. So the lost point stays and its ``ok`` becomes 1: coverage on a dashboard is then right, and
outcome and error still show what happened.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from soakwatch.record.follow import PollColumns, effective_polls, in_order, polls_due
from soakwatch.record.model import OUTCOME_NUMBERS, Source
from soakwatch_model.sample import PollOutcome

Loss = tuple[int, int]
"""When a poll was due, and the number of its outcome."""
_OK = OUTCOME_NUMBERS[PollOutcome.OK]


class LateAnswers:
    """Tracks the due times of each source; reads the record only if a poll arrives out of order."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: dict[int, int] = {}

    def recovered_losses(self, source: Source, polls: PollColumns, first_seq: int) -> frozenset[Loss]:
        """The losses near these polls that were answered late, by these polls or others.

        Raises RecordError.
        """
        if not polls.due_ns.size:
            return frozenset()
        low, high = int(polls.due_ns.min()), int(polls.due_ns.max())
        last = self._last.get(source.id, 0 if first_seq == 1 else None)
        self._last[source.id] = high if last is None else max(last, high)
        if last is not None and in_order(polls.due_ns, last):
            return frozenset()
        around = polls_due(self._path, source.id, low - source.interval_ns, high + source.interval_ns)
        effective = effective_polls(around)
        recovered = (around.outcome != _OK) & np.isin(around.due_ns, effective.polls.due_ns[effective.late])
        return frozenset(zip(around.due_ns[recovered].tolist(), around.outcome[recovered].tolist(), strict=True))
