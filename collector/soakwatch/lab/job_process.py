"""The process of a job: ``python -m soakwatch.lab.job_process FOLDER -- COMMAND …``.

It outlives the server. It holds the locks that it was given, and so does the command, so that a job goes on as long as
any of the two does. It writes down how the command ended, and interrupts or kills it if the file ``stop`` or ``kill``
asks for that.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from soakwatch.lab.job_files import BEGUN, KILL, LOG, RESULT, STOP

_POLL_S = 0.25


def main(arguments: list[str]) -> int:
    """Run the command of a job to its end; ``arguments`` are the job's folder, the locks' descriptors, the command."""
    folder, locks = Path(arguments[0]), tuple(int(number) for number in arguments[1].split(",") if number)
    command = arguments[arguments.index("--") + 1 :]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the command decides when it ends
    (folder / BEGUN).touch(mode=0o600)
    descriptor = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with open(descriptor, "ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=locks,
            preexec_fn=_heeding_signals,  # noqa: PLW1509 - this process has one thread
        )
    code = _waited(process, folder)
    new = folder / f"{RESULT}.new"
    new.write_text(json.dumps({"exit_code": code, "end_ns": time.time_ns()}), encoding="utf-8")
    with open(new, "rb") as written:
        os.fsync(written.fileno())
    new.replace(folder / RESULT)
    return 0


def _heeding_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _waited(process: subprocess.Popen[bytes], folder: Path) -> int:
    asked = False
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_POLL_S)
        if (folder / KILL).exists():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if not asked and (folder / STOP).exists():
            asked = True
            process.send_signal(signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
