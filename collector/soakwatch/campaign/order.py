"""The order of a campaign's runs: randomised complete blocks.

Block r has the r-th run of every cell once, in an order that a seed shuffles, so that what drifts during a campaign
(temperature, other users, a leak of the generator) meets all cells alike and is no difference between them.
The shuffle sorts by SHA-256 of seed, block and cell: the same on every machine and with every version of Python, and a
cell more or less leaves the others in their order.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from soakwatch.campaign.model import Cell


def block(cells: Iterable[Cell], seed: int, repetition: int) -> tuple[Cell, ...]:
    """The cells in the order of block ``repetition``, which counts from 1.

    >>> cells = [Cell({"load": name}) for name in "abc"]
    >>> [" ".join(cell.values["load"] for cell in block(cells, 7, r)) for r in (1, 2, 3)]
    ['b c a', 'c b a', 'c a b']
    """
    return tuple(sorted(cells, key=lambda cell: sha256(f"{seed}\0{repetition}\0{cell.id}".encode()).digest()))
