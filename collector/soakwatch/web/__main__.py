"""The server beside a run, in a process of its own: ``python -m soakwatch.web FOLDER --fd N …``.

However much is drawn and asked, it costs the polls of the run nothing but what the machine has left. It ends with the
run: when its standard input does, or some seconds later if a page is open that fetches the verdict and the report.
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
from soakwatch.web.access import token_for
from soakwatch.web.serving import OneRun, Served, serve

_NICE = 5
_LOOKING_S = 6.0  # a page asks every other second: with none for so long nobody looks
_QUIET_S, _LONGEST_S = 3.0, 10.0  # what a page that is open may take along when the run has ended


def main() -> int:
    """Serve until standard input ends."""
    words = argparse.ArgumentParser(prog="python -m soakwatch.web", description=__doc__)
    words.add_argument("folder", type=Path, help="the run")
    words.add_argument("--fd", type=int, required=True, help="the socket that listens")
    words.add_argument("--ahead", type=int, default=0, help="of the boot clock: the run's clock, in nanoseconds")
    words.add_argument("--token", help="where the token is, if not in the run's folder")
    words.add_argument("--cert", help="certificate (PEM)")
    words.add_argument("--key", help="the certificate's key (PEM)")
    told = words.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the run decides when it ends
    with suppress(OSError):
        os.nice(_NICE)
    plan = WebPlan("", told.token, told.cert, told.key)
    ahead: int = told.ahead
    runs = OneRun(told.folder, lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME) + ahead)
    with serve(plan, token_for(plan, told.folder), runs, socket.socket(fileno=told.fd)) as served:
        ended = threading.Event()
        threading.Thread(target=_until_the_end, args=(ended,), daemon=True).start()
        asked = Asked()
        while served.alive and not ended.wait(1.0):
            asked.look(served)
        asked.look(served)
        last_s = time.monotonic() + (_LONGEST_S if asked.quiet_s < _LOOKING_S else 0.0)
        while served.alive and asked.quiet_s < _QUIET_S and time.monotonic() < last_s:
            time.sleep(0.2)
            asked.look(served)
    return 0 if ended.is_set() else 1


class Asked:
    """How long nobody has asked anything, as far as looking now and then tells."""

    def __init__(self) -> None:
        self._answers, self._last_s = 0, float("-inf")

    def look(self, served: Served) -> None:
        """See whether it was asked since."""
        if served.busy or served.answers != self._answers:
            self._answers, self._last_s = served.answers, time.monotonic()

    @property
    def quiet_s(self) -> float:
        """Seconds since the last question; endless if there was none."""
        return time.monotonic() - self._last_s


def _until_the_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


if __name__ == "__main__":
    sys.exit(main())
