"""How many random draws a test makes: few, and all of them among the slow proofs.

What a rule says shows in one draw; how often it is wrong is a proof of many.
"""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet


def each_seed(few: int, many: int) -> list[ParameterSet]:
    """A test for each seed; those after the first few are slow."""
    return [pytest.param(seed, marks=() if seed < few else pytest.mark.slow, id=str(seed)) for seed in range(many)]


def seeds(few: int, many: int) -> list[ParameterSet]:
    """A test with the first few seeds and a slow one with all of them."""
    return [
        pytest.param(range(few), id=f"{few} seeds"),
        pytest.param(range(many), marks=pytest.mark.slow, id=f"{many} seeds"),
    ]


def examples(few: int, many: int) -> list[ParameterSet]:
    """A test with a few examples of Hypothesis and a slow one with many."""
    return [
        pytest.param(few, id=f"{few} examples"),
        pytest.param(many, marks=pytest.mark.slow, id=f"{many} examples"),
    ]
