"""What a run was planned to do, from its record: length, phases, and which targets are shared hosts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

PLANNED_KEY = "planned"
SHARED_KEY: Final = "shared"
"""Record meta: the targets on which unwatched programs run, which are no devices."""


class _Record(Protocol):
    def meta(self, key: str) -> str | None:
        """A text that the run left."""
        ...


@dataclass(frozen=True, slots=True)
class Planned:
    """The planned length and phases of a run. An imported record has none."""

    duration_s: float
    phases: frozenset[str]

    @classmethod
    def of(cls, record: _Record) -> Planned | None:
        """The plan stored in a record, or None."""
        text = record.meta(PLANNED_KEY)
        if text is None:
            return None
        document = json.loads(text)
        return cls(float(document["duration_s"]), frozenset(map(str, document["phases"])))


def planned_text(duration_s: float, phases: Iterable[str]) -> str:
    """As JSON for the record, under ``PLANNED_KEY``."""
    return json.dumps({"duration_s": duration_s, "phases": list(phases)})


def shared_text(targets: Iterable[str]) -> str:
    """As JSON for the record, under ``SHARED_KEY``."""
    return json.dumps(sorted(targets))


def shared_hosts(record: _Record) -> frozenset[str]:
    """The shared hosts of a record."""
    return frozenset(map(str, json.loads(record.meta(SHARED_KEY) or "[]")))
