"""Lists of cores as the kernel writes them: ``0-3,8``."""

from __future__ import annotations

import re

_PART = re.compile(r"[ \t]*([0-9]{1,5})(?:-([0-9]{1,5}))?[ \t]*")
_MOST = 100_000
"""More than a kernel knows. A list comes from a device, and one of all numbers would fill the memory of the monitor."""


def cores_of(text: str) -> list[int]:
    """The cores of a list in its order; parts that are none are left out.

    >>> cores_of("0-2,5"), cores_of("x"), cores_of("0-99999999999"), cores_of("")
    ([0, 1, 2, 5], [], [], [])
    """
    cores: list[int] = []
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is not None:
            cores += range(int(match[1]), int(match[2] or match[1]) + 1)
            if len(cores) > _MOST:
                return []
    return cores
