"""Pytest during a soak: tests report to a run what they do to the device, and get its verdict so far.

``pytest --soak-run=last`` (or SOAKWATCH_RUN) attaches the session to a running run, ``--soak-plan=PLAN`` starts one and
ends it with the session. (With ``=``: pytest takes a separate word for a folder of tests when it looks for its root.)
Without a run, tests run as usual and nothing is recorded::

    def test_failover(soak, dut):
        with soak.event("failover", expect={"reboot": 1}, within="5m"):
            dut.reload()

    @pytest.mark.soak(kind="upgrade", expect={"reboot": 1}, within="10m")
    def test_upgrade(dut): ...

The marker makes the body of a test an event, without the set-up and teardown of fixtures. The verdict on the device
during a test's events is a section of its report (``-rA`` also shows those of passed tests) and the property
``soak_verdict`` in JUnit XML. ``--soak-fail`` fails a test if the device failed meanwhile, ``--soak-fail-run`` the
session if the run fails.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Generator
from datetime import datetime
from typing import TYPE_CHECKING, Final, Unpack

import pytest

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from soakwatch.integrations.child_run import Companion
    from soakwatch.record import StoredEvent
    from soakwatch.runs.attached import EventFields, InterimVerdict, OpenEvent, SoakRun

_VARIABLE = "SOAKWATCH_RUN"  # RUN_VARIABLE, without its imports
_DEFAULT_KIND = "test"
_MAX_NAME_CHARS = 400
_KEYS = ("kind", "target", "object", "expect", "within", "labels")


class Soak:
    """The fixture ``soak``: the run, for one test. Without a run its events are not recorded."""

    def __init__(self, run: SoakRun | None) -> None:
        self._run = run

    @property
    def attached(self) -> bool:
        """Whether events are recorded in a run."""
        return self._run is not None

    @property
    def name(self) -> str | None:
        """The run's name; None without one."""
        return None if self._run is None else self._run.name

    def event(self, kind: str, **fields: Unpack[EventFields]) -> AbstractContextManager[OpenEvent]:
        """A context manager for an event; for the fields see ``soakwatch.api.mark``."""
        if self._run is None:
            return _unrecorded_event(kind)
        return self._run.event(kind, **fields)

    def mark(
        self,
        kind: str,
        at: datetime | str | None = None,
        until: datetime | str | None = None,
        **fields: Unpack[EventFields],
    ) -> StoredEvent | None:
        """Record a moment (default: now), or with ``until`` a period that is over. Returns None without a run."""
        if self._run is None:
            return None
        return self._run.mark(kind, at, until, **fields)

    def verdict(self) -> InterimVerdict | None:
        """The verdict on the run so far, judged now; None without a run."""
        return None if self._run is None else self._run.verdict()


@pytest.fixture
def soak(request: pytest.FixtureRequest) -> Soak:
    """The run that this session is attached to."""
    session = request.config.stash.get(_SESSION, None)
    return Soak(None if session is None else session.run)


class _Session:
    """The session's run; ``companion`` is its process if the session started it."""

    def __init__(self, run: SoakRun, companion: Companion | None) -> None:
        self.run, self.companion = run, companion
        self.ending: str | None = None  # the verdict on the companion's run


_SESSION: Final = pytest.StashKey[_Session]()
_UNRECORDED: Final = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options of the plugin."""
    group = parser.getgroup("soakwatch", "a soak run during the tests")
    options = {
        "--soak-run": (
            "RUN",
            None,
            "record events in this run: a folder, a name, 'last', or a URL (default: $SOAKWATCH_RUN)",
        ),
        "--soak-runs": ("DIR", "runs", "folder of all runs (default: runs)"),
        "--soak-token": ("REF", None, "token of a URL: env:NAME or file:PATH (default: env:SOAKWATCH_TOKEN)"),
        "--soak-plan": ("PLAN", None, "start a run of this plan, and end it with the session"),
    }
    for name, (metavar, default, help_text) in options.items():
        group.addoption(name, metavar=metavar, default=default, help=help_text)
    group.addoption("--soak-fail", action="store_true", help="fail a test if the device failed during its events")
    group.addoption("--soak-fail-run", action="store_true", help="fail the session if the run fails")


def pytest_configure(config: pytest.Config) -> None:
    """Attach to the run, or start it. Wrong options end the session before a test begins."""
    config.addinivalue_line(
        "markers",
        "soak(kind='test', target='', object='', expect={}, within=None, labels={}): the body of the test is an event"
        " of the soak run",
    )
    plan = config.getoption("--soak-plan")
    name = config.getoption("--soak-run")
    if not (plan or name):
        name = os.environ.get(_VARIABLE) or None
    if config.option.collectonly or not (plan or name):
        return
    if plan and name:
        raise pytest.UsageError("--soak-plan starts a run, --soak-run names one: give one of them")
    if plan and hasattr(config, "workerinput"):
        raise pytest.UsageError(
            "each worker would start a run of --soak-plan: start it yourself and name it with --soak-run"
        )
    from soakwatch.core.errors import SoakwatchError
    from soakwatch.integrations.attach import attach
    from soakwatch.integrations.child_run import Companion

    companion = None
    try:
        if plan:
            companion = Companion.start(plan, config.getoption("--soak-runs"))
            name = str(companion.folder)
        run = attach(str(name), token=config.getoption("--soak-token"), runs=config.getoption("--soak-runs"))
    except SoakwatchError as error:
        raise pytest.UsageError(f"soakwatch: {error}") from None
    config.stash[_SESSION] = _Session(run, companion)


def pytest_report_header(config: pytest.Config) -> str | list[str]:
    """The run in which events are recorded; nothing without one."""
    session = config.stash.get(_SESSION, None)
    if session is None:
        return []
    return f"soakwatch: recording events in {session.run.name}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Run the test's body, as an event if it is marked, and add a verdict if it reported any."""
    session = item.config.stash.get(_SESSION, None)
    if session is None:
        if item.get_closest_marker("soak") is not None or "soak" in getattr(item, "fixturenames", ()):
            item.config.stash[_UNRECORDED] = item.config.stash.get(_UNRECORDED, 0) + 1
        return (yield)
    reported_before = len(session.run.reported)
    try:
        marker = item.get_closest_marker("soak")
        if marker is None:
            result = yield
        else:
            with _event(session.run, marker, item.nodeid):
                result = yield
    except BaseException:
        _report_verdict(item, session, reported_before)
        raise
    verdict = _report_verdict(item, session, reported_before)
    if item.config.getoption("--soak-fail") and verdict is not None and verdict.outcome.value == "fail":
        pytest.fail(f"soakwatch: {verdict.reason}", pytrace=False)
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the run that this session started; fail the session if the run failed and that is wanted."""
    mine = session.config.stash.get(_SESSION, None)
    if mine is None:
        return
    outcome, wanted = None, bool(session.config.getoption("--soak-fail-run"))
    if mine.companion is not None:
        mine.ending, outcome = mine.companion.end()
    elif wanted:
        outcome = _run_outcome(mine.run)
    if wanted and outcome == "fail" and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the run that this session started, however the session ended."""
    mine = config.stash.get(_SESSION, None)
    if mine is not None and mine.companion is not None:
        mine.companion.end()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The verdict on the run so far, and how many events were recorded."""
    mine, unrecorded = config.stash.get(_SESSION, None), config.stash.get(_UNRECORDED, 0)
    if mine is None:
        if unrecorded:
            tests = f"{unrecorded} test{'s' if unrecorded > 1 else ''}"
            terminalreporter.line(
                f"soakwatch: not attached to a run: events of {tests} were not recorded (--soak-run=, --soak-plan=)"
            )
        return
    terminalreporter.section("soakwatch")
    number = len(mine.run.reported)
    terminalreporter.line(f"{mine.run.name}: {number} event{'' if number == 1 else 's'} recorded")
    terminalreporter.line(mine.ending or _verdict_text(mine.run))


def _event(run: SoakRun, marker: pytest.Mark, nodeid: str) -> AbstractContextManager[OpenEvent]:
    from soakwatch.core.errors import SoakwatchError
    from soakwatch_model.sample import object_text

    given = dict(marker.kwargs)
    if len(marker.args) == 1 and "kind" not in given:
        given["kind"] = marker.args[0]
    elif marker.args:
        pytest.fail("soak: the marker takes one positional argument, the kind; give the others by name", pytrace=False)
    wrong = sorted(set(given) - set(_KEYS))
    if wrong:
        pytest.fail(f"soak: the marker has no {wrong[0]!r}: it takes {', '.join(_KEYS)}", pytrace=False)
    name = "".join(sign if sign.isprintable() else "?" for sign in nodeid)[:_MAX_NAME_CHARS]
    given["labels"] = {"test": name, **given.get("labels", {})}
    if "kind" not in given:
        # Parallel tests have events of one kind, which may not overlap on the same object.
        given = {"kind": _DEFAULT_KIND, "object": object_text(test=name), **given}
    try:
        return _ReportedBlock(run.event(given.pop("kind"), **given))
    except SoakwatchError as error:
        pytest.fail(f"soak: {error}", pytrace=False)


class _ReportedBlock:
    """An event block: refused events fail the test without a traceback; an end that is not recorded is a warning."""

    def __init__(self, block: AbstractContextManager[OpenEvent]) -> None:
        self._block = block

    def __enter__(self) -> OpenEvent:
        from soakwatch.core.errors import SoakwatchError

        try:
            return self._block.__enter__()
        except SoakwatchError as error:
            pytest.fail(f"soak: {error}", pytrace=False)

    def __exit__(self, *what: object) -> None:
        from soakwatch.core.errors import SoakwatchError

        try:
            self._block.__exit__(*what)  # type: ignore[arg-type] # handed on as it came
        except SoakwatchError as error:
            warnings.warn(pytest.PytestWarning(f"the end of the event was not recorded: {error}"), stacklevel=1)


def _unrecorded_event(kind: str) -> AbstractContextManager[OpenEvent]:
    from soakwatch.runs.attached import EventBlock
    from soakwatch.runs.mark_event import EventRequest

    return EventBlock(None, EventRequest("begin", kind))


def _report_verdict(item: pytest.Item, session: _Session, reported_before: int) -> InterimVerdict | None:
    """Add the verdict to the report of a test that reported events; returns it, or None."""
    events = session.run.reported[reported_before:]
    if not events:
        return None
    from soakwatch.core.errors import SoakwatchError
    from soakwatch.runs.mark_event import moment_text

    begin_ns = min(stored.event.begin_ns for stored in events)
    end_ns = max(stored.event.end_ns or stored.event.begin_ns for stored in events)
    lines = [
        f"{stored.event.kind} {moment_text(stored.event.begin_ns)} to"
        f" {'now' if stored.event.end_ns is None else moment_text(stored.event.end_ns)}"
        for stored in events
    ]
    try:
        whole = session.run.verdict(end_ns)
    except SoakwatchError as error:
        item.add_report_section("call", "soak", "\n".join([*lines, f"no verdict: {error}"]))
        return None
    verdict = whole.during(begin_ns, end_ns)
    lines += [
        f"{verdict.outcome.value.upper()}: {verdict.reason}",
        f"run so far: {whole.outcome.value}: {whole.reason}",
    ]
    item.add_report_section("call", "soak", "\n".join(lines))
    item.user_properties.append(("soak_verdict", verdict.outcome.value))
    return verdict


def _verdict_text(run: SoakRun) -> str:
    from soakwatch.core.errors import SoakwatchError

    try:
        verdict = run.verdict()
    except SoakwatchError as error:
        return f"no verdict: {error}"
    return f"{verdict.outcome.value.upper()} so far: {verdict.reason}"


def _run_outcome(run: SoakRun) -> str | None:
    from soakwatch.core.errors import SoakwatchError

    try:
        return run.verdict().outcome.value
    except SoakwatchError:
        return None
