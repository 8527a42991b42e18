"""Takes from Soakwatch's own code what Windows does not have, in every Python that has this folder in
PYTHONPATH and AS_ON_WINDOWS in its environment.

Modules of Unix and gufo-snmp cannot be imported, and ``os`` and ``signal`` lack the names that they lack there. Other
code keeps them, for the standard library of this machine needs them. What differs otherwise (paths, processes, open
files that cannot be renamed) is not seen by this.
"""

from __future__ import annotations

import builtins
import os
import signal
import types
from collections.abc import Mapping, Sequence

_NO_MODULES = frozenset({"fcntl", "grp", "gufo", "pwd", "resource", "termios", "tty"})
_NO_NAMES = {
    "os": "O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK WNOHANG chown fchmod fchown fork getegid geteuid getgid"
    " getgroups getloadavg getpgid getuid killpg mkfifo nice pread pwrite sched_getaffinity setsid"
    " statvfs sysconf uname wait",
    "signal": "SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGQUIT SIGTSTP SIGUSR1 SIGUSR2 SIGWINCH"
    " pthread_sigmask setitimer",
}
_OWN = ("soakwatch", "soakwatch_model", "soakwatch_rules", "soakwatch_agent")
_import = builtins.__import__


def _without(module: types.ModuleType) -> types.ModuleType:
    copy = types.ModuleType(module.__name__)
    lacking = _NO_NAMES[module.__name__].split()
    copy.__dict__.update({name: value for name, value in vars(module).items() if name not in lacking})
    return copy


_LACKING = {"os": _without(os), "signal": _without(signal)}


def _as_on_windows(
    name: str,
    globals: Mapping[str, object] | None = None,  # noqa: A002 - the names of __import__
    locals: Mapping[str, object] | None = None,  # noqa: A002
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> types.ModuleType:
    who = str((globals or {}).get("__name__", "")).partition(".")[0]
    if who in _OWN and level == 0:
        if name.partition(".")[0] in _NO_MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if name in _LACKING:
            return _LACKING[name]
    return _import(name, globals, locals, fromlist or (), level)


if os.environ.get("AS_ON_WINDOWS"):  # not where pytest imports this file to look for doctests
    builtins.__import__ = _as_on_windows
