"""CoreDump: a crash that a device tells of in its log, by notification or on its CLI counts like a core file."""

from __future__ import annotations

import numpy as np
import pytest

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.detectors.core_dump import CoreDump
from soakwatch_rules.signals import readings

S = 10**9
FOLDER = "folder=/var/crash"


def cores(rise: int, seconds: int = 100) -> Series:
    """The number of core files, one more from this second on."""
    return readings("system.core.files", (np.arange(seconds) >= rise).astype(np.float64), 1.0, object=FOLDER)


def reported(kind: str, at_s: float, process: str = "") -> Event:
    """A crash that the device tells of."""
    return Event(kind, "dut", "", round(at_s * S), None, {"process": process, "line": "…"})


def case(series: tuple[Series, ...], *events: Event, seconds: int = 100) -> Case:
    """A run of so many seconds."""
    return Case("dut", "", Window(0, seconds * S), series, events=events)


@pytest.mark.parametrize("kind", ["process.crash", "device.crash", "watchdog"])
def test_a_crash_that_the_device_tells_of_fails_without_a_core(kind: str) -> None:
    """A log line or a notification is enough, with a core folder that stays empty and without any."""
    for series in ((cores(1000),), ()):
        (failed,) = CoreDump().judge(case(series, reported(kind, 40, "bgpd")))
        assert failed.outcome is Outcome.FAIL
        assert f"1 crash: {kind} of bgpd" in failed.reason


def test_one_crash_reported_twice_is_one() -> None:
    """The core, the line of the kernel and that of the service manager tell of one crash; another one later counts."""
    fallen = Event("core.dump", "dut", FOLDER, 39 * S, None, {"file": "core.77", "mtime_s": "39.0"})
    lines = (reported("process.crash", 40, "bgpd"), reported("process.crash", 41, "bgpd.service"))
    (once,) = CoreDump().judge(case((cores(39),), fallen, *lines))
    assert once.measured == 1.0
    (twice,) = CoreDump().judge(
        case((cores(5000, 1000),), *lines, reported("process.crash", 400, "ospfd"), seconds=1000)
    )
    assert twice.measured == 2.0


def test_a_crash_before_the_run_is_none_of_it() -> None:
    """What a log tells of before the window does not fail it."""
    (calm,) = CoreDump().judge(case((cores(1000),), reported("process.crash", -5, "bgpd")))
    assert calm.outcome is Outcome.PASS
