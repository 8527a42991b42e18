"""Releases in their order: 7.9 before 7.10, a release candidate before its release."""

from __future__ import annotations

import re
from collections.abc import Iterable

_VERSION = re.compile(r"[A-Za-z][A-Za-z -]*\d[\w.+-]*|v?\d+(?:\.\d+)+[\w.+()-]*|\d+", re.ASCII)
_BEFORE = frozenset({"dev", "a", "alpha", "b", "beta", "pre", "rc"})
Key = tuple[tuple[int, int, str], ...]


def version_key(name: str) -> Key:
    """A sorting key for versions.

    >>> sorted(["7.10", "7.9", "7.10-rc1", "7.9.1", "7.9R2"], key=version_key)
    ['7.9', '7.9R2', '7.9.1', '7.10-rc1', '7.10']
    """
    parts: list[tuple[int, int, str]] = []
    for part in re.findall(r"\d+|[A-Za-z]+", name.removeprefix("v")):
        if part.isdecimal():
            parts.append((1, int(part), ""))
        else:
            parts.append((-1 if part.lower() in _BEFORE else 1, -1, part.lower()))
    return (*parts, (0, 0, ""))


def are_versions(names: Iterable[str]) -> bool:
    """Whether all of some names can be put in order as versions: numbers, numbers with points, a word and a number.

    >>> are_versions(["7.2", "v7.10-rc1"]), are_versions(["Linux 6.1.3", "Linux 6.2"]), are_versions(["9f3c", "a77b"])
    (True, True, False)
    >>> are_versions(["tuned", "stock"])
    False
    """
    return all(_VERSION.fullmatch(name) is not None for name in names)
