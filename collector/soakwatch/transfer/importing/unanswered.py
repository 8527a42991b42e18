"""Which polls implied by imported samples were due but unanswered: if other sources of the run went on, the target was
silent; if all stop at once, the monitor stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from soakwatch.transfer.importing.cadence import Ints, Polls

_APART = 1.5  # intervals: a source with a larger gap did not go on between two readings
_MISSING = 2  # intervals
_NEAR = 0.5  # intervals: readings this near to an answered poll belong to it


@dataclass(frozen=True, slots=True, eq=False)
class RunReadings:
    """All readings of a run: their times, and the spans in which some source went on."""

    time_ns: Ints
    begin_ns: Ints
    end_ns: Ints

    @classmethod
    def of(cls, paced: Sequence[tuple[Ints, int]]) -> RunReadings:
        """From the times and interval (ns) of each source."""
        begins, ends = [], []
        for time_ns, interval_ns in paced:
            cut = np.flatnonzero(np.diff(time_ns) > _APART * interval_ns)
            begins.append(time_ns[np.concatenate([[0], cut + 1])])
            ends.append(time_ns[np.concatenate([cut, [time_ns.size - 1]])])
        times = np.unique(np.concatenate([time_ns for time_ns, _ in paced]))
        return cls(times, np.sort(np.concatenate(begins)), np.sort(np.concatenate(ends)))

    def unanswered_by_target(self, polls: Polls) -> NDArray[np.bool_]:
        """For each poll, whether it was unanswered while others went on, both in that silence and at the poll's time.
        Polls before a source's first answer do not count: it may not have existed.

        >>> reads = np.arange(0, 100, 10)
        >>> others = RunReadings.of([(reads, 10), (np.array([0, 10, 20, 80, 90]), 10)])
        >>> lost = Polls(reads, np.isin(reads, [0, 10, 20, 80, 90]), 10, regular=True)
        >>> others.unanswered_by_target(lost).tolist() == [False] * 3 + [True] * 5 + [False] * 2
        True
        >>> RunReadings.of([(np.array([0, 10, 20, 80, 90]), 10)]).unanswered_by_target(lost).any().item()
        False
        """
        answers = np.flatnonzero(polls.answered)
        lost = np.flatnonzero(~polls.answered)
        result = np.zeros(polls.time_ns.size, dtype=np.bool_)
        lost = lost[lost > answers[0]] if answers.size else lost[:0]
        if not lost.size:
            return result
        at, near = polls.time_ns[lost], round(_NEAR * polls.interval_ns)
        place = np.searchsorted(answers, lost)
        before = polls.time_ns[answers[place - 1]]
        ends = np.append(polls.time_ns[answers], np.iinfo(np.int64).max)
        after = ends[place]
        inside = np.searchsorted(self.time_ns, after - near) > np.searchsorted(
            self.time_ns, before + near, side="right"
        )
        alive = np.searchsorted(self.begin_ns, at, side="right") > np.searchsorted(self.end_ns, at)
        result[lost] = inside & alive
        return result


@dataclass(frozen=True, slots=True)
class LastReadings:
    """When each target was last read in each file, and which targets are generators."""

    by_file: Mapping[tuple[str, str], int]
    generators: frozenset[str]

    def due_until(self, target: str, file: str, last_ns: int, interval_ns: int) -> int | None:
        """Until when series with the last reading at ``last_ns`` were due; None: until then, because the target has
        later readings, or is a generator, which may end when it is done.

        Others are due to the end of their file and of the generators' files. Files of other devices may be cut
        anywhere.

        >>> lasts = LastReadings({("fw", "a"): 500, ("sw", "a"): 900, ("tg", "b"): 990}, frozenset({"tg"}))
        >>> [lasts.due_until(name, file, 500, 10) for name, file in (("fw", "a"), ("sw", "a"), ("tg", "b"))]
        [990, None, None]
        """
        goes_on = max(ns for (name, _), ns in self.by_file.items() if name == target)
        if target in self.generators or last_ns + _MISSING * interval_ns < goes_on:
            return None
        return max(
            ns for (name, where), ns in self.by_file.items() if where == file or name in (target, *self.generators)
        )
