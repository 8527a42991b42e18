"""What the samples prove though nobody reported it: restarts and reboots while the monitor was away."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from soakwatch.judge.derived_events import derived_events
from soakwatch.record import SeriesKey
from soakwatch_model.event import Event
from soakwatch_model.series import Series, Trait

SECOND = 10**9
OBJECT = "process=nginx,instance=0"


class States:
    """A record of one state series."""

    def __init__(self, metric: str, values: list[float], object_text: str = OBJECT) -> None:
        times = np.arange(len(values), dtype=np.int64) * SECOND
        self._series = Series("dut", metric, object_text, Trait("s", "state"), times, np.array(values), 1.0)

    def keys(self, metrics: Sequence[str] | None = None) -> tuple[SeriesKey, ...]:
        """Its key, if it is asked for."""
        key = SeriesKey("dut", self._series.metric, self._series.object)
        return (key,) if metrics is None or self._series.metric in metrics else ()

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
        """The series."""
        return self._series


def restart(second: int) -> Event:
    """A restart that a probe reported."""
    return Event("process.restart", "dut", OBJECT, second * SECOND, second * SECOND)


def test_an_unreported_restart_is_found() -> None:
    """A start time that changed over a gap is a restart at the first reading after it."""
    (event,) = derived_events(States("process.start_time", [100.0] * 5 + [900.0] * 5), ())
    assert (event.kind, event.object, event.begin_ns) == ("process.restart", OBJECT, 5 * SECOND)


def test_a_reported_restart_is_not_reported_twice() -> None:
    """The probe's own event stands; one of another time does not explain the change."""
    record = States("process.start_time", [100.0] * 50 + [900.0] * 50)
    assert derived_events(record, [restart(50)]) == ()
    assert len(derived_events(record, [restart(90)])) == 1


def test_rounding_of_the_boot_time_is_no_restart() -> None:
    """Start times rest on a time of boot that is rounded: one second is nothing."""
    assert derived_events(States("process.start_time", [100.0, 101.0, 100.0]), ()) == ()


def test_a_new_boot_id_is_a_reboot() -> None:
    """Every change of the boot id counts, whatever its size."""
    (event,) = derived_events(States("system.boot.id", [7.0, 7.0, 8.0], ""), ())
    assert (event.kind, event.begin_ns) == ("reboot", 2 * SECOND)


def test_of_many_restarts_only_the_unreported_are_found() -> None:
    """Each change is held against the events of its own time: an announcement is none, one of no target counts."""
    record = States("process.start_time", [100.0 * (second // 20) for second in range(400)])
    restarts = [restart(second) for second in range(20, 400, 40)]
    restarts[0] = Event("process.restart", "", OBJECT, 20 * SECOND, 20 * SECOND)
    asked = Event("process.restart", "dut", OBJECT, 40 * SECOND, 40 * SECOND, expect={"process.restart": 1})
    events = derived_events(record, [asked, *reversed(restarts)])
    assert [event.begin_ns // SECOND for event in events] == list(range(40, 400, 40))
