"""Deliberate faults of a responder. Everything is seeded, and nothing blocks other clients."""

from __future__ import annotations

import random
from dataclasses import dataclass

from soakwatch_testing.snmp_cells import Name, name_of


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults in force, by default none.

    On datagrams of all versions: ``drop`` is the share of unanswered requests (1: silence), ``delay_s`` delays every
    answer, ``garbage`` answers octets that are no SNMP, ``truncate`` cuts the answer to this many octets, ``twice``
    sends every answer two times, ``astray`` answers from another port.

    On content: ``wrong_id`` answers a request that nobody made; ``gen_err`` answers genErr below these OIDs;
    ``most_bindings`` and ``most_octets`` limit an answer (else tooBig; a GETBULK is cut short); ``loop`` makes GETNEXT
    and GETBULK repeat below these OIDs, ``backwards`` makes them return to the first one.

    ``below`` limits all to requests below these OIDs; ``requests`` ends the faults after they applied to this many
    requests.
    """

    drop: float = 0.0
    delay_s: float = 0.0
    garbage: bool = False
    truncate: int | None = None
    twice: bool = False
    astray: bool = False
    wrong_id: bool = False
    gen_err: tuple[str, ...] = ()
    most_bindings: int | None = None
    most_octets: int | None = None
    loop: tuple[str, ...] = ()
    backwards: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    requests: int | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.drop <= 1 or self.delay_s < 0:
            raise ValueError("drop is a share of 0 to 1, and a delay is not negative")


NO_FAULTS = Faults()


def lies_below(name: Name, prefixes: tuple[Name, ...]) -> bool:
    """Whether a name is one of these or below one."""
    return any(name[: len(prefix)] == prefix for prefix in prefixes)


class Mischief:
    """Faults in force with their random generator and count."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.gen_err = tuple(map(name_of, faults.gen_err))
        self.loop = tuple(map(name_of, faults.loop))
        self.backwards = tuple(map(name_of, faults.backwards))
        self._below = tuple(map(name_of, faults.below))
        self._left = faults.requests
        self._dice = random.Random(faults.seed)  # noqa: S311 - a test's dice, not a secret

    def applies(self, names: tuple[Name, ...]) -> bool:
        """Whether the faults apply to a request, which is counted."""
        if self._below and not any(lies_below(name, self._below) for name in names):
            return False
        if self._left is None:
            return True
        self._left -= 1
        return self._left >= 0

    def drops(self) -> bool:
        """Whether this answer is lost."""
        return self.faults.drop > 0 and self._dice.random() < self.faults.drop

    def spoil(self, answer: bytes) -> bytes:
        """Apply the faults to an encoded answer."""
        if self.faults.garbage:
            return self._dice.randbytes(max(8, min(len(answer), 200)))
        return answer if self.faults.truncate is None else answer[: self.faults.truncate]
