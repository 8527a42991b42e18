"""Starts, restarts and stops the web server of a run in a child process; the run goes on if it fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.installed_code import REPLACED, code_stamp
from soakwatch.core.supervised_child import Child, RestartPauses, python_module
from soakwatch.plan.web import WebPlan

if TYPE_CHECKING:
    from soakwatch.web.listener import ServerSocket

_RESTART_PAUSE_S = 1.0  # the first; each later one is twice as long
_MAX_RESTARTS = 5
_STOP_TIMEOUT_S = 15.0
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
    plan: WebPlan | None, folder: Path, now_ns: Callable[[], int], complain: Callable[[str], None]
) -> Iterator[WebNotice]:
    """Serve a run from a child process within the block.

    If that fails (port in use, invalid certificate), ``complain`` gets one sentence and the run goes on.
    """
    if plan is None:
        yield WebNotice()
        return
    # Imported here: a run without a web server does not load HTTP.
    from soakwatch.web.access import one_time_code
    from soakwatch.web.listener import open_server_socket

    opening = open_server_socket(plan, folder)
    try:
        server_socket = opening.__enter__()
    except (SoakwatchError, OSError) as error:
        why = str(error) if isinstance(error, SoakwatchError) else error.strerror or type(error).__name__
        complain(f"warning: {why}; the run goes on without its page and event API")
        yield WebNotice()
        return
    try:
        with _Process(plan, folder, server_socket, now_ns, complain) as end:
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
    ) -> None:
        ahead = now_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        given = {"token": plan.token, "cert": plan.cert, "key": plan.key}
        self._fd, self._complain = server_socket.listener.fileno(), complain
        self._command = python_module(
            "soakwatch.web",
            str(folder),
            "--fd",
            str(self._fd),
            f"--ahead={ahead}",
            *(f"--{name}={value}" for name, value in given.items() if value is not None),
            *(f"--name={name}" for name in plan.names),
        )
        self._stamp = code_stamp()
        self._over, self._lock = threading.Event(), threading.Lock()
        self._child = self._start()
        self._watching = threading.Thread(target=self._watch, name="web", daemon=True)

    def __enter__(self) -> Callable[[], None]:
        self._watching.start()
        return self._end

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        with self._lock:  # no restart from here on
            self._over.set()
        self._child.stop(_STOP_TIMEOUT_S)
        self._watching.join(_STOP_TIMEOUT_S)

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
            replaced = "" if code_stamp() == self._stamp else f" ({REPLACED})"
            self._complain(f"warning: the server of the page ended (exit code {code}) and is started again{replaced}")
            with self._lock:
                if not self._over.is_set():
                    self._child = self._start()
        if not self._over.is_set():
            replaced = "" if code_stamp() == self._stamp else f" ({REPLACED})"
            self._complain(f"warning: the server of the page ended for good{replaced}; the run goes on without it")
