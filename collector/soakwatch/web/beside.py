"""The server beside a run: it comes and goes with it, and whatever becomes of it, the run goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.supervised_child import Child, RestartPauses, python_module
from soakwatch.plan.web import WebPlan

if TYPE_CHECKING:
    from soakwatch.web.listener import Place

_RESTART_PAUSE_S = 1.0  # the first; each is twice the one before
_MAX_RESTARTS = 5
_END_S = 15.0
_LINK_S = 86400.0  # so long the link of a run is good, once


@dataclass(frozen=True, slots=True)
class Told:
    """What people are told of the server: for a log, and the link for a browser, which works once."""

    words: str = ""
    link: str = ""


@contextmanager
def web_beside(
    plan: WebPlan | None, folder: Path, now_ns: Callable[[], int], complain: Callable[[str], None]
) -> Iterator[Told]:
    """Serve a run while the block lasts, in a process beside it.

    What makes that impossible (a port that is taken, a certificate that is none) is one sentence to ``complain``.
    """
    if plan is None:
        yield Told()
        return
    # What speaks HTTP is not for runs without it.
    from soakwatch.web.access import one_time_code
    from soakwatch.web.listener import place_of

    opening = place_of(plan, folder)
    try:
        place = opening.__enter__()
    except (SoakwatchError, OSError) as error:
        why = str(error) if isinstance(error, SoakwatchError) else error.strerror or type(error).__name__
        complain(f"warning: {why}; the run goes on without its page and event API")
        yield Told()
        return
    try:
        with _Process(plan, folder, place, now_ns, complain):
            code = one_time_code(place.token, time.time() + _LINK_S)
            yield Told(f". API: {place.told}", f"{place.url}/enter/{code}")
    finally:
        opening.__exit__(None, None, None)


class _Process:
    """The process; one that dies is started again, a few times. The socket is the run's: who asks meanwhile waits."""

    def __init__(
        self, plan: WebPlan, folder: Path, place: Place, now_ns: Callable[[], int], complain: Callable[[str], None]
    ) -> None:
        ahead = now_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        given = {"token": plan.token, "cert": plan.cert, "key": plan.key}
        self._fd, self._complain = place.listener.fileno(), complain
        self._command = python_module(
            "soakwatch.web",
            str(folder),
            "--fd",
            str(self._fd),
            f"--ahead={ahead}",
            *(f"--{name}={value}" for name, value in given.items() if value is not None),
        )
        self._over, self._lock = threading.Event(), threading.Lock()
        self._child = self._start()
        self._watching = threading.Thread(target=self._watch, name="web", daemon=True)

    def __enter__(self) -> None:
        self._watching.start()

    def __exit__(self, *_: object) -> None:
        with self._lock:  # no other one is started from here on
            self._over.set()
        self._child.stop(_END_S)
        self._watching.join(_END_S)

    def _start(self) -> Child:
        return Child(self._command, output=False, pass_fds=(self._fd,))

    def _watch(self) -> None:
        pauses = RestartPauses(_RESTART_PAUSE_S, _RESTART_PAUSE_S * 2**_MAX_RESTARTS)
        for restarts in range(_MAX_RESTARTS + 1):
            code = self._child.wait()
            if self._over.is_set():
                return
            self._child.close_input()
            if restarts == _MAX_RESTARTS or self._over.wait(pauses.next_s()):
                break
            self._complain(f"warning: the server of the page ended (exit code {code}) and is started again")
            with self._lock:
                if not self._over.is_set():
                    self._child = self._start()
        if not self._over.is_set():
            self._complain("warning: the server of the page ended for good; the run goes on without it")
