"""Fixtures for commands run as commands; the order of the tests: what waits longest first, what needs influxd last."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from tests.commands import Command, Started, command_in, starting_in, wait_until
from tests.needs import database_tests_skipped, influxd_build_log, needs_influxd, wait_for_influxd

SLOWEST = (
    "e2e/test_demo.py",
    "e2e/test_run.py",
    "e2e/test_whole_runs.py",
    "e2e/test_devices.py",
    "e2e/test_nginx.py",
    "collector/engine/notify/test_notified_run.py",
    "collector/cli/test_watch.py",
    "collector/engine/test_calibrate_run.py",
    "collector/web/test_beside.py",
    "browser/test_report_plots.py",
    "browser/test_report_hostile.py",
    "browser/test_report_look.py",
    "browser/test_live_acting.py",
    "browser/test_live_look.py",
    "collector/web/test_run_web.py",
    "collector/report/test_html.py",
    "collector/sources/snmp/test_qa_snmp.py",
    "collector/sources/snmp/test_snmp_check.py",
    "collector/sources/loads/test_event_outage.py",
    "collector/sources/loads/test_iperf3_levels.py",
    "collector/engine/hooks/test_hooked_run.py",
    "collector/engine/test_run_refused.py",
    "collector/engine/test_shared_series.py",
    "collector/integrations/test_pytest_plugin.py",
    "test_house.py",
    "rules/test_properties.py",
    "rules/test_checks.py",
    "browser/test_live_run.py",
    "collector/judge/test_live_woken_run.py",
    "collector/sources/agent/test_recorder_triggers.py",
    "collector/sources/agent/test_agent_install.py",
    "collector/sources/loads/test_run_of_all_loads.py",
    "collector/sources/loads/test_iperf3_files.py",
    "collector/sources/loads/test_pktgen_port.py",
    "collector/sources/loads/test_command.py",
    "collector/sources/loads/test_otg_drive.py",
    "collector/sources/profiles/test_profiles_all.py",
    "e2e/test_judge_csv.py",
    "e2e/test_cli_catalogue.py",
    "collector/sinks/test_influxdb_outage.py",
    "collector/sinks/test_sink_drills.py",
    "e2e/test_import_influxdb.py",
)
"""Files that take longest, first: with several processes nothing long is left over for the end."""
SERVER = "soakwatch.testing.influxd"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where data that is no part of the project lies."""
    parser.addoption(
        "--recordings",
        type=Path,
        default=None,
        metavar="DIR",
        help="recorded devices for tests/recordings: DIR/snmpsim/NAME.snmprec[.gz] and DIR/data/NAME.json[.gz]",
    )


settings.register_profile("seeded", derandomize=True, deadline=None)
settings.load_profile("seeded")


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What runs of tests leave of themselves for this user (which of them go on) is not beside a person's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


def pytest_configure() -> None:
    """A shell ignores SIGINT for what it starts in the background, and what tests interrupt would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the files in order; the tests of a file keep theirs. The same in every process, whatever is built when."""
    here = Path(__file__).parent
    turns = {here / name: turn for turn, name in enumerate(SLOWEST, -len(SLOWEST))}
    items.sort(key=lambda item: (_asks_influxd(item), turns.get(item.path, 0)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A build of influxd is waited for outside of the test's own limit of time."""
    if _asks_influxd(item):
        wait_for_influxd()
    return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What a build of influxd said that failed."""
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


@pytest.fixture(scope="session")
def influxd_program() -> Path:
    """The InfluxDB server's program."""
    return needs_influxd()


def _asks_influxd(item: pytest.Item) -> bool:
    """Whether it has the fixture above, or starts a server by itself."""
    names = vars(getattr(item, "module", None) or object).values()
    return "influxd_program" in getattr(item, "fixturenames", ()) or any(
        getattr(value, "__module__", None) == SERVER for value in names
    )
