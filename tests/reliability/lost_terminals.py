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
from dataclasses import dataclass, field
from pathlib import Path

from tests.commands import SOAKWATCH, environment

from soakwatch.core.errors import EXIT_INCONCLUSIVE, RecordError
from soakwatch.judge.verdict import EXIT_CODES
from soakwatch.record import RecordView
from soakwatch.report.files import REPORT_FILES
from soakwatch_model.finding import Outcome

PLAN = """\
name: short
duration: {seconds}s
targets: {{dut: {{sources: [{{local: {{interval: 200ms, probes: [cpu]}}}}]}}}}
hooks: [{{on: end, run: [sh, -c, 'echo "$SOAKWATCH_OUTCOME" >> "$SOAKWATCH_RUN/told.txt"']}}]
"""


@dataclass
class OnTerminal:
    """A command whose terminal is to vanish: ``vanish`` does it, ``close`` is called at its end."""

    process: subprocess.Popen[bytes]
    vanish: Callable[[], None]
    close: Callable[[], None]


Way = Callable[[list[object], Path], OnTerminal]


def _started(
    words: list[object], folder: Path, stdout: int | None = None, stderr: int | None = None
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(map(str, words)),
        cwd=folder,
        env={**environment(), "TERM": "xterm-256color", "XDG_RUNTIME_DIR": str(folder)},  # locks of its own
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        stdout=stdout,
        stderr=stderr,
    )


def _nothing() -> None:
    """It was gone from the start."""


def _shell(redirections: str) -> Way:
    def start(words: list[object], folder: Path) -> OnTerminal:
        line = " ".join(f"'{word}'" for word in (SOAKWATCH, *words))
        process = _started(["sh", "-c", f"exec {line} {redirections}"], folder)
        return OnTerminal(process, _nothing, _nothing)

    return start


@dataclass
class _Ours:
    """Our end of a pipe or a terminal, closed once: later its number may be that of another."""

    descriptor: int
    reader: threading.Thread | None = None
    gone: threading.Event = field(default_factory=threading.Event)

    def read(self) -> None:
        """Begins to take what is said at the other end, and to throw it away."""
        os.set_blocking(self.descriptor, False)
        self.reader = threading.Thread(target=self._take, daemon=True)
        self.reader.start()

    def _take(self) -> None:
        while not self.gone.is_set():
            try:
                if not os.read(self.descriptor, 1 << 16):
                    return
            except BlockingIOError:
                time.sleep(0.02)
            except OSError as error:
                if error.errno == errno.EIO:  # the other end is closed
                    return
                raise

    def close(self) -> None:
        """Closes it, if that has not been done."""
        if self.gone.is_set():
            return
        self.gone.set()
        if self.reader is not None:
            self.reader.join()
        os.close(self.descriptor)


def _pipe(*, both: bool) -> Way:
    """The reader of a pipe ends, as that of ``| head`` does; with ``both`` standard error goes there too."""

    def start(words: list[object], folder: Path) -> OnTerminal:
        ours, theirs = os.pipe()
        process = _started([SOAKWATCH, *words], folder, stdout=theirs, stderr=theirs if both else subprocess.DEVNULL)
        os.close(theirs)
        end = _Ours(ours)
        return OnTerminal(process, end.close, end.close)

    return start


def _terminal(*, hang_up: bool, read: bool = True) -> Way:
    """A terminal that vanishes, with SIGHUP or without; without ``read`` it is there and takes nothing more."""

    def start(words: list[object], folder: Path) -> OnTerminal:
        ours, theirs = pty.openpty()
        process = _started([SOAKWATCH, *words], folder, stdout=theirs, stderr=theirs)
        os.close(theirs)
        end = _Ours(ours)
        if read:
            end.read()

        def vanish() -> None:
            if read:
                end.close()
            if hang_up:
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGHUP)

        return OnTerminal(process, vanish, end.close)

    return start


def ways() -> Mapping[str, Way]:
    """Every way to lose a terminal, by name."""
    return {
        "stdout closed": _shell(">&-"),
        "stdout and stderr closed": _shell(">&- 2>&-"),
        "a full disk": _shell(">/dev/full"),
        "a full disk for both": _shell(">/dev/full 2>&1"),
        "no standard stream at all": _shell("<&- >&- 2>&-"),
        "the pipe's reader gone": _pipe(both=False),
        "both pipes' reader gone": _pipe(both=True),
        "the terminal gone": _terminal(hang_up=False),
        "the terminal gone, with SIGHUP": _terminal(hang_up=True),
        "a terminal that takes nothing": _terminal(hang_up=False, read=False),
    }


def catches_hang_up(pid: int) -> bool:
    """Whether a process has a handler of SIGHUP by now: before that a lost terminal ends it, as it ends any program."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return False
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (signal.SIGHUP - 1) & 1)


def shortfalls(run: Path, code: int | None, *, in_doubt: bool = False) -> list[str]:
    """What a run in a folder owes and did not do, in words; nothing where it lost nothing. Its hook may not
    have run where a kill left it ``in_doubt``; no exit code (None) where it was killed after all was done."""
    try:
        with RecordView.open(run) as view:
            verdict, reason = view.meta("verdict"), view.meta("reason") or ""
    except RecordError as error:
        return [f"exit code {code}, {error}"]
    if code == EXIT_INCONCLUSIVE and reason.endswith("nothing was polled"):
        return []  # the machine was too busy to begin within such a short run
    problems = []
    if verdict is None or code not in {None, EXIT_CODES[Outcome(verdict)]}:
        problems.append(f"exit code {code} with the verdict {verdict}")
    problems += [f"no {name}" for name in REPORT_FILES.values() if not (run / name).is_file()]
    told = run / "told.txt"
    lines = told.read_text(encoding="utf-8").splitlines() if told.is_file() else []
    if lines != [verdict] and not (in_doubt and not lines):
        problems.append(f"the hook said {lines} of the verdict {verdict}")
    return problems
