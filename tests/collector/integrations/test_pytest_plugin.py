"""The pytest plugin as test engineers meet it: sessions of pytest beside runs; that which starts a run is a process of
its own, the others are in this one."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from tests.commands import MAX_WAIT_S

from soakwatch.judge.record_verdict import judge_record
from soakwatch.plan.web import WebPlan
from soakwatch.record import Record, RecordView
from soakwatch_model.event import Event
from soakwatch_testing.records import small_record
from soakwatch_testing.served import serve_run

pytest_plugins = "pytester"

SECOND = 10**9
Events = Callable[[Path], list[Event]]
Recorded = Callable[..., Path]
INSTALLED = any(
    point.value == "soakwatch.integrations.pytest_plugin" for point in metadata.entry_points(group="pytest11")
)


Session = Callable[..., pytest.RunResult]
WORDS = (
    *(() if INSTALLED else ("-p", "soakwatch.integrations.pytest_plugin")),
    *("-p", "no:cacheprovider", "-W", "error"),
)


@pytest.fixture(scope="module")
def _loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What judges is imported: pytester forgets what a session here imports, and the next would do it again."""
    folder = tmp_path_factory.mktemp("loaded") / "run"
    small_record(folder, 5).close()
    with RecordView.open(folder) as view:
        judge_record(view)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No run is named by the environment."""
    for name in ("SOAKWATCH_RUN", "SOAKWATCH_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def session(pytester: pytest.Pytester, alone: None, _loaded: None) -> Session:
    """A session of pytest with the plugin, in an empty folder and in this process."""

    def call(*words: object) -> pytest.RunResult:
        return pytester.runpytest_inprocess(*WORDS, *map(str, words))

    return call


@pytest.fixture
def process(pytester: pytest.Pytester, alone: None) -> Session:
    """The same in a process of its own."""

    def call(*words: object) -> pytest.RunResult:
        return pytester.runpytest_subprocess(*WORDS, *map(str, words), timeout=MAX_WAIT_S)

    return call


FAILOVER = """
    def test_failover(soak):
        with soak.event("failover", target="dut", expect={"reboot": 0}, labels={"ticket": "1"}) as event:
            event.labels["winner"] = "unit-2"
        soak.mark("config")
        assert soak.attached and soak.name == "run"
"""


def test_the_fixture_tells_events(session: Session, pytester: pytest.Pytester, run: Path, events_of: Events) -> None:
    """Header, section and summary name the run; the record has what was reported."""
    pytester.makepyfile(FAILOVER)
    result = session(f"--soak-run={run}", "-rA")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "soakwatch: recording events in run",
            "*Captured soak*",
            "failover 2* to 2*",
            "config 2*",
            "run so far: pass: *",
            "*= soakwatch =*",
            "run: 2 events recorded",
            "PASS so far: *",
        ]
    )
    failover, config = events_of(run)
    assert (failover.detail, failover.expect) == ({"ticket": "1", "winner": "unit-2"}, {"reboot": 0})
    assert failover.end_ns is not None
    assert config.kind == "config"


def test_the_marker_makes_an_event_of_the_test(
    session: Session, pytester: pytest.Pytester, run: Path, events_of: Events
) -> None:
    """Its body, without fixtures; a failing test leaves the exception's type, a skipped one as well."""
    pytester.makepyfile("""
        import time, pytest

        @pytest.fixture
        def slow():
            before = time.time_ns()
            yield before

        @pytest.mark.soak(kind="upgrade", target="dut", expect={"reboot": 1}, within="10m", labels={"by": "me"})
        def test_upgrade(slow):
            pass

        @pytest.mark.soak("flap")
        def test_flap():
            raise ValueError("secret")

        @pytest.mark.soak
        def test_plain():
            pytest.skip("not today")
    """)
    result = session(f"--soak-run={run}")
    result.assert_outcomes(passed=1, failed=1, skipped=1)
    result.stdout.fnmatch_lines(["*Captured soak*", "flap 2* to 2*", "*: *"])
    upgrade, flap, plain = events_of(run)
    name = "test_the_marker_makes_an_event_of_the_test.py"
    assert upgrade.detail == {"test": f"{name}::test_upgrade", "by": "me"}
    assert upgrade.expect == {"reboot": 1}
    assert upgrade.deadline_ns == upgrade.begin_ns + 600 * SECOND
    assert (flap.kind, flap.detail["error"], "secret" in str(flap.detail)) == ("flap", "ValueError", False)
    assert (plain.kind, plain.object, plain.detail["error"]) == ("test", f"test={name}::test_plain", "Skipped")
    assert all(event.end_ns is not None for event in (upgrade, flap, plain))


def test_without_a_run_no_event_is_recorded(session: Session, pytester: pytest.Pytester) -> None:
    """The same tests run, and the summary says so; sessions that know nothing of a soak are left in peace."""
    pytester.makepyfile("""
        import pytest

        @pytest.mark.soak(kind="upgrade")
        def test_upgrade(soak):
            with soak.event("failover") as event:
                event.labels["a"] = "b"
            assert soak.mark("config") is None
            assert soak.verdict() is None
            assert not soak.attached and soak.name is None
    """)
    result = session("--strict-markers")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["soakwatch: not attached to a run: events of 1 test *"])
    result.stdout.no_fnmatch_line("*= soakwatch =*")
    pytester.makepyfile("def test_plain(): pass")
    session().stdout.no_fnmatch_line("*soakwatch:*")


@pytest.mark.parametrize("words", [(), ("--soak-fail",)], ids=["told", "failing"])
def test_a_device_that_failed_during_a_test(
    session: Session, pytester: pytest.Pytester, recorded: Recorded, words: tuple[str, ...]
) -> None:
    """The reboot in the stretch is in the test's section and in JUnit; `--soak-fail` makes it the test's failure."""
    folder = recorded("run", reboot_s=300)
    with RecordView.open(folder) as view:
        begin_ns = view.window().begin_ns
    pytester.makepyfile(f"""
        from datetime import UTC, datetime

        def moment(seconds):
            return datetime.fromtimestamp({begin_ns * 1e-9} + seconds, UTC)

        def test_bad(soak):
            soak.mark("failover", at=moment(280), until=moment(330))

        def test_good(soak):
            soak.mark("failover", at=moment(60), until=moment(90))

        def test_says_nothing():
            pass
    """)
    result = session(f"--soak-run={folder}", "-rA", "--junit-xml", "j.xml", *words)
    result.assert_outcomes(passed=2 if words else 3, failed=1 if words else 0)
    result.stdout.fnmatch_lines(["FAIL: reboot: 1 reboot*", "run so far: fail: *"])
    result.stdout.fnmatch_lines(["PASS: nothing failed in it, * judged it"])
    if words:
        result.stdout.fnmatch_lines(["soakwatch: reboot: 1 reboot*"])
    verdicts = {
        case.get("name"): [prop.get("value") for prop in case.iter("property") if prop.get("name") == "soak_verdict"]
        for case in ET.parse(pytester.path / "j.xml").iter("testcase")
    }
    assert verdicts == {"test_bad": ["fail"], "test_good": ["pass"], "test_says_nothing": []}


def test_a_run_that_fails_can_fail_the_session(session: Session, pytester: pytest.Pytester, recorded: Recorded) -> None:
    """`--soak-fail-run`: whatever failed, whenever."""
    folder = recorded("run", reboot_s=300)
    pytester.makepyfile("def test_nothing(): pass")
    assert session(f"--soak-run={folder}").ret == pytest.ExitCode.OK
    result = session(f"--soak-run={folder}", "--soak-fail-run")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAIL so far: *reboot*"])


def test_over_http(
    session: Session, pytester: pytest.Pytester, run: Path, events_of: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SOAKWATCH_RUN may be a URL; the token comes from a file."""
    pytester.makepyfile(FAILOVER)
    with serve_run(WebPlan(listen="127.0.0.1:0"), run, time.time_ns) as served:
        monkeypatch.setenv("SOAKWATCH_RUN", served.url)
        result = session(f"--soak-token=file:{run / 'web.token'}", "-rA")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["soakwatch: recording events in run", "run: 2 events recorded"])
    assert [event.kind for event in events_of(run)] == ["failover", "config"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--soak-run=nowhere",), "*nowhere is not a run*"),
        (("--soak-run=http://127.0.0.1:9",), "*requires a token*"),
        (("--soak-run=a", "--soak-plan=b"), "*give one of them*"),
        (("--soak-plan=none.yaml",), "*none.yaml*"),
    ],
)
def test_a_run_that_is_not_there_ends_the_session(
    session: Session, pytester: pytest.Pytester, words: tuple[str, ...], sentence: str
) -> None:
    """Before the first test: a usage error of pytest in one sentence."""
    pytester.makepyfile(FAILOVER)
    result = session(*words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {sentence}"])
    assert "Traceback" not in result.stderr.str()
    collected = session("--collect-only", *words)
    assert collected.ret == pytest.ExitCode.OK


def test_events_that_are_refused_fail_their_test(session: Session, pytester: pytest.Pytester, run: Path) -> None:
    """With the sentence; a marker that says nonsense too. The others go on."""
    with Record.open(run) as record:
        record.add_event("", Event("upgrade", "", "", time.time_ns(), None), "user")
    pytester.makepyfile("""
        import pytest

        @pytest.mark.soak(kind="upgrade")
        def test_overlapping(): raise AssertionError("never begun")

        @pytest.mark.soak(kind="upgrade", targte="dut")
        def test_typo(): raise AssertionError("never begun")

        @pytest.mark.soak("a", "b")
        def test_two_kinds(): raise AssertionError("never begun")

        @pytest.mark.soak(kind="failover", target="moon")
        def test_moon(): raise AssertionError("never begun")

        def test_later(soak):
            with soak.event("failover"): pass
    """)
    result = session(f"--soak-run={run}")
    result.assert_outcomes(passed=1, failed=4)
    result.stdout.fnmatch_lines(
        [
            "soak: it overlaps with the upgrade that started at * and is still open: end that one first",
            "soak: the marker has no 'targte': it takes *",
            "soak: the marker takes one positional argument, the kind*",
            "soak: the run has no target 'moon'*",
        ]
    )
    result.stdout.no_fnmatch_line("*never begun*")


PLAN = """
name: beside
duration: 10m
web: false
targets: {here: {sources: [{local: {interval: 200ms, timeout: 10s}}]}}
watch: {processes: [{pidfile: %s, name: service}]}
"""


def test_a_plan_runs_beside_the_session(process: Session, pytester: pytest.Pytester) -> None:
    """`--soak-plan` starts a run and ends it: a service that a test restarts is that test's failure, an announced
    restart is none; the summary tells the run's verdict, and nothing is left behind."""
    pidfile = pytester.path / "service.pid"
    (pytester.path / "plan.yaml").write_text(PLAN % pidfile)
    pytester.makeconftest(f"""
        import pathlib, subprocess, sys, time, pytest

        class Service:
            def __init__(self):
                self.start()
            def start(self):
                self.process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
                new = pathlib.Path({str(pidfile)!r} + ".new")
                new.write_text(str(self.process.pid))
                new.rename({str(pidfile)!r})
            def stop(self):
                self.process.kill()
                self.process.wait()

        SERVICE = Service()

        def pytest_unconfigure(config):
            SERVICE.stop()

        @pytest.fixture
        def service():
            return SERVICE
    """)
    pytester.makepyfile("""
        import pathlib, time, pytest
        from soakwatch.record import RecordView

        def settle():  # until it was polled three times from now on
            files = {file.resolve() for file in pathlib.Path("runs").glob("*/record.sqlite")}
            begin_ns, (run,) = time.time_ns(), files
            polled = 0
            while polled < 3:
                time.sleep(0.1)
                with RecordView.open(run) as view:
                    (source,) = [source for source in view.sources() if source.target == "here"]
                    polled = (view.answered_ns(source.id) > begin_ns).sum()

        @pytest.mark.soak(kind="calm", target="here")
        def test_calm(service): settle()

        @pytest.mark.soak(kind="upgrade", target="here", expect={"process.restart": 1}, within="1h")
        def test_announced(service):
            service.stop(); service.start(); settle()

        @pytest.mark.soak(kind="reload", target="here")
        def test_not_announced(service):
            service.stop(); service.start(); settle()
    """)
    result = process("--soak-plan=plan.yaml", "--soak-fail", "-v", "-rA")
    result.stdout.fnmatch_lines(["*::test_not_announced FAILED*"])
    result.stdout.fnmatch_lines(["*::test_announced PASSED*"])
    result.stdout.fnmatch_lines(
        ["soakwatch: *process_restart: *", "*= soakwatch =*", "*-beside: 3 events recorded", "FAIL: *"]
    )
    result.assert_outcomes(passed=2, failed=1)
    (record,) = pytester.path.glob("runs/*/record.sqlite")
    with RecordView.open(record) as view:
        assert view.meta("verdict") == "fail"
        assert [e.event.kind for e in view.events() if e.origin == "user"] == ["calm", "upgrade", "reload"]
    assert (record.parent / "report.html").is_file()


def test_a_plan_that_cannot_be_run(session: Session, pytester: pytest.Pytester) -> None:
    """What the run says of it is the usage error."""
    (pytester.path / "plan.yaml").write_text("duration: 1m\ntargets: {t: {sources: [{tcp: {port: 0}}]}}\n")
    pytester.makepyfile(FAILOVER)
    result = session("--soak-plan=plan.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: soakwatch: plan.yaml:2:*"])


def test_the_plugin_is_light(pytester: pytest.Pytester) -> None:
    """A session without a soak loads neither numpy nor a protocol."""
    result = pytester.runpython_c(
        "import sys, soakwatch.integrations.pytest_plugin;"
        "print(sorted({'numpy', 'scipy', 'httpx', 'pydantic', 'starlette', 'uvicorn'} & set(sys.modules)))"
    )
    result.stdout.fnmatch_lines(["[[]]"])
