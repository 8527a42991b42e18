"""Ends a command when the process that started it is gone: ``python -m soakwatch.core.workers.leash COMMAND…``.

A killed cluster worker must not leave a run behind that holds the testbed and drives its load. This process starts the
command; when its own input ends, it sends SIGINT, so that a load is stopped in order, and SIGKILL after a grace. It
passes SIGINT and SIGTERM on, and exits as the command did.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from types import FrameType

GRACE_S = 120.0
"""From SIGINT to SIGKILL: time for a run to stop its load and sources and be judged."""


def leashed(command: list[str]) -> list[str]:
    """Wraps a command. Start it in its own session, with a pipe as its input."""
    return [sys.executable, "-P", "-m", "soakwatch.core.workers.leash", *command]


def main(command: list[str]) -> None:
    """Runs a command until it ends or the input does; never returns."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, close_fds=False)  # inherits descriptors that hold locks

    def pass_on(number: int, _frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            child.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    threading.Thread(target=_watch, args=(child,), daemon=True).start()
    code = child.wait()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(max(0, code))


def _watch(child: subprocess.Popen[bytes]) -> None:
    while os.read(0, 4096):
        pass
    with suppress(ProcessLookupError):
        child.send_signal(signal.SIGINT)
    try:
        child.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
