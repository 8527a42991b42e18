"""Drops: packets that the device counted as dropped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, Outcome
from soakwatch_model.flow import PACKETS
from soakwatch_model.series import Mask, Series
from soakwatch_model.window import Phase
from soakwatch_rules.finding_draft import draft, each_series
from soakwatch_rules.load.background_drops import why_not_test_traffic
from soakwatch_rules.load.load_account import LoadAccount
from soakwatch_rules.load.offered import OVERLOADS, own_loss, windows_by_phase
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.sampling import spacing, unseen
from soakwatch_rules.stats.counted_amounts import Steps, amounts, restarts, steps
from soakwatch_rules.stats.distributions import binomial_above, gamma_quantile
from soakwatch_rules.traits import Family, Guide, Marks, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, digits, duration, first_few, moment, plural, quantity

_SLACK_NS = 5 * 10**9  # added to both ends of a planned phase
_MARKS = 20
_GAP = 3.0  # median distances: a longer step is a gap
_POWER = 0.8
_IDLE = 0.01  # share of the highest rate below which a generator is idle
_BACKGROUND_P = 0.01
_BROKEN = frozenset({"system.network.errors"})
"""Frames that arrived damaged: the generator may have sent them so, or its own wire damaged them."""


@dataclass(frozen=True, slots=True)
class _Part:
    phase: Phase
    dropped: float
    offered: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Drops(Parameters):
    """Fails if a counter of dropped packets rose outside of the phases that overload the device on purpose.

    Per phase, dropped / offered > ``ratio`` fails. Dropped is the increase of the device's counter; offered is the
    increase of the generators' load.tx.packets (else their rates times time) in the same stretch. With the default
    ``ratio`` of 0 a single drop fails, with or without a load; above 0 the load must be known and at least 1/``ratio``
    packets offered. Drops in phases named stress or spike (extended by 5 s at each end) are reported and do not fail.

    Three kinds of drops do not fail:
    * Background (warning): the counter also rose while the generators were idle (under 1 % of their highest rate), and
      drops under load are no more frequent (p >= 1 %, conditional binomial test).
    * Not traffic of the test, such as ARP, LLDP, warm-up (warning): every packet that the generators counted as sent
      came back, and the drops fell in the first minute of the load or come at an even rate
      (``load/background_drops.py``).
    * Damaged frames (``system.network.errors``; inconclusive) up to the share that the generators lose by themselves,
      looped back (``load.ceiling.loss``). Other drops arrived intact, so the generator's own loss explains none.

    Counters wrap (see ``Series``). One that falls below half has restarted: what it shows then is counted; what it
    counted between the last reading and the restart is lost, and the finding says so. A gap can hide a restart; unread
    ends of the window can hide drops (inconclusive). A pass states the ratio whose drops this run would have shown with
    80 % probability (1.61 / offered), and as interval the rule of three: at most 3 / offered at 95 %.

    How often wrong: it counts and does not estimate. Of 1000 runs with Poisson drops at the stated detectable ratio,
    79 % failed with a ``ratio`` of 0 and 82 % with one of 1e-6; of 2000 runs with equal rates idle and loaded 0.7 %
    failed, of those with three times the rate under load 99.9 %. Known weaknesses: real drops come in bursts, so the
    stated ratio is optimistic for rare ones; interface counters also count frames that nobody sent to the device
    (unknown protocols, foreign VLANs): measure an idle baseline, or set a ratio.

    Neighbours: ``overload_loss`` judges stress and spike phases; ``generator_health`` reports what never left the
    generator; ``queue_growth`` sees a queue fill before it drops; ``event_impact`` measures what an event lost.

    Parameters: ``ratio`` (below).

    >>> import numpy as np
    >>> from soakwatch_model.case import Case
    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import counter
    >>> none = counter("queue.dropped", np.zeros(60, dtype=np.int64), 1.0, start=7)
    >>> three = counter("queue.dropped", np.eye(60, dtype=np.int64)[30] * 3, 1.0)
    >>> for series in (none, three):
    ...     print(Drops().judge(Case("dut", "", Window(0, 60 * 10**9), (series,)))[0].outcome)
    pass
    fail

    References: J. Hanley, A. Lippman-Hand, If nothing goes wrong, is everything all right?, JAMA 249, 1983 (rule of
    three); RFC 2544 section 26.3 (frame loss rate; one trial a load, no word on how many frames it takes); RFC 7799.
    """

    name: ClassVar[str] = "drops"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "the device dropped packets outside of overload phases"
    metrics: ClassVar[tuple[str, ...]] = (
        "system.network.packet.dropped",
        "system.network.errors",
        "system.softnet.dropped",
        "system.udp.receive_errors",
        "system.tcp.receive_errors",
        "queue.dropped",
        "system.forwarding.dropped",
        "system.ip.dropped",
    )
    scope: ClassVar[Literal["object", "metric", "target"]] = "metric"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec("two samples, one near each end of the window; 1/ratio packets offered")

    ratio: float = parameter(
        0.0, "1", "allowed dropped packets per packet offered", "a soak loses nothing", within="[0, 1)"
    )

    def definition(self) -> str:
        return (
            f"outside of phases named stress or spike, at most {self.ratio:g} of the packets offered may be "
            "dropped according to the device's own counters; drops that are as frequent with idle generators, and "
            "those in the first minute or at an even rate while no packet of the test is lost, only warn"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a counter."""
        return each_series(self, case, "counter of dropped packets", self._of)

    def _of(self, case: Case, series: Series) -> Finding:
        series = series.between(case.window.begin_ns, case.window.end_ns).finite()
        finding, n = draft(self, case, series), len(series)
        if n < 2:
            reason = f"{counted(n, 'sample')} of the counter; 2 needed"
            return finding.undecided(reason, InconclusiveReason.TOO_FEW, "needs 2 samples")
        load = LoadAccount.of(case.load).into(PACKETS)
        taken = steps(series)
        overloaded = _in_overload(taken, case)
        cut = windows_by_phase(case)
        every = _account(cut, taken, overloaded, load)
        judged = [part for part in every if part.phase.name not in OVERLOADS]
        planned = float(np.nansum(taken.count[overloaded]))
        dropped, offered = (sum(getattr(p, field) for p in judged) for field in ("dropped", "offered"))
        seconds, again = sum(p.seconds for p in judged), restarts(series)
        known = offered > 0
        per, unit = (offered, "1") if known else (seconds, f"{series.trait.unit}/s")
        allowed = self.ratio * offered if known else 0.0
        finding = replace(
            finding,
            unit=unit,
            limit=self.ratio if unit == "1" or self.ratio == 0 else None,
            measured=_share(dropped, per),
            interval=_interval(dropped, per),
            smallest_detectable=_share(float(gamma_quantile(math.floor(min(allowed, 1e15)) + 1, _POWER)), per),
            detectable_unit=unit,
            numbers={
                "dropped": dropped,
                "offered": offered,
                "seconds": seconds,
                "planned": planned,
                "restarts": float(again),
            }
            | _by_phase(every),
            marks=_marks(taken, overloaded),
            doubts=tuple(_doubts(taken, again, planned, series, load)),
        )
        of_others = why_not_test_traffic(case, taken, ~overloaded) if self.ratio == 0 and dropped > 0 else ""
        result = self._conclude(case, finding, series, judged, (dropped, offered, seconds), of_others)
        # A generator whose calibrated loss is at least as large explains broken packets.
        own = own_loss(case.load) or 0.0
        unexplained = series.metric not in _BROKEN or any(p.dropped > own * p.offered for p in judged)
        if result.outcome is not Outcome.FAIL or own <= 0 or unexplained:
            return result
        reason = (
            f"{result.reason}; the generator itself loses up to {quantity(own, '1')} (calibrated), which explains it"
        )
        settle = "fix the generator's own loss and calibrate again"
        result = replace(result, numbers=dict(result.numbers) | {"own_loss": own})
        return result.undecided(reason, InconclusiveReason.GENERATOR, settle)

    def _conclude(
        self,
        case: Case,
        finding: Finding,
        series: Series,
        judged: list[_Part],
        sums: tuple[float, float, float],
        of_others: str,
    ) -> Finding:
        dropped, offered, seconds = sums
        known, least = finding.unit == "1", 1 / self.ratio if self.ratio > 0 else 0.0
        much = f"{digits(dropped)} {_noun(series)} in {duration(seconds)}"
        much += f", {digits(offered)} packets offered" if known else ""
        over = [p for p in judged if p.dropped > self.ratio * p.offered and (self.ratio == 0 or p.offered >= least)]
        # With no drop allowed, drops fail unless idle generators see as many, or they were not traffic of the test.
        if self.ratio == 0 and dropped > 0:
            text = first_few([f"{moment(m.begin_ns)}: {m.text}" for m in finding.marks if not m.planned])
            if background := _background(judged):
                rate = quantity(background, f"{series.trait.unit}/s")
                reason = f"{much}, no more often than with idle generators ({rate}): {text}"
                return finding.warns(reason)
            if of_others:
                return finding.warns(f"{much}, {of_others}: {text}")
            return finding.fails(f"{much}: {text}")
        if self.ratio > 0 and known and over:
            worst = max(over, key=lambda p: p.dropped / p.offered)
            share, name = worst.dropped / worst.offered, worst.phase.name or "run"
            allowed = quantity(self.ratio, "1")
            reason = (
                f"{quantity(share, '1')} of what was offered was dropped in phase {name}; allowed {allowed}: {much}"
            )
            return finding.fails(reason)
        # A pass needs readings near both ends and, for a ratio, enough packets known to be offered.
        if blind := unseen(series.time_ns, case.window):
            return finding.undecided(blind, InconclusiveReason.GAP, "poll the counter near both ends of the window")
        if self.ratio > 0 and not known and dropped > 0:
            reason = (
                f"{much}; the number of packets offered is not known, so it cannot be compared with the limit of "
                f"{self.ratio:g}"
            )
            settle = "record what the generator sends (load.tx.packets)"
            return finding.undecided(reason, InconclusiveReason.NO_REFERENCE, settle)
        if self.ratio > 0 and known and offered < least:
            reason = f"{much}: too few packets to verify a ratio of {self.ratio:g}"
            settle = f"offer {digits(least - offered)} more packets"
            return finding.undecided(reason, InconclusiveReason.TOO_SHORT, settle)
        if seconds <= 0:
            reason = "the whole window is stress or spike: judged by overload_loss"
            return finding.not_applicable(reason)
        if dropped > 0:
            return finding.passes(f"{much}; allowed {self.ratio:g}")
        text = f"; {digits(finding.numbers['planned'])} in planned overload" if finding.numbers["planned"] > 0 else ""
        within = f" and {digits(offered)} packets offered" if known else ""
        return finding.passes(f"none dropped in {duration(seconds)}{within}{text}")


def _in_overload(taken: Steps, case: Case) -> Mask:
    """Which steps of the counter touch a stress or spike phase, extended by 5 s at each end."""
    overloaded = np.zeros(taken.count.size, dtype=bool)
    for phase in case.phases:
        if phase.name in OVERLOADS:
            begin_ns, end_ns = phase.window.begin_ns - _SLACK_NS, phase.window.end_ns + _SLACK_NS
            overloaded |= (taken.end_ns > begin_ns) & (taken.begin_ns < end_ns)
    return overloaded


def _account(
    cut: Sequence[Phase],
    taken: Steps,
    overloaded: Mask,
    load: tuple[Series, ...],
) -> list[_Part]:
    result = []
    edges = np.array([phase.window.begin_ns for phase in cut] + [cut[-1].window.end_ns], dtype=np.int64)
    offered = amounts(load, edges).tolist() if cut else []
    known = np.isfinite(taken.count)
    for phase, sent in zip(cut, offered, strict=True):
        begin_ns, end_ns = phase.window.begin_ns, phase.window.end_ns
        first, last = np.searchsorted(taken.end_ns, [begin_ns, end_ns], side="right")
        own = known[first:last] & (overloaded[first:last] == (phase.name in OVERLOADS))
        dropped = float(taken.count[first:last][own].sum())
        here = slice(first, int(np.searchsorted(taken.begin_ns, end_ns)))  # with the step that reaches over its end
        covered = np.minimum(taken.end_ns[here], end_ns) - np.maximum(taken.begin_ns[here], begin_ns)
        result.append(_Part(phase, dropped, sent, float(covered[known[here]].sum() * 1e-9)))
    return result


def _background(judged: Sequence[_Part]) -> float | None:
    """The rate of drops while the generators are idle, if drops under load are no more frequent; else None."""
    rate = max((p.offered / p.seconds for p in judged if p.seconds > 0), default=0.0)
    idle = [p for p in judged if p.offered <= _IDLE * rate * p.seconds]
    idle_s, idle_n = sum(p.seconds for p in idle), sum(p.dropped for p in idle)
    all_s, all_n = sum(p.seconds for p in judged), sum(p.dropped for p in judged)
    if rate <= 0 or idle_s <= 0 or idle_n <= 0 or all_n > 1e9:
        return None
    busy_n = all_n - idle_n
    p_value = 1.0 if busy_n < 1 else binomial_above(round(busy_n) - 1, round(all_n), 1 - idle_s / all_s)
    return idle_n / idle_s if p_value >= _BACKGROUND_P else None


def _interval(dropped: float, per: float) -> tuple[float, float] | None:
    """The 95 % interval of a Poisson rate (F. Garwood, Biometrika 28, 1936); without drops 0 to the rule of three."""
    if per <= 0 or dropped > 1e15:
        return None
    if dropped <= 0:
        return 0.0, _share(gamma_quantile(1.0, 0.95), per) or 0.0
    low, high = gamma_quantile(dropped, 0.025), gamma_quantile(dropped + 1, 0.975)
    return _share(low, per) or 0.0, _share(high, per) or 0.0


def _share(number: float, per: float) -> float | None:
    return number / per if per > 0 and math.isfinite(number / per) else None


def _by_phase(every: Sequence[_Part]) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for part in every:
        if part.phase.name:
            for what, value in (("dropped", part.dropped), ("offered", part.offered)):
                key = f"{what}_{part.phase.name}"
                numbers[key] = numbers.get(key, 0.0) + value
    return numbers


def _marks(taken: Steps, overloaded: Mask) -> tuple[Mark, ...]:
    """The first 20 stretches in which the counter rose, each from the reading before its first rise to its last."""
    rose = np.append(False, np.append(np.nan_to_num(taken.count) > 0, False))
    begins, ends = np.flatnonzero(rose[1:] & ~rose[:-1]), np.flatnonzero(~rose[1:] & rose[:-1])
    result = []
    for begin, end in list(zip(begins.tolist(), ends.tolist(), strict=True))[:_MARKS]:
        planned = bool(overloaded[begin:end].any())
        how = " (planned overload)" if planned else ""
        text = f"{digits(float(taken.count[begin:end].sum()))} lost{how}"
        result.append(Mark(int(taken.begin_ns[begin]), int(taken.end_ns[end - 1]), text, planned=planned))
    return tuple(result)


def _doubts(taken: Steps, again: int, planned: float, series: Series, load: tuple[Series, ...]) -> list[str]:
    doubts = []
    if again:
        doubts.append(f"the counter was reset {counted(again, 'time')}: what it counted just before is not known")
    if planned > 0:
        doubts.append(f"{digits(planned)} {_noun(series)} in stress or spike phases were not counted")
    if not load:
        doubts.append("the number of packets offered is not known: drops are given per second, not as a ratio")
    apart = spacing(series)
    longest = float(taken.seconds.max(initial=0.0))
    if apart is not None and longest > _GAP * apart:
        doubts.append(
            f"a gap of {duration(longest)}: the time of drops in it is not exact, and a counter reset in it "
            "would go unnoticed"
        )
    return doubts


def _noun(series: Series) -> str:
    noun = series.trait.unit.strip("{}")
    return "lost" if noun == "1" else f"{plural(noun)} lost"


TRAITS: Final = Traits(
    words=RuleWords("packets were lost", "packets lost", happened="{target} dropped packets"),
    rank=100,
    marks=Marks.WITNESSES,
    family=Family.TRAFFIC,
    guide=Guide(
        fails_when=(
            "The device's own counters say that packets were dropped outside stress phases, and more than while the "
            "load is idle."
        ),
        misses="Losses that the device does not count.",
        change_with="drops: {ratio: 0.001%}",
        next_step=(
            "Find the counter's place (interface, queue, socket) in the finding and compare its times with the load: "
            "bursts need buffers, steady drops need capacity."
        ),
    ),
)
