"""``python -m soakwatch.transfer.sinks FOLDER NUMBER``: the process that feeds one sink of a run's plan.

It reads the cursor as the first line of its input. A later line ``end`` says that the record is complete; the end of
the input says that nobody waits any more. Each line of its output is one JSON object with the state of the feed; the
last one has ``done``.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

from soakwatch.core.errors import RecordError, SoakwatchError
from soakwatch.core.private_files import open_private, shared_mode
from soakwatch.judge.record_verdict import recorded_plan
from soakwatch.record import RECORD_NAME, RecordView
from soakwatch.transfer.sinks.abc import RefusedLine
from soakwatch.transfer.sinks.feed import Feed, FeedState, FeedStoppedError
from soakwatch.transfer.sinks.registry import destination
from soakwatch.transfer.sinks.run_tag import run_tag

STEP_EVERY_S = 2.0
_MAX_REFUSED_BYTES = 1_000_000


class _Requests:
    """What the run has requested: to feed the rest (``ending``), or to ``stop``."""

    def __init__(self) -> None:
        self.stop, self.ending, self.either = threading.Event(), threading.Event(), threading.Event()

    def listen(self) -> None:
        for line in sys.stdin:
            if line.strip() == "end":
                self.ending.set()
                self.either.set()
        self.stop.set()
        self.either.set()


class _RefusedLines:
    """The lines that a database refused for good, each after its reason, in a file next to the record (up to 1 MB).

    The first refused line creates the file. If it cannot be written, the line is only counted.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, line: RefusedLine) -> None:
        with suppress(OSError):
            if not self._path.exists() or self._path.stat().st_size < _MAX_REFUSED_BYTES:
                with open_private(self._path, shared_mode(self._path.with_name(RECORD_NAME)), append=True) as file:
                    file.write(f"# {line.reason}\n".encode(errors="replace") + line.line[:20_000] + b"\n")


def main() -> int:
    """Feed until the record is complete. Returns 0 if all was written, else 1."""
    os.nice(10)
    folder, number = Path(sys.argv[1]), int(sys.argv[2])
    cursor = sys.stdin.readline().strip()
    requests = _Requests()
    threading.Thread(target=requests.listen, daemon=True).start()
    try:
        with RecordView.open(folder) as view:
            to = destination(recorded_plan(view).sinks[number])
        kept = _RefusedLines(folder / f"sink-{number + 1}-refused.txt")
        reasons: list[str] = []

        def refuse(line: RefusedLine) -> None:
            kept.add(line)
            reasons[:] = [line.reason]

        sink = to.open(refuse)
        try:

            def report(state: FeedState, *, done: bool = False) -> None:
                message = {
                    "cursor": state.cursor,
                    "error": state.error,
                    "written": sink.written,
                    "refused": sink.refused,
                    "reason": reasons[0] if reasons else None,
                    "done": done,
                }
                print(json.dumps(message), flush=True)

            feed = Feed(folder, run_tag(folder), sink, requests.stop, report, cursor, beside_run=True)
            while not requests.either.is_set():
                if not _step(feed):
                    requests.either.wait(STEP_EVERY_S)
            if requests.stop.is_set() and not requests.ending.is_set():
                feed.last_word()  # the run was killed, so only this process can tell the database
                return 1
            feed.finish()
            report(feed.state, done=True)
        finally:
            sink.close()
    except FeedStoppedError:
        return 1
    except SoakwatchError as error:
        print(json.dumps({"broken": str(error)}), flush=True)
        return 1
    except Exception as defect:  # noqa: BLE001 - the parent wants to know, and restarts this process
        # Only the type: the text of an unforeseen exception may quote a secret.
        print(json.dumps({"defect": type(defect).__name__}), flush=True)
        return 1
    return 0


def _step(feed: Feed) -> bool:
    try:
        return feed.step()
    except RecordError:  # being closed, or the disk is full: a later step will tell
        return False


if __name__ == "__main__":
    sys.exit(main())
