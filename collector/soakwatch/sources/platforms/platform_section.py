"""Platforms as data: the section ``cli`` of a profile, with its dialect, its commands, and what their outputs say.

A parser in Python (``parse``) is for an output that neither lines nor JSON describe: products of its numbers, columns
of a number that a device chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, TypeAdapter, model_validator

from soakwatch.core.suggest import hint
from soakwatch.core.units import Seconds
from soakwatch.core.validation import Several
from soakwatch.core.yaml import Document, Path, Problem
from soakwatch.sources.platforms.cli_inventory import READERS
from soakwatch.sources.platforms.guard import refusal
from soakwatch.sources.platforms.json_template import JsonTemplate, is_json, read_json
from soakwatch.sources.platforms.line_template import Ending, LineTemplate, Rest, read_lines
from soakwatch.sources.platforms.output_template import Metric, Pattern, TemplateModel
from soakwatch.sources.platforms.parsed import Parsed, ParsedBuilder
from soakwatch.sources.platforms.parsers import PARSERS
from soakwatch.sources.platforms.platform import Command, Dialect, Platform

_DIALECT = TypeAdapter(Dialect)
Pair = Annotated[list[str], Field(min_length=2, max_length=2)]


class DialectShape(TemplateModel):
    """``platform.Dialect`` as a file has it; what is not given is as there."""

    prompt: str = ""
    shown: str = ""
    setup: Several[str] = Field(default_factory=list)
    enable: str = ""
    unprivileged: str = ""
    refused: str = ""
    pagers: list[Pair] = Field(default_factory=list)
    greetings: list[Pair] = Field(default_factory=list)
    mode: Literal["session", "exec"] = "session"


class CommandShape(TemplateModel):
    """One command: the texts that are tried, how often at most, the metrics that it should report, and how its output
    is read: by ``lines``, by ``json`` (and what is none by lines or a parser), by ``parse`` alone, or ``like`` another
    command, whose ``PROFILE/`` stands before it where it is another's."""

    run: Annotated[Several[str], Field(min_length=1)]
    every: Seconds = 0.0
    stop: str = ""
    tells_reason: bool = False
    reports: Several[Metric] = Field(default_factory=list)
    lines: list[LineTemplate] | None = None
    end: list[Ending] = Field(default_factory=list)
    rest: Rest = "unknown"
    whole: bool = False
    json_: Annotated[list[JsonTemplate] | None, Field(alias="json")] = None
    nothing: Pattern | None = None
    parse: str | None = None
    like: str | None = None

    @model_validator(mode="after")
    def _read(self) -> CommandShape:
        others = sum(each is not None for each in (self.lines, self.parse, self.like))
        if others > 1 or not (others or self.json_) or (self.like and self.json_):
            raise ValueError("a command has lines, json, like, or parse with the name of a parser such as top")
        return self


class PlatformShape(TemplateModel):
    """The section: commands and what they need, or the profile ``like`` whose command line it has. ``title`` is that of
    the system, where the profile's says more; the marks say how the device is known, ``parts`` by which reader of
    ``cli_inventory`` the answer to a command is read: ``platform.Platform``."""

    like: str | None = None
    title: str | None = None
    dialect: DialectShape = DialectShape()
    server: str = ""
    says: str = ""
    introduces: str = ""
    parts: Mapping[str, str] = {}
    commands: Mapping[str, CommandShape] = {}

    @model_validator(mode="after")
    def _one(self) -> PlatformShape:
        if not (self.commands if self.like is None else self.model_fields_set == {"like"}):
            raise ValueError("a command line has commands, or like alone with the name of the profile that has them")
        return self


Shared = Callable[[str], PlatformShape]
"""The command line of another profile. Raises ValueError for a name that has none."""


def read_platform(
    name: str, title: str, shape: PlatformShape, document: Document, shared: Shared
) -> tuple[Platform, list[Problem]]:
    """The platform of a section ``cli``, and every problem with its place; a command that has one is left out."""
    found, commands = list[Problem](), list[Command]()

    def wrong(text: str, *place: str | int) -> None:
        found.append(document.problem(("cli", *place), text))

    for key, each in shape.commands.items():
        for place, words in _unknown(each):
            wrong(f"{key}: {words}", "commands", key, *place)
        for harmful in filter(None, map(refusal, each.run)):
            wrong(f"{key}: {harmful}", "commands", key, "run")
        try:
            commands.append(_command(key, each, shape, shared))
        except ValueError as error:
            wrong(f"{key}: {error}", "commands", key)
    for text, reader in shape.parts.items():
        if reader not in READERS:
            wrong(f"there is no reader {reader}{hint(reader, list(READERS))}", "parts", text)
        if (refused := refusal(text)) is not None:
            wrong(refused, "parts", text)
    parts = {text: READERS[reader] for text, reader in shape.parts.items() if reader in READERS}
    dialect = _DIALECT.validate_python(shape.dialect.model_dump(exclude_unset=True))
    marks = (shape.server, shape.says, shape.introduces)
    return Platform(name, shape.title or title, dialect, tuple(commands), *marks, parts), found


def _command(name: str, shape: CommandShape, platform: PlatformShape, shared: Shared) -> Command:
    """Raises ValueError for a parser or another command that is not there."""
    how = shape if shape.like is None else _other(shape.like, platform, shared)
    if how.parse is not None and how.parse not in PARSERS:
        raise ValueError(f"there is no parser {how.parse}{hint(how.parse, list(PARSERS))}")
    other = None if how.parse is None else PARSERS[how.parse]
    reports = tuple(shape.reports or how.reports)
    read = other if how.json_ is None and other is not None else OutputReader(how, other).read
    told = {fact for template in (*(how.lines or ()), *how.end, *(how.json_ or ())) for fact in template.facts}
    return Command(
        name,
        tuple(shape.run),
        read,
        shape.every,
        shape.stop,
        shape.tells_reason,
        reports,
        identifies=bool(told & {"version", "model", "serial"}),
    )


def _other(like: str, platform: PlatformShape, shared: Shared) -> CommandShape:
    """The command that another is like. Raises ValueError where there is none, or it is like a third."""
    name, _, command = like.rpartition("/")
    commands = (shared(name) if name else platform).commands
    if command not in commands or commands[command].like is not None:
        raise ValueError(f"there is no command {like!r} with lines, json or parse{hint(command, list(commands))}")
    return commands[command]


def _unknown(shape: CommandShape) -> Iterator[tuple[Path, str]]:
    """Words that a template writes with or asks for, and none of its command takes or keeps: where, and a sentence."""
    lines, rows = shape.lines or [], shape.json_ or []
    kept = frozenset(name for line in lines for name in line.keep)
    used = [
        *((("lines", index), line.fields - line.names | {*line.when}, kept) for index, line in enumerate(lines)),
        *((("end", index), ending.fields | {*ending.when}, kept) for index, ending in enumerate(shape.end)),
        *((("json", index), row.fields | {*row.match}, row.names) for index, row in enumerate(rows)),
    ]
    for place, wanted, known in used:
        for name in sorted(wanted - known):
            yield place, f"nothing is called {{{name}}} here{hint(name, sorted(known))}"


class OutputReader(NamedTuple):
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
            read_lines(draft, text, shape.lines or (), shape.end, shape.rest)
        draft.whole = shape.whole and bool(draft.processes)
        return draft.done()
