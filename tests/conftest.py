"""Fixtures for commands run as commands; the order of the tests: the longest files first, what needs influxd last."""

from __future__ import annotations

import gc
import importlib
import linecache
import os
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings
from tests.commands import Command, Started, Tally, command_in, starting_in, wait_until
from tests.durations import TRIED, OutcomeWriter, kept, ordered, outcomes, shuffled
from tests.needs import database_tests_skipped, influxd_build_log, needs_influxd, wait_for_influxd
from tests.workers import Workers

from soakwatch.core.one_thread import use_one_thread

use_one_thread(os.environ)  # as soakwatch does, and before numpy is imported: threads that wait take half of the CPU

SERVER = "soakwatch_testing.influxd"


def pytest_addoption(parser: pytest.Parser) -> None:
    """What tests/run says of order and records."""
    parser.addoption(
        "--order",
        type=int,
        default=None,
        metavar="SEED",
        help="the files, and the tests in each, in an order that the seed gives",
    )
    parser.addoption(
        "--outcomes",
        type=Path,
        default=None,
        metavar="FILE",
        help="append a line for each test: what became of it, its seconds, and what it recorded of itself",
    )
    parser.addoption("--workers", type=int, default=1, metavar="N", help="run the files in so many forked processes")
    parser.addoption("--left", action="store_true", help="only tests of which --outcomes has no line yet")


settings.register_profile("seeded", derandomize=True, deadline=None)
settings.load_profile("seeded")


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What runs of tests leave of themselves for this user (which of them go on) is not beside a person's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


def pytest_configure(config: pytest.Config) -> None:
    """A shell ignores SIGINT for what it starts in the background, and what tests interrupt would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if path := config.getoption("--outcomes"):
        config.pluginmanager.register(OutcomeWriter(path))
    if (number := config.getoption("--workers")) > 1:
        config.pluginmanager.register(Workers(number))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """All that is collected stays to the end: to look through it again and again takes a fifth of the time."""
    gc.disable()
    if any(Path(each).name == "tests" for each in session.config.args):
        # When it is imported it looks through all modules that there are, hundreds of times: 2 s later, 0.4 s now.
        importlib.import_module("MLRsearch")
    # A pytest within this one forgets at its end what it imported. Of this, httpx keeps the errors that it knows.
    importlib.import_module("httpcore")
    try:
        return (yield)
    finally:
        linecache.clearcache()  # each doctest asks of all that lies there whether its file has changed
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts the files in order; the tests of a file keep theirs. The same in every process, whatever is built when. What
    hangs of the slow ones ends after an hour, if they say nothing else."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(3600))
    if config.getoption("--left"):
        done = {one.test for one in outcomes(config.getoption("--outcomes"))}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in done])
        items[:] = [item for item in items if item.nodeid not in done]
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    seed = config.getoption("--order")
    if seed is not None:
        items[:] = shuffled(files, seed)
        return
    last = frozenset(name for name, of_file in files.items() if any(map(_asks_influxd, of_file)))
    items[:] = [item for name in ordered(files, kept(), last) for item in files[name]]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A build of influxd is waited for outside of the test's own limit of time. A test that judges what was in time,
    with all that it starts, runs before those beside it, where the user may do that."""
    if _asks_influxd(item):
        wait_for_influxd()
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(PermissionError):
        if item.get_closest_marker("punctual"):
            os.setpriority(os.PRIO_PROCESS, 0, -10)
    try:
        return (yield)
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, usual)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The seed of an order, so that it can be had again, and what a build of influxd said that failed."""
    if (seed := config.getoption("--order")) is not None:
        terminalreporter.write_line(f"order of the tests: --order {seed}")
    log = influxd_build_log()
    if log:
        terminalreporter.section("influxd was not built")
        terminalreporter.write_line("\n".join(log.splitlines()[-40:]))


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last line, behind pytest's own: tests of databases that were skipped are not overlooked among the dots."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and (line := database_tests_skipped(reporter.stats.get("skipped", ()))):
        reporter.write_line(line)


@pytest.fixture
def soakwatch(tmp_path: Path) -> Command:
    """Run a command in an empty folder and return what it printed."""
    return command_in(tmp_path)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Start a command in an empty folder; it is killed when the test ends."""
    with starting_in(tmp_path) as start:
        yield start


@pytest.fixture
def until() -> Callable[[Callable[[], bool], str], None]:
    """Wait for something that must happen, with a deadline."""
    return wait_until


@pytest.fixture
def tally(record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]) -> Tally:
    """Says how often a thing was tried, for the table of ``tests/run -m slow``; fails with what went wrong."""

    def say(what: str, attempts: int, failures: Sequence[object]) -> None:
        record_property(TRIED, [what, attempts, len(failures)])
        with capsys.disabled():
            print(f"\n{what}: {attempts} attempts, {len(failures)} failures")
        assert not failures, "\n".join(map(str, failures))

    return say


@pytest.fixture(scope="session")
def influxd_program() -> Path:
    """The InfluxDB server's program."""
    return needs_influxd()


def _asks_influxd(item: pytest.Item) -> bool:
    """Whether it has the fixture above, or starts a server by itself."""
    return "influxd_program" in getattr(item, "fixturenames", ()) or _starts_influxd(getattr(item, "module", None))


@cache
def _starts_influxd(module: object) -> bool:
    names = vars(module).values() if module is not None else ()
    return any(getattr(value, "__module__", None) == SERVER for value in names)
