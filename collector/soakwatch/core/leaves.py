"""The single facts of a set-up, each by the way to it: what two runs are held against each other by."""

from __future__ import annotations

import json

Tree = str | int | float | bool | None | list["Tree"] | dict[str, "Tree"]
_DEPTH = 12


def tree_of(text: str | None) -> Tree:
    """What a text of JSON holds; the text itself where it is none, and nothing of nothing."""
    try:
        found: Tree = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text
    return found


def leaves(tree: Tree, way: str, depth: int = _DEPTH) -> dict[str, str]:
    """The single values of a tree as words, by the way to each; a list of single values is one of them.

    >>> leaves({"cores": 2, "flags": ["aes", "avx"], "ports": [{"up": True}]}, "machine dut")
    {'machine dut cores': '2', 'machine dut flags': 'aes, avx', 'machine dut ports 1 up': 'yes'}
    """
    if depth and isinstance(tree, dict):
        parts = list(tree.items())
    elif depth and isinstance(tree, list) and any(isinstance(inner, dict | list) for inner in tree):
        parts = [(str(place), inner) for place, inner in enumerate(tree, 1)]
    else:
        return {way: ", ".join(map(_word, tree)) if isinstance(tree, list) else _word(tree)}
    return {
        key: text for name, inner in parts for key, text in leaves(inner, f"{way} {name}".strip(), depth - 1).items()
    }


def _word(value: Tree) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
