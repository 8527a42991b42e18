"""Merges a new survey with earlier ones: a series keeps its source, or changes to a better one, but never to a worse.

To a survey, an object missing from one answer looks like one that the device never had: the next alternative would
replace it (0 for the buffers, another table for the memory, 32 bits for a counter of 64) and the series would jump. So
the survey waits for what was found once; until it is back there is no value. Only a restarted device may have lost it
for good (``Survey.settled``), and a sum or mean over fewer rows is accepted when it lasts: cards are pulled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from soakwatch.sources.profiles.device_survey import (
    FoldedSeries,
    HeldSeries,
    NameSource,
    Survey,
    SurveyedTable,
    WantedSeries,
)
from soakwatch.sources.profiles.profile_model import MetricGroup, MetricLine, Profile
from soakwatch.sources.profiles.series_of_rows import Draft, Key
from soakwatch_model.metric import BY_NAME, COUNTER

LASTING_NS = 30 * 10**9
MAX_CACHED = 5000  # series that are waited for: sessions and tunnels come and go under ever new names

Past = Mapping[Key, HeldSeries]
"""Every series that an earlier survey had, with what it was made of."""


@dataclass(frozen=True, slots=True)
class Sifted:
    """Drafts without the series that would change to a worse source, and the series that are waited for instead."""

    drafts: tuple[Draft, ...]
    refused: Mapping[Key, HeldSeries]


def past_of(before: Survey | None) -> Past:
    """The series that a survey found or waited for."""
    if before is None:
        return {}
    parts = dict(before.held)
    for table in before.tables:
        parts |= {(part.line.metric, part.object): HeldSeries(part, table.group) for part in table.parts}
    return parts


def kept_of(past: Past) -> frozenset[str]:
    """The OIDs that were chosen among several, and for good: not those that have a twin."""
    return frozenset(
        cell.oid
        for held in past.values()
        for row in _rows(held.part)
        for cell in row.cells
        if len(cell.column.oids) > 1 and cell.twin is None
    )


def sift(drafts: Sequence[Draft], past: Past, profile: Profile, now_ns: int) -> Sifted:
    """Leaves out what must not replace an existing series."""
    if not past:
        return Sifted(tuple(drafts), {})
    order = {id(line): index for index, line in enumerate(line for group in profile.groups for line in group.lines)}
    drafted = {
        (part.line.metric, part.object, id(part.line)) for draft in drafts for part in (*draft.sound, *draft.faulty)
    }
    refused: dict[Key, HeldSeries] = {}

    def fits(part: WantedSeries | FoldedSeries, group: MetricGroup) -> bool:
        key = (part.line.metric, part.object)
        old = past.get(key)
        if old is None:
            return True
        if part.line is not old.part.line:
            there = (*key, id(old.part.line)) in drafted
            good = _other(part.line, group, old, order, there=there)
        elif not _as_good(part, old.part):
            good = False
        elif (
            isinstance(part, FoldedSeries)
            and isinstance(old.part, FoldedSeries)
            and len(part.rows) < len(old.part.rows)
        ):
            lasting = 0 < old.fewer <= len(part.rows)
            good = lasting and now_ns - old.since_ns >= LASTING_NS
            if not lasting:
                old = replace(old, fewer=len(part.rows), since_ns=now_ns)
        else:
            good = True
        if not good and (key not in refused or old is not past[key]):
            refused[key] = old
        return good

    sifted = (
        replace(
            draft,
            sound=tuple(part for part in draft.sound if fits(part, draft.group)),
            faulty=tuple(part for part in draft.faulty if fits(part, draft.group)),
        )
        for draft in drafts
    )
    return Sifted(tuple(sifted), refused)


def held_of(past: Past, refused: Mapping[Key, HeldSeries], tables: Sequence[SurveyedTable]) -> Mapping[Key, HeldSeries]:
    """The series that are waited for: those of the past that no table brings, the last of them if they are many."""
    left = dict(past)
    for table in tables:
        for part in table.parts:
            left.pop((part.line.metric, part.object), None)
    return {key: refused.get(key, held) for key, held in list(left.items())[-MAX_CACHED:]}


def _other(line: MetricLine, group: MetricGroup, old: HeldSeries, order: Mapping[int, int], *, there: bool) -> bool:
    """Whether another line may bring a series: an alternative to the former line, or one that precedes it."""
    if group.name in old.group.unless:
        return True
    earlier = order.get(id(line), 0) < order.get(id(old.part.line), 0)
    return there and earlier and not _counts(line)


def _as_good(new: WantedSeries | FoldedSeries, old: WantedSeries | FoldedSeries) -> bool:
    """Whether a series of the same line has the same source, or one that the profile prefers."""
    (picks, ranks), (old_picks, old_ranks) = _made_of(new), _made_of(old)
    if any(pick > before for pick, before in zip(picks, old_picks, strict=False)):
        return False
    continued = _continued(new, old)
    pairs = [(rank, old_ranks[name]) for name, rank in ranks.items() if name in old_ranks and name not in continued]
    if _counts(new.line):
        return all(rank == before for rank, before in pairs)
    return all(rank <= before for rank, before in pairs)


def _made_of(part: WantedSeries | FoldedSeries) -> tuple[tuple[int, ...], dict[str, int]]:
    """The choices of a series, and which of a column's OIDs it reads: of a fold the worst of all rows."""
    rows, ranks = _rows(part), dict[str, int]()
    for row in rows:
        for cell in row.cells:
            if len(cell.column.oids) > 1:
                ranks[cell.name] = max(_rank(cell), ranks.get(cell.name, 0))
    return tuple(max(each) for each in zip(*(row.picks for row in rows), strict=True)), ranks


def _continued(new: WantedSeries | FoldedSeries, old: WantedSeries | FoldedSeries) -> set[str]:
    """The names of which a series goes on with the twin that it was read from already."""
    twins = {cell.twin for row in _rows(old) for cell in row.cells if cell.twin is not None}
    return {cell.name for row in _rows(new) for cell in row.cells if cell.oid in twins}


def _rank(cell: NameSource) -> int:
    for index, base in enumerate(cell.column.oids):
        if cell.oid == base or cell.oid.startswith(base + "."):
            return index
    return len(cell.column.oids)


def _rows(part: WantedSeries | FoldedSeries) -> tuple[WantedSeries, ...]:
    return part.rows if isinstance(part, FoldedSeries) else (part,)


def _counts(line: MetricLine) -> bool:
    """Whether values of another object would continue a count."""
    return line.change or BY_NAME[line.metric].kind == COUNTER
