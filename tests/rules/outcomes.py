"""What every rule may say of every scenario that concerns it: the OUTCOMES of the rules' tests, put together.

Each test module of a rule has a literal ``OUTCOMES``: blocks of lines ``scenario | letters`` below a line
``family | rule`` (with more columns for more rules). F fail, W warn, P pass, I inconclusive, N not applicable; several
letters where each of them is right. A healthy device may be passed or left open, never failed; an ill one may be
failed or left open, never passed. A small letter is what is said although it is wrong, a known weakness: tests take it
as it is, the bench counts it.

A test module may also have ``SCENARIOS``, a family of signals that only its rule is tried on, and a literal
``PARAMETERS``, what its rule is given where the defaults judge nothing (a limit that only a plan can set).
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from soakwatch_model.finding import Outcome
from soakwatch_testing.scenarios import families
from soakwatch_testing.scenarios.scenario import Scenario

LETTERS: Final = {
    Outcome.FAIL: "F",
    Outcome.WARN: "W",
    Outcome.PASS: "P",
    Outcome.INCONCLUSIVE: "I",
    Outcome.NOT_APPLICABLE: "N",
}

Entries = dict[tuple[str, str, str], frozenset[str]]
_HERE: Final = Path(__file__).parent


def _assigned(name: str) -> Iterator[tuple[Path, ast.expr]]:
    """What the test modules below this folder assign to a name, read without importing them."""
    for file in sorted(_HERE.rglob("test_*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if [ast.unparse(target) for target in targets] == [name]:
                yield file, node.value


def _module(file: Path) -> str:
    """The name by which a test module is imported."""
    return ".".join(("tests", "rules", *file.relative_to(_HERE).with_suffix("").parts))


SCENARIOS: Final[tuple[Scenario, ...]] = (
    *families.SCENARIOS,
    *(scenario for file, _ in _assigned("SCENARIOS") for scenario in importlib.import_module(_module(file)).SCENARIOS),
)
"""Every scenario, those that stand in the test of their rule among them."""

PARAMETERS: Final[dict[str, dict[str, float]]] = {
    file.stem.removeprefix("test_"): ast.literal_eval(value) for file, value in _assigned("PARAMETERS")
}
"""What a rule is given where its defaults judge nothing."""


def named(family: str, name: str) -> Scenario:
    """One scenario.

    Raises KeyError for one that there is not.
    """
    return {(s.family, s.name): s for s in SCENARIOS}[family, name]


def _entries(text: str) -> Entries:
    entries: Entries = {}
    for block in text.strip().split("\n\n"):
        head, *rows = ([cell.strip() for cell in line.split("|")] for line in block.splitlines())
        for row in rows:
            for rule, cell in zip(head[1:], row[1:], strict=True):
                entries[rule, head[0], row[0]] = frozenset(cell)
    return entries


_ENTRIES: Final = {
    key: entry for _, text in _assigned("OUTCOMES") for key, entry in _entries(ast.literal_eval(text)).items()
}

RIGHT: Final[Entries] = {
    key: frozenset(letter for letter in entry if letter.isupper()) for key, entry in _ENTRIES.items()
}
"""The letters that are right, by (rule, family, scenario)."""

ALLOWED: Final[Entries] = {key: frozenset(map(str.upper, entry)) for key, entry in _ENTRIES.items()}
"""These, and those of known weaknesses."""


def concerning(rule: str) -> tuple[Scenario, ...]:
    """The scenarios on which a rule is tried: those of the families in its OUTCOMES."""
    of = {family for name, family, _ in _ENTRIES if name == rule}
    return tuple(scenario for scenario in SCENARIOS if scenario.family in of)
