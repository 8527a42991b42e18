"""What the growth of a process is, by its looks and the course of its memory: leak, cache, allocator, load or start.

The order of the questions: does the program itself hold more (the account of its allocator), or does the allocator only
keep what was given back? If it holds more: does that follow the load, has it come to rest, or does it go on?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from soakwatch.diagnose.compare import Difference, Grown, difference, of_one_life
from soakwatch.diagnose.look import Look, Runtime, SiteKind

MIB: Final = 1 << 20
_LEAST_SHARE: Final = 0.02  # of what is held: smaller growth is noise
_LEAST: Final = 256 << 10
_OF_HELD: Final = 0.3  # of the growth of what is held: less in use is growth of holes
_WORTH: Final = 0.01  # of the growth: a site with less is no suspect
_LIKE: Final = 0.1  # of the number by which another type grew
_FREE_SHARE: Final = 0.25  # of what the allocator holds
_AT_REST: Final = 0.2  # of the mean rate of growth before
_DONE: Final = 0.85  # of what is in use at the last look
_PEAK: Final = 1.3  # times what is in use at the last look
_FLAT: Final = 0.07  # of what is in use: what grew less between the first look and the last was there before
_STEADY: Final = 0.4  # of the growth: what moves more behind it has not come to rest
_EARLY: Final = 0.35  # of the course: what comes to rest before is warm-up
_LOAD_SHARE: Final = 0.6  # of the variance that the load explains
_LOADED: Final = 0.1  # of the most in use: by so much it must fall with the load
_WITH_HEADROOM: Final = frozenset({Runtime.GO, Runtime.JAVA, Runtime.NODE})
"""Collectors that hold far more than what is in use by nature: it takes a peak to have seen one."""
_LEAST_POINTS: Final = 12


class Kind(StrEnum):
    """What the growth is."""

    LEAK = "leak"
    BOUNDED = "cache with a bound"
    FRAGMENTED = "fragmentation"
    RETAINED = "retention after a peak"
    LOAD = "follows the load"
    WARM_UP = "warm-up"
    UNDECIDED = "not decided"


class Undecided(StrEnum):
    """Why it is not decided."""

    ONE_LOOK = "one look"
    RESTARTED = "restarted"
    NO_ACCOUNT = "no account of the allocator"
    NO_GROWTH = "nothing grew"


@dataclass(frozen=True, slots=True)
class Course:
    """The resident memory of the process over time (seconds, bytes), and the load at the same times, if it is known."""

    times: NDArray[np.float64]
    resident: NDArray[np.float64]
    load: NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What two or more looks show. ``sites`` are the suspects: only of a leak, since what grows in a healthy program is
    no suspect. ``free`` is what the allocator keeps though the program does not use it, of that ``in_pieces``."""

    kind: Kind
    why: Undecided | None = None
    difference: Difference | None = None
    sites: tuple[Grown, ...] = ()
    free: int | None = None
    in_pieces: int | None = None


def reading(looks: Sequence[Look], course: Course | None = None) -> Reading:
    """Reads the looks at one process, of which those of its last life count."""
    life = of_one_life(looks)
    if len(life) < 2:
        return Reading(Kind.UNDECIDED, Undecided.RESTARTED if len(looks) > 1 else Undecided.ONE_LOOK)
    with_heap = tuple(look for look in life if look.heap is not None)
    if len(with_heap) >= 2:
        life = with_heap
    first, last = life[0], life[-1]
    # lines are traced from the first look on, so that what grew is between later ones
    apart = difference(first, last)
    sites = apart.grown if any(row.kind is SiteKind.LINE for row in apart.grown) else (*_later(life), *apart.grown)
    free = None if last.heap is None else last.heap.held - last.heap.in_use
    pieces = None if last.heap is None else last.heap.in_pieces
    kind, why = _kind(life, apart, course)
    least = _WORTH * max(apart.in_use or 0, 0 if apart.resident is None else apart.resident)
    suspects = _suspects(sites, least) if kind is Kind.LEAK else ()
    return Reading(kind, why, apart, suspects, free, pieces)


def _later(life: Sequence[Look]) -> tuple[Grown, ...]:
    """The lines that grew between the second look and the last."""
    if len(life) < 3:
        return ()
    return tuple(row for row in difference(life[1], life[-1]).grown if row.kind is SiteKind.LINE)


def _kind(life: Sequence[Look], apart: Difference, course: Course | None) -> tuple[Kind, Undecided | None]:
    last = life[-1]
    if apart.in_use is None or last.heap is None:
        grew = apart.resident is not None and apart.resident > _least(apart.resident and last.resident)
        if course is not None and _follows_load(course):
            return Kind.LOAD, None
        rested = _rested(life, course)
        if rested is not None:
            return rested, None
        sites = [row for row in apart.grown if row.bytes > _LEAST]
        return (Kind.LEAK, None) if grew and sites else (Kind.UNDECIDED, Undecided.NO_ACCOUNT)
    if course is not None and (_follows_load(course) or _looks_follow_load(life, course)):
        return Kind.LOAD, None
    free = last.heap.held - last.heap.in_use
    pieces = last.heap.in_pieces
    scattered = pieces is not None and pieces > free / 2 and free > max(_FREE_SHARE * last.heap.held, MIB)
    if scattered and apart.held is not None and apart.in_use < _OF_HELD * apart.held:
        return Kind.FRAGMENTED, None
    if apart.in_use > _least(last.heap.in_use):
        return _rested(life, course) or Kind.LEAK, None
    peak = max(look.heap.in_use for look in life if look.heap is not None)
    headroom = last.runtime in _WITH_HEADROOM and peak < _PEAK * last.heap.in_use
    if free > max(_FREE_SHARE * last.heap.held, MIB) and not headroom:
        return (Kind.FRAGMENTED if scattered else Kind.RETAINED), None
    rested = _rested(life, course)
    return (rested, None) if rested is not None else (Kind.UNDECIDED, Undecided.NO_GROWTH)


def _least(held: int | None) -> float:
    return max(_LEAST, _LEAST_SHARE * (held or 0))


def _rested(life: Sequence[Look], course: Course | None) -> Kind | None:
    """A cache that is full, or a warm-up that is over; None while it goes on, or nothing is known of it."""
    used = [(look.time_ns * 1e-9, float(look.heap.in_use)) for look in life if look.heap is not None]
    rests = None if course is None else rests_from(course)
    if len(used) < 2:
        return None if rests is None else _when(life, course)
    (begin, low), (end, high) = used[0], used[-1]
    flat = high - low < _FLAT * high
    middle, half = used[-2]
    before, after = (half - low) / max(middle - begin, 1e-9), (high - half) / max(end - middle, 1e-9)
    grew = len(used) >= 3 and half - low > _least(int(high))
    if grew and after < _AT_REST * before:
        return _when(life, course)
    if flat and course is not None and _is_early(begin, course):
        return Kind.WARM_UP if rests is not None else None
    if grew or (len(used) >= 3 and not flat):
        return None
    return _when(life, course) if rests is not None else None


def _when(life: Sequence[Look], course: Course | None) -> Kind:
    """Warm-up if it came to rest early in the course: by the looks, or if all are later, by the course."""
    if course is None:
        return Kind.BOUNDED
    used = [(look.time_ns * 1e-9, look.heap.in_use) for look in life if look.heap is not None]
    early = [held for at, held in used if _is_early(at, course)]
    if early:
        return Kind.WARM_UP if early[-1] > _DONE * used[-1][1] else Kind.BOUNDED
    rest = rests_from(course)
    return Kind.WARM_UP if rest is not None and rest < _EARLY else Kind.BOUNDED


def _is_early(at: float, course: Course) -> bool:
    return bool(at < course.times[0] + _EARLY * (course.times[-1] - course.times[0]))


def rests_from(course: Course) -> float | None:
    """From which share of the course on (0 to 1) memory hardly grows any more; None if it still does, or nothing grew.

    It rests from where 95 % of the growth is done, if the rate behind is far below the one before.
    """
    if course.times.size < _LEAST_POINTS:
        return None
    times, memory = course.times - course.times[0], _smoothed(_without_load(course))
    growth = memory[-1] - memory[0]
    if growth < _least(int(memory[-1])) or times[-1] <= 0:
        return None
    reached = int(np.argmax(memory >= memory[0] + 0.95 * growth))
    share = float(times[reached] / times[-1])
    if share > 0.9 or reached == 0:
        return None
    if float(np.ptp(memory[reached:])) > _STEADY * growth:
        return None  # it moves on
    before = (memory[reached] - memory[0]) / times[reached]
    behind = (memory[-1] - memory[reached]) / (times[-1] - times[reached])
    return share if behind < _AT_REST * before else None


def _without_load(course: Course) -> NDArray[np.float64]:
    """The memory less what goes up and down with the load, beside a trend of its own."""
    if course.load is None or float(np.ptp(course.load)) == 0:
        return course.resident
    times = course.times - course.times[0]
    causes = np.column_stack([np.ones_like(times), times, course.load - np.mean(course.load)])
    slope = float(np.linalg.lstsq(causes, course.resident, rcond=None)[0][2])
    return np.asarray(course.resident - max(slope, 0.0) * (course.load - np.mean(course.load)), dtype=np.float64)


def _smoothed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    width = max(1, values.size // 40)
    if width == 1:
        return values
    padded = np.pad(values, (width // 2, width - 1 - width // 2), mode="edge")
    return np.convolve(padded, np.full(width, 1 / width), mode="valid")


def _follows_load(course: Course) -> bool:
    """Whether memory goes up and down with the load, and has no trend of its own."""
    if course.load is None or course.times.size < _LEAST_POINTS:
        return False
    load, memory = course.load, course.resident
    if float(np.ptp(load)) < 0.2 * float(np.max(np.abs(load)) or 1) or float(np.ptp(memory)) < _LEAST:
        return False
    linked = float(np.corrcoef(load, memory)[0, 1]) ** 2
    if not np.isfinite(linked) or linked < _LOAD_SHARE:
        return False
    slope, level = np.polyfit(load, memory, 1)
    rest = memory - (slope * load + level)
    times = course.times - course.times[0]
    trend = float(np.polyfit(times, rest, 1)[0]) * float(times[-1])
    return bool(slope > 0 and abs(trend) < 0.2 * float(np.ptp(memory)))


def _looks_follow_load(life: Sequence[Look], course: Course) -> bool:
    """Whether what the program uses went with the load from each look to the next, down as well: resident memory does
    not show that where the allocator keeps it."""
    if course.load is None or float(np.ptp(course.load)) < 0.2 * float(np.max(np.abs(course.load)) or 1):
        return False
    used = np.array([look.heap.in_use for look in life if look.heap is not None], dtype=np.float64)
    at = np.array([look.time_ns * 1e-9 for look in life if look.heap is not None])
    steps, sent = np.diff(used), np.diff(np.interp(at, course.times, course.load))
    moved = np.abs(sent) > _LOADED / 2 * float(np.ptp(course.load))
    alike = bool(np.all(np.sign(steps[moved]) == np.sign(sent[moved])))
    return bool(used.size >= 3 and alike and np.min(steps) < -_LOADED * np.max(used))


def _suspects(sites: Sequence[Grown], least: float) -> tuple[Grown, ...]:
    """What grew by at least so many bytes, lines first, and of types the program's own before those of its library.

    An object may be small and what hangs on it large: a type of the program counts as well if its number grew like
    that of the type that grew most.
    """
    lines = [row for row in sites if row.kind is SiteKind.LINE and row.bytes >= least]
    types = [row for row in sites if row.kind is SiteKind.TYPE]
    most = max((row.count for row in types), default=0)
    worth = [row for row in types if row.bytes >= least or (row.own and row.count > _LIKE * most)]
    ranked = sorted(worth, key=lambda row: (not row.own, -row.bytes))
    return (*sorted(lines, key=lambda row: (not row.own, -row.bytes)), *ranked)
