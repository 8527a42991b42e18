"""Files that are kept open say what the files say, cost one call, and are never those of another process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from soakwatch_agent.context import SECOND, HostContext, watch_of
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
    assert {path for path in seen if path != "/proc/meminfo"} <= {"/proc/pressure/irq"}, seen
    assert len(seen) <= 2, "psutil reads /proc/meminfo itself"


def _kept(pid: int) -> list[str]:
    """The open descriptors of this process that are of another one."""
    return [entry for entry in os.listdir("/proc/self/fd") if _of_child(entry, pid)]


def _of_child(entry: str, pid: int) -> bool:
    try:
        return f"/proc/{pid}/" in os.readlink(f"/proc/self/fd/{entry}")
    except OSError:
        return False
