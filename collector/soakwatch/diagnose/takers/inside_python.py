"""Runs inside the Python that is looked at, in a thread of its own: what it holds, by line and by type.

The text of this file is sent; Soakwatch itself never imports it. Any Python from 3.6 on reads it. It writes one line
of JSON to a file in memory, which the host reads by /proc, and closes that after a while.
"""

import gc
import json
import os
import sys
import sysconfig
import time
import tracemalloc

FRAMES = 8
MOST = 300
STAYS_S = 12.0
# before tracing begins, for it imports a large table
FOLDERS = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
FOREIGN = tuple(folder + "/" for folder in FOLDERS if folder)


def own_line(frames, foreign):
    """The innermost line of the program itself; of a library if none of the program's is known."""
    for file, line in frames:
        if not file.startswith(foreign) and not file.startswith("<frozen"):
            return "%s:%d" % (file, line)
    return "%s:%d" % frames[0]


def lines(traces):
    """What is held of all that was allocated since tracing began, by line; ``traces`` as tracemalloc has them."""
    held, known = {}, {}
    for trace in traces:
        size, frames = trace[1], trace[2]
        line = known.get(frames)
        if line is None:
            mine = not frames or any(frame[0] == "soakwatch-look" for frame in frames)
            line = known[frames] = "" if mine else own_line(frames, FOREIGN)
        if line:
            row = held.setdefault(line, [0, 0])
            row[0] += size
            row[1] += 1
    return ranked(held)


def types(objects):
    """The objects that the collector knows, by type; those that hold no other object are not among them."""
    held = {}
    for each in objects:
        kind = type(each)
        row = held.setdefault(kind, [0, 0])
        row[1] += 1
        row[0] += kind.__basicsize__
    return ranked({"%s.%s" % (kind.__module__, kind.__qualname__): row for kind, row in held.items()})


def ranked(held):
    """The rows with most bytes."""
    rows = sorted(held.items(), key=lambda item: -item[1][0])[:MOST]
    return [[str(name)[:300]] + row for name, row in rows]


def own_allocator():
    """What Python's allocator of small objects writes of itself."""
    import ctypes

    libc, descriptor = ctypes.CDLL(None), os.memfd_create("soakwatch")
    libc.fdopen.restype = ctypes.c_void_p
    stream = ctypes.c_void_p(libc.fdopen(descriptor, b"w"))
    ctypes.pythonapi._PyObject_DebugMallocStats(stream)
    libc.fflush(stream)
    text = os.pread(descriptor, 1 << 20, 0).decode("utf-8", "replace")
    libc.fclose(stream)
    return text


def look(name, stop_s, last):
    """Everything; ``last`` ends the tracing that an earlier look began."""
    out = {"version": "%d.%d" % sys.version_info[:2], "stops": []}

    def alone(function, *arguments):
        """A call during which nothing else of the program runs: its CPU time is the stop."""
        begin = time.thread_time() if hasattr(time, "thread_time") else time.perf_counter()
        result = function(*arguments)
        end = time.thread_time() if hasattr(time, "thread_time") else time.perf_counter()
        out["stops"].append(round(end - begin, 4))
        return result

    try:  # first, or tracing would count what this imports
        out["allocator"] = alone(own_allocator)
    except Exception as error:
        out["no_allocator"] = type(error).__name__
    try:
        out["blocks"] = sys.getallocatedblocks()
        since = getattr(sys, "_soakwatch_since", None)
        if tracemalloc.is_tracing():
            out["own"] = tracemalloc.get_tracemalloc_memory()
            out["since_ns"], out["traced"] = since, tracemalloc.get_traced_memory()[0]
            # a snapshot copies 50 bytes a trace at once, while nothing else of the program runs
            if tracemalloc.get_tracemalloc_memory() > stop_s * 400e6:
                out["lines_left"] = True
            else:
                out["lines"] = lines(alone(tracemalloc._get_traces))
        if not last and not tracemalloc.is_tracing():
            tracemalloc.start(FRAMES)
            sys._soakwatch_since = time.time_ns() if hasattr(time, "time_ns") else int(time.time() * 1e9)
        elif last and since is not None:
            alone(tracemalloc.stop)
            del sys._soakwatch_since
        # a list of all objects is made at once: of 8 bytes each, at 20 ns
        out["types"] = types(alone(gc.get_objects)) if out["blocks"] * 20e-9 < stop_s else None
    except Exception as error:
        out["error"] = type(error).__name__
    file = os.memfd_create(name)
    os.write(file, (json.dumps(out) + "\n").encode())
    time.sleep(STAYS_S)
    os.close(file)
