"""What an editor holds plans against: the schema of plans, made once. test_plan_schema.py checks that it is one."""

from __future__ import annotations

from functools import cache

import jsonschema

from soakwatch.plan.plan_schema import plan_schema


@cache
def plan_validator() -> jsonschema.Draft202012Validator:
    """Takes the data of plans; ``validate`` raises jsonschema.ValidationError."""
    return jsonschema.Draft202012Validator(plan_schema())
