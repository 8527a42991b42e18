"""The pages of all keys: every key has a sentence and an example, which is accepted where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from tests.plan_keys import Part, Shape, campaign_parts, plan_parts

from soakwatch.campaign.campaign_file import load_campaign
from soakwatch.campaign.campaign_keys import campaign_schema
from soakwatch.core.registry import rule_class
from soakwatch.core.yaml import Plain, parse
from soakwatch.plan.plan_schema import plan_schema
from soakwatch.plan.rule_plan import parameter_value
from soakwatch_rules.parameter import parameters


def _parsed(example: str) -> dict[str, Plain]:
    data = parse(example.strip("`"), "docs/plan-keys.md").data
    assert isinstance(data, dict)
    return data


PLAN, CAMPAIGN = plan_schema(), campaign_schema()
PARTS = [*((part, PLAN) for part in plan_parts()), *((part, CAMPAIGN) for part in campaign_parts())]


@pytest.mark.parametrize(("part", "schema"), PARTS, ids=lambda part: part.title if isinstance(part, Part) else "")
def test_every_example_is_accepted(part: Part, schema: Shape) -> None:
    """By the schema of its key, or by the rule whose parameter it is, and it is not the default."""
    for key in part.keys:
        assert key.says, f"{part.title}: {key.name} has no sentence"
        assert key.example, f"{part.title}: {key.name} has no example: add one to tests/key_examples.py"
        assert "|" not in key.example, f"{part.title}: {key.example} would end the cell of a table"
        ((name, value),) = _parsed(key.example).items()
        assert name == key.name
        if key.shape is not None:
            shape = {**key.shape, "$defs": schema["$defs"]}
            wrong = [error.message for error in Draft202012Validator(shape).iter_errors(value)]
            assert not wrong, f"{part.title}: {key.example}: {wrong}"
        elif part.title.startswith("Rule "):
            rule = rule_class(part.title.split("`")[1])
            (parameter,) = (known for known in parameters(rule) if known.name == key.name)
            assert parameter_value(parameter, value) in parameter.within


CAMPAIGNS = sorted((Path(__file__).parents[1] / "deploy" / "examples" / "campaigns").glob("*/campaign.yaml"))


@pytest.mark.parametrize("file", CAMPAIGNS, ids=lambda file: file.parent.name)
def test_the_schema_takes_what_the_command_takes(file: Path) -> None:
    """Every campaign of the examples, with its figures, tables, limits, claims and comparisons."""
    assert load_campaign(file).cells
    data = parse(file.read_text(encoding="utf-8"), file.name).data
    assert [error.message for error in Draft202012Validator(CAMPAIGN).iter_errors(data)] == []


def test_an_editor_sees_a_wrong_key_of_a_table() -> None:
    """Also in what is asked of the runs, whose keys are read when the axes are known."""
    for wrong in ({"tables": [{"row": "a", "columns": "b"}]}, {"limits": [{"figure": "x", "most": 1}]}):
        assert list(Draft202012Validator(CAMPAIGN).iter_errors({"plan": "p.yaml", "matrix": {"a": [1]}, **wrong}))
