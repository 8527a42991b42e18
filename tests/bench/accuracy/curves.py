"""Curves of detection: of faults of one family, from small to large, how many were named, and from which size on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from tests.bench.accuracy.truth import Size

ENOUGH = 0.9


def smallest(shares: Iterable[tuple[float, int, int]]) -> float | None:
    """The smallest size from which on 90 % and more are named, of (size, named, tried); None where no size is.

    >>> smallest([(1, 2, 10), (2, 9, 10), (3, 8, 10), (4, 10, 10)])
    4
    >>> smallest([(1, 9, 10), (2, 5, 10)]) is None
    True
    """
    found: float | None = None
    for size, named, tried in sorted(shares, reverse=True):
        if named < ENOUGH * tried:
            break
        found = size
    return found


def curves(tried: Iterable[tuple[Size, bool]]) -> Iterator[str]:
    """A table in Markdown of what was tried and whether it failed with the fault named: a row for each family."""
    families: dict[tuple[str, str], dict[float, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for size, named in tried:
        families[size.family, size.unit][size.value].append(named)
    yield "| fault | size: named of tried | smallest size from which on 90 % are named |"
    yield "|---|---|---|"
    for (family, unit), sizes in sorted(families.items()):
        counted = [(value, sum(named), len(named)) for value, named in sorted(sizes.items())]
        course = ", ".join(f"{value:g}: {named} of {all_}" for value, named, all_ in counted)
        least = smallest(counted)
        yield f"| {family} ({unit}) | {course} | {f'{least:g} {unit}' if least is not None else 'larger than tried'} |"
