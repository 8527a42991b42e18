"""Commands that begin where their imports end: each is forked from a process that has imported what they need.

Of the second of CPU that a command takes, most is the import of libraries. The server imports them once for a whole
session of tests and forks for each command. What a test gets is a process as any other, a child of its own: memory,
folder, environment, streams, signals and exit code are real, and only the start is not.

The server learns: a command that ends tells which modules it has, and the server imports them for those to come.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import gc
import importlib
import json
import os
import platform
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, NoReturn

from soakwatch.cli.main import main
from soakwatch.core.one_thread import use_one_thread

PROGRAM = Path(sys.executable).with_name("soakwatch")
READ_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "OMP_", "OPENBLAS_", "MKL_")
"""How the names of variables begin that Python or a library reads at its start: a forked process would not see them."""
SPAWNED = frozenset({"dask", "distributed", "duckdb", "grpc", "pandas", "playwright", "pyarrow", "pygnmi", "zmq"})
"""Packages that start threads when they are imported, which no fork takes along: a command imports them itself."""
REPORTS = "soakwatch.report.html"
"""The module whose first work in a process takes as long as its import."""
CLONE_PARENT = 0x8000
CLONE = {"x86_64": 56, "aarch64": 220}
"""The number of the system call by machine. Elsewhere nothing is forked."""
MAX_MESSAGE = 1 << 18


class Forked(subprocess.Popen[str]):
    """``subprocess.Popen`` of the command, forked by the server instead of started from its file."""

    def _execute_child(self, args: Any, *others: Any) -> None:
        """What starts the process in ``subprocess``, with its arguments; those that are not read here stay unset."""
        cwd, env, *_ = others[4:]
        pipes, own_session = others[9:15], bool(others[20])
        mine = {0: pipes[0], 1: pipes[3], 2: pipes[5]}
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        order = Order(tuple(map(os.fspath, args[1:])), os.fspath(cwd), dict(env), own_session, nice)
        self.pid = fork(order, [stream if theirs == -1 else theirs for stream, theirs in mine.items()])
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]  # of subprocess itself


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be run: the words after the program's name."""

    words: tuple[str, ...]
    folder: str
    environment: dict[str, str]
    own_session: bool
    nice: int


def can_fork(environment: Mapping[str, str]) -> bool:
    """Whether a forked process would be the same as one that starts with this environment."""
    return platform.machine() in CLONE and _at_start(environment) == _server().at_start


def fork(order: Order, streams: list[int]) -> int:
    """The process id of a new child that runs it on these descriptors."""
    return _server().fork(order, streams)


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}


class _Server:
    """The server's other end."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONWARNINGS": "error"}
        self.at_start = _at_start(environment)
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._turn = threading.Lock()
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()])
        atexit.register(self.close)

    def fork(self, order: Order, streams: list[int]) -> int:
        message = json.dumps(astuple(order)).encode("utf-8", "surrogateescape")
        with self._turn:
            socket.send_fds(self._channel, [message], streams)
            answer = self._channel.recv(64)
        assert answer, "the server that forks commands is gone; what it said is above"
        return int(answer)

    def close(self) -> None:
        self._channel.close()
        self._process.wait()


@functools.cache
def _server() -> _Server:
    return _Server()


def serve(channel: socket.socket) -> Order | None:
    """Forks what is ordered until nobody is there to order. In each forked process it returns the order."""
    use_one_thread(os.environ)
    known: set[str] = set()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as school:
        school.bind("")  # a name of the kernel's choice, in no folder
        while True:
            if school in select.select([channel, school], [], [])[0]:
                learn(school.recv(MAX_MESSAGE).decode().split(), known)
                continue
            message, streams, _, _ = socket.recv_fds(channel, MAX_MESSAGE, 3)
            if not message:
                return None
            pid = fork_for_parent()
            if pid == 0:
                atexit.register(tell, school.getsockname(), frozenset(sys.modules))
                break
            channel.send(str(pid).encode())
            for descriptor in streams:
                os.close(descriptor)
    channel.close()
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    os.closerange(3, max(streams) + 1)
    return Order(*json.loads(message.decode("utf-8", "surrogateescape")))


def learn(names: Iterable[str], known: set[str]) -> None:
    """Imports what a command has imported; no thread may come of it, for it would be missing in every fork."""
    for name in names:
        if name not in known and name.partition(".")[0] not in SPAWNED:
            with suppress(Exception):  # it is the command's to say what is wrong with it
                importlib.import_module(name)
            assert len(os.listdir("/proc/self/task")) == 1, f"the import of {name} starts a thread: put it into SPAWNED"
        known.add(name)
        if name == REPORTS:
            importlib.import_module(name).compile_templates()
    gc.collect()
    gc.freeze()  # no collection in a fork copies the pages on which all of this lies


def tell(school: bytes, before: frozenset[str]) -> None:
    """Tells the server which modules are new in this process, in the order of their import, as many as fit."""
    new = [name for name, module in sys.modules.items() if name not in before and getattr(module, "__spec__", None)]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as pupil, suppress(OSError):
        pupil.setblocking(False)
        for start in range(0, len(new), 500):
            pupil.sendto("\n".join(new[start : start + 500]).encode(), school)


def fork_for_parent() -> int:
    """``os.fork`` for a child of this process's parent, which can wait for it: 0 in the child."""
    python, library = ctypes.pythonapi, ctypes.PyDLL(None, use_errno=True)
    python.PyOS_BeforeFork()
    pid = library.syscall(CLONE[platform.machine()], CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        python.PyOS_AfterFork_Child()
        return 0
    python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(pid)


def become(order: Order) -> NoReturn:
    """Runs the command in this process, as its file does, and ends it."""
    if order.own_session:
        os.setsid()
    if order.nice != os.getpriority(os.PRIO_PROCESS, 0):
        os.setpriority(os.PRIO_PROCESS, 0, order.nice)
    os.chdir(order.folder)
    os.environ.clear()
    os.environ.update(order.environment)
    time.tzset()
    tempfile.tempdir = None
    Path("/proc/self/comm").write_text(PROGRAM.name)
    sys.argv = [str(PROGRAM), *order.words]
    out, err = sys.stdout, sys.stderr
    lines = 1 if os.isatty(1) else -1
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", lines, encoding=out.encoding, errors=out.errors, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding=err.encoding, errors=err.errors, closefd=False)  # noqa: SIM115
    vars(sys).update(__stdin__=sys.stdin, __stdout__=sys.stdout, __stderr__=sys.stderr)
    code = 1
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:  # noqa: BLE001 - as Python does with what nobody catches
        traceback.print_exc()
    # What Python does at its end, but for taking all modules apart.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120
    os._exit(code)


if __name__ == "__main__":
    sys.path[0] = str(PROGRAM.parent)  # as it is for the file
    with socket.socket(fileno=int(sys.argv[1])) as orders, suppress(KeyboardInterrupt):
        ordered = serve(orders)
    if ordered is not None:
        become(ordered)
