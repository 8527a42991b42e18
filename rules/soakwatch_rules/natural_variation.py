"""How far a series moved by itself before a stress, compared with the residue after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from soakwatch_model.finding import InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_rules.episodes import Episode
from soakwatch_rules.stats.return_to_level import MIN_WINDOW, Reference, Return
from soakwatch_rules.wording.quantities import duration, plus_minus, quantity

_OWN = 1.5  # times the range of means before the stress: few means underestimate the movement behind them


@dataclass(frozen=True, slots=True)
class JudgedEpisode:
    """The result of one episode; ``seconds`` is the time to recover (None: it did not, or unknown). ``kept``: a failure
    that only warns, since memory may keep that much after one episode."""

    episode: Episode
    outcome: Outcome
    reason: str
    why: InconclusiveReason | None = None
    settle: str = ""
    before: Reference | None = None
    band: float = 0.0
    back: Return | None = None
    seconds: float | None = None
    window_s: float = 0.0
    limit_s: float = 0.0
    caveat: str = ""
    kept: bool = False

    def undecided(self, reason: str, why: InconclusiveReason, settle: str) -> JudgedEpisode:
        """This result as inconclusive, with what would decide it."""
        return replace(self, outcome=Outcome.INCONCLUSIVE, reason=reason, why=why, settle=settle)


def weighed_against_history(
    judged: JudgedEpisode, series: Series, so_far: Sequence[Episode], before: Reference
) -> JudgedEpisode:
    """The result of the last episode, softened if the residue is no larger than the series' own movement before.

    A daily wave, a cache that fills and a sawtooth leave residues after everything, even after a stress without effect.
    A residue within that movement is no fault of the stress, and noise of that size passes.
    """
    back, episode = judged.back, so_far[-1]
    if (
        back is None
        or judged.outcome in {Outcome.PASS, Outcome.WARN}
        or judged.why not in {None, InconclusiveReason.NOISE}
    ):
        return judged
    own = max(before.sd, _OWN * _moved(series, episode))
    residue, unit = abs(back.residue), series.trait.unit
    if judged.outcome is Outcome.FAIL and judged.seconds is None:
        moved = _moved_in_the_calm(series, so_far, before.mean)
        if moved * back.residue > 0 and abs(moved) >= residue / 2 and abs(back.residue - moved) <= judged.band:
            reason = f"{judged.reason}, but {quantity(moved, unit)} of it came before the {episode.name} started"
            return replace(judged, outcome=Outcome.WARN, reason=reason)
    if judged.outcome is Outcome.FAIL and (residue > own or judged.seconds is not None):
        return judged
    if judged.outcome is Outcome.FAIL:
        reason = f"{judged.reason}, but it already varied by {quantity(own, unit)} before the {episode.name}"
        return replace(judged, outcome=Outcome.WARN, reason=reason)
    if residue > own:
        return judged
    rest = plus_minus(back.residue, back.residue_half, unit)
    reason = f"off by {rest} after the {episode.name}, no more than the {quantity(own, unit)} by which it varied before"
    caveat = f"a residue below {quantity(residue + back.residue_half, unit)} would not be detected in the noise"
    return replace(judged, outcome=Outcome.PASS, reason=reason, why=None, settle="", caveat=judged.caveat or caveat)


def memory_kept(judged: JudgedEpisode, series: Series, share: float) -> JudgedEpisode:
    """A failure of memory as a warning if the residue is at most ``share`` of the level before, because allocators and
    caches keep some of what a stress took. A leak shows as growth, or as more from stress to stress."""
    back, before = judged.back, judged.before
    if judged.outcome is not Outcome.FAIL or judged.seconds is not None or back is None or before is None:
        return judged
    if ".memory." not in series.metric or abs(back.residue) > share * abs(before.mean):
        return judged
    by = f"{100 * back.residue / abs(before.mean):+.1f} %"
    reason = f"{judged.reason} ({by}): memory may keep up to {100 * share:g} % after one {judged.episode.name}"
    return replace(judged, outcome=Outcome.WARN, reason=reason, kept=True)


def _moved_in_the_calm(series: Series, so_far: Sequence[Episode], level: float) -> float:
    """How far the series stood, just before the last episode, from ``level``, or, after an earlier episode, from its
    level a third into the time after that one; residues of earlier stresses do not count as its own movement."""
    *earlier, episode = so_far
    near = series.between(0, episode.stress.begin_ns).values[-MIN_WINDOW:]
    for other in earlier[-1:]:
        since_ns = other.stress.end_ns + (other.after.end_ns - other.after.begin_ns) // 3
        left = series.between(since_ns, episode.stress.begin_ns).values[:MIN_WINDOW]
        level = float(left.mean()) if left.size else level
    return float(near.mean()) - level if near.size else 0.0


def without_level(
    series: Series, episode: Episode, after: Series, band: Callable[[float], float]
) -> JudgedEpisode | None:
    """The result for a series without a level before; None if it moved neither within its own range nor far beyond.

    ``band`` gives the tolerance around a level.
    """
    calm = episode.before[0]
    before = series.between(calm.begin_ns, calm.end_ns)
    own = _OWN * _moved(series, episode)
    if not len(before) or not len(after) or own <= 0:
        return None
    level, unit = float(before.values.mean()), series.trait.unit
    residue = float(after.values.mean()) - level
    moved = f"{quantity(own, unit)} by which it varied before"
    if abs(residue) <= own:
        away = f"off by {quantity(residue, unit)} after the {episode.name}"
        return JudgedEpisode(episode, Outcome.PASS, f"{away}, no more than the {moved}")
    worse = residue > 0 if series.trait.growth != "down" else residue < 0
    if worse and abs(residue) > max(2 * own, band(level)):
        reason = f"did not recover in {duration(episode.after.seconds)}: off by {quantity(residue, unit)}"
        return JudgedEpisode(episode, Outcome.FAIL, f"{reason}, more than twice the {moved}")
    return None


def _moved(series: Series, episode: Episode) -> float:
    """The range, before the stress, of means over stretches of an eighth of the calm or of the time after (the shorter;
    at least 30 readings), without the first tenth of the readings."""
    if not episode.before:
        return 0.0
    early = series.between(0, episode.before[0].end_ns)
    history = early.values[len(early) // 10 :]
    whole_s = (int(early.time_ns[-1]) - int(early.time_ns[0])) * 1e-9 if len(early) > 1 else 0.0
    share = min(episode.before[0].seconds, episode.after.seconds) / max(whole_s, 1e-9)
    size = max(MIN_WINDOW, round(len(early) * share / 8))
    if history.size < 2 * size:
        size = history.size // 2
    if size < MIN_WINDOW // 2:
        return 0.0
    total = np.concatenate([[0.0], np.cumsum(history - history[0])])
    means = (total[size:] - total[:-size])[:: max(1, size // 8)] / size
    return float(means.max() - means.min())
