"""The end of a run whose Soakwatch was replaced on the disk while it polled: the new version makes it.

Polling needs nothing that is not imported after its first seconds, but judging and reports do, and what the old process
would import for them is of the new version or gone. So this process becomes one of the new version, which does what
``soakwatch resume`` does for a run whose polling was over: same process id, terminal and options.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from soakwatch.core.installed_code import code_stamp
from soakwatch.core.supervised_child import python_module

OPTION = "--take-over"
_PATIENCE_S = 600.0  # for an installation that goes on
_SETTLED_S = 30.0  # after its last change an installation is over
_PAUSE_S, _TRY_S = 2.0, 120.0


def take_over_option(command: Callable[..., object]) -> Callable[..., object]:
    """Add the hidden ``--take-over`` as the parameter ``taken_over``: the folder of the run that this process goes on
    with in place of one of an older version; None if there is none."""
    return click.option(OPTION, "taken_over", type=click.Path(path_type=Path), hidden=True)(command)


def words_of_process() -> tuple[str, ...]:
    """The words of the command line that this process was started with; none where it is called by another program."""
    words = click.get_current_context().find_root().obj
    return words if isinstance(words, tuple) else ()


def become_new_version(folder: Path, words: Sequence[str], say: Callable[[str], None]) -> str:
    """Replaces this process by the installed version with the same command line, to end the run in a folder.

    Returns only if that version cannot: the reason in a sentence. An installation that is going on is waited for.
    """
    say("Soakwatch was replaced while this run went on: the new version judges it")
    if reason := _refusal(folder):
        return reason
    sys.stdout.flush()
    sys.stderr.flush()
    command = python_module("soakwatch.cli", *_without(words), OPTION, str(folder.absolute()))
    try:
        os.execv(command[0], command)  # noqa: S606 - a list, and this very program
    except OSError as error:
        return f"{command[0]} cannot be started: {error.strerror}"


def _refusal(folder: Path) -> str:
    """Why the installed version cannot resume the run; "" if it can. Asks until the installation is over, for ten
    minutes at most."""
    changed_s = began_s = time.monotonic()
    stamp = ""
    while True:
        before = code_stamp()
        if before != stamp:
            stamp, changed_s = before, time.monotonic()
        try:
            asked = subprocess.run(
                python_module("soakwatch.cli", "resume", "--check", str(folder.absolute())),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TRY_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = f"it does not start ({type(error).__name__})"
        else:
            if asked.returncode == 0 and before == code_stamp():
                return ""
            lines = asked.stderr.strip().splitlines()
            reason = lines[-1].removeprefix("soakwatch: ") if lines else f"it ended with exit code {asked.returncode}"
        now_s = time.monotonic()
        if now_s - changed_s >= _SETTLED_S or now_s - began_s >= _PATIENCE_S:
            return reason
        time.sleep(_PAUSE_S)


def _without(words: Sequence[str]) -> list[str]:
    """The words of a command line without an earlier ``--take-over FOLDER``."""
    kept = list(words)
    while OPTION in kept:
        at = kept.index(OPTION)
        del kept[at : at + 2]
    return kept
