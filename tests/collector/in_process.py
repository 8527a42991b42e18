"""Commands of ``soakwatch`` in this process: a process of their own would spend seconds of CPU on imports alone."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
from pathlib import Path
from unittest import mock

from tests.commands import Command

from soakwatch.cli.main import run as run_command

COLUMNS = {"COLUMNS": "160"}


def command_here(folder: Path, *, merged: bool = False) -> Command:
    """Runs commands in a folder, as ``command_in`` does; each returns its exit code and what it printed.

    ``merged``: errors are printed among the rest. Names are set in the environment for one command.
    """

    def run(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
        line = [*map(str, words)]
        out = io.StringIO()
        err = out if merged else io.StringIO()
        with (
            contextlib.chdir(folder),
            mock.patch.dict(os.environ, {**COLUMNS, **environment}),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = run_command(line)
        return subprocess.CompletedProcess(line, code, out.getvalue(), "" if merged else err.getvalue())

    return run
