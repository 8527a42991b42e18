"""The measured tables: every rule has one, of its present version, as the accuracy bench writes it."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest
from tests.rules.outcomes import concerning

from soakwatch_rules import detectors
from soakwatch_rules.measured import table

NAMES = sorted(module.name for module in pkgutil.iter_modules(detectors.__path__))


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_has_a_table_of_its_version(name: str) -> None:
    """The first line names the command, the version that was measured, and at least 300 seeds."""
    kind = getattr(
        importlib.import_module(f"soakwatch_rules.detectors.{name}"), "".join(w.capitalize() for w in name.split("_"))
    )
    text = table(name)
    again = f"python tests/bench/accuracy/synthetic.py --rule {name} --write"
    assert text is not None, f"no table: {again}"
    reported = re.fullmatch(r"`(.+)` · (\w+) version (\d+) · (\d+) seeds a scenario", text.partition("\n")[0])
    assert reported is not None, f"the first line says something else: {again}"
    assert (reported[2], int(reported[3])) == (name, kind.version), f"measured was another version: {again}"
    assert int(reported[4]) >= 300, f"too few seeds: {again}"


@pytest.mark.parametrize("name", NAMES)
def test_the_table_has_a_row_for_every_scenario(name: str) -> None:
    """What was measured is what is there to measure."""
    text = table(name) or ""
    assert [s.name for s in concerning(name) if f"| {s.name} |" not in text] == []


def test_a_rule_without_a_table_has_none() -> None:
    """An unknown rule has no table."""
    assert table("no_such_rule") is None
