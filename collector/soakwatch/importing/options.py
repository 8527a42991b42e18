"""What a user says of files that are imported: how their tables read, and what happened in the run."""

from __future__ import annotations

from dataclasses import dataclass, field

from soakwatch.importing.timeline import Timeline
from soakwatch.sources.tables.options import Options


@dataclass(frozen=True, slots=True)
class ImportOptions(Options):
    """How to read the tables, and the phases and events of the run."""

    timeline: Timeline = field(default_factory=Timeline)
