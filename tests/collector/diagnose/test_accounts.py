"""What programs write, read into looks: of the kernel, malloc, jemalloc, Python, a JVM, Go and Node."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from soakwatch.diagnose.kernel_account import (
    commands,
    files_by_kind,
    mapped_by_kind,
    mapping_kind,
    runtime_of,
    start_of,
    threads_by_name,
)
from soakwatch.diagnose.look import Basis, Heap, Runtime, SiteKind
from soakwatch.diagnose.shell import parts_of, script
from soakwatch.diagnose.takers.debugger import malloc_heap, python_heap, python_sites
from soakwatch.diagnose.takers.golang import heap_of as go_heap
from soakwatch.diagnose.takers.golang import held_by_line, routines_by_line
from soakwatch.diagnose.takers.java import heap_of as java_heap
from soakwatch.diagnose.takers.java import rows_of
from soakwatch.diagnose.takers.node import node_heap, node_sites

PPROF = """heap profile: 4: 9000 [5: 9999] @ heap/1048576
2: 4000 [2: 4000] @ 0x1 0x2
#\t0x670d71\tmain.leak+0x131\t\t/src/main.go:14
#\t0x670d9c\tmain.main+0x15c\t\t/src/main.go:25

1: 5000 [1: 5000] @ 0x1 0x3 0x2
#\t0x49fdcc\tbytes.Repeat+0xac\t\t/go/src/bytes/bytes.go:678
#\t0x670cc7\tmain.busy+0x87\t\t/src/main.go:18

0: 0 [1: 480] @ 0x9
#\t0x9\tmain.gone+0x1\t/src/main.go:30

# runtime.MemStats
# HeapAlloc = 1000
# HeapSys = 9000
# HeapIdle = 3000
# HeapInuse = 4000
# HeapReleased = 2000
"""
MALLOC = """<malloc version="1">
<heap nr="0">
<sizes>
  <size from="33" to="48" total="96" count="2"/>
  <unsorted from="200000" to="200000" total="200000" count="1"/>
</sizes>
<system type="current" size="900000"/>
</heap>
<total type="fast" count="1" size="32"/>
<total type="rest" count="4" size="300096"/>
<total type="mmap" count="1" size="1000000"/>
<system type="current" size="1900000"/>
</malloc>
"""


def ran(pid: int) -> dict[str, bytes]:
    """The account of the kernel of a process of this machine."""
    text, mark = script(commands(pid))
    return parts_of(subprocess.run(["sh", "-c", text], capture_output=True, check=True).stdout, mark)


def test_the_kernels_account_of_this_process() -> None:
    """Its memory is that of its status; a socket has its state, and no name of a file is kept."""
    with socket.create_server(("127.0.0.1", 0)), open("/etc/hostname"):
        parts = ran(os.getpid())
    assert start_of(parts["stat"]) > 0
    assert runtime_of(parts) is Runtime.PYTHON
    status = Path("/proc/self/status").read_text()
    resident = int(status.partition("VmRSS:")[2].split()[0]) << 10
    assert sum(row.resident for row in mapped_by_kind(parts["smaps"])) == pytest.approx(resident, rel=0.1)
    files = {row.name: row.count for row in files_by_kind(parts)}
    assert files["socket: TCP listening"] >= 1
    assert files["file in /etc"] == 1
    assert sum(row.count for row in threads_by_name(parts["threads"])) >= 1
    assert parts["times"]


def test_a_process_that_is_gone_has_no_start() -> None:
    """Nor has one that has exited and is not yet buried."""
    assert start_of(ran(2**22 - 1)["stat"]) == 0
    assert start_of(b"7 (x) Z 1 7 7 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 99 0 0") == 0


@pytest.mark.parametrize(
    ("path", "rights", "kind"),
    [
        ("[heap]", "rw-p", "heap"),
        ("[vdso]", "r-xp", "kernel"),
        ("[stack:12]", "rw-p", "stack"),
        ("[anon: glibc: malloc]", "rw-p", "anonymous: glibc: malloc"),
        ("/dev/shm/x", "rw-s", "shared memory"),
        ("/memfd:x (deleted)", "rw-p", "shared memory"),
        ("/opt/lib.so", "rw-p", "file: data"),
    ],
)
def test_a_mapping_has_its_kind(path: str, rights: str, kind: str) -> None:
    """By name and rights."""
    assert mapping_kind(path, rights, 4096, 4096) == kind


def test_malloc_holds_what_the_program_does_not_use() -> None:
    """In pieces is what is free in chunks that are no whole pages; what cannot be read is nothing."""
    assert malloc_heap(MALLOC) == Heap(1900000 + 1000000 - 300128, 2900000, in_pieces=128)
    assert malloc_heap("") is None
    assert malloc_heap("<malloc></malloc>") is None


def test_pythons_own_allocator() -> None:
    """With whole pools it is not in pieces; switched off it has no account."""
    text = (
        "      2 arenas * 1048576 bytes/arena              =            2,097,152\n"
        "# bytes in allocated blocks                   =            1,000,000\n"
        "30 unused pools * 16384 bytes               =              491,520\n"
    )
    assert python_heap(text) == Heap(1000000, 2097152, in_pieces=605632)
    assert python_heap("# debug malloc stats are not there") is None


def test_what_python_counted() -> None:
    """Lines of what was traced, and types; a first look has no lines."""
    sites = python_sites(
        {"lines": [("/a.py:3", 90, 2)], "since_ns": 5, "types": [("app.Session", 48, 1), ("builtins.list", 9, 1)]}
    )
    assert [(each.basis, each.since_ns, each.sites[0].name) for each in sites] == [
        (Basis.TRACED, 5, "/a.py:3"),
        (Basis.LIVE, None, "app.Session"),
    ]
    assert [site.own for site in sites[1].sites] == [True, False]
    assert python_sites({"types": None}) == ()


def test_a_jvm_of_any_collector() -> None:
    """G1, Serial, Parallel and ZGC write it each in a way of its own."""
    serial = " def new generation   total 10K, used 4K\n tenured generation   total 20K, used 6K\n Metaspace used 5K"
    assert java_heap(serial) == Heap(10 << 10, 30 << 10)
    assert java_heap(" ZHeap           used 3M, capacity 8M, max capacity 9M") == Heap(3 << 20, 8 << 20)
    assert java_heap("Exception: no such process") is None
    rows = rows_of(
        " num     #instances         #bytes  class name (module)\n"
        "   1:         16884       10089768  [B (java.base@17.0.15)\n"
        "   2:             3            300  [[Lcom.example.Session;\n"
        "Total         16887       10090068\n"
    )
    assert [(row.kind, row.name, row.bytes, row.count, row.own) for row in rows] == [
        (SiteKind.TYPE, "byte[]", 10089768, 16884, False),
        (SiteKind.TYPE, "com.example.Session[][]", 300, 3, False),
    ]


def test_the_page_of_go() -> None:
    """By the line of the program, though its library allocated; unsampled; what is free again is not there."""
    sites = {site.name: site for site in held_by_line(PPROF)}
    assert sorted(sites) == ["/src/main.go:14 in main.leak", "/src/main.go:18 in main.busy"]
    # of 2000 bytes each one of 263 is sampled
    assert sites["/src/main.go:14 in main.leak"].bytes == pytest.approx(2 * 524288, rel=0.01)
    assert go_heap(PPROF) == Heap(1000, 7000, in_pieces=3000)
    assert go_heap("404 page not found") is None
    routines = "goroutine profile: total 7\n7 @ 0x1\n#\t0x1\tmain.wait+0x1\t/src/main.go:9\n"
    assert [(site.name, site.count) for site in routines_by_line(routines)] == [("/src/main.go:9 in main.wait", 7)]


def test_what_node_answered() -> None:
    """Its heap with the buffers beside it; functions from the second look on."""
    heap = {"used_heap_size": 100, "total_heap_size": 300, "external_memory": 50}
    assert node_heap({"heap": heap, "collected": True}) == Heap(150, 350, None, collected=True)
    assert node_heap({}) is None
    told = json.loads('{"since": 7, "lines": [["/a.js:3 in leak", 65536], ["(V8 API)", 10]]}')
    (sites,) = node_sites(told)
    assert (sites.since_ns, sites.basis) == (7_000_000, Basis.TRACED)
    assert [(site.name, site.own) for site in sites.sites] == [("/a.js:3 in leak", True), ("(V8 API)", False)]
    assert node_sites({}) == ()
