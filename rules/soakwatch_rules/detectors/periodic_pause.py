"""Pauses: a device that stops for a moment, once or repeatedly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal, NamedTuple

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.fact import Repeated
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, MarkKind, Outcome
from soakwatch_model.roles import DUT
from soakwatch_model.series import Floats, Mask
from soakwatch_rules.finding_draft import absent, draft, half_unread
from soakwatch_rules.load.demand import NOTHING, Demand, LoadMeanwhile
from soakwatch_rules.load.offered import OVERLOADS, windows_by_phase
from soakwatch_rules.load.throughput import Curve, Flow, curve, flows
from soakwatch_rules.load.throughput_pauses import (
    Pause,
    moments,
    number_and_length,
    rhythm_of,
    rhythm_text,
    seconds_since_first,
)
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.sampling import cadence
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.robust_level import robust
from soakwatch_rules.stats.standstill import stops_of_rate
from soakwatch_rules.stats.throughput_dips import (
    MIN_EVEN,
    MIN_INTERVALS,
    STILL,
    Dip,
    Rhythm,
    dips,
    level_without,
    rhythm,
    standstills,
)
from soakwatch_rules.traits import Family, Guide, Marks, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, duration, percent, quantity

_MIN_SAMPLES = 16  # readings of one level
_MARKS = 50
_GAP = 3.0
_AROUND = 5  # readings before and after a dip that show whether the throughput fell into it and came back
_CARRIES = 0.25  # share of the level that shows the end of a standstill
_POWER_SIGMAS = 0.84  # one-sided, 80 %
_MIN_STANDSTILL = 8  # readings of a standstill
_SHORT = 0.05  # share of the readings: a detectable standstill must be at most this long for a pass
_CHANGING = frozenset({"ramp", "cooldown"})
_FINE_S = 10.0  # readings this close show a stop by itself: no daily load dips for seconds, again and again
_SLACK, _MOST_SLACK = 3.0, 0.25  # error of a pause's length: sigmas of a reading, at most this share of the limit
_SHARE = 0.01  # of the time: two nines
_HALF = 0.45  # depth from which one or two dips count as stops in a throughput that hardly moves otherwise
_FEW, _APART = 2, 3.0  # at most so many dips; everything else must be shallower by this factor


class _Seen(NamedTuple):
    pauses: list[Pause]
    readings: int
    deep: float
    sigma: float
    ends: int  # dips at an edge of a phase, or without a recovery
    still: int  # noisy throughput only: readings near 0 outside of standstills
    quiet: int  # pauses in which the generator sent less as well
    set_to: int  # dips in which the generator was set to send less
    sent: int  # dips in which the generator sent less, all of which came back


@dataclass(frozen=True, slots=True)
class PeriodicPause(Parameters):
    """Fails if the throughput paused for long, or paused repeatedly; states the period if there is one.

    Pause: readings of throughput (load.request.rate, else the rates of load.requests; load.rx.packets) at least
    max(``depth``, ``sigmas`` robust sigmas) below the level, until the first that is less than half as deep. If the
    throughput is so noisy that a full stop is no outlier, only standstills count: at least 8 readings in a row of at
    most 5 % of the level, more often than chance makes them (``stats.pauses``). The level is the running median of
    about an hour, within a phase and without standstills, of throughput / commanded rate if that is known. The length
    of a pause is the time that it lost: sum of (1 - throughput / level) x seconds.

    Not counted: phases named stress and spike (and ramp and cooldown without a commanded rate), 2 readings around a
    change of the commanded rate, and planned events; nor a dip that touches the start of a phase, takes more than 5
    readings to fall, or does not come back (that is a step; a standstill ends when a quarter of the level is back).
    Events of kind pause (a garbage collector's log) are judged likewise for each object; silences of a source only if
    they are periodic, which warns.

    Load (``load.demand``): a dip is no pause if the generator was set to send less meanwhile, in whatever unit it
    reports that (rates, bits, level, users), or if it sent fewer packets that wait for no answer and all of them came
    back. If neither is known only a stop can fail, since a daily load dips by itself: a depth of at least 80 %, or one
    or two dips of 45 % in the whole run with all else at most a third as deep (half a minute in readings of a minute).

    Period: the median interval of all pauses, else of those of ``repeated`` or longer. It takes 8 intervals with an
    interquartile range below 0.6 medians that chance makes as even in less than 1 % of cases, or 4 that chance makes as
    even in less than 0.01 % (``stats.pauses.rhythm``).

    fail: a pause of ``longest`` or more, since from ten seconds on a service counts as unavailable; pauses of
    ``repeated`` or more that keep a period; more than 8 of them that take over 1 % of the time. warn: any other pause
    beyond ``tolerated``, pauses that a program logs, and any pause if several devices share the load.

    How often wrong, measured on 100 seeds of 2 h at 1 s, noise 2 %: false pauses in 0 % of white and correlated noise,
    waves, steps and declines; Poisson pauses called periodic: 0 % (with just nine 0.9 %, where the interquartile range
    alone says 7 %); found periodic: pauses of 1 s each minute with jitter of 2, 10 and 30 % of the interval 100 %, of
    2 s each 5 min 100 %, of 6 s at a cadence of 10 s 100 %; if jitter does not add up (30 % of each) 42 to 65 %. On 11
    real garbage collectors' logs the full collection each 3605 s was found (period 3604.9). Standstills in white,
    lognormal (sd 1, 2) and Poisson (mean .02 to 3) noise: 1 in 1800 series of 7200. Outages of four databases, 0, 29,
    97 and 189 s without an operation: reported as 0, 31, 103 and 222 s. Known weaknesses: readings must be averages
    over their interval; a pause shorter than its share ``depth`` of a reading is not seen (a pass states the shortest);
    a period takes 5 to 9 pauses, so 24 h show periods of up to 4.8 h; a slump longer than half an hour becomes the
    level; if the commanded load is unknown, a load that stops looks the same; noise of sd 30 % and more that is
    correlated over 30 readings stays near 0 for long in 7 % of such series, a real standstill; several interleaved
    rhythms look irregular.

    Neighbours: ``loss`` judges one long or final stop, ``hang`` a device that answers nothing, ``performance_decline``
    one that continues slowly, ``gap`` silences, ``event_impact`` a pause that an event caused.

    Parameters: ``depth``, ``sigmas``, ``longest``, ``repeated``, ``tolerated`` (below).

    >>> import numpy as np
    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import readings
    >>> rate = 1000 + np.random.default_rng(1).normal(0, 10, 1200)
    >>> rate[30::60] = 100
    >>> load = (readings("load.request.rate", rate, 1.0),)
    >>> finding = PeriodicPause().judge(Case("dut", "", Window(0, 1200 * 10**9), load=load))[0]
    >>> finding.outcome.value, finding.numbers["pauses"], finding.numbers["period_s"]
    ('warn', 20.0, 60.0)

    References: ITU-T Y.1540 and G.826 (unavailable after 10 bad seconds); P. Moran, JRSS B 13, 1951; autocorrelation
    and Lomb-Scargle periodograms (J. Scargle, ApJ 263, 1982) call AR(1) noise periodic, and lose a rhythm with jitter.
    """

    name: ClassVar[str] = "periodic_pause"
    version: ClassVar[int] = 5
    summary: ClassVar[str] = "throughput paused"
    metrics: ClassVar[tuple[str, ...]] = ()
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ("soak",)
    spec: ClassVar[RuleSpec] = RuleSpec(
        "16 samples of throughput in a phase, half of those expected; 9 pauses for a period",
        shortest_s=600.0,
        needs_load=True,
    )

    order: ClassVar[tuple[str, ...]] = ("tolerated <= longest",)
    depth: float = parameter(
        0.3, "1", "share by which a pause lowers a sample", "shallower dips are noise or load", within="(0, 1)"
    )
    sigmas: float = parameter(
        5.0, "{sigma}", "robust sigmas by which a pause lowers a sample", "4 sigmas: false alarms in 2 to 3 % of hours"
    )
    longest: float = parameter(
        10.0, "s", "lost seconds from which a pause fails", "ITU-T Y.1540: unavailable", within="(0, inf)"
    )
    repeated: float = parameter(
        1.0,
        "s",
        "lost seconds from which pauses that come again and again fail",
        "RFC 6298: TCP sends again after 1 s, so connections notice each of them",
        within="(0, inf)",
    )
    tolerated: float = parameter(
        0.0, "s", "lost seconds up to which a pause passes", "none, unless pauses are expected"
    )

    def definition(self) -> str:
        return (
            f"a pause is throughput below its running level by {100 * self.depth:g} % and {self.sigmas:g} robust "
            f"sigmas, or a standstill (8 or more samples below 5 %, beyond chance), or an event of kind "
            f"pause, unless less was asked meanwhile; more than {self.tolerated:g} lost seconds warn; "
            f"{self.longest:g} or more fail, and so do {self.repeated:g} or more each that keep a period or take over "
            "1 % of the time; a period is 8 or more intervals with an interquartile range below 0.6 medians, more even "
            "than chance (1 %), or 4 or more that chance makes in 0.01 %"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding for each throughput, each log of pauses, and each source that falls silent periodically."""
        if case.role != DUT:
            return ()
        findings = [self._flow(case, flow) for flow in flows(case)]
        logs = sorted({e.object for e in case.events if e.kind == "pause" and e.target == case.target})
        findings += [self._log(case, object_name) for object_name in logs]
        if not findings:
            findings = [absent(self, case, "throughput (load.request.rate, load.rx.packets) and no log of pauses")]
        return (*findings, *self._silences(case))

    def _flow(self, case: Case, flow: Flow) -> Finding:
        finding = replace(draft(self, case, flow.series), object=flow.label)
        apart = cadence(flow.series.finite())
        finding = replace(finding, unit="s", limit=self.longest, detectable_unit="s")
        plain = curve(flow.series)
        shown = plain.per(flow.commanded[0]) if flow.commanded else None
        demand = Demand.of(case, flow)
        counts = shown is None and flow.series.trait.unit.startswith("{")
        seen = self._seen(case, shown or plain, apart or 1.0, demand, commanded=shown is not None, counts=counts)
        if seen is None or apart is None:
            short = duration(_MIN_SAMPLES * apart) if apart else f"{_MIN_SAMPLES} samples"
            reason = f"fewer than {_MIN_SAMPLES} samples of throughput in each phase"
            return finding.undecided(reason, InconclusiveReason.TOO_FEW, f"needs {short} of one phase")
        noisy, scatter = seen.deep >= 1, f"the throughput is noisy ({quantity(seen.sigma, '1')} robust sigma)"
        lost = max(seen.deep, 2 * seen.deep - 0.2) + _POWER_SIGMAS * seen.sigma
        doubts = [f"{scatter}: only standstills are detected, not shorter pauses"] if noisy else []
        if seen.still:
            doubts.append(f"{counted(seen.still, 'sample')} at or below 5 % of the level, alone or few, not counted")
        if shown is None and not demand.known:
            doubts.append(
                "what the generator was set to send is not known: a load that pauses by itself looks the same"
            )
        if seen.set_to:
            doubts.append(f"{counted(seen.set_to, 'dip')} not counted: the generator was set to send less")
        if seen.sent:
            doubts.append(f"{counted(seen.sent, 'dip')} not counted: the generator sent less, and all of it came back")
        if seen.quiet:
            doubts.append(f"in {counted(seen.quiet, 'pause')} the generator also sent less and may be the cause")
        if seen.ends:
            doubts.append(f"{counted(seen.ends, 'dip')} at the start of a phase, or without a recovery, not counted")
        finding = replace(finding, smallest_detectable=None if noisy else apart * lost, doubts=tuple(doubts))
        numbers = {"sigma": seen.sigma, "depth": seen.deep, "readings": float(seen.readings)}
        result = self._conclude(case, finding, seen.pauses, apart, numbers)
        if noisy and result.outcome is Outcome.PASS:
            shortest_s = min(apart * max(_MIN_STANDSTILL, (self.sigmas * seen.sigma / 0.9) ** 2), 1e6)
            reason = f"{scatter}, so short stops cannot be detected; no standstill of {duration(shortest_s)} or longer"
            if shortest_s <= _SHORT * seen.readings * apart:
                return replace(result, reason=reason, smallest_detectable=shortest_s)
            settle = f"record averages over {duration(shortest_s)}"
            return result.undecided(reason, InconclusiveReason.NOISE, settle)
        unread = half_unread(result, finding.samples, "pauses may have been missed")
        return unread if unread is not None and result.outcome is Outcome.PASS else result

    def _seen(
        self, case: Case, shown: Curve, apart: float, demand: Demand, *, commanded: bool, counts: bool
    ) -> _Seen | None:
        pauses: list[Pause] = []
        depths: list[float] = []
        planned_events, shallow = _planned_events(case), 0.0  # the planned events; the deepest reading that is no dip
        readings, deepest, widest, ends, still, quiet = 0, 0.0, 0.0, 0, 0, 0
        less = {LoadMeanwhile.SET_TO_LESS: 0, LoadMeanwhile.SENT_LESS: 0}
        for part in windows_by_phase(case):
            if part.name in OVERLOADS or (part.name in _CHANGING and not commanded):
                continue
            low = int(np.searchsorted(shown.begin_ns, part.window.begin_ns))
            high = int(np.searchsorted(shown.end_ns, part.window.end_ns, side="right"))
            rate, cover_s = shown.rate[low:high], (shown.end_ns - shown.begin_ns)[low:high] * 1e-9
            if rate.size < _MIN_SAMPLES:
                continue
            stopped = standstills(rate, apart) | _stood(shown, low, high, self.longest, counts=counts)
            level = level_without(rate, apart, stopped)
            up = level > 0
            below = np.where(up, 1 - np.minimum(rate / np.where(up, level, 1), 2), 0.0)
            if not up.any():
                continue
            sigma = robust(below[up & ~stopped])[1]
            deep = max(self.depth, self.sigmas * sigma)
            readings, deepest, widest = readings + rate.size, max(deepest, deep), max(widest, sigma)
            noisy = deep >= 1  # even a full stop is no outlier: only standstills are seen
            still += int(np.count_nonzero(up & ~stopped & (below >= 1 - STILL))) if noisy else 0
            seen = np.where(stopped, below, 0.0) if noisy else below
            shallow = max(shallow, float(below[below < deep].max(initial=0.0)))
            for dip in dips(seen, np.minimum(cover_s, _GAP * apart), 1 - STILL if noisy else deep, sigma):
                after, full = rate[dip.close :], float(level[dip.open])
                if stopped[dip.open : dip.close].any():
                    came = float(after.max(initial=0.0)) > _CARRIES * full
                else:
                    came = _between(rate, dip, deep, full)
                if dip.open == 0 or not came:
                    ends += 1
                    continue
                begin_ns, end_ns = int(shown.begin_ns[low + dip.open]), int(shown.end_ns[low + dip.close - 1])
                left = 1 - float(np.mean(below[dip.open : dip.close]))
                why = demand.during(begin_ns, end_ns, left, min(deep, 1 - STILL))
                if why in less and not (commanded and why is LoadMeanwhile.SET_TO_LESS):
                    less[why] += 1
                    continue
                sure = commanded or why is LoadMeanwhile.AS_MUCH or dip.depth >= 1 - NOTHING
                pauses.append(Pause(begin_ns, end_ns, dip.lost_s, _planned(planned_events, begin_ns, end_ns), sure))
                depths.append(dip.depth)
                quiet += demand.sent_less(begin_ns, end_ns, deep)
        if not readings:
            return None
        if 0 < len(depths) <= _FEW and min(depths) >= max(_HALF, _APART * shallow) and not any(less.values()):
            pauses = [pause._replace(sure=True) for pause in pauses]
        return _Seen(pauses, readings, deepest, widest, ends, still, quiet, *less.values())

    def _log(self, case: Case, object_name: str) -> Finding:
        own = [e for e in case.events if e.kind == "pause" and (e.target, e.object) == (case.target, object_name)]
        pauses, planned_events = [], _planned_events(case)
        for e in sorted(own, key=lambda e: e.begin_ns):
            end_ns = max(e.begin_ns, e.end_ns if e.end_ns is not None else e.begin_ns)
            pauses.append(
                Pause(e.begin_ns, end_ns, (end_ns - e.begin_ns) * 1e-9, _planned(planned_events, e.begin_ns, end_ns))
            )
        finding = replace(draft(self, case), object=object_name, samples=len(own), unit="s", limit=self.longest)
        return self._conclude(case, finding, pauses, 0.0, {}, "logged ")

    def _silences(self, case: Case) -> list[Finding]:
        result = []
        for ledger in case.ledgers:
            positions = [s.window.begin_ns for s in ledger.silences]
            beat = rhythm(seconds_since_first(positions))
            if beat is None or not beat.periodic:
                continue
            marks = tuple(
                Mark(s.window.begin_ns, s.window.end_ns, f"{ledger.source} silent", MarkKind.SILENCE)
                for s in ledger.silences
            )
            longest = max(s.window.seconds for s in ledger.silences)
            result.append(
                replace(
                    draft(self, case),
                    object=ledger.source,
                    outcome=Outcome.WARN,
                    samples=ledger.got,
                    expected=ledger.due,
                    unit="s",
                    measured=longest,
                    limit=self.longest,
                    marks=marks[:_MARKS],
                    reason=f"{ledger.source} fell silent {counted(len(positions), 'time')}, {rhythm_text(beat)}, "
                    f"for up to {duration(longest)}; this concerns management, not traffic",
                    numbers={"pauses": float(len(positions)), "period_s": beat.period_s, "spread": beat.spread},
                )
            )
        return result

    def _conclude(
        self,
        case: Case,
        finding: Finding,
        pauses: list[Pause],
        apart: float,
        numbers: dict[str, float],
        kind: str = "",
    ) -> Finding:
        counting = [p for p in pauses if not p.planned and p.lost_s > self.tolerated]
        planned = sum(p.planned for p in pauses)
        worst = max((p.lost_s for p in pauses if not p.planned), default=0.0)
        numbers = numbers | {
            "pauses": float(len(counting)),
            "planned_pauses": float(planned),
            "tolerated_pauses": float(len(pauses) - planned - len(counting)),
            "lost_s": sum(p.lost_s for p in counting),
        }
        # A lost time is uncertain by the noise, so pauses slightly below the limit count as long.
        slack = min(_SLACK * numbers.get("sigma", 0.0) * apart, _MOST_SLACK * self.repeated)
        long = [p for p in counting if p.lost_s >= self.repeated - slack]
        # Short pauses between periodic long ones hide the period: then the long ones alone are tried.
        beat = rhythm_of(counting, apart)
        steady = beat if len(long) == len(counting) else rhythm_of(long, apart)
        which = "" if beat else f", {counted(len(long), 'pause')} of {duration(self.repeated)} or longer"
        beat = beat or steady
        if beat is not None:
            numbers |= {
                "period_s": beat.period_s,
                "period_low_s": beat.low_s,
                "period_high_s": beat.high_s,
                "spread": beat.spread,
            }
        marks = tuple(_mark(pause) for pause in pauses[:_MARKS])
        doubts = (*finding.doubts, *_doubts(counting, beat, apart))
        finding = replace(finding, measured=worst, marks=marks, numbers=numbers, doubts=doubts)
        if not counting:
            small = numbers["tolerated_pauses"]
            more = f"; {counted(int(small), 'pause')} of up to {duration(worst)} tolerated" if small else ""
            more += f"; {counted(planned, 'pause')} in planned events" if planned else ""
            return finding.passes(f"no {kind}pause{more}")
        reason = number_and_length(counting, kind)
        if beat is not None:
            reason += f"{which}, {rhythm_text(beat)}"
        reason += moments(counting)
        # One long pause fails, or many shorter ones; logged pauses only by length.
        said = max((p.lost_s for p in counting if p.sure), default=0.0) >= self.longest
        if said:
            reason += f"; one of {duration(self.longest)} or longer fails"
        elif not kind and (again := self._again(case, long, steady, apart)):
            finding = replace(finding, limit=self.repeated, facts=(*finding.facts, Repeated(len(long))))
            reason, said = f"{reason}; {again}", True
        if said and case.devices > 1:
            reason += f"; {case.devices} devices share the load: which of them paused is not known"
        fails = said and case.devices < 2
        return replace(finding, outcome=Outcome.FAIL if fails else Outcome.WARN, reason=reason)

    def _again(self, case: Case, long: list[Pause], beat: Rhythm | None, apart: float) -> str:
        """Why pauses of ``repeated`` lost seconds each fail together; empty if they do not."""
        sure = [p for p in long if p.sure or apart <= _FINE_S]
        if beat is not None and 2 * len(sure) > len(long) > MIN_EVEN:
            return f"pauses of {duration(self.repeated)} or longer that keep a period fail"
        share = sum(p.lost_s for p in long if p.sure) / max(case.window.seconds, 1e-9)
        if len(long) > MIN_INTERVALS and share > _SHARE:
            return f"pauses of {duration(self.repeated)} or longer take {percent(share)} of the time, over 1 %"
        return ""


def _stood(shown: Curve, low: int, high: int, seconds: float, *, counts: bool) -> Mask:
    """Which readings lie in a standstill of at least ``seconds``, as ``loss`` finds them."""
    begins, ends = shown.begin_ns[low:high], shown.end_ns[low:high]
    result = np.zeros(begins.size, dtype=np.bool_)
    for stop in stops_of_rate(begins, ends, shown.rate[low:high], seconds, counts=counts):
        result |= (begins >= stop.begin_ns) & (ends <= stop.end_ns)
    return result


def _between(rate: Floats, dip: Dip, deep: float, level: float) -> bool:
    """Whether the rate fell into the dip and came back. Before a step up the smooth level lies above the rate, which
    looks like a dip without a fall."""
    before, after = rate[max(dip.open - _AROUND, 0) : dip.open], rate[dip.close : dip.close + _AROUND]
    if not (before.size and after.size):
        return False
    fell = median(rate[dip.open : dip.close]) < (1 - deep / 2) * median(before)
    return fell and median(after) > (1 - deep / 2) * level


def _planned(planned: list[Event], begin_ns: int, end_ns: int) -> bool:
    """Whether the pause touches a planned event, up to its deadline."""
    for event in planned:
        ends = (event.deadline_ns, event.end_ns, event.begin_ns)
        if event.begin_ns <= end_ns and begin_ns <= next(end for end in ends if end is not None):
            return True
    return False


def _mark(pause: Pause) -> Mark:
    text = f"{duration(pause.lost_s)} lost{' (planned)' if pause.planned else ''}"
    return Mark(pause.begin_ns, pause.end_ns, text, planned=pause.planned)


def _doubts(counting: list[Pause], beat: Rhythm | None, apart: float) -> Iterator[str]:
    if beat is not None and beat.period_s < 4 * apart:
        yield f"the period is shorter than four samples ({duration(apart)} apart): the true one may be shorter"
    if unsure := sum(not p.sure for p in counting):
        yield f"in {counted(unsure, 'pause')} some still came back, so the load itself may have dipped"


def _planned_events(case: Case) -> list[Event]:
    """The planned events of the target."""
    return [event for event in case.events if event.expect and event.target in {"", case.target}]


TRAITS: Final = Traits(
    words=RuleWords("throughput paused", "forwarding paused", happened="throughput of {target} paused"),
    expected_as="outage",
    marks=Marks.WITNESSES,
    of_returned_load=True,
    family=Family.TRAFFIC,
    guide=Guide(
        fails_when="Throughput pauses for 10 s or more once, or for 1 s or more in a rhythm; other pauses warn.",
        misses="Pauses shorter than the distance of two readings.",
        change_with="periodic_pause: {repeated: 5s, longest: 30s, tolerated: 2s}",
        next_step=(
            "Match the period with timers of the device: garbage collection, table ageing, log rotation, statistics."
        ),
    ),
)
