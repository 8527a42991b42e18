"""Files that are kept open say what the files say, cost one call, and are never those of another process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psutil
import pytest

from soakwatch_agent.context import SECOND, HostContext, ProcAt, watch_of
from soakwatch_agent.host import Host
from soakwatch_agent.kept_files import MAX_PROCESSES, KeptFile, KeptFiles, KeptProcesses
from soakwatch_agent.procfs import read_text

_SLEEPS = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]


def opened(trace: list[str]) -> list[str]:
    """What was opened since the list was emptied, of the kernel's files."""
    return [path for path in trace if path.startswith(("/proc/", "/sys/"))]


@pytest.fixture(scope="module")
def trace() -> list[str]:
    """The paths that this process opens, from now on."""
    paths: list[str] = []
    sys.addaudithook(lambda event, given: paths.append(str(given[0])) if event == "open" else None)
    return paths


def test_a_kept_file_is_what_the_file_is() -> None:
    """Long ones too, which the kernel gives in pieces."""
    for path in ("/proc/version", "/proc/self/maps", "/proc/net/protocols"):
        file = KeptFile(path)
        assert file.read() == file.read() == read_text(path)
        file.close()
        assert file.read() == read_text(path)
        file.close()


def test_a_recorded_machine_may_be_replaced(tmp_path: Path) -> None:
    """Its files are opened at each reading."""
    (tmp_path / "proc").mkdir()
    files = KeptFiles(HostContext(str(tmp_path)))
    read = files.reader("/proc/stat")
    with pytest.raises(FileNotFoundError):
        read()
    for text in ("one", "two"):
        (tmp_path / "new").write_text(text)
        (tmp_path / "new").rename(tmp_path / "proc/stat")
        assert read() == text
    files.close()


def test_a_process_that_is_gone_has_no_files() -> None:
    """Nor has whoever has its pid then; and only so many are kept."""
    kept = KeptProcesses(HostContext())
    child = subprocess.Popen(["/bin/sleep", "600"])
    kept.keep(child.pid)
    files = kept.of(child.pid)
    assert files is not None
    assert files.stat.read().startswith(f"{child.pid} (")
    child.kill()
    child.wait()
    with pytest.raises(ProcessLookupError):
        files.stat.read()
    for pid in range(10**6, 10**6 + 2 * MAX_PROCESSES):
        kept.keep(pid)
    assert sum(kept.of(pid) is not None for pid in range(10**6, 10**6 + 2 * MAX_PROCESSES)) == MAX_PROCESSES - 1
    kept.close()
    assert kept.of(child.pid) is None


def test_a_poll_opens_few_files(trace: list[str]) -> None:
    """Of what every poll reads nothing is opened again: neither of the machine nor of the watched processes."""
    with subprocess.Popen(_SLEEPS, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        host = Host(
            HostContext(watches=(watch_of(f"pid:{child.pid}"),)), ["process", "memory", "transport", "pressure"]
        )
        for second in range(3):
            host.poll(second * SECOND)
        trace.clear()
        answer = host.poll(3 * SECOND)
        seen = opened(trace)
        assert _kept(child.pid)
        child.kill()
        child.wait()
        host.poll(4 * SECOND)
        assert not _kept(child.pid), "it is gone"
        host.close()
    assert {"process.memory.usage", "process.open_files", "process.cpu.time"} <= {s.metric for s in answer.samples}
    assert set(seen) <= {"/proc/pressure/irq"}, seen


def test_a_poll_reads_each_file_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel gives in one piece is not asked for its end; of /proc/meminfo there is one reader."""
    reads: Counter[str] = Counter()
    read = os.pread

    def counted(fd: int, length: int, offset: int) -> bytes:
        reads[os.readlink(f"/proc/self/fd/{fd}")] += 1
        return read(fd, length, offset)

    host = Host(HostContext(), ["boot", "conntrack", "cpu", "load", "memory", "pressure", "sockets", "transport"])
    host.poll(0)
    monkeypatch.setattr(os, "pread", counted)
    host.poll(SECOND)
    host.close()
    assert {"/proc/meminfo", "/proc/stat", "/proc/loadavg"} <= set(reads)
    assert set(reads.values()) == {1}, reads


@pytest.mark.parametrize("more", ["", "MemAvailable: 0 kB\n", "MemAvailable: 9000 kB\n"])
def test_memory_that_the_kernel_does_not_state_well_is_that_of_psutil(tmp_path: Path, more: str) -> None:
    """An old kernel has no MemAvailable, some say 0 or, in a container, more than there is."""
    (tmp_path / "proc").mkdir()
    known = {"MemTotal": 8000, "MemFree": 1000, "Buffers": 10, "Cached": 2000, "SReclaimable": 300, "Slab": 400}
    known |= dict.fromkeys(("Shmem", "Active", "Inactive", "Active(file)", "Inactive(file)"), 500)
    text = "".join(f"{name}: {kib} kB\n" for name, kib in known.items())
    (tmp_path / "proc/meminfo").write_text(text + more)
    context = HostContext(str(tmp_path))
    read = {sample.metric: sample.value for sample in Host(context, ["memory"]).poll(0).samples}
    with ProcAt(context):
        expected = psutil.virtual_memory()
    names = ("limit", "available", "cached")
    figures = (expected.total, expected.available, expected.cached)
    assert tuple(read[f"system.memory.{name}"] for name in names) == figures


def _kept(pid: int) -> list[str]:
    """The open descriptors of this process that are of another one."""
    return [entry for entry in os.listdir("/proc/self/fd") if _of_child(entry, pid)]


def _of_child(entry: str, pid: int) -> bool:
    try:
        return f"/proc/{pid}/" in os.readlink(f"/proc/self/fd/{entry}")
    except OSError:
        return False
