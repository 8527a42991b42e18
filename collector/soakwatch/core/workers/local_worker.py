"""The worker process of ``LocalProcesses``: reads jobs, runs them, answers; ends when its input is closed."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import cast

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.workers.executor import WANTED, ClusterError
from soakwatch.core.workers.local import GRACE_S


class _Wanted:
    """Whether results are still wanted: the current job's until a byte comes on the input, all until the input ends.
    Then only a job that asks gets the grace."""

    def __init__(self) -> None:
        self._asked = False
        self._ended = False
        self.over = False

    def __call__(self) -> bool:
        self._asked = True
        return not (self.over or self._ended)

    def begin(self) -> None:
        """The next job begins; it has not asked yet."""
        self._asked = self._ended = False

    def watch(self) -> None:
        """Waits for the end of the input, then kills this session, after ``GRACE_S`` if the job asks."""
        while os.read(0, 4096):
            self._ended = True
        self.over = True
        until = time.monotonic() + GRACE_S
        while self._asked and time.monotonic() < until:
            time.sleep(0.1)
        os.killpg(os.getpgid(0), signal.SIGKILL)


def main(descriptor: int) -> None:
    """Runs jobs that come over this descriptor until its other end is closed."""
    connection = Connection(descriptor)
    wanted = _Wanted()
    threading.Thread(target=wanted.watch, daemon=True).start()
    WANTED.set(wanted)
    while True:
        try:
            payload = connection.recv_bytes()
        except (EOFError, OSError):
            os._exit(0)
        wanted.begin()
        answer = _answer(payload)
        try:
            connection.send_bytes(answer)
        except OSError:
            os._exit(0)
        if wanted.over:
            os._exit(0)
        wanted.begin()  # between jobs there is nothing to wait for


def _answer(payload: bytes) -> bytes:
    try:
        function, arguments = cast("tuple[Callable[..., object], tuple[object, ...]]", pickle.loads(payload))  # noqa: S301
        return pickle.dumps((function(*arguments), None))
    except Exception as error:  # noqa: BLE001 - raised by the job's future
        if not isinstance(error, SoakwatchError):
            error.add_note("".join(traceback.format_exception(error)))
        try:
            answer = pickle.dumps((None, error))
            pickle.loads(answer)  # noqa: S301 - some exceptions can be pickled but not unpickled
        except Exception:  # noqa: BLE001 - whatever its class raises
            answer = pickle.dumps((None, ClusterError(f"{type(error).__name__}: {error}")))
        return answer
