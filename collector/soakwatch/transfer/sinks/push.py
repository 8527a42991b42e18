"""Sends a whole record to a sink, including its verdict."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from soakwatch.record.backlog import backlog, cursor_numbers
from soakwatch.transfer.sinks.abc import Destination, RefusedLine
from soakwatch.transfer.sinks.feed import Feed, FeedState, FeedStoppedError

_MAX_REFUSED = 100


@dataclass(frozen=True, slots=True)
class PushResult:
    """Number of lines written and refused for good (the first hundred with reasons, and counts for the first hundred
    reasons), and why the rest was given up (None: all was sent)."""

    written: int
    rejected: int
    refused: tuple[RefusedLine, ...]
    error: str | None
    reasons: Mapping[str, int] = field(default_factory=dict)


def push(
    path: Path, run: str, to: Destination, patience_s: float, progress: Callable[[str], None] = lambda _: None
) -> PushResult:
    """Send everything; give up if the sink accepts nothing for ``patience_s`` seconds. ``progress`` takes a few words
    at each change.

    Raises RecordError for an unreadable record, PlanError for an unreadable token.
    """
    refused: list[RefusedLine] = []
    reasons: Counter[str] = Counter()
    stop = threading.Event()
    timers: list[threading.Timer] = []

    def refuse(line: RefusedLine) -> None:
        if len(refused) < _MAX_REFUSED:
            refused.append(line)
        if line.reason in reasons or len(reasons) < _MAX_REFUSED:
            reasons[line.reason] += 1

    def report(state: FeedState) -> None:
        if state.error is None:
            while timers:
                timers.pop().cancel()
            sent = sum(cursor_numbers(state.cursor).values())
            progress(f"{sent / total:.0%} sent, {sink.written:,} lines" if total else "")
        elif not timers:  # another error does not restart the wait
            progress(f"{state.error}; trying again")
            timer = threading.Timer(patience_s, stop.set)
            timer.daemon = True
            timers.append(timer)
            timer.start()

    total = backlog(path, "").polls
    sink = to.open(refuse)
    feed = Feed(path, run, sink, stop, report)
    error = None
    try:
        feed.finish()
    except FeedStoppedError:
        error = feed.state.error or "it was stopped"
    finally:
        while timers:
            timers.pop().cancel()
        sink.close()
    return PushResult(sink.written, sink.refused, tuple(refused), error, reasons)
