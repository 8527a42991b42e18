"""Why an object that a recording holds made no sample of what is expected: never asked, asked and filtered, or refused.

What a poll asks is what the groups of its profile name; the trace of the agent does not tell it, for a walk reads a
little beyond its column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from soakwatch.sources.profiles import Profile
from soakwatch.sources.profiles.profile_model import MetricGroup, TableColumn


@dataclass(frozen=True, slots=True)
class Trail:
    """What a poll knows of its way: the profile, the groups that brought a series, and faults by OID."""

    profile: Profile | None = None
    brought: frozenset[str] = frozenset()  # names of groups
    used: Mapping[str, str] = field(default_factory=dict)  # OID -> a series that it is part of
    refused: Mapping[str, str] = field(default_factory=dict)  # OID -> what the fault says


def reason(oid: str, trail: Trail, recorded: Iterable[str]) -> str:
    """Why a recorded object made nothing of what is expected, in a sentence about it."""
    if trail.profile is None:
        return f"{oid} was never asked: no profile was chosen"
    if oid in trail.refused:
        return f"{oid} was asked and refused: {trail.refused[oid]}"
    if oid in trail.used:
        return f"{oid} was asked, and is part of {trail.used[oid]}"
    naming = [(group, column, base) for group in trail.profile.groups for column, base in _names(group, oid)]
    if not naming:
        return f"{oid} was never asked: no group of profile {trail.profile.name} names it"
    present = frozenset(recorded)
    return f"{oid} {'; '.join(dict.fromkeys(_of_group(oid, *each, trail, present) for each in naming[:2]))}"


def _names(group: MetricGroup, oid: str) -> list[tuple[TableColumn, str]]:
    """The columns and scalars of a group that read an object, with the OID that they have for it."""
    below = [*group.columns, *(join.column for join in group.joins)]
    found = [(column, base) for column in below for base in column.oids if oid.startswith(f"{base}.")]
    return found + [(scalar, oid) for scalar in group.scalars if oid in scalar.oids]


def _of_group(
    oid: str, group: MetricGroup, column: TableColumn, base: str, trail: Trail, present: frozenset[str]
) -> str:
    if group.watch == "process":
        return f"was never asked: group {group.name} is asked only where a process is watched"
    before = [name for name in group.unless if name in trail.brought]
    if before:
        return f"was never asked: group {group.name} stands back for {', '.join(before)}"
    index = oid.removeprefix(base)
    for other in column.oids:
        if other != base and f"{other}{index}" in trail.used:
            return f"was asked and filtered: group {group.name} reads {other}{index} in its place"
    lacking = [
        other.name
        for other in (*group.columns, *group.scalars)
        if other.name in _needed_with(group, column.name)
        and not any(f"{each}{'' if other in group.scalars else index}" in present for each in other.oids)
    ]
    if lacking:
        return f"was asked and filtered: {', '.join(lacking)} of group {group.name} has no value beside it"
    if group.where or group.where_not:
        names = ", ".join(dict.fromkeys(condition.name for condition in (*group.where, *group.where_not)))
        return f"was asked and filtered: its row is not one that group {group.name} keeps (by {names})"
    if _needed_with(group, column.name):
        return f"was asked and filtered: another group brings the series of group {group.name}"
    return f"was asked and filtered: group {group.name} reads it as {column.name}, which is no value of a metric"


def _needed_with(group: MetricGroup, name: str) -> set[str]:
    """All names of the lines that read a name, but for those that may be absent; empty if it is in no line."""
    lines = [line for line in group.lines if name in line.value.names]
    plain = [set(line.value.names) for line in lines if not line.value.firsts]
    return min(plain, key=len) if plain else {name for _ in lines}
