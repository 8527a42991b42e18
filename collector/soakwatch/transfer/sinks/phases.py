"""The phases of a run: their lines, and which one a time falls into."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from soakwatch.transfer.sinks.lines import key, line, milliseconds

Phases = Sequence[tuple[str, int, int | None]]
"""Name, begin and end (UTC ns) of each phase that began, in order; the current one has no end."""


def phase_lines(run: str, phases: Iterable[tuple[str, int, int | None]], now_ns: int) -> list[bytes]:
    """The phases as lines; the current one ends at ``now_ns``."""
    return [
        line(
            key("soakwatch_phase", {"run": run, "phase": name}, {}),
            {
                "text": name,
                "begin_ms": milliseconds(begin_ns),
                "end_ms": milliseconds(max(begin_ns, end_ns or now_ns)),
            },
            begin_ns,
        )
        for name, begin_ns, end_ns in phases
    ]


def stretches(phases: Phases, time_ns: np.typing.NDArray[np.int64]) -> list[tuple[str, int, int]]:
    """Split sorted times by phase: name ("" outside of phases), first index, index behind the last."""
    if not time_ns.size:
        return []
    edges = {0, int(time_ns.size)}
    for _, begin_ns, end_ns in phases:
        edges.add(int(np.searchsorted(time_ns, begin_ns)))
        if end_ns is not None:
            edges.add(int(np.searchsorted(time_ns, end_ns)))
    ordered = sorted(edges)
    return [(phase_at(phases, int(time_ns[low])), low, high) for low, high in pairwise(ordered)]


def phase_at(phases: Phases, time_ns: int) -> str:
    for name, begin_ns, end_ns in reversed(phases):
        if begin_ns <= time_ns and (end_ns is None or time_ns < end_ns):
            return name
    return ""
