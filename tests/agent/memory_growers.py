"""Programs that take memory in one way each, for tests of the memory ledger: ``python memory_growers.py KIND MIB``.

It prints how many bytes it took and holds them until its standard input ends.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import resource
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

MIB = 1 << 20
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.sbrk.restype = ctypes.c_void_p
_HUGE = Path("/proc/sys/vm/nr_hugepages")
_STACK = 16 << 10  # of a thread in the kernel
_TABLE = 2 << 20  # bytes of addresses that one page of page tables maps


def heap(size: int, held: ExitStack) -> int:
    """The brk heap."""
    place = _LIBC.sbrk(size)
    ctypes.memset(place, 1, size)
    return size


def anonymous(size: int, held: ExitStack) -> int:
    """Private anonymous memory."""
    place = held.enter_context(mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    place.write(b"\1" * size)
    return size


def tmpfs(size: int, held: ExitStack) -> int:
    """A file in /dev/shm."""
    file, name = tempfile.mkstemp(dir="/dev/shm")
    Path(name).unlink()
    return os.write(file, b"\1" * size)


def file_cache(size: int, held: ExitStack) -> int:
    """A file on a disk, which the page cache holds."""
    file, name = tempfile.mkstemp(dir="/var/tmp")
    Path(name).unlink()
    return os.write(file, b"\1" * size)


def memfd(size: int, held: ExitStack) -> int:
    """Shared memory that no file system shows."""
    os.write(os.memfd_create("grower"), b"\1" * size)
    return size


def shared(size: int, held: ExitStack) -> int:
    """Shared anonymous memory, as databases have it."""
    place = held.enter_context(mmap.mmap(-1, size))
    place.write(b"\1" * size)
    return size


def huge_pages(size: int, held: ExitStack) -> int:
    """Huge pages that are set aside, as few as the kernel can give."""
    before = _HUGE.read_text()
    held.callback(_HUGE.write_text, before)
    _HUGE.write_text(f"{int(before) + size // (2 * MIB)}\n")
    return (int(_HUGE.read_text()) - int(before)) * 2 * MIB


def tcp(size: int, held: ExitStack) -> int:
    """TCP connections whose peer does not read."""
    taken = 0
    listener = held.enter_context(socket.create_server(("127.0.0.1", 0), backlog=512))
    piece = b"\1" * 65536
    while taken < size:
        sender = held.enter_context(socket.create_connection(listener.getsockname()))
        held.enter_context(listener.accept()[0])
        sender.setblocking(False)
        before = taken
        while True:
            try:
                taken += sender.send(piece)
            except BlockingIOError:
                break
        if taken == before:
            break
    return taken


def slab(size: int, held: ExitStack) -> int:
    """Messages of System V, each of 512 bytes with its head, in one cache of the slab."""
    text = struct.pack("q", 1) + b"\1" * 464  # 48 bytes of head
    taken = 0
    while taken < size:
        queue = _LIBC.msgget(0, 0o1600)
        if queue < 0:
            break
        held.callback(_LIBC.msgctl, queue, 0, None)
        while _LIBC.msgsnd(queue, text, 464, 0o4000) == 0:
            taken += 512
    return taken


def page_tables(size: int, held: ExitStack) -> int:
    """A sparse mapping of which one page in each 2 MiB was read: it is the page of zeros, but it needs a table."""
    count = size // mmap.PAGESIZE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
    place = held.enter_context(mmap.mmap(-1, count * _TABLE, flags, mmap.PROT_READ))
    place.madvise(mmap.MADV_NOHUGEPAGE)
    for index in range(count):
        place[index * _TABLE]
    return count * mmap.PAGESIZE


def kernel_stacks(size: int, held: ExitStack) -> int:
    """Threads that wait."""
    threading.stack_size(65536)
    ended = threading.Event()
    held.callback(ended.set)
    for _ in range(size // _STACK):
        threading.Thread(target=ended.wait, daemon=True).start()
    return size // _STACK * _STACK


def vmalloc(size: int, held: ExitStack) -> int:
    """An array of the kernel's BPF, which vmalloc gives."""
    attribute = struct.pack("IIIII", 2, 4, 1 << 16, size >> 16, 0).ljust(128, b"\0")
    made = _LIBC.syscall(321, 0, ctypes.create_string_buffer(attribute, 128), 128)
    if made < 0:
        raise OSError(ctypes.get_errno(), "no BPF array can be made")
    held.callback(os.close, made)
    return size


def pipes(size: int, held: ExitStack) -> int:
    """Full pipes: pages that no counter of the kernel names, as those of drivers."""
    taken = 0
    while taken < size:
        reader, writer = os.pipe()
        held.callback(os.close, reader)
        held.callback(os.close, writer)
        fcntl.fcntl(writer, 1031, MIB)  # F_SETPIPE_SZ
        os.set_blocking(writer, False)
        taken += os.write(writer, b"\1" * MIB)
    return taken


GROWERS: dict[str, Callable[[int, ExitStack], int]] = {
    each.__name__: each
    for each in (
        heap,
        anonymous,
        file_cache,
        tmpfs,
        memfd,
        shared,
        huge_pages,
        tcp,
        slab,
        page_tables,
        kernel_stacks,
        vmalloc,
        pipes,
    )
}


def main() -> None:
    """Takes the memory, and gives it back when the input ends."""
    kind, mib = sys.argv[1:3]
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    Path("/proc/self/comm").write_text(f"grower-{kind}"[:15])
    with ExitStack() as held:
        print("begins", flush=True)
        sys.stdin.readline()  # the test looks at the memory before and after
        try:
            taken = GROWERS[kind](int(mib) * MIB, held)
        except OSError as error:
            print(f"cannot: {error}", flush=True)
            return
        print(taken, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
