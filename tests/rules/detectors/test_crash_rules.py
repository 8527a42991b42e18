"""The crash rules: process_restart, reboot, core_dump and oom_kill, true and false cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from soakwatch_model.case import Case, Unread
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.detectors.core_dump import CoreDump
from soakwatch_rules.detectors.oom_kill import OomKill
from soakwatch_rules.detectors.process_restart import ProcessRestart
from soakwatch_rules.detectors.reboot import Reboot
from soakwatch_rules.rule import Rule
from soakwatch_rules.signals import PROCESS, counter, readings, uptimes

S = 10**9
N = 100
WINDOW = Window(0, N * S)


def finding_of(
    rule: Rule, series: Sequence[Series], *events: Event, object_name: str = "", faults: tuple[str, ...] = ()
) -> Finding:
    """The one finding of a rule in a window of 100 s."""
    unread = tuple(Unread("", "", 0, 0, text) for text in faults)
    (finding,) = rule.judge(Case("dut", object_name, WINDOW, tuple(series), events=events, unread=unread))
    return finding


def happened(kind: str, at_s: float, object_name: str = "", **detail: str) -> Event:
    """An event without an end."""
    return Event(kind, "dut", object_name, round(at_s * S), None, detail)


def announced(key: str, number: int, begin_s: int, end_s: int, object_name: str = "") -> Event:
    """A planned event that announces something until its deadline."""
    return Event("upgrade", "dut", object_name, begin_s * S, None, {}, {key: number}, end_s * S)


# --- process_restart -----------------------------------------------------------------------------------------


def life(metric: str, values: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]]) -> Series:
    """A series of the process, one reading a second; NaN where there is none."""
    return readings(metric, np.array(values, dtype=np.float64), 1.0, object=PROCESS)


def starts(*changes: int, n: int = N) -> Series:
    """Start times that change before these seconds."""
    return life("process.start_time", [1000.0 + 10 * sum(t >= c for c in changes) for t in range(n)])


def ups(*down: tuple[int, int], n: int = N) -> Series:
    """Up, but for these stretches."""
    return life("process.up", [float(not any(a <= t < b for a, b in down)) for t in range(n)])


def restarted(*args: Series | Event, allowed: float = 0.0) -> Finding:
    """The finding on the process."""
    series = [a for a in args if isinstance(a, Series)]
    return finding_of(ProcessRestart(allowed), series, *[a for a in args if isinstance(a, Event)], object_name=PROCESS)


def test_steady_process_passes() -> None:
    """Up all the time with one start time: no restart."""
    finding = restarted(ups(), starts())
    assert (finding.outcome, finding.measured) == (Outcome.PASS, 0.0)


def test_all_witnesses_of_one_restart_are_one() -> None:
    """Down for three readings, exit and restart events and a new start time are one restart, marked once."""
    finding = restarted(
        ups((50, 53)), starts(53), happened("process.exit", 50, PROCESS), happened("process.restart", 53, PROCESS)
    )
    assert (finding.outcome, finding.measured, len(finding.marks)) == (Outcome.FAIL, 1.0, 1)


def test_a_restart_is_told_with_how_long_it_was_down_and_its_pids() -> None:
    """Not by which sources saw it; a start time that moved is told only where nothing else is known."""
    events = (
        replace(happened("process.exit", 50, PROCESS), detail={"pid": "18214"}),
        replace(happened("process.restart", 53, PROCESS), detail={"new_pid": "23158"}),
    )
    told = restarted(ups((50, 53)), starts(53), *events).reason
    assert told.endswith("restarted at 1970-01-01 00:00:53 UTC after 3 s (pid 18214 → 23158)")
    assert restarted(starts(53)).reason.endswith("00:00:53 UTC (its start time changed)")


def test_flapping_is_counted() -> None:
    """A process that restarts at each second reading has as many restarts as start times."""
    index = range(10, 90, 2)
    finding = restarted(starts(*index), *[happened("process.restart", t, PROCESS) for t in index])
    assert finding.measured == len(index)


def test_restart_inside_a_gap_is_found() -> None:
    """Start times are compared over a gap in the readings."""
    value = starts(50).values.copy()
    value[30:70] = np.nan
    finding = restarted(ups(), life("process.start_time", value))
    assert (finding.outcome, finding.measured) == (Outcome.FAIL, 1.0)


def test_a_second_of_difference_in_the_start_time_is_none() -> None:
    """The kernel's boot time moves by a second; the process did not."""
    assert restarted(ups(), life("process.start_time", [1000.0] * 50 + [1001.0] * 50)).outcome is Outcome.PASS


def test_allowed_restarts() -> None:
    """As many as allowed pass, one more fails."""
    assert restarted(starts(20, 60), allowed=2).outcome is Outcome.PASS
    assert restarted(starts(20, 40, 60), allowed=2).outcome is Outcome.FAIL


@pytest.mark.parametrize("allowed", [0.0, 5.0])
def test_gone_at_the_end_fails(allowed: float) -> None:
    """A process that exits and does not come back fails whatever is allowed, and is no restart."""
    finding = restarted(ups((80, N)), starts(n=80), happened("process.exit", 80, PROCESS), allowed=allowed)
    assert (finding.outcome, finding.measured) == (Outcome.FAIL, None)
    assert "has not come back" in finding.reason
    assert restarted(starts(n=80), happened("process.exit", 81, PROCESS)).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("instance", "begin", "expected"),
    [
        (3, 30, Outcome.WARN),  # a visitor: a session, a worker of a pool, another program of that name
        (0, 30, Outcome.FAIL),  # the process itself, started late
        (3, 0, Outcome.FAIL),  # one of the processes that were there from the begin
    ],
)
def test_a_further_instance_that_comes_and_goes_only_warns(instance: int, begin: int, expected: Outcome) -> None:
    """What came after the begin, beside others of its name, and went again is reported, and fails nothing."""
    object_name = f"process=web,instance={instance}"
    up = readings("process.up", np.array([float(begin <= t < 60) for t in range(N)]), 1.0, object=object_name)
    finding = finding_of(ProcessRestart(), [up], happened("process.exit", 60, object_name), object_name=object_name)
    assert finding.outcome is expected
    assert "has not come back" in finding.reason


def test_never_appeared_is_inconclusive() -> None:
    """Down from end to end is a watch to check, by ``process.up`` or by a count of 0; a count above 0 says nothing."""
    finding = restarted(ups((0, N)))
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "no such process ever ran" in finding.reason
    assert "check the name, glob or pidfile" in finding.settle
    watch = "process=web"
    none = replace(life("process.count", [0.0] * N), object=watch)
    assert finding_of(ProcessRestart(), [none], object_name=watch).outcome is Outcome.INCONCLUSIVE
    some = replace(none, value=np.ones(N))
    assert ProcessRestart().judge(Case("dut", watch, WINDOW, (some,))) == ()


def test_a_late_first_start_is_reported_and_is_no_restart() -> None:
    """A process that appears after the begin passes, with the time of its appearance."""
    finding = restarted(ups((0, 30)), happened("process.start", 30, PROCESS))
    assert (finding.outcome, finding.measured) == (Outcome.PASS, 0.0)
    assert "appeared at 1970-01-01 00:00:30" in finding.reason


def test_readings_that_stop_do_not_pass() -> None:
    """What was not seen to the end is inconclusive."""
    assert restarted(ups(n=60), starts(n=60)).outcome is Outcome.INCONCLUSIVE


def test_announced_restart() -> None:
    """N announced ones pass, more fail, fewer fail after the deadline and are open before it."""
    intent = announced("process.restart", 1, 40, 60, PROCESS)
    assert restarted(ups(), starts(50), intent).outcome is Outcome.PASS
    assert restarted(ups(), starts(50, 56), intent).outcome is Outcome.FAIL
    assert restarted(ups(), starts(80), intent).outcome is Outcome.FAIL
    missing = restarted(ups(), starts(), intent)
    assert missing.outcome is Outcome.FAIL
    assert "announced 1 restart" in missing.reason
    assert restarted(ups(), starts(), announced("process.restart", 1, 40, 200)).outcome is Outcome.INCONCLUSIVE


def test_announcement_without_an_object_is_kept_by_any_process() -> None:
    """Another process's restart keeps it; if nothing restarted, it is broken."""
    intent = announced("process.restart", 1, 40, 60)
    assert restarted(ups(), starts(), intent).outcome is Outcome.FAIL
    other = happened("process.restart", 50, "process=other,instance=0")
    assert restarted(ups(), starts(), intent, other).outcome is Outcome.PASS


def test_an_announced_reboot_allows_the_restart_that_it_brings() -> None:
    """A restart while a reboot was announced is none of the process's own; the reboot itself is not asked of it."""
    intent = announced("reboot", 1, 40, 60)
    assert restarted(ups((48, 55)), starts(55), intent).outcome is Outcome.PASS
    assert restarted(ups(), starts(), intent).outcome is Outcome.PASS


def test_down_while_an_announced_event_is_under_way() -> None:
    """A process that is down before the deadline of a planned restart or reboot is not yet gone."""
    for key in ("process.restart", "reboot"):
        assert restarted(ups((90, N)), announced(key, 1, 85, 200)).outcome is Outcome.INCONCLUSIVE
        assert restarted(ups((90, N)), announced(key, 1, 20, 40)).outcome is Outcome.FAIL


def test_a_clock_step_is_no_restart() -> None:
    """A start time that moves together with the clock is taken for the clock, and doubted."""
    finding = restarted(ups(), starts(50), happened("clock.step", 50))
    assert finding.outcome is Outcome.PASS
    assert finding.doubts


# --- reboot --------------------------------------------------------------------------------------------------


def boots(*changes: int, metric: str = "system.boot.id", step: float = 1.0) -> Series:
    """A boot id (or boot time) that changes before these seconds."""
    return readings(metric, np.array([5.0 + step * sum(t >= c for c in changes) for t in range(N)]), 1.0)


def uptime(values: Sequence[float]) -> Series:
    """An uptime each second."""
    return readings("system.uptime", np.array(values, dtype=np.float64), 1.0)


def test_boot_id_decides() -> None:
    """A new boot id is a reboot; the same one is none, whatever boot time and uptime do."""
    assert finding_of(Reboot(), [boots(), uptimes(1.0, N)]).outcome is Outcome.PASS
    failed = finding_of(Reboot(), [boots(40), uptimes(1.0, N, reboot_at=40)])
    assert (failed.outcome, failed.measured) == (Outcome.FAIL, 1.0)
    stepped = finding_of(Reboot(), [boots(), boots(40, metric="system.boot.time", step=3600)])
    assert stepped.outcome is Outcome.PASS
    assert any("clock" in caveat for caveat in stepped.doubts)


def test_uptime_that_begins_again() -> None:
    """Without a boot id an uptime that falls is a reboot, also in a gap that is longer than the uptime after it."""
    assert finding_of(Reboot(), [uptimes(1.0, N)]).outcome is Outcome.PASS
    assert finding_of(Reboot(), [uptimes(1.0, N, reboot_at=70)]).outcome is Outcome.FAIL
    positions = np.array([0, 10, 20, 90, 95]) * S
    short = Series("dut", "system.uptime", "", uptimes(1.0, 2).trait, positions, np.array([300.0, 310, 320, 2, 7]))
    assert finding_of(Reboot(), [short]).outcome is Outcome.FAIL
    young = replace(short, value=np.array([0.0, 10, 20, 30, 35]), time_ns=np.array([0, 10, 20, 150, 155]) * S)
    case = Case("dut", "", Window(0, 160 * S), (young,))
    assert Reboot().judge(case)[0].outcome is Outcome.FAIL, "30 s of uptime after 130 s of silence, and never a fall"


def test_wrap_after_497_days_is_no_reboot() -> None:
    """An uptime in hundredths of a second that wraps goes on where it must; a fall to 0 elsewhere is a reboot."""
    wrapped = (42949672.96 - 50 + np.arange(N)) % 42949672.96
    finding = finding_of(Reboot(), [uptime(wrapped.tolist())])
    assert finding.outcome is Outcome.PASS
    assert any("497 days" in caveat for caveat in finding.doubts)
    assert finding_of(Reboot(), [uptime([t + (4e7 if t < 50 else 0.0) for t in range(N)])]).outcome is Outcome.FAIL


def test_agent_restart_is_no_reboot() -> None:
    """An uptime that begins again while the boot time stays is the agent's own."""
    finding = finding_of(Reboot(), [boots(metric="system.boot.time"), uptimes(1.0, N, reboot_at=50)])
    assert finding.outcome is Outcome.PASS
    assert any("agent" in caveat for caveat in finding.doubts)


def test_boot_time_alone() -> None:
    """A boot time that moves to between two readings is a reboot; one that moves elsewhere cannot be decided."""
    real = readings("system.boot.time", np.where(np.arange(N) < 50, -9000.0, 48.0), 1.0)
    assert finding_of(Reboot(), [real]).outcome is Outcome.FAIL
    assert finding_of(Reboot(), [boots(50, metric="system.boot.time", step=-3600)]).outcome is Outcome.INCONCLUSIVE
    assert finding_of(Reboot(), [boots(50, metric="system.boot.time", step=2)]).outcome is Outcome.PASS


def test_announced_reboot() -> None:
    """One announced and come passes, a second fails, none fails after the deadline."""
    intent = announced("reboot", 1, 30, 60)
    assert finding_of(Reboot(), [boots(40)], intent).outcome is Outcome.PASS
    assert finding_of(Reboot(), [boots(40, 50)], intent).outcome is Outcome.FAIL
    assert finding_of(Reboot(), [boots(80)], intent).outcome is Outcome.FAIL, "suppression ends with the deadline"
    assert finding_of(Reboot(), [boots()], intent).outcome is Outcome.FAIL
    assert finding_of(Reboot(), [boots()], announced("reboot", 1, 30, 300)).outcome is Outcome.INCONCLUSIVE


def test_nothing_to_see_a_reboot_with() -> None:
    """One reading is inconclusive, no such metric is not applicable, one that could not be read is inconclusive."""
    assert finding_of(Reboot(), [boots().between(0, S)]).outcome is Outcome.INCONCLUSIVE
    assert finding_of(Reboot(), []).outcome is Outcome.NOT_APPLICABLE
    assert finding_of(Reboot(), [], faults=("no permission",)).outcome is Outcome.INCONCLUSIVE


def test_boot_id_read_more_seldom_than_the_uptime() -> None:
    """A reboot after the last boot id is found by the uptime."""
    early = boots().between(0, 60 * S)
    assert finding_of(Reboot(), [early, uptimes(1.0, N, reboot_at=80)]).outcome is Outcome.FAIL
    assert finding_of(Reboot(), [early, uptimes(1.0, N)]).outcome is Outcome.PASS


# --- core_dump -----------------------------------------------------------------------------------------------

FOLDER = "folder=/var/crash"


def cores(*rises: int, before: int = 0) -> Series:
    """The number of core files, one more from each of these seconds on."""
    value = np.array([float(before + sum(t >= r for r in rises)) for t in range(N)])
    return readings("system.core.files", value, 1.0, object=FOLDER)


def core(kind: str, at_s: float, file: str, mtime: str) -> Event:
    """An event of the core folder."""
    return happened(kind, at_s, FOLDER, file=file, mtime_s=mtime)


def test_cores_that_were_there_do_not_fail() -> None:
    """An older file is distinguished; a new one beside it fails and is named."""
    old = core("core.present", 0, "core.old", "-500.0")
    calm = finding_of(CoreDump(), [cores(before=1)], old)
    assert calm.outcome is Outcome.PASS
    assert "1 older core file" in calm.reason
    failed = finding_of(CoreDump(), [cores(40, before=1)], old, core("core.dump", 40, "core.77", "39.5"))
    assert (failed.outcome, failed.measured) == (Outcome.FAIL, 1.0)
    assert "core.77" in failed.reason


def test_core_that_fell_while_the_monitor_was_away() -> None:
    """A file found at a later first poll but written in the window is new, and counts once."""
    away = core("core.present", 60, "core.9", "45.0")
    assert finding_of(CoreDump(), [cores(60)], away).measured == 1.0
    again = finding_of(
        CoreDump(), [cores(40)], core("core.dump", 40, "core.9", "40.0"), core("core.present", 70, "core.9", "41.0")
    )
    assert again.measured == 1.0


def test_count_that_rises_without_an_event() -> None:
    """One file more in the folder is a new core, whoever lost the event; two more are two."""
    assert finding_of(CoreDump(), [cores(40)]).outcome is Outcome.FAIL
    assert finding_of(CoreDump(), [cores(40, 40)], core("core.dump", 40, "core.1", "40.0")).measured == 2.0


def test_a_folder_that_was_never_read_does_not_pass() -> None:
    """No folder is not applicable, an unreadable one or too few readings are inconclusive; announced cores pass."""
    assert finding_of(CoreDump(), []).outcome is Outcome.NOT_APPLICABLE
    unreadable = finding_of(CoreDump(), [], faults=("/var/crash cannot be read: permission denied",))
    assert unreadable.outcome is Outcome.INCONCLUSIVE
    assert "permission denied" in unreadable.reason
    assert finding_of(CoreDump(), [cores().between(0, 50 * S)]).outcome is Outcome.INCONCLUSIVE
    late = replace(cores().between(50 * S, N * S), object="folder=/srv")
    assert finding_of(CoreDump(), [cores(), late]).outcome is Outcome.PASS
    assert finding_of(CoreDump(), [cores(40)], announced("core.dump", 1, 30, 60)).outcome is Outcome.PASS


# --- oom_kill ------------------------------------------------------------------------------------------------


def kills(*seconds: int, start: int = 3) -> Series:
    """The kernel's counter, one more from each of these seconds on."""
    steps = np.array([sum(t == a for a in seconds) for t in range(1, N)], dtype=np.int64)
    return counter("system.memory.oom_kills", steps, 1.0, start=start)


def alarms(*seconds: int, kind: str = "oom") -> Series:
    """Lines of the kernel log."""
    return replace(kills(*seconds, start=0), metric="system.kernel.alarms", object=f"kind={kind}")


def test_witnesses_of_one_kill_are_one() -> None:
    """Counter, log line and event within two readings are one kill; kills before the window are none."""
    assert finding_of(OomKill(), [kills(), alarms()]).outcome is Outcome.PASS
    event = happened("kernel.oom", 41, line="Out of memory: Killed process 77 (snort)")
    finding = finding_of(OomKill(), [kills(40), alarms(41)], event)
    assert (finding.outcome, finding.measured) == (Outcome.FAIL, 1.0)
    assert "snort" in finding.reason
    assert finding_of(OomKill(), [kills(40, 40, 70)]).measured == 3.0


def test_other_alarms_are_no_kills() -> None:
    """A segfault in the log is not this rule's business."""
    assert finding_of(OomKill(), [kills(), alarms(40, kind="segfault")]).outcome is Outcome.PASS
    assert finding_of(OomKill(), [alarms(40, kind="segfault")]).outcome is Outcome.NOT_APPLICABLE


@pytest.mark.parametrize(("after", "expected"), [(0, Outcome.PASS), (2, Outcome.FAIL)])
def test_counter_that_begins_again_at_a_reboot(after: int, expected: Outcome) -> None:
    """From 7 back to 0 is a reboot without a kill; what the counter shows after it came since."""
    value = np.where(np.arange(N) < 50, 7, after).astype(np.uint64)
    finding = finding_of(OomKill(), [readings("system.memory.oom_kills", value, 1.0)])
    assert (finding.outcome, finding.measured) == (expected, float(after))


def test_counter_that_wraps() -> None:
    """A 32-bit counter that wraps with one step counted one kill."""
    value = np.where(np.arange(N) < 50, 2**32 - 1, 0).astype(np.uint64)
    assert finding_of(OomKill(), [readings("system.memory.oom_kills", value, 1.0)]).measured == 1.0


def test_neither_counter_nor_log() -> None:
    """What was not read cannot pass: inconclusive with the reason where it should be there."""
    assert finding_of(OomKill(), []).outcome is Outcome.NOT_APPLICABLE
    unread = finding_of(OomKill(), [], faults=("the kernel log cannot be read: permission denied",))
    assert unread.outcome is Outcome.INCONCLUSIVE
    assert "permission denied" in unread.reason
    assert finding_of(OomKill(), [kills().between(0, S)]).outcome is Outcome.INCONCLUSIVE
    assert finding_of(OomKill(), [], happened("kernel.oom", 5)).outcome is Outcome.FAIL


OUTCOMES = """
crash                         | process_restart | reboot | core_dump | oom_kill
calm device                   | P               | P      | P         | P
restart                       | F               | P      | P         | P
restart that no event tells   | F               | P      | P         | P
restart that was announced    | P               | P      | P         | P
process gone                  | F               | P      | P         | P
reboot                        | F               | F      | P         | P
reboot seen by uptime only    | F               | F      | P         | P
reboot that was announced     | P               | P      | P         | P
uptime wraps after 497 days   | P               | P      | P         | P
agent begins anew             | P               | P      | P         | P
clock step                    | P               | P      | P         | P
core file                     | P               | P      | F         | P
killed for want of memory     | F               | P      | P         | F
segfault without a core       | F               | P      | P         | P
segfault of another tenant    | P               | P      | P         | P
lockup that the counter shows | P               | P      | P         | P
"""
