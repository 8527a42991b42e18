"""Commands on terminals that vanish, fill up or stop: the ways, and what is left of such a run."""

from __future__ import annotations

import errno
import os
import pty
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.commands import SOAKWATCH, environment

from soakwatch.record import RecordView

PLAN = """\
name: short
duration: {seconds}s
targets: {{dut: {{sources: [{{local: {{interval: 200ms, probes: [cpu]}}}}]}}}}
hooks: [{{on: end, run: [sh, -c, 'echo "$SOAKWATCH_OUTCOME" >> told.txt']}}]
"""
REPORTS = ("report.html", "verdict.json", "junit.xml", "report.md")


@dataclass
class OnTerminal:
    """A command whose terminal is to vanish: ``vanish`` does it, ``close`` is called at its end."""

    process: subprocess.Popen[bytes]
    vanish: Callable[[], None]
    close: Callable[[], None]


Way = Callable[[list[object], Path], OnTerminal]


def _started(words: list[object], folder: Path, **streams: int | None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(map(str, words)),
        cwd=folder,
        env={**environment(), "TERM": "xterm-256color"},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        **streams,
    )


def _nothing() -> None:
    """It was gone from the start."""


def _shell(redirections: str) -> Way:
    def start(words: list[object], folder: Path) -> OnTerminal:
        line = " ".join(f"'{word}'" for word in words)
        process = _started(["sh", "-c", f"exec {line} {redirections}"], folder)
        return OnTerminal(process, _nothing, _nothing)

    return start


def _pipe(*, both: bool) -> Way:
    """The reader of a pipe ends, as that of ``| head`` does; with ``both`` standard error goes there too."""

    def start(words: list[object], folder: Path) -> OnTerminal:
        ours, theirs = os.pipe()
        process = _started([SOAKWATCH, *words], folder, stdout=theirs, stderr=theirs if both else subprocess.DEVNULL)
        os.close(theirs)
        return OnTerminal(process, lambda: _closed(ours), lambda: _closed(ours))

    return start


def _terminal(*, hang_up: bool, read: bool = True) -> Way:
    """A terminal that vanishes, with SIGHUP or without; without ``read`` it is there and takes nothing more."""

    def start(words: list[object], folder: Path) -> OnTerminal:
        ours, theirs = pty.openpty()
        process = _started([SOAKWATCH, *words], folder, stdout=theirs, stderr=theirs)
        os.close(theirs)
        gone = threading.Event()
        if read:
            threading.Thread(target=_read, args=(ours, gone), daemon=True).start()

        def vanish() -> None:
            gone.set()
            if read:
                _closed(ours)
            if hang_up:
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGHUP)

        return OnTerminal(process, vanish, lambda: _closed(ours))

    return start


def _read(descriptor: int, gone: threading.Event) -> None:
    os.set_blocking(descriptor, False)
    while not gone.is_set():
        try:
            if not os.read(descriptor, 1 << 16):
                return
        except BlockingIOError:
            time.sleep(0.02)
        except OSError as error:
            if error.errno in {errno.EIO, errno.EBADF}:
                return
            raise


def _closed(descriptor: int) -> None:
    with suppress(OSError):
        os.close(descriptor)


def ways() -> Mapping[str, Way]:
    """Every way to lose a terminal, by name."""
    run = {
        "stdout closed": ">&-",
        "stdout and stderr closed": ">&- 2>&-",
        "a full disk": ">/dev/full",
        "a full disk for both": ">/dev/full 2>&1",
        "no standard stream at all": "<&- >&- 2>&-",
    }
    shells: dict[str, Way] = {name: _in_shell(text) for name, text in run.items()}
    return shells | {
        "the pipe's reader gone": _pipe(both=False),
        "both pipes' reader gone": _pipe(both=True),
        "the terminal gone": _terminal(hang_up=False),
        "the terminal gone, with SIGHUP": _terminal(hang_up=True),
        "a terminal that takes nothing": _terminal(hang_up=False, read=False),
    }


def _in_shell(text: str) -> Way:
    start = _shell(text)
    return lambda words, folder: start([SOAKWATCH, *words], folder)


def shortfalls(folder: Path, code: int) -> list[str]:
    """What a run in a folder owes and did not do, in words; nothing where it lost nothing."""
    problems = []
    told = folder.parent / "told.txt"
    try:
        with RecordView.open(folder) as view:
            metas = view.metas()
    except Exception as error:  # noqa: BLE001 - whatever it is, the run has failed
        return [f"exit code {code}, no record: {error}"]
    verdict = metas.get("verdict")
    codes = {"pass": 0, "fail": 1, "inconclusive": 3}
    if verdict is None or codes[verdict] != code:
        problems.append(f"exit code {code} with the verdict {verdict}")
    problems += [f"no {name}" for name in REPORTS if not (folder / name).is_file()]
    lines = told.read_text(encoding="utf-8").splitlines() if told.is_file() else []
    if lines != [verdict]:
        problems.append(f"the hook said {lines} of the verdict {verdict}")
    return problems
