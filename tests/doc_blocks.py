"""The blocks of code of a page: ``sh`` blocks are run in one shell, and the ``text`` behind one is what they print."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NEXT = "--- the next block ---"


@dataclass(frozen=True, slots=True)
class Step:
    """A block of commands, and the lines that the page says it prints; none where the page says nothing."""

    commands: str
    told: tuple[str, ...] = ()


def blocks_of(page: str, kind: str) -> list[str]:
    """The texts of all blocks of a kind."""
    return [match["text"] for match in _BLOCK.finditer(page) if match["kind"] == kind]


def steps_of(page: str) -> list[Step]:
    """The commands of a page, in order.

    >>> steps_of("```sh\\necho 1\\n```\\nThis prints\\n```text\\n1\\n```")
    [Step(commands='echo 1\\n', told=('1',))]
    """
    steps: list[Step] = []
    for match in _BLOCK.finditer(page):
        if match["kind"] == "sh":
            steps.append(Step(match["text"]))
        elif match["kind"] == "text" and steps:
            steps[-1] = Step(steps[-1].commands, tuple(match["text"].splitlines()))
    return steps


def run_steps(
    steps: Sequence[Step], folder: Path, environment: Mapping[str, str], timeout_s: float, under: Sequence[str] = ()
) -> list[str]:
    """What each step prints, standard output and errors together, in one bash; what it left running is ended. ``under``
    is a command that runs the bash."""
    script = "".join(f"{step.commands}\necho '{_NEXT}'\n" for step in steps)
    with subprocess.Popen(
        [*under, "bash", "-c", script],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as shell:
        try:
            printed, _ = shell.communicate(timeout=timeout_s)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
    return printed.split(f"{_NEXT}\n")[: len(steps)]


def missing(step: Step, printed: str) -> Iterator[str]:
    """The lines that the page tells and the commands did not print: ``…`` is any text, a number any number.

    >>> list(missing(Step("", ("grew by 9.1 MiB, …", "grew by … KiB")), "grew by 8 MiB, more"))
    ['grew by … KiB']
    """
    for line in step.told:
        if re.search(f"^{'.*'.join(map(_any_numbers, line.split('…')))}$", printed, re.MULTILINE) is None:
            yield line


def _any_numbers(text: str) -> str:
    """A pattern of a text, with any number for each of its numbers."""
    return _NUMBER.pattern.join(map(re.escape, _NUMBER.split(text)))
