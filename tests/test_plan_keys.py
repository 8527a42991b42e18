"""docs/plan-keys.md: every key has a sentence and an example, and every example is accepted where it stands."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator
from tests.plan_keys import Part, plan_parts

from soakwatch.core.registry import rule_class
from soakwatch.core.yaml import Plain, parse
from soakwatch.plan.plan_schema import plan_schema
from soakwatch.plan.rule_plan import parameter_value
from soakwatch_rules.parameter import parameters


def _parsed(example: str) -> dict[str, Plain]:
    data = parse(example.strip("`"), "docs/plan-keys.md").data
    assert isinstance(data, dict)
    return data


PARTS = plan_parts()
SCHEMA = plan_schema()


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.title)
def test_every_example_is_accepted(part: Part) -> None:
    """By the schema of its key, or by the rule whose parameter it is, and it is not the default."""
    for key in part.keys:
        assert key.says, f"{part.title}: {key.name} has no sentence"
        assert key.example, f"{part.title}: {key.name} has no example: add one to tests/key_examples.py"
        assert "|" not in key.example, f"{part.title}: {key.example} would end the cell of a table"
        ((name, value),) = _parsed(key.example).items()
        assert name == key.name
        if key.shape is not None:
            shape = {**key.shape, "$defs": SCHEMA["$defs"]}
            wrong = [error.message for error in Draft202012Validator(shape).iter_errors(value)]
            assert not wrong, f"{part.title}: {key.example}: {wrong}"
        elif part.title.startswith("Rule "):
            rule = rule_class(part.title.split("`")[1])
            (parameter,) = (known for known in parameters(rule) if known.name == key.name)
            assert parameter_value(parameter, value) in parameter.within
