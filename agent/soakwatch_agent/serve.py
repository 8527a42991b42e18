"""The agent as a service: ``run`` (a daemon on a socket of its own folder), ``serve`` (a child of an SSH session),
``attach`` (the bridge from an SSH session to the daemon), ``status`` and ``stop``."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import BinaryIO, Callable, Iterator, List

from soakwatch_agent.agentclock import agent_clock
from soakwatch_agent.framing import ERROR, MAX_LINE, MAX_QUESTION, line_of, question_line
from soakwatch_agent.recorder import Recorder
from soakwatch_agent.sampler import Sampler
from soakwatch_agent.service import ServeError, bounded, detach, keep, program
from soakwatch_agent.session import Agent
from soakwatch_agent.settings import load_settings
from soakwatch_agent.spool import BOUND, Spool

SOCKET = "socket"
CHILD = "child of the SSH session"
_MAX_CONNECTIONS = 8
_START_S = 30.0
_TAKEOVER_S = 5.0
_FOLDER_CHECK_S = 5.0


def main(argv: List[str]) -> int:
    """Runs the command that ``argv`` begins with; returns the exit code."""
    options = _parser().parse_args(argv)
    folder = os.path.abspath(os.path.expanduser(options.dir))  # noqa: PTH100, PTH111
    try:
        if options.command == "run":
            return _run(folder, options)
        if options.command == "serve":
            return _serve(folder, options)
        if options.command == "attach":
            return _attach(folder, options)
        return _ask(folder, options.command)
    except ServeError as error:
        sys.stderr.write(f"soakwatch-agent: {error}\n")
        return 2
    except KeyboardInterrupt:
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("soakwatch-agent", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (
        ("run", "poll, and keep the polls until a collector fetches them"),
        ("serve", "the same on standard input and output, until the input ends"),
        ("attach", "connect standard input and output to the agent that runs here"),
        ("status", "show the state of the agent that runs here"),
        ("stop", "stop the agent that runs here"),
    ):
        command = commands.add_parser(name, help=about, description=about)
        command.add_argument("--dir", default="~/.soakwatch-agent", help="the agent's folder (default: %(default)s)")
        if name in ("run", "serve"):
            command.add_argument(
                "--spool-bytes", type=int, default=BOUND, help="size limit of the spool (default: 256 MiB)"
            )
            command.add_argument(
                "--sync", type=float, default=10.0, help="seconds between syncs to the disk; 0: after each poll"
            )
            command.add_argument("--no-recorder", action="store_true", help="without the flight recorder")
            command.add_argument("--root", default="/", help="folder that holds the machine's /proc, /sys and so on")
        if name == "run":
            command.add_argument("--keep", action="store_true", help="start it again whenever it dies")
            command.add_argument(
                "--detach", action="store_true", help="run in the background, detached from this session"
            )
            command.add_argument("--https", metavar="HOST:PORT", help="serve HTTPS as well")
            command.add_argument("--token-file", help="file with the token that HTTPS clients must send")
            command.add_argument("--cert", help="certificate of HTTPS, PEM")
            command.add_argument("--key", help="key of HTTPS, PEM")
        if name == "attach":
            command.add_argument("--start", action="store_true", help="start the agent first if it does not run")
    return parser


# --- the daemon ----------------------------------------------------------------------------------------------------


def _run(folder: str, options: argparse.Namespace) -> int:
    _prepare(folder)
    if options.detach:
        return detach(os.path.join(folder, "log"))
    if options.keep:
        return keep(os.path.join(folder, "keeper.lock"))
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    with contextlib.ExitStack() as stack:
        agent = _open_agent(folder, options, "service", stopping.set, stack)
        listener = stack.enter_context(_listener(os.path.join(folder, SOCKET)))
        if options.https is not None:
            from soakwatch_agent.https import open_https

            stack.callback(open_https(agent, options.https, options.token_file, options.cert, options.key))
        elif options.token_file or options.cert or options.key:
            raise ServeError("--token-file, --cert and --key belong to --https HOST:PORT")
        threading.Thread(target=_accept, args=(listener, agent), name="accept", daemon=True).start()
        while not stopping.wait(_FOLDER_CHECK_S):
            if not os.path.exists(os.path.join(folder, "lock")):  # noqa: PTH110
                break  # the folder was deleted: nothing can reach or stop this agent any more
    return 0


def _open_agent(
    folder: str, options: argparse.Namespace, mode: str, stop: Callable[[], None], stack: contextlib.ExitStack
) -> Agent:
    stack.enter_context(_locked_folder(folder, child=mode == CHILD))
    clock = agent_clock(folder)
    spool = Spool(folder, max(options.spool_bytes, 1 << 16), options.sync)
    stack.callback(spool.close)
    recorder = None
    if not options.no_recorder:
        recorder = Recorder(clock.now_ns, options.root)
        try:
            recorder.start()
            stack.callback(recorder.end)
        except (OSError, ValueError):
            recorder = None  # a kernel that hides its files; hello says that there is no recorder
    sampler = Sampler(clock, spool, options.root)
    settings = load_settings(folder)
    if settings is not None:
        sampler.set(settings)
    sampler.start()
    stack.callback(sampler.end)
    return Agent(folder, clock, spool, sampler, recorder, mode, stop, options.root)


def _prepare(folder: str) -> None:
    os.umask(0o077)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
        if os.stat(folder).st_uid != os.geteuid():  # noqa: PTH116
            raise ServeError(f"the folder {folder} belongs to another user: name command of your own with --dir")
    except OSError as error:
        raise ServeError(f"the folder {folder} cannot be used: {error.strerror}; give another with --dir") from None


@contextlib.contextmanager
def _locked_folder(folder: str, *, child: bool) -> Iterator[None]:
    """Locks the folder. A new session's child ends the child of a dead session that still holds the lock."""
    try:
        fd = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ServeError(f"the folder {folder} cannot be written: {error.strerror}") from None
    try:
        deadline = time.monotonic() + _TAKEOVER_S
        while not _locked(fd):
            holder = os.pread(fd, 64, 0).decode("ascii", "replace").split()
            if not (child and holder[:1] == ["child"] and holder[1].isdigit()) or time.monotonic() > deadline:
                raise ServeError(f"an agent already runs in {folder}: stop it, or give another folder with --dir")
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(int(holder[1]), signal.SIGTERM)
            time.sleep(0.05)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{'child' if child else 'service'} {os.getpid()}".encode(), 0)
        yield
        os.ftruncate(fd, 0)
    finally:
        os.close(fd)


def _locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _listener(path: str) -> socket.socket:
    with contextlib.suppress(OSError):
        os.unlink(path)  # noqa: PTH108 - the lock is ours, so this is the socket of an agent that was killed
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with bounded(path) as short:
            listener.bind(short)
        listener.listen(_MAX_CONNECTIONS)
    except OSError as error:
        listener.close()
        raise ServeError(
            f"cannot create a socket in the agent's folder: {error.strerror}; give another with --dir"
        ) from None
    return listener


def _accept(listener: socket.socket, agent: Agent) -> None:
    free = threading.Semaphore(_MAX_CONNECTIONS)
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return  # the listener was closed: the agent ends
        if not free.acquire(blocking=False):
            connection.close()
            continue
        threading.Thread(
            target=_serve_connection, args=(connection, agent, free.release), name="connection", daemon=True
        ).start()


def _serve_connection(connection: socket.socket, agent: Agent, done: Callable[[], None]) -> None:
    try:
        with connection, connection.makefile("rb") as reader, connection.makefile("wb") as writer:
            answer_questions(agent, reader, writer)
    except OSError:
        pass  # the collector went away
    finally:
        done()


def answer_questions(agent: Agent, reader: BinaryIO, writer: BinaryIO) -> None:
    """Writes hello and the answer to each question until the input ends. Raises OSError."""
    writer.write(agent.hello())
    writer.flush()
    while True:
        line = reader.readline(MAX_QUESTION + 1)
        if not line:
            return
        if len(line) > MAX_QUESTION:
            writer.write(line_of(ERROR, {"id": 0, "text": f"the question is longer than {MAX_QUESTION} bytes"}))
            writer.flush()
            return
        writer.writelines(agent.reply(line))
        writer.flush()


# --- in an SSH session ---------------------------------------------------------------------------------------------


def _serve(folder: str, options: argparse.Namespace) -> int:
    _prepare(folder)
    stopping = threading.Event()
    with contextlib.ExitStack() as stack:
        agent = _open_agent(folder, options, CHILD, stopping.set, stack)

        def answer() -> None:
            # Duplicates: at exit the interpreter waits for a thread that reads sys.stdin.
            with contextlib.suppress(OSError, ValueError), os.fdopen(os.dup(1), "wb") as writer:
                answer_questions(agent, os.fdopen(os.dup(0), "rb"), writer)
            stopping.set()

        threading.Thread(target=answer, name="connection", daemon=True).start()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: stopping.set())
        stopping.wait()
    return 0


def _attach(folder: str, options: argparse.Namespace) -> int:
    with connected(folder, start=options.start) as agent_socket:
        threading.Thread(target=_forward_input, args=(agent_socket,), name="input", daemon=True).start()
        while True:
            data = agent_socket.recv(1 << 16)
            if not data:
                return 0
            try:
                _write_all(1, data)
            except OSError:
                return 0


def _forward_input(agent_socket: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            data = os.read(0, 1 << 16)
            if not data:
                break
            agent_socket.sendall(data)
    with contextlib.suppress(OSError):
        agent_socket.shutdown(socket.SHUT_RDWR)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def connected(folder: str, *, start: bool, timeout_s: float = _START_S) -> socket.socket:
    """Connects to the agent of a folder, started first if ``start``. Raises ServeError with the reason."""
    path = os.path.join(folder, SOCKET)
    deadline, started = time.monotonic() + timeout_s, False
    while True:
        agent_socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with bounded(path) as short:
                agent_socket.connect(short)
        except OSError:
            agent_socket.close()
        else:
            return agent_socket
        if not start or time.monotonic() > deadline:
            raise ServeError(_why_none_runs(folder, started=started))
        if not started:
            started = True
            subprocess.run(
                [*program(), "run", "--keep", "--detach", "--dir", folder], stdin=subprocess.DEVNULL, check=False
            )
        time.sleep(0.05)


def _why_none_runs(folder: str, *, started: bool) -> str:
    if not started:
        return f"no agent runs in {folder}: start it with soakwatch-agent run, or install it again"
    last_lines: List[str] = []
    with contextlib.suppress(OSError), open(os.path.join(folder, "log"), encoding="utf-8", errors="replace") as log:
        last_lines = log.read().splitlines()[-1:]
    return (
        f"the agent in {folder} does not start; the last line of its log: {last_lines[0] if last_lines else '(empty)'}"
    )


def _ask(folder: str, word: str) -> int:
    with connected(folder, start=False) as agent_socket:
        agent_socket.settimeout(10.0)
        try:
            agent_socket.sendall(question_line(1, word))
            with agent_socket.makefile("rb") as reader:
                hello, answer = reader.readline(MAX_LINE), reader.readline(MAX_LINE)
        except OSError:
            raise ServeError("the agent does not answer: kill its process and start it again") from None
    sys.stdout.write(hello.decode("utf-8", "replace") + answer.decode("utf-8", "replace"))
    return 0 if answer.startswith(b"done ") else 1
