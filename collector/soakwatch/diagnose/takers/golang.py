"""Asks a program in Go by the pages of net/http/pprof: what it holds by line, its goroutines, and its heap.

The page is read as text, which names functions and lines; the profile that ``go tool pprof`` reads is kept beside it.
"""

from __future__ import annotations

import math
import re
import shlex
from collections import defaultdict

from soakwatch.diagnose.allowance import Allowance, Subject, Taken, reason_of
from soakwatch.diagnose.look import Absent, Basis, Heap, Site, SiteKind, Sites, Why, largest
from soakwatch.diagnose.shell import Host, ask, first_line

PART = "pprof"
_TIMEOUT_S = 60.0
_HEAD = re.compile(r"^heap profile: .* @ heap/(\d{1,12})", re.MULTILINE)
_STACK = re.compile(r"^(\d{1,12}): (\d{1,18}) \[\d{1,18}: \d{1,18}\] @")
_FRAME = re.compile(r"^#\t0x[0-9a-f]+\t(\S+?)(?:\+0x[0-9a-f]+)?\s+(\S.*):(\d{1,7})$")
_STAT = re.compile(r"^# (HeapAlloc|HeapInuse|HeapSys|HeapReleased|HeapIdle) = (\d{1,20})$", re.MULTILINE)
_GOROUTINES = re.compile(r"^(\d{1,9}) @", re.MULTILINE)
_OF_THE_LANGUAGE = (
    "runtime.",
    "internal/",
    "reflect.",
    "bytes.",
    "strings.",
    "fmt.",
    "bufio.",
    "encoding/",
    "net.",
    "net/",
    "sync.",
    "io.",
    "os.",
    "maps.",
    "slices.",
    "container/",
    "sort.",
    "strconv.",
    "errors.",
    "context.",
    "crypto/",
    "compress/",
)


async def take_go(host: Host, _: Subject, allowed: Allowance) -> Taken:
    """What is held after a collection by line, goroutines by line, and the heap."""
    if not allowed.pprof:
        return Taken(absent=(Absent(PART, Why.NOT_NAMED),))
    taken = Taken()
    for base in allowed.pprof:
        taken = await _of(host, base)
        if taken.sites or taken.heap:
            break
    return taken


async def _of(host: Host, base: str) -> Taken:
    get, address = "curl -sS --fail --noproxy '*' --max-time 20 --max-filesize 8000000", base.rstrip("/")

    def page(path: str) -> str:
        return f"command -v curl >/dev/null || exit 127; {get} {shlex.quote(f'{address}/debug/pprof/{path}')} 2>&1"

    parts, trouble = await ask(
        host, {"heap": page("heap?gc=1&debug=1"), "goroutine": page("goroutine?debug=1")}, _TIMEOUT_S
    )
    text = parts.get("heap", b"").decode("utf-8", "replace")
    if _HEAD.search(text) is None:
        return Taken(absent=(Absent(PART, reason_of(trouble, text.encode()), first_line(text.encode()) or trouble),))
    profile, _ = await host.run(page("heap"), _TIMEOUT_S)
    routines = parts.get("goroutine", b"")
    sites = [Sites("pprof heap", Basis.LIVE, largest(held_by_line(text)), grain=_rate(text))]
    if rows := routines_by_line(routines.decode("utf-8", "replace")):
        sites.append(Sites("pprof goroutine", Basis.LIVE, largest(rows)))
    kept = {"heap.txt": text.encode(), "goroutine.txt": routines}
    if profile.startswith(b"\x1f\x8b"):
        kept["heap.pb.gz"] = profile
    return Taken(heap_of(text), sites=tuple(sites), kept=kept)


def heap_of(text: str) -> Heap | None:
    """The heap of the runtime's own figures at the end of the page."""
    stats = {name: int(value) for name, value in _STAT.findall(text)}
    if not {"HeapAlloc", "HeapSys", "HeapReleased", "HeapInuse"} <= stats.keys():
        return None
    held = stats["HeapSys"] - stats["HeapReleased"]
    return Heap(stats["HeapAlloc"], held, in_pieces=max(0, stats["HeapInuse"] - stats["HeapAlloc"]))


def held_by_line(text: str) -> list[Site]:
    """What is held by line, unsampled as ``go tool pprof`` does it."""
    rate = _rate(text)
    held: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for count, size, frames in _stacks(text):
        if count and frames:
            share = 1.0 if rate <= 1 else -math.expm1(-(size / count) / rate)
            row = held[_own(frames)]
            row[0] += size / share
            row[1] += count / share
    return [Site(SiteKind.LINE, name, round(size), round(count), _is_own(name)) for name, (size, count) in held.items()]


def _rate(text: str) -> int:
    """One of so many bytes is sampled; the page has twice that."""
    head = _HEAD.search(text)
    return int(head[1]) // 2 if head else 0


def routines_by_line(text: str) -> list[Site]:
    """Goroutines by the line of the program at which they wait; each holds a stack of 2 KiB at least."""
    held: defaultdict[str, int] = defaultdict(int)
    for block in text.split("\n\n"):
        head = _GOROUTINES.search(block)
        frames = [match for line in block.split("\n") if (match := _FRAME.match(line))]
        if head and frames:
            held[_own([(f[1], f"{f[2]}:{f[3]}") for f in frames])] += int(head[1])
    return [Site(SiteKind.LINE, name, count * 2048, count, _is_own(name)) for name, count in held.items()]


def _stacks(text: str) -> list[tuple[int, int, list[tuple[str, str]]]]:
    stacks: list[tuple[int, int, list[tuple[str, str]]]] = []
    for line in text.split("\n"):
        if head := _STACK.match(line):
            stacks.append((int(head[1]), int(head[2]), []))
        elif stacks and (frame := _FRAME.match(line)):
            stacks[-1][2].append((frame[1], f"{frame[2]}:{frame[3]}"))
    return stacks


def _own(frames: list[tuple[str, str]]) -> str:
    """The innermost line of the program itself, with its function; of the language's if there is no other."""
    function, place = next((f for f in frames if not f[0].startswith(_OF_THE_LANGUAGE)), frames[0])
    return f"{place} in {function}"


def _is_own(name: str) -> bool:
    return not name.rpartition(" in ")[2].startswith(_OF_THE_LANGUAGE)
