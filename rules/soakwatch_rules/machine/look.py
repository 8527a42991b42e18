"""What one look at a machine brought: what is amiss, what is as it should be, and what could not be judged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that is not as it should be: of which part (an object's labels), and a sentence with the remedy.

    ``measured`` and ``limit`` are in ``unit``, where there is a number.
    """

    part: str
    text: str
    measured: float | None = None
    limit: float | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """What a check saw. ``sound`` are words for what was looked at and is well, ``open`` for what was not judged, with
    the reason; all are empty where there is nothing of the kind on this machine."""

    amiss: tuple[Remark, ...] = ()
    sound: tuple[str, ...] = ()
    open: tuple[str, ...] = ()

    @property
    def seen(self) -> int:
        """How many facts were judged."""
        return len(self.amiss) + len(self.sound)


def together(looks: Iterable[Look]) -> Look:
    """All of them as one.

    >>> together([Look(sound=("a",)), Look(open=("b",))])
    Look(amiss=(), sound=('a',), open=('b',))
    """
    every = tuple(looks)
    return Look(
        tuple(remark for look in every for remark in look.amiss),
        tuple(words for look in every for words in look.sound),
        tuple(words for look in every for words in look.open),
    )
