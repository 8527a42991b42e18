"""Faults that have nothing to do with each other are told apart, and what broke first leads."""

from __future__ import annotations

from dataclasses import replace

from tests.bench.accuracy.faults import scores

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Mark, MarkKind, Outcome, Victim
from soakwatch_model.window import Window
from soakwatch_rules.causes import Cause, causes
from soakwatch_rules.detectors.core_dump import CoreDump
from soakwatch_rules.detectors.kernel_fault import KernelFault
from soakwatch_rules.detectors.oom_kill import OomKill

S = 10**9
SWBOOMD, OTHER = "process=swboomd,instance=0", "process=other,instance=0"
DAY, SHORT = Window(0, 86_400 * S), Window(0, 149 * S)


def finding(
    rule: str,
    *marks: tuple[float, float, str],
    object_name: str = "",
    window: Window = DAY,
    kind: MarkKind = MarkKind.MOMENT,
    victim: Victim | None = None,
) -> Finding:
    """A failure with marks of one kind, and of one victim, from second to second."""
    reported = tuple(Mark(round(a * S), round(b * S), text, kind, victim=victim) for a, b, text in marks)
    return Finding(
        rule,
        1,
        Outcome.FAIL,
        "dut",
        "",
        object_name,
        window,
        "d",
        f"{rule} of {object_name or 'the device'}",
        int(window.seconds),
        marks=reported,
    )


def oom(at_s: float, name: str, window: Window = DAY, where: str = "Out of memory") -> Finding:
    """The kernel killed a process."""
    text = f"OOM kill: {where}"
    kind = MarkKind.GROUP_KILL if where.startswith("Memory cgroup") else MarkKind.MOMENT
    return finding("oom_kill", (at_s, at_s, text), window=window, kind=kind, victim=Victim(name, "9"))


def restarts(*at_s: float, object_name: str = SWBOOMD, window: Window = DAY) -> Finding:
    """A process restarted, each time between two polls."""
    return finding(
        "process_restart",
        *((time_s, time_s + 1, "restart: new start time") for time_s in at_s),
        object_name=object_name,
        window=window,
    )


def led(causes: tuple[Cause, ...], findings: list[Finding]) -> list[list[str]]:
    """The rules of each cause, the leading one first."""
    return [[findings[position].rule for position in index.findings] for index in causes]


def test_a_cause_is_false_in_less_than_three_of_a_hundred_runs() -> None:
    """The floor, on a small fixed set; the bench prints it over more (tests/bench/accuracy/faults.py)."""
    runs = list(scores(150))
    assert sum(bool(run.fused) for run in runs) <= 0.03 * len(runs)
    assert sum(bool(run.headline) for run in runs) <= 0.03 * len(runs)


def test_a_kill_after_the_first_crash_is_not_its_cause() -> None:
    """Three segfaults with cores of one process, and the kernel kills another one in between."""
    crashes = [36.0, 82.0, 128.0]
    fell, left = Victim("swboomd", "7"), Victim(core_file="/c/core.swboomd.7")
    own = [
        finding("kernel_fault", *((at_s, at_s, "segfault") for at_s in crashes), window=SHORT, victim=fell),
        finding("core_dump", *((at_s + 0.5, at_s + 0.5, "core") for at_s in crashes), window=SHORT, victim=left),
        restarts(*crashes, window=SHORT),
    ]
    findings = [oom(73, "leaker", SHORT), *own]
    matches = causes(findings)
    assert led(matches, findings) == [["kernel_fault", "core_dump", "process_restart"], ["oom_kill"]]


def test_restarts_hours_apart_are_not_explained_by_a_kill_after_one_of_them() -> None:
    """100 s after the second of three restarts the kernel kills: another process, or the same one."""
    for name in ("leaker", "swboomd"):
        findings = [oom(7300, name), restarts(3600, 7200, 10_800)]
        assert led(causes(findings), findings) == [["process_restart"], ["oom_kill"]]


def test_a_kill_explains_the_restart_of_what_it_killed() -> None:
    """Named by the kernel's line, or by the pid that the watch had; of another process it explains none."""
    killed = [oom(3600.5, "swboomd"), restarts(3600)]
    assert led(causes(killed), killed) == [["oom_kill", "process_restart"]]
    by_pid = [oom(3600.5, "python3"), restarts(3600)]
    exited = Event("process.exit", "dut", SWBOOMD, 3601 * S, None, {"pid": "9"})
    assert led(causes(by_pid, [exited]), by_pid) == [["oom_kill", "process_restart"]]
    assert len(causes(by_pid)) == 2
    unnamed = [replace(killed[0], marks=(Mark(3600 * S, 3601 * S, "OOM kill: counter"),)), restarts(3600)]
    assert len(causes(unnamed)) == 1, "nothing says that it was another one"


def test_a_core_file_is_that_of_the_process_that_fell_whatever_its_name() -> None:
    """Twenty seconds after a segfault: the file that bears the name of the process, spaces and all, and no other."""
    fell = Event("kernel.segfault", "dut", "", 7200 * S, None, {"process": "tmux: server", "pid": "9", "address": "d"})
    for file, together in (("/c/core.tmux: server.9", True), ("/c/core.of bgpd", False)):
        left = Event("core.dump", "dut", "", 7220 * S, None, {"file": file})
        case = Case("dut", "", DAY, events=(fell, left))
        findings = [*KernelFault().judge(case), *CoreDump().judge(case)]
        assert (len(causes(findings)) == 1) is together


def test_a_kill_names_its_victim_in_the_words_of_any_kernel() -> None:
    """The process that the source read out of a BSD's line: the restart of another one then is not the kill's."""
    line = "pid 9 (leaker), jid 0, uid 0, was killed: out of swap space"
    event = Event("kernel.oom", "dut", "", 3600 * S, None, {"process": "leaker", "pid": "9", "line": line})
    findings = [*OomKill().judge(Case("dut", "", DAY, events=(event,))), restarts(3600)]
    assert len(causes(findings)) == 2


def test_what_takes_the_device_explains_its_processes() -> None:
    """A lockup, the reboot that ends it, and the restarts that it brings are one; a lockup after the boot is not."""
    boot = finding("reboot", (7210, 7260, "reboot: new boot id"))
    both = [restarts(7250), restarts(7252, object_name=OTHER)]
    lockup = finding("kernel_fault", (7200, 7200, "lockup"), kind=MarkKind.DEVICE)
    findings = [*both, boot, lockup]
    assert led(causes(findings), findings) == [["kernel_fault", "reboot", "process_restart", "process_restart"]]
    after = [boot, finding("kernel_fault", (7290, 7290, "lockup"))]
    assert led(causes(after), after) == [["reboot"], ["kernel_fault"]]


def test_what_was_there_before_a_crash_does_not_follow_from_it() -> None:
    """A CPU at its top a minute before is reported by itself, and first."""
    findings = [restarts(7200), finding("cpu_spike", (7140, 7180, "100 %"))]
    assert led(causes(findings), findings) == [["cpu_spike"], ["process_restart"]]
    findings = [restarts(7200), finding("cpu_spike", (7205, 7240, "100 %"))]
    (cause,) = causes(findings)
    assert cause.confidence is not None
    assert cause.confidence <= 0.95


def test_one_spike_beside_two_crashes_does_not_make_them_one() -> None:
    """It belongs to the nearer one."""
    findings = [restarts(7200), finding("cpu_spike", (7215, 7240, "100 %")), restarts(7190, object_name=OTHER)]
    findings[2] = replace(findings[2], marks=(Mark(7150 * S, 7151 * S, "restart: new start time"),))
    assert sorted(map(len, led(causes(findings), findings))) == [1, 2]


def test_a_control_group_that_is_full_is_not_the_hosts_growth() -> None:
    """The kill of a container by its own limit follows from no growth of the host's memory."""
    grows = replace(finding("growth"), metric="system.memory.usage", measured=1e6, unit="By/h")
    host, own = oom(7200, "x"), oom(7200, "x", where="Memory cgroup out of memory")
    assert len(causes([grows, host])) == 1
    assert len(causes([grows, own])) == 2
