"""Incidents: several witnesses of one happening, counted once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Witness:
    """One source's word that something happened between two times; ``source`` says which kind of source."""

    source: str
    begin_ns: int
    end_ns: int
    text: str


@dataclass(frozen=True, slots=True)
class Incident:
    """One happening, as told by at most one witness of each source."""

    witnesses: tuple[Witness, ...]

    @property
    def begin_ns(self) -> int:
        """The earliest time that a witness gives."""
        return min(w.begin_ns for w in self.witnesses)

    @property
    def end_ns(self) -> int:
        """The latest time that a witness gives."""
        return max(w.end_ns for w in self.witnesses)

    @property
    def text(self) -> str:
        """What the witnesses say, joined."""
        return "; ".join(dict.fromkeys(w.text for w in self.witnesses))


def incidents(witnesses: Iterable[Witness], slack_ns: int) -> tuple[Incident, ...]:
    """Witnesses joined to incidents, in order of time.

    A witness joins the earliest incident that it touches (with ``slack_ns`` to spare) and of which its source has
    not yet spoken, else it begins a new one: five restarts in ten seconds stay five.
    """
    joined: list[list[Witness]] = []
    ends: list[int] = []
    oldest = 0
    for witness in sorted(witnesses, key=lambda w: (w.begin_ns, w.end_ns, w.source)):
        while oldest < len(joined) and ends[oldest] + slack_ns < witness.begin_ns:
            oldest += 1  # ends may be out of order: a long incident then only keeps younger ones open, which is checked
        for at in range(oldest, len(joined)):
            if ends[at] + slack_ns >= witness.begin_ns and all(w.source != witness.source for w in joined[at]):
                joined[at].append(witness)
                ends[at] = max(ends[at], witness.end_ns)
                break
        else:
            joined.append([witness])
            ends.append(witness.end_ns)
    return tuple(Incident(tuple(group)) for group in joined)
