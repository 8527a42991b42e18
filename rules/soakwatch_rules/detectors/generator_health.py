"""The generator's health: did it send what it was commanded to, and could it have sent more?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Mark
from soakwatch_model.flow import (
    BACK,
    BITS,
    BYTES,
    CEILING,
    CONNECTIONS,
    DELAY,
    DRIVE,
    FAILED,
    LEVEL,
    OFFERED,
    PACKETS,
    QUALITY,
    REQUESTS,
    SENDING,
    SENT,
)
from soakwatch_model.metric import BY_NAME, COUNTER, flows
from soakwatch_model.metric_load import HEARD
from soakwatch_model.roles import GENERATOR
from soakwatch_model.series import Ints, Series
from soakwatch_model.window import Window
from soakwatch_rules.finding_draft import absent, draft, faults
from soakwatch_rules.load.forwarding import Forwarding, lost_share
from soakwatch_rules.load.load_account import KINDS
from soakwatch_rules.load.offered import own_loss, windows_by_phase
from soakwatch_rules.load.throughput import curve
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.sampling import cadence
from soakwatch_rules.stats.commanded import Shortfall, shortfall
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.saturated_windows import Means, covered_seconds
from soakwatch_rules.traits import Guide, Inconclusive, Judges, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, digits, duration, moment, quantity

_COUNTED = tuple(name for side in (SENT, BACK, FAILED) for name in flows(side, PACKETS, REQUESTS, kind=COUNTER))
_QUEUE_FULL = "load.queue_full"
_CPU = "load.cpu.utilization"
_CEILINGS = tuple(
    (flows(CEILING, what)[0], flows(OFFERED, what)[0], flows(side, *ways))
    for what, side, ways in ((PACKETS, SENT, (PACKETS,)), (REQUESTS, BACK, (REQUESTS,)), (BITS, SENT, (BYTES, BITS)))
)
"""Each ceiling, the commanded rate to compare with it, and what was sent where no command is reported."""
_OWN_LOSS = "load.ceiling.loss"
_CEILING_NAMES = frozenset({_OWN_LOSS, *(name for name, _, _ in _CEILINGS)})
_LEVEL = "load.level"
_FOLLOWS_NS = 10_000_000_000  # after the run changed its level the generator may restart within this
_MOMENT_S = 10.0  # its rate is averaged over this before it is compared with the ceiling
_ASKED = frozenset({"soak", "stress", "spike"})  # phases in which it must send what is commanded
_STILL = 3  # equal readings at the end: it no longer sends
_SILENT = 0.05  # share of the window after its last figure
_WAITS = (*flows(DRIVE, CONNECTIONS), *flows(QUALITY, DELAY), *flows(FAILED, REQUESTS))
_REQUESTS = tuple(zip(flows(BACK, REQUESTS), flows(FAILED, REQUESTS), strict=True))


@dataclass(frozen=True, slots=True)
class _Part:
    """One check of the generator: whether it found a fault, its sentence and mark; ``left`` is its headroom."""

    name: str
    fault: bool
    text: str
    mark: Mark | None = None
    left: float | None = None


@dataclass(frozen=True, slots=True)
class GeneratorHealth(Parameters):
    """Inconclusive if the generator did not send the load it was commanded to, since then it is unknown what the device
    withstood. It never fails, because the device is not to blame; all findings that rest on the load become
    inconclusive with it.

    Each generator object is judged by itself, on what it reports; the finding names the checks that could not be made:
    achieved: within ``tolerance`` of the command in each phase: packets sent (``load.tx.packets`` against
    ``load.offered.packet.rate``), requests answered and failed (``load.requests`` and ``load.failures``, or their
    rates, against ``load.offered.rate``), or, where neither is reported, bits (``load.tx.bit.rate`` or
    ``load.tx.bytes`` against ``load.offered.bit.rate``). Left out are samples between which the command jumps, and,
    outside of soak, stress and spike phases, times in which ``load.sending`` says that it is idle;
    queue: ``load.queue_full`` counted nothing;
    busy: no mean of ``load.cpu.utilization`` over ``seconds`` reaches ``busy``;
    counters: none fell except by a wrap, in an announced event, or within 10 s of a ``load.level`` set by the run;
    sent: in each soak, stress and spike phase (without phases: in the run) some counter or rate moved, unless its
    ``load.level`` is 0;
    drained: if it had stopped sending by the end, nothing was still coming back;
    headroom: the highest command (without one, the highest rate over 10 s) is at least ``headroom`` below its
    calibrated ceiling (``load.ceiling.packet.rate``, ``load.ceiling.rate``, else ``load.ceiling.bit.rate``).
    Its own loss (``load.ceiling.loss``) is stated beside the measured loss: rules that judge a loss are inconclusive
    where it explains that loss.

    Fewer requests than commanded are the generator's fault only if it certainly had free connections: nothing failed,
    and answers per second times the longest reported latency (Little's law) are below 80 % of ``load.connections``.
    Otherwise it may have waited for a slow device, which the finding notes. Fewer packets than commanded are always its
    own fault. The comparison allows for chance: 3/sqrt(commanded), plus one of the compared samples.

    How often wrong: 300 seeded hours each, with a ramp and steps, sending at random times. No false fault at a
    shortfall of 0, 0.5 and 1 % at 1000 packets/s, nor of 0 and 1 % at 50/s; in a phase of a tenth of the run 1.5 % were
    found in 87 %, 2 % always at 1000/s, and 3 % in 81 % at 50/s. Known weaknesses: a generator that waits for the
    device may hide its own slowness; a command that changes with every reading is compared coarsely; a counter that is
    not reported cannot fall.

    Neighbours: ``coverage`` judges missing readings; ``drops``, ``overload_loss`` and ``event_impact`` rest on this.

    Parameters: ``tolerance``, ``busy``, ``seconds``, ``headroom`` (below).

    >>> from soakwatch_model.case import Case
    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import readings
    >>> at = np.arange(600.0)
    >>> told = readings("load.offered.packet.rate", np.full(600, 1000.0), 1.0)
    >>> for rate in (1000, 950):
    ...     sent = readings("load.tx.packets", rate * at, 1.0)
    ...     case = Case("trex", "", Window(0, 600 * 10**9), (told, sent), role="generator")
    ...     finding = GeneratorHealth().judge(case)[0]
    ...     print(finding.outcome, "-", finding.reason.partition(";")[0])
    pass - sent 100 % of the commanded packets
    inconclusive - sent 95 % of the commanded packets

    References: RFC 2544 section 20 and RFC 8219 (the tester must sustain the rate); J. Little, Oper. Res. 9, 1961; G.
    Tene, How not to measure latency, 2013 (coordinated omission: a generator that waits hides the device's stalls).
    """

    name: ClassVar[str] = "generator_health"
    version: ClassVar[int] = 3
    summary: ClassVar[str] = "the load was not what the generator was asked to send"
    metrics: ClassVar[tuple[str, ...]] = (
        *(name for what in KINDS for side in (OFFERED, SENT, BACK, FAILED, CEILING) for name in flows(side, what)),
        *(name for side in (SENT, BACK, FAILED) for name in flows(side, CONNECTIONS)),
        *flows(DRIVE, CONNECTIONS, SENDING, LEVEL),
        *flows(QUALITY, DELAY),
        _QUEUE_FULL,
        _CPU,
        _OWN_LOSS,
    )
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec("two samples of the generator over at least a minute", shortest_s=60.0)

    tolerance: float = parameter(
        0.01, "1", "allowed difference between achieved and commanded rate", "project default", within="(0, 1)"
    )
    busy: float = parameter(
        0.90,
        "1",
        "CPU utilisation that the generator must stay below",
        "above it queues build up in the generator",
        within="(0, 1]",
    )
    seconds: float = parameter(
        60.0, "s", "time over which its CPU is averaged", "a moment is not a lack of traffic", within="(0, inf)"
    )
    headroom: float = parameter(
        0.10, "1", "the command stays so far below what it can send", "project default", within="[0, 1)"
    )

    def definition(self) -> str:
        return (
            f"healthy if in each phase it sent what was commanded within {100 * self.tolerance:g} %, its queue was "
            "never "
            f"full, its CPU stayed below {100 * self.busy:g} % over {duration(self.seconds)}, its counters never fell, "
            "no packets were in flight at the end, and the command stayed "
            f"{100 * self.headroom:g} % below its ceiling; else inconclusive; what it does not report is not judged"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a generator; nothing for other targets."""
        if case.role != GENERATOR:
            return ()
        cut = [s.between(case.window.begin_ns, case.window.end_ns).finite() for s in case.series]
        cut = [s for s in cut if s.metric in self.metrics]
        if case.faults and not any(s.metric in HEARD for s in cut) and _may_be_asked(case):
            return (self._unheard(case),)
        if not cut:
            return (absent(self, replace(case, unread=()), "generator figures"),)
        kept = [s for s in cut if len(s) > (s.metric not in _CEILING_NAMES)]  # one reading is enough for a ceiling
        about = max(
            [s for s in cut if s.metric != _LEVEL] or cut, key=lambda s: (len(s), -self.metrics.index(s.metric))
        )
        finding = draft(self, case, about)
        seen = list(self._parts(case, kept))
        if not any(part.fault for part in seen):
            seen += _stood(case, kept)
        if not seen:
            reason = (
                "the generator reports too little to judge it: neither packets sent, nor the commanded rate, nor "
                "its ceiling"
            )
            if len(about) > 1:
                return (finding.not_applicable(reason),)
            return (finding.undecided(reason, InconclusiveReason.TOO_FEW, "needs two samples of what it sent"),)
        faulty = [p for p in seen if p.fault]
        judged_parts = {p.name for p in seen}
        silent = list(_silent(kept, case.window))
        unjudged = [name for name in _WORDS if name not in judged_parts]
        compared = [x for _, x, _ in self._compared(case, kept)]
        finding = replace(
            finding,
            marks=tuple(p.mark for p in faulty if p.mark is not None),
            doubts=(
                *(f"not known: {_WORDS[name]}" for name in unjudged),
                *silent,
                *self._waited(case, kept),
                *_lost(case, kept),
            ),
            numbers={"judged": float(len(judged_parts)), "faults": float(len(faulty))} | _least_left(seen),
        )
        if compared:
            worst = max(compared, key=lambda x: abs(1 - x.ratio))
            finding = replace(
                finding,
                measured=worst.ratio,
                limit=1 - self.tolerance,
                unit="1",
                smallest_detectable=self.tolerance + 1.3 * max(x.noise for x in compared),
                detectable_unit="1",
            )
        text = "; ".join(dict.fromkeys(p.text for p in (faulty or seen)))
        if faulty:
            settle = "fix the generator or lower the commanded rate, then run again"
            return (finding.undecided(text, InconclusiveReason.GENERATOR, settle),)
        return (finding.passes(text),)

    def _unheard(self, case: Case) -> Finding:
        """The finding of a generator that never reported: nobody knows what load the device carried."""
        reason = f"the generator is silent: {faults(case.faults)}; what load it put on the device is not known"
        settle = "see that the generator runs and where it reports, then run again"
        return draft(self, case).undecided(reason, InconclusiveReason.UNREAD, settle)

    def _parts(self, case: Case, kept: list[Series]) -> Iterator[_Part]:
        for word, compared, off in self._compared(case, kept):
            where = f" in the phase {compared.phase}" if compared.phase else ""
            text = f"sent {quantity(compared.ratio, '1')} of the commanded {word}{where}"
            mark = Mark(compared.window.begin_ns, compared.window.end_ns, text) if off else None
            yield _Part("achieved", off, text, mark)
        for name, own in _by_object(kept):
            for part in (*_queue(own), *self._busy(own), *_monotone(own, case), *_drained(own), *self._headroom(own)):
                yield replace(part, text=f"{part.text} ({name})" if name else part.text)

    def _compared(self, case: Case, kept: list[Series]) -> Iterator[tuple[str, Shortfall, bool]]:
        """For packets and requests: what was sent, as the phases that are off, else the whole run; whether it is
        off."""
        for _, own in _by_object(kept):
            reported = [side for side in _SIDES if side[1] in own and any(metrics[0] in own for metrics in side[2])]
            for word, command, ways in [side for side in reported if side[0] != BITS] or reported:
                did = next([_in_bits(own[m]) for m in metrics if m in own] for metrics in ways if metrics[0] in own)
                waits = [s for s in kept if s.metric in _WAITS] if word == REQUESTS else None
                awake = _awake(own[command], own.get("load.sending"), case)
                pieces = [shortfall(awake, did, p.window, p.name, waits) for p in windows_by_phase(case)]
                off = [x for x in pieces if x is not None and self._is_off(x)]
                whole = shortfall(awake, did, case.window, "", waits)
                if off:
                    yield from ((word, x, True) for x in off)
                elif whole is not None:
                    yield word, whole, self._is_off(whole)

    def _is_off(self, shortfall: Shortfall) -> bool:
        return abs(1 - shortfall.ratio) > self.tolerance + shortfall.noise

    def _waited(self, case: Case, kept: list[Series]) -> Iterator[str]:
        """Requests that it did not send while it may have waited for the device."""
        for _, own in _by_object(kept):
            did = next(([own[m] for m in metrics if m in own] for metrics in _REQUESTS if metrics[0] in own), None)
            if "load.offered.rate" not in own or did is None:
                continue
            for phase in windows_by_phase(case):
                compared = shortfall(own["load.offered.rate"], did, phase.window, phase.name)
                if compared is not None and self._is_off(compared) and compared.ratio < 1:
                    where = f" in the phase {compared.phase}" if compared.phase else ""
                    yield (
                        f"{quantity(compared.ratio, '1')} of the commanded requests were sent{where}: it may have "
                        "waited "
                        "for the device"
                    )

    def _busy(self, own: dict[str, Series]) -> Iterator[_Part]:
        series = own.get(_CPU)
        if series is None:
            return
        covered = covered_seconds(series.time_ns, cadence(series) or 1.0)
        highest = Means(series.time_ns, np.clip(series.values, 0.0, 2.0), covered).highest(self.seconds)
        if highest is not None:
            text = f"its CPU peaked at {quantity(highest, '1')} over {duration(self.seconds)}"
            yield _Part("busy", highest >= self.busy, text)

    def _headroom(self, own: dict[str, Series]) -> Iterator[_Part]:
        """Its distance from each calibrated ceiling; from the one in bits only if there is no other."""
        *others, bits = (self._below(own, *ceiling) for ceiling in _CEILINGS)
        parts = [part for part in others if part is not None]
        yield from parts or ([bits] if bits is not None else [])

    def _below(self, own: dict[str, Series], name: str, command: str, sent: tuple[str, ...]) -> _Part | None:
        ceiling, reported = own.get(name), next((own[m] for m in (command, *sent) if m in own), None)
        if ceiling is None or reported is None or not 0 < ceiling.values[-1] < math.inf:
            return None
        stated, unit = float(ceiling.values[-1]), ceiling.trait.unit
        most = float(reported.values.max()) if reported.metric == command else _highest(_in_bits(reported))
        if most is None or not math.isfinite(most):
            return None
        share = min(1e6, max(0.0, most / stated))
        left = min(1.0, 1 - share)
        verb = "was commanded" if reported.metric == command else "ran at"
        text = (
            f"the generator {verb} {quantity(share, '1')} of its calibrated ceiling ({quantity(most, unit)} of "
            f"{quantity(stated, unit)}): {quantity(left, '1')} headroom"
        )
        return _Part("headroom", left < self.headroom * (1 - 1e-9), text, left=left)


_WORDS = {
    "achieved": "whether it sent the commanded rate",
    "queue": "whether its queue was full",
    "busy": "how busy it was",
    "counters": "whether its counters fell",
    "drained": "whether packets were still in flight at the end",
    "headroom": "how much more it could have sent",
}


_SIDES = (
    (PACKETS, flows(OFFERED, PACKETS)[0], tuple((name,) for name in flows(SENT, PACKETS))),
    (REQUESTS, flows(OFFERED, REQUESTS)[0], _REQUESTS),
    (BITS, flows(OFFERED, BITS)[0], tuple((name,) for name in flows(SENT, BYTES, BITS))),
)


def _in_bits(series: Series) -> Series:
    """A series of bytes as bits; any other unchanged."""
    if series.trait.unit != "By":
        return series
    return replace(series, value=8.0 * series.values, trait=replace(series.trait, unit="bit"))


def _awake(reported: Series, sending: Series | None, case: Case) -> Series:
    """The command, set to 0 where the generator reported that it is idle, except in soak, stress and spike phases."""
    if sending is None or not len(sending):
        return reported
    positions = np.searchsorted(sending.time_ns, reported.time_ns, side="right") - 1
    rests = (positions >= 0) & (sending.values[np.clip(positions, 0, None)] <= 0)
    for phase in case.phases:
        if phase.name in _ASKED:
            rests &= ~((reported.time_ns >= phase.window.begin_ns) & (reported.time_ns < phase.window.end_ns))
    return replace(reported, value=np.where(rests, 0.0, reported.values)) if bool(rests.any()) else reported


def _highest(series: Series) -> float | None:
    """The highest rate over 10 s (or over one reading, if longer) of a counter or a rate."""
    if len(series) < 2:
        return None
    rates = curve(series)
    if not rates.rate.size:
        return None
    lasted = np.asarray((rates.end_ns - rates.begin_ns) * 1e-9, dtype=np.float64)
    longest = max(_MOMENT_S, median(lasted))
    return Means(rates.end_ns, rates.rate, lasted).highest(longest)


def _least_left(seen: list[_Part]) -> dict[str, float]:
    left = [part.left for part in seen if part.left is not None]
    return {"headroom": min(left)} if left else {}


def _by_object(kept: list[Series]) -> Iterator[tuple[str, dict[str, Series]]]:
    """The series of each generator object, and the object's name if there are several."""
    objects = sorted({s.object for s in kept if s.metric != "load.latency"})
    for name in objects:
        yield (name if len(objects) > 1 else ""), {s.metric: s for s in kept if s.object == name}


def _may_be_asked(case: Case) -> bool:
    """Whether the generator has to send: a soak, stress or spike phase has begun, or the run has no phases."""
    return not case.phases or any(phase.name in _ASKED for phase in case.phases)


def _stood(case: Case, kept: list[Series]) -> Iterator[_Part]:
    """A fault for each phase in which it had to send, its level was not 0, and nothing that it reports moved."""
    reported = [s for s in kept if (flow := BY_NAME[s.metric].flow) is not None and flow.side in {SENT, BACK, FAILED}]
    level = next((s for s in kept if s.metric == _LEVEL), None)
    commanded_phases = [p for p in windows_by_phase(case) if p.name in _ASKED or not case.phases]
    for phase in commanded_phases:
        window = phase.window
        here = [s for s in (s.between(window.begin_ns, window.end_ns) for s in reported) if len(s) > 1]
        wanted = None if level is None else level.between(window.begin_ns, window.end_ns)
        if not here or (wanted is not None and len(wanted) and not bool((wanted.values > 0).any())):
            continue
        if not any(bool((s.values > 0).any() if s.trait.kind != COUNTER else np.ptp(s.values) > 0) for s in here):
            where = f"in the phase {phase.name}" if phase.name else "throughout"
            text = f"nothing was sent and nothing came back {where}"
            yield _Part("sent", fault=True, text=text, mark=Mark(window.begin_ns, window.end_ns, text))


def _queue(own: dict[str, Series]) -> Iterator[_Part]:
    series = own.get(_QUEUE_FULL)
    if series is None:
        return
    steps = _increments(series).finite()
    with np.errstate(over="ignore", invalid="ignore"):
        number = min(float(np.sum(np.minimum(steps.values, 1e290))), 1e300)
    if number <= 0:
        yield _Part("queue", fault=False, text="its queue was never full")
        return
    time_ns = int(steps.time_ns[np.argmax(steps.values > 0)])
    text = f"its queue was full {digits(number)} times, first before {moment(time_ns)}"
    yield _Part("queue", fault=True, text=text, mark=Mark(time_ns, None, text))


def _increments(series: Series) -> Series:
    with np.errstate(over="ignore", invalid="ignore"):
        return series.increments()


def _monotone(own: dict[str, Series], case: Case) -> Iterator[_Part]:
    counters = [own[m] for m in (*_COUNTED, _QUEUE_FULL) if m in own]
    if not counters:
        return
    planned = [e for e in case.events if e.expect and e.target in {"", case.target}]
    fallen = [(s, times_ns) for s in counters if (times_ns := _falls(s, own.get(_LEVEL), planned)).size]
    if not fallen:
        yield _Part("counters", fault=False, text="its counters never fell")
    for series, times_ns in fallen:
        time_ns, number = int(times_ns[0]), counted(int(times_ns.size), "time")
        text = f"{series.metric} fell {number}, first before {moment(time_ns)}: the generator restarted"
        yield _Part("counters", fault=True, text=text, mark=Mark(time_ns, None, text))


def _falls(series: Series, level: Series | None, planned: Sequence[Event]) -> Ints:
    """The times at which a counter fell, without announced events and restarts after the run changed the level."""
    fell = np.isnan(_increments(series).values)
    for event in planned:
        end_ns = max(event.begin_ns, event.end_ns or 0, event.deadline_ns or 0) + _FOLLOWS_NS
        fell &= (series.time_ns[1:] < event.begin_ns) | (series.time_ns[:-1] > end_ns)
    times_ns = series.time_ns[1:][fell]
    if level is None or len(level) < 2:
        return times_ns
    changed = np.flatnonzero(np.diff(level.values) != 0)
    begins_ns, ends_ns = level.time_ns[changed], level.time_ns[changed + 1] + _FOLLOWS_NS
    inside = (times_ns[:, None] >= begins_ns) & (times_ns[:, None] <= ends_ns)
    return times_ns[~inside.any(axis=1)]


def _drained(own: dict[str, Series]) -> Iterator[_Part]:
    """Whether packets were still coming back at the end; known only if it had stopped sending by then."""
    sent, back = own.get("load.tx.packets"), own.get("load.rx.packets")
    if sent is None or back is None or len(sent) < _STILL or len(back) < 2 or len(np.unique(sent.value[-_STILL:])) > 1:
        return
    with np.errstate(over="ignore"):
        missing = float(sent.values[-1]) - float(back.values[-1])
    settled = bool(back.value[-1] == back.value[-2])
    missing = min(max(missing, -1e300), 1e300)
    ending = "and none arrived any more" if settled else "and more were still arriving"
    yield _Part("drained", fault=not settled, text=f"{digits(missing)} packets had not come back at the end, {ending}")


def _lost(case: Case, kept: list[Series]) -> Iterator[str]:
    """The share that did not come back, and whether the generator's own loss explains it."""
    own, flow = own_loss(kept), Forwarding.of(replace(case, load=tuple(kept)))
    lost = None if flow is None else lost_share(flow.tallies(), case.window)
    if own is not None and lost is not None and lost > 0 and flow is not None:
        explained = "explains" if lost <= own else "does not explain"
        gone = f"{quantity(lost, '1')} of the {flow.word} did not come back"
        yield f"{gone}; the generator's own loss of up to {quantity(own, '1')} {explained} it"


def _silent(kept: list[Series], window: Window) -> Iterator[str]:
    last = max(int(s.time_ns[-1]) for s in kept)
    if (window.end_ns - last) > max(_SILENT * window.seconds, 3 * (cadence(kept[0]) or 0.0)) * 1e9:
        yield f"the generator reported nothing after {moment(last)}"


TRAITS: Final = Traits(
    words=RuleWords(
        "the traffic generator did not deliver its load", happened="the traffic generator did not deliver its load"
    ),
    rank=10,
    judges=Judges.GENERATOR,
    inconclusive=Inconclusive(any_role=True, required=True),
    guide=Guide(
        fails_when="Never: a generator that did not send what it was asked for makes what rests on its load undecided.",
        misses="What the generator does not report, such as its own CPU.",
        change_with="generator_health: {tolerance: 2%, headroom: 5%}",
        next_step=(
            "Give the generator more cores or a lower rate, check its reference (soakwatch calibrate), and run it "
            "again."
        ),
    ),
)
