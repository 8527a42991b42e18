"""Platforms as data: a YAML file each, with its dialect, its commands, and what the lines of their outputs say.

A command has ``lines``, templates that are tried in their order, or ``parse``, a function of ``parsers`` for an output
that is no list of lines (tables whose columns move, JSON, sums over several lines).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module, resources
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from soakwatch.core.units import Seconds
from soakwatch.core.validation import problems
from soakwatch.core.yaml import Document, parse, plan_error, read_text
from soakwatch.sources.platforms.json_template import Rows, is_json, read_json
from soakwatch.sources.platforms.line_template import Line, Rest, read_lines
from soakwatch.sources.platforms.parsed import Parsed, ParsedBuilder, Parser
from soakwatch.sources.platforms.platform import Command, Dialect, Platform
from soakwatch.sources.platforms.template import Metrics, Pattern, Shape, Texts

_DIALECT = TypeAdapter(Dialect)
_PARSERS = "soakwatch.sources.platforms.parsers"
Pair = Annotated[list[str], Field(min_length=2, max_length=2)]


class DialectShape(Shape):
    """``platform.Dialect`` as a file has it; what is not given is as there."""

    prompt: str = ""
    shown: str = ""
    setup: Texts = Field(default_factory=list)
    enable: str = ""
    unprivileged: str = ""
    refused: str = ""
    pagers: list[Pair] = Field(default_factory=list)
    greetings: list[Pair] = Field(default_factory=list)
    mode: Literal["session", "exec"] = "session"


class CommandShape(Shape):
    """One command: the texts that are tried, how often at most, the metrics that it should report, and how its output
    is read."""

    run: Annotated[Texts, Field(min_length=1)]
    every: Seconds = 0.0
    stop: str = ""
    tells_reason: bool = False
    reports: Metrics = Field(default_factory=list)
    lines: list[Line] | None = None
    rest: Rest = "unknown"
    whole: bool = False
    json_: Annotated[list[Rows] | None, Field(alias="json")] = None
    nothing: Pattern | None = None
    parse: str | None = None

    @model_validator(mode="after")
    def _read(self) -> CommandShape:
        if (self.lines is None) == (self.parse is None) and (self.json_ is None or self.lines is not None):
            raise ValueError("a command has lines, json, or parse with a function such as asa.show_memory")
        return self


class PlatformShape(Shape):
    """A file. The marks say how the device is known: ``platform.Platform``."""

    title: str
    dialect: DialectShape = DialectShape()
    server: str = ""
    says: str = ""
    introduces: str = ""
    commands: Mapping[str, CommandShape]


def folder() -> Path:
    """The folder of the platforms that come with Soakwatch."""
    return Path(str(resources.files("soakwatch.sources.platforms"))) / "data"


@cache
def shipped() -> tuple[str, ...]:
    """All platforms, sorted."""
    return tuple(sorted(file.stem for file in folder().glob("*.yaml")))


@cache
def platform_of(name: str) -> Platform:
    """The platform of a name that is known. Raises PlanError with every problem of its file."""
    file = folder() / f"{name}.yaml"
    return read_platform(name, parse(read_text(file), file.name))


def read_platform(name: str, document: Document) -> Platform:
    """A platform of a document. Raises PlanError with every problem and its place."""
    try:
        shape = PlatformShape.model_validate(document.data)
    except ValidationError as error:
        raise plan_error(document.origin, problems(document, (), PlatformShape, error)) from None
    found, commands = [], []
    for key, each in shape.commands.items():
        try:
            commands.append(_command(key, each))
        except ValueError as error:
            found.append(document.problem(("commands", key), f"{key}: {error}"))
    if found:
        raise plan_error(document.origin, found)
    dialect = _DIALECT.validate_python(shape.dialect.model_dump(exclude_unset=True))
    return Platform(name, shape.title, dialect, tuple(commands), shape.server, shape.says, shape.introduces)


def _command(name: str, shape: CommandShape) -> Command:
    read, also = _reader(shape)
    return Command(name, tuple(shape.run), read, shape.every, shape.stop, shape.tells_reason, also)


def _reader(shape: CommandShape) -> tuple[Callable[[str], Parsed], tuple[str, ...]]:
    """What reads the output, and what it should report beside what a parser says itself. Raises ValueError."""
    reports = tuple(shape.reports)
    other = None if shape.parse is None else _function(shape.parse)
    if shape.json_ is None and other is not None:
        return other, reports
    return Parser(Reader(shape, other).read, reports), ()


def _function(name: str) -> Callable[[str], Parsed]:
    module, _, function = name.partition(".")
    try:
        found: Callable[[str], Parsed] = getattr(import_module(f"{_PARSERS}.{module}"), function)
    except (ImportError, AttributeError):
        raise ValueError(f"there is no parser {name}") from None
    return found


class Reader(NamedTuple):
    """Reads an output as its command says. One that has ``json`` beside lines or a parser reads with these what is
    none. ``nothing`` is an answer that says that there is nothing to list; ``whole``: its list of processes, if there
    is one, has all of them."""

    shape: CommandShape
    other: Callable[[str], Parsed] | None

    def read(self, text: str) -> Parsed:
        """What was found."""
        draft, shape = ParsedBuilder(), self.shape
        if shape.json_ is not None and (is_json(text) or (shape.lines is None and self.other is None)):
            read_json(draft, text, shape.json_, shape.nothing)
        elif self.other is not None:
            return self.other(text)
        else:
            read_lines(draft, text, shape.lines or (), shape.rest)
        draft.whole = shape.whole and bool(draft.processes)
        return draft.done()
