"""What a shell completes behind ``soakwatch``: commands and options by click, and here plans, runs, rules and names.

A shell asks by ``_SOAKWATCH_COMPLETE`` and ``COMP_WORDS`` in the environment (click's way); ``main`` hands that on.
What completes a parameter is known by its name and its command, so that no command says so itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete, split_arg_string

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.registry import INSTALLED
from soakwatch.runs.catalog import DEFAULT_RUNS

VARIABLE = "_SOAKWATCH_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
_PROGRAM = "soakwatch"
_MOST_READ = 20  # verdicts that are read for the words beside the names: of the newest runs
Finder = Callable[[click.Context, str], Iterator[CompletionItem]]


def completion_script(root: click.Command, shell: str) -> str:
    """The text that a shell reads so that it completes the program."""
    completer = get_completion_class(shell)
    if completer is None:
        raise SoakwatchError(f"no completion for {shell!r}: write {', '.join(SHELLS)}")
    return completer(root, {}, _PROGRAM, VARIABLE).source()


def complete(root: click.Group, instruction: str) -> int:
    """Answer a shell that asks; returns the exit code. ``instruction`` is such as ``bash_complete``."""
    _add_finders(root, split_arg_string(os.environ.get("COMP_WORDS", ""))[1:])
    return shell_complete(root, {}, _PROGRAM, VARIABLE, instruction)


class _Found(click.ParamType):  # type: ignore[type-arg] # generic since click 8.4
    """A parameter whose values are found on this machine. For completion only: it converts nothing."""

    name = "found"

    def __init__(self, finder: Finder) -> None:
        self._finder = finder

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """The values that begin as the word does."""
        return list(self._finder(ctx, incomplete))


def _add_finders(root: click.Group, words: list[str]) -> None:
    """Gives the parameters of the command that the words name what completes them."""
    command: click.Command = root
    path: list[str] = []
    for word in words:
        if not isinstance(command, click.Group) or word.startswith("-"):
            continue
        inner = command.get_command(click.Context(command), word)
        if inner is None:
            break
        command = inner
        path.append(word)
    for parameter in command.params:
        finder = _finder(" ".join(path), parameter)
        if finder is not None:
            parameter.type = _Found(finder)


def _finder(path: str, parameter: click.Parameter) -> Finder | None:
    own = _OF_COMMANDS.get(f"{path} {parameter.name}")
    if own is not None:
        return own
    if isinstance(parameter.metavar, str) and parameter.metavar.startswith("RUN"):
        return _runs
    return next((_OF_PARAMETERS[word] for word in parameter.opts if word in _OF_PARAMETERS), None)


def _runs(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """``last``, the runs of the folder, and paths of runs in another one."""
    before, slash, rest = incomplete.rpartition("/")
    if slash:
        folder, prefix = Path(before or "/"), f"{before}/"
    else:
        folder, prefix = Path(ctx.params.get("runs_folder") or DEFAULT_RUNS), ""
        if "last".startswith(incomplete):
            yield CompletionItem("last", help="the newest run")
    names = sorted((entry.parent.name for entry in folder.glob(f"{_literal(rest)}*/record.sqlite")), reverse=True)
    if slash and not names:
        yield from _folders(incomplete)
    for number, name in enumerate(names):
        yield CompletionItem(f"{prefix}{name}", help=_verdict(folder / name) if number < _MOST_READ else None)


def _verdict(run: Path) -> str | None:
    try:
        data = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return str(data.get("verdict")) if isinstance(data, dict) else None


def _plans(_ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    yield from _files(incomplete, "targets:")


def _campaigns(_ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    yield from _files(incomplete, "matrix:")


def _plans_and_runs(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    yield from _plans(ctx, incomplete)
    yield from _runs(ctx, incomplete)


def _files(incomplete: str, line: str) -> Iterator[CompletionItem]:
    """YAML files that have a line which begins so; folders where there are none."""
    yield from _folders(incomplete)
    before, slash, rest = incomplete.rpartition("/")
    for file in sorted(Path(before or ("/" if slash else ".")).glob(f"{_literal(rest)}*.y*ml")):
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if text.startswith(line) or f"\n{line}" in text:
            yield CompletionItem(f"{before}{slash}{file.name}")


def _folders(incomplete: str) -> Iterator[CompletionItem]:
    """Leaves folders to the shell; in bash they are offered where nothing else is."""
    yield CompletionItem(incomplete, type="dir")


def _ledgers(_ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    yield from _folders(incomplete)


def _nothing(_ctx: click.Context, _incomplete: str) -> Iterator[CompletionItem]:
    yield from ()


def _named(folder: str) -> Finder:
    """The names of what is installed, each with its first line."""

    def found(_ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
        plugins = getattr(INSTALLED, folder)
        for name in plugins.names():
            if name.startswith(incomplete):
                yield CompletionItem(name, help=plugins.summary(name))

    return found


def _profiles(_ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    from soakwatch.sources.profiles.loading import load_profiles

    heads = load_profiles(None).heads()
    yield from (CompletionItem(head.name, help=head.title) for head in heads if head.name.startswith(incomplete))


def _literal(text: str) -> str:
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in text)


_RULES = _named("rules")
_OF_PARAMETERS: Mapping[str, Finder] = {
    "plan": _plans,
    "--plan": _plans,
    "--rule": _RULES,
    "--stop-on-fail": _RULES,
}
"""By argument or option."""
_OF_COMMANDS: Mapping[str, Finder] = {
    "rules name": _RULES,
    "pollers name": _named("pollers"),
    "loads name": _named("loads"),
    "sinks name": _named("sinks"),
    "profiles name": _profiles,
    "drill subject": _plans_and_runs,
    "trend plan": _nothing,  # the name of a plan, not its file
    "campaign plan file": _campaigns,
    "campaign run file": _campaigns,
    "campaign report folder": _ledgers,
    "campaign resume folder": _ledgers,
    "campaign status folder": _ledgers,
}
"""By command and parameter, where the parameter's name alone does not say it."""
