"""The option --stop-on-fail of a command: alone it means every rule, as --stop-on-fail=RULE that one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from soakwatch.core.suggest import hint

EVERY = "*"
_OPTION = "--stop-on-fail"
F = TypeVar("F", bound=Callable[..., Any])


class StoppingCommand(click.Command):
    """A command with the option. Click by itself would take the word behind a bare option for its value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments, with a bare option spelt out."""
        end = args.index("--") if "--" in args else len(args)
        told = [f"{_OPTION}={EVERY}" if word == _OPTION else word for word in args[:end]]
        return super().parse_args(ctx, [*told, *args[end:]])


def stop_option(command: F) -> F:
    """Adds the option as the parameter ``stop_on_fail``, a tuple of texts; ``chosen`` reads it."""
    return click.option(
        _OPTION,
        "stop_on_fail",
        multiple=True,
        metavar="[=RULE]",
        help="End the run at the first live finding that fails, of any rule or of RULE (growth only warns before the"
        " end). May be repeated.",
    )(command)


def chosen(told: Sequence[str]) -> tuple[bool, frozenset[str]]:
    """Whether every rule is meant, and which ones otherwise. Raises BadParameter for what is no rule."""
    from soakwatch.core.registry import rules

    known = rules()
    for name in told:
        if name not in {EVERY, *known}:
            raise click.BadParameter(f"unknown rule {name!r}{hint(name, known)}", param_hint=_OPTION)
    return EVERY in told, frozenset(told) - {EVERY}
