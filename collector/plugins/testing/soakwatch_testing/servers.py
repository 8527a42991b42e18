"""Starts and stops servers of other projects; if one does not start, its log is the error."""

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
    """Start a server in a session of its own, in the folder of its log, and wait until it ``answers``, which may raise
    httpx.TransportError meanwhile. Raises AssertionError with the end of its log if it does not."""
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
    """Stop it with a signal, or with SIGKILL if that does not help; None is ignored."""
    if process is None:
        return
    process.send_signal(how)
    try:
        process.wait(_MAX_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def client_of(url: str) -> httpx.Client:
    """A client for plain HTTP; a context manager. It loads no certificates, which takes longer than a request."""
    return httpx.Client(base_url=url, timeout=60, trust_env=False, verify=False)  # noqa: S501
