"""Starting a server of another project and ending it: its log is the error if it does not start."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import httpx

_MAX_START_S = 60.0
_MAX_STOP_S = 30.0


def started(
    command: Sequence[str], log: Path, answers: Callable[[], bool], env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """A server in a session of its own, in the folder of its log, that answers. ``answers`` may raise
    httpx.TransportError for not yet. Raises AssertionError with the end of its log if it does not come."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=log.parent,
            start_new_session=True,
            env=env,
        )
    deadline = time.monotonic() + _MAX_START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if answers():
                return process
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    ended(process, signal.SIGKILL)
    raise AssertionError(log.read_text(errors="replace")[-4000:])


def ended(process: subprocess.Popen[bytes] | None, how: signal.Signals) -> None:
    """Ends it by this signal, or by SIGKILL if that does not help; None is ended already."""
    if process is None:
        return
    process.send_signal(how)
    try:
        process.wait(_MAX_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def client_of(url: str) -> httpx.Client:
    """A client of a server's plain HTTP; a context manager. It reads no certificates: that takes longer than to ask."""
    return httpx.Client(base_url=url, timeout=60, trust_env=False, verify=False)  # noqa: S501
