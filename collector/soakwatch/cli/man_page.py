"""The manual page of a command in roff, made of its help: what ``soakwatch COMMAND --help`` says, with its examples."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence

import click

_PROGRAM = "soakwatch"
_VERBATIM = "\b"
_EXIT = re.compile(r"^(?:Exit codes:|The exit code )", re.MULTILINE)
_SIGNS = str.maketrans({"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"})


def man_page(root: click.Group, path: Sequence[str], version: str) -> str:
    """The page of a command; ``path`` are its words behind the program's name, none for the program itself."""
    context = _context(root, path)
    command = context.command
    name = "-".join((_PROGRAM, *path))
    help_text = inspect.cleandoc(command.help or "")
    brief = " ".join(help_text.replace(_VERBATIM, "").partition("\n\n")[0].split()).rstrip(".")
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [
        f'.TH "{name.upper()}" 1 "" "{_PROGRAM} {_escaped(version)}" "Soakwatch"',
        ".SH NAME",
        f"{_escaped(name)} \\- {_escaped(brief)}",
        ".SH SYNOPSIS",
        f".B {_escaped(' '.join((_PROGRAM, *path)))}",
        _escaped(usage),
        ".SH DESCRIPTION",
        *_paragraphs(help_text),
        *_options(context),
        *_commands(context, path),
        *_epilog(command.epilog or ""),
        ".SH SEE ALSO",
        ", ".join(_reference(each) for each in _see_also(context, path)),
    ]
    return "\n".join(lines) + "\n"


def man_pages(root: click.Group, version: str) -> Iterator[tuple[str, str]]:
    """The name of the file and the text of every page: of the program, its commands and theirs."""
    for path in _paths(root, ()):
        yield f"{'-'.join((_PROGRAM, *path))}.1", man_page(root, path, version)


def _paths(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield from _paths(inner, (*path, name))


def _context(root: click.Group, path: Sequence[str]) -> click.Context:
    """The context of a command. Raises a usage error for a word that names none."""
    context = click.Context(root, info_name=_PROGRAM, help_option_names=["-h", "--help"])
    for word in path:
        command = context.command
        if not isinstance(command, click.Group):
            raise click.UsageError(f"'{context.command_path}' has no commands of its own")
        _, inner, _ = command.resolve_command(context, [word])
        if inner is None:
            raise click.UsageError(f"there is no command {word!r}")
        context = click.Context(inner, info_name=word, parent=context)
    return context


def _options(context: click.Context) -> Iterator[str]:
    records = [
        record
        for each in context.command.get_params(context)
        if (record := each.get_help_record(context)) and record[1]
    ]
    if records:
        yield ".SH OPTIONS"
    for words, text in records:
        yield from (".TP", f"\\fB{_escaped(words)}\\fR", _escaped(text))


def _commands(context: click.Context, path: Sequence[str]) -> Iterator[str]:
    command = context.command
    if not isinstance(command, click.Group):
        return
    yield ".SH COMMANDS"
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if inner is not None and not inner.hidden:
            yield from (".TP", _reference((*path, name)), _escaped(inner.get_short_help_str(200)))


def _epilog(text: str) -> Iterator[str]:
    """Examples and exit codes have sections of their own, the rest is in NOTES."""
    notes = False
    for block in filter(None, (part.strip("\n") for part in inspect.cleandoc(text).split(_VERBATIM))):
        if block.startswith("Examples:"):
            yield from (".SH EXAMPLES", *_verbatim(block.partition("\n")[2]))
            continue
        codes = _EXIT.search(block)
        words, codes_text = (block[: codes.start()], block[codes.start() :]) if codes else (block, "")
        if words.strip():
            yield from ([] if notes else [".SH NOTES"])
            notes = True
            yield from _verbatim(words.strip("\n"))
        if codes_text:
            yield from (".SH EXIT STATUS", *_paragraphs(codes_text))
            notes = False


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.split("\n\n")):
        if number:
            yield ".PP"
        if paragraph.lstrip().startswith(_VERBATIM):
            yield from _verbatim(paragraph.replace(_VERBATIM, "").strip("\n"))
        else:
            yield _escaped(" ".join(paragraph.split()))


def _verbatim(text: str) -> Iterator[str]:
    yield from (".nf", *(_escaped(line) or "." for line in text.split("\n")), ".fi")


def _see_also(context: click.Context, path: Sequence[str]) -> list[tuple[str, ...]]:
    """The program, and for it the commands that are needed first."""
    if path:
        return [tuple(path[:depth]) for depth in range(len(path))]
    command = context.command
    known = command.list_commands(context) if isinstance(command, click.Group) else []
    return [(name,) for name in ("run", "check", "report", "judge") if name in known]


def _reference(path: Sequence[str]) -> str:
    return f"\\fB{_escaped('-'.join((_PROGRAM, *path)))}\\fR(1)"


def _escaped(text: str) -> str:
    """A text as roff shows it.

    >>> _escaped(".b --x \\\\")
    '\\\\&.b \\\\-\\\\-x \\\\e'
    """
    safe = text.translate(_SIGNS)
    return f"\\&{safe}" if safe.startswith(".") else safe
