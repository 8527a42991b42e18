"""JSON data, and its single values by path, to compare two set-ups.

It runs on Python 3.9, which cannot join types with ``|`` at run time.
"""

from __future__ import annotations

import json
from typing import Union

Tree = Union[str, int, float, bool, None, list["Tree"], dict[str, "Tree"]]
"""A machine's fingerprint, and any other JSON data."""
_MAX_DEPTH = 12


def parse_json(text: str | None) -> Tree:
    """Parses JSON; returns the text itself if it is none, and an empty mapping for None."""
    try:
        data: Tree = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text
    return data


def flatten(tree: Tree, path: str, depth: int = _MAX_DEPTH) -> dict[str, str]:
    """The single values of a tree as text, by path; a list without nested data is one value.

    >>> flatten({"cores": 2, "flags": ["aes", "avx"], "ports": [{"up": True}]}, "machine dut")
    {'machine dut cores': '2', 'machine dut flags': 'aes, avx', 'machine dut ports 1 up': 'yes'}
    """
    if depth and isinstance(tree, dict):
        parts = list(tree.items())
    elif depth and isinstance(tree, list) and any(isinstance(inner, (dict, list)) for inner in tree):
        parts = [(str(index), inner) for index, inner in enumerate(tree, 1)]
    else:
        return {path: ", ".join(map(_word, tree)) if isinstance(tree, list) else _word(tree)}
    return {
        key: text for name, inner in parts for key, text in flatten(inner, f"{path} {name}".strip(), depth - 1).items()
    }


def _word(value: Tree) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
