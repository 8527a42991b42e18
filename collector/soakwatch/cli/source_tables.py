"""What ``soakwatch pollers``, ``loads`` and ``sinks`` print: the list, or one of them with its keys."""

from __future__ import annotations

import typing

import click
from pydantic import BaseModel

from soakwatch.core.errors import PlanError
from soakwatch.core.registry import INSTALLED, PluginFolder, Registry
from soakwatch.core.suggest import hint
from soakwatch.core.tables import show_table
from soakwatch.core.units import show_seconds
from soakwatch.sources.registry import poller_module


def show_sources(shelf: PluginFolder) -> None:
    """The list of a shelf."""
    names = shelf.names()
    if not names:
        click.echo(f"no {shelf.word} is installed")
        return
    show_table((shelf.word, "what it is for"), [(name, shelf.summary(name)) for name in names])


def show_source(shelf: PluginFolder, name: str, registry: Registry = INSTALLED) -> None:
    """One source: its docstring and its keys. Raises PlanError for a name that is not on the shelf."""
    if name not in shelf.names():
        raise PlanError(f"unknown {shelf.word} {name!r}{hint(name, shelf.names())}")
    show_keys(shelf.docstring(name), poller_module(name, registry).config)


def show_keys(docstring: str, config: type[BaseModel]) -> None:
    """What a source or a sink is, and its keys with default, form and meaning."""
    click.echo(docstring.strip() + "\n")
    schema = _dict(config.model_json_schema().get("properties"))
    rows = []
    for own, field in config.model_fields.items():
        key = field.alias or own
        default: object = field.get_default(call_default_factory=True, validated_data={})
        shown = "(needed)" if field.is_required() else _default(default, _dict(schema.get(key)))
        rows.append((key, shown, _form(_dict(schema.get(key))), field.description or "-"))
    show_table(("key", "default", "form", "meaning"), rows)


def _default(value: object, schema: dict[str, object]) -> str:
    if value is None:
        return "-"
    if _form(schema) == "duration" and isinstance(value, int | float):
        return show_seconds(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list | set | frozenset):
        return f"[{', '.join(str(item) for item in value)}]"
    return str(value)


def _form(schema: dict[str, object]) -> str:
    choices = [_dict(choice) for choice in _list(schema.get("anyOf"))] or [schema]
    return " or ".join(dict.fromkeys(form for form in map(_one_form, choices) if form != "null")) or "any"


def _one_form(schema: dict[str, object]) -> str:
    if "enum" in schema:
        return ", ".join(str(word) for word in _list(schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    pattern = str(schema.get("pattern", ""))
    if "(ms|s|m|min|h|d)" in pattern:
        return "duration"
    if "env:" in pattern:
        return "env:NAME, file:PATH"
    words = {"string": "text", "integer": "whole number", "boolean": "true, false", "array": "list"}
    told = schema.get("type", "keys and values")
    kinds = [str(kind) for kind in (_list(told) or [told])]
    return " or ".join(words.get(kind, "keys and values" if kind == "object" else kind) for kind in kinds)


def _dict(value: object) -> dict[str, object]:
    return typing.cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return typing.cast("list[object]", value) if isinstance(value, list) else []
