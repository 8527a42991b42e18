"""Incidents: several witnesses of one happening, counted once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from soakwatch_rules.rule import Event


@dataclass(frozen=True, slots=True)
class Witness:
    """One source's word that something happened between two times; ``source`` says which kind of source.

    ``cause`` is the reason that it gives for it, empty where it gives none.
    """

    source: str
    begin_ns: int
    end_ns: int
    text: str
    cause: str = ""


_CAUSES = ("reboot_reason", "cause", "reason")


def cause_of(event: Event) -> str:
    """The reason that an event gives; empty without one."""
    return next((event.detail[name] for name in _CAUSES if event.detail.get(name)), "")


def witnessed(event: Event, source: str, text: str) -> Witness:
    """What an event bears witness of; one that ends before it begins is taken at its begin."""
    end_ns = max(event.begin_ns, event.end_ns or event.begin_ns)
    return Witness(source, event.begin_ns, end_ns, text, cause_of(event))


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

    @property
    def cause(self) -> str:
        """The reasons that the witnesses give, joined; empty without any."""
        return "; ".join(dict.fromkeys(w.cause for w in self.witnesses if w.cause))


def incidents(witnesses: Iterable[Witness], slack_ns: int) -> tuple[Incident, ...]:
    """Witnesses joined to incidents, in order of time.

    A witness joins the earliest incident that it touches (with ``slack_ns`` to spare) and of which its source has
    not yet spoken, else it begins a new one: five restarts in ten seconds stay five.
    """
    joined: list[list[Witness]] = []
    ends: list[int] = []
    next_of: dict[str, int] = {}  # the first incident that a source may still join: time does not go back
    for witness in sorted(witnesses, key=lambda w: (w.begin_ns, w.end_ns, w.source)):
        at = next_of.get(witness.source, 0)
        while at < len(joined) and ends[at] + slack_ns < witness.begin_ns:
            at += 1
        if at == len(joined):
            joined.append([])
            ends.append(witness.end_ns)
        joined[at].append(witness)
        ends[at] = max(ends[at], witness.end_ns)
        next_of[witness.source] = at + 1
    return tuple(Incident(tuple(group)) for group in joined)
