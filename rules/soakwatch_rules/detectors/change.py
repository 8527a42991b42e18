"""Change: a link goes down, a card restarts, a port falls silent, a rate becomes many times as high"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.fact import Happened
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, Outcome
from soakwatch_model.label import label
from soakwatch_model.metric import BY_NAME
from soakwatch_model.metric_entry import COUNTS, FALLS, GOES_OFF, STOPS, SURGES, WARNS, Sign
from soakwatch_model.metric_queries import changing, why_mild
from soakwatch_model.series import Floats, Mask, Series
from soakwatch_model.window import Window
from soakwatch_rules.events.excuses import excuse
from soakwatch_rules.finding_draft import draft, each_series, half_unread
from soakwatch_rules.latency.latency_blocks import judged_blocks, usual_blocks
from soakwatch_rules.load.load_account import LoadAccount
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import Input, RuleSpec
from soakwatch_rules.sampling import cadence, unseen
from soakwatch_rules.spans import overlap_s
from soakwatch_rules.stats.hysteresis import stretches
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.stretched import PacedBlocks, block_length, paced_blocks, runs_of
from soakwatch_rules.traits import Guide, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, duration, first_few, moment, quantity
from soakwatch_rules.wording.series_names import name_of, thing_of

_WRAP_S: Final = 2**32 / 100  # TimeTicks are hundredths of a second in 32 bits
_NEAR_WRAP: Final = 0.02  # share of the wrap: an age this close to it may wrap
_MAX_MARKS: Final = 50
_LEAST_BLOCKS: Final = 12
_SILENT: Final = 0.01  # share of the usual pace: a silent port still sends keepalives
_BUSY: Final = 0.1  # share of the usual pace: above it a block carried traffic
_ALWAYS: Final = 0.95  # share of the earlier blocks with traffic in a port that "carries traffic all the time"
_OFTEN: Final = 3  # silences of one port: with more, its traffic comes and goes by itself
_LONGER: Final = 4.0  # a port must have carried traffic this many times as long as it is silent ...
_EARLY: Final = 0.25  # ... or for this share of the run
_CARRIES: Final = 1.0  # per second: below it a port carries only keepalives
_GOES_ON: Final = 0.5  # share of its former level above which the load counts as going on
_MORE_LOAD: Final = 1.1  # times the highest load of the usual blocks: above it the load explains a surge
_COUNTED: Final = 10.0  # counts in a block: fewer are single events, not a rate
_LEAST_OF: Final = {"s": 1e-4, "1": 1e-3}
"""By unit, the level below which a gauge is negligible (a jitter of 100 µs, a loss of 0.1 %)."""
_HIGH: Final = 0.95  # quantile of the usual blocks that is the highest usual level
_WARN_BLOCKS: Final = 3


@dataclass(frozen=True, slots=True)
class _Fault:
    """One change: when, its words in the finding, what excuses it (empty: nothing), and whether it alone fails."""

    begin_ns: int
    end_ns: int | None
    text: str
    excused: str = ""
    grave: bool = True
    lasts_s: float = 0.0  # duration of a surge; 0 for other kinds of change


@dataclass(frozen=True, slots=True)
class Change(Parameters):
    """Fails if something that no other rule watches changed for the worse and stayed so. The catalogue says for each
    metric which kind of change counts (``soakwatch metrics NAME``) and whether it fails or only warns:

    * A switch goes off (a link down, a file system remounted read-only) after it was on: for ``down``, or ``flaps``
      times. What was never on, or was shut by the administrator, is not in use and not judged.
    * An age falls (a card or an agent restarted; each restart counts), or a speed falls for two readings. A wrap of
      TimeTicks (497 days) does not count.
    * A service manager counts restarts: ``restarts`` or more fail, fewer warn.
    * Traffic stops: a port or flow that carried more than 1/s in 95 % of its earlier blocks (over a quarter of the run,
      or four times the silence) carries at most 1 % of that for ``silent`` while at least half of the load goes on. It
      only warns if the load is unknown, or if this happens more than three times.
    * A rate or level rises to ``factor`` times the highest usual level (95 % quantile of the baseline phase, else of
      the first quarter): for ``share`` of the judged time, all surges of three blocks or more together, or for
      ``ending`` of it up to the end; shorter surges warn. Blocks last 5 min and hold three readings; a run has at most
      288. The usual level is at least ten counts a block, 0.1 ms of jitter or 0.1 % of loss. A surge only warns if the
      load was higher than in every usual block, since retransmissions grow faster than the load, or is unknown.

    Changes within ten minutes of an intervention, inside an announced event, or at a reboot are excused and listed.
    Stopped traffic and surges are not judged during overloads, ramps, and the return from an overload.

    How often wrong: no test against noise is made, so many series do not add false alarms by chance; each change is a
    state that the device reports, or tenfold the highest of a quarter of the run for a tenth of it. `soakwatch rules
    change` shows the measured table. Known weaknesses: it does not see a link that is down only between two readings, a
    rate that was tenfold from the start, or bursty ports; it blames traffic that moved to another port in a failover
    that nobody recorded.

    Neighbours: ``session_flap`` judges sessions, ``process_restart`` watched processes, ``reboot`` the device,
    ``drops`` its drop counters, ``loss`` the load as a whole, ``latency`` answers, ``step_change`` levels, ``trend``
    slow changes.

    Parameters: ``down``, ``flaps``, ``restarts``, ``silent``, ``factor``, ``share``, ``ending`` (below).

    >>> import numpy as np
    >>> from soakwatch_model.case import Case
    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import readings
    >>> up = np.where((np.arange(1440) > 700) & (np.arange(1440) < 820), 0.0, 1.0)
    >>> series = readings("system.network.up", up, 60.0, object="interface=eth1")
    >>> finding = Change().judge(Case("dut", series.object, Window(0, 86400 * 10**9), (series,)))[0]
    >>> finding.outcome.value, finding.reason
    ('fail', 'eth1 was down once: 1970-01-01 11:41:00 UTC for 1 h 59 min')

    References: RFC 2863 (ifOperStatus), RFC 3418 and RFC 2579 (sysUpTime, TimeTicks), systemd.service(5) (NRestarts);
    V. Barnett, T. Lewis, Outliers in statistical data, 1994 (quantiles as a reference that outliers do not move).
    """

    name: ClassVar[str] = "change"
    version: ClassVar[int] = 2
    summary: ClassVar[str] = "a link, card, service, port or rate changed for the worse"
    metrics: ClassVar[tuple[str, ...]] = changing()
    scope: ClassVar[Literal["object", "metric", "target"]] = "metric"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec(
        "two readings of a state; 12 blocks of 5 min (three readings) of traffic or of a rate",
        shortest_s=3600.0,
        live="end",
        inputs=frozenset({Input.SHUT_PORTS}),
    )

    order: ClassVar[tuple[str, ...]] = ("ending <= share",)
    down: float = parameter(60.0, "s", "how long a link may be down", "a link that is trained anew takes seconds")
    flaps: float = parameter(
        3.0, "{time}", "times down from which it fails however short", "once may be a cable", within="[1, inf)"
    )
    restarts: float = parameter(
        3.0, "{restart}", "restarts by a service manager that fail; fewer warn", "a crash loop", within="[1, inf)"
    )
    silent: float = parameter(
        1800.0, "s", "how long a port that carries traffic may be silent", "no rehash takes that", within="(0, inf)"
    )
    factor: float = parameter(
        10.0, "1", "how many times the usual a rate may be", "no daily cycle is tenfold", within="(1, inf)"
    )
    share: float = parameter(
        0.1, "1", "share of the judged time for which it may be more", "a job of 2 h a day", within="(0, 1)"
    )
    ending: float = parameter(
        0.05, "1", "the same if it lasts to the end of the run", "an hour of a day", within="(0, 1)"
    )

    def definition(self) -> str:
        return (
            f"fails: a link that was up and is down for {duration(self.down)} or {self.flaps:g} times; a card that "
            f"starts anew; {self.restarts:g} restarts by a service manager; traffic that stops for "
            f"{duration(self.silent)} while the load goes on; a rate or level above {self.factor:g} times the highest "
            f"usual one for {100 * self.share:g} % of the judged time in all ({100 * self.ending:g} % if it lasts to "
            "the end) at no higher load; announced changes are excused, and some metrics only warn"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a series."""
        return each_series(self, case, "state, port or rate that may change", self._of)

    def _of(self, case: Case, series: Series) -> Finding:
        entry = BY_NAME.get(series.metric)
        sign = entry.change if entry is not None and entry.change is not None else Sign(SURGES)
        series = series.between(case.window.begin_ns, case.window.end_ns).finite()
        finding = draft(self, case, series)
        with np.errstate(all="ignore"):
            if sign.how in {STOPS, SURGES}:
                return self._of_blocks(case, finding, series, sign)
            hidden = unseen(series.time_ns, case.window)
            judged = _OF_STATES[sign.how](self, case, series)
        if hidden and not judged:
            few = InconclusiveReason.TOO_FEW if len(series) < 2 else InconclusiveReason.GAP
            return finding.undecided(hidden, few, "needs samples from start to end of the run")
        calm = f"did not go {sign.off}" if sign.how == GOES_OFF else _CALM[sign.how]
        if sign.how == GOES_OFF and not bool(np.any(series.values > 0.5)):
            calm = "was never in use" if sign.off == "down" else f"was {sign.off} all the time"
        return self._said(finding, series, sign, judged, f"{_name(series)} {calm}")

    def gone_off(self, case: Case, series: Series) -> list[_Fault]:
        """Each time the switch went off after it had been on."""
        on, times = series.values > 0.5, series.time_ns
        if not on.any():
            return []
        first = int(np.argmax(on))
        found = []
        slack_ns = _slack(series)
        shut = case.facts.shut.get(label(series.object, "interface") or "", ())
        for begin, end in stretches((~on[first:]).astype(np.float64), 1.0, 1.0).tolist():
            begin_ns = int(times[first + begin])
            end_ns = int(times[first + end]) if first + end < times.size else None
            last_ns = end_ns or int(times[-1])
            down = Window(begin_ns, max(last_ns, begin_ns + 1))
            text = f"{moment(begin_ns)} {'to the end' if end_ns is None else f'for {duration(down.seconds)}'}"
            excused = excuse(case.events, series, begin_ns, slack_ns)
            if overlap_s(down, shut) > 0.5 * down.seconds:
                excused = "it was shut"
            grave = (int(times[first + end - 1]) - begin_ns) * 1e-9 >= self.down - 1e-9 and end - begin > 1
            found.append(_Fault(begin_ns, end_ns, text, excused, grave))
        open_ = [fault for fault in found if not fault.excused]
        if len(open_) >= self.flaps:
            found = [replace(fault, grave=True) for fault in found]
        return found

    def fallen(self, case: Case, series: Series) -> list[_Fault]:
        """Each time the age started again from zero, or the speed fell for two readings."""
        value, times = series.values, series.time_ns
        age = series.trait.unit == "s"
        apart = np.diff(times) * 1e-9
        slack_s = np.maximum(5.0, 0.1 * apart)
        fell = np.flatnonzero(value[1:] < value[:-1] - (slack_s if age else 0.0)) + 1
        found = []
        for index in fell.tolist():
            before, after, gap_s = float(value[index - 1]), float(value[index]), float(apart[index - 1])
            time_ns = int(times[index])
            # An age near 2**32 hundredths of a second that lands where the wrap would put it has only wrapped.
            if age and before > (1 - _NEAR_WRAP) * _WRAP_S and abs(before + gap_s - _WRAP_S - after) < 60 + 0.1 * gap_s:
                continue
            lasts = index + 1 >= value.size or value[index + 1] < before
            if not age and not (after > 0 and lasts):
                continue
            if age:
                time_ns = max(int(times[index - 1]), time_ns - round(min(after, gap_s) * 1e9))
            unit = series.trait.unit
            text = f"{moment(time_ns)} ({quantity(before, unit)} to {quantity(after, unit)})"
            excused = excuse(case.events, series, time_ns, _slack(series))
            # After a true restart the age is at most the time since the previous reading; a larger one only warns.
            found.append(_Fault(time_ns, None, text, excused, not age or after <= gap_s + float(slack_s[index - 1])))
        return found

    def counts(self, case: Case, series: Series) -> list[_Fault]:
        """Each increase of the counter, one fault per count (at most 1000 a reading)."""
        steps = series.increments() if series.trait.kind == "counter" else _steps(series)
        found = []
        for index in np.flatnonzero(steps.values > 0.5).tolist():
            time_ns, number = int(steps.time_ns[index]), round(float(steps.values[index]))
            text = moment(time_ns) + (f" ({number})" if number > 1 else "")
            excused = excuse(case.events, series, time_ns, _slack(series))
            found += [_Fault(time_ns, None, text, excused, grave=False)] * min(number, 1000)
        grave = sum(not fault.excused for fault in found) >= self.restarts
        return [replace(fault, grave=grave) for fault in found]

    def _of_blocks(self, case: Case, finding: Finding, series: Series, sign: Sign) -> Finding:
        apart = cadence(series)
        if apart is None:
            return _too_few(finding, f"{counted(len(series), 'sample')}: too few to know what is usual")
        cut = paced_blocks(
            series, case.window.begin_ns, case.window.end_ns, block_length(case.window.seconds, apart, 300.0)
        )
        edges = np.append(cut.begins_ns, cut.begin_ns + cut.block_ns * cut.value.size)
        known = np.isfinite(cut.value) & judged_blocks(case, series, edges)
        usual, _ = usual_blocks(case, edges, known)
        if int(known.sum()) < _LEAST_BLOCKS:
            read = counted(int(known.sum()), "block")
            return _too_few(finding, f"{read} of {duration(cut.block_s)} with samples, {_LEAST_BLOCKS} needed")
        if unread := half_unread(finding, len(series)):
            return unread
        find = self.stopped if sign.how == STOPS else self.surged
        faults, limit, calm = find(case, series, cut, known, usual)
        counter = series.trait.kind == "counter"
        unit = f"{series.trait.unit}/s" if counter else series.trait.unit
        high = float(np.max(cut.value[known]))
        finding = replace(finding, unit=unit, limit=limit, measured=high if sign.how == SURGES else None)
        return self._said(finding, series, sign, faults, f"{_name(series)} {calm}")

    def stopped(
        self, case: Case, series: Series, cut: PacedBlocks, known: Mask, usual: Mask
    ) -> tuple[list[_Fault], float | None, str]:
        """Each time that a port or flow which always carried traffic fell silent."""
        pace = median(cut.value[usual]) if usual.any() else 0.0
        if pace < _CARRIES:
            return [], None, "carried next to nothing when the run began: nothing that could stop"
        silent = cut.value <= _SILENT * pace
        found: list[_Fault] = []
        calm = f"never stopped for {duration(self.silent)}"
        if not bool((silent & known).any()):
            return found, _SILENT * pace, calm
        load = _load_of(case, cut)
        shut = case.facts.shut.get(label(series.object, "interface") or "", ())
        silences = runs_of(-cut.value, known, -_SILENT * pace, -2 * _SILENT * pace)
        silences = [(begin, end) for begin, end in silences if (end - begin) * cut.block_s >= self.silent]
        for begin, end in silences:
            before = known[:begin] & ~silent[:begin]
            busy = cut.value[:begin][known[:begin]] > _BUSY * pace
            stretch = Window(int(cut.begins_ns[begin]), int(cut.begins_ns[end - 1]) + cut.block_ns)
            since = min(_LONGER * (end - begin), _EARLY * cut.value.size)
            if int(before.sum()) < since or float(busy.mean()) < _ALWAYS:
                continue
            now = load[begin:end][np.isfinite(load[begin:end])]
            then = load[:begin][before & np.isfinite(load[:begin])]
            goes_on = bool(now.size and then.size and median(now) >= _GOES_ON * median(then))
            if now.size and not goes_on:
                continue  # the load stopped, not the port
            ends = end >= cut.value.size
            how_long = _how_long(stretch, to_end=ends)
            rate = quantity(pace, f"{series.trait.unit.removesuffix('/s')}/s")
            text = f"{how_long}, after {rate}" + ("" if goes_on else "; the load is not known")
            excused = excuse(case.events, series, stretch.begin_ns, cut.block_ns)
            if overlap_s(stretch, shut) > 0.5 * stretch.seconds:
                excused = "it was shut"
            found.append(_Fault(stretch.begin_ns, None if ends else stretch.end_ns, text, excused, goes_on))
        if len(silences) > _OFTEN:  # its traffic comes and goes by itself: only warn
            found = [replace(fault, grave=False) for fault in found]
        return found, _SILENT * pace, calm

    def surged(
        self, case: Case, series: Series, cut: PacedBlocks, known: Mask, usual: Mask
    ) -> tuple[list[_Fault], float | None, str]:
        """Each time that a rate or level rose to ``factor`` times its highest usual level."""
        counter = series.trait.kind == "counter"
        least = _COUNTED / cut.block_s if counter else _LEAST_OF.get(series.trait.unit, 0.0)
        high = max(float(np.quantile(cut.value[usual], _HIGH)), least) if usual.any() else least
        limit, judged = self.factor * high, int(known.sum())
        found: list[_Fault] = []
        unexplained: list[_Fault] = []
        calm = f"never was {self.factor:g} times what is usual for {_WARN_BLOCKS} blocks"
        if int((known & (cut.value > limit)).sum()) < _WARN_BLOCKS:
            return found, limit, calm
        load = _load_of(case, cut)
        known_load = load[usual & np.isfinite(load)]
        for begin, end in runs_of(cut.value, known, limit, limit / 2):
            blocks = int(known[begin:end].sum())
            to_end = not bool(known[end:].any())
            stretch = Window(int(cut.begins_ns[begin]), int(cut.begins_ns[end - 1]) + cut.block_ns)
            if blocks < _WARN_BLOCKS:
                continue
            now = load[begin:end][np.isfinite(load[begin:end])]
            more = bool(now.size and known_load.size and median(now) > _MORE_LOAD * known_load.max())
            value = median(cut.value[begin:end][known[begin:end]])
            unit = f"{series.trait.unit}/s" if counter else series.trait.unit
            how_long = _how_long(stretch, to_end=to_end)
            times = f"{value / high:.0f} times the usual {quantity(high, unit)}"
            text = f"{quantity(value, unit)} {how_long}, {times}"
            text += "; the load was higher than before" if more else "" if now.size else "; the load is not known"
            long = blocks >= (self.ending if to_end else self.share) * judged
            grave = long and bool(now.size) and not more
            excused = excuse(case.events, series, stretch.begin_ns, cut.block_ns)
            ends_ns = None if to_end else stretch.end_ns
            fault = _Fault(stretch.begin_ns, ends_ns, text, excused, grave, blocks * cut.block_s)
            found.append(fault)
            if now.size and not more and not excused:
                unexplained.append(fault)
        # A rate of few counts drops below the limit for single blocks, so the total duration of all surges counts.
        if sum(fault.lasts_s for fault in unexplained) >= self.share * judged * cut.block_s:
            found = [replace(fault, grave=fault.grave or fault in unexplained) for fault in found]
        return found, limit, calm

    def _said(self, finding: Finding, series: Series, sign: Sign, faults: Sequence[_Fault], calm: str) -> Finding:
        """The finding of a series; its reason is ``calm`` where nothing changed."""
        own = [fault for fault in faults if not fault.excused]
        planned = [fault for fault in faults if fault.excused]
        what = f"was {sign.off}" if sign.how == GOES_OFF else _WHAT[sign.how]
        marks = tuple(Mark(f.begin_ns, f.end_ns, f"{_name(series)} {what}", planned=bool(f.excused)) for f in faults)
        numbers = {"changes": float(len(own)), "excused": float(len(planned))}
        finding = replace(finding, marks=marks[:_MAX_MARKS], numbers=numbers)
        if sign.how not in {STOPS, SURGES}:
            limit = self.restarts - 1 if sign.how == COUNTS else 0.0
            finding = replace(finding, measured=float(len(own)), limit=limit, unit="{change}")
        excused = f"{counted(len(planned), 'change')} excused ({first_few([f.excused for f in planned])})"
        if not own:
            reason = f"{calm}; {excused}" if planned else calm
            return finding.passes(reason)
        often = {1: "once", 2: "twice"}.get(len(own), f"{len(own)} times")
        if sign.how == SURGES and len(own) > 1:
            often += f", for {duration(sum(fault.lasts_s for fault in own))} in all"
        reason = f"{_name(series)} {what} {often}: {first_few([f.text for f in own])}"
        reason += f"; {excused}" if planned else ""
        if series.metric in TRAITS.only_warns:
            reason += f"; it only warns: {why_mild(series.metric)}"
        happened = Happened(_name(series), f"{what} {often}", broke=sign.how in _OF_STATES)
        finding = replace(finding, facts=(*finding.facts, happened))
        fails = series.metric not in TRAITS.only_warns and any(fault.grave for fault in own)
        return replace(finding, outcome=Outcome.FAIL if fails else Outcome.WARN, reason=reason)


_OF_STATES: Final[dict[str, Callable[[Change, Case, Series], list[_Fault]]]] = {
    GOES_OFF: Change.gone_off,
    FALLS: Change.fallen,
    COUNTS: Change.counts,
}
_WHAT: Final = {
    FALLS: "fell back",
    COUNTS: "restarted",
    STOPS: "carried nothing",
    SURGES: "surged",
}
_CALM: Final = {FALLS: "never fell back", COUNTS: "did not restart"}


def _name(series: Series) -> str:
    """The thing that changed; for traffic, rates and levels together with what is counted."""
    thing = thing_of(series)
    entry = BY_NAME.get(series.metric)
    alone = entry is not None and entry.change is not None and entry.change.how not in {STOPS, SURGES}
    return thing if alone and thing else name_of(series)


def _how_long(stretch: Window, *, to_end: bool) -> str:
    return f"from {moment(stretch.begin_ns)} {'to the end' if to_end else f'for {duration(stretch.seconds)}'}"


def _slack(series: Series) -> int:
    """What was done may show at the next reading only, and is written down within a minute or two."""
    return round(max(120.0, 2 * (cadence(series) or 0.0)) * 1e9)


def _steps(series: Series) -> Series:
    steps = np.diff(series.values)
    return replace(series, time_ns=series.time_ns[1:], value=steps) if len(series) else series


def _too_few(finding: Finding, reason: str) -> Finding:
    return finding.undecided(
        reason,
        InconclusiveReason.TOO_SHORT if finding.samples > 2 else InconclusiveReason.TOO_FEW,
        f"needs {_LEAST_BLOCKS} blocks of 5 min, three samples each",
    )


def _load_of(case: Case, cut: PacedBlocks) -> Floats:
    """What was asked of the device in each block, all generators together; NaN where nobody says."""
    total = np.full(cut.value.size, np.nan)
    for series in LoadAccount.of(case.load).demand():
        own = paced_blocks(
            series.finite(), cut.begin_ns, cut.begin_ns + cut.block_ns * cut.value.size, cut.block_s
        ).value
        total = np.where(np.isfinite(own), np.nan_to_num(total) + own, total)
    return total


TRAITS: Final = Traits(
    words=RuleWords(
        "something changed for the worse",
        "a state or rate changed",
        happened="{thing} on {target} changed for the worse",
    ),
    rank=160,
    only_warns=frozenset(changing(outcome=WARNS)),
    guide=Guide(
        fails_when=(
            "A link that was up is down for a minute, a card or service restarts, a port falls silent while the load "
            "goes on, or a rate is tenfold for a tenth of the run."
        ),
        misses="What changes between two polls only, and what was so from the start.",
        change_with="change: {down: 5m, factor: 20}",
        next_step=(
            "Read the log of the device at the moment; look at the other end of the link, or at what the traffic took "
            "instead."
        ),
    ),
)
