"""saturation: what has a limit and reached it, what refuses service then, and what stood there all the time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch.judge.problems import clause
from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.detectors.saturation import Saturation
from soakwatch_rules.signals import readings

S = 10**9
N = 1440
Floats = NDArray[np.float64]


def used(share: float = 0.5, full: float = 1.0, begin: int = 700, end: int = 700) -> Floats:
    """A share in use that is at another from one minute to another."""
    value = np.full(N, share)
    value[begin:end] = full
    return value


def series(metric: str, share: Floats, object_name: str, limit: float | None = 1e6) -> Series:
    """Readings of a minute of something with a limit."""
    series = readings(metric, share * (limit or 1.0), 60.0, object=object_name)
    return replace(series, trait=replace(series.trait, ceiling=limit))


def judge(*of: Series, rule: Saturation | None = None, **more: object) -> Finding:
    """What is said of the first."""
    case = Case("dut", of[0].object, Window(0, N * 60 * S), of)
    return (rule or Saturation()).judge(replace(case, **more))[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("metric", "object_name", "text"),
    [
        ("system.sessions", "table=sessions", "session table: 100 % of 1 M sessions"),
        ("system.conntrack.count", "", "connection table: 100 % of 1 M connections"),
        ("queue.depth", "queue=3", "queue 3: 100 % of 1 M packets"),
        ("system.sockets.memory", "protocol=tcp", "memory of sockets tcp: 100 % of 977 KiB"),
        ("system.tcp.orphans", "", "orphaned TCP sockets: 100 % of 1 M sockets"),
        ("process.open_files", "process=web,instance=0", "open files of process web: 100 % of 1 M descriptors"),
    ],
)
def test_a_full_table_fails(metric: str, object_name: str, text: str) -> None:
    """Five minutes at the limit are refused service; a burst of one reading is none; half full passes."""
    finding = judge(series(metric, used(end=705), object_name))
    assert finding.outcome is Outcome.FAIL, finding.reason
    assert text in finding.reason
    assert "for 5 min" in finding.reason
    assert finding.marks[0].begin_ns == 700 * 60 * S
    assert judge(series(metric, used(end=701), object_name)).outcome is Outcome.PASS
    assert judge(series(metric, used(), object_name)).outcome is Outcome.PASS
    assert judge(series(metric, np.ones(N), object_name)).outcome is Outcome.FAIL, "full from the start is full"


def test_without_a_limit_nothing_is_judged() -> None:
    """A table whose size the device does not state is not applicable; a share in use has its own."""
    finding = judge(series("system.sessions", used(end=800), "table=nat", None))
    assert finding.outcome is Outcome.NOT_APPLICABLE
    assert "states no limit" in finding.reason
    share = readings("system.sessions.utilization", used(end=800), 60.0, object="table=nat")
    assert judge(share).outcome is Outcome.FAIL


def test_a_table_with_two_metrics_is_judged_once() -> None:
    """Sessions with their limit, and the share in use beside them: one finding."""
    share = readings("system.sessions.utilization", used(end=800), 60.0, object="table=sessions")
    case = Case(
        "dut",
        "table=sessions",
        Window(0, N * 60 * S),
        (series("system.sessions", used(end=800), "table=sessions"), share),
    )
    assert [f.metric for f in Saturation().judge(case)] == ["system.sessions"]


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (np.ones(N), Outcome.NOT_APPLICABLE),
        (np.full(N, 0.97), Outcome.WARN),
        (used(0.6, 0.97, 700, N), Outcome.FAIL),
        (used(0.6, 0.97, 700, 760), Outcome.WARN),
        (used(0.6, 1.0, 700, 760), Outcome.FAIL),
        (np.linspace(0.96, 1.0, N), Outcome.FAIL),
        (0.5 + 0.3 * (np.arange(N) % 360) / 360, Outcome.PASS),
    ],
    ids=["read-only image", "stands", "filled", "rotated in time", "full for an hour", "last bytes", "rotated"],
)
def test_file_systems(share: Floats, expected: Outcome) -> None:
    """What stands full is an image or was so before; what got there fails: of its space as of its inodes."""
    finding = judge(series("system.filesystem.usage", share, "mountpoint=/data", 1e11))
    assert finding.outcome is expected, finding.reason
    finding = judge(series("system.filesystem.inodes.usage", share, "mountpoint=/data"))
    assert finding.outcome is expected, finding.reason
    assert finding.reason.startswith("inodes of file system /data: ")
    assert " of 1 M inodes" in finding.reason


@pytest.mark.parametrize(
    ("metric", "object_name", "told"),
    [
        ("system.filesystem.usage", "mountpoint=/var", "file system /var on dut ran full"),
        ("system.filesystem.inodes.usage", "mountpoint=/var", "inodes of file system /var on dut ran full"),
        ("process.open_files", "process=web,instance=0", "open files of process web on dut ran full"),
        ("system.sockets.memory", "protocol=tcp", "memory of sockets tcp on dut ran full"),
    ],
)
def test_it_is_told_what_ran_full(metric: str, object_name: str, told: str) -> None:
    """Not /var, where its inodes are used up and space is free; nor a process, whose descriptors are."""
    assert clause(judge(series(metric, used(end=800), object_name))) == told


def test_pools_fail_by_what_they_refused() -> None:
    """A pool at 96 % warns, with allocations refused it fails; one that always stands there was made so."""
    full = series("system.memory.pool.usage", used(0.5, 0.96, 700, 760), "pool=dp", 1e9)
    assert judge(full).outcome is Outcome.WARN
    refused = readings("system.memory.pool.failures", np.where(np.arange(N) > 720, 17.0, 0.0), 60.0, object="pool=dp")
    refused = replace(refused, trait=replace(refused.trait, kind="counter"))
    finding = judge(full, refused)
    assert finding.outcome is Outcome.FAIL
    assert "system.memory.pool.failures counted 17" in finding.reason
    assert judge(series("system.memory.pool.usage", np.full(N, 0.97), "pool=dp", 1e9)).outcome is Outcome.NOT_APPLICABLE


def test_what_was_asked_for_warns() -> None:
    """A queue that is full under stress only, or in an announced event, warns; beside that it fails."""
    queue = series("queue.depth", used(end=730), "queue=0")
    stress = (Phase("stress", Window(690 * 60 * S, 740 * 60 * S)),)
    finding = judge(queue, phases=stress)
    assert finding.outcome is Outcome.WARN
    assert "(planned)" in finding.marks[0].text
    planned = Event("failover", "dut", "", 690 * 60 * S, 740 * 60 * S, expect={"outage": 1})
    assert judge(queue, events=(planned,)).outcome is Outcome.WARN
    assert judge(queue, phases=(replace(stress[0], window=Window(0, 710 * 60 * S)),)).outcome is Outcome.FAIL


def test_what_climbs_has_a_forecast_of_when_it_is_full() -> None:
    """From 20 to 80 % in a day: full in 8 h, a warning; from 20 to 30 % it takes a week: that passes."""
    rng = np.random.default_rng(1)
    climb = np.linspace(0.2, 0.8, N) + 0.005 * rng.standard_normal(N)
    finding = judge(readings("system.sessions.utilization", climb, 60.0, object="table=nat"))
    assert finding.outcome is Outcome.WARN
    assert "and rising: the limit is reached in 7 h 59 min at this rate" in finding.reason
    assert finding.forecast is not None
    assert finding.forecast.after_s == pytest.approx(8 * 3600, rel=0.05)
    slow = np.linspace(0.2, 0.3, N) + 0.002 * rng.standard_normal(N)
    later = judge(readings("system.sessions.utilization", slow, 60.0, object="table=nat"))
    assert later.outcome is Outcome.PASS
    assert later.forecast is not None
    assert later.forecast.after_s == pytest.approx(7 * 86400, rel=0.1)


def test_coarse_and_thin_readings() -> None:
    """Hourly readings need two at the limit; half of them missing is no pass."""
    hourly = readings("system.sessions.utilization", np.array([0.5] * 20 + [1.0, 1.0] + [0.5] * 20), 3600.0)
    assert Saturation().judge(Case("dut", "", Window(0, 42 * 3600 * S), (hourly,)))[0].outcome is Outcome.FAIL
    thin = series("system.sessions", used(), "table=sessions")
    thin = replace(thin, time_ns=thin.time_ns[:500], value=thin.value[:500])
    finding = judge(thin)
    assert (finding.outcome, finding.why) == (Outcome.INCONCLUSIVE, InconclusiveReason.GAP)


@pytest.mark.parametrize("bad", [{"enter": 1.1}, {"leave": 0.99}, {"leave": 0.0}, {"lasting": -1.0}])
def test_parameters_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    """Nonsense is refused with a sentence that names the rule."""
    with pytest.raises(ValueError, match="saturation"):
        Saturation(**bad)


def test_what_is_read_less_often_than_the_polls_lacks_no_reading() -> None:
    """A pool that a poll each second brings each 30 s passes; one that stopped to come in mid-run is a gap."""
    pool = series("system.memory.pool.usage", np.full(40, 0.5), "pool=heap", 1e9)
    slow = replace(pool, time_ns=np.arange(40, dtype=np.int64) * 30 * S, cadence_s=1.0)
    for taken, outcome in ((slice(None), Outcome.PASS), (slice(0, 15), Outcome.INCONCLUSIVE)):
        part = replace(slow, time_ns=slow.time_ns[taken], value=slow.value[taken])
        finding = Saturation().judge(Case("dut", part.object, Window(0, 1200 * S), (part,)))[0]
        assert finding.outcome is outcome, finding.reason


OUTCOMES = """
queue                              | saturation
idle                               | P
utilisation .8                     | P
utilisation .95                    | P
stands at 30                       | P
slots leak 50 % of the limit a day | W
slots leak 20 % of the limit a day | PW
utilisation creeps .7 to .97       | PW
full at the end                    | F

limits                   | saturation
half full                | P
bursts of one reading    | P
full under stress        | W
no limit stated          | N
read-only image          | N
stands at 97 %           | W
sessions full for 5 min  | F
connections full for 1 h | F
queue full to the end    | F
queue at 97 % for 30 min | F
file system fills        | F
sessions climb to 80 %   | W
"""
