"""Runs inside gdb, on the host of the process: asks the allocator of a process, and starts a thread in a Python.

The text of this file is sent to gdb; Soakwatch itself never imports it. Any Python 3 of a gdb reads it. The process
stands from ``attach`` to ``detach``. Functions are called in a thread that waits in a system call in which it can hold
no lock of malloc; without such a thread nothing is called. A call is never broken off: what it had locked would stay
so, or the process would crash. So nothing is called here that could wait for the program: what needs Python's lock
runs in a thread of its own, after the process goes on.
"""

import json
import platform
import time

try:
    import gdb
except ImportError:  # it is only read, not run
    gdb = None

PAGE = 1 << 16
WAITS = {
    "x86_64": {7, 23, 34, 35, 43, 45, 47, 61, 128, 130, 219, 230, 232, 247, 270, 271, 281, 288, 441},
    "aarch64": {22, 72, 73, 95, 101, 115, 133, 137, 202, 207, 212, 242, 260, 441},
}
"""Calls that only wait: poll, select, nanosleep, accept, receive, wait, epoll; 219 of x86-64 continues one of them."""
IN_PYTHON = {
    # of the table behind it: held = Ensure(); Run(text); Release(held)
    "x86_64": "53 4889fb 4883ec10 ff13 890424 488d7b18 ff5308 8b3c24 ff5310 4883c410 5b 31c0 c3",
}
TRIES = 20
BETWEEN_S = 0.05


class RefusedError(Exception):
    """Nothing was called, and why as one word of Soakwatch."""


def prepare(pid):
    """Reads the symbols of the program before the process is stopped."""
    for setting in (
        "pagination off",
        "confirm off",
        "auto-solib-add off",
        "unwindonsignal on",
        "width 0",
        "debug-file-directory /-",
    ):
        gdb.execute("set " + setting)
    for optional in ("debuginfod enabled off", "print thread-events off", "print inferior-events off"):
        try:
            gdb.execute("set " + optional, to_string=True)
        except gdb.error:
            pass
    gdb.execute("file /proc/%d/exe" % pid, to_string=True)


def waiting_thread(pid):
    """Selects a thread that waits in a system call; None if there is none."""
    calls = WAITS.get(platform.machine(), set())
    for thread in gdb.selected_inferior().threads():
        tid = thread.ptid[1] or pid
        try:
            with open("/proc/%d/task/%d/syscall" % (pid, tid)) as file:
                number = file.read().split()[0]
        except (OSError, IndexError):
            continue
        if number.isdigit() and int(number) in calls:
            thread.switch()
            return thread
    return None


def address(kind, name, *arguments):
    """Calls a function of the process with numbers and addresses; returns a number."""
    types = ",".join(["unsigned long"] * len(arguments)) or "void"
    values = ",".join(str(argument) for argument in arguments)
    return int(gdb.parse_and_eval("((%s(*)(%s))%s)(%s)" % (kind, types, name, values)))


def has(name):
    """Whether the process has a function of this name."""
    try:
        gdb.parse_and_eval("(void*)%s" % name)
    except gdb.error:
        return False
    return True


def page_with(data, rights=3):
    """A page of the process's memory that holds some bytes, taken without its allocator."""
    size = (len(data) + PAGE) // PAGE * PAGE
    place = address("unsigned long", "mmap", 0, size, rights, 0x22, "-1", 0)
    if place >= (1 << 64) - 4096:
        raise RefusedError("failed")
    gdb.selected_inferior().write_memory(place, data + b"\0")
    return place, size


def start_in_python(code):
    """Starts a thread that runs some Python, and waits for its lock by itself. The page stays, for it runs there."""
    program = bytes.fromhex(IN_PYTHON.get(platform.machine(), ""))
    if not program:
        raise RefusedError("failed")
    names = ("PyGILState_Ensure", "PyRun_SimpleString", "PyGILState_Release")
    places = [int(gdb.parse_and_eval("(unsigned long)%s" % name)) for name in names]
    table = b"".join(place.to_bytes(8, "little") for place in places)
    page, _ = page_with(b"\0" * 64 + program.ljust(64, b"\0") + table + code.encode(), 7)
    if address("int", "pthread_create", page, 0, page + 64, page + 128) != 0:
        raise RefusedError("failed")
    thread = int.from_bytes(bytes(gdb.selected_inferior().read_memory(page, 8)), "little")
    address("int", "pthread_detach", thread)


def written(pid, page, functions):
    """What functions of the process write to a FILE, which is a file in memory only."""
    texts = {}
    for name, before in functions:
        descriptor = address("int", "memfd_create", page, 1)
        stream = address("unsigned long", "fdopen", descriptor, page + 16)
        address("int", name, *(list(before) + [stream]))
        address("int", "fflush", stream)
        with open("/proc/%d/fd/%d" % (pid, descriptor), errors="replace") as file:
            texts[name] = file.read(1 << 20)
        address("int", "fclose", stream)
    return texts


def statistics(names):
    """Figures of jemalloc by name, as of now."""
    page, size = page_with(b"\x01" + b"\0" * 15 + b"\x08" + b"\0" * 47)
    memory, figures = gdb.selected_inferior(), {}
    try:
        for name in ["epoch"] + names:
            memory.write_memory(page + 64, name.encode() + b"\0")
            memory.write_memory(page + 16, b"\x08" + b"\0" * 7)
            new = (page, 8) if name == "epoch" else (0, 0)
            if address("int", "mallctl", page + 64, page + 32, page + 16, *new) == 0:
                figures[name] = int.from_bytes(bytes(memory.read_memory(page + 32, 8)), "little")
    finally:
        address("int", "munmap", page, size)
    return figures


def ask(pid, code):
    """In a thread that waits: the allocators' own account, and a start of ``code`` in a Python."""
    texts = {}
    page, size = page_with(b"soakwatch\0\0\0\0\0\0\0w\0")
    try:
        if has("mallctl"):
            names = ["stats.%s" % name for name in ("allocated", "active", "resident", "retained")]
            texts["mallctl"] = json.dumps(statistics(names))
        elif has("malloc_info"):
            texts.update(written(pid, page, [("malloc_info", [0])]))
        if code:
            start_in_python(code)
    finally:
        address("int", "munmap", page, size)
    return texts


def once(pid, code, stop_s):
    """Stops the process once: returns what was asked, and for how long it stood."""
    begin = time.monotonic()
    gdb.execute("attach %d" % pid, to_string=True)
    texts, failure = {}, ""
    try:
        for name in ("libc\\.so", "libc-", "libpthread", "libpython", "jemalloc"):
            gdb.execute("sharedlibrary " + name, to_string=True)
        if time.monotonic() - begin > stop_s / 2:
            failure = "stop too long"
        elif waiting_thread(pid) is None:
            failure = "no safe moment"
        elif code and not has("PyRun_SimpleString"):
            failure = "failed"
        else:
            texts = ask(pid, code)
    except RefusedError as refused:
        failure = str(refused)
    except (gdb.error, OSError) as error:
        failure, texts["error"] = "failed", str(error)[:200]
    finally:
        gdb.execute("detach", to_string=True)
    return texts, failure, time.monotonic() - begin


def look(pid, code, stop_s):
    """Tries until a thread waits, within bounds."""
    longest, total, texts, failure = 0.0, 0.0, {}, "failed"
    try:
        prepare(pid)
        for _ in range(TRIES):
            texts, failure, stood = once(pid, code, stop_s)
            longest, total = max(longest, stood), total + stood
            if failure != "no safe moment" or total > stop_s:
                break
            time.sleep(BETWEEN_S)
    except gdb.error as error:
        texts = {"error": str(error)[:200]}
        failure = "permission denied" if "not permitted" in str(error) else "failed"
    answer = {"texts": texts, "failure": failure, "stopped_s": round(longest, 4)}
    print("soakwatch-look " + json.dumps(answer), flush=True)
