"""The memory ledger: real memory taken in twelve ways is found with its owner, and nothing is counted twice."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from soakwatch.core.errors import PlanError
from soakwatch.sources.pollers.local import Config
from soakwatch_agent.context import SECOND, HostContext
from soakwatch_agent.host import Host, probe_names
from soakwatch_agent.memory_ledger.kernel_counts import KernelCounts, owned_by_kernel_counts
from soakwatch_agent.memory_ledger.ledger import Ledger
from soakwatch_agent.memory_ledger.page_pools import attributes, held_by_interface, messages, page_pools
from soakwatch_agent.memory_ledger.take import LedgerReader, take_ledger
from soakwatch_agent.probes.ledger import LedgerProbe, NamedParts
from soakwatch_model.memory_owners import OWNER_BY_NAME
from soakwatch_model.sample import object_labels

_GROWERS = Path(__file__).with_name("memory_growers.py")
_MIB = 1 << 20
_SIZE = 48
_HERE = HostContext()
_MINUTE = 60 * SECOND
_TRIES = 6

_MEMINFO = """MemTotal:        8000 kB
MemFree:         1000 kB
Buffers:          100 kB
Cached:          3000 kB
SwapCached:         0 kB
AnonPages:       2000 kB
Shmem:            500 kB
Slab:             700 kB
SReclaimable:     400 kB
SUnreclaim:       300 kB
KernelStack:      160 kB
PageTables:       100 kB
VmallocUsed:      260 kB
HugePages_Total:    0
Hugepagesize:    2048 kB
"""


@contextmanager
def grower(kind: str) -> Iterator[tuple[Ledger, Ledger, int]]:
    """The ledgers before and after a program took memory in one way, and how much it took."""
    command = [sys.executable, str(_GROWERS), kind, str(_SIZE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        try:
            assert program.stdout.readline() == "begins\n"
            before = LedgerReader(_HERE).read(0, first=[program.pid])
            program.stdin.write("\n")
            program.stdin.flush()
            taken = program.stdout.readline().strip()
            if not taken.isdigit() or int(taken) < 4 * _MIB:
                pytest.skip(f"{kind}: {taken}")
            yield before, LedgerReader(_HERE).read(0, first=[program.pid]), int(taken)
        finally:
            program.stdin.close()


def grew(before: Ledger, after: Ledger, owner: str, part: str) -> int:
    """How much an owner, or a part of it, holds more than before."""
    if owner == "none":
        return after.left - before.left
    if not part:
        return after.owned[owner] - before.owned[owner]
    return after.parts[owner].get(part, 0) - before.parts[owner].get(part, 0)


_slow = pytest.mark.slow


@pytest.mark.skipif(os.geteuid() != 0, reason="the kernel shows its slab to root only")
@pytest.mark.parametrize(
    ("kind", "owner", "part"),
    [
        ("anonymous", "processes", "grower-anonymou"),
        ("tmpfs", "shared", "/dev/shm"),
        ("slab", "slab", "msg_msg-512"),
        ("page_tables", "page_tables", ""),
        ("pipes", "none", ""),
        pytest.param("heap", "processes", "grower-heap", marks=_slow),
        pytest.param("memfd", "shared", "", marks=_slow),
        pytest.param("shared", "shared", "mapped by grower-shared", marks=_slow),
        pytest.param("huge_pages", "huge_pages", "", marks=_slow),
        pytest.param("tcp", "sockets", "", marks=_slow),
        pytest.param("kernel_stacks", "kernel_stacks", "", marks=_slow),
        pytest.param("vmalloc", "vmalloc", "array_map_alloc", marks=_slow),
    ],
)
def test_memory_that_was_taken_is_found_with_its_owner(kind: str, owner: str, part: str) -> None:
    """At least 95 % of it and at most 115 %; again where other programs took or gave back as much meanwhile."""
    found: list[tuple[int, int]] = []
    for _ in range(_TRIES):
        with grower(kind) as (before, after, taken):
            name = "kmalloc-512" if kind == "slab" and part not in after.parts[owner] else part
            found.append((grew(before, after, owner, name), taken))
            if 0.95 * taken <= found[-1][0] <= 1.15 * taken:
                break
    else:
        pytest.fail(f"found and taken: {found}")


@pytest.mark.skipif(os.geteuid() != 0, reason="the kernel shows smaps of others to root only")
def test_a_process_is_divided_into_its_kinds_of_mappings() -> None:
    """What the heap took is heap, and what was mapped is anonymous."""
    for kind, mapping in (("heap", "heap"), ("anonymous", "anonymous"), ("tmpfs", "")):
        with grower(kind) as (_, after, taken):
            mine = next(each for each in after.processes if each.name == f"grower-{kind}"[:15])
            assert mine.mappings is not None
            if mapping:
                assert 0.95 * taken <= mine.mappings.by_kind[mapping] <= taken + 32 * _MIB
            else:
                assert mine.anonymous < 32 * _MIB  # a file in memory is not the process's own


def test_every_byte_has_one_owner() -> None:
    """Owners and the rest add up to MemTotal; parts are at most their owner's; nearly nothing is left over."""
    ledger = take_ledger(_HERE, 0)
    assert sum(ledger.owned.values()) + ledger.left == ledger.total
    assert set(ledger.owned) < set(OWNER_BY_NAME)
    for owner, parts in ledger.parts.items():
        assert sum(parts.values()) <= ledger.owned[owner] * 1.05 + 8 * _MIB  # they are not read at one time
    assert ledger.owned_share >= 0.98
    mine = next(each for each in ledger.processes if each.mappings is not None)
    assert mine.mappings is not None
    assert sum(mine.mappings.by_kind.values()) >= mine.anonymous


def counts(text: str = _MEMINFO, **others: str) -> KernelCounts:
    """The kernel's files with this text of /proc/meminfo."""
    return replace(KernelCounts(text, "", "", ""), **others)


def owned(files: KernelCounts, *, stacks_in_vmalloc: bool = True, page_pools: int | None = None) -> dict[str, int]:
    """KiB by owner, and what is left."""
    found = owned_by_kernel_counts(
        files, 4096, socket_page=4096, stacks_in_vmalloc=stacks_in_vmalloc, page_pools=page_pools
    )
    return {name: size >> 10 for name, size in found.by_owner.items()} | {"left": found.left >> 10}


def test_nothing_is_counted_twice() -> None:
    """Shared memory is not page cache as well, stacks are not vmalloc as well, and buffers of TCP take what is left."""
    found = owned(counts())
    assert (found["page_cache"], found["shared"], found["slab"], found["reclaimable_slab"]) == (2500, 500, 300, 400)
    assert (found["vmalloc"], found["kernel_stacks"]) == (100, 160)
    assert found["left"] == 8000 - 1000 - 100 - 3000 - 2000 - 700 - 260 - 100
    assert owned(counts(), stacks_in_vmalloc=False)["vmalloc"] == 260
    held = owned(counts(zoneinfo="  pagesets\n    cpu: 0\n              count:    10\n  vm stats threshold: 4\n"))
    assert held["free"] == 1040
    for pages, sockets in ((50, 200), (500, 840)):
        full = owned(counts(sockstat=f"TCP: inuse 1 orphan 0 tw 0 alloc 2 mem {pages}\n"))
        assert (full["sockets"], full["left"]) == (sockets, 840 - sockets)
    assert owned(counts(), page_pools=80 << 10)["page_pools"] == 80
    swapped = _MEMINFO.replace("SwapCached:         0", "SwapCached:       300")
    assert owned(counts(swapped))["swap_cache"] == 300
    lists = "Active: 3000 kB\nInactive: 2100 kB\nUnevictable: 60 kB\n"
    assert owned(counts(swapped + lists))["swap_cache"] == 60  # the others are mapped, and so in AnonPages


def test_what_a_kernel_does_not_count_is_no_zero() -> None:
    """An owner that the kernel does not count is left out, and without the great ones there is no remainder."""
    assert not {"percpu", "memory_map", "sockets", "compressed_swap", "page_pools"} & owned(counts()).keys()
    with pytest.raises(ValueError, match="has no AnonPages"):
        owned(counts(_MEMINFO.replace("AnonPages", "Anonymous")))


def test_names_that_come_and_go_do_not_fill_a_record() -> None:
    """A part has a series once it was large, is 0 when it is gone, and gives way to one four times as large."""
    named = NamedParts(2)
    assert named.of({"a": 50, "b": 9}, 10) == {"a": 50}
    assert named.of({"b": 20}, 10) == {"a": 0, "b": 20}
    assert named.of({"b": 20, "c": 60}, 10) == {"b": 20, "c": 60}
    assert named.of({"b": 20, "c": 60, "d": 79}, 10) == {"b": 20, "c": 60}
    assert named.of({"b": 20, "c": 60, "d": 81}, 10) == {"c": 60, "d": 81}


def recorded(folder: Path, **files: str) -> HostContext:
    """A recorded machine with these files of /proc, ``__`` for a slash."""
    for name, text in {"meminfo": _MEMINFO, **files}.items():
        path = folder / "proc" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return HostContext(str(folder))


def test_the_kernels_own_account_names_places_where_it_is_kept(tmp_path: Path) -> None:
    """/proc/allocinfo, which this kernel may lack: the places in the source that hold much."""
    sites = (
        "allocinfo - version: 1.0\n#  <size>  <calls> <tag info>\n 9437184 9 net/a.c:7 [a] func:a_open\n 4 1 b.c:1\n"
    )
    probe = LedgerProbe(recorded(tmp_path, allocinfo=sites))
    parts = {each.object: each.value for each in probe.read(0).samples if each.metric == "system.memory.owned.part"}
    assert parts == {"owner=none,part=net/a.c:7 a_open": 9437184}


def test_a_ledger_is_taken_once_a_minute(tmp_path: Path) -> None:
    """Polls between bring nothing; faults are reported once; a process that ended has no memory any more."""
    context = recorded(
        tmp_path, **{"7__statm": "900 512 0 1 0 1 0", "7__stat": "7 (bgpd) S 1", "9__statm": "0 0 0 0 0 0 0"}
    )
    probe = LedgerProbe(context)
    first, between = probe.read(0), probe.read(30 * SECOND)
    assert {"owner=processes,part=bgpd"} == {s.object for s in first.samples if s.metric == "system.memory.owned.part"}
    assert not between.samples
    assert {fault.object for fault in first.faults} == {"owner=slab", "owner=vmalloc"}
    shutil.rmtree(tmp_path / "proc/7")
    second = probe.read(_MINUTE)
    assert not second.faults
    gone = [each for each in second.samples if each.metric == "system.memory.owned.part"]
    assert [(object_labels(each.object)["part"], each.value) for each in gone] == [("bgpd", 0)]


def test_memory_shared_after_a_fork_counts_once(tmp_path: Path) -> None:
    """Two processes that share all of their memory hold it once, as soon as smaps of them was read."""
    area = "1000-9000 rw-p 00000000 00:00 0 \nRss:  1600 kB\nPss:  800 kB\nAnonymous:  1600 kB\n"
    files = {f"{pid}__statm": "900 400 0 1 0 1 0" for pid in (7, 8)}
    files |= {f"{pid}__stat": f"{pid} (worker) S 1" for pid in (7, 8)}
    context = recorded(tmp_path, **files)
    reader = LedgerReader(context)
    assert reader.read(0).parts["processes"] == {"worker": 2000 << 10}  # no more than there is: AnonPages
    (tmp_path / "mappings").mkdir()
    for pid in (7, 8):
        (tmp_path / f"mappings/{pid}").write_text(area)
    assert reader.read(_MINUTE).parts["processes"] == {"worker": 1600 << 10}
    assert reader.read(2 * _MINUTE).processes[0].anonymous == 800 << 10


def test_a_huge_process_is_not_walked_each_minute(tmp_path: Path) -> None:
    """Walking its page tables would hold up the poll and the process: only a full ledger does it."""
    context = recorded(tmp_path, **{"9__statm": "400000 300000 0 1 0 1 0", "9__stat": "9 (db) S 1"})
    (tmp_path / "mappings").mkdir()
    (tmp_path / "mappings/9").write_text("1000-9000 rw-p 00 00:00 0 \nRss:  8 kB\nPss:  8 kB\nAnonymous:  8 kB\n")
    assert [each.mappings for each in LedgerReader(context).read(0).processes] == [None]
    assert take_ledger(context, 0).processes[0].looked


def test_a_plan_can_switch_it_off() -> None:
    """``-ledger`` leaves out this probe alone; a name that no probe has is refused."""
    host = Host(_HERE, ["-ledger", "-process", "-core"])
    assert "ledger" in probe_names()
    metrics = {each.metric for each in host.poll(0).samples}
    assert "system.memory.usage" in metrics
    assert not {each for each in metrics if each.startswith("system.memory.owned")}
    host.close()
    with pytest.raises(ValueError, match="there is no probe 'ledgers'"):
        Host(_HERE, ["-ledgers"])
    with pytest.raises(PlanError, match="there is no probe 'ledgers'; did you mean"):
        Config.model_validate({"interval": "1s", "probes": ["-ledgers"]}).require_known()


def test_page_pools_are_read_of_the_kernels_answer() -> None:
    """Two pools of one interface and one of an interface that is gone; this kernel lists its own, or has no list."""
    pool = struct.pack("=HHIHHIHHQ", 8, 2, 7, 8, 4, 1, 12, 5, 65536)
    gone = struct.pack("=HHQ", 12, 5, 4096)
    answer = b"".join(
        struct.pack("=IHHII", 20 + len(body), 30, 2, 1, 0) + bytes(4) + body for body in (pool, pool, gone)
    )
    pools = [attributes(body) for kind, body in messages(answer) if kind == 30]
    assert held_by_interface(pools) == {7: 131072, 0: 4096}
    assert list(messages(answer[:30])) == []
    here = page_pools()
    assert here is None or all(size >= 0 for size in here.values())
