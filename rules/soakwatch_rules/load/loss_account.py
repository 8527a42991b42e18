"""The account of a loss: shares of phases, standstills, and their words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.flow import CONNECTIONS, PACKETS, REQUESTS
from soakwatch_model.label import label
from soakwatch_model.series import Floats, Ints, Mask
from soakwatch_model.window import Phase, Window
from soakwatch_rules.load.offered import OVERLOADS, phases_joined, windows_by_phase
from soakwatch_rules.load.offers import PINGS, Offer
from soakwatch_rules.peers import peer_name
from soakwatch_rules.stats.distributions import gamma_cdf, gamma_quantile
from soakwatch_rules.stats.robust_level import robust
from soakwatch_rules.stats.standstill import Stop
from soakwatch_rules.wording.quantities import duration, moment, quantity

SIGMAS = 3.0
"""Standard errors from which a loss is proven."""
_BLOCKS = 32
_WORSE = 1e-4
_WORSE_TIMES = 2.0
_SURE = 0.999
_DRAIN_NS = 5 * 10**9
_AFTER_NS = 600 * 10**9  # an event without a deadline is assumed to be over this long after its end


@dataclass(frozen=True, slots=True)
class Share:
    """What was sent and lost in one phase; ``error`` is the standard error of ``lost`` from sampled rates."""

    phase: Phase
    sent: float
    lost: float
    error: float
    spread: float  # variance / mean of the losses of blocks: 1 for random losses

    @property
    def share(self) -> float:
        """Lost / sent, from 0 to 1."""
        return min(1.0, max(0.0, self.lost / self.sent)) if self.sent > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Standstill:
    """One stop. If it may be the generator that ended, ``unsure`` says when it began, as a clause.

    ``left`` is the share of the usual rate that still came; ``ended``: the generator ended and was not turned down.
    """

    stop: Stop
    window: Window
    offer: Offer
    unsure: str = ""
    left: float = 0.0
    ended: bool = False

    @property
    def text(self) -> str:
        """Start, end and duration."""
        until = "to the end of the run" if self.stop.last else f"until {moment(self.window.end_ns)}"
        if self.stop.blurred:
            much = f"as much was lost as in {duration(self.stop.lost_s)} without traffic"
            return f"from {moment(self.window.begin_ns)} {until} {much}"
        return f"from {moment(self.window.begin_ns)} {until} ({duration(self.window.seconds)})"

    @property
    def unsure_text(self) -> str:
        """The reason of an unsure stop: what was seen, and what the generator probably did."""
        rate = {REQUESTS: "rate of answers", CONNECTIONS: "rate of new connections"}.get(
            self.offer.kind, "received rate"
        )
        probably = "has probably ended" if self.ended else "was probably turned down"
        return (
            f"the {rate} fell to {percent(self.left)} {self.unsure}, for {duration(self.window.seconds)} to the end of "
            f"the run; the generator {probably}"
        )


@dataclass(slots=True)
class LossEvidence:
    """All that was found of one kind of traffic."""

    shares: list[Share] = field(default_factory=list)
    base: Share | None = None
    stops: list[Standstill] = field(default_factory=list)
    unknown: float = 0.0  # lost out of an unknown total
    losing: list[tuple[Window, float]] = field(default_factory=list)  # stretches with too much lost, and how much
    ratio: Offer | None = None
    open: list[tuple[Share, Offer]] = field(default_factory=list)  # missing, but it may not have had to come back
    blind: str = ""
    rested: str = ""  # when a generator that was silent in the baseline, and taken to rest, first reported
    readings: int = 0


def rate_is_count(offer: Offer) -> bool:
    """Whether a rate counts requests or packets, which arrive at random, and not bytes or bits."""
    return offer.series.trait.unit.startswith("{")


def intervals_of(offer: Offer) -> tuple[Ints, Ints]:
    """The begins and ends of its bins or readings."""
    if offer.bins is not None:
        return offer.bins.edges_ns[:-1], offer.bins.edges_ns[1:]
    assert offer.rate is not None
    return offer.rate.begin_ns, offer.rate.end_ns


def judged_phases(case: Case) -> tuple[Phase, ...]:
    """The phases outside of overloads, adjacent ones of one name joined; the whole run if it has no phases."""
    phases = windows_by_phase(replace(case, phases=phases_joined(case.phases)))
    return tuple(p for p in phases if p.name not in OVERLOADS)


def overload_spans(case: Case) -> list[Window]:
    """The overload phases, each extended by 5 s in which its queues drain."""
    return [Window(p.window.begin_ns, p.window.end_ns + _DRAIN_NS) for p in case.phases if p.name in OVERLOADS]


def in_announced_events(case: Case, begins: Ints, ends: Ints) -> Mask:
    """Which bins lie in an announced event (one with an intent or a deadline)."""
    return touching([_until(e) for e in case.events if e.expect or e.deadline_ns is not None], begins, ends)


def _until(event: Event) -> Window:
    end_ns = event.begin_ns if event.end_ns is None else event.end_ns
    end_ns = event.deadline_ns if event.deadline_ns is not None else end_ns + _AFTER_NS
    return Window(event.begin_ns, max(end_ns, event.end_ns or event.begin_ns))


def touching(windows: Sequence[Window], begins: Ints, ends: Ints) -> Mask:
    """Which bins touch one of these windows."""
    result = np.zeros(begins.size, dtype=bool)
    for window in windows:
        result |= (ends > window.begin_ns) & (begins < window.end_ns)
    return result


def share_of(phase: Phase, sent: Floats, lost: Floats, *, exact: bool) -> Share | None:
    """The account of a phase; None if nothing was sent."""
    total, missing = float(np.sum(sent)), float(np.sum(lost))
    if not sent.size or total <= 0:
        return None
    count = min(_BLOCKS, sent.size)
    cut = [part.sum() for part in np.array_split(lost, count)]
    blocks = np.array(cut, dtype=np.float64)
    mean = float(np.mean(blocks))
    spread = max(1.0, float(np.var(blocks)) * count / max(count - 1, 1) / mean) if mean > 0 else 1.0
    error = 0.0 if exact else robust(blocks)[1] * math.sqrt(count)
    return Share(phase, total, missing, error, spread)


def interval_of(part: Share) -> tuple[float, float]:
    """The 95 % interval of a lost share (Poisson: F. Garwood, Biometrika 28, 1936), widened by the spread of bursts."""
    lost = min(max(part.lost, 0.0), 1e15)
    low, high = gamma_quantile(lost, 0.025) if lost > 0 else 0.0, gamma_quantile(lost + 1, 0.975)
    wide = math.sqrt(min(part.spread, 1e12))
    return max(0.0, lost - wide * (lost - low)) / part.sent, min(1.0, (lost + wide * (high - lost)) / part.sent)


def provably_worse(part: Share, base: Share | None) -> bool:
    """Whether a phase certainly lost more than the baseline phase."""
    if base is None or part is base or base.sent <= 0:
        return False
    high = gamma_quantile(max(base.lost, 0.0) + 1, _SURE)
    wide = math.sqrt(base.spread)
    most = (max(base.lost, 0.0) + wide * (high - max(base.lost, 0.0))) / base.sent
    least = (part.lost - SIGMAS * (math.sqrt(part.spread * max(part.lost, 0.0)) + part.error)) / part.sent
    return part.share > base.share + _WORSE and part.share > _WORSE_TIMES * base.share and least > most


def chance_of(expected: float, came: float, number: int) -> float:
    """The expected number of stretches, out of ``number``, in which random arrivals bring ``came`` or less."""
    return number * (1 - gamma_cdf(max(came, 0.0) + 1, expected))


def subject_name(object_name: str) -> str:
    """The name of the peer or generator that a finding is about."""
    return peer_name(object_name) if label(object_name, "peer") else label(object_name, "generator") or object_name


def standstill_words(kind: str) -> str:
    """A standstill in words."""
    return {
        PINGS: "no answer",
        PACKETS: "almost no packets came back",
        REQUESTS: "no request was answered",
        CONNECTIONS: "no connection was opened",
    }[kind]


def lost_words(kind: str, part: Share) -> str:
    """The loss of a phase in words."""
    verb = "failed" if kind in {REQUESTS, CONNECTIONS} else "were lost"
    where = f" in phase {part.phase.name}" if part.phase.name else ""
    return f"{percent(part.share)} of {part.sent:,.0f} {kind} {verb}{where} ({max(part.lost, 0.0):,.0f})"


def percent(share: float) -> str:
    return quantity(share, "1")
