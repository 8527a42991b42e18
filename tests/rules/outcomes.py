"""What every rule may say of every scenario that concerns it: the OUTCOMES of the rules' tests, put together.

Each test module of a rule has a literal ``OUTCOMES``: blocks of lines ``scenario | letters`` below a line
``family | rule`` (with more columns for more rules). F fail, W warn, P pass, I inconclusive, N not applicable; several
letters where each of them is right. A healthy device may be passed or left open, never failed; an ill one may be
failed or left open, never passed. A small letter is what is said although it is wrong, a known weakness: tests take it
as it is, the bench counts it.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

from soakwatch_rules.rule import Outcome
from soakwatch_rules.scenarios.families import family
from soakwatch_rules.scenarios.synthetic import Scenario

LETTERS: Final = {
    Outcome.FAIL: "F",
    Outcome.WARN: "W",
    Outcome.PASS: "P",
    Outcome.INCONCLUSIVE: "I",
    Outcome.NOT_APPLICABLE: "N",
}

Entries = dict[tuple[str, str, str], frozenset[str]]


def _literals() -> list[str]:
    """The OUTCOMES of all test modules beside this one, read without importing them."""
    return [
        ast.literal_eval(node.value)
        for file in sorted(Path(__file__).parent.glob("test_*.py"))
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["OUTCOMES"]
    ]


def _entries(text: str) -> Entries:
    entries: Entries = {}
    for block in text.strip().split("\n\n"):
        head, *rows = ([cell.strip() for cell in line.split("|")] for line in block.splitlines())
        for row in rows:
            for rule, cell in zip(head[1:], row[1:], strict=True):
                entries[rule, head[0], row[0]] = frozenset(cell)
    return entries


_ENTRIES: Final = {key: entry for text in _literals() for key, entry in _entries(text).items()}

RIGHT: Final[Entries] = {
    key: frozenset(letter for letter in entry if letter.isupper()) for key, entry in _ENTRIES.items()
}
"""The letters that are right, by (rule, family, scenario)."""

ALLOWED: Final[Entries] = {key: frozenset(map(str.upper, entry)) for key, entry in _ENTRIES.items()}
"""These, and those of known weaknesses."""


def concerning(rule: str) -> tuple[Scenario, ...]:
    """The scenarios on which a rule is tried: those of the families in its OUTCOMES."""
    return family(*dict.fromkeys(family_name for name, family_name, _ in _ENTRIES if name == rule))
