"""Where the polls of one source of a run go: the record, and whoever sees every poll."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from soakwatch.core.errors import RecordError
from soakwatch.engine.capacity.counts import TrialCounts
from soakwatch.engine.first_polls import FirstPollEnded
from soakwatch.engine.live_judging import LiveJudging
from soakwatch.engine.phases import PhaseTimeline
from soakwatch.engine.run_record import RunRecord
from soakwatch.record import Source
from soakwatch_model.roles import GENERATOR
from soakwatch_model.sample import Poll, Sample

FRESH_INTERVALS = 4.0  # the figures of a generator that is silent for this many intervals are not shown


class GeneratorLoad:
    """The newest figures of the generators by metric and object."""

    def __init__(self) -> None:
        self._newest: dict[tuple[str, str], tuple[float, int]] = {}

    def observe(self, samples: Iterable[Sample], interval_ns: int) -> None:
        """Takes samples of a generator that is polled every ``interval_ns``."""
        fresh_ns = round(FRESH_INTERVALS * interval_ns)
        for sample in samples:
            self._newest[sample.metric, sample.object] = sample.value, sample.time_ns + fresh_ns

    def current(self, now_ns: int) -> dict[tuple[str, str], float]:
        """The figures that are still fresh."""
        return {key: value for key, (value, until_ns) in self._newest.items() if now_ns < until_ns}


@dataclass(frozen=True, slots=True)
class PollObservers:
    """Who sees every poll of a run, besides its record."""

    phases: PhaseTimeline
    live: LiveJudging
    load: GeneratorLoad
    trials: TrialCounts


@dataclass(frozen=True, slots=True)
class SourceSink:
    """The sink of one source, of a target with a role ("" for the monitor itself); see PollSink."""

    source: Source
    role: str
    out: RunRecord
    observers: PollObservers
    first: FirstPollEnded | None = None

    def take(self, poll: Poll) -> None:
        """Queue a poll for the record, and show it to the observers; this never blocks."""
        self.out.queue.take(poll)
        self.observers.live.observe(poll)
        self.observers.phases.observe(self.role, poll.source, poll.answer.samples)
        self.observers.trials.observe(self.role, poll, self.source.interval_ns)
        if self.role == GENERATOR:
            self.observers.load.observe(poll.answer.samples, self.source.interval_ns)

    async def cadences(self, cadences: Mapping[str, float]) -> bool:
        """Record the cadences; False on a disk that is full for the moment."""
        try:
            await self.out.queue.call(self.out.record.cadences, self.source.id, cadences)
        except RecordError:
            return False
        return True

    def first_poll(self, failure: Exception | None) -> bool:
        """Report how the first poll of a new run ended; True if the run ends for it."""
        return self.first is not None and self.first(failure)
