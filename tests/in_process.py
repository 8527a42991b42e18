"""A command line that is run in this process: for what a command says and does, not for what its process does."""

from __future__ import annotations

import io
import os
import subprocess
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from tests.commands import Command, environment

from soakwatch.cli.main import run


def command_here(folder: Path, *, merged: bool = False) -> Command:
    """Runs command lines in a folder, as ``command_in`` does: a process costs a second or two of imports.

    ``merged``: errors are printed among the rest. Names are set in the environment for one command.
    """

    def here(*words: object, **around: str) -> subprocess.CompletedProcess[str]:
        args = [str(word) for word in words]
        out = io.BytesIO()
        err = out if merged else io.BytesIO()
        with (
            io.TextIOWrapper(out, "utf-8", write_through=True) as output,
            io.TextIOWrapper(err, "utf-8", write_through=True) as errors,
            chdir(folder),
            patch.dict(os.environ, {**environment(), **around}),
            redirect_stdout(output),
            redirect_stderr(output if merged else errors),
        ):
            code = run(args)
            said = out.getvalue().decode("utf-8"), "" if merged else err.getvalue().decode("utf-8")
        return subprocess.CompletedProcess(args, code, *said)

    return here
