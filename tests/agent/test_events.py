"""Core dumps and kernel log: what was there, what comes, and what cannot be read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from soakwatch_agent.context import SECOND, HostContext, watch_of
from soakwatch_agent.corefiles import locations_of_pattern
from soakwatch_agent.host import Host
from soakwatch_agent.kernlog import alarm_of
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer

_EDGE = Path(__file__).parent / "roots" / "edge-4cores" / "root"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A recorded machine of one's own."""
    shutil.copytree(_EDGE, tmp_path / "root", symlinks=True)
    return tmp_path / "root"


def count(answer: Answer, folder: str) -> float | None:
    """The number of core files in a folder; None if the folder was not looked at."""
    values = [s.value for s in answer.samples if s.metric == "system.core.files" and s.object == f"folder={folder}"]
    return values[0] if values else None


def dumps(answer: Answer) -> list[Event]:
    """The new core files of a poll."""
    return [event for event in answer.events if event.kind == "core.dump"]


def test_cores_that_lay_there_are_present_and_new_ones_are_dumps(root: Path) -> None:
    """Only a core that comes after the first poll is a dump; process and pid are taken from its name."""
    host = Host(HostContext(str(root)), ["core"])
    first = host.poll(0)
    assert {event.kind for event in first.events} == {"core.present"}
    (root / "var/cores/core-bgpd.99.1790000000").write_bytes(b"x" * 10)
    (root / "var/cores/notes.txt").write_text("no core")
    (dump,) = dumps(host.poll(2 * SECOND))
    assert (dump.detail["process"], dump.detail["pid"], dump.detail["size"]) == ("bgpd", "99", "10")
    assert dump.detail["file"] == "/var/cores/core-bgpd.99.1790000000"
    after = host.poll(4 * SECOND)
    assert (dumps(after), count(after, "/var/cores")) == ([], 3)


def test_a_core_that_grows_is_one_dump_and_one_that_is_written_over_is_another(root: Path) -> None:
    """While a file grows its time moves with each poll; once it rested, a new time is a new core."""
    host, core = Host(HostContext(str(root)), ["core"]), root / "var/cores/core-bgpd.5.1790000000"
    host.poll(0)
    found_dumps = []
    for second, mtime in ((2, 100), (4, 200), (6, 300), (8, 300), (10, 300), (12, 999)):
        core.write_bytes(b"x" * second)
        os.utime(core, ns=(mtime * SECOND, mtime * SECOND))
        found_dumps += dumps(host.poll(second * SECOND))
    assert [event.begin_ns // SECOND for event in found_dumps] == [2, 12]


def test_a_folder_that_is_not_there_is_a_fault_and_no_zero(root: Path) -> None:
    """No witness is given for a folder that could not be looked at."""
    shutil.rmtree(root / "var/cores")
    answer = Host(HostContext(str(root), core_folders=("/data/cores",)), ["core"]).poll(0)
    assert count(answer, "/var/cores") is None
    assert [fault.text for fault in answer.faults] == [
        "the core folder /data/cores does not exist",
        "the core folder /var/cores does not exist",
    ]


def test_a_relative_pattern_means_the_working_folders_of_the_watched(root: Path) -> None:
    """Cores with the pattern ``core`` are found where a watched process works, also when it is gone by then."""
    (root / "proc/sys/kernel/core_pattern").write_text("core\n")
    (root / "srv/recorded/work").mkdir(parents=True)
    host = Host(HostContext(str(root), (watch_of("bgpd"),)), ["process", "core"])
    assert count(host.poll(0), "/srv/recorded/work") == 0
    shutil.rmtree(root / "proc/77")
    (root / "srv/recorded/work/core.77").write_bytes(b"x")
    (dump,) = dumps(host.poll(2 * SECOND))
    assert dump.detail["pid"] == "77"


def test_an_unknown_core_handler_is_a_fault(root: Path) -> None:
    """A pipe to a program that nobody knows could put cores anywhere: the remedy is named."""
    (root / "proc/sys/kernel/core_pattern").write_text("|/opt/vendor/dumper %p\n")
    answer = Host(HostContext(str(root)), ["core"]).poll(0)
    assert [f.text for f in answer.faults] == [
        "the kernel passes cores to '|/opt/vendor/dumper %p': give the folder where it puts them (core_folders)"
    ]


@pytest.mark.parametrize(
    ("pattern", "name", "owner"),
    [
        ("/c/%e-%p-%t", "a-b-12-1700000000", {"process": "a-b", "pid": "12"}),
        ("/c/core.%E.%P", "core.!usr!bin!x.9", {"program": "!usr!bin!x", "pid": "9"}),
        ("/c/%%core", "%core.zst", {}),
    ],
)
def test_names_of_a_core_pattern_are_read_back(pattern: str, name: str, owner: dict[str, str]) -> None:
    """Process and pid come back out of a file's name."""
    (nest,) = locations_of_pattern(pattern, uses_pid=False)
    match = nest.named.fullmatch(name)
    assert match is not None
    assert match.groupdict() == owner


_LINES = [
    ("Out of memory: Killed process 77 (bgpd) total-vm:1kB", "oom", "77", "bgpd"),
    ("Memory cgroup out of memory: Killed process 7 (a b) total-vm:1kB", "oom", "7", "a b"),
    ("Out of memory: Kill process 12 (x) score 9 or sacrifice child", "oom", "12", "x"),
    ("bgpd[77]: segfault at 0 ip 0000 sp 0000 error 4 in bgpd[1+2]", "segfault", "77", "bgpd"),
    ("traps: snort[81] general protection fault ip:1 sp:2 error:0 in snort[1+2]", "segfault", "81", "snort"),
    ("traps: x[81] trap invalid opcode ip:1 sp:2 error:0", "segfault", "81", "x"),
    ("Kernel panic - not syncing: Fatal exception", "panic", None, None),
    ("BUG: kernel NULL pointer dereference, address: 0000000000000008", "panic", None, None),
    ("kernel BUG at mm/slub.c:305!", "panic", None, None),
    ("Oops: 0002 [#1] PREEMPT SMP", "panic", None, None),
    ("general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP", "panic", None, None),
    ("INFO: task jbd2/sda1-8:241 blocked for more than 120 seconds.", "hung_task", "241", "jbd2/sda1-8"),
    ("watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [vpp_main:99]", "lockup", "99", "vpp_main"),
    ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 2", "lockup", None, None),
    ("rcu: INFO: rcu_sched self-detected stall on CPU", "lockup", None, None),
    ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "lockup", None, None),
    ("rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 3-... } 21 jiffies", "lockup", None, None),
    ("watchdog: CPU3: Watchdog detected hard LOCKUP on cpu 3", "lockup", None, None),
    ("traps: x[81] trap divide error ip:1 sp:2 error:0", "segfault", "81", "x"),
    ("mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 1: be00", "hardware", None, None),
    ("mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 5: bc00004000010091", "hardware", None, None),
    ("mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 5: 8c00004000010091", "hardware_corrected", None, None),
    ("mce: [Hardware Error]: Machine check events logged", "hardware_corrected", None, None),
    ("{1}[Hardware Error]: event severity: fatal", "hardware", None, None),
    ("{1}[Hardware Error]: event severity: corrected", "hardware_corrected", None, None),
    ("EDAC MC0: 1 UE memory read error on CPU_SrcID#0", "hardware", None, None),
    ("EDAC MC0: 3 CE memory read error on CPU_SrcID#0", "hardware_corrected", None, None),
    ("pcieport 0000:00:1c.0: AER: Uncorrected (Fatal) error received: 0000:00:1c.0", "hardware", None, None),
    ("pcieport 0000:00:1c.0: AER: Corrected error received: 0000:00:1c.0", "hardware_corrected", None, None),
    ("mce: CPU2: Package temperature above threshold, cpu clock throttled (total events = 7)", "thermal", None, None),
    ("thermal thermal_zone0: acpitz: critical temperature reached, shutting down", "hardware", None, None),
]


@pytest.mark.parametrize(("line", "kind", "pid", "process"), _LINES)
def test_kernel_lines_that_mean_trouble(line: str, kind: str, pid: str | None, process: str | None) -> None:
    """Each wording of the kernel gives its kind, and process and pid where it names them."""
    alarm = alarm_of(line)
    assert alarm is not None
    assert (alarm.kind, alarm.owner.get("pid"), alarm.owner.get("process")) == (kind, pid, process)


@pytest.mark.parametrize(
    "line",
    [
        "eth0: Link is Up",
        "oom_reaper: reaped process 77 (bgpd), now anon-rss:0kB",
        "nginx invoked oom-killer: gfp_mask=0x0",
        "DEBUG: nothing",
        "audit: type=1400 signal",
        "Call Trace:",
        "mce: CPU2: Package temperature/speed normal",
        "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 1",
        "NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.",
    ],
)
def test_lines_around_an_incident_are_not_counted_again(line: str) -> None:
    """One incident is one alarm: its other lines mean nothing by themselves."""
    assert alarm_of(line) is None


def test_the_kernel_log_is_read_from_now_on(root: Path) -> None:
    """Old records are skipped; each kind is counted from the first poll on, 0 as well; a line in two parts is one."""
    host, log = Host(HostContext(str(root)), ["kernel"]), root / "dev/kmsg"
    assert {s.value for s in host.poll(0).samples} == {0}
    with log.open("a") as out:
        out.write(
            "4,2,6000000,-;bgpd[77]: segfault at 0 ip 0 sp 0 error 4\n SUBSYSTEM=x\n3,3,7000000,-;Out of memory: Kil"
        )
        out.flush()
        (event,) = host.poll(SECOND).events
        assert (event.kind, event.detail["pid"], event.detail["uptime_s"]) == ("kernel.segfault", "77", "6.000000")
        out.write("led process 78 (zebra) total-vm:1kB\n")
        out.write("12,4,8000000,-;journal[1]: it said: bgpd[77]: segfault at 0 (a program's words, not the kernel's)\n")
    after = host.poll(2 * SECOND)
    assert [event.kind for event in after.events] == ["kernel.oom"]
    counts = {s.object: s.value for s in after.samples}
    assert (counts["kind=oom"], counts["kind=segfault"], counts["kind=panic"]) == (1, 1, 0)
    host.close()


def test_a_line_has_the_time_that_the_kernel_gave_it(root: Path) -> None:
    """Read ten seconds late it is dated by its own clock, but never before the poll before nor after this one."""
    host, log = Host(HostContext(str(root)), ["kernel"]), root / "dev/kmsg"
    host.poll(100 * SECOND)
    (root / "proc/uptime").write_text("5000.00 1.00\n")
    with log.open("a") as out:
        for at_s in (4993, 4000, 9999):
            out.write(f"4,{at_s},{at_s}000000,-;x[{at_s}]: segfault at 0\n")
    assert [event.begin_ns // SECOND for event in host.poll(110 * SECOND).events] == [103, 100, 110]
    host.close()


def test_a_storm_is_counted_in_full_and_reported_in_part(root: Path) -> None:
    """Of 250 alarms in one poll 100 are events, all are counted, and a fault says how many were not reported."""
    host = Host(HostContext(str(root)), ["kernel"])
    host.poll(0)
    with (root / "dev/kmsg").open("a") as out:
        out.writelines(f"4,{n},1,-;x[{n}]: segfault at 0\n" for n in range(250))
    answer = host.poll(SECOND)
    assert len(answer.events) == 100
    assert [s.value for s in answer.samples if s.object == "kind=segfault"] == [250]
    assert "150 more alarms" in answer.faults[0].text
    host.close()


def test_no_kernel_log_is_a_fault_and_no_count(root: Path) -> None:
    """Without a log there is no witness."""
    (root / "dev/kmsg").unlink()
    answer = Host(HostContext(str(root)), ["kernel"]).poll(0)
    assert answer.samples == ()
    assert [fault.text for fault in answer.faults] == ["there is no kernel log: /dev/kmsg does not exist"]
