"""Growth decided while a run goes on: a leak or none, with an error that holds at any time of looking.

Evidence is collected from the begin of the run on, and again from 1, 2, 4, 8 … hours on, so that a warm-up is not held
against what follows it; of these the latest with half of the time behind it counts. Each start has a share of the risk.

A series *leaks* if, from one of the starts on, the e-value of its slope against what ``growth`` allows reaches 8 m /
.005 (m series are looked at, eight starts); its second half alone still grows faster than allowed (95 %), no slower
than .8 of the whole, and than .9 of the first half less one standard error (a warm-up slows down); and, within two
thirds of a day, it rose by more than a daily wave of 2.5 % of the level (of what follows the load: 15 %) lifts it in
that time. It is *still* if the e-value for less than allowed reaches 8 m / .05 and the second half is below it too
(95 %). Else it is open.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from soakwatch_model.event import Event
from soakwatch_model.metric import BY_NAME
from soakwatch_model.series import Floats, Series
from soakwatch_model.window import Window
from soakwatch_rules.rule import Rule
from soakwatch_rules.series_lives import lives
from soakwatch_rules.stats.anytime import NONE, Evidence, evidence, joined
from soakwatch_rules.stats.ar1 import Slope, slope
from soakwatch_rules.stats.daily import DAY_S
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.time_blocks import MIN_SAMPLES, blocks, how_many
from soakwatch_rules.stats.tolerance import Tolerance
from soakwatch_rules.traits import GrowthMethod, traits_of

RISK_FAIL: Final = 0.005
"""Probability that a run without growth is ever called one that leaks, over all its series and looks."""
RISK_PASS: Final = 0.05
"""Probability that a series that grows faster than allowed is ever called still."""
_BLOCKS: Final = 48
_KEPT: Final = 0.8  # share of the slope of the whole that the second half must keep
_STEADY: Final = 0.9  # the same, of the slope of the first half
_PART_OF_A_DAY: Final = 0.65  # share of a day: a longer run sees a wave turn
_WAVE, _WAVE_OF_LOAD = 0.025, 0.15  # amplitudes of daily waves, as shares of the level
_LATE: Final = 0.05  # risk of the bounds of the second half
_MISSING: Final = 0.5


_STARTS: Final = 8  # of the evidence: the begin of the run, and seven later ones
_FIRST_S: Final = 3600.0  # the first later start


class Course(StrEnum):
    """What is decided of a series."""

    LEAKS = "leaks"
    STILL = "still"
    OPEN = "open"


_RANKS: Final = {Course.OPEN: 0, Course.STILL: 1, Course.LEAKS: 2}


@dataclass(frozen=True, slots=True)
class GrowthEvidence:
    """One series: what was decided, its slope and what is allowed (per second, growth is upwards), the evidence, and
    for how many seconds it was watched."""

    course: Course
    slope: float = 0.0
    allowed: float = 0.0
    evidence: Evidence = NONE
    watched_s: float = 0.0


Stretch = tuple[Series, Window]
"""Readings without a restart, and the time that they cover."""


def growth_rule(rules: Iterable[Rule]) -> Rule | None:
    """The rule that judges growth by its shape, if it is among these."""
    return next((rule for rule in rules if traits_of(rule.name).growth is GrowthMethod.SHAPE), None)


def stretches_of(series: Series, window: Window, events: Iterable[Event]) -> tuple[Stretch, ...]:
    """The lives of a series in a window, each with enough readings."""
    found = lives(series.between(window.begin_ns, window.end_ns).finite(), window, events)
    return tuple((life.series, life.window) for life in found if len(life.series) >= MIN_SAMPLES)


def growth_evidence(stretches: Sequence[Stretch], tolerance: float, horizon_s: float, family: int) -> GrowthEvidence:
    """What the stretches of one series decide together; ``family`` series are looked at in the run."""
    if not stretches:
        return GrowthEvidence(Course.OPEN)
    trait, watched_s = stretches[-1][0].trait, sum(window.seconds for _, window in stretches)
    sign = -1.0 if trait.growth == "down" else 1.0
    level = median(np.concatenate([series.values for series, _ in stretches]))
    allowed = Tolerance(tolerance, horizon_s, trait.floor).per_second(level, watched_s)
    if all(float(np.ptp(series.values)) == 0 for series, _ in stretches):
        hidden = (trait.quantum or 0.0) / watched_s
        sure = Evidence(-math.inf, math.inf) if hidden <= allowed * (1 + 1e-9) else NONE
        return GrowthEvidence(Course.STILL if sure.below > 0 else Course.OPEN, 0.0, allowed, sure, watched_s)
    with np.errstate(all="ignore"):
        found = [_since(part, sign, allowed, family, level) for part in _starts(stretches)]
    return max(found, key=lambda each: (_RANKS[each.course], max(each.evidence.above, each.evidence.below)))


def needed(risk: float, family: int) -> float:
    """The e-value that is needed at this risk of a run in which so many series are looked at.

    >>> round(needed(RISK_FAIL, 10))
    16000
    """
    return _STARTS * max(family, 1) / risk


def _starts(stretches: Sequence[Stretch]) -> Iterator[Sequence[Stretch]]:
    """All of it; and what came after the latest of the later starts that has half of the time behind it."""
    yield stretches
    series, window = stretches[-1]
    starts = [_FIRST_S * 2**n for n in range(_STARTS - 1) if _FIRST_S * 2 ** (n + 1) <= window.seconds]
    if starts:
        later = Window(window.begin_ns + round(starts[-1] * 1e9), window.end_ns)
        rest = series.between(later.begin_ns, later.end_ns)
        if len(rest) >= MIN_SAMPLES:
            yield ((rest, later),)


def _since(stretches: Sequence[Stretch], sign: float, allowed: float, family: int, level: float) -> GrowthEvidence:
    """What is decided by the stretches from one start on."""
    watched_s = sum(window.seconds for _, window in stretches)
    known = [each for each in (_cut(*stretch, sign) for stretch in stretches) if each is not None]
    if not known or not allowed > 0:
        return GrowthEvidence(Course.OPEN, allowed=allowed, watched_s=watched_s)
    whole = joined(slope(*each) for each in known)
    early = joined(_part(*each, slice(each[1].size // 2)) for each in known)
    late = joined(_part(*each, slice(each[1].size // 2, None)) for each in known)
    found = evidence(whole, allowed, allowed)
    course = Course.OPEN
    if found.above >= math.log(needed(RISK_FAIL, family)):
        goes_on = late.low(_LATE) > allowed and _goes_on(early, late, whole)
        rose = whole.slope * watched_s > _wave_lift(stretches[-1][0].metric, level, watched_s)
        course = Course.LEAKS if goes_on and rose else Course.OPEN
    elif found.below >= math.log(needed(RISK_PASS, family)) and late.high(_LATE) < allowed:
        course = Course.STILL
    return GrowthEvidence(course, whole.slope, allowed, found, watched_s)


def _cut(series: Series, window: Window, sign: float) -> tuple[Floats, Floats] | None:
    """The means of blocks; None where most are missing."""
    begin_s = (window.begin_ns - int(series.time_ns[0])) * 1e-9
    made = blocks(
        series.seconds,
        sign * series.values,
        begin_s=begin_s,
        end_s=begin_s + window.seconds,
        number=how_many(len(series), _BLOCKS),
    )
    return None if made.missing > _MISSING or len(made) < MIN_SAMPLES else (made.time_s, made.value)


def _part(time_s: Floats, value: Floats, which: slice) -> Slope:
    return slope(time_s[which], value[which])


def _goes_on(early: Slope, late: Slope, whole: Slope) -> bool:
    """Whether the second half shows no sign of slowing down."""
    error = math.hypot(early.error, late.error)
    return late.slope >= _KEPT * whole.slope and late.slope >= _STEADY * early.slope - error


def _wave_lift(metric: str, level: float, watched_s: float) -> float:
    """How much half a daily wave can lift a level in so short a time; 0 in a time that sees it turn."""
    if watched_s >= _PART_OF_A_DAY * DAY_S:
        return 0.0
    entry = BY_NAME.get(metric)
    tall = _WAVE_OF_LOAD if entry is not None and entry.by_load else _WAVE
    return 2 * tall * abs(level) * math.sin(min(math.pi * watched_s / DAY_S, math.pi / 2))
