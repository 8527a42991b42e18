"""Hangs: a device that stopped forwarding and answering without a reboot, or stayed dead to the end of the run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, MarkKind
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.events.boots import BOOT_METRICS, reboots_in
from soakwatch_rules.events.incidents import Witness, witness_of
from soakwatch_rules.finding_draft import absent, draft
from soakwatch_rules.load.forwarding import Forwarding, comes_back
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.sampling import cadence
from soakwatch_rules.silences import only_probed, silence_to_end, silent_all
from soakwatch_rules.spans import common, joined, overlap_s
from soakwatch_rules.stats.hysteresis import stretches
from soakwatch_rules.stats.saturated_windows import covered_seconds
from soakwatch_rules.stats.spikes import busy_throughout
from soakwatch_rules.traits import Family, Guide, Judges, Leads, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, duration, first_few, moment, quantity

_TOTAL = "system.cpu.utilization"
_UP = "reach.up"
_OF_PROCESSES = frozenset({"process.restart", "process.exit", "core.dump", "kernel.oom"})
"""Announced effects that take no device away: a hang during such an event still counts."""
_LEAVE = 0.9  # share of ``pinned`` below which a busy stretch ends
_MIN_CPU_SAMPLES = 16
_LATE = 0.25  # share of a stop that its end may lie before the end of the run and still reach it
_MAX_MARKS = 100


@dataclass(frozen=True, slots=True)
class _Stop:
    """A stretch that may be a hang: when, the evidence, and how long forwarding stood still (None: not known).

    ``dead``: not answering is evidence enough; ``last``: it did not answer up to the end of the run; ``silent``: all
    management was silent for at least a part of it.
    """

    window: Window
    witnesses: tuple[str, ...]
    stood_s: float | None
    dead: bool = False
    last: bool = False
    silent: bool = False

    @property
    def kind(self) -> MarkKind:
        return MarkKind.SILENCE if self.silent else MarkKind.MOMENT

    @property
    def text(self) -> str:
        return "; ".join(self.witnesses)


@dataclass(frozen=True, slots=True)
class Hang(Parameters):
    """Fails if the device hung: it stopped forwarding and answering but did not reboot.

    A hang lasts at least ``seconds``: the device does not forward (under 1 % of what the generators keep sending comes
    back, or no request is answered); no management source answers, or the CPU is at ``pinned`` or above; and no boot
    id, boot time or uptime restarts. Stretches less than ``seconds`` apart are one hang; the evidence is listed with
    its times.

    Dead: if all management is silent to the end of the run, for ``dead`` and five polls at least, after it had
    answered, the device is dead, unless the load still comes back (``management_isolation``). A device that is only
    watched from outside (icmp, tcp, http) is dead wherever all of these go unanswered for ``seconds``.

    Load unknown: it is not known whether the device forwarded, so any other silence of all management for ``seconds``
    warns; it is inconclusive if the last CPU sample before it was at ``pinned``.

    No hang: silence while forwarding goes on (``gap`` reports it); stopped forwarding while management answers and the
    CPU is not busy (``drops``, ``recovery``); polls that the monitor itself did not send; what an announced event
    (with an intent beyond processes) covers. Without a boot id or uptime on both sides a hang cannot be told from a
    reboot: inconclusive, unless the device never came back. A source that pings or connects (icmp, tcp, http) answers
    if its peer did; one that only listens (syslog, traps) is no management source.

    How often wrong: measured on 300 seeded hours of each case (10 s polls of two sources, 1 % of them lost, load each
    second). No false hang: silence while forwarding goes on or loses 20 %; one silent source while forwarding stands;
    silence and stopped forwarding 5 min apart; reboots; a CPU at 100 % with 5 % loss. Hangs of 40 s and more were all
    found, of 30 s in 2 %. Known weaknesses: a cut of all paths at once (management and traffic) looks the same; if
    several devices share a load, it cannot tell which of them stood; a hang shorter than three polls is no silence; a
    CPU that is busy from the start (poll mode) is no evidence.

    Neighbours: ``reboot``; ``gap`` judges every silence, ``management_isolation`` silence while traffic still passes,
    ``event_impact`` an announced stop; ``drops``, ``cpu_saturation``.

    Parameters: ``seconds``, ``pinned``, ``dead`` (below).

    >>> import numpy as np
    >>> from soakwatch_model.case import Ledger, Silence
    >>> from soakwatch_rules.signals import readings, uptimes
    >>> sent = np.arange(360) * 1000.0
    >>> back = sent - 1000.0 * np.clip(np.arange(360) - 100, 0, 12)
    >>> load = (readings("load.tx.packets", sent, 10.0), readings("load.rx.packets", back, 10.0))
    >>> silence = Silence(Window(1000 * 10**9, 1120 * 10**9), {"timeout": 11})
    >>> ledger = Ledger("dut", "snmp", 10.0, 360, 349, {"timeout": 11}, silence.window, silences=(silence,))
    >>> case = Case("dut", "", Window(0, 3600 * 10**9), (uptimes(10.0, 360),), ledgers=(ledger,), load=load)
    >>> Hang().judge(case)[0].outcome.value, Hang().judge(replace(case, load=()))[0].outcome.value
    ('fail', 'warn')

    References: RFC 2544 section 26.6 (reset) and RFC 6201 for what is no hang; J. Gray, Why do computers stop, 1985
    (a fault that is no fail-stop). Both take silence for death: here it takes two witnesses.
    """

    name: ClassVar[str] = "hang"
    version: ClassVar[int] = 3
    summary: ClassVar[str] = "the device stopped forwarding and answering without a reboot"
    metrics: ClassVar[tuple[str, ...]] = (_TOTAL, *BOOT_METRICS, _UP)
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec("answered polls, or 16 samples of the CPU")

    seconds: float = parameter(30.0, "s", "shortest hang", "three polls of 10 s", within="(0, inf)")
    pinned: float = parameter(
        0.98, "1", "utilisation from which the CPU counts as fully busy", "100 % with idle ticks", within="(0, 1]"
    )

    dead: float = parameter(
        300.0,
        "s",
        "silence to the end of the run from which the device is dead",
        "a reboot takes less",
        within="(0, inf)",
    )

    def definition(self) -> str:
        return (
            f"a hang is {duration(self.seconds)} or more without forwarding while no management answered or the CPU "
            f"was at {100 * self.pinned:g} % or above, without a reboot; without traffic figures a silence of that "
            f"length only warns, unless it lasts for {duration(self.dead)} to the end of the run without any traffic "
            "that comes back, or the device is only probed from outside (icmp, tcp, http)"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a target."""
        cut = [s.between(case.window.begin_ns, case.window.end_ns).finite() for s in case.series]
        best = {m: max((s for s in cut if s.metric == m and len(s)), key=len, default=None) for m in self.metrics}
        cpu = best[_TOTAL]
        polled = [ledger for ledger in case.ledgers if ledger.due]
        if not polled and (cpu is None or len(cpu) < _MIN_CPU_SAMPLES):
            if any(s.metric != _UP for s in cut):
                reason = "no poll statistics, and too few samples of the CPU"
                settle = f"needs {_MIN_CPU_SAMPLES} samples of {_TOTAL}"
                return (draft(self, case).undecided(reason, InconclusiveReason.TOO_FEW, settle),)
            return (absent(self, case, "poll statistics (no source polled it)"),)
        flow = Forwarding.of(case)
        stood = None if flow is None else flow.stopped(case.window)
        silent, pinned = silent_all(case.ledgers, [s for s in cut if s.metric == _UP]), self._pinned(cpu)
        stops = self._dead(case, silent, list(self._stops(silent, pinned, stood)))
        planned = [e for e in case.events if e.expect and not e.expect.keys() <= _OF_PROCESSES]
        announced = [s for s in stops if _announced(planned, s)]
        with np.errstate(over="ignore", invalid="ignore"):  # absurd boot times may overflow
            witnesses = reboots_in(best)
        booted = [*witnesses, *(witness_of(e, "event", "") for e in case.events if e.kind == "reboot" and not e.expect)]
        gone = [s for s in stops if s not in announced and not s.last and _rebooted(booted, s.window)]
        left = [s for s in stops if s not in announced and s not in gone]
        got, due = sum(x.got for x in polled), sum(x.due for x in polled)
        doubts = list(_doubts(case, flow, silent, stood, gone, announced))
        longest = max((s.stood_s or 0.0 for s in left), default=0.0)
        finding = replace(
            draft(self, case),
            samples=got or (len(cpu) if cpu is not None else 0),
            expected=due or None,
            measured=longest,
            limit=self.seconds,
            unit="s",
            marks=tuple(Mark(s.window.begin_ns, s.window.end_ns, s.text, s.kind) for s in left[:_MAX_MARKS]),
            numbers={
                "hangs": float(sum(s.stood_s is not None for s in left)),
                "silences": float(len(silent)),
                "silent_s": sum(s.seconds for s in silent),
                "pinned_s": sum(s.seconds for s in pinned),
                "stood_s": sum(s.seconds for s in stood or ()),
                "planned": float(len(announced)),
                "reboots": float(len(gone)),
            },
            doubts=tuple(doubts),
        )
        if polled:
            least = max(self.seconds, 3 * min(x.interval_s for x in polled))
            resolution_s = 0.0 if flow is None else 2 * flow.apart_s
            finding = replace(finding, smallest_detectable=least + resolution_s, detectable_unit="s")
        return (self._outcome(case, finding, left, best, got),)

    def _dead(self, case: Case, silent: tuple[Window, ...], stops: list[_Stop]) -> list[_Stop]:
        """``stops`` and the silences that mean death: to the end of the run, or of a device watched only from
        outside."""
        window, outside = case.window, only_probed(case.ledgers)
        end = silence_to_end(case.ledgers, silent, window, self.seconds if outside else self.dead)
        windows = [] if end is None else [end]
        if outside:
            spans = (Window(s.begin_ns, min(s.end_ns, window.end_ns)) for s in silent if s.begin_ns > window.begin_ns)
            windows += [s for s in spans if s.seconds >= self.seconds and (end is None or s.begin_ns != end.begin_ns)]
        result = list(stops)
        for gone in windows:
            if comes_back(case, gone):
                continue
            text = f"has not answered since {moment(gone.begin_ns)} (to the end of the run)"
            if gone is not end:
                text = f"did not answer from {moment(gone.begin_ns)} until {moment(gone.end_ns)}"
            over = [s for s in result if s.window.begin_ns < gone.end_ns and s.window.end_ns > gone.begin_ns]
            texts = tuple(x for s in over if s.stood_s is not None for x in s.witnesses)
            result = [s for s in result if s not in over]
            of_silence = any(s.silent for s in over if s.stood_s is not None)
            result.append(_Stop(gone, (text, *texts), gone.seconds, dead=True, last=gone is end, silent=of_silence))
        return sorted(result, key=lambda s: s.window.begin_ns)

    def _outcome(
        self, case: Case, finding: Finding, left: list[_Stop], best: dict[str, Series | None], got: int
    ) -> Finding:
        hung = [s for s in left if s.stood_s is not None]
        if dead := [s for s in hung if s.dead]:
            return finding.fails(f"the device {first_few([s.text for s in dead])}")
        if hung:
            text = first_few([f"{moment(s.window.begin_ns)} for {duration(s.window.seconds)}: {s.text}" for s in hung])
            identity = [s for s in (best[m] for m in BOOT_METRICS) if s is not None]
            sure = [s for s in hung if _ends_with(s, case) or any(_same_life(each, s.window) for each in identity)]
            if sure:
                return finding.fails(f"{counted(len(hung), 'hang')}: {text}")
            reason = f"{text}; whether it rebooted meanwhile is not known"
            return finding.undecided(
                reason, InconclusiveReason.UNREAD, "poll the uptime or the boot id, then run again"
            )
        if left:
            text = first_few([f"{moment(s.window.begin_ns)} for {duration(s.window.seconds)}" for s in left])
            reason = f"no management answered: {text}; whether it forwarded traffic meanwhile is not known"
            before = [_last(best[_TOTAL], s.window.begin_ns) for s in left]
            if any(value is not None and value >= self.pinned for value in before):
                settle = "use a generator that reports received traffic, to distinguish a hang from a busy agent"
                reason += f"; the CPU was at {quantity(max(v for v in before if v is not None), '1')} just before"
                return finding.undecided(reason, InconclusiveReason.NO_REFERENCE, settle)
            return finding.warns(reason)
        cpu = best[_TOTAL]
        if not got and (cpu is None or len(cpu) < _MIN_CPU_SAMPLES):
            return finding.undecided(
                "no poll was answered", InconclusiveReason.TOO_FEW, "fix the source or the path to it"
            )
        silences = int(finding.numbers["silences"])
        quiet = f"{counted(silences, 'silence')} of all management" if silences else "management answered throughout"
        suffix = "" if finding.doubts or not silences else " while traffic was forwarded"
        return finding.passes(f"no hang: {quiet}{suffix}")

    def _pinned(self, cpu: Series | None) -> tuple[Window, ...]:
        if cpu is None or len(cpu) < _MIN_CPU_SAMPLES or busy_throughout(cpu.values, None, _MIN_CPU_SAMPLES, 0.5):
            return ()
        covered = np.round(covered_seconds(cpu.time_ns, cadence(cpu) or 1.0) * 1e9)
        positions = cpu.time_ns
        pairs = stretches(cpu.values, self.pinned, _LEAVE * self.pinned).tolist()
        return joined(Window(int(positions[i]) - int(covered[i]), int(positions[j - 1])) for i, j in pairs)

    def _stops(
        self, silent: tuple[Window, ...], pinned: tuple[Window, ...], stood: tuple[Window, ...] | None
    ) -> Iterator[_Stop]:
        """Hangs; without knowledge of forwarding, the silences that may be hangs."""
        apart_ns = round(self.seconds * 1e9)
        if stood is None:
            for span in silent:
                if span.seconds >= self.seconds:
                    yield _Stop(span, (f"no management answered for {duration(span.seconds)}",), None, silent=True)
            return
        both = common(joined([*silent, *pinned]), stood)
        for span in joined(both, apart_ns):
            stood_s = overlap_s(span, both)
            if stood_s >= self.seconds:
                texts = [f"no forwarding for {duration(overlap_s(span, stood))}"]
                for what, others in (("no management answered", silent), ("CPU fully busy", pinned)):
                    if (lasted := overlap_s(span, joined(others))) > 0:
                        texts.append(f"{what} for {duration(lasted)}")
                yield _Stop(span, tuple(texts), stood_s, silent=overlap_s(span, joined(silent)) > 0)


def _announced(planned: list[Event], stop: _Stop) -> bool:
    """Whether a planned event covers the start of the stop; one that lasts to the end it must cover entirely."""
    window = stop.window
    for event in planned:
        end = event.deadline_ns if event.deadline_ns is not None else event.end_ns
        least_ns = window.end_ns if stop.last else window.begin_ns
        if event.begin_ns <= window.end_ns and (end is None or end >= least_ns):
            return True
    return False


def _rebooted(booted: list[Witness], window: Window) -> bool:
    return any(w.begin_ns <= window.end_ns and w.end_ns >= window.begin_ns for w in booted)


def _ends_with(stop: _Stop, case: Case) -> bool:
    """Whether the stop reaches (nearly) to the end of the window: the device did not come back."""
    slack = max(1.0, _LATE * stop.window.seconds) * 1e9
    return stop.window.end_ns + slack >= case.window.end_ns


def _same_life(series: Series, window: Window) -> bool:
    """Whether the series was read before and after the window, so that a restart in it would have been seen."""
    return bool(len(series)) and bool(series.time_ns[0] <= window.begin_ns and series.time_ns[-1] >= window.end_ns)


def _last(series: Series | None, begin_ns: int) -> float | None:
    """The last reading at or before ``begin_ns``."""
    if series is None:
        return None
    index = int(np.searchsorted(series.time_ns, begin_ns, side="right"))
    return float(series.value[index - 1]) if index else None


def _doubts(
    case: Case,
    flow: Forwarding | None,
    silent: tuple[Window, ...],
    stood: tuple[Window, ...] | None,
    gone: list[_Stop],
    announced: list[_Stop],
) -> Iterator[str]:
    if flow is None:
        yield "received traffic is not known: a hang shows only as silence"
    elif case.devices > 1:
        yield f"{case.devices} devices share the load: which of them stopped is not known"
    if not case.ledgers:
        yield "no source polled it: silences are not known"
    answering_s = sum(span.seconds for span in stood or ()) - sum(overlap_s(span, silent) for span in stood or ())
    if answering_s >= 1:
        yield f"no forwarding for {duration(answering_s)} while management answered"
    if gone:
        yield f"{counted(len(gone), 'stop')} with a reboot not counted"
    if announced:
        yield f"{counted(len(announced), 'stop')} during a planned event not counted"


TRAITS: Final = Traits(
    words=RuleWords("it stopped responding or forwarding", happened="{target} stopped responding or forwarding"),
    rank=60,
    leads=Leads(whole_device=True),
    expected_as="outage",
    judges=Judges.ANSWERS,
    family=Family.CRASHES,
    guide=Guide(
        fails_when="The device stops forwarding and answering for 30 s without a reboot.",
        misses="Hangs shorter than three polls; and a cut of all paths at once looks the same.",
        change_with="hang: {seconds: 60s}",
        next_step=(
            "Read the device's console and log around the moment, and check from a second path that not the network "
            "was cut."
        ),
    ),
)
