"""What the record hands out besides Poll, Series, Event and Finding: sources, keys, faults, artifacts, arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from soakwatch_model.event import Event
from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import PollOutcome

Ints = NDArray[np.int64]
"""Times in UTC ns, positions or numbers; shape (n,)."""
Values = NDArray[np.float64] | NDArray[np.int64] | NDArray[np.uint64]
"""Readings of one series, shape (n,), in the type in which no bit of them is lost."""

OUTCOMES: Mapping[int, PollOutcome] = {
    0: PollOutcome.OK,
    1: PollOutcome.FAILED,
    2: PollOutcome.TIMEOUT,
    3: PollOutcome.OVERRUN,
    4: PollOutcome.MISSED,
    5: PollOutcome.HELD_BACK,
    6: PollOutcome.GAP,
    7: PollOutcome.LOSSY,
}
"""The numbers under which outcomes are stored; never renumbered."""
OUTCOME_NUMBERS: Mapping[PollOutcome, int] = {outcome: number for number, outcome in OUTCOMES.items()}

USER_ORIGIN = "user"
"""The origin of an event that a user added: by the command line, the API or a test."""
MONITOR_ORIGIN = "monitor"
"""The origin of an event that the monitor added by itself."""

KEPT = " brings it already: kept from there"
"""The end of the sentence for a metric that is left out because another source of the target brings it."""


@dataclass(frozen=True, slots=True)
class Source:
    """One thing that is polled. ``name`` is the poller's (``local``), ``label`` what people read."""

    id: int
    target: str
    name: str
    label: str
    interval_ns: int
    required: bool
    role: str | None = None
    cadences: tuple[tuple[str, float], ...] = ()  # metrics and their intervals in seconds, if the source said them

    def cadence_s(self, metric: str) -> float:
        """The planned interval of readings of a metric, in seconds: none is expected earlier. What the source said of
        itself comes before what the catalogue says of most sources."""
        every = BY_NAME[metric].every if metric in BY_NAME else 0.0
        return max(self.interval_ns * 1e-9, dict(self.cadences).get(metric, every))


def source_label(source: Source, sources: Iterable[Source]) -> str:
    """The name of a source in ledgers: target/name, and its label where its target has two of that name."""
    twins = sum(other.target == source.target and other.name == source.name for other in sources)
    return f"{source.target}/{source.name}" if twins == 1 else f"{source.target}/{source.name} {source.label}"


@dataclass(frozen=True, slots=True, eq=False)
class PollOutcomes:
    """How the polls of one source ended: ``due_ns`` and ``outcome`` int64 of shape (n,), sorted by due time.

    ``words[outcome]`` is the word for an outcome; 0 is the poll that was answered.
    """

    due_ns: NDArray[np.int64]
    outcome: NDArray[np.int64]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class SeriesKey:
    """The identity of a series in a run."""

    target: str
    metric: str
    object: str


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event with its number in the record and its origin: probe, plan, user or monitor."""

    id: int
    origin: str
    event: Event


@dataclass(frozen=True, slots=True)
class StoredFault:
    """One reason why one metric of one object could not be read: first and last time (UTC ns), and how often.

    ``source`` is the source's id.
    """

    source: int
    target: str
    metric: str
    object: str
    text: str
    first_ns: int
    last_ns: int
    count: int

    @property
    def elsewhere(self) -> bool:
        """Whether nothing is missing: another source of the target brings the metric."""
        return self.text.endswith(KEPT)


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that belongs to the run: its name (a relative path), media type and bytes; when it was made (UTC ns), by
    what (``script``, ``hook``, ``capture``), and about what in a few words."""

    name: str
    media: str
    data: bytes
    time_ns: int | None = None
    kind: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class ArtifactEntry:
    """An artifact without its bytes; ``size`` is their number."""

    name: str
    media: str
    size: int
    time_ns: int | None
    kind: str
    about: str


@dataclass(frozen=True, slots=True)
class Counts:
    """How much is in a record: samples, polls, and bytes on disk (write-ahead log included)."""

    samples: int
    polls: int
    bytes: int
