"""What a report reads: the record of a run, seen through the narrowest window that suffices."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Protocol

from soakwatch.record.model import (
    Artifact,
    ArtifactEntry,
    Counts,
    PollOutcomes,
    SeriesKey,
    Source,
    StoredEvent,
    StoredFault,
)
from soakwatch_model.finding import Finding
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window

__all__ = ["Counts", "PollOutcomes", "ReportSource", "SeriesKey", "Source", "StoredEvent", "StoredFault"]


class ReportSource(Protocol):
    """A record, finished or still being written. Equal answers give an equal report, byte for byte.

    ``meta`` knows the keys run, plan (YAML), versions and fingerprint (JSON objects) and command; None where the
    record has none. ``spans`` are the lives of the monitor.
    """

    @property
    def path(self) -> Path:
        """The file of the record."""
        ...

    def meta(self, key: str) -> str | None:
        """The text that the run has under this key."""
        ...

    def roles(self) -> Mapping[str, str]:
        """The role of each target."""
        ...

    def sources(self) -> tuple[Source, ...]:
        """Everything that is polled."""
        ...

    def poll_outcomes(self, source: int) -> PollOutcomes:
        """How each poll of a source ended, in the order in which they were due."""
        ...

    def phases(self) -> tuple[Phase, ...]:
        """The phases as they were run."""
        ...

    def window(self) -> Window:
        """From the first due poll to the last."""
        ...

    def keys(self, metrics: Collection[str] | None = None) -> tuple[SeriesKey, ...]:
        """The series of these metrics, or all."""
        ...

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
        """The readings of one series."""
        ...

    def source_of(self, key: SeriesKey) -> Source | None:
        """The source that a series was first brought by; None for an unknown series."""
        ...

    def events(self) -> tuple[StoredEvent, ...]:
        """Everything that happened."""
        ...

    def faults(self) -> tuple[StoredFault, ...]:
        """Metrics that could not be read in polls that were answered."""
        ...

    def spans(self) -> tuple[Window, ...]:
        """The lives of the monitor."""
        ...

    def withdrawn(self) -> tuple[tuple[int, Finding], ...]:
        """Warnings of live judging that a later judging did not find again, with its time."""
        ...

    def artifact_entries(self) -> tuple[ArtifactEntry, ...]:
        """What files belong to the run."""
        ...

    def artifact(self, name: str) -> Artifact:
        """One of them with its bytes."""
        ...

    def counts(self) -> Counts:
        """How much was recorded."""
        ...
