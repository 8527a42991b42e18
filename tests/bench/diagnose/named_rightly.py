"""Made processes of known growth: how many are named rightly, and how often the line that leaks is the first suspect.

``.venv/bin/python tests/bench/diagnose/named_rightly.py`` makes 40 processes (C with glibc and with jemalloc, Go,
Python, Java, Node; leak, cache with a bound, warm-up, follows the load, retention, fragmentation), looks three times at
each while it runs, and prints what each is called; ``--sites`` makes 24 leaks, each beside a busy cache, and 12 healthy
caches. It needs gdb, gcc, go, javac, node, curl and libjemalloc2; what is not there is left out and counted as such.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np

from soakwatch.diagnose.allowance import Allowance
from soakwatch.diagnose.look import Look
from soakwatch.diagnose.reading import Course, Kind, Reading, reading
from soakwatch.diagnose.take import About, take
from soakwatch.engine.diagnosing import HostAtHand
from soakwatch.engine.hooks.local_evidence import LocalHost

HERE = Path(__file__).parent
PERIODS = 1.3
"""How often the load goes up and down in a course: high at the first look, low at the second, high at the third."""
LOOKS_AT = (0.12, 0.55, 0.95)
"""When looks are taken, as shares of the course."""
EXPECTED = {
    "leak": Kind.LEAK,
    "cache": Kind.BOUNDED,
    "warm-up": Kind.WARM_UP,
    "load": Kind.LOAD,
    "retention": Kind.RETAINED,
    "fragmentation": Kind.FRAGMENTED,
}
_PORTS = count(16070)
_PAGE = 4096


@dataclass(frozen=True, slots=True)
class Made:
    """One made process: its runtime, kind of growth, and variant."""

    runtime: str
    kind: str
    variant: int


@dataclass(frozen=True, slots=True)
class Result:
    """What a made process was called, and its first suspect."""

    made: Made
    read: Reading
    looks: tuple[Look, ...]

    @property
    def right(self) -> bool:
        """Whether it is called what it is."""
        return self.read.kind is EXPECTED[self.made.kind]

    def site(self, leaking: frozenset[str]) -> bool:
        """Whether its first suspect is what leaks."""
        first = self.read.sites[0].name if self.read.sites else ""
        return any(mark in first for mark in leaking)


def processes() -> list[Made]:
    """The 40 of the first table."""
    made = [
        Made(runtime, kind, 0)
        for runtime in ("glibc", "jemalloc", "go", "python", "java", "node")
        for kind in list(EXPECTED)[:4]
    ]
    made += [Made(runtime, "retention", 0) for runtime in ("glibc", "go", "java")]
    made += [Made(runtime, "fragmentation", 0) for runtime in ("glibc", "python")]
    made += [
        Made(runtime, "leak", variant) for runtime in ("glibc", "go", "python", "java", "node") for variant in (1, 2)
    ]
    return [*made, Made("jemalloc", "leak", 3)]


def leaks() -> list[Made]:
    """24 leaks beside a busy cache."""
    return [Made(runtime, "leak", variant) for runtime in ("go", "python", "java", "node") for variant in range(6)]


def caches() -> list[Made]:
    """12 healthy caches."""
    return [
        Made(runtime, kind, 0) for runtime in ("go", "python", "java", "node") for kind in ("cache", "warm-up", "load")
    ]


def built(folder: Path) -> frozenset[str]:
    """Builds what can be built here; returns the runtimes that are there."""
    there = {"python"} if shutil.which("gdb") else set()
    if shutil.which("gcc") and shutil.which("gdb"):
        subprocess.run(["gcc", "-O1", "-o", folder / "made", HERE / "made.c", "-lm"], check=True)
        there.add("glibc")
        if any(Path("/usr/lib").glob("*/libjemalloc.so.2")):
            there.add("jemalloc")
    if shutil.which("go") and shutil.which("curl"):
        subprocess.run(["go", "build", "-o", folder / "made-go", HERE / "made.go"], check=True)
        there.add("go")
    if shutil.which("javac"):
        subprocess.run(["javac", "-d", folder, HERE / "Made.java"], check=True)
        there.add("java")
    if shutil.which("node"):
        there.add("node")
    return frozenset(there)


def words(made: Made, folder: Path, seconds: float, port: int) -> tuple[list[str], dict[str, str]]:
    """The command of a made process, and its environment."""
    arguments = [made.kind, str(seconds), str(made.variant)]
    match made.runtime:
        case "go":
            return [str(folder / "made-go"), *arguments, str(port)], {}
        case "java":
            return ["java", "-Xmx256m", "-XX:+UseG1GC", "-cp", str(folder), "Made", *arguments], {}
        case "node":
            return ["node", str(HERE / "made.js"), *arguments], {}
        case "python":
            return [sys.executable, str(HERE / "made.py"), *arguments], {}
        case _:
            preload = {"LD_PRELOAD": "libjemalloc.so.2"} if made.runtime == "jemalloc" else {}
            return [str(folder / "made"), *arguments], preload


async def tried(made: Made, folder: Path, seconds: float, node: asyncio.Lock) -> Result:
    """Runs a made process and looks at it."""
    port = next(_PORTS)
    if made.runtime == "node":  # the port of the inspector is one
        await node.acquire()
    if made.kind == "load":
        await asyncio.sleep(-time.time() % (seconds / PERIODS))
    command, around = words(made, folder, seconds, port)
    process = subprocess.Popen(command, env={"PATH": "/usr/bin:/bin:/usr/local/bin", **around}, stdout=-3, stderr=-3)
    try:
        return await _watched(made, process.pid, seconds, f"http://127.0.0.1:{port}")
    finally:
        process.kill()
        process.wait()
        if made.runtime == "node":
            node.release()


async def _watched(made: Made, pid: int, seconds: float, pprof: str) -> Result:
    begin, host = time.monotonic(), HostAtHand(LocalHost())
    looks: list[Look] = []
    readings: list[tuple[float, float, float]] = []
    due = [share * seconds for share in LOOKS_AT]
    while (now := time.monotonic() - begin) < seconds:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        load = 0.5 + 0.5 * math.sin(2 * math.pi * PERIODS * time.time() / seconds) if made.kind == "load" else 1.0
        readings.append((time.time(), float(fields[1]) * _PAGE, load))
        if due and now >= due[0]:
            due.pop(0)
            about = About(len(looks) + 1, "dut", "process=made", pid)
            allowed = Allowance(5.0, debugger=True, pprof=(pprof,), last=not due)
            look, _ = await take(host, about, allowed, time.time_ns(), looks[-1] if looks else None)
            looks.append(look)
        await asyncio.sleep(seconds / 100)
    columns = [np.asarray(column, dtype=np.float64) for column in zip(*readings, strict=True)]
    course = Course(columns[0], columns[1], columns[2] if made.kind == "load" else None)
    return Result(made, reading(looks, course), tuple(looks))


async def all_tried(made: Sequence[Made], folder: Path, seconds: float, at_once: int) -> list[Result]:
    """All of them, some at the same time."""
    room, node = asyncio.Semaphore(at_once), asyncio.Lock()

    async def one(each: Made) -> Result:
        async with room:
            result = await tried(each, folder, seconds, node)
            print(_line(result), flush=True)
            return result

    return list(await asyncio.gather(*(one(each) for each in made)))


def leaking(made: Made) -> frozenset[str]:
    """What the first suspect of a leak has in its name."""
    if made.runtime == "java":
        return frozenset({"Made$Leaked"})
    if made.runtime == "node":
        return frozenset({"in leak"})
    file = HERE / ("made.go" if made.runtime == "go" else "made.py")
    lines = file.read_text().split("\n")
    begin = 1 + next(n for n, line in enumerate(lines) if line.startswith(("func leak", "def leak")))
    marked = [begin + n for n, line in enumerate(lines[begin:], 1) if line.endswith("LEAK")]
    return frozenset({f"{file.name}:{marked[made.variant % 6]}"})


def _line(result: Result) -> str:
    made, read = result.made, result.read
    stops = [look.cost.stopped_s or 0.0 for look in result.looks]
    first = read.sites[0].name.rpartition("/")[2] if read.sites else "-"
    sign = "right" if result.right else "WRONG"
    called = read.kind.value if read.why is None else f"{read.kind.value} ({read.why.value})"
    used = "/".join("-" if look.heap is None else f"{look.heap.in_use / 2**20:.1f}" for look in result.looks)
    missing = ", ".join(sorted({f"{a.part} {a.why.value} {a.detail}" for look in result.looks for a in look.absent}))
    first = f"{first}  missing: {missing}" if missing else first
    return f"{sign}  {made.runtime:9}{made.kind:14}{made.variant}  {called:42} {used:20} {max(stops):.2f} s  {first}"


def _summary(name: str, results: Sequence[Result], right: Iterator[bool]) -> str:
    return f"{name}: {sum(right)} of {len(results)}"


def main() -> None:
    """Prints a line for each process, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sites", action="store_true", help="24 leaks beside a busy cache, and 12 healthy caches")
    parser.add_argument("--seconds", type=float, default=30.0, help="course of each process")
    parser.add_argument("--at-once", type=int, default=3, help="processes at the same time")
    parser.add_argument("--only", default="", help="runtime, or RUNTIME:KIND")
    given = parser.parse_args()
    wanted = [*leaks(), *caches()] if given.sites else processes()
    runtime, _, kind = given.only.partition(":")
    with tempfile.TemporaryDirectory(prefix="soakwatch-made-") as name:
        there = built(Path(name))
        chosen = [m for m in wanted if m.runtime in there and runtime in {"", m.runtime} and kind in {"", m.kind}]
        if len(chosen) < len(wanted):
            print(f"{len(wanted) - len(chosen)} of {len(wanted)} left out")
        results = asyncio.run(all_tried(chosen, Path(name), given.seconds, given.at_once))
    stops = [look.cost.stopped_s for result in results for look in result.looks if look.cost.stopped_s is not None]
    if given.sites:
        leaky, healthy = ([r for r in results if (r.made.kind == "leak") is wants] for wants in (True, False))
        print(
            _summary(
                "the line or type that leaks is the first suspect", leaky, (r.site(leaking(r.made)) for r in leaky)
            )
        )
        print(_summary("healthy caches of which nothing is named", healthy, (not r.read.sites for r in healthy)))
    else:
        print(_summary("named rightly", results, (r.right for r in results)))
    median = float(np.median(stops)) if stops else 0.0
    print(f"longest stop {max(stops, default=0.0):.2f} s, median {median:.3f} s, of {len(stops)} stops")


if __name__ == "__main__":
    main()
