"""Watched processes: real ones that are killed and started again, and recorded ones whose pid changes hands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from soakwatch_agent.context import SECOND, HostContext, watch, watch_of
from soakwatch_agent.host import Host, steady
from soakwatch_agent.process_match import ProcessSearch
from soakwatch_model.sample import Answer

_EDGE = Path(__file__).parent / "roots" / "edge-4cores" / "root"
_DEADLINE_S = 120.0
_OWN = f"soak{os.getpid()}"  # runs of these tests side by side do not see one another


@contextmanager
def sleeper(name: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A real process that sleeps under a name of ours; it is killed at the end."""
    child = subprocess.Popen([name, "600", *words], executable="/bin/sleep")
    shown, end = Path(f"/proc/{child.pid}/cmdline"), time.monotonic() + _DEADLINE_S
    try:
        # The kernel lets a new program go before its words can be read; a poll in between does not know its name.
        while not shown.read_bytes().startswith(name.encode()):
            assert time.monotonic() < end, f"{name} did not start within {_DEADLINE_S} s"
            time.sleep(0.001)
        yield child
    finally:
        child.kill()
        child.wait()


def poll_until(host: Host, done: Callable[[Answer], bool]) -> list[Answer]:
    """Looks ten times a second until an answer is as wanted; fails at a deadline."""
    answers: list[Answer] = []
    now_ns, end = steady(), time.monotonic() + _DEADLINE_S
    while time.monotonic() < end:
        answers.append(host.poll(now_ns()))
        if done(answers[-1]):
            return answers
        time.sleep(0.1)
    pytest.fail(f"nothing came within {_DEADLINE_S} s; the last answer was {answers[-1]}")


def value(answer: Answer, metric: str, object_: str) -> float | None:
    """The reading of a metric of an object; None if the answer has none."""
    values = [s.value for s in answer.samples if s.metric == metric and s.object == object_]
    assert len(values) <= 1
    return values[0] if values else None


def kinds(answers: list[Answer]) -> list[str]:
    """The kinds of all events in order."""
    return [event.kind for answer in answers for event in answer.events]


def is_up(object_: str) -> Callable[[Answer], bool]:
    """True for an answer in which the object is up."""
    return lambda answer: value(answer, "process.up", object_) == 1


def is_down(object_: str) -> Callable[[Answer], bool]:
    """True for an answer in which the object is down."""
    return lambda answer: value(answer, "process.up", object_) == 0


def of_process(*texts: str, root: str = "/") -> Host:
    """A host with the process probe only."""
    return Host(HostContext(root, tuple(watch_of(text) for text in texts)), ["process"])


def test_a_process_that_is_killed_and_started_again_keeps_its_series_and_gives_one_restart() -> None:
    """After kill -9 and a new start instance 0 is up again under another pid, with one exit and one restart event."""
    host, object_ = of_process(f"{_OWN}phoenix"), f"process={_OWN}phoenix,instance=0"
    with sleeper(f"{_OWN}phoenix") as first:
        before = poll_until(host, is_up(object_))
        first.kill()
        first.wait()
        between = poll_until(host, is_down(object_))
    with sleeper(f"{_OWN}phoenix") as second:
        after = poll_until(host, is_up(object_))
        assert value(after[-1], "process.pid", object_) == second.pid
    assert kinds(before) == []
    assert sorted(kinds(between + after)) == ["process.exit", "process.restart"]
    (restart,) = (e for a in after for e in a.events if e.kind == "process.restart")
    assert (restart.object, restart.detail["old_pid"], restart.detail["new_pid"]) == (
        object_,
        str(first.pid),
        str(second.pid),
    )
    assert {s.object for a in before + between + after for s in a.samples if s.metric == "process.up"} == {object_}


def test_a_process_that_appears_later_gives_a_start_and_one_that_never_does_stays_down() -> None:
    """A late first appearance is a start and no restart; a name that nobody has answers 0 from the first poll on."""
    host = of_process(f"{_OWN}late", f"{_OWN}never")
    first = host.poll(0)
    assert value(first, "process.up", f"process={_OWN}never,instance=0") == 0
    assert value(first, "process.count", f"process={_OWN}never") == 0
    with sleeper(f"{_OWN}late"):
        answers = poll_until(host, is_up(f"process={_OWN}late,instance=0"))
    assert kinds(answers) == ["process.start"]
    assert value(answers[-1], "process.up", f"process={_OWN}never,instance=0") == 0


def test_every_way_of_watching_finds_the_process(tmp_path: Path) -> None:
    """Name, glob, command line, pid and pidfile all find the same real process."""
    with sleeper(f"{_OWN}ways", "777") as child:
        pidfile = tmp_path / "ways.pid"
        pidfile.write_text(f"{child.pid}\n")
        watches = (
            watch("a", "name", f"{_OWN}ways"),
            watch("b", "name", f"{_OWN}w?ys"),
            watch("c", "cmdline", rf"{_OWN}ways 600 77\d"),
            watch("d", "pid", str(child.pid)),
            watch("e", "pidfile", str(pidfile)),
        )
        host = Host(HostContext(watches=watches), ["process"])
        answer = poll_until(host, is_up("process=c,instance=0"))[-1]
        pids = [value(answer, "process.pid", f"process={name},instance=0") for name in "abcde"]
    assert pids == [child.pid] * 5


def test_several_instances_have_a_seat_each_and_a_restart_returns_to_the_seat_of_its_command_line() -> None:
    """Of three instances the last is restarted with its own command line while another seat is free as well."""
    host = of_process(f"{_OWN}many")
    with ExitStack() as stack:
        children = [stack.enter_context(sleeper(f"{_OWN}many", word)) for word in ("11", "12", "13")]
        third = f"process={_OWN}many,instance=2"
        poll_until(host, is_up(third))
        for child in children[1:]:
            child.kill()
            child.wait()
        poll_until(host, is_down(third))
        again = stack.enter_context(sleeper(f"{_OWN}many", "13"))
        answer = poll_until(host, is_up(third))[-1]
        assert value(answer, "process.pid", third) == again.pid
        assert value(answer, "process.up", f"process={_OWN}many,instance=1") == 0
        assert value(answer, "process.count", f"process={_OWN}many") == 2


def test_a_zombie_is_down_and_its_state_tells_why() -> None:
    """A child that nobody waits for is dead: up is 0 while the state is Z."""
    host, object_ = of_process(f"{_OWN}zombie"), f"process={_OWN}zombie,instance=0"
    with sleeper(f"{_OWN}zombie") as child:
        poll_until(host, is_up(object_))
        child.kill()
        answers = poll_until(host, is_down(object_))
        assert value(answers[-1], "process.state", object_) == ord("Z")
        assert value(answers[-1], "process.count", f"process={_OWN}zombie") == 0
        assert kinds(answers) == ["process.exit"]


def test_readings_agree_with_psutil() -> None:
    """Start, threads, descriptors, RSS and address space of this very process are what psutil says."""
    me = psutil.Process()
    host = Host(HostContext(watches=(watch("child", "cmdline", f"{_OWN}oracle"),)), ["process"])
    command = [sys.executable, "-c", f"import sys; sys.stdin.read()  # {_OWN}oracle"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        object_ = "process=child,instance=0"
        answer = poll_until(host, is_up(object_))[-1]
        them = psutil.Process(child.pid)
        assert value(answer, "process.start_time", object_) == pytest.approx(them.create_time(), abs=1.1)
        assert value(answer, "process.threads", object_) == them.num_threads()

        def settled(answer: Answer) -> bool:
            memory = them.memory_info()
            mine = [value(answer, f"process.{m}", object_) for m in ("open_files", "memory.usage", "memory.virtual")]
            return mine == [them.num_fds(), memory.rss, memory.vms]

        poll_until(host, settled)
        assert me.pid not in {s.value for s in answer.samples if s.metric == "process.pid"}
        child.communicate(b"")


def test_the_limit_of_descriptors_is_the_process_own() -> None:
    """A child that may open 77 files is told so; one without a limit tells none."""
    command = [sys.executable, "-c", f"import sys; sys.stdin.read()  # {_OWN}limited"]
    host = Host(HostContext(watches=(watch("child", "cmdline", f"{_OWN}limited"),)), ["process"])
    limit = [shutil.which("prlimit") or "prlimit", "--nofile=77:200", *command]
    with subprocess.Popen(limit, stdin=subprocess.PIPE) as child:
        object_ = "process=child,instance=0"
        # Until prlimit has become the child, the words of its command line match as well, with its own limit.
        answers = poll_until(host, lambda answer: value(answer, "process.open_files.limit", object_) == 77)
        assert is_up(object_)(answers[-1])
        child.communicate(b"")


def _tree(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    shutil.copytree(_EDGE, root, symlinks=True)
    return root


def _restart(root: Path, pid: int, start: int, cmdline: str) -> None:
    """Makes the pid of a recorded tree another process."""
    stat = (root / f"proc/{pid}/stat").read_text()
    head, _, tail = stat.rpartition(") ")
    words = tail.split()
    words[19] = str(start)
    (root / f"proc/{pid}/stat").write_text(f"{head}) {' '.join(words)}\n")
    (root / f"proc/{pid}/cmdline").write_text(cmdline)


@pytest.mark.parametrize("how", ["name", "pid", "pidfile"])
def test_a_pid_that_is_used_again_is_another_process(tmp_path: Path, how: str) -> None:
    """The same pid with another start is an exit and a restart, not life."""
    root = _tree(tmp_path)
    what = {"name": "bgpd", "pid": "77", "pidfile": "/run/bgpd.pid"}[how]
    host = Host(HostContext(str(root), (watch("w", how, what),)), ["process"])
    assert value(host.poll(0), "process.up", "process=w,instance=0") == 1
    _restart(root, 77, 9_000_000, "/usr/lib/frr/bgpd\0-d\0")
    after = host.poll(SECOND)
    assert kinds([after]) == ["process.exit", "process.restart"]
    assert value(after, "process.start_time", "process=w,instance=0") == 1790000000 + 90_000


@pytest.mark.parametrize("how", ["pid", "pidfile"])
def test_a_pid_that_went_to_a_stranger_is_down(tmp_path: Path, how: str) -> None:
    """A watch by pid does not follow the pid to another program, and says so."""
    root = _tree(tmp_path)
    what = {"pid": "77", "pidfile": "/run/bgpd.pid"}[how]
    host = Host(HostContext(str(root), (watch("w", how, what),)), ["process"])
    host.poll(0)
    _restart(root, 77, 9_000_000, "/bin/stranger\0")
    after = host.poll(SECOND)
    assert value(after, "process.up", "process=w,instance=0") == 0
    assert [fault.text for fault in after.faults] == ["pid 77 now belongs to another program: it is not watched"]


def test_a_pid_that_changed_hands_between_polls_is_found_by_the_slow_round(tmp_path: Path) -> None:
    """A process of a watched name under a pid that was there all the time appears within a minute of polls."""
    root = _tree(tmp_path)
    host = of_process("newcomer", root=str(root))
    host.poll(0)
    _restart(root, 81, 5_000_000, "/usr/bin/newcomer\0")
    ups = [value(host.poll(n * SECOND), "process.up", "process=newcomer,instance=0") for n in range(1, 70)]
    assert 1 in ups


def test_a_fork_that_still_has_its_parents_name_is_not_taken_for_it(tmp_path: Path) -> None:
    """A child seen between fork and exec is neither an instance nor an exit; one that stays becomes an instance."""
    root = _tree(tmp_path)
    host = of_process("bgpd", root=str(root))
    host.poll(0)
    for pid in (500, 501):
        shutil.copytree(root / "proc/77", root / f"proc/{pid}", symlinks=True)
        _restart(root, pid, 100000 * 100, "/usr/lib/frr/bgpd\0-d\0")  # born a quarter of a second ago
    young = host.poll(SECOND)
    assert value(young, "process.count", "process=bgpd") == 1
    (root / "proc/500/stat").write_text((root / "proc/500/stat").read_text().replace("(bgpd)", "(ip)"))
    (root / "proc/500/cmdline").write_text("/sbin/ip\0route\0")
    (root / "proc/uptime").write_text("100002.00 1.00\n")
    old = host.poll(2 * SECOND)
    assert value(old, "process.count", "process=bgpd") == 2
    assert kinds([young, old]) == ["process.start"]


def test_more_than_64_instances_are_counted_and_reported(tmp_path: Path) -> None:
    """The 65th process of a watch gets no series, and a fault names the number."""
    root = _tree(tmp_path)
    for pid in range(1000, 1070):
        shutil.copytree(root / "proc/77", root / f"proc/{pid}", symlinks=True)
    answer = of_process("bgpd", root=str(root)).poll(0)
    assert sum(s.metric == "process.up" for s in answer.samples) == 64
    assert [f.text for f in answer.faults] == ["71 processes match bgpd: only the first 64 are watched"]


def test_utilization_is_the_share_since_the_previous_poll(tmp_path: Path) -> None:
    """150 ticks in one second of steady time are one and a half cores; the first poll has no share."""
    root = _tree(tmp_path)
    host, object_ = of_process("bgpd", root=str(root)), "process=bgpd,instance=0"
    assert value(host.poll(0), "process.cpu.utilization", object_) is None
    stat = root / "proc/77/stat"
    stat.write_text(stat.read_text().replace(" 360000 90000 ", " 360100 90050 "))
    ticks = 100 / os.sysconf("SC_CLK_TCK")
    assert value(host.poll(SECOND), "process.cpu.utilization", object_) == pytest.approx(1.5 * ticks)


def test_a_process_that_is_ending_has_no_reading_of_its_memory(tmp_path: Path) -> None:
    """Killed, and not yet gone from the table, it has given its memory and its files back: that is not a value of 0."""
    root = _tree(tmp_path)
    host, object_ = of_process("bgpd", root=str(root)), "process=bgpd,instance=0"
    metrics = ("process.memory.usage", "process.memory.virtual", "process.open_files")
    assert all(value(host.poll(0), metric, object_) for metric in metrics)
    (root / "proc/77/statm").write_text("0 0 0 0 0 0 0\n")
    for file in (root / "proc/77/fd").iterdir():
        file.unlink()
    ending = host.poll(SECOND)
    assert [value(ending, metric, object_) for metric in metrics] == [None, None, None]
    assert value(ending, "process.up", object_) == 1


def test_the_start_time_does_not_move_with_the_clock(tmp_path: Path) -> None:
    """The kernel's time of boot moves when the clock is set; the start time stays until the boot id changes."""
    root = _tree(tmp_path)
    host, object_ = of_process("bgpd", root=str(root)), "process=bgpd,instance=0"
    first = value(host.poll(0), "process.start_time", object_)
    stat = root / "proc/stat"
    stat.write_text(stat.read_text().replace("btime 1790000000", "btime 1790003601"))
    assert value(host.poll(SECOND), "process.start_time", object_) == first


def test_a_process_that_execs_after_the_first_poll_is_found(tmp_path: Path) -> None:
    """What had another name at the very first poll, being just born, is looked at again until it is two seconds old."""
    root = _tree(tmp_path)
    _restart(root, 81, 100000 * 100, "/bin/sh\0")
    host = of_process("late-exec", root=str(root))
    assert value(host.poll(0), "process.up", "process=late-exec,instance=0") == 0
    for tick, uptime in ((1, "100000.90"), (2, "100001.10"), (3, "100001.40")):
        (root / "proc/uptime").write_text(f"{uptime} 1.00\n")
        assert value(host.poll(tick * SECOND // 5), "process.up", "process=late-exec,instance=0") == 0
    (root / "proc/81/cmdline").write_text("/bin/late-exec\0")
    assert value(host.poll(SECOND), "process.up", "process=late-exec,instance=0") == 1


def run_in(root: Path, pid: int, parent: int, start: int, name: str = "bgpd") -> None:
    """A process of a recorded machine."""
    folder = root / "proc" / str(pid)
    folder.mkdir()
    rest = f"S {parent} {pid} {pid} 0 -1 0 0 0 0 0 11 22 0 0 20 0 1 0 {start} 4096 5 0" + " 0" * 30
    (folder / "stat").write_text(f"{pid} ({name}) {rest}\n")
    (folder / "cmdline").write_bytes(name.encode() + b"\0")


def test_children_that_come_and_go_are_starts_and_no_restarts(tmp_path: Path) -> None:
    """Sessions of a daemon take turns in a slot; the slot of the daemon itself is its own, also while it is down."""
    root = tmp_path / "root"
    shutil.copytree(_EDGE, root, symlinks=True)
    (root / "proc/uptime").write_text("90000.00 1.00\n")
    for known in ("900", "901"):
        run_in(root, int(known), 1 if known == "900" else 900, int(known) * 100, "sesd")
    host, main, session = of_process("sesd", root=str(root)), *(f"process=sesd,instance={n}" for n in (0, 1))
    first = host.poll(0)
    assert (value(first, "process.child", main), value(first, "process.child", session)) == (None, 1.0)
    shutil.rmtree(root / "proc/901")
    host.poll(SECOND)
    run_in(root, 902, 900, 90200, "sesd")
    another = host.poll(2 * SECOND)
    assert [(e.kind, e.object, e.detail["parent"]) for e in another.events] == [("process.start", session, "900")]
    shutil.rmtree(root / "proc/900")
    run_in(root, 903, 902, 90300, "sesd")
    down = host.poll(3 * SECOND)
    assert value(down, "process.up", main) == 0, "a session of a session is not the daemon"
    run_in(root, 904, 1, 90400, "sesd")
    back = host.poll(4 * SECOND)
    assert [(e.kind, e.object) for e in back.events] == [("process.restart", main)]
    assert value(back, "process.pid", main) == 904


def test_proc_is_listed_only_when_something_began_or_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel tells so in /proc/loadavg; it is listed every 5 s all the same, and where that tells nothing."""
    loadavg, lists = ["0.20 0.18 0.12 1/80 11206\n"], []
    list_folder = os.listdir

    def listed(path: str) -> list[str]:
        lists.append(path)
        return list_folder(path)

    monkeypatch.setattr(os, "listdir", listed)
    search = ProcessSearch(HostContext(), (), lambda: loadavg[0])
    seen = []
    for second, now in enumerate(["1/80 11206", "3/80 11206", "1/79 11206", "1/79 11207", "0/0 0", "0/0 0"]):
        loadavg[0] = f"0.20 0.18 0.12 {now}\n"
        lists.clear()
        search.begin_poll(second * SECOND)
        seen.append(len(lists))
        assert search.count > 0
    assert seen == [1, 0, 1, 1, 1, 1]
    loadavg[0] = "0.20 0.18 0.12 1/79 11207\n"
    lists.clear()
    for second in range(6, 17):
        search.begin_poll(second * SECOND)
    assert len(lists) == 3
    search.close()
