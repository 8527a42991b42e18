"""The pages of all keys of a plan (docs/plan-keys.md) and of a campaign (docs/campaign-keys.md), made of their own JSON
Schemas and of the rules' parameters.

What the schema does not know is here: the order of the parts and an example of each text. ``tests/readme.py`` writes
the pages, and tests/test_plan_keys.py holds every example against the schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from tests.key_examples import DEFAULTS, EXAMPLES, KINDS, VALUES

from soakwatch.campaign.campaign_keys import campaign_schema
from soakwatch.core.registry import INSTALLED, plugins, rule_class, rules
from soakwatch.core.units import DURATION_PATTERN, plan_seconds, show_bytes
from soakwatch.core.yaml import Plain, parse
from soakwatch.plan.phase import PHASES
from soakwatch.plan.plan_schema import plan_schema
from soakwatch.sources.source_modules import poller_module
from soakwatch_rules.parameter import Parameter, parameters
from soakwatch_rules.rule import Rule

Shape = Mapping[str, Plain]
_DEFAULT = re.compile(r"[;:,] default: (.*)$")
_SOURCES = "Each source below has these, and keys of its own; a key is told again where its default is another."
_KINDS: Mapping[str, str] = {
    DURATION_PATTERN: "duration",
    r"^\d{1,6}\s*per\s*\S.*$": "a number per duration",
}
_PLURALS = {"text": "texts", "share": "shares", "whole number": "whole numbers", "number": "numbers"}


@dataclass(frozen=True, slots=True)
class Key:
    """A key as the page tells it; ``shape`` is its schema, where there is one."""

    name: str
    says: str
    value: str
    default: str
    example: str
    shape: Shape | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a plan: its heading, where it may stand, what it is, and its keys."""

    title: str
    level: int
    places: tuple[str, ...]
    says: str
    keys: tuple[Key, ...]


def anchor(title: str) -> str:
    """Where a link to a heading leads."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def plan_parts() -> tuple[Part, ...]:
    """Every part of a plan that this installation knows, in the order of the page."""
    return tuple(_Parts(plan_schema()).all())


def campaign_parts() -> tuple[Part, ...]:
    """Every part of a campaign's file."""
    return tuple(_Parts(campaign_schema(), "campaign: ").of_campaign())


class _Parts:
    """The parts of a schema; ``of`` begins the names of its examples, where they are not those of plans."""

    def __init__(self, schema: Shape, of: str = "") -> None:
        self._of = of
        self._schema = schema
        self._defs = shape_of(schema["$defs"])
        self._titles: dict[str, str] = {}
        self._places: dict[str, list[str]] = {}
        self._order: list[str] = []

    def all(self) -> Iterator[Part]:
        top = shape_of(self._schema["properties"])
        sources = {name: f"source.{name}" for name in _named(self._defs, "source.")}
        sinks = {name: f"sink.{name}" for name in _named(self._defs, "sink.")}
        common = self._common([shape_of(self._defs[name]) for name in sources.values()])
        for name, definition in {**sources, **sinks}.items():
            self._titles[definition] = f"{definition.partition('.')[0].capitalize()} `{name}`"
        for key, shape in top.items():
            if key not in {"defaults", "rules"}:
                self._walk(key, shape_of(shape))
        for name, definition in sources.items():
            self._places[definition] = [f"targets.NAME.sources[].{name}", f"defaults.{name}"]
            self._inside(f"sources[].{name}", shape_of(self._defs[definition]))
        for name, definition in sinks.items():
            self._places[definition] = [f"sinks[].{name}"]
        self._merge_twins()
        yield Part("The plan itself", 2, (), "", self._keys(top, "plan", {"targets"}))
        yield from (self._part(definition, 3) for definition in self._order if "." not in definition)
        places = ("targets.NAME.sources[].SOURCE", "defaults.SOURCE")
        yield Part("Keys of every source", 2, places, _SOURCES, self._keys(common, "", set()))
        for definition in sources.values():
            yield self._part(definition, 3, common)
            prefix = definition.removeprefix("source.") + "."
            yield from (self._part(name, 4) for name in self._order if name.startswith(prefix))
        for definition in sinks.values():
            yield self._part(definition, 3)
        yield from _rule_parts()

    def of_campaign(self) -> Iterator[Part]:
        """The parts of a campaign; its plan has a page of its own."""
        top = shape_of(self._schema["properties"])
        for key, shape in top.items():
            if key != "plan":
                self._walk(key, shape_of(shape))
        self._merge_twins()
        yield Part("The campaign itself", 2, (), "", self._keys(top, "campaign", {"plan", "matrix"}))
        yield from (self._part(definition, 3) for definition in self._order)

    def _part(self, definition: str, level: int, common: Shape | None = None) -> Part:
        shape = shape_of(self._defs[definition])
        properties = shape_of(shape.get("properties", {}))
        left = {key for key, value in properties.items() if common is not None and common.get(key) == value}
        says = _of_plugin(definition) or _sentence(shape)
        own = {key: value for key, value in properties.items() if key not in left}
        required = {str(key) for key in list_of(shape.get("required"))} | _needed(definition)
        title = self._titles[definition]
        place, *kind = title.split("`")[1::2]
        part = kind[0] if kind else place.replace(".NAME", "").rpartition(".")[2].replace("[]", "")
        keys = self._keys(own, part, required)
        return Part(title, level, tuple(dict.fromkeys(self._places[definition])), says, keys)

    def _common(self, sources: Sequence[Shape]) -> dict[str, Plain]:
        """The keys that are the same in most sources."""
        first: dict[str, Plain] = {}
        for key, value in ((k, v) for source in sources for k, v in shape_of(source["properties"]).items()):
            same = sum(shape_of(source["properties"]).get(key) == value for source in sources)
            if same > len(sources) / 2:
                first[key] = value
        return first

    def _walk(self, place: str, shape: Shape) -> None:
        """Notes the parts within a value that stands at ``place``."""
        reference = shape.get("$ref")
        if isinstance(reference, str):
            name = reference.removeprefix("#/$defs/")
            if name in {"source", "sink", "JsonValue"}:
                return
            if name not in self._titles:
                kind = KINDS.get(f"{self._of}{name}")
                self._titles[name] = f"`{place}` with `{kind}`" if kind else f"`{place}`"
            places = self._places.setdefault(name, [])
            if place in places or place.removesuffix("[]") in places:
                return
            places.append(place)
            if name not in self._order:
                self._order.append(name)
            self._inside(place, shape_of(self._defs[name]))
        for inner in list_of(shape.get("anyOf")):
            self._walk(place, shape_of(inner))
        if "items" in shape:
            self._walk(f"{place}[]", shape_of(shape["items"]))
        for inner in shape_of(shape.get("patternProperties", {})).values():
            self._walk(f"{place}.NAME", shape_of(inner))
        if isinstance(shape.get("additionalProperties"), dict):
            self._walk(f"{place}.NAME", shape_of(shape["additionalProperties"]))
        if place == "phases[]":
            for phase in PHASES:
                self._walk(f"{place}.{phase}", shape_of(shape_of(shape["properties"])[phase]))

    def _merge_twins(self) -> None:
        """Parts with the same keys are told once, at the first of their places."""
        first: dict[str, str] = {}
        for name in list(self._order):
            told = first.setdefault(json.dumps(self._defs[name], sort_keys=True), name)
            if told != name:
                self._order.remove(name)
                self._places[told] += self._places[name]
                self._titles[name] = self._titles[told]

    def _inside(self, place: str, shape: Shape) -> None:
        for key, inner in shape_of(shape.get("properties", {})).items():
            self._walk(f"{place}.{key}", shape_of(inner))

    def _keys(self, properties: Shape, part: str, required: set[str]) -> tuple[Key, ...]:
        return tuple(self._key(name, shape_of(shape), part, name in required) for name, shape in properties.items())

    def _key(self, name: str, shape: Shape, part: str, required: bool) -> Key:
        inner = next((shape_of(kind) for kind in _kinds(shape) if "description" in kind), {})
        says = str(shape.get("description") or inner.get("description") or "")
        default = "required" if required else DEFAULTS.get(f"{self._of}{part}.{name}") or self._default(shape, says)
        value = (
            VALUES.get(f"{self._of}{part}.{name}") or (not self._of and VALUES.get(name)) or self._words(shape, name)
        )
        return Key(name, _code(_DEFAULT.sub("", says)), value, default, self._example(name, shape, part), shape)

    def _default(self, shape: Shape, says: str) -> str:
        told = _DEFAULT.search(says)
        if told:
            return _code(told[1])
        value = next((kind["default"] for kind in (shape, *_kinds(shape)) if "default" in kind), None)
        if value is None or value in ([], "", {}) or isinstance(value, dict):
            return "–"
        if isinstance(value, list):
            return f"`{json.dumps(value, ensure_ascii=False)}`"
        if isinstance(value, bool):
            return f"`{'true' if value else 'false'}`"
        if isinstance(value, float) and _is_share(shape):
            return f"`{100 * value:g}%`"
        return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"

    def _example(self, name: str, shape: Shape, part: str) -> str:
        given = EXAMPLES.get(f"{self._of}{part}.{name}") or (not self._of and EXAMPLES.get(name))
        if given:
            return f"`{name}: {given}`"
        known = [one for kind in (shape, *_kinds(shape)) for one in list_of(kind.get("examples"))]
        value = known[0] if known else _made_up(shape)
        return "" if value is None else f"`{name}: {_written(value)}`"

    def _words(self, shape: Shape, name: str = "") -> str:
        """What a value is, for people."""
        if "anyOf" in shape:
            words = [self._words(shape_of(kind), name) for kind in list_of(shape["anyOf"])]
            told = list(dict.fromkeys(word for word in words if word and word != "nothing"))
            several = [word for word in told if word.startswith("list of ") and word.removeprefix("list of ") in told]
            told = [word for word in told if word not in several]
            choice = " or ".join(sorted(told, key=lambda word: word.startswith("list of")))
            return f"{choice}, or a list of several" if several else choice
        if "$ref" in shape:
            definition = str(shape["$ref"]).removeprefix("#/$defs/")
            if definition == "source":
                return "one of the [sources](#keys-of-every-source)"
            if definition == "sink":
                return "one of the [sinks](#sink-influxdb)"
            if definition == "rules":
                return "[rules](#keys-of-every-rule)"
            title = self._titles.get(definition)
            return f"keys of [{title}](#{anchor(title)})" if title else "any value"
        if "enum" in shape:
            return _choice([f"`{value}`" for value in list_of(shape["enum"])])
        if "const" in shape:
            return f"`{shape['const']}`"
        return self._typed(shape, name)

    def _typed(self, shape: Shape, name: str) -> str:
        kind = shape.get("type")
        if "7.4M" in str(shape.get("examples")):
            return "amount"
        if _is_share(shape):
            return "share or size" if "MiB" in str(shape.get("examples")) else "share"
        if isinstance(kind, list):
            return "size" if "MiB" in str(shape.get("examples")) else "text or number"
        if kind == "string":
            pattern = str(shape.get("pattern", ""))
            if pattern.startswith("^(env:"):
                return "[secret](#how-values-are-written)"
            return _KINDS.get(pattern, "text")
        if kind in {"integer", "number"}:
            return f"{'whole number' if kind == 'integer' else 'number'}{_bounds(shape)}"
        if kind == "array":
            most = f", at most {shape['maxItems']}" if "maxItems" in shape else ""
            items = self._words(shape_of(shape["items"])) or "values"
            return f"list of {_PLURALS.get(items, items)}{most}"
        if kind == "object" or "properties" in shape:
            within = next(
                iter(shape_of(shape.get("patternProperties", {})).values()), shape.get("additionalProperties")
            )
            if isinstance(within, dict):
                return f"by name: {self._words(within) or 'values'}"
            return "keys"
        return {"boolean": "`true` or `false`", "null": "nothing"}.get(str(kind), "any value")


def _of_plugin(definition: str) -> str:
    """What a source or sink is for, and whether it has to be installed; "" for other parts."""
    kind, _, name = definition.partition(".")
    if kind not in {"source", "sink"}:
        return ""
    folders = (INSTALLED.sinks,) if kind == "sink" else (INSTALLED.pollers, INSTALLED.loads)
    told = next(folder.summary(name) for folder in folders if name in folder.names())
    return f"{_code(told)}.{' It is a [plug-in](../README.md#plug-ins).' if name in plugins() else ''}"


def _needed(definition: str) -> set[str]:
    """The keys that a source must have. The schema asks for none, for the defaults of the plan may have them."""
    kind, _, name = definition.partition(".")
    if kind != "source":
        return set()
    fields = poller_module(name).config.model_fields
    return {field.alias or key for key, field in fields.items() if field.is_required()}


def _rule_parts() -> Iterator[Part]:
    required = Key(
        "required",
        "`false`: an inconclusive finding does not block a pass; `true`: each does, also where the run as planned could"
        " not decide",
        "`true` or `false`",
        "by the rule",
        "`required: false`",
    )
    says = "`NAME: false` switches a rule off, `NAME: true` or nothing leaves it as it is. `soakwatch rules NAME` has"
    yield Part("Keys of every rule", 2, ("rules.NAME",), f"{says} its exact definition.", (required,))
    for name in rules():
        rule = rule_class(name)
        yield Part(
            f"Rule `{name}`", 3, (f"rules.{name}",), f"{_code(INSTALLED.rules.summary(name))}.", _rule_keys(rule)
        )


def _rule_keys(rule: type[Rule]) -> tuple[Key, ...]:
    keys = []
    for parameter in parameters(rule):
        default = parameter.shown or _amount(parameter, parameter.default)
        example = EXAMPLES.get(f"{rule.name}.{parameter.name}") or _other(parameter)
        keys.append(
            Key(
                parameter.name,
                _code(parameter.about),
                _code(_value_of(parameter)),
                f"`{default}`",
                f"`{parameter.name}: {example}`",
            )
        )
    return tuple(keys)


def _value_of(parameter: Parameter) -> str:
    if parameter.words:
        return _choice([f"`{word}`" for word in parameter.words])
    unit = parameter.unit if parameter.unit not in {"", "1", "s", "By"} and "{" not in parameter.unit else ""
    words = parameter.allowed if parameter.unit != "By" else f"a size of {parameter.allowed}"
    return f"{words}{f' ({unit})' if unit else ''}"


def _amount(parameter: Parameter, value: float) -> str:
    if parameter.unit == "s":
        return plan_seconds(value)
    if parameter.unit == "By":
        return show_bytes(value).replace(" ", "")
    return f"{100 * value:.6g}%" if parameter.unit == "1" and value < 1 else f"{value:g}"


def _other(parameter: Parameter) -> str:
    """A value that is not the default."""
    if parameter.words:
        return next(word for word in reversed(parameter.words) if word != parameter.shown)
    worth = parameter.default
    nearer = round(worth - 0.05, 3) if parameter.unit == "1" and worth > 0.4 else worth * 2
    fitting = [value for value in (nearer, worth / 2, worth + 1, worth + 0.05) if value in parameter.within]
    return _amount(parameter, next(value for value in fitting if value != worth))


def _made_up(shape: Shape) -> Plain:
    """A value that the schema allows, other than the default where it can be."""
    for kind in (shape, *_kinds(shape)):
        default = next((one["default"] for one in (shape, *_kinds(shape)) if "default" in one), None)
        values = list_of(kind.get("enum"))
        if values:
            return next((value for value in values if value != default), values[0])
        if kind.get("type") == "boolean":
            return default is not True
        if kind.get("type") in ("integer", "number"):
            low, high = kind.get("minimum", 0), kind.get("maximum", 10**9)
            assert isinstance(low, int | float)
            assert isinstance(high, int | float)
            wanted = 2 * default if isinstance(default, int | float) and default else 10
            return max(low, min(wanted, high))
    return None


def _written(value: Plain) -> str:
    """A value as a plan writes it, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_written(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    if isinstance(value, str):
        plain = re.fullmatch(r"[A-Za-z0-9./-][\w.%/:-]*( [\w.%/-]+)*", value) and parse(f"a: {value}", "").data == {
            "a": value
        }
        return value if plain else f"'{value}'"
    return json.dumps(value)


def _is_share(shape: Shape) -> bool:
    kinds = (shape, *_kinds(shape))
    return any(kind.get("type") == ["string", "number"] for kind in kinds)


def _bounds(shape: Shape) -> str:
    low, high = shape.get("minimum", shape.get("exclusiveMinimum")), shape.get("maximum", shape.get("exclusiveMaximum"))
    if low is not None and high is not None:
        return f", {low} to {high}"
    if low is not None:
        return f", above {low}" if "exclusiveMinimum" in shape else f", {low} or more"
    return f", at most {high}" if high is not None else ""


def _choice(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _code(text: str) -> str:
    """A sentence of the schema in a cell of Markdown."""
    return text.replace("``", "`").replace("|", "\\|").replace("<", "&lt;")


def _sentence(shape: Shape) -> str:
    return _code(str(shape.get("description", "")).partition("\n\n")[0].replace("\n", " "))


def _kinds(shape: Shape) -> Iterator[Shape]:
    for kind in list_of(shape.get("anyOf")):
        yield shape_of(kind)
        yield from _kinds(shape_of(kind))


def _named(definitions: Shape, prefix: str) -> list[str]:
    return sorted(name.removeprefix(prefix) for name in definitions if name.startswith(prefix))


def shape_of(value: object) -> Shape:
    """A part of a schema that is an object."""
    assert isinstance(value, Mapping)
    return cast("Shape", value)


def list_of(value: object) -> list[Plain]:
    """A part of a schema that is a list; an empty one for any other."""
    return value if isinstance(value, list) else []


def keys_page(parts: Sequence[Part]) -> str:
    """A whole page below its first words."""
    return "\n\n".join([*(_section(part) for part in parts), _by_name(parts)])


def _section(part: Part) -> str:
    lines = [f"{'#' * part.level} {part.title}", ""]
    if part.places:
        where = _choice([f"`{place}`" for place in part.places])
        lines += [f"Stands at {where}. {part.says}".strip(), ""]
    if part.keys:
        lines += ["| key | what it says | value | default | example |", "|---|---|---|---|---|"]
        lines += [f"| `{key.name}` | {key.says} | {key.value} | {key.default} | {key.example} |" for key in part.keys]
    return "\n".join(lines).rstrip()


def _by_name(parts: Sequence[Part]) -> str:
    stands: dict[str, list[str]] = {}
    for part in parts:
        for key in part.keys:
            title = part.title if "`" in part.title else part.title.lower()
            stands.setdefault(key.name, []).append(f"[{title}](#{anchor(part.title)})")
    rows = [f"| `{name}` | {', '.join(places)} |" for name, places in sorted(stands.items())]
    return "\n".join(["## All keys by name", "", "| key | stands in |", "|---|---|", *rows])
