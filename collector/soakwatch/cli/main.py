"""The command line: one file a command in ``commands/``, imported when it is called.

An error is one sentence on stderr and an exit code (``soakwatch.core.errors``); an internal error is exit code 4, and
``--debug`` shows its traceback. This module imports nothing heavier than click.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import click

from soakwatch.cli.command_groups import GROUPS, brief, other_word
from soakwatch.cli.help_text import HelpContext
from soakwatch.cli.outlet import discard_broken_streams, hold_standard_streams, stay_on_hang_up
from soakwatch.core.errors import EXIT_BROKEN, EXIT_INTERRUPTED, EXIT_USAGE, PlanError, SoakwatchError
from soakwatch.core.memory_limit import MemoryLimit, hopeless, memory_limit, not_enough, ran_out, too_little
from soakwatch.core.one_thread import use_one_thread
from soakwatch.core.registry import PluginFolder
from soakwatch.core.suggest import hint
from soakwatch.core.tables import say

EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE: neither a pass nor a fail


LASTING = frozenset({"run", "resume", "calibrate", "demo", "campaign"})
"""The commands that continue without their terminal."""
COMMANDS = PluginFolder("soakwatch.cli.commands", "command")


_OURS = re.compile(r"[/\\]soakwatch\w*[/\\]\w+([/\\]\w+)*\.py$")
_UNIX_ONLY = frozenset({"fcntl", "grp", "pwd", "resource", "termios", "tty"})
"""Modules of the standard library that Windows does not have."""


class Commands(click.Group):
    """A group whose commands are the files of a folder; listing them imports none."""

    context_class = HelpContext
    plugins: PluginFolder = COMMANDS
    groups: Mapping[str, tuple[str, ...]] = GROUPS

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of all commands."""
        return list(self.plugins.names())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return a command; None if there is no such file."""
        if cmd_name not in self.plugins.names():
            return None
        command: object = getattr(self.plugins.module(cmd_name), "command", None)
        if not isinstance(command, click.Command):
            raise SoakwatchError(f"the file of the command {cmd_name!r} defines no click command named 'command'")
        command.context_class = HelpContext
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names; else a usage error that suggests the right or nearest one."""
        word = args[0]
        if not word.startswith("-") and word not in self.plugins.names():
            answer = other_word(word, self.plugins.summary) if self.groups else ""
            raise click.UsageError(answer or f"unknown command {word!r}{hint(word, self.plugins.names())}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands by group, one line each, with the first clause of their file's docstring."""
        names = self.plugins.names()
        grouped = {name for group in self.groups.values() for name in group}
        rest = tuple(name for name in names if name not in grouped)
        widest = max(map(len, names), default=0)
        for title, group in (*self.groups.items(), ("Other" if self.groups else "Commands", rest)):
            if group:
                with formatter.section(title):
                    formatter.write_dl([(name.ljust(widest), brief(self.plugins.summary(name))) for name in group])


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"soakwatch {version('soakwatch')}")
        ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="""\b
Examples:
  soakwatch demo
  soakwatch init -o plan.yaml
  soakwatch check plan.yaml && soakwatch run plan.yaml
  soakwatch run --target local --process nginx --duration 30m
\b
Exit codes: 0 pass, 1 fail, 2 usage or plan error, 3 inconclusive, 4 the monitor itself failed.""",
)
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def soakwatch(debug: bool) -> None:  # noqa: FBT001 - click's signature; main() reads it
    """Monitor a device under test during a soak run, and report pass, fail or inconclusive with the evidence."""


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit the process."""
    words = list(sys.argv[1:] if args is None else args)
    hold_standard_streams()
    if asked := os.environ.get("_SOAKWATCH_COMPLETE"):  # a shell, on TAB
        from soakwatch.cli.completion import complete

        sys.exit(complete(soakwatch, asked))
    if next((word for word in words if not word.startswith("-")), "") in LASTING:
        stay_on_hang_up()  # before the import of the command, which takes a second on a busy machine
    use_one_thread(os.environ)
    limit = memory_limit()
    if hopeless(limit) and words and not {"-h", "--help", "--version"} & set(words):
        sys.exit(_complain(not_enough(limit), EXIT_BROKEN, debug=False))
    if warning := too_little(limit):
        click.echo(f"soakwatch: warning: {warning}", err=True)
    sys.exit(run(words, own_process=True))


def run(args: list[str], *, own_process: bool = False) -> int:
    """Run one command line and return its exit code, which is the command's return value (None: 0).

    ``own_process``: this process does nothing else, so a command may become another program (``cli/take_over.py``).
    """
    debug, limit = False, memory_limit()  # the limit cannot be read once memory has run out
    try:
        with soakwatch.make_context("soakwatch", args, obj=tuple(args) if own_process else None) as context:
            debug = bool(context.params.get("debug"))
            code: object = soakwatch.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        return _flushed(done.exit_code)
    except click.exceptions.NoArgsIsHelpError as help_wanted:
        click.echo(help_wanted.format_message())
        return EXIT_USAGE
    except click.ClickException as error:
        where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "soakwatch"
        sentence = " ".join(error.format_message().split()).rstrip(".")
        return _complain(f"{sentence[:1].lower()}{sentence[1:]} (see '{where} --help')", EXIT_USAGE, debug)
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return _pipe_closed()
    except SoakwatchError as error:
        return _complain(_sentences(error), error.exit_code, debug)
    except OSError as error:
        if ran_out(error):
            return _complain(not_enough(limit), EXIT_BROKEN, debug)
        file = f"{error.filename}: " if error.filename else ""
        return _complain(f"{file}{error.strerror or type(error).__name__}", EXIT_BROKEN, debug)
    except BaseExceptionGroup as group:
        # A task group may raise several errors together: report all if all are for the user.
        for_user, others = group.split(SoakwatchError)
        if for_user is None or others is not None:
            return _unforeseen(group, limit, debug)
        errors = list(_flattened(for_user))
        return _complain("\n".join(map(_sentences, errors)), max(error.exit_code for error in errors), debug)
    except ModuleNotFoundError as error:
        if error.name not in _UNIX_ONLY:
            return _unforeseen(error, limit, debug)
        return _complain(
            "this command needs Linux or another Unix; records can be judged, reported, compared and exported here",
            EXIT_USAGE,
            debug,
        )
    except Exception as error:  # noqa: BLE001 - last resort: a defect is a sentence, not a traceback
        return _unforeseen(error, limit, debug)
    return code if isinstance(code, int) else 0


def _sentences(error: SoakwatchError) -> str:
    return "\n".join(error.problems) if isinstance(error, PlanError) and error.problems else str(error)


def _flattened(group: BaseExceptionGroup[SoakwatchError]) -> Iterator[SoakwatchError]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _flattened(error)
        else:
            yield error


def _unforeseen(error: BaseException, limit: MemoryLimit | None, debug: bool) -> int:  # noqa: FBT001
    """Report that memory ran out, or else an internal error with its location."""
    if ran_out(error):
        return _complain(not_enough(limit), EXIT_BROKEN, debug)
    # The text of an unforeseen exception may contain anything, so only its type and location are shown.
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if _OURS.search(frame.filename)]  # else the place is one of a library
    location = f" at {os.path.basename(ours[-1].filename)}:{ours[-1].lineno}" if ours else ""  # noqa: PTH119
    message = f"internal error: {type(error).__name__}{location}; re-run with --debug"
    return _complain(message, EXIT_BROKEN, debug)


def _flushed(code: int) -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _pipe_closed()
    return code


def _pipe_closed() -> int:
    discard_broken_streams()
    return EXIT_BROKEN_PIPE


def _complain(text: str, code: int, debug: bool) -> int:  # noqa: FBT001
    with suppress(OSError):  # nobody may be there to read it; the exit code remains
        if debug:
            traceback.print_exc()
        for line in text.splitlines():
            say(f"soakwatch: {line}", err=True)
    discard_broken_streams()
    return code
