"""The JSON Schema of a plan, made of the plan's shape, every installed source and every installed rule."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import BaseModel

from soakwatch.core.registry import INSTALLED, Registry, loads, pollers, rule_class, rules
from soakwatch.core.units import DURATION_PATTERN, plan_seconds
from soakwatch.core.yaml import Plain
from soakwatch.plan.capacity_plan import NAME as CAPACITY
from soakwatch.plan.capacity_plan import CapacityPlan
from soakwatch.plan.parts import DURATION_SCHEMA
from soakwatch.plan.phase import PHASES, PhaseKeys
from soakwatch.plan.plan_model import PlanKeys
from soakwatch.plan.rule_plan import REQUIRED
from soakwatch.plan.sink_plan import sink_config
from soakwatch.sources.source_modules import poller_module
from soakwatch_rules.parameter import Parameter, parameters

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT_OF_UNIT: dict[str, dict[str, Plain]] = {
    "s": {"type": "string", "pattern": DURATION_PATTERN},
    "1": {"type": ["string", "number"], "pattern": r"^\d+(\.\d+)?\s*%?$", "minimum": 0},
    "By": {"type": ["string", "number"], "pattern": r"^\d+(\.\d+)?\s*([kKMGT]?B|[KMGT]iB)?$", "minimum": 0},
}


def plan_schema(registry: Registry = INSTALLED) -> dict[str, Plain]:
    """The schema (draft 2020-12) that editors and generators of plans can hold a plan against.

    It knows less than ``soakwatch check``: sums of phases, names that must be there, and bounds of durations.
    """
    schema: dict[str, Plain] = PlanKeys.model_json_schema()
    definitions = _dict(schema.setdefault("$defs", {}))
    sources = {name: poller_module(name, registry).config for name in {*pollers(registry), *loads(registry)}}
    definitions["source"] = _one_of(definitions, "source", sources)
    sinks = {name: sink_config(name, registry) for name in registry.sinks.names()}
    definitions["sink"] = _one_of(definitions, "sink", sinks)
    definitions["rules"] = {
        "type": "object",
        "properties": {name: _rule(name, registry) for name in rules(registry)},
        "additionalProperties": False,
    }
    of_target = _dict(_dict(definitions["TargetKeys"])["properties"])
    _dict(of_target["sources"])["items"] = {"$ref": "#/$defs/source"}
    keys = _dict(schema["properties"])
    _write_short_forms(keys, definitions, sources)
    _dict(keys["sinks"])["items"] = {"$ref": "#/$defs/sink"}
    keys["rules"] = {"$ref": "#/$defs/rules", "description": PlanKeys.model_fields["rules"].description}
    for definition in definitions.values():
        cut_to_its_head(_dict(definition))
    phases = _dict(_list(_dict(keys["phases"])["anyOf"])[0])
    phases["items"] = _PHASE
    allow_nothing(keys, {"targets"})
    # A plan's name comes from its file where it gives none; one of duration and phases must be there.
    schema["required"] = ["targets"]
    schema["patternProperties"] = {"^x-": {}}
    schema["anyOf"] = [{"required": ["duration"]}, {"required": ["phases"]}]
    tidy(schema)
    return {"$schema": DIALECT, **schema, "title": "Soakwatch plan", "description": "A plan of a Soakwatch run."}


def _of_phase(name: str) -> dict[str, Plain]:
    keys = CapacityPlan if name == CAPACITY else PhaseKeys
    return {"anyOf": [DURATION_SCHEMA, {"$ref": f"#/$defs/{keys.__name__}"}]}


_PHASE: dict[str, Plain] = {
    "type": "object",
    "properties": {name: _of_phase(name) for name in PHASES},
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 1,
}
_NULL: dict[str, Plain] = {"type": "null"}


def _write_short_forms(
    keys: dict[str, Plain], definitions: dict[str, Plain], sources: Mapping[str, type[BaseModel]]
) -> None:
    """What ``plan.fleet`` writes out: ``defaults``, ranges in names, ``host``. Sources may come from the defaults."""
    target = _dict(definitions["TargetKeys"])
    target.pop("required", None)
    properties = _dict(target["properties"])
    of_sources: dict[str, Plain] = {
        name: {"type": "object", "description": f"keys of every {name} source that it does not have itself"}
        for name in sorted(sources)
    }
    defaults: Plain = {
        "type": "object",
        "properties": {**properties, **of_sources},
        "additionalProperties": False,
        "description": "keys of every target that it does not have itself, and of sources by their name",
    }
    keys["defaults"] = {"anyOf": [defaults, _NULL]}
    properties["host"] = {"type": "string", "minLength": 1, "description": "host of its sources that name none"}
    targets = _dict(keys["targets"])
    targets["patternProperties"] = {_NAMES: {"anyOf": [{"$ref": "#/$defs/TargetKeys"}, _NULL]}}


_NAMES = r"^[A-Za-z0-9][A-Za-z0-9._-]*(\[[0-9,-]+\][A-Za-z0-9._-]*)?$"


def _one_of(definitions: dict[str, Plain], kind: str, configs: Mapping[str, type[BaseModel]]) -> Plain:
    """One name with its keys, or a bare name where none is needed; the shapes of the keys go into ``definitions``."""
    names: list[Plain] = []
    shapes: dict[str, Plain] = {}
    for name, config in sorted(configs.items()):
        shape: dict[str, Plain] = config.model_json_schema(ref_template=f"#/$defs/{name}.{{model}}")
        for inner, definition in _dict(shape.pop("$defs", {})).items():
            definitions[f"{name}.{inner}"] = definition
        if kind == "source":
            shape.pop("required", None)  # defaults of the plan, or the target's host, may give it
        definitions[f"{kind}.{name}"] = shape
        shapes[name] = {"anyOf": [{"$ref": f"#/$defs/{kind}.{name}"}, *([] if shape.get("required") else [_NULL])]}
        if not shape.get("required"):
            names.append(name)
    mapping: dict[str, Plain] = {
        "type": "object",
        "properties": shapes,
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
    return {"anyOf": [{"enum": names}, mapping]} if names else mapping


def _rule(name: str, registry: Registry) -> Plain:
    known: dict[str, Plain] = {
        parameter.name: {
            **_type(parameter),
            "description": f"{parameter.about} (default {_default(parameter)})",
        }
        for parameter in parameters(rule_class(name, registry))
    }
    known[REQUIRED] = {
        "type": "boolean",
        "description": "false: not required for a pass; true: required, even if polls are rare or the run is short",
    }
    return {
        "description": registry.rules.summary(name),
        "anyOf": [
            {"type": ["boolean", "null"]},
            {"type": "object", "properties": known, "additionalProperties": False},
        ],
    }


def _default(parameter: Parameter) -> str:
    return parameter.shown or f"{parameter.default:g} {parameter.unit}"


def _type(parameter: Parameter) -> dict[str, Plain]:
    return {"enum": list(parameter.words)} if parameter.words else _TEXT_OF_UNIT.get(parameter.unit, {"type": "number"})


def _dict(value: Plain) -> dict[str, Plain]:
    assert isinstance(value, dict)
    return value


def allow_nothing(keys: dict[str, Plain], needed: Collection[str]) -> None:
    """A key with nothing behind it is a key that is not there, but for those that are needed."""
    for key in keys.keys() - set(needed):
        if _NULL not in _list(_dict(keys[key]).get("anyOf")):
            keys[key] = {"anyOf": [keys[key], _NULL]}


def tidy(value: Plain) -> None:
    """Writes defaults of durations as a plan does; drops numeric bounds from what is text, and generated titles."""
    if isinstance(value, list):
        for item in value:
            tidy(item)
    if not isinstance(value, dict):
        return
    if isinstance(value.get("title"), str) and ("type" in value or "anyOf" in value or "$ref" in value):
        del value["title"]
    kinds = [value, *(item for item in _list(value.get("anyOf")) if isinstance(item, dict))]
    is_duration = any(kind.get("type") == "string" and kind.get("pattern") == DURATION_PATTERN for kind in kinds)
    default = value.get("default")
    if is_duration and isinstance(default, int | float) and not isinstance(default, bool):
        value["default"] = plan_seconds(default)
    if value.get("type") == "string":
        for bound in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            value.pop(bound, None)
    for item in value.values():
        tidy(item)


def cut_to_its_head(definition: dict[str, Plain]) -> None:
    """Of a class's docstring, the part that is for everybody."""
    text = definition.get("description")
    if isinstance(text, str):
        definition["description"] = text.partition("\n\n")[0]


def _list(value: Plain) -> list[Plain]:
    return value if isinstance(value, list) else []
