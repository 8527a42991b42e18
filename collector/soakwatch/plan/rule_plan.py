"""What a plan says of rules: which are off, which are not required, and their parameters by unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, cast

from pydantic import JsonValue

from soakwatch.core.errors import PlanError
from soakwatch.core.registry import INSTALLED, Registry, rule_class, rules
from soakwatch.core.suggest import hint
from soakwatch.core.units import seconds, share, size
from soakwatch.core.validation import Wrong, every, refused, shown
from soakwatch.core.yaml import Document
from soakwatch.plan.parts import PlanReading, made_of, part_of
from soakwatch_rules.parameter import Parameter, parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    from soakwatch_rules.rule import Rule

REQUIRED = "required"
"""The key of a rule in a plan that is not a parameter: false means that inconclusive does not prevent a pass, true that
it always does, also where the cadence or the length of the run cannot show what the rule looks for."""


@dataclass(frozen=True, slots=True)
class RulePlan:
    """What a plan says of one rule; parameters are in the rule's own units, only those that were given."""

    name: str
    on: bool = True
    required: bool | None = None  # None: the plan does not say
    parameters: Mapping[str, float] = field(default_factory=dict)


def rules_in(document: Document, registry: Registry) -> tuple[RulePlan, ...]:
    """The rules of a plan, of which nothing else is read. Raises PlanError with everything that is wrong with them."""
    return part_of(document, registry, "rules", _rules)


def _rules(given: dict[str, JsonValue], context: PlanReading) -> tuple[RulePlan, ...]:
    return tuple(every(given.items(), lambda name, value: _rule(name, value, context.registry)))


def _rule(name: str, value: JsonValue, registry: Registry) -> RulePlan:
    try:
        rule = rule_class(name, registry)
    except PlanError as error:
        raise refused(Wrong((), str(error), key=True)) from None
    if value is None or isinstance(value, bool):
        return RulePlan(name, on=value is not False)
    if not isinstance(value, dict):
        raise ValueError(f"{name}: expected its parameters, such as {{tolerance: 5%}}, or false; found {shown(value)}")
    known = {parameter.name: parameter for parameter in parameters(rule)}

    def parameter(key: str, value: JsonValue) -> float | None:
        if key == REQUIRED:
            if not isinstance(value, bool):
                raise ValueError(f"{key}: expected true or false, found {shown(value)}")
            return None
        if key not in known:
            raise refused(Wrong((), f"unknown parameter {key!r} of {name}{hint(key, [*known, REQUIRED])}", key=True))
        try:
            return parameter_value(known[key], value)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None

    read = zip(value, every(value.items(), parameter), strict=True)
    values = {key: number for key, number in read if number is not None}
    try:
        _build(rule, values)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    required = value.get(REQUIRED)
    return RulePlan(name, required=required if isinstance(required, bool) else None, parameters=values)


Rules = Annotated[tuple[RulePlan, ...], made_of(_rules)]


def rule_plan(name: str, values: Mapping[str, object]) -> RulePlan:
    """A rule whose parameters are given on a command line, written as a plan writes them. Raises PlanError.

    >>> rule_plan("memory_growth", {"method": "stages"}).parameters
    {'method': 1.0}
    """
    known = {parameter.name: parameter for parameter in parameters(rule_class(name))}
    try:
        return RulePlan(name, parameters={key: parameter_value(known[key], value) for key, value in values.items()})
    except (KeyError, ValueError) as error:
        raise PlanError(f"{name}: {error}") from None


def with_parameters(plans: Sequence[RulePlan], given: Sequence[RulePlan]) -> tuple[RulePlan, ...]:
    """The plans of rules, overridden by what is given beside them; a rule that is given is switched on."""
    by_name = {plan.name: plan for plan in plans}
    for more in given:
        plan = by_name.get(more.name, more)
        by_name[more.name] = replace(plan, on=True, parameters={**plan.parameters, **more.parameters})
    return tuple(by_name.values())


def parameter_value(parameter: Parameter, value: object) -> float:
    """A parameter's value by its unit: ``s`` takes a duration, ``1`` a share, ``By`` a size, all else a number.

    Raises ValueError, in a sentence that shows how to write it.

    >>> parameter_value(Parameter("loss", 0.05, "1", "allowed loss"), "5%")
    0.05
    """
    if parameter.words:
        if value not in parameter.words:
            raise ValueError(f"expected {' or '.join(parameter.words)}, found {shown(value)}")
        return float(parameter.words.index(str(value)))
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"expected {_EXAMPLES.get(parameter.unit, 'a number')}, found {shown(value)}")
    number = _READERS.get(parameter.unit, _number)(value)
    bare = parameter.unit == "1" and not str(value).strip().endswith("%")
    if bare and number > 1 >= parameter.default:
        raise ValueError(f"{shown(value)} is {100 * number:g} %: write {number:g}%, or a share of 1 such as 0.8")
    if number < 0 <= parameter.default:
        raise ValueError(f"{shown(value)} is negative: write {_EXAMPLES.get(parameter.unit, 'a number')}")
    return number


def _number(value: object) -> float:
    if isinstance(value, int | float):
        return float(value)
    raise ValueError(f"expected a number, found {shown(value)}")


_READERS: Mapping[str, Callable[[object], float]] = {"s": seconds, "1": share, "By": size}
_EXAMPLES = {"s": "a duration such as 10s", "1": "a share such as 5%", "By": "a size such as 10MiB"}


def _build(rule: type[Rule], values: Mapping[str, float]) -> Rule:
    # A rule's constructor is its parameters; its Protocol cannot say so.
    return cast("Callable[..., Rule]", rule)(**values)


def planned_rules(plans: tuple[RulePlan, ...], registry: Registry = INSTALLED) -> tuple[Rule, ...]:
    """Every installed rule that the plan does not switch off, with the plan's parameters, sorted by name."""
    by_name = {plan.name: plan for plan in plans}
    built: list[Rule] = []
    for name in rules(registry):
        plan = by_name.get(name, RulePlan(name))
        if plan.on:
            built.append(_build(rule_class(name, registry), plan.parameters))
    return tuple(built)
