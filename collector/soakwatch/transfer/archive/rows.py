"""The rows that a run has in an archive: of its targets, its series and its findings."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version

import numpy as np

from soakwatch.core.labels import labels_json
from soakwatch.record import RECORD_NAME, RecordView, SeriesKey
from soakwatch.record.frames import chosen_keys
from soakwatch.runs.catalog import stamp
from soakwatch.runs.release_under_test import release_in
from soakwatch.runs.verification import SealState, Verification
from soakwatch.transfer.archive.tables import Row, Value
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.roles import DUT
from soakwatch_model.sample import PollOutcome, object_labels
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.stats.counted_amounts import restarts, steps
from soakwatch_rules.stats.robust_level import robust_slope
from soakwatch_rules.stats.time_blocks import blocks, how_many
from soakwatch_rules.traits import traits_of

Slopes = Mapping[tuple[str, str, str], tuple[Value, Value]]
"""By target, metric and object of a series: its slope in the whole run, and its unit."""
_DEVICE = "device"
_HOUR_S = 3600.0
_BLOCKS = 48
"""A slope is that of the means of so many blocks."""
_LEAST = 8
"""Readings, below which a slope says nothing."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a run is in an archive. ``key`` stays the same when its record is judged or sealed again."""

    key: str
    run: str
    night: str
    release: str
    roles: Mapping[str, str]
    devices: Mapping[str, str]
    window: Window

    def of(self, target: str) -> Row:
        """The columns of a run and target that all tables begin with."""
        role = self.roles.get(target)
        return self.key, self.run, self.devices.get(target, target), target, role, self.release or None


def facts_of(view: RecordView) -> RunFacts:
    """What a record's run is. Raises RecordError if it holds no poll."""
    window, roles, labels = view.window(), dict(view.roles()), view.labels
    name = view.meta("run") or "run"
    duts = [target for target, role in roles.items() if role == DUT]
    named = labels.get(_DEVICE, "")
    devices = {target: named if named and duts == [target] else target for target in roles}
    folder = view.path.parent.name if view.path.name == RECORD_NAME else view.path.stem
    identity = [folder, name, view.meta("start_ns") or str(window.begin_ns), named, sorted(roles.items())]
    return RunFacts(
        key=sha256(json.dumps(identity).encode()).hexdigest()[:16],
        run=f"{stamp(window.begin_ns)}-{name}",
        night=datetime.fromtimestamp(window.begin_ns // 10**9, UTC).strftime("%Y-%m-%d"),
        release=release_in(view),
        roles=roles,
        devices=devices,
        window=window,
    )


@dataclass(frozen=True, slots=True)
class ReadingsFile:
    """The file of the readings of one target, relative to the archive."""

    path: str
    rows: int
    bytes: int
    sha256: str


def run_rows(
    view: RecordView,
    facts: RunFacts,
    verification: Verification,
    content: str,
    readings: Mapping[str, ReadingsFile],
) -> list[Row]:
    """A row for each target."""
    metas, findings = view.metas(), view.findings(live=False)
    seal = seal_word(verification)
    phases = ", ".join(phase.name for phase in view.phases())
    rows: list[Row] = []
    for target in facts.roles:
        count = Counter(finding.outcome for finding in findings if finding.target == target)
        counts: tuple[Value, ...] = (None,) * 4
        if metas.get("verdict"):
            counts = tuple(count[each] for each in (Outcome.FAIL, Outcome.WARN, Outcome.INCONCLUSIVE, Outcome.PASS))
        file = readings.get(target)
        about = (None,) * 4 if file is None else (file.path, file.rows, file.bytes, file.sha256)
        digest = verification.checked.seal.digest if verification.checked.seal is not None else None
        rows.append(
            (
                *facts.of(target),
                *(metas.get("run"), labels_json(view.labels), phases),
                *(facts.window.begin_ns, facts.window.end_ns, facts.window.seconds / _HOUR_S),
                *(metas.get("verdict") or None, metas.get("reason") or None, *counts, _coverage(view, target)),
                *(seal, verification.checked.words or None, digest, content, str(view.path.absolute())),
                *(version("soakwatch"), metas.get("plan"), *about),
            )
        )
    return rows


def seal_word(verification: Verification) -> str:
    """What is known of the record: signed, sealed, unsealed or changed."""
    if verification.state is SealState.CHANGED:
        return "changed"
    seal = verification.checked.seal
    return "unsealed" if seal is None else "signed" if seal.signature else "sealed"


def _coverage(view: RecordView, target: str) -> float | None:
    shares: list[float] = []
    for source in view.sources():
        if source.required and source.target == target:
            polls = view.poll_outcomes(source.id)
            if polls.due_ns.size:
                shares.append(float(np.mean(polls.outcome == polls.words.index(PollOutcome.OK.value))))
    return min(shares, default=None)


def series_rows(view: RecordView, facts: RunFacts) -> Iterator[Row]:
    """A row for each series, and for each of its phases where the run has several; one series is in memory."""
    phases = view.phases()
    for key in chosen_keys(view):
        series = view.series(key)
        if not len(series):
            continue
        yield _series_row(facts, key, series, "", facts.window)
        if len(phases) > 1:
            for phase in phases:
                part = series.between(phase.window.begin_ns, phase.window.end_ns)
                if len(part):
                    yield _series_row(facts, key, part, phase.name, phase.window)


def _series_row(facts: RunFacts, key: SeriesKey, series: Series, phase: str, window: Window) -> Row:
    good = series.finite()
    about = (key.metric, key.object, object_labels(key.object).get("process"), series.trait.unit, series.trait.kind)
    size = len(good)
    due = None if not series.cadence_s else max(1.0, window.seconds / series.cadence_s)
    coverage = None if due is None else min(1.0, size / due)
    if not size:
        return (*facts.of(key.target), *about, phase, None, None, 0, coverage, *(None,) * 9)
    value = good.values
    mean = deviation = increase = began = per_hour = None
    if series.trait.kind == "counter":
        counted = steps(good)
        known = np.isfinite(counted.count)
        if known.any():
            increase = float(counted.count[known].sum())
            seconds = float(counted.seconds[known].sum())
            per_hour = _finite(increase / seconds * _HOUR_S if seconds > 0 else None)
            began = restarts(good)
    elif series.trait.kind == "gauge":
        with np.errstate(over="ignore", invalid="ignore"):
            mean, deviation = _finite(float(value.mean())), _finite(float(value.std()))
        per_hour = _slope(good)
    return (
        *facts.of(key.target),
        *about,
        phase,
        *(int(good.time_ns[0]), int(good.time_ns[-1]), size, coverage),
        *(float(value[0]), float(value[-1]), float(value.min()), float(value.max()), mean, deviation),
        *(increase, began, per_hour),
    )


def _slope(series: Series) -> float | None:
    """The median slope of the means of equal blocks, in unit an hour."""
    if len(series) < _LEAST:
        return None
    seconds, value = series.seconds, series.values
    with np.errstate(over="ignore", invalid="ignore"):
        if len(series) > 2 * _BLOCKS:
            last_s = float(seconds[-1])
            cut = blocks(seconds, value, begin_s=0.0, end_s=last_s, number=how_many(len(series), _BLOCKS))
            seconds, value = cut.time_s, cut.value
        slope = robust_slope(seconds, value)
    return _finite(None if slope is None else slope * _HOUR_S)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def finding_rows(view: RecordView, facts: RunFacts, slopes: Slopes) -> list[Row]:
    """A row for each finding of the final verdict. ``slopes`` are those of the series, with their units."""
    return [
        (
            *facts.of(f.target),
            *(f.rule, f.outcome.value, f.own_outcome.value, grew(f)),
            *(f.metric, f.object, object_labels(f.object).get("process") if "=" in f.object else None),
            *(f.window.begin_ns, f.window.end_ns, f.samples, _finite(f.coverage)),
            *(_finite(f.measured), _finite(f.limit), f.unit or None, *slopes.get(f.subject, (None, None))),
            *(_finite(f.smallest_detectable), f.detectable_unit or None, f.sentence),
        )
        for f in view.findings(live=False)
    ]


def grew(finding: Finding) -> bool | None:
    """Whether a finding of a rule of growth says that its series grew; None if it is undecided, or of another rule. One
    that only warns for the sake of others (a tenant, a role) grew all the same."""
    if traits_of(finding.rule).growth is None:
        return None
    if finding.outcome is Outcome.FAIL:
        return True
    if finding.outcome is Outcome.WARN:
        return finding.own_outcome is Outcome.FAIL
    return False if finding.outcome is Outcome.PASS else None
