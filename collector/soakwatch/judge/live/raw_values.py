"""Decodes the record's 64-bit words into float64, int64 or uint64 arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from soakwatch.record.follow import Words
from soakwatch.record.model import Values

Floats = NDArray[np.float64]

_TYPES: Mapping[str, type[np.float64 | np.int64 | np.uint64]] = {"d": np.float64, "q": np.int64, "Q": np.uint64}


def typed(kind: str, words: Words) -> Values:
    """Words of one kind as numbers; always a copy.

    >>> typed("q", np.array([2**64 - 1], dtype=np.uint64)).tolist()
    [-1]
    """
    own = words.copy()
    if kind == "d":
        return own.view(np.float64)
    return own if kind == "Q" else own.view(np.int64)


def floats(kinds: str, words: Words) -> Floats:
    """Columns of words, shape (n, k), as float64 whatever their kinds."""
    if "q" not in kinds and "Q" not in kinds:
        plain: Floats = np.ascontiguousarray(words).view(np.float64)
        return plain
    values = np.empty(words.shape)
    for kind in sorted(set(kinds)):
        columns = [column for column, each in enumerate(kinds) if each == kind]
        values[:, columns] = np.ascontiguousarray(words[:, columns]).view(_TYPES[kind])
    return values
