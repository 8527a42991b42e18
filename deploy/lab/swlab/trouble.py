"""The lab's error, and how it runs commands."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence


class LabError(Exception):
    """Why the lab cannot run or do something: one sentence with the remedy."""


def call(*words: str, patience_s: float = 20.0, stdin: str | None = None) -> str:
    """The output of a command. Raises LabError with its error message if it fails or takes too long."""
    try:
        done = subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=patience_s, check=False)
    except subprocess.TimeoutExpired:
        raise LabError(f"`{_shown(words)}` was not done after {patience_s:g} s") from None
    except OSError as error:
        raise LabError(f"`{_shown(words)}` cannot be run: {error.strerror}") from None
    if done.returncode:
        complaint = " ".join((done.stderr or done.stdout).split())[:300]
        raise LabError(f"`{_shown(words)}` failed: {complaint or f'status {done.returncode}'}")
    return done.stdout


def wait_for(happened: Callable[[], bool], what: str, patience_s: float) -> None:
    """Poll until it happened. Raises LabError after ``patience_s``."""
    deadline = time.monotonic() + patience_s
    while not happened():
        if time.monotonic() > deadline:
            raise LabError(f"{what} was not seen within {patience_s:g} s")
        time.sleep(0.1)


def _shown(words: Sequence[str]) -> str:
    text = " ".join(words)
    return text if len(text) <= 120 else text[:119] + "…"
