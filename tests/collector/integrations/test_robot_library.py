"""The Robot Framework library, by robot itself: suites run beside a run."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from soakwatch.plan.web import WebPlan
from soakwatch.record import RecordView
from soakwatch_model.event import Event
from soakwatch_testing.served import serve_run

SECOND = 10**9
Events = Callable[[Path], list[Event]]
Recorded = Callable[..., Path]
Robot = Callable[..., "subprocess.CompletedProcess[str]"]

ROBOT = pytest.importorskip("robot", reason="robotframework is not installed")


@pytest.fixture
def robot(tmp_path: Path) -> Robot:
    """Run one suite in this process, given as its text; what became of its tests is in ``output.xml``."""

    def call(suite: str, **variables: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "suite.robot").write_text(suite)
        clean = {key: value for key, value in os.environ.items() if not key.startswith("SOAKWATCH_")}
        out, err = io.StringIO(), io.StringIO()
        files = {"outputdir": str(tmp_path), "output": "output.xml", "log": "NONE", "report": "NONE"}
        with contextlib.chdir(tmp_path), mock.patch.dict(os.environ, {**clean, **variables}, clear=True):
            code = ROBOT.run(str(tmp_path / "suite.robot"), **files, stdout=out, stderr=err)
        return subprocess.CompletedProcess([suite], code, out.getvalue(), err.getvalue())

    return call


def outcomes(folder: Path) -> dict[str, tuple[str, str]]:
    """Each test's status and message."""
    results = {}
    for test in ET.parse(folder / "output.xml").iter("test"):
        status = test.find("status")
        assert status is not None
        results[test.get("name", "")] = status.get("status", ""), status.text or ""
    return results


EVENTS = """
*** Settings ***
Library    soakwatch.integrations.robot    %s

*** Test Cases ***
Failover
    ${begin} =    Begin Soak Event    failover    target=dut    expect=reboot=1, link.down=2    within=5m    ticket=4711
    Should Match Regexp    ${begin}    ^2\\\\d{3}-.*Z$
    End Soak Event    failover    target=dut    winner=unit 2
Config
    Mark Soak Event    config    object=interface=eth0    by=robot
Stretch
    Mark Soak Event    flap    at=${AT}    until=${UNTIL}
"""


def test_events_are_recorded(robot: Robot, run: Path, tmp_path: Path, events_of: Events) -> None:
    """Begin, end, mark: all of it is in the record."""
    with RecordView.open(run) as view:
        begin_ns = view.window().begin_ns
    from soakwatch.runs.mark_event import moment_text

    suite = EVENTS % run
    for name, seconds in (("${AT}", 60), ("${UNTIL}", 70)):
        suite = suite.replace(name, moment_text(begin_ns + seconds * SECOND))
    done = robot(suite)
    assert done.returncode == 0, done.stdout + done.stderr
    kept = {event.kind: event for event in events_of(run)}
    assert kept["failover"].expect == {"reboot": 1, "link.down": 2}
    assert kept["failover"].detail == {"ticket": "4711", "winner": "unit 2"}
    assert kept["failover"].deadline_ns == kept["failover"].begin_ns + 300 * SECOND
    assert kept["failover"].end_ns is not None
    assert (kept["config"].object, kept["config"].detail) == ("interface=eth0", {"by": "robot"})
    assert kept["flap"].end_ns == kept["flap"].begin_ns + 10 * SECOND


VERDICTS = """
*** Settings ***
Library    soakwatch.integrations.robot

*** Test Cases ***
Bad While It Rebooted
    Mark Soak Event    failover    at=%(bad)s    until=%(bad_end)s
    Soak Verdict Should Be    pass
Good Before
    Mark Soak Event    failover    at=%(good)s    until=%(good_end)s
    ${why} =    Soak Verdict Should Be    pass    warn
    Should Contain    ${why}    nothing failed in it
Fail Is What Was Wanted
    Mark Soak Event    reload    at=%(bad)s    until=%(bad_end)s
    Soak Verdict Should Be    Fail
The Run As A Whole
    Soak Verdict Should Be    fail    scope=run
Without An Event It Is The Run
    Soak Verdict Should Be    pass
A Word That Is None
    Soak Verdict Should Be    great
A Scope That Is None
    Soak Verdict Should Be    pass    scope=moon
"""


def test_verdicts(robot: Robot, recorded: Recorded, tmp_path: Path) -> None:
    """Of the event of a test, or of the run; the reason is in the message, and what fails, fails."""
    folder = recorded("run", reboot_s=300)
    with RecordView.open(folder) as view:
        begin_ns = view.window().begin_ns
    from soakwatch.runs.mark_event import moment_text

    times = {"bad": 280, "bad_end": 330, "good": 60, "good_end": 90}
    suite = VERDICTS % {name: moment_text(begin_ns + seconds * SECOND) for name, seconds in times.items()}
    done = robot(suite, SOAKWATCH_RUN=str(folder))
    assert done.returncode == 4, done.stdout + done.stderr
    results = outcomes(tmp_path)
    assert [name for name, (status, _) in results.items() if status == "PASS"] == [
        "Good Before",
        "Fail Is What Was Wanted",
        "The Run As A Whole",
    ]
    assert results["Bad While It Rebooted"][1].startswith("the soak verdict is fail, not pass: reboot: 1 reboot")
    assert "the soak verdict is fail, not pass" in results["Without An Event It Is The Run"][1]
    assert (
        "invalid verdict 'great': expected one or more of fail, inconclusive, warn, pass"
        in results["A Word That Is None"][1]
    )
    assert "invalid scope 'moon'" in results["A Scope That Is None"][1]


REFUSED = """
*** Settings ***
Library    soakwatch.integrations.robot    %s    token=%s

*** Test Cases ***
Overlap
    Begin Soak Event    upgrade
    Begin Soak Event    upgrade
Never Begun
    End Soak Event    reload
Odd Kind
    Mark Soak Event    Fail Over
Odd Expectation
    Mark Soak Event    failover    expect=reboot
Moon
    Mark Soak Event    failover    target=moon
"""


def test_refusals_are_one_sentence(robot: Robot, run: Path, tmp_path: Path) -> None:
    """Over HTTP as in the folder: each keyword fails with the server's sentence."""
    with serve_run(WebPlan(listen="127.0.0.1:0"), run, time.time_ns) as served:
        done = robot(REFUSED % (served.url, f"file:{run / 'web.token'}"))
    assert done.returncode == 5, done.stdout + done.stderr
    messages = {name: message for name, (_, message) in outcomes(tmp_path).items()}
    assert "still open: end that one first" in messages["Overlap"]
    assert "no open event 'reload'" in messages["Never Begun"]
    assert "write a lower-case word" in messages["Odd Kind"]
    assert "'reboot' is not KIND=N, such as reboot=1" in messages["Odd Expectation"]
    assert "the run has no target 'moon'" in messages["Moon"]
    assert all(len(message.splitlines()) == 1 for message in messages.values())


def test_without_a_run(robot: Robot, tmp_path: Path) -> None:
    """The library says what is missing when a keyword wants it, not before."""
    case = "*** Test Cases ***\nNone\n    Mark Soak Event    failover\n"
    suite = f"*** Settings ***\nLibrary    soakwatch.integrations.robot\n\n{case}"
    assert robot(suite).returncode == 1
    assert "no run given: pass it to the library, or export SOAKWATCH_RUN" in outcomes(tmp_path)["None"][1]
    assert robot(suite, SOAKWATCH_RUN="nowhere").returncode == 1
    assert "nowhere is not a run" in outcomes(tmp_path)["None"][1]


def test_its_documentation_is_complete(tmp_path: Path) -> None:
    """Robot's own libdoc finds four keywords with arguments and text, and the version."""
    done = subprocess.run(
        [sys.executable, "-m", "robot.libdoc", "soakwatch.integrations.robot", str(tmp_path / "doc.xml")],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    document = ET.parse(tmp_path / "doc.xml").getroot()
    keywords = {element.get("name"): element.findtext("doc") or "" for element in document.iter("kw")}
    assert set(keywords) == {"Begin Soak Event", "End Soak Event", "Mark Soak Event", "Soak Verdict Should Be"}
    assert all(len(text) > 80 for text in keywords.values())
    assert document.findtext("version")
