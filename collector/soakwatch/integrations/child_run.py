"""A run that a test session starts and ends: a process of its own with a folder and a log."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from soakwatch.core.errors import EXIT_FAIL, EXIT_INCONCLUSIVE, EXIT_PASS, RecordError, SoakwatchError
from soakwatch.core.private_files import open_private
from soakwatch.plan import load_plan
from soakwatch.record import RECORD_NAME, RecordView
from soakwatch.runs.catalog import new_folder

_START_S = 60.0
_END_S = 300.0  # judging a long run takes a while
_WORDS = {EXIT_PASS: "pass", EXIT_FAIL: "fail", EXIT_INCONCLUSIVE: "inconclusive"}


class Companion:
    """The process of one run. If its parent is killed, it continues to the end of its plan."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, log: Path) -> None:
        self.folder, self._log, self._process = folder, log, process
        self._ended: tuple[str, str | None] | None = None

    @classmethod
    def start(cls, plan: str | Path, runs: str | Path) -> Companion:
        """Start a run of a plan, and wait for its first recorded poll.

        Raises PlanError for an invalid plan, SoakwatchError with the run's last message if it does not start.
        """
        loaded = load_plan(plan)
        folder = new_folder(Path(runs), loaded.name, time.time_ns())
        Path(runs).mkdir(parents=True, exist_ok=True)
        log = folder.with_name(f"{folder.name}.log")
        command = [sys.executable, "-m", "soakwatch.cli", "run", str(plan), "--into", str(folder)]
        with open_private(log) as out:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )
        companion = cls(process, folder, log)
        try:
            companion._wait_for_polls()
        except BaseException:
            companion.end()
            raise
        return companion

    def end(self) -> tuple[str, str | None]:
        """End the run and wait until it is judged. Returns a sentence, and the outcome (None if it was not judged).

        Further calls return the same.
        """
        if self._ended is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGINT)
            try:
                code = self._process.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                code = self._process.wait()
            self._ended = self._outcome_text(code), _WORDS.get(code)
        return self._ended

    def _outcome_text(self, code: int) -> str:
        word = _WORDS.get(code)
        if word is None:
            return f"the run was not judged (exit code {code}): {self._last_word()}"
        reason = None
        with suppress(RecordError), RecordView.open(self.folder) as view:
            reason = view.meta("reason")
        return f"{word.upper()}: {reason or self._last_word()} ({self.folder / 'report.html'})"

    def _wait_for_polls(self) -> None:
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise SoakwatchError(f"the run did not start: {self._last_word()}")
            if (self.folder / RECORD_NAME).is_file():
                with suppress(RecordError), RecordView.open(self.folder) as view:
                    if view.counts().polls:
                        return
            time.sleep(0.2)
        raise SoakwatchError(f"the run recorded nothing within {_START_S:g} s: see {self._log}")

    def _last_word(self) -> str:
        with suppress(OSError):
            lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
            messages = [line for line in lines if line.startswith("soakwatch: ")] or lines
            if messages:
                return messages[-1].removeprefix("soakwatch: ")[:500]
        return f"see {self._log}"
