"""The JSON Schema of a campaign's file."""

from __future__ import annotations

from soakwatch.campaign.campaign_keys import CampaignKeys
from soakwatch.core.yaml import Plain
from soakwatch.plan.plan_schema import DIALECT, allow_nothing, cut_to_its_head, plan_schema, tidy


def campaign_schema() -> dict[str, Plain]:
    """The schema (draft 2020-12) that editors can hold a campaign against; an inline plan has that of plans.

    It knows less than ``soakwatch campaign plan``: paths into the plan, and values that patch nothing.
    """
    needed = ("plan", "matrix")
    schema: dict[str, Plain] = CampaignKeys.model_json_schema()
    definitions = _dict(schema.setdefault("$defs", {}))
    plan = plan_schema()
    for name, definition in _dict(plan.pop("$defs", {})).items():
        definitions.setdefault(name, definition)
    plan.pop("$schema")
    definitions["plan"] = plan
    keys = _dict(schema["properties"])
    keys["plan"] = {
        "anyOf": [{"type": "string", "minLength": 1}, {"$ref": "#/$defs/plan"}],
        "description": "file of the base plan, relative to this file, or the plan itself",
    }
    for definition in definitions.values():
        cut_to_its_head(_dict(definition))
    allow_nothing(keys, needed)
    schema["required"] = list(needed)
    tidy(schema)
    return {"$schema": DIALECT, **schema, "title": "Soakwatch campaign", "description": "A campaign of Soakwatch."}


def _dict(value: Plain) -> dict[str, Plain]:
    assert isinstance(value, dict)
    return value
