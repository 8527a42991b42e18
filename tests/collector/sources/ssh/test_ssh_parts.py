"""The parts of a poll: what comes back from a device's shell is taken apart without trusting it."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

from soakwatch.sources.transport.ssh.linux.cost import Cost, Observer
from soakwatch.sources.transport.ssh.linux.linux_processes import stat_lines
from soakwatch.sources.transport.ssh.linux.linux_survey import survey_of
from soakwatch.sources.transport.ssh.linux.mirror import Mirror, files_of, sweep
from soakwatch.sources.transport.ssh.linux.replica import CoreFolders, KernelLog
from soakwatch.sources.transport.ssh.shell import split
from soakwatch_agent.context import SECOND, ProbeAnswer

_STAT = b"%d (%s) S 1 7 7 0 -1 0 0 0 0 0 11 22 0 0 20 0 3 0 99 4096 5 0 0 0 0\n"


def _mutated(draw: random.Random, text: bytes) -> bytes:
    for _ in range(draw.randrange(1, 8)):
        start, to = sorted((draw.randrange(len(text) + 1), draw.randrange(len(text) + 1)))
        noise = bytes(draw.randrange(256) for _ in range(draw.randrange(20)))
        text = draw.choice((text[:start] + text[to:], text[:start] + noise + text[start:], text[:to] + text[start:]))[
            :20_000
        ]
    return text


def test_names_of_processes_may_hold_anything() -> None:
    names = [b"sh", b"a) b", b"(x", b"new\nline", b"\n9 (z) S", b"caf\xe9", b"", b")"]
    text = b"".join(_STAT % (100 + number, name) for number, name in enumerate(names))
    lines = stat_lines(text)
    assert {pid: line.line for pid, line in lines.items()} == {
        100 + number: _STAT % (100 + number, name) for number, name in enumerate(names)
    }


def test_noise_in_the_parts_of_a_poll() -> None:
    draw = random.Random(4)
    stats = b"".join(_STAT % (pid, b"worker") for pid in range(1, 40))
    files = b"==> /dev/null <==\n\n==> /proc/stat <==\ncpu 1 2 3\n\n==> /proc/uptime <==\n1.0 2.0\n"
    survey = {
        "system": b"Linux\n6.1\nx86_64\n",
        "ids": b"12 11\n0\n",
        "sizes": b"4096\n100\n",
        "files": b"/proc/stat\n",
    }
    mark = "@0123"
    whole = b"".join(f"\n{mark} {name}\n".encode() + data for name, data in survey.items())
    for _ in range(2000):
        for pid, line in stat_lines(_mutated(draw, stats)).items():
            assert pid >= 0
            assert line.start >= 0
        assert all(path.startswith("/") for path in files_of(_mutated(draw, files)))
        measured = survey_of(split(_mutated(draw, whole), mark))
        assert measured.page > 0
        assert measured.ticks > 0


def test_the_mirror_stays_in_its_folder(tmp_path: Path) -> None:
    mirror = Mirror()
    try:
        for path in ("/../x", "/proc/../../x", "proc/x", "/proc//x", "/proc/x/..", "/a\0b", "/"):
            mirror.put(path, b"1")
            mirror.sparse(path, 1, 1)
            mirror.link(path, str(tmp_path))
            mirror.append(path, b"1")
        held = sorted(str(each.relative_to(mirror.root)) for each in Path(mirror.root).rglob("*"))
        assert held == ["dev", "proc", "sys", "sys/block"]
        mirror.put("/proc/huge", b"x" * (65 << 20))
        assert not mirror.has("/proc/huge")
        mirror.put("/proc/7/stat", b"a")
        mirror.link("/proc/7/exe", "/bin/true")
        assert Path(mirror.root).stat().st_mode & 0o777 == 0o700
        mirror.drop_folder("/proc/7")
        assert not (Path(mirror.root) / "proc/7").exists()
        mirror.put("/proc/7/stat", b"a")
        assert (Path(mirror.root) / "proc/7/stat").read_bytes() == b"a"
    finally:
        mirror.close()
    assert not Path(mirror.root).exists()


def test_what_a_killed_collector_left_is_swept_away(tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    for name in (f"soakwatch-ssh-{dead.pid}-x", f"soakwatch-ssh-{os.getpid()}-y", "soakwatch-ssh-z", "other-1-x"):
        (tmp_path / name / "proc").mkdir(parents=True)
    sweep(str(tmp_path))
    left = sorted(each.name for each in tmp_path.iterdir())
    assert left == sorted([f"soakwatch-ssh-{os.getpid()}-y", "soakwatch-ssh-z", "other-1-x"])


def test_kernel_lines_are_reported_once_and_old_ones_not_at_all() -> None:
    log = KernelLog()

    def oom(seq: int) -> bytes:
        return b"3,%d,1000,-;Out of memory: Killed process 7 (x) total-vm:1kB\n SUBSYSTEM=mm\n" % seq

    assert log.take(oom(10), "boot-a") == b""
    assert log.take(oom(10) + oom(11) + b"6,12,1,-;eth0: link up\n", "boot-a").count(b"\n") == 1
    assert log.take(oom(10) + oom(11), "boot-a") == b""  # the ring again, after the line was lost
    assert log.take(oom(1), "boot-b").startswith(b"3,1,")  # another boot counts anew
    assert log.take(b"12,5,1,-;Out of memory: Killed process 7 (x) quoted by a program\n", "boot-b") == b""
    assert log.take(b"\xff\xfe;;;\n,,,;\n", "boot-b") == b""


def test_core_folders_show_what_is_there_and_what_may_not_be_seen() -> None:
    mirror = Mirror()
    try:
        mirror.put("/proc/sys/kernel/core_pattern", b"/var/cores/core.%e.%p\n")
        folders = CoreFolders(mirror, ["/extra"])
        wanted = folders.wanted(())
        assert wanted == (("/extra", "*"), ("/var/cores", "*"), ("/var/crash", "* */*"))
        listing = b"there\n81a4 100 1700000000 7 core.bgpd.9\n41ed 4096 1700000000 8 folder\nnoise\n"
        folders.take(wanted, {"cores 0": b"denied\n", "cores 1": listing, "cores 2": b"absent\n"})
        core = Path(mirror.root) / "var/cores/core.bgpd.9"
        assert (core.stat().st_size, core.stat().st_mtime) == (100, 1700000000)
        assert [each.name for each in core.parent.iterdir()] == ["core.bgpd.9"]
        assert folders.unseen == {"/extra": "/extra cannot be listed: this account may not list it"}
        assert not (Path(mirror.root) / "var/crash").exists()
        folders.take(wanted, {"cores 0": b"there\n", "cores 1": b"there\n", "cores 2": b"there\nmany\n"})
        assert not core.exists()
        assert list(folders.unseen) == ["/var/crash"]
        mirror.put("/proc/sys/kernel/core_pattern", b"core\n")
        mirror.link("/proc/9/cwd", "/srv/app")
        assert ("/srv/app", "core*") in folders.wanted((9, 10))
    finally:
        mirror.close()


def test_the_cost_goes_on_over_connections() -> None:
    cost = Cost()
    assert cost.take(1, 0.5, 0.1) == 0.6
    assert cost.take(1, 0.7, 0.1) == 0.7 + 0.1
    assert cost.take(2, 0.1, None) == 0.7 + 0.1 + 0.1
    assert cost.take(2, None, None) is None


def test_the_observer_compares_rest_and_polls() -> None:
    observer, notes = Observer(10.0), ProbeAnswer()
    notes.begin(0)

    def cpu(busy: int, idle: int) -> tuple[int, ...]:
        return (busy, 0, 0, idle, 0, 0, 0, 0)

    assert not observer.resting(0)
    observer.seen(0, cpu(0, 0), notes)
    assert observer.resting(5 * SECOND)
    assert not observer.resting(10 * SECOND)
    observer.seen(10 * SECOND, cpu(100, 900), notes)
    observer.seen(15 * SECOND, cpu(200, 1300), notes)
    observer.seen(20 * SECOND, cpu(250, 1750), notes)
    assert [event.kind for event in notes.events] == ["observer.rest", "observer.effect"]
    assert "10.00% busy" in observer.notes()[0]
    assert "15.00% while" in observer.notes()[0]
    assert "+5.00 points" in observer.notes()[0]
    observer.seen(30 * SECOND, cpu(300, 1800), notes)
    assert len(notes.events) == 2
