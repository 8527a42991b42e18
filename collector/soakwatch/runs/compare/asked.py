"""How runs are to be compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from soakwatch.core.errors import SoakwatchError


@dataclass(frozen=True, slots=True)
class Asked:
    """How runs are to be compared: ``by_phase`` lays the same phases over one another, else their begins; ``targets``
    says of a run (by the name of its folder) which of its targets stands for which of the reference's."""

    by_phase: bool = True
    targets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def key(self) -> tuple[object, ...]:
        """The same for what asks for the same."""
        pairs = sorted((run, own, theirs) for run, names in self.targets.items() for own, theirs in names.items())
        return self.by_phase, tuple(pairs)


def match_of(text: str) -> tuple[str, str, str] | None:
    """``RUN:ITS_TARGET=TARGET``: a run, its target, and the one of the reference for which it stands; None where the
    last is empty (as the roles say). Raises SoakwatchError.

    >>> match_of("new:fw-b=fw-a"), match_of("new:fw-b=")
    (('new', 'fw-b', 'fw-a'), None)
    """
    run, colon, pair = text.partition(":")
    own, equals, theirs = pair.partition("=")
    if not (run and colon and own and equals):
        raise SoakwatchError(f"{text[:100]!r} matches no targets: write RUN:ITS_TARGET=TARGET")
    return (run, own, theirs) if theirs else None
