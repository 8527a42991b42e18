"""A limit of memory that is too small is one sentence; it never makes a command spin or die without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from soakwatch.core.memory_limit import MemoryLimit, memory_limit

ROWS = "".join(f"{1_790_000_000 + second},0.2\n" for second in range(60))


def judged_within(tmp_path: Path, address_space_mib: int, **environment: str) -> subprocess.CompletedProcess[str]:
    """A table, judged by a process that may have so much address space."""
    (tmp_path / "night.csv").write_text(f"time,cpu\n{ROWS}", encoding="utf-8")
    words = f"ulimit -v {1024 * address_space_mib}; exec {sys.executable} -m soakwatch.cli judge night.csv"
    return subprocess.run(
        ["sh", "-c", words],
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("mib", [120, 135, *(pytest.param(mib, marks=pytest.mark.slow) for mib in (110, 130))])
def test_too_little_memory_is_one_sentence(tmp_path: Path, mib: int) -> None:
    """Exit code 4 and the remedy, wherever it ran out: in a library, in a listing of a folder, in a thread."""
    done = judged_within(tmp_path, mib)
    assert done.returncode == 4
    assert done.stderr.splitlines()[-1] == (
        f"soakwatch: there is not enough memory of {mib} MiB (`ulimit -v`): what was recorded is kept; raise the limit"
        " of this process or of its container to 400 MiB or more, or free memory, then `soakwatch judge RUN`"
    )
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_run_without_memory_for_a_thread_is_one_sentence(tmp_path: Path) -> None:
    """Where the stack of the thread that writes to the terminal does not fit, the last sentence is written, too.

    Which limit that is depends on the libraries, so a range is tried from below: at some of them the record is begun.
    """
    (tmp_path / "plan.yaml").write_text(
        "duration: 2s\ntargets: {dut: {sources: [{local: {probes: [cpu]}}]}}\n", encoding="utf-8"
    )
    begun = 0
    for kib in range(140_000, 164_000, 4_000):
        words = f"ulimit -v {kib}; exec {sys.executable} -m soakwatch.cli run plan.yaml --no-web"
        done = subprocess.run(
            ["sh", "-c", words], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )
        begun += "recording to" in done.stdout
        if done.returncode != 4:
            break
        assert "there is not enough memory" in done.stderr, f"{kib} KiB: {done.stdout}{done.stderr}"
    assert begun, "no limit was one at which the run begins and ends for lack of memory"


@pytest.mark.slow
def test_linear_algebra_needs_no_thread_for_each_processor(tmp_path: Path) -> None:
    """Where OpenBLAS would wait for ever for the stack of a second thread, a verdict comes."""
    assert judged_within(tmp_path, 300).returncode in {0, 1, 3}


def test_the_limit_of_a_container_is_found(tmp_path: Path) -> None:
    """The least of the own control group and of those above it; without a limit there is none."""
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "cgroup").write_text("0::/system.slice/soak.service\n", encoding="utf-8")
    own = tmp_path / "sys" / "fs" / "cgroup" / "system.slice" / "soak.service"
    own.mkdir(parents=True)
    (own / "memory.max").write_text("max\n", encoding="ascii")
    assert memory_limit(tmp_path) is None
    (own.parent / "memory.max").write_text(f"{70 * 2**20}\n", encoding="ascii")
    assert memory_limit(tmp_path) == MemoryLimit(70, "memory.max of its control group")


def test_the_limit_of_a_container_is_found_on_an_older_kernel(tmp_path: Path) -> None:
    """Control groups of version 1: a hierarchy for memory of its own, where no limit is a very large one."""
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "cgroup").write_text("5:cpu,cpuacct:/soak\n4:memory:/soak\n", encoding="utf-8")
    own = tmp_path / "sys" / "fs" / "cgroup" / "memory" / "soak"
    own.mkdir(parents=True)
    (own.parent / "memory.limit_in_bytes").write_text("9223372036854771712\n", encoding="ascii")
    assert memory_limit(tmp_path) is None
    (own / "memory.limit_in_bytes").write_text(f"{70 * 2**20}\n", encoding="ascii")
    assert memory_limit(tmp_path) == MemoryLimit(70, "memory.limit_in_bytes of its control group")
