"""The server of a running run, in a process of its own: ``python -m soakwatch.web FOLDER --fd N …``.

It has a lower priority than the run, so it does not delay polls. It ends with its standard input, when the run does; if
a page is open, some seconds later, so that it can still fetch verdict and report. When nobody has looked for a
while it ends with ``UNUSED``: the run starts another one for whoever looks next. It prints each one-time code that
was used, which the next one must know.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from soakwatch.plan.web import WebPlan
from soakwatch.web.access import UNUSED, token_for
from soakwatch.web.auth import UsedCodes
from soakwatch.web.server import OneRun, Served, serve

_NICE = 5
_VIEWER_S = 6.0  # an open page requests every 2 s: after this long without a request none is open
_QUIET_S, _MAX_WAIT_S = 3.0, 10.0  # time for open pages to fetch what is left when the run has ended


def main() -> int:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m soakwatch.web", description=__doc__)
    parser.add_argument("folder", type=Path, help="the run")
    parser.add_argument("--fd", type=int, required=True, help="the socket that listens")
    parser.add_argument("--ahead", type=int, default=0, help="of the boot clock: the run's clock, in nanoseconds")
    parser.add_argument("--token", help="where the token is, if not in the run's folder")
    parser.add_argument("--cert", help="certificate (PEM)")
    parser.add_argument("--key", help="the certificate's key (PEM)")
    parser.add_argument("--name", action="append", default=[], help="a further host name of this server")
    parser.add_argument("--used", action="append", default=[], help="a one-time code that was used")
    parser.add_argument("--unused", type=float, required=True, help="seconds without a request after which it ends")
    given = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the run decides when it ends
    with suppress(OSError):
        os.nice(_NICE)
    plan = WebPlan(token=given.token, cert=given.cert, key=given.key, names=tuple(given.name))
    ahead_ns: int = given.ahead
    runs = OneRun(given.folder, lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME) + ahead_ns)
    used = UsedCodes(given.used, lambda code: print(code, flush=True))
    with serve(plan, token_for(plan, given.folder), runs, socket.socket(fileno=given.fd), used=used) as served:
        ended = threading.Event()
        threading.Thread(target=_until_the_end, args=(ended,), daemon=True).start()
        activity = Activity()
        while served.alive and not ended.wait(1.0):
            activity.update(served)
            if activity.quiet_s >= given.unused and not served.connected:
                return UNUSED
        activity.update(served)
        last_s = time.monotonic() + (_MAX_WAIT_S if activity.quiet_s < _VIEWER_S else 0.0)
        while served.alive and activity.quiet_s < _QUIET_S and time.monotonic() < last_s:
            time.sleep(0.2)
            activity.update(served)
    return 0 if ended.is_set() else 1


class Activity:
    """Time without requests, by sampling the server's counters."""

    def __init__(self) -> None:
        self._answers, self._last_s = 0, time.monotonic()  # it was started for somebody

    def update(self, served: Served) -> None:
        """Note whether there was a request since the last call."""
        if served.busy or served.answers != self._answers:
            self._answers, self._last_s = served.answers, time.monotonic()

    @property
    def quiet_s(self) -> float:
        """Seconds since the last request, or since the start."""
        return time.monotonic() - self._last_s


def _until_the_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


if __name__ == "__main__":
    sys.exit(main())
