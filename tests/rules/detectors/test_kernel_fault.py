"""KernelFault: which process a segfault means, which lines are one, and what is not known."""

from __future__ import annotations

import numpy as np
import pytest

from soakwatch_model.case import Case, Unread
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.detectors.kernel_fault import KernelFault
from soakwatch_rules.signals import readings

S = 10**9


def alarms(kind: str = "segfault", *at_s: int) -> Series:
    """The counter of a kind, one reading a second for 200 s."""
    value = sum(((np.arange(200) >= index).astype(np.float64) for index in at_s), np.zeros(200))
    return readings("system.kernel.alarms", value, 1.0, object=f"kind={kind}")


def fell(at_s: float, process: str = "web", pid: str = "9", **more: str) -> Event:
    """A segfault that someone tells of."""
    return Event("kernel.segfault", "dut", "", round(at_s * S), None, {"process": process, "pid": pid, **more})


def judged(*events: Event, watch: str = "web", series: tuple[Series, ...] = (alarms(),)) -> Finding:
    """What the rule says where one process is watched."""
    pid = readings("process.pid", np.full(200, 77.0), 1.0, object=f"process={watch},instance=0")
    (finding,) = KernelFault().judge(Case("dut", "", Window(0, 200 * S), (*series, pid), events=events))
    return finding


@pytest.mark.parametrize(
    ("event", "watch", "outcome"),
    [
        (fell(50), "web", Outcome.FAIL),
        (fell(50, "vpp_main"), "web", Outcome.WARN),
        (fell(50, "vpp_main", "77"), "web", Outcome.FAIL),  # by its pid: the watch has a name of its own
        (fell(50, "a-program-with-"), "a-program-with-a-long-name", Outcome.FAIL),  # the kernel cuts names
        (fell(50, "worker-3"), "worker-*", Outcome.FAIL),
        (fell(50, "thread-9", line="thread-9[9]: segfault at 0 ip 0 error 4 in web[400000+1000]"), "web", Outcome.FAIL),
    ],
)
def test_whose_segfault_it_is(event: Event, watch: str, outcome: Outcome) -> None:
    """By name, pid, glob, or the program in which a thread fell."""
    assert judged(event, watch=watch).outcome is outcome


def test_one_line_that_several_sources_tell_of_is_one() -> None:
    """Agent and ssh read the same record, syslog brings it some seconds later; another pid is another one."""
    reported = [fell(50, uptime_s="5.0"), fell(52, uptime_s="5.0"), fell(58, address="192.0.2.1")]
    finding = judged(*reported, series=(alarms("segfault", 51),))
    assert (finding.measured, finding.marks[0].begin_ns) == (1.0, 50 * S)
    assert judged(*reported, fell(59, pid="10", uptime_s="14.0")).measured == 2.0


def test_the_counter_tells_what_no_event_tells() -> None:
    """Three lines of which one was reported: the process of the others is not known."""
    finding = judged(fell(50, uptime_s="5.0"), series=(alarms("segfault", 51, 90, 130),))
    assert finding.outcome is Outcome.FAIL
    assert (finding.measured, finding.numbers["faults"]) == (1.0, 3.0)
    assert "2 segfaults: counted in the kernel log" in finding.reason


def test_a_log_that_was_not_read_is_not_judged_and_one_that_broke_off_not_passed() -> None:
    """Nothing read is not applicable, with the reason; read in part is inconclusive."""
    texts = ("the kernel log cannot be read: permission denied", "no pid")
    unreadable = tuple(Unread("", "", 0, 0, text) for text in texts)
    bare = Case("dut", "", Window(0, 200 * S), unread=unreadable)
    (unread,) = KernelFault().judge(bare)
    assert unread.outcome is Outcome.NOT_APPLICABLE
    assert unread.reason == "the kernel log cannot be read: permission denied"
    assert judged(series=(alarms().between(0, 100 * S),)).outcome is Outcome.INCONCLUSIVE


OUTCOMES = """
crash                         | kernel_fault
calm device                   | P
restart                       | P
restart that no event tells   | P
restart that was announced    | P
process gone                  | P
reboot                        | P
reboot seen by uptime only    | P
reboot that was announced     | P
uptime wraps after 497 days   | P
agent begins anew             | P
clock step                    | P
core file                     | P
killed for want of memory     | P
segfault without a core       | F
segfault of another tenant    | W
lockup that the counter shows | F
"""
