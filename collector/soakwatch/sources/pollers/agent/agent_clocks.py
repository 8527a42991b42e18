"""The agent's clock and the collector's: the offset from questions and answers; polls converted to our time.

Method: as NTP (RFC 5905 §8) with the two timestamps of the agent taken as one. Of several exchanges the one with the
shortest round trip counts; its error is at most half of that, which is what a path that is slower one way costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Poll, Sample

_EVERY_S = 60.0
_ALIGNMENT_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question and its answer: our time before and after, the agent's steady time and its wall clock between."""

    sent_ns: int
    came_ns: int
    agent_ns: int
    wall_ns: int

    @property
    def round_trip_ns(self) -> int:
        """How long it took there and back."""
        return self.came_ns - self.sent_ns

    @property
    def middle_ns(self) -> int:
        """Our time at which the agent is taken to have answered."""
        return self.sent_ns + self.round_trip_ns // 2


@dataclass(frozen=True, slots=True)
class Offset:
    """The agent's steady time less ours, by how much that may be wrong, and its wall clock less our time."""

    steady_ns: int
    error_ns: int
    wall_ns: int


def best_offset(exchanges: Sequence[Exchange]) -> Offset:
    """The offset by the exchange with the shortest round trip.

    >>> best_offset([Exchange(100, 300, 1200, 5200), Exchange(400, 420, 1415, 5410)])
    Offset(steady_ns=1005, error_ns=10, wall_ns=5000)
    """
    best = min(exchanges, key=lambda each: each.round_trip_ns)
    middle = best.middle_ns
    return Offset(best.agent_ns - middle, best.round_trip_ns - best.round_trip_ns // 2, best.wall_ns - middle)


def smoothed(before: Offset | None, now: Offset) -> Offset:
    """The offset to use: the previous one while the new one does not differ significantly, so that times do not jitter.

    >>> [smoothed(Offset(100, 10, 0), Offset(now, 10, 7)).steady_ns for now in (108, 130)]
    [100, 130]
    """
    if before is not None and abs(now.steady_ns - before.steady_ns) <= max(now.error_ns, before.error_ns):
        best = before if before.error_ns <= 2 * now.error_ns else now
        return Offset(best.steady_ns, best.error_ns, now.wall_ns)
    return now


@dataclass(slots=True)
class PollGrid:
    """The due times of a run's polls, in our time; that of longer intervals begins at a whole second."""

    interval_ns: int
    origin_ns: int | None = None

    def due_ns(self, now_ns: int) -> int:
        """The last due time; the first call lays the grid."""
        if self.origin_ns is None:
            self.origin_ns = now_ns - now_ns % min(self.interval_ns, _ALIGNMENT_NS)
        return now_ns - (now_ns - self.origin_ns) % self.interval_ns


@dataclass(slots=True)
class MeasuredClock:
    """The agent's clock as far as it was measured. An ``epoch`` is a boot of its host: its steady time begins anew."""

    epoch: int = 0
    news: bool = False  # it was measured since the last poll that was handed over
    _offsets: dict[int, Offset] = field(default_factory=dict)
    _measured_s: float = float("-inf")

    @property
    def offset(self) -> Offset:
        """The offset now."""
        return self._offsets[self.epoch]

    def offset_in(self, epoch: int) -> Offset:
        """The offset in an epoch; of an earlier one that we never spoke to, today's is the best guess."""
        return self._offsets.get(epoch, self.offset)

    def due(self, now_s: float) -> bool:
        """Whether it is to be measured."""
        return now_s - self._measured_s >= _EVERY_S

    def measured(self, epoch: int, exchanges: Sequence[Exchange], now_s: float) -> None:
        """Takes some questions and answers."""
        self._offsets[epoch] = smoothed(self._offsets.get(epoch), best_offset(exchanges))
        self.epoch, self._measured_s, self.news = epoch, now_s, True


def in_our_time(poll: Poll, offset_ns: int, interval_ns: int, origin_ns: int) -> Poll:
    """A poll of the agent with every time on our clock, its due time on our grid.

    An error of the offset must not move a poll into its neighbour's due time, so it never starts before its own.
    """
    due = poll.due_ns - offset_ns
    due = origin_ns + round((due - origin_ns) / interval_ns) * interval_ns
    start = max(poll.start_ns - offset_ns, due)
    answer = poll.answer
    return Poll(
        poll.source,
        due,
        start,
        poll.duration_ns,
        poll.outcome,
        poll.error,
        Answer(
            tuple(
                [
                    Sample(each.metric, each.object, each.value, max(each.time_ns - offset_ns, due))
                    for each in answer.samples
                ]
            ),
            tuple(
                Event(
                    each.kind,
                    "",
                    each.object,
                    each.begin_ns - offset_ns,
                    None if each.end_ns is None else each.end_ns - offset_ns,
                    each.detail,
                )
                for each in answer.events
            ),
            answer.faults,
        ),
    )
