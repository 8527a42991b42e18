"""The result of one check of a machine: problems, what is in order, and what could not be judged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of one part (an object's labels), in a sentence with the remedy; ``measured`` and ``limit`` are in
    ``unit`` if there is a number."""

    part: str
    text: str
    measured: float | None = None
    limit: float | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check: ``problems``, what is ``in_order`` (names), and what was ``not_judged`` (with the reason);
    all empty if the machine has nothing of the kind."""

    problems: tuple[Problem, ...] = ()
    in_order: tuple[str, ...] = ()
    not_judged: tuple[str, ...] = ()

    @property
    def seen(self) -> int:
        """The number of facts that were judged."""
        return len(self.problems) + len(self.in_order)


def combined(results: Iterable[CheckResult]) -> CheckResult:
    """Several results as one.

    >>> combined([CheckResult(in_order=("a",)), CheckResult(not_judged=("b",))])
    CheckResult(problems=(), in_order=('a',), not_judged=('b',))
    """
    every = tuple(results)
    return CheckResult(
        tuple(problem for result in every for problem in result.problems),
        tuple(words for result in every for words in result.in_order),
        tuple(words for result in every for words in result.not_judged),
    )
