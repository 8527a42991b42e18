"""Validation errors as plain sentences: position, key, what was found, and what is expected."""

from __future__ import annotations

import json
import re
import types
import typing
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple, TypeVar

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler, JsonValue, ValidationError
from pydantic_core import CoreSchema, ErrorDetails, InitErrorDetails, PydanticCustomError, core_schema

from soakwatch.core.secrets import SecretRef
from soakwatch.core.suggest import hint, nearest
from soakwatch.core.units import plan_seconds
from soakwatch.core.yaml import Document, Path, Problem, placeless
from soakwatch_rules.wording.quantities import cut_to

M = TypeVar("M", bound=BaseModel)
K = TypeVar("K", bound=int | str | None)
V = TypeVar("V")
R = TypeVar("R")
T = TypeVar("T")
_TOLD = "told"
"""Type of an error that already has its sentence."""
_LOGIN = re.compile(r":(?!//)[^\s:@]*@")  # the password in an address

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "keys and values",
    "model_type": "keys and values",
    "model_attributes_type": "keys and values",
    "none_required": "nothing",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}


class Wrong(NamedTuple):
    """A mistake and its place: a path within what a validator reads, or with ``top`` within the whole file. ``key``
    says that the key is wrong, not its value."""

    place: Path
    text: str
    key: bool = False
    top: bool = False


class _OneAsList:
    """Reads what is no list as a list of it, and says so in the JSON Schema."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            lambda value: value if isinstance(value, list) else [value], handler(source)
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, object]:
        several = handler(schema)
        return {"anyOf": [several["items"], {"minItems": 1, **several}]}


Several = Annotated[list[T], _OneAsList()]
"""A list, or what would be its only item."""


@dataclass(frozen=True, slots=True)
class Short:
    """Reads what is no mapping as one key of its model, and says so in the JSON Schema."""

    key: str

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            lambda value: value if isinstance(value, Mapping | BaseModel) else {self.key: value}, handler(source)
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, object]:
        whole = handler(schema)
        return {"anyOf": [handler.resolve_ref_schema(whole)["properties"][self.key], whole]}


def problems(document: Document, path: Path, model: type[BaseModel], error: ValidationError) -> list[Problem]:
    """Every error of ``model``, which read what is at ``path``, with its position in the document.

    No sentence holds a secret: fields for secrets refuse with their own sentence.
    """
    return [
        document.problem(wrong.place if wrong.top else (*path, *wrong.place), wrong.text, key=wrong.key)
        for wrong in _all_wrong(document.values, path, model, error)
    ]


def refused(*wrong: Wrong) -> ValidationError:
    """The error a validator raises for its mistakes; pydantic prepends the path of what it reads."""
    details: list[InitErrorDetails] = [
        {
            "type": PydanticCustomError(_TOLD, "{text}", {"text": each.text, "wrong": each}),
            "loc": each.place,
            "input": 0,
        }
        for each in wrong
    ]
    return ValidationError.from_exception_data(_TOLD, details)


def every(items: Iterable[tuple[K, V]], read: Callable[[K, V], R], *also: Wrong) -> list[R]:
    """Applies ``read`` to each item of a mapping or list, with its key or position (None: it has none).

    Raises ValidationError with the mistakes of all items, each at its place, and those in ``also``.
    """
    made: list[R] = []
    wrong = list(also)
    for key, value in items:
        place: Path = () if key is None else (key,)
        try:
            made.append(read(key, value))
        except ValidationError as error:
            wrong += [each if each.top else each._replace(place=(*place, *each.place)) for each in wrongs(error)]
        except ValueError as error:
            wrong.append(Wrong(place, str(error)))
    if wrong:
        raise refused(*wrong)
    return made


def read_part(model: type[M], value: JsonValue, name: str, context: object = None) -> M:
    """Reads a part of a file by its own model, within a validator of the outer model; ``name`` names the part in
    sentences.

    Raises ValidationError with sentences made here, because the outer model does not know the part's keys.
    """
    try:
        return model.model_validate_json(json.dumps(value), strict=True, context=context, by_name=False)
    except ValidationError as error:
        raise refused(*_all_wrong(placeless(value, "").values, (), model, error, name)) from None


def wrongs(error: ValidationError) -> list[Wrong]:
    """The mistakes in an error of ``refused``, with the places that pydantic extended."""
    return [_told(detail) for detail in error.errors(include_url=False)]


def _told(detail: ErrorDetails) -> Wrong:
    wrong: Wrong = detail["ctx"]["wrong"]
    return wrong if wrong.top else wrong._replace(place=detail["loc"])


def _all_wrong(
    places: Container[Path], base: Path, model: type[BaseModel], error: ValidationError, name: str = "plan"
) -> list[Wrong]:
    # A default computed from other keys is skipped if these are wrong, which is reported already.
    details = (each for each in error.errors(include_url=False) if each["type"] != "default_factory_not_called")
    return [_wrong(places, base, model, detail, name) for detail in details]


def _wrong(places: Container[Path], base: Path, model: type[BaseModel], detail: ErrorDetails, whole: str) -> Wrong:
    kind = detail["type"]
    if kind == _TOLD:  # its place needs no cleaning
        return _told(detail)
    loc = _real(places, base, detail["loc"], whole=kind == "missing")
    name = next((str(part) for part in reversed((*base, *loc)) if isinstance(part, str)), whole)
    if kind == "extra_forbidden":
        word = str(detail["loc"][-1])
        return Wrong(loc, f"unknown key {word!r}{hint(word, keys_at(model, detail['loc'][:-1]))}", key=True)
    if kind == "missing":
        return Wrong(loc[:-1], f"the key {str(detail['loc'][-1])!r} is missing", key=True)
    return Wrong(loc, f"{name}: {_sentence(kind, detail, model)}")


def _real(places: Container[Path], base: Path, loc: tuple[int | str, ...], *, whole: bool) -> Path:
    """``loc`` without the parts that pydantic adds for unions, keys and validators; ``whole`` keeps its last part, a
    missing key."""
    real: Path = ()
    for index, part in enumerate(loc):
        if (*base, *real, part) in places or (whole and index == len(loc) - 1):
            real = (*real, part)
    return real


def _sentence(kind: str, detail: ErrorDetails, model: type[BaseModel]) -> str:
    context: Mapping[str, object] = detail.get("ctx", {})
    given = shown(detail["input"])
    if kind in {"value_error", "assertion_error"}:
        return str(context.get("error", detail["msg"]))
    if kind in _EXPECTED:
        if _of_secrets(model, detail["loc"]):
            return f"expected {_EXPECTED[kind]} of secrets, each as env:NAME or file:PATH"
        quotes = "; put it in quotes" if kind == "string_type" and isinstance(detail["input"], int | float) else ""
        return f"expected {_EXPECTED[kind]}, found {given}{quotes}"
    if kind in _BOUNDS:
        key, word = _BOUNDS[kind]
        return f"{given} is out of bounds: {word} {_bound(context.get(key), detail['input'])}"
    if kind in {"literal_error", "enum"}:
        expected = str(context.get("expected", ""))
        words = [word.strip(" '") for word in expected.replace(" or ", ",").split(",")]
        near = nearest(str(detail["input"]), words)
        return f"expected {expected}, found {given}" + (f"; did you mean {near!r}?" if near else "")
    if kind in {"too_short", "string_too_short"}:
        return "is empty: at least one is needed" if context.get("min_length") == 1 else _short(context)
    if kind in {"too_long", "string_too_long"}:
        return f"is too long: at most {context.get('max_length')}"
    if kind == "string_pattern_mismatch":
        return f"{given} does not have the form {context.get('pattern')}"
    message = detail["msg"]
    return f"{given} cannot be used: {message[:1].lower()}{message[1:]}"


def _short(context: Mapping[str, object]) -> str:
    return f"is too short: at least {context.get('min_length')}"


def _bound(bound: object, given: object) -> str:
    if isinstance(given, str) and isinstance(bound, int | float):
        return plan_seconds(bound) if bound else "0s"
    return str(bound)


def keys_at(model: type[BaseModel], loc: Path) -> tuple[str, ...]:
    """The keys that a model knows at a place; () if any key is allowed."""
    here: object = model
    for part in loc:
        here = _within(here, part)
    nested = _model(here)
    if nested is None:
        return ()
    return tuple(field.alias or name for name, field in nested.model_fields.items())


def _of_secrets(model: object, loc: Path) -> bool:
    """True if ``loc`` holds secrets: a list or mapping of them."""
    here = model
    for part in loc:
        here = _within(here, part)
    return _holds(here)


def _holds(kind: object) -> bool:
    return kind == SecretRef or any(_holds(inner) for inner in typing.get_args(kind))


def _within(kind: object, part: str | int) -> object:
    """The type at ``part`` of type ``kind``; None if unknown."""
    model = _model(kind)
    if model is not None:
        fields = model.model_fields.items()
        return next((field.annotation for name, field in fields if (field.alias or name) == part), None)
    for candidate in _choices(kind):
        arguments = typing.get_args(candidate)
        if typing.get_origin(candidate) in {dict, Mapping} and len(arguments) == 2:
            return arguments[1]
        if typing.get_origin(candidate) in {list, tuple} and arguments:
            return arguments[0]
    return None


def _model(kind: object) -> type[BaseModel] | None:
    for candidate in _choices(kind):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _choices(kind: object) -> tuple[object, ...]:
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        return _choices(typing.get_args(kind)[0])
    if origin in {typing.Union, types.UnionType}:
        return tuple(choice for part in typing.get_args(kind) for choice in _choices(part))
    return (kind,)


def shown(value: object) -> str:
    """A value of a plan as errors show it, without passwords.

    >>> shown("x"), shown(True), shown(None), shown([1]), shown({}), shown(3)
    ("'x'", 'true', 'nothing', 'a list', 'keys and values', 'the number 3')
    >>> shown("https://me:what@h/"), shown("me:what@h")
    ("'https://me:***@h/'", "'me:***@h'")
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return repr(cut_to(_LOGIN.sub(":***@", value), 60))
    return "a list" if isinstance(value, list) else "keys and values"
