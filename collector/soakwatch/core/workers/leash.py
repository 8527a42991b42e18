"""A command that ends when whoever started it is gone: ``python -m soakwatch.core.workers.leash COMMAND…``.

A worker of a cluster that is killed must not leave a run behind that holds the testbed and drives its load. This
process holds the command; it ends the command when its own input ends: by SIGINT, so that a load is stopped in order,
and by SIGKILL after a grace. It passes SIGINT and SIGTERM on, and ends as the command ended.
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
"""From SIGINT to SIGKILL: a run stops its load and its sources, and is judged."""


def leashed(command: list[str]) -> list[str]:
    """The command that holds this one. Start it in a session of its own, with a pipe as its input."""
    return [sys.executable, "-P", "-m", "soakwatch.core.workers.leash", *command]


def main(command: list[str]) -> None:
    """Run a command to its end, or to that of the input; never returns."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, close_fds=False)  # locks are held by descriptors

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
