"""Sentences about looks: what they show, what grew, what is missing, what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from soakwatch.core.formatting import utc
from soakwatch.core.units import show_bytes, show_seconds
from soakwatch.diagnose.compare import Change, Grown
from soakwatch.diagnose.look import Absent, Cost, Look, Runtime, SiteKind, Why
from soakwatch.diagnose.reading import Kind, Reading, Undecided
from soakwatch_rules.wording.quantities import counted

_MEANS: Final[Mapping[Kind, str]] = {
    Kind.LEAK: "the program itself holds more and more",
    Kind.BOUNDED: "the program held more and more, and came to rest: a cache that is full",
    Kind.FRAGMENTED: "the program holds no more, but what it freed lies in pieces that the allocator cannot give back",
    Kind.RETAINED: "the program holds no more: the allocator keeps what a peak needed",
    Kind.LOAD: "memory goes up and down with the load",
    Kind.WARM_UP: "memory grew after the start, and came to rest",
}
_OPEN: Final[Mapping[Undecided, str]] = {
    Undecided.ONE_LOOK: "there is one look, and growth shows between two",
    Undecided.RESTARTED: "the process was restarted between the looks",
    Undecided.NO_ACCOUNT: "the allocator's own account is missing: without it a leak looks like kept memory",
    Undecided.NO_GROWTH: "nothing grew between the looks",
}
_NEXT: Final[Mapping[Kind, str]] = {
    Kind.FRAGMENTED: "try MALLOC_ARENA_MAX=2, jemalloc, or malloc_trim(0) in quiet hours",
    Kind.RETAINED: "malloc_trim(0) or a lower M_TRIM_THRESHOLD gives it back",
}
_GO_RETAINED: Final = "debug.FreeOSMemory() or GOMEMLIMIT gives it back"
_JAVA_RETAINED: Final = "a lower -Xmx, or a collector that gives memory back, bounds it"
_WHY: Final[Mapping[Why, str]] = {
    Why.NOT_ALLOWED: "no debugger is allowed (a plan allows it with debugger: true, the command with --debugger)",
    Why.NOT_INSTALLED: "its program is not installed there",
    Why.NOT_NAMED: "the plan has no address of it (diagnose: pprof: [http://127.0.0.1:6060])",
    Why.DENIED: "permission denied: it needs the process's own user or root",
    Why.STOP: "it would stop the process for longer than stop_at_most",
    Why.BUSY: "there was no moment at which the process could safely be asked",
    Why.FAILED: "it failed",
    Why.CUT: "there is too much of it",
}


def reading_words(reading: Reading, runtime: Runtime = Runtime.OTHER) -> str:
    """What the looks show, in one or two sentences."""
    if reading.why is not None:
        return f"not decided: {_OPEN[reading.why]}"
    parts = [f"{reading.kind.value}: {_MEANS[reading.kind]}"]
    apart = reading.difference
    if apart is not None:
        figures = [("resident memory", apart.resident), ("in use", apart.in_use), ("held by the allocator", apart.held)]
        amounts = ", ".join(f"{name} {signed(value)}" for name, value in figures if value is not None)
        parts.append(f"{amounts} in {show_seconds(round(apart.seconds))}" if amounts else "")
    if reading.free is not None and reading.kind in {Kind.FRAGMENTED, Kind.RETAINED}:
        pieces = "" if reading.in_pieces is None else f", {show_bytes(reading.in_pieces)} of it in pieces"
        parts.append(f"{show_bytes(reading.free)} is free in the allocator{pieces}")
        parts.append(_advice(reading.kind, runtime))
    if reading.kind is Kind.LEAK and reading.sites:
        parts.append(f"most grew at {site_words(reading.sites[0])}")
    return "; ".join(part for part in parts if part)


def _advice(kind: Kind, runtime: Runtime) -> str:
    if kind is Kind.RETAINED and runtime in {Runtime.GO, Runtime.JAVA}:
        return _GO_RETAINED if runtime is Runtime.GO else _JAVA_RETAINED
    return _NEXT.get(kind, "")


def site_words(site: Grown) -> str:
    """A site with by how much it grew."""
    what = "" if site.kind is SiteKind.LINE else "objects of "
    return f"{what}{site.name} ({signed(site.bytes)}, {site.count:+,} objects, {site.share:.0%} of what grew)"


def signed(value: int) -> str:
    """An amount of bytes with its sign.

    >>> signed(2048), signed(-1048576)
    ('+2 KiB', '-1 MiB')
    """
    return ("+" if value >= 0 else "-") + show_bytes(abs(value))


def change_words(change: Change, *, in_bytes: bool) -> str:
    """From what to what an amount went."""
    if in_bytes:
        return f"{show_bytes(change.before)} to {show_bytes(change.after)} ({signed(change.by)})"
    return f"{change.before:,} to {change.after:,} ({change.by:+,})"


def absent_words(absent: Sequence[Absent]) -> str:
    """What is missing of a look, each with why; empty if nothing is."""
    parts = [f"{each.part}: {_WHY[each.why]}" + (f" ({each.detail})" if each.detail else "") for each in absent]
    return "; ".join(dict.fromkeys(parts))


def cost_words(cost: Cost) -> str:
    """What a look cost."""
    stop = "no measured stop" if cost.stopped_s is None else f"the process stood for {cost.stopped_s * 1e3:.0f} ms"
    cpu = "" if cost.cpu_s is None else f", {cost.cpu_s * 1e3:.0f} ms of CPU for the account of the kernel"
    return f"{stop}; it took {cost.seconds:.1f} s{cpu}"


def looks_words(looks: Sequence[Look]) -> str:
    """How many looks there are, and the longest stop."""
    stops = [look.cost.stopped_s for look in looks if look.cost.stopped_s is not None]
    longest = f", the longest stop {max(stops) * 1e3:.0f} ms" if stops else ""
    return f"{counted(len(looks), 'look')}{longest}"


@dataclass(frozen=True, slots=True)
class Stacks:
    """Where CPU time went at a spike: a sentence, how it is known, and rows of name, share and samples."""

    words: str
    detail: str
    rows: tuple[tuple[str, str, str], ...]


STACK_COLUMNS: Final = ("where CPU time went", "share", "samples")


def stacks_words(look: Look, most: int) -> Stacks:
    """What a look at CPU shows; without rows where no stack was had."""
    rows = [(site, each.program) for each in look.sites for site in each.sites]
    total = sum(site.count for site, _ in rows)
    if not total:
        return Stacks(f"no stacks were had: {absent_words(look.absent)}", "", ())
    first, program = rows[0]
    return Stacks(
        f"{first.count / total:.0%} of CPU time at {first.name}",
        f"{total:,} stacks by {program} at {utc(look.time_ns)} UTC, after {look.rule}",
        tuple((site.name, f"{site.count / total:.0%}", f"{site.count:,}") for site, _ in rows[:most]),
    )
