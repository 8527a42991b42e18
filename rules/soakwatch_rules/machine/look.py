"""The result of one check of a machine: problems, what is in order, and what could not be judged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Remark:
    """A problem of one part (an object's labels), in a sentence with the remedy; ``measured`` and ``limit`` are in
    ``unit`` if there is a number."""

    part: str
    text: str
    measured: float | None = None
    limit: float | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """The result of a check: problems (``amiss``), names of what is in order (``sound``), and what was not judged, with
    the reason (``open``); all empty if the machine has nothing of the kind."""

    amiss: tuple[Remark, ...] = ()
    sound: tuple[str, ...] = ()
    open: tuple[str, ...] = ()

    @property
    def seen(self) -> int:
        """The number of facts that were judged."""
        return len(self.amiss) + len(self.sound)


def together(looks: Iterable[Look]) -> Look:
    """Several results as one.

    >>> together([Look(sound=("a",)), Look(open=("b",))])
    Look(amiss=(), sound=('a',), open=('b',))
    """
    every = tuple(looks)
    return Look(
        tuple(remark for look in every for remark in look.amiss),
        tuple(words for look in every for words in look.sound),
        tuple(words for look in every for words in look.open),
    )
