"""The evidence about growth of one run, or of several runs of the same devices together.

Two runs are one stretch where the object lived on from one to the next: a process with the same start time, a machine
with the same boot. Then the level goes on, and five runs of a fifth of a night know what the night would know. Where
it was restarted, or nothing says that it was not, each run has a level of its own and its slope is weighted by what
it knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from soakwatch.judge.cases import CaseBuilder
from soakwatch.judge.decided import Name
from soakwatch.judge.judged_record import JudgeableRecord
from soakwatch.record import SeriesKey
from soakwatch_model.metric_entry import BOOT
from soakwatch_model.metric_queries import telling
from soakwatch_model.roles import DUT
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.growth.sequential import GrowthEvidence, Stretch, growth_evidence, stretches_of
from soakwatch_rules.rule import Rule

_BORN = "process.start_time"
_SAME_S = 60.0  # by which the boot time that a device states may differ
_MOST_GAP = 0.5  # share of both runs and the gap: after a longer one they are stretches of their own
_BOOT_ID, _BOOT_TIME, _UPTIME = telling(BOOT)

Life = tuple[Stretch, Mapping[str, tuple[float, float]]]
"""A stretch, with the first and last reading of what identifies its life."""


def joined_evidence(records: Sequence[JudgeableRecord], rule: Rule) -> dict[Name, GrowthEvidence]:
    """What the runs decide together about the growth of each series of a device; runs in any order."""
    lives: dict[Name, list[Life]] = {}
    for record in sorted(records, key=lambda each: each.window().begin_ns):
        for name, found in _lives_of(record, rule).items():
            lives.setdefault(name, []).extend(found)
    tolerance, horizon_s = getattr(rule, "tolerance", 0.05), getattr(rule, "horizon", 86400.0)
    return {
        name: growth_evidence(_merged(found), float(tolerance), float(horizon_s), len(lives))
        for name, found in lives.items()
    }


def _lives_of(record: JudgeableRecord, rule: Rule) -> dict[Name, list[Life]]:
    builder = CaseBuilder(record)
    found: dict[Name, list[Life]] = {}
    for about in builder.subject_matters(rule):
        if builder.roles.get(about.target) != DUT or not about.keys:
            continue
        case = builder.case(rule, about.target, about.keys, about.window)
        for series in case.series:
            stretches = stretches_of(series, case.window, case.events)
            name = about.target, series.metric, series.object
            found.setdefault(name, []).extend((each, _identity(record, series, each[1])) for each in stretches)
    return found


def _identity(record: JudgeableRecord, series: Series, window: Window) -> dict[str, tuple[float, float]]:
    """The first and last reading of what changes when the object is restarted."""
    if series.metric.startswith("process."):
        keys = [SeriesKey(series.target, _BORN, series.object)]
    else:
        keys = [SeriesKey(series.target, metric, "") for metric in (_BOOT_ID, _BOOT_TIME, _UPTIME)]
    read = {key.metric: record.series(key, window.begin_ns, window.end_ns).finite() for key in keys}
    return {metric: (float(s.values[0]), float(s.values[-1])) for metric, s in read.items() if len(s)}


def _merged(lives: Sequence[Life]) -> list[Stretch]:
    """The stretches, those of one life made one."""
    merged: list[Life] = []
    for life in lives:
        if merged and (together := _together(merged[-1], life)) is not None:
            merged[-1] = together
        else:
            merged.append(life)
    return [stretch for stretch, _ in merged]


def _together(first: Life, then: Life) -> Life | None:
    """Both as one life; None if it is not known that it is one."""
    (one, before), was = first
    (two, after), now = then
    gap_ns = after.begin_ns - before.end_ns
    if gap_ns < 0 or gap_ns > _MOST_GAP * (after.end_ns - before.begin_ns) or not _same(was, now, gap_ns * 1e-9):
        return None
    both = replace(
        one, time_ns=np.concatenate([one.time_ns, two.time_ns]), value=np.concatenate([one.value, two.value])
    )
    identity = {metric: (was.get(metric, ends)[0], ends[1]) for metric, ends in now.items()}
    return (both, Window(before.begin_ns, after.end_ns)), identity


def _same(was: Mapping[str, tuple[float, float]], now: Mapping[str, tuple[float, float]], gap_s: float) -> bool:
    """Whether the object was not restarted between two stretches."""
    for metric in (_BORN, _BOOT_ID):
        if metric in was and metric in now:
            return abs(was[metric][1] - now[metric][0]) < 1.0
    if _BOOT_TIME in was and _BOOT_TIME in now:
        return abs(was[_BOOT_TIME][1] - now[_BOOT_TIME][0]) < _SAME_S
    if _UPTIME in was and _UPTIME in now:
        return abs(now[_UPTIME][0] - was[_UPTIME][1] - gap_s) < _SAME_S + 0.01 * gap_s
    return False
