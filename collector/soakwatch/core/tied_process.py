"""Commands that end with this process, even if it is killed with kill -9.

The kernel tells a process of the death of its parent (prctl(2), PR_SET_PDEATHSIG; Linux only). prctl is called by a
small Python, because code between fork and exec is unsafe with threads. A single program is then run in its place. A
family, such as a shell script that starts others, has a minder: a Python that waits for it, that ends the whole process
group when this process is gone, and that ends itself as the program did. What leaves the group (setsid) is not found.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_TIED = (
    "import ctypes,os,signal,sys\n"
    "ctypes.CDLL(None).prctl(1, signal.SIGTERM)\n"
    "if os.getppid() != int(sys.argv[1]): sys.exit(1)\n"
    "os.execvp(sys.argv[2], sys.argv[2:])\n"
)
# SIGINT, SIGTERM and SIGHUP are sent to the group, so the program has them too: the minder waits for what it does.
_MINDED = (
    "import ctypes,os,resource,signal,sys,time\n"
    "prctl = ctypes.CDLL(None).prctl\n"
    "asked = signal.SIGINT, signal.SIGTERM, signal.SIGHUP\n"
    "def end(*_):\n"
    "    os.killpg(0, signal.SIGTERM)\n"
    "    for _ in range(60):\n"
    "        if os.waitpid(child, os.WNOHANG)[0]: break\n"
    "        time.sleep(0.05)\n"
    "    os.killpg(0, signal.SIGKILL)\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, *asked])\n"
    "child = os.fork()\n"
    "if not child:\n"
    "    prctl(1, signal.SIGKILL)\n"
    "    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR2, *asked])\n"
    "    try: os.execvp(sys.argv[2], sys.argv[2:])\n"
    "    except OSError as error: sys.stderr.write('cannot start %s: %s\\n' % (sys.argv[2], error.strerror.lower()))\n"
    "    os._exit(127)\n"
    "for number in asked: signal.signal(number, signal.SIG_IGN)\n"
    "signal.signal(signal.SIGUSR2, end)\n"
    "prctl(1, signal.SIGUSR2)\n"
    "if os.getppid() != int(sys.argv[1]): os.kill(os.getpid(), signal.SIGUSR2)\n"
    "signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR2, *asked])\n"
    "code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
    "if code >= 0: sys.exit(code)\n"
    "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
    "if -code != signal.SIGKILL: signal.signal(-code, signal.SIG_DFL)\n"
    "os.kill(os.getpid(), -code)\n"
)


def tied(words: Sequence[str], environment: Mapping[str, str], *, family: bool) -> tuple[str, ...]:
    """The words that run a command so that it ends with this process; where that is not possible, the command.

    To be started in a session of its own, by the thread that lives longest. ``family`` is for a command that starts
    others. Raises what starting the command itself would: FileNotFoundError, PermissionError, or ValueError for a NUL.
    """
    if any("\0" in word for word in words):
        raise ValueError("embedded null byte")
    if sys.platform != "linux":
        return tuple(words)
    if shutil.which(words[0], path=environment.get("PATH")) is None:
        code = errno.EACCES if "/" in words[0] and Path(words[0]).exists() else errno.ENOENT
        raise OSError(code, os.strerror(code), words[0])
    return (sys.executable, "-I", "-S", "-c", _MINDED if family else _TIED, str(os.getpid()), *words)
