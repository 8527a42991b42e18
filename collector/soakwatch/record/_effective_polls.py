"""One poll for each due time: a late answer replaces the lost poll.

The record keeps polls as they came, and never changes what is compacted. A source that polls by itself and keeps what
could not be fetched (``soakwatch.sources.abc.Backfills``) delivers answers for due times that the record already has as
lost. They replace the lost polls here, where polls are counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from soakwatch.record.model import OUTCOME_NUMBERS, Ints
from soakwatch_model.sample import PollOutcome

_OK = OUTCOME_NUMBERS[PollOutcome.OK]


@dataclass(frozen=True, slots=True, eq=False)
class PollColumns:
    """Some polls of one source, shape (n,) each; ``outcome`` and ``error`` are their numbers."""

    due_ns: Ints
    start_ns: Ints
    outcome: Ints
    error: Ints

    def of(self, which: NDArray[np.bool_] | Ints | slice) -> PollColumns:
        """Some of them, by a mask, by positions, or by a slice."""
        return PollColumns(self.due_ns[which], self.start_ns[which], self.outcome[which], self.error[which])


@dataclass(frozen=True, slots=True, eq=False)
class EffectivePolls:
    """Polls of one source, one for each due time, sorted by it; ``late`` marks those that had been lost first."""

    polls: PollColumns
    late: NDArray[np.bool_]

    def between(self, begin_ns: int, end_ns: int) -> EffectivePolls:
        """Those that were due in begin <= time < end."""
        low, high = np.searchsorted(self.polls.due_ns, [begin_ns, end_ns])
        return EffectivePolls(self.polls.of(slice(low, high)), self.late[low:high])


def in_order(due_ns: Ints, last_ns: int | None = None) -> bool:
    """Whether each poll was due later than all before it (and than ``last_ns``): nothing came late."""
    if not due_ns.size:
        return True
    return (last_ns is None or int(due_ns[0]) > last_ns) and bool((due_ns[1:] > due_ns[:-1]).all())


def effective_polls(polls: PollColumns) -> EffectivePolls:
    """One poll for each due time, from polls in the order in which they came.

    A poll is late if a poll with the same or a later due time came before it. A late answer is assigned to its own due
    time; if no poll had that (a restarted monitor has another grid), to the last due time before the answer began. Of
    several answers for one due time the first counts, and an answer counts before a loss.
    """
    if in_order(polls.due_ns):
        return EffectivePolls(polls, np.zeros(polls.due_ns.size, dtype=np.bool_))
    highest = np.maximum.accumulate(polls.due_ns)
    late = np.append(False, polls.due_ns[1:] <= highest[:-1])
    grid = polls.due_ns[~late]
    due_ns = polls.due_ns.copy()
    index = np.searchsorted(grid, polls.start_ns, side="right") - 1
    astray = late & ~np.isin(due_ns, grid) & (index >= 0)
    due_ns[astray] = grid[index[astray]]
    came = np.arange(due_ns.size)
    order = np.lexsort((came, polls.outcome != _OK, due_ns))
    sorted_ns = due_ns[order]
    first = np.append(True, sorted_ns[1:] != sorted_ns[:-1])
    kept = order[first]
    lost_ns = np.unique(due_ns[polls.outcome != _OK])
    answered = polls.outcome[kept] == _OK
    effective = PollColumns(due_ns[kept], polls.start_ns[kept], polls.outcome[kept], polls.error[kept])
    return EffectivePolls(effective, answered & np.isin(effective.due_ns, lost_ns))
