"""Finds out what a device has of its profile: one walk of everything, then only what is there is asked at each poll."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import ParamSpec, TypeVar

from soakwatch.sources.profiles.device_survey import Survey, SurveyedTable, WantedSeries
from soakwatch.sources.profiles.profile_model import MetricGroup, Profile
from soakwatch.sources.profiles.rows import GroupRows, by_column, columns_of, scalars_of
from soakwatch.sources.profiles.series_of_rows import (
    INTERFACE,
    Draft,
    Key,
    draft,
    share_out,
    watch_interfaces,
    with_returning,
)
from soakwatch.sources.profiles.snmp_processes import key_columns
from soakwatch.sources.profiles.survey_merge import held_of, kept_of, past_of, sift
from soakwatch.sources.profiles.value import Asker, Value
from soakwatch_model.sample import Fault

P = ParamSpec("P")
R = TypeVar("R")
THREAD_FROM = 5000  # values; fewer take less time than what a loop can be late by anyway
MAX_JOINS_BY_GET = 64
OTHERWISE = "the device no longer answers all objects that it is computed from, and there is no alternative"
DOUBTED = (
    "the 64-bit counter stands at 0 while that of 32 bits counts: it is not believed, and within a run a counter does "
    "not change its column"
)
MAX_FAULTS = 50  # of series that are gone; more are counted


async def run_in_thread_if_large(size: int, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """The result of ``work``, in a thread if ``size`` is large, so that the event loop goes on: 10,000 interfaces take
    a second or more. Its arguments must not be used elsewhere meanwhile."""
    if size <= THREAD_FROM:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


async def discover(
    asker: Asker,
    profile: Profile,
    interfaces: tuple[str, ...] | None = None,
    *,
    processes: bool = True,
    without: frozenset[str] = frozenset(),
    before: Survey | None = None,
    now_ns: int = 0,
    renumbered: bool = False,
) -> Survey:
    """The survey of a device. ``interfaces`` are globs of the plan's watch, None for all; ``without`` names groups.

    Tables of processes are looked for only if ``processes`` are watched. Alternatives that ``before`` had chosen are
    kept; series that it had and that are gone, or would have to be made of something else, are faults. ``now_ns`` is
    the steady clock; after a restart rows may be ``renumbered``. Raises what the asker raises.
    """
    groups = [group for group in profile.groups if group.name not in without]
    # What an earlier survey took decides what this one may take: a series does not change its source for a worse one.
    past = await run_in_thread_if_large(
        sum(len(table.wants) for table in before.tables) if before is not None else 0, past_of, before
    )
    finder = _Finder(
        asker, interfaces, before.wished if before is not None else {}, frozenset() if renumbered else kept_of(past)
    )
    drafts: dict[str, Draft] = {}
    usable: set[str] = set()
    # In stages, for a group is not asked where another that it stands in for (``unless``) answers.
    for stage in _stages([group for group in groups if group.watch != "process"]):
        drafted = await finder.drafts([group for group in stage if not usable & set(group.unless)])
        drafts |= drafted
        usable |= {name for name, each in drafted.items() if each.sound or each.faulty}
    running = await _processes(asker, groups, usable) if processes else ()
    # In the profile's order, not that of the stages: of groups that bring the same series the first keeps it.
    found_series = [drafts[group.name] for group in groups if group.name in drafts]
    size = sum(len(each.sound) for each in found_series)
    sifted = await run_in_thread_if_large(size, sift, found_series, past, profile, now_ns)
    tables = await run_in_thread_if_large(size, share_out, sifted.drafts, finder.totals)
    tables = with_returning(before, tables, finder.totals)
    asked = [group for group in groups if group.name in drafts]
    return Survey(
        profile,
        tuple(table for table in tables if table.wants or table.folds),
        running,
        finder.totals,
        finder.choices,
        _gone(before, tables, sifted.refused, finder.doubted),
        _lacking(asked, tables),
        finder.wished,
        held_of(past, sifted.refused, tables),
    )


def _stages(groups: Sequence[MetricGroup]) -> list[list[MetricGroup]]:
    """The groups in stages. A group is in a stage after all groups that its ``unless`` names; groups that name each
    other in a circle come last, together."""
    left, stages = list(groups), []
    while left:
        waiting = {group.name for group in left}
        stage = [group for group in left if not waiting & (set(group.unless) - {group.name})] or left
        stages.append(stage)
        left = [group for group in left if group not in stage]
    return stages


async def _processes(asker: Asker, groups: Iterable[MetricGroup], usable: set[str]) -> tuple[MetricGroup, ...]:
    """The groups of processes that the device has; their rows are found anew at each look."""
    chosen: list[MetricGroup] = []
    for group in groups:
        if group.watch != "process" or ({each.name for each in chosen} | usable) & set(group.unless):
            continue
        if await asker.walk([oid for column in key_columns(group) for oid in column.oids]):
            chosen.append(group)
    return tuple(chosen)


class _Finder:
    """One discovery under way: what was walked, and what was chosen."""

    def __init__(
        self,
        asker: Asker,
        interfaces: tuple[str, ...] | None,
        before: Mapping[tuple[str, str], str],
        kept: frozenset[str],
    ) -> None:
        self._asker, self._interfaces, self._kept = asker, interfaces, kept
        self.choices: dict[tuple[str, str], str] = {}
        self.wished = dict(before)  # stays what it was while it is not there: it may come back
        self.totals: dict[str, int] = {}
        self.doubted: set[str] = set()

    async def drafts(self, groups: Sequence[MetricGroup]) -> dict[str, Draft]:
        """What each group finds."""
        bases = tuple(dict.fromkeys(oid for group in groups for oid in columns_of(group)))
        whole = tuple(dict.fromkeys(oid for group in groups for oid in scalars_of(group)))
        values = await self._asker.walk(bases) if bases else {}
        scalars = await self._asker.get(whole) if whole else {}
        tree = await run_in_thread_if_large(len(values), by_column, bases, values)
        self.totals |= {base: len(rows) for base, rows in tree.items()}
        every = {**values, **scalars}
        return {group.name: await self._draft(GroupRows(group, tree, scalars, self._kept), every) for group in groups}

    async def _draft(self, rows: GroupRows, values: Mapping[str, Value]) -> Draft:
        group = rows.group
        rows.settle(self.wished)
        if suspects := rows.contradictions():
            # Traffic that began between two readings of one walk looks the same: a second reading tells.
            rows.doubt(suspects, await self._asker.get(tuple(suspects)))
            self.doubted |= rows.doubted
        for column, oid in rows.choices.items():
            self.choices[group.name, column] = oid
            if rows.tree.get(oid):
                self.wished.setdefault((group.name, column), oid)
            if self.wished.get((group.name, column)) in rows.distrusted:
                self.wished[group.name, column] = oid
        for join in group.joins:
            wanted = rows.wanted(join)
            rows.put(join, wanted, await self._joined(wanted, join.column.oids))
        rows.narrow()
        if group.watch == INTERFACE and self._interfaces is not None:
            watch_interfaces(rows, self._interfaces)
        if rows.joined_values:
            values = {**values, **rows.joined_values}
        return await run_in_thread_if_large(len(rows.indexes) * len(group.lines), draft, rows, values)

    async def _joined(self, wanted: Mapping[str, Sequence[str]], bases: tuple[str, ...]) -> Mapping[str, Value]:
        oids = dict.fromkeys(oid for row in wanted.values() for oid in row)
        if not oids:
            return {}
        return await (self._asker.get(tuple(oids)) if len(oids) <= MAX_JOINS_BY_GET else self._asker.walk(bases))


def _gone(
    before: Survey | None, tables: Iterable[SurveyedTable], refused: Collection[Key], doubted: Collection[str]
) -> tuple[Fault, ...]:
    """The series that an earlier survey had and this one has not, could only make of something else, or doubts."""
    if before is None:
        return ()
    lost = {(part.line.metric, part.object): part for table in before.tables for part in table.parts}
    for key in _series(tables):
        lost.pop(key, None)

    def reason(key: Key) -> str:
        part = lost[key]
        if isinstance(part, WantedSeries) and not set(part.oids).isdisjoint(doubted):
            return DOUBTED
        return OTHERWISE if key in refused else "the device does not have it any more"

    faults = [Fault(*key, reason(key)) for key in lost]
    if len(faults) > MAX_FAULTS:
        metric, object_label = list(lost)[MAX_FAULTS - 1]
        reported = f"the device does not have it any more, nor {len(faults) - MAX_FAULTS} other series"
        faults = [*faults[: MAX_FAULTS - 1], Fault(metric, object_label, reported)]
    return tuple(faults)


def _series(tables: Iterable[SurveyedTable]) -> list[tuple[str, str]]:
    return [(part.line.metric, part.object) for table in tables for part in table.parts]


def _lacking(groups: Sequence[MetricGroup], tables: Iterable[SurveyedTable]) -> tuple[tuple[str, str], ...]:
    """The promised metrics that no table brings, with the reason."""
    brought = {metric for metric, _ in _series(tables)}
    lacking: dict[str, str] = {}
    for group in groups:
        if group.watch == "process":
            continue
        for metric in group.promised:
            if metric not in brought:
                lacking.setdefault(metric, f"the device has no usable answer for {_asked_for(group, metric)}")
    return tuple(lacking.items())


def _asked_for(group: MetricGroup, metric: str) -> str:
    names = {name for line in group.lines if line.metric == metric for name in line.value.names}
    columns = (*group.columns, *group.scalars, *(join.column for join in group.joins))
    return ", ".join(dict.fromkeys(oid for column in columns if column.name in names for oid in column.oids))
