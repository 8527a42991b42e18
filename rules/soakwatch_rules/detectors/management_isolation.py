"""Management isolation: does the device still answer its operators under high load?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case, Ledger
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, MarkKind, Outcome
from soakwatch_model.label import label
from soakwatch_model.roles import DUT
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.baseline_before_window import baseline_doubt, imported_baseline
from soakwatch_rules.events.boots import BOOT_METRICS
from soakwatch_rules.finding_draft import absent, draft
from soakwatch_rules.load.forwarding import Forwarding, alive_without_management, lost_share
from soakwatch_rules.load.load_pressure import Pressure, pressure, total_seconds
from soakwatch_rules.management.gap_cause import (
    DEVICE,
    MONITOR,
    PATH,
    PLANNED,
    REBOOT,
    TOTAL,
    UNKNOWN,
    UP,
    ExplainedSilence,
    path_cuts,
    silence_causes,
)
from soakwatch_rules.management.poll_latency import DURATION, PollLatency, poll_latency, slowdown
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.peers import cut_with_own, finite_numbers, interval, peer_name, requests, values_in
from soakwatch_rules.rule import Input, RuleSpec
from soakwatch_rules.sampling import cadence
from soakwatch_rules.silences import monitor_did_not_poll, silent_all
from soakwatch_rules.spans import common, overlap_s, without
from soakwatch_rules.stats.medians import median
from soakwatch_rules.traits import Family, Guide, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, digits, duration, first_few, moment, quantity

_DEAD_S = 300.0  # as in ``hang``
_MIN_PROBES = 16  # round trips, or requests, under high and under low load each
_ALL = 0.9  # additional share of the load that must be lost; an overload loses some without a silent management
_REST = "add a baseline phase or a pause of the load, or judge with the baseline of an earlier run"
_NO_POLLS = frozenset({"syslog", "traps", "icmp", "tcp", "http"})  # these only listen, or are judged by their peers
_STARVES = frozenset({DEVICE, UNKNOWN})
_WORDS = {
    MONITOR: "caused by the monitor",
    REBOOT: "with a reboot in it",
    PLANNED: "planned",
    PATH: "caused by the path",
    DEVICE: "caused by the device",
    UNKNOWN: "of unknown cause",
}


@dataclass(frozen=True, slots=True)
class ManagementIsolation(Parameters):
    """Fails if management is not reachable while the device carries a high load or is attacked.

    High load is the stress and spike phases, compared with baseline and soak; without such phases the time in which the
    load is at least half of its highest, compared with the time in which it is at most a tenth. If the load is never
    low, probes are compared with the imported baseline of an earlier run; without one the usual loss is unknown, only
    ``latency`` is an absolute limit, and silences or a loss above ``loss`` are inconclusive.

    * Each probed peer (``reach.*``: icmp, tcp, http): fails if the share of requests lost under high load exceeds that
      under low load by more than ``loss`` (by the lower end of its 90 % interval), or if the median round trip exceeds
      ``latency``; warns if it is over 10 ms and more than ``times`` that under low load. Requests lost while every
      source and peer was silent over a dead path (below) do not count, and make a failure inconclusive.
    * Each source whose polls are timed (``source.poll.duration``: snmp, ssh, http ...; a poll is many requests): fails
      if polls take ``times`` as long as under low load and the median exceeds ``latency``; warns above 10 ms, or if
      they take ``latency`` longer. Median and lower quartile must both be slower, so that more surveys do not look like
      a slower device. Single lost polls fail beyond ``loss`` like requests.
    * Each source that polls (not pings and connections): fails if silences (three intervals or more) that the device
      caused last for over ``loss`` of the high load. Causes are as in ``gap``. Device: its CPU was at ``busy`` before,
      or nearly all load was lost. Monitor: it did not send the polls. Reboot: a new boot id or uptime. Path: another
      source answered meanwhile, or all were silent while traffic passed and the CPU was not busy. If all fall silent
      under high load only, it warns: without a CPU reading a device that starves its management looks the same.

    With any load: a silence of all management for 5 min and five polls up to the end of the run, after it had answered,
    fails if the load still comes back (else the device is dead: ``hang``).

    How often wrong: 300 seeded runs each (a probe a second, polls every 10 s, two hours with a quarter of stress). A
    device that answers as before, or three times as late, never failed, nor did a cut path, a late monitor or a reboot;
    20 % of requests lost and a round trip of 2 s always did, a starved agent in 99.7 % (in one run the last reading of
    its CPU was below ``busy``). Polls as long as before, wandering, four times as long or with twice as many surveys
    all passed; sixty times as long (3 s) all failed; of runs that lost a fifth of them at random 99 % failed. Known
    weaknesses: only the duration of a poll is known, not what it read; a peer behind the device loses with the data
    plane (its finding states that loss); devices limit ICMP on purpose: probe a port as well.

    Neighbours: ``hang`` judges silence without forwarding, ``gap`` the cause of every silence, ``event_impact`` what an
    event cost, probes included; ``reboot``, ``coverage``.

    Parameters: ``loss``, ``latency``, ``times``, ``busy`` (below).

    >>> from soakwatch_model.window import Phase
    >>> from soakwatch_rules.signals import readings
    >>> phases = (Phase("soak", Window(0, 600 * 10**9)), Phase("stress", Window(600 * 10**9, 900 * 10**9)))
    >>> name = "peer=192.0.2.1,protocol=icmp"
    >>> for late in (0.002, 2):
    ...     series = readings("reach.round_trip", np.repeat([0.001, late], [600, 300]), 1.0, object=name)
    ...     finding = ManagementIsolation().judge(Case("dut", "", Window(0, 900 * 10**9), (series,), phases=phases))[0]
    ...     print(finding.outcome, finding.measured)
    pass 0.002
    fail 2.0

    References: RFC 6192 (protecting the router control plane); E. Wilson, J. Am. Stat. Assoc. 22, 1927 (interval of a
    share).
    """

    name: ClassVar[str] = "management_isolation"
    version: ClassVar[int] = 4
    summary: ClassVar[str] = "management was not reachable under high load"
    metrics: ClassVar[tuple[str, ...]] = (
        "reach.round_trip",
        UP,
        "reach.sent",
        "reach.lost",
        DURATION,
        TOTAL,
        *BOOT_METRICS,
    )
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec(
        "a high load (stress, spike, or generator figures) with 16 probes or three poll intervals in it",
        shortest_s=600.0,
        live="end",
        inputs=frozenset({Input.BASELINE}),
    )

    loss: float = parameter(
        0.05,
        "1",
        "allowed share of requests, or of time, lost under high load beyond that under low load",
        "one in 20",
        within="[0, 1)",
    )
    latency: float = parameter(
        1.0,
        "s",
        "limit of the median round trip under high load",
        "the timeout of an SNMP request",
        within="(0, inf)",
    )
    times: float = parameter(
        10.0, "1", "factor over the round trip under low load that warns", "a queue built up", within="[1, inf)"
    )
    busy: float = parameter(
        0.95, "1", "CPU from which the device may be too busy to answer", "as for gap", within="(0, 1]"
    )

    def definition(self) -> str:
        return (
            f"under high load (stress, spike, or over half of the highest load) at most {100 * self.loss:g} % of "
            "requests more than under low load may be lost, the median round trip may be at most "
            f"{duration(self.latency)} ({self.times:g} times that of low load warns; for whole polls {self.times:g} "
            f"times and over {duration(self.latency)} fail), and no source may be silent for {100 * self.loss:g} % of "
            f"it because of the device (its CPU at {100 * self.busy:g} % before, or all load lost)"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding for each probed peer and each polling source; none unless the target is the device under test."""
        if case.role != DUT:
            return ()
        case = replace(case, series=tuple(s.between(case.window.begin_ns, case.window.end_ns) for s in case.series))
        polled = [x for x in case.ledgers if x.due and x.source.rpartition("/")[2].partition(" ")[0] not in _NO_POLLS]
        peers = sorted({s.object for s in case.series if s.metric.startswith("reach.") and len(s.finite())})
        timed = [s for s in case.series if s.metric == DURATION and len(s.finite())]
        if not peers and not polled and not timed:
            return (absent(self, case, "probes and no poll statistics"),)
        under, gone = pressure(case), self._gone(case)
        if under is None or not under.high:
            if gone is not None:
                return (gone,)
            reason = "no stress or spike phase and no load figures: it is not known when the load was high"
            return (draft(self, case).not_applicable(reason),)
        cut = path_cuts(case, silence_causes(case, self.busy, _ALL)) if peers else ()
        probed = [*(self._peer(case, peer, under, cut) for peer in peers), *(() if gone is None else (gone,))]
        return (*probed, *(self._poll_latency(case, s, under) for s in timed), *self._polls(case, polled, under))

    def _gone(self, case: Case) -> Finding | None:
        """A failure if management fell silent to the end of the run while the load still came back; else None."""
        silent = silent_all(case.ledgers, [s for s in case.series if s.metric == UP])
        if (gone := alive_without_management(case, silent, _DEAD_S)) is None:
            return None
        text = f"no management answered from {moment(gone.begin_ns)} to the end of the run, while traffic was forwarded"
        finding = replace(draft(self, case), samples=sum(x.got for x in case.ledgers), unit="s", limit=_DEAD_S)
        marks = (Mark(gone.begin_ns, gone.end_ns, text, MarkKind.SILENCE),)
        return replace(finding, outcome=Outcome.FAIL, reason=text, measured=gone.seconds, marks=marks)

    # --- probes --------------------------------------------------------------------------------------------

    def _peer(self, case: Case, peer: str, under: Pressure, cut: Sequence[Window]) -> Finding:
        own = {s.metric: s.finite() for s in case.series if s.object == peer and s.metric.startswith("reach.")}
        trips = [
            values_in(own["reach.round_trip"], spans) if "reach.round_trip" in own else np.empty(0)
            for spans in (under.high, under.low)
        ]
        probes = [requests(own, spans) for spans in (under.high, under.low)]
        borrowed = {} if under.low else {m: s for m in own if (s := imported_baseline(case, own[m])) is not None}
        if borrowed:
            whole = (Window(min(int(s.time_ns[0]) for s in borrowed.values()), case.window.begin_ns),)
            trips[1] = values_in(borrowed["reach.round_trip"], whole) if "reach.round_trip" in borrowed else trips[1]
            probes[1] = requests(borrowed, whole)
        missing = common(under.high, cut_with_own(own.get(UP), cut))
        total = probes[0]
        if missing:
            probes[0] = requests(own, without(under.high, missing))
        (sent, lost), (calm_sent, calm_lost) = probes
        about = max(own.values(), key=len)
        finding = replace(draft(self, case, about), unit="s", limit=self.latency, metric="reach.round_trip")
        name = peer_name(peer)
        late = median(trips[0]) if trips[0].size >= _MIN_PROBES else None
        calm = median(trips[1]) if trips[1].size >= _MIN_PROBES else None
        numbers = {"high_s": total_seconds(under.high), "low_s": total_seconds(under.low), "sent": sent, "lost": lost}
        if late is not None:
            numbers |= {"round_trip": late, "round_trip_p95": float(np.quantile(trips[0], 0.95))}
        if calm is not None:
            numbers["round_trip_low"] = calm
        share = lost / sent if sent >= _MIN_PROBES else None
        usual = calm_lost / calm_sent if calm_sent >= _MIN_PROBES else None
        numbers |= {} if share is None else {"lost_share": share}
        numbers |= {} if share is None or usual is None else {"lost_share_low": usual}
        numbers |= {"path_s": total_seconds(missing), "path_lost": total[1] - lost} if missing else {}
        doubts = (
            *((baseline_doubt(case),) if borrowed else ()),
            *self._doubts(case, under, share, usual or 0.0, alone=not borrowed),
        )
        finding = replace(finding, measured=late, numbers=finite_numbers(numbers), doubts=doubts)
        if late is None and share is None and not missing:
            reason = f"{name}: too few probes under high load ({under.text},  {duration(total_seconds(under.high))})"
            settle = f"needs {_MIN_PROBES} probes in it: probe more often, or load for longer"
            if total_seconds(under.high) < _MIN_PROBES * (cadence(about) or math.inf):
                return finding.not_applicable(f"{reason}: {settle}")
            return finding.undecided(reason, InconclusiveReason.TOO_FEW, settle)
        result = self._conclude(finding, name, under, (late, calm), (sent, lost, usual))
        return self._cut(result, total, usual or 0.0) if missing else result

    def _cut(self, finding: Finding, total: tuple[float, float], usual: float) -> Finding:
        """The finding, with the requests lost while all management was silent over a dead path; they may turn a pass
        into inconclusive, since it is unknown whether the peer would have answered."""
        gone_s, gone = finding.numbers["path_s"], finding.numbers["path_lost"]
        text = f"{gone:,.0f} more lost in {duration(gone_s)} in which no management answered but traffic was forwarded"
        finding = replace(finding, reason=f"{finding.reason}; {text}: lost by the path")
        sent, lost = total
        if finding.outcome is Outcome.FAIL or sent < _MIN_PROBES or interval(lost, sent)[0] <= self.loss + usual:
            return finding
        settle = "fix the path to the management address, or probe over another one, then run again"
        return finding.undecided(finding.reason, InconclusiveReason.GAP, settle)

    def _conclude(
        self,
        finding: Finding,
        name: str,
        under: Pressure,
        trip: tuple[float | None, float | None],
        probes: tuple[float, float, float | None],
    ) -> Finding:
        late, calm = trip
        sent, lost, usual = probes
        reported = []
        if late is not None:
            before = f" ({duration(calm)} under low load)" if calm is not None else ""
            reported.append(f"median round trip {duration(late)}{before}")
        low, high = interval(lost, sent) if sent >= _MIN_PROBES else (0.0, 0.0)
        if sent >= _MIN_PROBES:
            held = "not known under low load" if usual is None else f"{quantity(usual, '1')} under low load"
            reported.append(f"{quantity(lost / sent, '1')} of {sent:,.0f} requests lost ({held})")
            finding = replace(finding, smallest_detectable=self.loss + high - low, detectable_unit="1")
        text = f"{name} under {under.text}: {', '.join(reported)}"
        marks = tuple(Mark(w.begin_ns, w.end_ns, text) for w in under.high[:20])
        beyond = self.loss + (usual or 0.0)
        if usual is not None and sent >= _MIN_PROBES and low > beyond:
            reason = f"{text}; allowed {quantity(self.loss, '1')} more than under low load"
            finding = replace(finding, measured=lost / sent, limit=beyond, unit="1", interval=(low, high))
            return replace(finding, outcome=Outcome.FAIL, reason=reason, marks=marks)
        if late is not None and late > self.latency:
            return replace(
                finding, outcome=Outcome.FAIL, reason=f"{text}; allowed {duration(self.latency)}", marks=marks
            )
        if sent >= _MIN_PROBES and low > beyond:
            return replace(finding, reason=text, why=InconclusiveReason.NO_REFERENCE, settle=_REST, marks=marks)
        if sent >= _MIN_PROBES and lost / sent > beyond:
            settle = f"needs about {digits(4 * max(sent, _MIN_PROBES))} requests under high load"
            reason = f"{text}; over the limit of {quantity(self.loss, '1')}, but too few requests to be certain"
            return replace(finding, reason=reason, why=InconclusiveReason.TOO_FEW, settle=settle, marks=marks)
        if late is not None and calm is not None and late > self.times * calm and late > 0.01:
            reason = f"{text}: {late / calm:.3g} times as long" if calm > 0 else text
            return replace(finding, outcome=Outcome.WARN, reason=reason, marks=marks)
        return finding.passes(text)

    def _doubts(self, case: Case, under: Pressure, share: float | None, usual: float, *, alone: bool) -> Iterator[str]:
        if not under.low and alone:
            yield "there was no low load to compare with: only absolute limits were judged"
        flow = Forwarding.of(case)
        if share is not None and share > usual + self.loss and flow is not None:
            through = [x for w in under.high if (x := lost_share(flow.tallies(), w)) is not None]
            if through and max(through) > 0.5 * share:
                yield f"{quantity(max(through), '1')} of the load was lost as well: the peer may be behind the device"
        yield from _monitor(case.ledgers)

    # --- durations of polls --------------------------------------------------------------------------------

    def _poll_latency(self, case: Case, series: Series, under: Pressure) -> Finding:
        """The finding of one source: how long its polls took, and how many were lost one at a time."""
        source = label(series.object, "source") or series.object
        ledger = next((x for x in case.ledgers if _source(x) == source), None)
        high, low = (poll_latency(series, ledger, spans) for spans in (under.high, under.low))
        borrowed = None if under.low else imported_baseline(case, series)
        if borrowed is not None:
            low = poll_latency(borrowed, None, (Window(int(borrowed.time_ns[0]), case.window.begin_ns),))
        doubts = (*((baseline_doubt(case),) if borrowed is not None else ()), *_monitor(case.ledgers))
        finding = replace(draft(self, case, series), unit="s", doubts=doubts)
        if high is None or max(float(high.number), high.due) < _MIN_PROBES:
            reason = (
                f"fewer than {_MIN_PROBES} polls of {source} under {under.text} ({duration(total_seconds(under.high))})"
            )
            return finding.not_applicable(reason)
        low = low if low is not None and low.number >= _MIN_PROBES else None
        limit = None if low is None else max(self.latency, self.times * low.median)
        usual = low.lost / low.due if low is not None and low.due >= _MIN_PROBES else None
        numbers = {"looks": float(high.number), "took": high.median, "took_p95": high.late}
        text = f"polls of {source} under {under.text} took {duration(high.median)} (median)"
        if low is not None:
            numbers |= {"took_low": low.median, "slower": slowdown(high, low)}
            text += f", {duration(low.median)} under low load"
        if high.due >= _MIN_PROBES:
            numbers |= {"due": high.due, "lost": high.lost, "lost_share": high.lost / high.due}
            numbers |= {} if usual is None else {"lost_share_low": usual}
            text += f"; {high.lost:.0f} of {high.due:.0f} single polls were lost"
        finding = replace(finding, measured=high.median, limit=limit, numbers=finite_numbers(numbers))
        marks = tuple(Mark(w.begin_ns, w.end_ns, text) for w in under.high[:20])
        return self._slow(replace(finding, marks=marks), text, high, low, usual)

    def _slow(
        self, finding: Finding, text: str, high: PollLatency, low: PollLatency | None, usual: float | None
    ) -> Finding:
        if high.due >= _MIN_PROBES and (ends := interval(high.lost, high.due))[0] > self.loss + (usual or 0.0):
            if usual is None:
                reason = f"{text}; the usual loss under low load is not known"
                return finding.undecided(reason, InconclusiveReason.NO_REFERENCE, _REST)
            reason = f"{text}; allowed {quantity(self.loss, '1')} more than under low load"
            return replace(
                finding,
                outcome=Outcome.FAIL,
                reason=reason,
                measured=high.lost / high.due,
                unit="1",
                limit=self.loss + usual,
                interval=ends,
            )
        if low is None or high.number < _MIN_PROBES:
            caveat = "too few polls under low load to compare with" if low is None else "few polls were answered"
            return replace(finding, outcome=Outcome.PASS, reason=text, marks=(), doubts=(*finding.doubts, caveat))
        often = slowdown(high, low)
        if often > self.times and high.median > self.latency:
            return finding.fails(f"{text}: {often:.3g} times as long")
        longer = min(high.median - low.median, high.quarter - low.quarter)
        if (often > self.times and high.median > 0.01) or longer > self.latency:
            return finding.warns(f"{text}: {often:.3g} times as long")
        return replace(finding, outcome=Outcome.PASS, reason=text, marks=())

    # --- silences ------------------------------------------------------------------------------------------

    def _polls(self, case: Case, polled: Sequence[Ledger], under: Pressure) -> Iterator[Finding]:
        cause = silence_causes(case, self.busy, _ALL)
        length = total_seconds(under.high)
        for ledger in polled:
            within = [
                (gap, gap_s)
                for silence in ledger.silences
                if (gap_s := overlap_s(silence.window, under.high)) >= 0.5 * silence.window.seconds
                for gap in (cause(ledger, silence),)
            ]
            starved = sum(gap_s for gap, gap_s in within if gap.cause == DEVICE)
            alone = [gap for gap, _ in within if gap.cause in {PATH, UNKNOWN} and not gap.alone]
            calm = [
                s for s in ledger.silences if overlap_s(s.window, under.low) > 0 and not monitor_did_not_poll(s.lost)
            ]
            finding = replace(
                draft(self, case),
                object=ledger.source,
                samples=ledger.got,
                expected=ledger.due,
                unit="1",
                measured=starved / length if length > 0 else None,
                limit=self.loss,
                numbers={
                    "high_s": length,
                    "silences": float(len(within)),
                    "starved_s": starved,
                    "low_silences": float(len(calm)),
                },
                smallest_detectable=max(self.loss, 3 * ledger.interval_s / length) if length > 0 else None,
                detectable_unit="1",
                doubts=tuple(_monitor(case.ledgers)),
                marks=tuple(
                    Mark(gap.window.begin_ns, gap.window.end_ns, f"{ledger.source} silent, {gap.why}", MarkKind.SILENCE)
                    for gap, _ in within[:50]
                ),
            )
            yield self._heard(finding, ledger, under, within, starved, alone)

    def _heard(
        self,
        finding: Finding,
        ledger: Ledger,
        under: Pressure,
        within: Sequence[tuple[ExplainedSilence, float]],
        starved: float,
        alone: Sequence[ExplainedSilence],
    ) -> Finding:
        length = total_seconds(under.high)
        if not ledger.got:
            reason = f"{ledger.source} never answered"
            if not ledger.required:
                return finding.not_applicable(reason)
            return finding.undecided(reason, InconclusiveReason.GAP, "fix the source or the path to it, then run again")
        if length < 3 * ledger.interval_s:
            reason = (
                f"{ledger.source} is polled every {duration(ledger.interval_s)}; {under.text} lasted only "
                f"{duration(length)}"
            )
            return finding.not_applicable(f"{reason}, less than the three intervals of a silence")
        if not within:
            return finding.passes(f"{ledger.source} answered throughout under {under.text}")
        words = first_few(
            [
                f"{moment(gap.window.begin_ns)} for {duration(gap.window.seconds)}, {_WORDS[gap.cause]}: {gap.why}"
                for gap, _ in sorted(within, key=lambda x: (x[0].cause not in _STARVES, -x[1]))
            ]
        )
        text = f"{ledger.source} under {under.text}: {counted(len(within), 'silence')} of {duration(length)}: {words}"
        if starved > self.loss * length:
            reason = (
                f"{text}; it did not answer for {quantity(starved / length, '1')} of the time without a reboot "
                f"(allowed {quantity(self.loss, '1')})"
            )
            return finding.fails(reason)
        # Silences that the path may have caused need low load to compare with.
        open_s = sum(gap.window.seconds for gap in alone)
        if open_s > self.loss * length and not under.low:
            reason = (
                f"{text}; without low load to compare with, the path and a device that neglects its management "
                "look the same"
            )
            return finding.undecided(reason, InconclusiveReason.NO_REFERENCE, _REST)
        if open_s > self.loss * length and not finding.numbers["low_silences"]:
            reason = f"{text}; silent under high load only: a shared path, or a device that neglects its management"
            return finding.warns(reason)
        return finding.passes(text)


def _source(ledger: Ledger) -> str:
    """The source's own label; a ledger shows ``target/poller``, or ``target/poller label`` if there are several."""
    return ledger.source.rpartition("/")[2].rpartition(" ")[2]


def _monitor(ledgers: Sequence[Ledger]) -> Iterator[str]:
    late = sum(x.lost.get("missed", 0) for x in ledgers)
    due = sum(x.due for x in ledgers)
    if due and late > 0.01 * due:
        yield f"the monitor itself was late: {late:,} of {due:,} polls were not sent in time"


TRAITS: Final = Traits(
    words=RuleWords("management became slow under load", happened="the management of {target} became slow under load"),
    family=Family.POLLS,
    guide=Guide(
        fails_when=(
            "Under high load the device loses more than 5 % of its management requests, answers ten times slower, or "
            "falls silent."
        ),
        misses="Runs without a high load.",
        change_with="management_isolation: {loss: 10%, latency: 2s}",
        next_step=(
            "Give management a share of its own (control-plane policing, a reserved core) and repeat the stress phase."
        ),
    ),
)
