"""``soakwatch pollers``, ``loads`` and ``sinks``: list the modules of a plugin folder, or show one."""

from __future__ import annotations

import typing

import click
from pydantic import BaseModel

from soakwatch.core.errors import PlanError
from soakwatch.core.registry import INSTALLED, PluginFolder, Registry, not_installed
from soakwatch.core.tables import show_table
from soakwatch.core.units import DURATION_PATTERN


def source_command(folder: PluginFolder, example: str) -> click.Command:
    """The command ``soakwatch pollers``, ``loads`` or ``sinks``; ``example`` is a name for its help."""
    words = f"{folder.word}s"

    @click.command(
        help=f"List the {words}; with NAME show the keys that a plan may give it.",
        epilog=f"\b\nExamples:\n  soakwatch {words}\n  soakwatch {words} {example}",
    )
    @click.argument("name", required=False)
    def command(name: str | None) -> None:
        if name is None:
            show_sources(folder)
        else:
            show_source(folder, name)

    return command


def show_sources(folder: PluginFolder) -> None:
    """Print the names in a folder with summaries, and which of our plug-ins are not installed."""
    names = folder.names()
    if not names:
        click.echo(f"no {folder.word} is installed")
        return
    show_table((folder.word, "what it is for"), [(name, folder.summary(name)) for name in names])
    for line in folder.missing():
        click.echo(f"not installed: {line}", err=True)


def show_source(folder: PluginFolder, name: str, registry: Registry = INSTALLED) -> None:
    """Print one source or sink: its docstring and its keys. Raises PlanError for an unknown name."""
    from soakwatch.core.suggest import hint

    if name not in folder.names():
        raise PlanError(not_installed(name) or f"unknown {folder.word} {name!r}{hint(name, folder.names())}")
    config = _config(folder, name, registry)
    click.echo(folder.docstring(name).strip() + "\n")
    schema = _dict(config.model_json_schema().get("properties"))
    rows = []
    for own, field in config.model_fields.items():
        key = field.alias or own
        default: object = field.get_default(call_default_factory=True, validated_data={})
        shown = "(required)" if field.is_required() else _default(default, _dict(schema.get(key)))
        rows.append((key, shown, _form(_dict(schema.get(key))), field.description or "-"))
    show_table(("key", "default", "form", "meaning"), rows)


def _config(folder: PluginFolder, name: str, registry: Registry) -> type[BaseModel]:
    if folder == registry.sinks:
        from soakwatch.plan.sink_plan import sink_config

        return sink_config(name, registry)
    from soakwatch.sources.source_modules import poller_module

    return poller_module(name, registry).config


def _default(value: object, schema: dict[str, object]) -> str:
    from soakwatch.core.units import plan_seconds

    if value is None:
        return "-"
    if _form(schema) == "duration" and isinstance(value, int | float):
        return plan_seconds(value)
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
    if pattern == DURATION_PATTERN:
        return "duration"
    if "env:" in pattern:
        return "env:NAME, file:PATH"
    words = {"string": "text", "integer": "whole number", "boolean": "true, false", "array": "list"}
    types = schema.get("type", "keys and values")
    kinds = [str(kind) for kind in (_list(types) or [types])]
    return " or ".join(words.get(kind, "keys and values" if kind == "object" else kind) for kind in kinds)


def _dict(value: object) -> dict[str, object]:
    return typing.cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return typing.cast("list[object]", value) if isinstance(value, list) else []
