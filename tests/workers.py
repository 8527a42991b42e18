"""Tests in several processes that are forked when all tests are collected, so that they are collected once.

``pytest --workers N``. Each process takes one file after the other, in the order of the collection, and keeps what
fixtures of its session started; a file is never divided. What most tests of this project wait for are servers and
time, not cores, so there may be more processes than cores. One that dies costs the test that it ran.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import traceback
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby, zip_longest
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Literal, NoReturn

import pytest
from _pytest._io import TerminalWriter
from _pytest.config import create_terminal_writer

Word = Literal["next", "report", "finished"]
"""What a process says: it needs tests; a report of one; that the first of those it was given has ended."""


@dataclass(eq=False)
class _Worker:
    """One process: the numbers of the tests that it was given and has not ended."""

    pid: int
    channel: Connection
    given: deque[int] = field(default_factory=deque)


@dataclass(eq=False)
class Workers:
    """The plugin: runs the tests of a session in so many processes, in place of pytest's own loop."""

    number: int
    _files: deque[Sequence[int]] = field(default_factory=deque)
    _alive: list[_Worker] = field(default_factory=list)
    _begun: int = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or session.config.option.collectonly:
            return None  # pytest's own says what there is to say
        files = groupby(range(len(session.items)), lambda index: session.items[index].nodeid.partition("::")[0])
        self._files.extend(tuple(indices) for _, indices in files)
        _folders(session.config).getbasetemp()  # before there are several who would make one
        try:
            for _ in range(min(self.number, len(self._files))):
                self._begin(session)
            while self._alive and not session.shouldfail:
                spoken = wait([worker.channel for worker in self._alive])
                for worker in [worker for worker in self._alive if worker.channel in spoken]:
                    self._hear(session, worker)
            if session.shouldfail:
                for worker in self._alive:
                    os.kill(worker.pid, signal.SIGINT)  # as Ctrl-C, which a terminal sends to all of them
                raise session.Failed(session.shouldfail)
        finally:
            for worker in self._alive:
                worker.channel.close()  # at the latest when it has something to say it ends, with its fixtures
            for worker in self._alive:
                os.waitpid(worker.pid, 0)
        return True

    def _begin(self, session: pytest.Session) -> None:
        ours, theirs = Pipe()
        self._begun += 1
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            for channel in (ours, *(worker.channel for worker in self._alive)):
                channel.close()
            _work(session, theirs, f"w{self._begun}")
        theirs.close()
        self._alive.append(_Worker(pid, ours))

    def _hear(self, session: pytest.Session, worker: _Worker) -> None:
        config = session.config
        try:
            word, content = worker.channel.recv()
        except (EOFError, ConnectionResetError):
            self._ended(session, worker)
            return
        if word == "next":
            indices = self._files.popleft() if self._files else ()
            worker.given.extend(indices)
            worker.channel.send(indices)
        elif word == "report":
            report = config.hook.pytest_report_from_serializable(config=config, data=content)
            config.hook.pytest_runtest_logreport(report=report)
        else:
            item = session.items[worker.given.popleft()]
            config.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _ended(self, session: pytest.Session, worker: _Worker) -> None:
        self._alive.remove(worker)
        worker.channel.close()
        _, status = os.waitpid(worker.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if not worker.given:
            if code:
                session.shouldfail = f"a process ended with {code} behind its last test"
            return
        item = session.items[worker.given.popleft()]
        why = f"the process that ran it ended with {code}"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
        session.config.hook.pytest_runtest_logreport(report=report)
        if worker.given:
            self._files.appendleft(tuple(worker.given))
        if self._files:
            self._begin(session)


@dataclass(frozen=True)
class _Teller:
    """The plugin in each process that tells the first one of its reports."""

    config: pytest.Config
    channel: Connection

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.channel.send(("report", data))


@dataclass(frozen=True)
class _Terminal:
    """What plugins write to in place of the terminal, as where each thread stood when a test ran out of its time: the
    standard error of the test, which its report shows."""

    config: pytest.Config

    @property
    def _tw(self) -> TerminalWriter:
        return create_terminal_writer(self.config, sys.stderr)


def _work(session: pytest.Session, channel: Connection, name: str) -> NoReturn:
    """All that a process does; it never returns to who forked it."""
    config = session.config
    code = 1
    try:
        config.pluginmanager.unregister(name="terminalreporter")
        config.pluginmanager.register(_Terminal(config), "terminalreporter")
        config.pluginmanager.register(_Teller(config, channel))
        capture = config.pluginmanager.getplugin("capturemanager")
        if capture is not None and capture.is_globally_capturing():
            capture.stop_global_capturing()  # into a file that all would share
            capture.start_global_capturing()
            capture.suspend_global_capture()
        _own_folder(config, name)
        _run(session, channel)
        code = 0
    except (BrokenPipeError, EOFError, ConnectionResetError, KeyboardInterrupt):  # all of it ends
        session._setupstate.teardown_exact(None)
    except BaseException:  # noqa: BLE001 - the last of its fixtures, for one
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _own_folder(config: pytest.Config, name: str) -> None:
    """Where its tests have their folders: beside those of the others, in that of the session."""
    folders = _folders(config)
    folder = folders.getbasetemp() / name
    folder.mkdir(mode=0o700)
    folders._basetemp = folder


def _folders(config: pytest.Config) -> pytest.TempPathFactory:
    factory: pytest.TempPathFactory = config._tmp_path_factory  # type: ignore[attr-defined]
    return factory


def _run(session: pytest.Session, channel: Connection) -> None:
    """File by file. What fixtures of the session started stays from one to the next."""
    while indices := _asked(channel):
        items = [session.items[index] for index in indices]
        for item, following in zip_longest(items, items[1:], fillvalue=session):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            channel.send(("finished", None))
    session._setupstate.teardown_exact(None)


def _asked(channel: Connection) -> Sequence[int]:
    channel.send(("next", None))
    indices: Sequence[int] = channel.recv()
    return indices
