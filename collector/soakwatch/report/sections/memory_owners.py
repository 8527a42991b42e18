"""Who owns the memory of each host: drawn over time, and what each owner held first and last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from soakwatch.core.formatting import natural, quantity
from soakwatch.record import SeriesKey
from soakwatch.report.blocks import HTML, Block, Layout, ReportCell, ReportColumn, Table, Text
from soakwatch.report.memory_stack import Band, Frame, memory_stack
from soakwatch.report.page import Page
from soakwatch.report.svg import SvgDrawing
from soakwatch_model.label import label
from soakwatch_model.memory_owners import NO_OWNER, OWNERS, MemoryOwner
from soakwatch_model.roles import MONITOR
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.growth.memory_owners import OWNED, PART, UNOWNED
from soakwatch_rules.wording.quantities import percent

ORDER = 36
TITLE = "Who owns the memory"
_WIDE, _NARROW = (900, 300), (400, 300)
_ENDS = 16  # the part of the readings whose median is the first, or the last
_LATE = 0.1  # share of the run: a part whose readings begin later was too small to be named before
_SHOWN = 0.001  # share of the memory from which an owner, or the growth of a part, has a row
_MOST_PARTS, _DRAWN_PARTS, _BRIEF, _MAX_TARGETS = 4, 3, 8, 8
_SPLIT = 0.05  # share of the growth of what is in use from which a part gets a band of its own


@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    """An owner, or one of its parts: what it held first and last (bytes). ``first`` is None of a part that was too
    small to be named when the run began, and ``grew`` of one that was read once."""

    owner: MemoryOwner
    part: str
    series: Series
    first: float | None
    last: float

    @property
    def grew(self) -> float | None:
        return None if len(self.series) < 2 else self.last - (self.first or 0.0)

    @property
    def moved(self) -> float:
        """Its growth; 0 where it is not known."""
        return self.grew or 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _Host:
    """The ledger of one host: its owners, in their order, and their parts by owner."""

    target: str
    owners: tuple[_Row, ...]
    parts: Mapping[str, tuple[_Row, ...]]

    @property
    def total(self) -> float:
        return sum(row.last for row in self.owners)


def blocks(page: Page) -> Sequence[Block] | None:
    """Two drawings, a sentence and a table for each host with a ledger; a sentence on those whose agent or platform
    has none while others have; None if no ledger was read."""
    roles = page.source.roles()
    keys = page.source.keys((OWNED, PART, UNOWNED))
    targets = sorted({key.target for key in keys if roles.get(key.target) != MONITOR}, key=natural)
    hosts = [host for target in targets[:_MAX_TARGETS] if (host := _host(page, target, keys)) is not None]
    if not hosts:
        return None
    found = [block for host in hosts for block in _of_host(page, host, several=len(hosts) > 1)]
    found += _unread(page)
    others = sorted({k.target for k in page.source.keys(("system.memory.usage",))} - set(targets), key=natural)
    if others:
        words = "no memory ledger was read: an agent from before it, a platform without it, or it is switched off"
        found.append(Text(words, label=", ".join(others[:_MAX_TARGETS]), tone="soft"))
    return found


def _unread(page: Page) -> Iterator[Text]:
    """What could not be read of a ledger, a line a reason."""
    faults = [fault for fault in page.source.faults() if fault.metric in {OWNED, PART}]
    for target, text in dict.fromkeys((fault.target, fault.text) for fault in faults):
        yield Text(f"not read: {text}", label=target, tone="soft")


def _host(page: Page, target: str, keys: Sequence[SeriesKey]) -> _Host | None:
    read = [page.source.series(key) for key in keys if key.target == target]
    by_name = {owner.name: owner for owner in OWNERS}
    whole: dict[str, _Row] = {}
    parts: dict[str, list[_Row]] = {}
    for series in (each.finite() for each in read):
        name = NO_OWNER if series.metric == UNOWNED else label(series.object, "owner") or ""
        if name not in by_name or len(series) < 1:
            continue
        if series.metric == PART:
            parts.setdefault(name, []).append(_row(by_name[name], label(series.object, "part") or "", series))
        else:
            whole[name] = _row(by_name[name], "", series)
    if NO_OWNER not in whole:
        return None
    rows = tuple(whole[owner.name] for owner in OWNERS if owner.name in whole)
    return _Host(target, rows, {name: _parts(rows, page.verdict.window) for name, rows in parts.items()})


def _parts(rows: Sequence[_Row], window: Window) -> tuple[_Row, ...]:
    """The parts of an owner, the largest first; those that were named later than others without a first value."""
    late_ns = min(int(row.series.time_ns[0]) for row in rows) + _LATE * (window.end_ns - window.begin_ns)
    found = [replace(row, first=None) if int(row.series.time_ns[0]) > late_ns else row for row in rows]
    return tuple(sorted(found, key=lambda row: -row.last))


def _row(owner: MemoryOwner, part: str, series: Series) -> _Row:
    some = max(1, len(series) // _ENDS)
    return _Row(owner, part, series, float(np.median(series.values[:some])), float(np.median(series.values[-some:])))


def _of_host(page: Page, host: _Host, *, several: bool) -> Iterator[Block]:
    left = next(row for row in host.owners if row.owner.name == NO_OWNER)
    used = [row for row in host.owners if row.owner.in_use]
    grew, kept = sum(row.moved for row in used), sum(row.last for row in used)
    sentence = (
        f"{percent(1 - left.last / host.total)} of {quantity(host.total, 'By')} has an owner at the end; "
        f"{quantity(kept, 'By')} is in use ({_signed(grew)} in the run), the rest can be had at once"
    )
    yield Text(sentence, label=host.target if several else "")
    yield Layout("memory_owners", lambda: {"stacks": [stack for stack in _stacks(page, host) if stack]}, HTML)
    columns = (
        ReportColumn("owner", "head"),
        ReportColumn("first", "number"),
        ReportColumn("last", "number"),
        ReportColumn("growth", "number"),
        ReportColumn("of all memory", "number"),
    )
    rows = [_cells(row, host.total) for row in _listed(host)]
    name = f" of {host.target}" if several else ""
    notes = tuple(
        f"{row.owner.words}: {row.owner.estimated}"
        for row in host.owners
        if row.owner.estimated and row.last >= _SHOWN * host.total
    )
    yield Table(f"Who owns the memory{name}, by growth", columns, rows, brief=_BRIEF, narrow=True, footnotes=notes)


def _listed(host: _Host) -> list[_Row]:
    """Owners, those in use that grew most first, each followed by its parts; small ones that did not grow are left
    out."""
    least = _SHOWN * host.total
    listed = []
    for row in sorted(host.owners, key=lambda row: (not row.owner.in_use, -row.moved)):
        if max(row.first or 0.0, row.last) >= least or row.owner.name == NO_OWNER:
            listed.append(row)
            parts = sorted(host.parts.get(row.owner.name, ()), key=lambda part: (-abs(part.moved), -part.last))
            listed += [part for part in parts if max(abs(part.moved), part.last / 4) >= least][:_MOST_PARTS]
    return listed


def _cells(row: _Row, total: float) -> list[ReportCell | str]:
    name = ReportCell(f"· {row.part}", "soft") if row.part else row.owner.words
    return [
        name,
        "–" if row.first is None else quantity(row.first, "By"),
        quantity(row.last, "By"),
        "–" if row.grew is None else _signed(row.grew),
        percent(round(row.last / total, 4)),
    ]


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else '−' if value < 0 else ''}{quantity(abs(value), 'By')}"


def _stacks(page: Page, host: _Host) -> Iterator[tuple[SvgDrawing, SvgDrawing] | None]:
    used = [row for row in host.owners if row.owner.in_use]
    colours: dict[str, str] = {}
    for title, rows in (("Memory in use", used), ("All memory", list(host.owners))):
        bands = [band for row in rows for band in _bands(row, host, sum(abs(each.moved) for each in used))]
        frames = [Frame(page.verdict.window, title, *size) for size in (_WIDE, _NARROW)]
        wide, narrow = (memory_stack(bands, frame, colours) for frame in frames)
        yield None if wide is None or narrow is None else (wide, narrow)


def _bands(row: _Row, host: _Host, moved: float) -> Iterator[Band]:
    """An owner as a band, its parts that grew much as bands of their own."""
    parts = host.parts.get(row.owner.name, ()) if row.owner.in_use else ()
    rising = [part for part in parts if part.moved >= _SPLIT * moved and len(part.series) > 1]
    rising = sorted(rising, key=lambda part: -part.moved)[:_DRAWN_PARTS]
    rest = row.series.values.copy()
    for part in rising:
        at = np.interp(row.series.time_ns, part.series.time_ns, part.series.values, left=0.0)
        rest = np.maximum(rest - at, 0.0)
    name = f"other {row.owner.words}" if rising else row.owner.words
    kind = "" if row.owner.in_use else f"own-{row.owner.name.replace('_', '-')}"
    yield Band(name, Series(host.target, OWNED, "", row.series.trait, row.series.time_ns, rest), kind)
    for part in rising:
        yield Band(row.owner.phrase(part.part), part.series)
