"""The web server of a run: a child process that starts when somebody connects, and ends when nobody looks any more.

The run listens, and the child answers; until the child has started, clients wait. The run goes on if it fails.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.installed_code import REPLACED, code_stamp
from soakwatch.core.supervised_child import Child, RestartPauses, python_module
from soakwatch.plan.web import WebPlan
from soakwatch.web.access import MAX_USED_CODES, UNUSED, one_time_code
from soakwatch.web.listener import ServerSocket, open_server_socket

_RESTART_PAUSE_S = 1.0  # the first; each later one is twice as long
_MAX_RESTARTS = 5
_STOP_TIMEOUT_S = 15.0
UNUSED_S = 300.0  # a page in the background asks every 15 s
_LINK_S = 86400.0  # validity of a run's link, which works once


@dataclass(frozen=True, slots=True)
class WebNotice:
    """What a run prints about its web server: text for the log, and a one-time link for the browser. ``end`` stops the
    server early."""

    words: str = ""
    link: str = ""
    end: Callable[[], None] = lambda: None


@contextmanager
def supervised_web(
    plan: WebPlan | None,
    folder: Path,
    now_ns: Callable[[], int],
    complain: Callable[[str], None],
    unused_s: float = UNUSED_S,
) -> Iterator[WebNotice]:
    """Serve a run from a child process within the block; it lives while somebody looks, and ``unused_s`` longer.

    If that fails (port in use, invalid certificate), ``complain`` gets one sentence and the run goes on.
    """
    if plan is None:
        yield WebNotice()
        return
    opening = open_server_socket(plan, folder)
    try:
        server_socket = opening.__enter__()
    except (SoakwatchError, OSError) as error:
        why = str(error) if isinstance(error, SoakwatchError) else error.strerror or type(error).__name__
        complain(f"warning: {why}; the run goes on without its page and event API")
        yield WebNotice()
        return
    try:
        with _Process(plan, folder, server_socket, now_ns, complain, unused_s) as end:
            code = one_time_code(server_socket.token, time.time() + _LINK_S)
            yield WebNotice(f". API: {server_socket.description}", f"{server_socket.url}/enter/{code}", end)
    finally:
        opening.__exit__(None, None, None)


class _Process:
    """The child process, restarted up to ``_MAX_RESTARTS`` times. The run keeps the socket, so clients wait
    meanwhile."""

    def __init__(
        self,
        plan: WebPlan,
        folder: Path,
        server_socket: ServerSocket,
        now_ns: Callable[[], int],
        complain: Callable[[str], None],
        unused_s: float,
    ) -> None:
        ahead = now_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        given = {"token": plan.token, "cert": plan.cert, "key": plan.key}
        self._listener, self._complain = server_socket.listener, complain
        fd = self._listener.fileno()
        self._command = python_module(
            "soakwatch.web",
            str(folder),
            "--fd",
            str(fd),
            f"--ahead={ahead}",
            f"--unused={unused_s:g}",
            *(f"--{name}={value}" for name, value in given.items() if value is not None),
            *(f"--name={name}" for name in plan.names),
        )
        self._stamp = code_stamp()
        self._over, self._lock = threading.Event(), threading.Lock()
        self._told, self._tell = os.pipe()
        self._used: list[str] = []
        self._child: Child | None = None
        self._watching = threading.Thread(target=self._watch, name="web", daemon=True)

    def __enter__(self) -> Callable[[], None]:
        self._watching.start()
        return self._end

    def __exit__(self, *_: object) -> None:
        self._end()
        if not self._watching.is_alive():
            os.close(self._told)
            os.close(self._tell)

    def _end(self) -> None:
        with self._lock:  # no start from here on
            self._over.set()
            os.write(self._tell, b".")
        if self._child is not None:
            self._child.stop(_STOP_TIMEOUT_S)
        self._watching.join(_STOP_TIMEOUT_S)

    def _start(self) -> Child | None:
        """Starts the child unless all is over."""
        with self._lock:
            if not self._over.is_set():
                used = (f"--used={code}" for code in self._used)
                self._child = Child((*self._command, *used), pass_fds=(self._listener.fileno(),))
                return self._child
        return None

    def _watch(self) -> None:
        pauses = RestartPauses(_RESTART_PAUSE_S, _RESTART_PAUSE_S * 2**_MAX_RESTARTS)
        restarts = 0
        while True:
            select.select([self._listener.fileno(), self._told], [], [])
            child = self._start()
            if child is None:
                return
            for line in child.lines():
                self._used = [*self._used, line.strip()][-MAX_USED_CODES:]
            code = child.exit_code
            if self._over.is_set():
                return
            if code == UNUSED:
                continue
            if restarts == _MAX_RESTARTS or self._over.wait(pauses.next_s()):
                break
            restarts += 1
            self._complain(
                f"warning: the server of the page ended (exit code {code}) and is started again{self._replaced()}"
            )
        if not self._over.is_set():
            self._complain(
                f"warning: the server of the page ended for good{self._replaced()}; the run goes on without it"
            )

    def _replaced(self) -> str:
        return "" if code_stamp() == self._stamp else f" ({REPLACED})"
