"""``python -m soakwatch.sinks FOLDER NUMBER``: feeds a sink of a run's plan, in a process of its own.

Its input is a line with the cursor, then nothing until the run is over: a line ``end`` says that nothing is added to
the record any more, and the end of the input that nobody waits. Each line of its output is one JSON object with what
the feed has come to; the last one has ``done``.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

from soakwatch.core.errors import RecordError, SoakwatchError
from soakwatch.judge.recorded import recorded_plan
from soakwatch.record import RecordView
from soakwatch.sinks.feed import Feed, State, UnwantedError
from soakwatch.sinks.influxdb.write import Refused, Writer
from soakwatch.sinks.refusals import Refusals

LOOK_EVERY_S = 2.0


class _Wishes:
    """What the run wants: that the feed comes to its end, or that it stops."""

    def __init__(self) -> None:
        self.stop, self.ending, self.either = threading.Event(), threading.Event(), threading.Event()

    def listen(self) -> None:
        for line in sys.stdin:
            if line.strip() == "end":
                self.ending.set()
                self.either.set()
        self.stop.set()
        self.either.set()


def main() -> int:
    """Feed until the record is over. Returns 0 if all was written, 1 if not."""
    os.nice(10)
    folder, number = Path(sys.argv[1]), int(sys.argv[2])
    cursor = sys.stdin.readline().strip()
    wishes = _Wishes()
    threading.Thread(target=wishes.listen, daemon=True).start()
    try:
        with RecordView.open(folder) as view:
            to = recorded_plan(view).sinks[number]
        refusals = Refusals(folder / f"sink-{number + 1}-refused.txt")
        latest: list[str] = []

        def refused(one: Refused) -> None:
            refusals.add(one)
            latest[:] = [one.why]

        writer = Writer(to, refused)
        try:

            def tell(state: State, *, done: bool = False) -> None:
                told = {
                    "cursor": state.cursor,
                    "trouble": state.trouble,
                    "written": writer.written,
                    "refused": writer.refused,
                    "why": latest[0] if latest else None,
                    "done": done,
                }
                print(json.dumps(told), flush=True)

            feed = Feed(folder, folder.name, writer, wishes.stop, tell, cursor)
            while not wishes.either.is_set():
                if not _look(feed):
                    wishes.either.wait(LOOK_EVERY_S)
            if wishes.stop.is_set() and not wishes.ending.is_set():
                return 1
            feed.finish()
            tell(feed.state, done=True)
        finally:
            writer.close()
    except UnwantedError:
        return 1
    except SoakwatchError as error:
        print(json.dumps({"broken": str(error)}), flush=True)
        return 1
    except Exception as defect:  # noqa: BLE001 - whoever started this wants to know, and starts it again
        # The type and no text: an unforeseen exception may quote a secret.
        print(json.dumps({"defect": type(defect).__name__}), flush=True)
        return 1
    return 0


def _look(feed: Feed) -> bool:
    try:
        return feed.look()
    except RecordError:  # it is being closed just now, or the disk is full: a later look tells
        return False


if __name__ == "__main__":
    sys.exit(main())
