"""``soakwatch --help``: every command once, a line each at 80 columns; words of other programs are answered."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from soakwatch.cli.command_groups import GROUPS, SYNONYMS
from soakwatch.cli.help_text import HelpContext, fitted
from soakwatch.cli.main import COMMANDS, soakwatch


def _help(width: int) -> str:
    return CliRunner().invoke(soakwatch, ["--help"], terminal_width=width).stdout


def test_every_command_stands_in_one_group() -> None:
    grouped = [name for group in GROUPS.values() for name in group]
    assert sorted(grouped) == sorted(COMMANDS.names()), "put each command into one group of cli/command_groups.py"


def test_the_help_shows_each_command_in_one_line_of_eighty_columns() -> None:
    lines = _help(80).splitlines()
    for title, names in GROUPS.items():
        begin = lines.index(f"{title}:") + 1
        assert [line.split()[0] for line in lines[begin : begin + len(names)]] == list(names)


def test_synonyms_are_no_commands_and_name_ones_that_exist() -> None:
    assert not set(SYNONYMS) & set(COMMANDS.names())
    meant = {name for names in SYNONYMS.values() for name in names}
    assert {name for name in meant if not name.startswith("-")} <= set(COMMANDS.names())


@pytest.mark.parametrize(
    ("word", "command"),
    [("status", "ps"), ("list", "runs"), ("validate", "check"), ("logs", "watch"), ("HELP", "--help")],
)
def test_a_word_of_another_program_is_answered_with_the_command(word: str, command: str) -> None:
    done = CliRunner().invoke(soakwatch, [word])
    assert done.exit_code == 2
    assert f"there is no command '{word}': use 'soakwatch {command}'" in " ".join(done.output.split())


def test_no_line_of_any_help_is_broken_by_a_terminal_of_eighty_columns() -> None:
    """Notes go on further in, commands behind a backslash; only a single word may be longer than the line."""
    for name in COMMANDS.names():
        command = soakwatch.get_command(click.Context(soakwatch), name)
        assert command is not None
        assert command.context_class is HelpContext
        for line in (command.epilog or "").splitlines():
            pieces = fitted(line, 78).split("\n")
            assert all(len(piece) <= 78 or len(piece.split()) <= 2 for piece in pieces), (name, pieces)
            assert " ".join(" ".join(piece.removesuffix(" \\") for piece in pieces).split()) == " ".join(line.split())
