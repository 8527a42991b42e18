"""The options by which commands write reports: ``--junit FILE`` and its like, one definition for all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from soakwatch.report.formats import ALL, FORMATS, OF_RUNS

if TYPE_CHECKING:
    from soakwatch.report.files import ReportPlace

F = TypeVar("F", bound=Callable[..., Any])


def report_options(
    kinds: Sequence[str] = OF_RUNS, *, in_run: bool = False, helps: Mapping[str, str] | None = None
) -> Callable[[F], F]:
    """Add an option for each kind of report, as the one parameter ``asked``: places by kind, of those that were given.

    ``in_run``: an option without a file means the usual one in the folder of the run, and its place is "". ``helps``
    replaces the help of some.
    """

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def collected(*args: object, **kwargs: object) -> object:
            given = {kind: kwargs.pop(kind) for kind in (*kinds, ALL)}
            return command(*args, asked={kind: place for kind, place in given.items() if place is not None}, **kwargs)

        wrapped: Callable[..., Any] = click.option(
            f"--{ALL}", metavar="DIR", help="Write all of these into a folder, each by its usual name."
        )(collected)
        for kind in reversed(kinds):
            words = (helps or {}).get(kind) or f"Write {FORMATS[kind].what}."
            how = {"is_flag": False, "flag_value": "", "metavar": "[FILE]"} if in_run else {"metavar": "FILE"}
            wrapped = click.option(FORMATS[kind].option, kind, help=words, **how)(wrapped)
        return wrapped  # type: ignore[return-value]  # the same command, with options

    return decorate


def asked_places(asked: Mapping[str, str], kinds: Sequence[str] = OF_RUNS) -> tuple[ReportPlace, ...]:
    """Where reports are wanted, each tried before the work begins; ``kinds`` are all that there are here. Raises
    UsageError."""
    from soakwatch.core.errors import SoakwatchError
    from soakwatch.report.files import places_of

    try:
        return places_of(asked, kinds=kinds)
    except SoakwatchError as error:
        raise click.UsageError(str(error)) from None


def print_report(text: str) -> None:
    """Print a report on standard output, as it is."""
    click.echo(text, nl=False)
