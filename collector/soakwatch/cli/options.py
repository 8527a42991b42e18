"""Options shared by commands: the folder of runs, --group, --set, --sign-with, --label, --on and --stop-on-fail."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from soakwatch.core.suggest import hint
from soakwatch.runs.catalog import DEFAULT_RUNS

EVERY = "*"
_STOP_ON_FAIL = "--stop-on-fail"
_LABEL = "--label"
_LABEL_WORD = re.compile(r"[A-Za-z][\w-]*=")
F = TypeVar("F", bound=Callable[..., Any])


def runs_option(purpose: str = "Folder in which RUN is looked up.") -> Callable[[F], F]:
    """Add ``--runs`` as the parameter ``runs_folder``, a path; ``purpose`` is its help."""
    return click.option(
        "--runs",
        "runs_folder",
        type=click.Path(path_type=Path),
        default=DEFAULT_RUNS,
        show_default=True,
        help=purpose,
    )


def group_option(what: str) -> Callable[[F], F]:
    """Add ``--group`` as the parameter ``group``: "", or a group of this user that may read ``what``."""
    return click.option(
        "--group",
        default="",
        metavar="NAME",
        show_default="only you",
        callback=_group,
        help=f"Group of this machine that may read {what}.",
    )


def _group(_context: click.Context, _parameter: click.Parameter, name: str) -> str:
    from soakwatch.core.errors import SoakwatchError
    from soakwatch.core.private_files import group_id

    if name:
        try:
            group_id(name)
        except SoakwatchError as error:
            raise click.UsageError(f"--group: {error}") from None
    return name


def set_option(command: F) -> F:
    """Add ``--set`` as the parameter ``values``: changes of the plan."""
    return click.option(
        "--set",
        "values",
        multiple=True,
        metavar="PATH=VALUE",
        help="Value of the plan, such as duration=2h or targets.fw.sources.snmp.interval=5s. May be repeated.",
    )(command)


def sign_option(command: F) -> F:
    """Add ``--sign-with`` as the parameter ``sign_with``, a path or None, and ``--timestamp``, a URL or ""."""
    return click.option(
        "--sign-with",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="KEY",
        help="SSH key that signs the seal of the record (a public key: the one of the agent that belongs to it).",
    )(
        click.option(
            "--timestamp",
            metavar="URL",
            default="",
            help="Time-stamp authority (RFC 3161) that stamps the seal; needs openssl.",
        )(command)
    )


class LabelCommand(click.Command):
    """A command whose ``--label`` may be followed by several labels: ``--label release=7.2 build=9``.

    A file whose name looks like a label must be written ./NAME=VALUE.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the option before each label."""
        end = args.index("--") if "--" in args else len(args)
        spelt_out: list[str] = []
        follows = False  # the previous word was a label
        for index, word in enumerate(args[:end]):
            is_value = index > 0 and args[index - 1] == _LABEL
            if follows and not is_value and _LABEL_WORD.match(word):
                spelt_out.append(_LABEL)
            else:
                follows = is_value or word.startswith(f"{_LABEL}=")
            spelt_out.append(word)
        return super().parse_args(ctx, [*spelt_out, *args[end:]])


def label_option(purpose: str) -> Callable[[F], F]:
    """Add ``--label`` as the parameter ``labels``, values by name; ``purpose`` is its help."""
    return click.option(
        _LABEL,
        "labels",
        multiple=True,
        metavar="NAME=VALUE",
        callback=_labels,
        help=f"{purpose} May be repeated, and several may follow it.",
    )


def _labels(_context: click.Context, _parameter: click.Parameter, words: tuple[str, ...]) -> dict[str, str]:
    from soakwatch.core.labels import given_labels

    try:
        return given_labels(words)
    except ValueError as error:
        raise click.UsageError(f"{_LABEL}: {error}") from None


def on_option(command: F) -> F:
    """Add ``--on`` as the parameter ``on``, a text or None: see ``soakwatch.core.workers.choose``."""
    return click.option(
        "--on",
        metavar="dask://HOST:8786",
        help="Scheduler of dask whose workers do the work; tls://HOST:8786 for one with TLS.  [this machine]",
    )(command)


class StoppingCommand(LabelCommand):
    """A command whose ``--stop-on-fail`` means every rule, and ``--stop-on-fail=RULE`` that one.

    Click alone would take the word behind a bare option for its value.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Write out a bare option."""
        end = args.index("--") if "--" in args else len(args)
        spelt_out = [f"{_STOP_ON_FAIL}={EVERY}" if word == _STOP_ON_FAIL else word for word in args[:end]]
        return super().parse_args(ctx, [*spelt_out, *args[end:]])


def stop_option(command: F) -> F:
    """Add the option as the parameter ``stop_on_fail``, a tuple of texts that ``parse_stop_on_fail`` reads."""
    return click.option(
        _STOP_ON_FAIL,
        "stop_on_fail",
        multiple=True,
        metavar="[=RULE]",
        help="End the run at the first live finding that fails, of any rule or of RULE (growth only warns before the"
        " end). May be repeated.",
    )(command)


def parse_stop_on_fail(given: Sequence[str]) -> tuple[bool, frozenset[str]]:
    """Whether to stop at any rule, and at which ones otherwise. Raises BadParameter for an unknown rule."""
    from soakwatch.core.registry import rules

    known = rules()
    for name in given:
        if name not in {EVERY, *known}:
            raise click.BadParameter(f"unknown rule {name!r}{hint(name, known)}", param_hint=_STOP_ON_FAIL)
    return EVERY in given, frozenset(given) - {EVERY}


def server_options(command: F) -> F:
    """Add ``--server``, ``--token`` and ``--ca``, texts or None, and ``--runs``: which lab server is asked."""
    command = click.option("--ca", metavar="FILE", help="CA bundle (PEM) to verify an HTTPS server.")(command)
    command = click.option(
        "--token",
        metavar="REF",
        show_default="SOAKWATCH_TOKEN, else that in RUNS/web.token",
        help="Your token: env:NAME or file:PATH.",
    )(command)
    command = runs_option("Folder of runs whose server on this machine is asked, without --server.")(command)
    return click.option(
        "--server",
        metavar="URL",
        show_default="SOAKWATCH_SERVER, else the one that serves RUNS on this machine",
        help="Server that was started with serve --plans.",
    )(command)
