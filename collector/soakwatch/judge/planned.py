"""What a run set out to do, as its record keeps it: its length, its phases, and which targets are shared hosts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

PLANNED_KEY = "planned"
SHARED_KEY: Final = "shared"
"""Under which a record keeps the targets on which other programs run beside what is watched: no devices."""


class _Record(Protocol):
    def meta(self, key: str) -> str | None:
        """A text that the run left."""
        ...


@dataclass(frozen=True, slots=True)
class Planned:
    """What a run was planned to do: its length and its phases. An imported record has none."""

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
    """How the record keeps it, under ``PLANNED_KEY``."""
    return json.dumps({"duration_s": duration_s, "phases": list(phases)})


def shared_text(targets: Iterable[str]) -> str:
    """How the record keeps the shared hosts, under ``SHARED_KEY``."""
    return json.dumps(sorted(targets))


def shared_of(record: _Record) -> frozenset[str]:
    """The names of the shared hosts in a record; none where it keeps none."""
    return frozenset(map(str, json.loads(record.meta(SHARED_KEY) or "[]")))
