"""Logs what native libraries write to the terminal, as one line above the picture instead of through it.

A Rust or C library writes to descriptor 2, bypassing Python: for example a panic with 25 lines of backtrace for each
malformed answer of a device. Within the block that descriptor is a pipe.
"""

from __future__ import annotations

import os
import re
import select
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from soakwatch.cli.outlet import Terminal
from soakwatch.core.log_throttle import ThrottledLog
from soakwatch.core.text import one_line

_STDERR = 2
_CHUNK, _MOST, _JOIN_S = 65536, 300, 2.0
_PAUSE_S, _MOST_AT_ONCE = 0.05, 2**18  # what a library writes in several pieces within this time is one message
_NOISE = re.compile(r"\s*(\d+: .*|at .*|stack backtrace:|note: .*|)")


def sentence_of(text: str) -> str:
    """A library's message in one line, without backtrace and hints.

    >>> panic = "thread '<unnamed>' panicked at src/ber.rs:7:9:\\nno tag\\nstack backtrace:\\n   0: rust\\n   at ./x"
    >>> sentence_of(panic)
    "thread '<unnamed>' panicked at src/ber.rs:7:9: no tag"
    >>> sentence_of("   3: core::panicking\\nnote: run with RUST_BACKTRACE=1")
    ''
    """
    return one_line(" ".join(line.strip() for line in text.splitlines() if not _NOISE.fullmatch(line)), _MOST)


@contextmanager
def native_stderr_logged(terminal: Terminal) -> Iterator[None]:
    """Log what anything but Python writes to descriptor 2, one line each, rate-limited.

    Python's own output still goes to ``terminal``. Does nothing if standard error is not descriptor 2.
    """
    saved = _saved()
    if saved is None:
        yield
        return
    out, into = os.pipe()
    reading = threading.Thread(target=_log, args=(out,), name="stderr", daemon=True)
    try:
        sys.stderr.flush()
        try:
            reading.start()  # first: without memory for its stack, standard error stays where it leads
        except RuntimeError:
            os.close(out)
            os.close(into)
            raise
        with terminal.moved(_STDERR, saved):
            os.dup2(into, _STDERR)
            os.close(into)
            try:
                yield
            finally:
                os.dup2(saved, _STDERR)  # the pipe has no writer left, so its reader ends
                reading.join(_JOIN_S)
    finally:
        os.close(saved)


def _saved() -> int | None:
    """A duplicate of standard error that children do not inherit; None if that is not descriptor 2."""
    try:
        is_usual = sys.stderr is not None and sys.stderr.fileno() == _STDERR
        return os.dup(_STDERR) if is_usual else None
    except (OSError, ValueError):
        return None


def _log(out: int) -> None:
    """Log until the last writer has closed the pipe."""
    complaint = ThrottledLog("a library")
    with os.fdopen(out, "rb", buffering=0) as pipe:
        while text := pipe.read(_CHUNK):
            while len(text) < _MOST_AT_ONCE and select.select([pipe], [], [], _PAUSE_S)[0]:
                more = pipe.read(_CHUNK)
                if not more:
                    break
                text += more
            sentence = sentence_of(text.decode("utf-8", "replace"))
            if sentence:
                complaint.failed(time.monotonic_ns(), sentence)
