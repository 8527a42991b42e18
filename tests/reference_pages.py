"""The reference pages that are made of what the program publishes: verdict.json, the HTTP API, exit codes."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from importlib import resources

import click
from tests.plan_keys import Shape, anchor, list_of, shape_of

_SIMPLE = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "`true` or `false`",
    "null": "`null`",
    "object": "object",
    "array": "list",
}
_KNOWN = {
    "time": "time",
    "count": "whole number",
    "share": "number or `null`",
    "known": "number or `null`",
    "verdict": "`fail`, `inconclusive` or `pass`",
    "standing": "`fail`, `inconclusive`, `pass` or `not applicable`",
    "outcome": "`fail`, `inconclusive`, `warn`, `pass` or `not applicable`",
}
_EXIT = re.compile(r"(?:The exit code is|Exit codes:)[^\n]*(?:\n(?![ ]*\n)[^\n]*)*", re.IGNORECASE)


def verdict_page() -> str:
    """Every key of verdict.json: those of the file itself, and of each object in it."""
    file = resources.files("soakwatch") / "report" / "verdict.schema.json"
    schema = shape_of(json.loads(file.read_text(encoding="utf-8")))
    parts = [f"Version of the schema: `{shape_of(shape_of(schema['properties'])['schema'])['const']}`.", ""]
    parts += ["### The file", "", *_keys(schema), ""]
    for name, definition in shape_of(schema["$defs"]).items():
        if "properties" in shape_of(definition):
            says = str(shape_of(definition).get("description", ""))
            parts += [f"### `{name}`", "", *([f"{says[:1].upper()}{says[1:]}.", ""] if says else [])]
            parts += [*_keys(shape_of(definition)), ""]
    return "\n".join(parts).strip()


def api_page() -> str:
    """Every path of the HTTP API: what it does, its parameters, its body, its answer."""
    from soakwatch.web.routes import endpoints
    from soakwatch.web.routes.openapi import document

    paths = shape_of(document(endpoints())["paths"])
    calls = [
        (f"{method.upper()} {path}", shape_of(call))
        for path in sorted(paths)
        for method, call in shape_of(paths[path]).items()
    ]
    lines = ["| request | what it does |", "|---|---|"]
    lines += [f"| [`{request}`](#{anchor(request)}) | {_cell(call['summary'])} |" for request, call in calls]
    for request, call in calls:
        lines += ["", f"### `{request}`", "", _sentence(str(call["description"])), ""]
        lines += _call(call)
    return "\n".join(lines)


def _call(call: Shape) -> Iterator[str]:
    parameters = [shape_of(each) for each in list_of(call.get("parameters"))]
    body = _content(shape_of(call.get("requestBody", {})))
    if parameters or "properties" in body:
        yield from ("| parameter | in | what it says |", "|---|---|---|")
        for each in parameters:
            needed = "" if each.get("required") else ", may be left out"
            yield f"| `{each['name']}` | {each['in']} | {_cell(each.get('description', ''))}{needed} |"
        needed_keys = list_of(body.get("required"))
        for key, inner in shape_of(body.get("properties", {})).items():
            says = _says(shape_of(inner)) or _type(shape_of(inner))
            yield f"| `{key}` | body | {says}{'' if key in needed_keys else ', may be left out'} |"
        yield ""
    for code, answer in shape_of(call["responses"]).items():
        if code.startswith("2"):
            (media,) = shape_of(shape_of(answer).get("content", {"nothing": {}})).keys()
            shape = _content(shape_of(answer))
            keys = ", ".join(f"`{key}`" for key in shape_of(shape.get("properties", {})))
            if str(shape.get("$ref", "")).endswith("SoakwatchVerdict"):
                keys = "[verdict.json](verdict-json.md)"
            told = keys or str(shape.get("description", ""))
            token = "" if call.get("security") else " It needs no token."
            yield f"Answers {code} with `{media}`{f': {told}' if told else ''}.{token}"


def exit_codes_page() -> str:
    """What each command whose help speaks of exit codes says of them."""
    from soakwatch.cli.main import COMMANDS

    lines = ["| command | exit codes |", "|---|---|"]
    for name in COMMANDS.names():
        command = COMMANDS.module(name).command
        assert isinstance(command, click.Command)
        for path, each in _with_its_own(name, command):
            found = _EXIT.search(f"{each.help or ''}\n\n{each.epilog or ''}")
            if found:
                text = " ".join(found[0].split()).removeprefix("Exit codes: ")
                lines.append(f"| `{path}` | {_cell(text).rstrip('.')} |")
    return "\n".join(lines)


def commands_page() -> str:
    """The help of every command: usage, what it does, its options, examples and exit codes."""
    from soakwatch.cli.main import COMMANDS

    parts: list[str] = []
    for name in COMMANDS.names():
        command = COMMANDS.module(name).command
        assert isinstance(command, click.Command)
        for path, each in _with_its_own(name, command):
            parts += _help(path, each)
    return "\n".join(parts).strip()


def _help(path: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=f"soakwatch {path}", help_option_names=["-h", "--help"])
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield from (f"### `soakwatch {path}`", "", "```text", usage, "```")
    for paragraph in paragraphs:
        if paragraph.lstrip().startswith("\b"):
            yield from ("", "```text", paragraph.replace("\b", "").strip("\n"), "```")
        else:
            yield from ("", _cell(" ".join(paragraph.split())))
    records = [each.get_help_record(context) for each in command.params]  # all but --help
    rows = [f"| `{_cell(words)}` | {_cell(says)} |" for words, says in filter(None, records) if says]
    if rows:
        yield from ("", "| option | what it does |", "|---|---|", *rows)
    if command.epilog:
        yield from ("", "```text", inspect.cleandoc(command.epilog.replace("\b\n", "")).strip(), "```")
    yield ""


def _with_its_own(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _with_its_own(f"{path} {name}", inner)


def _keys(shape: Shape) -> list[str]:
    rows = ["| key | value | what it says |", "|---|---|---|"]
    return [*rows, *(f"| `{key}` | {value} | {says} |" for key, value, says in _flat("", shape))]


def _flat(before: str, shape: Shape) -> Iterator[tuple[str, str, str]]:
    """The keys of an object, and behind each those of an object that has no name of its own."""
    for key, inner in shape_of(shape.get("properties", {})).items():
        yield f"{before}{key}", _type(shape_of(inner)), _says(shape_of(inner))
        items = shape_of(inner).get("items")
        yield from _flat(f"{before}{key}[]." if items else f"{before}{key}.", shape_of(items or inner))


def _type(shape: Shape) -> str:
    if "$ref" in shape:
        name = str(shape["$ref"]).rpartition("/")[2]
        return _KNOWN.get(name) or f"[{name}](#{anchor(name)})"
    if "anyOf" in shape:
        return " or ".join(_type(shape_of(kind)) for kind in list_of(shape["anyOf"]))
    if "const" in shape:
        return f"`{shape['const']}`"
    if "enum" in shape:
        return ", ".join(f"`{json.dumps(value) if value is None else value}`" for value in list_of(shape["enum"]))
    if "items" in shape:
        return f"list of {_type(shape_of(shape['items']))}"
    within = shape.get("additionalProperties")
    if isinstance(within, dict):
        return f"by name: {_type(shape_of(within))}"
    kinds = shape.get("type")
    told = [_SIMPLE[str(kind)] for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind]
    return " or ".join(told) or "any value"


def _says(shape: Shape) -> str:
    return _cell(str(shape.get("description", "")))


def _content(answer: Shape) -> Shape:
    for of_media in shape_of(answer.get("content", {})).values():
        return shape_of(shape_of(of_media).get("schema", {}))
    return {}


def _sentence(text: str) -> str:
    return f"{_cell(text).rstrip('.')}."


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("<", "&lt;")
