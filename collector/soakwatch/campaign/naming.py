"""Names of the folders of a campaign's runs: short, of the values of the cell, never two alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

from soakwatch.campaign.model import Cell

_MAX = 80
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9._]+")


def folder_names(cells: Sequence[Cell]) -> dict[str, str]:
    """The name of each cell's folders, by its id, without repetition and attempt.

    >>> folder_names([Cell({"kind": "L4", "load": "20%"}), Cell({"kind": "L4", "load": "25%"})])
    {'kind=L4,load=20%': 'L4-20', 'kind=L4,load=25%': 'L4-25'}
    >>> sorted(folder_names([Cell({"a": "x y"}), Cell({"a": "x+y"})]).values())
    ['x-y-6ad7', 'x-y-dd12']
    """
    plain = {cell.id: _plain(cell) for cell in cells}
    often = Counter(name.lower() for name in plain.values())
    return {
        cell: name if name and often[name.lower()] == 1 else f"{name or 'cell'}-{sha256(cell.encode()).hexdigest()[:4]}"
        for cell, name in plain.items()
    }


def _plain(cell: Cell) -> str:
    name = "-".join(part for value in cell.values.values() if (part := _NOT_IN_NAME.sub("-", value).strip("-.")))
    return name[:_MAX].strip("-.")


def run_folder(cell_name: str, repetition: int, attempt: int) -> str:
    """The name of a run's folder.

    >>> run_folder("L4-64-20", 2, 1), run_folder("L4-64-20", 2, 2)
    ('L4-64-20-r2', 'L4-64-20-r2-a2')
    """
    return f"{cell_name}-r{repetition}" + (f"-a{attempt}" if attempt > 1 else "")
