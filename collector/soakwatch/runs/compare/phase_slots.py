"""Phases of several runs laid over one another, so that the same moment of the same phase stands in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from soakwatch.runs.key_figures import UNDER_LOAD
from soakwatch_model.window import Phase, Window

PARTS = 24
"""Into so many parts two runs are cut to tell whether a figure changed: enough to see how alike neighbours are."""


@dataclass(frozen=True, slots=True)
class PhaseSlot:
    """One phase of a comparison: its name, its window in each run (None where a run lacks it), and how many seconds of
    it are shown. What only one run has is cut to the longest of the others."""

    name: str
    windows: tuple[Window | None, ...]
    seconds: float

    @property
    def shared(self) -> bool:
        """Whether two runs have it."""
        return sum(window is not None for window in self.windows) > 1


def slots_of(runs: Sequence[tuple[Window, Sequence[Phase]]], *, by_phase: bool = True) -> tuple[PhaseSlot, ...]:
    """The phases of some runs, each given as its window and its phases, in the order of the first run. The second soak
    of a run is aligned with the second soak of another. Not ``by_phase``, and where no phase is shared, each run is one
    slot."""
    named = [_numbered(phases) for _, phases in runs] if by_phase else []
    order: list[tuple[str, int]] = []
    for windows in named:
        place = 0
        for key in windows:
            if key in order:
                place = order.index(key) + 1
            else:
                order.insert(place, key)
                place += 1
    slots = tuple(_slot(key[0], [windows.get(key) for windows in named]) for key in order)
    if any(slot.shared for slot in slots):
        return slots
    return (_slot("", [window for window, _ in runs]),)


def _numbered(phases: Sequence[Phase]) -> dict[tuple[str, int], Window]:
    windows: dict[tuple[str, int], Window] = {}
    for phase in phases:
        if phase.window.seconds > 0:
            number = sum(name == phase.name for name, _ in windows)
            windows[phase.name, number] = phase.window
    return windows


def _slot(name: str, windows: Sequence[Window | None]) -> PhaseSlot:
    lengths = sorted((window.seconds for window in windows if window is not None), reverse=True)
    return PhaseSlot(name, tuple(windows), lengths[min(1, len(lengths) - 1)])


def parts_of(slots: Sequence[PhaseSlot], one: int, other: int) -> tuple[tuple[tuple[Window, Window], ...], str]:
    """About ``PARTS`` pairs of windows of equal length at the same phase time of two runs (by their numbers), and the
    names of their phases: those under load, otherwise all that both have. Empty where they share none."""
    both = [(slot.name, a, b) for slot in slots if (a := slot.windows[one]) and (b := slot.windows[other])]
    loaded = [each for each in both if each[0] in UNDER_LOAD] or both
    lengths = [min(a.end_ns - a.begin_ns, b.end_ns - b.begin_ns) for _, a, b in loaded]
    parts: list[tuple[Window, Window]] = []
    for (_, a, b), length in zip(loaded, lengths, strict=True):
        number = max(1, round(PARTS * length / sum(lengths)))
        same = (Window(window.begin_ns, window.begin_ns + length) for window in (a, b))
        parts += zip(*(split(window, number) for window in same), strict=True)
    return tuple(parts), ", ".join(dict.fromkeys(name for name, _, _ in loaded if name)) or "the whole run"


def split(window: Window, number: int) -> tuple[Window, ...]:
    """The window in so many parts of equal length.

    >>> [(part.begin_ns, part.end_ns) for part in split(Window(0, 10), 3)]
    [(0, 3), (3, 6), (6, 10)]
    """
    length = window.end_ns - window.begin_ns
    edges = [window.begin_ns + length * part // number for part in range(number + 1)]
    return tuple(Window(low, high) for low, high in pairwise(edges))
