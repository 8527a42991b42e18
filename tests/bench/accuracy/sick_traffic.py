"""Sick traffic: what is lost, stops, answers late or slows down of a night's load, and what a port drops."""

from __future__ import annotations

import math

import numpy as np
from tests.bench.accuracy.lives import counter
from tests.bench.accuracy.night import Floats, Mask, Night, floats
from tests.bench.accuracy.truth import DEAD, LOST, Fault, Size, Stated, Truth


def lost(ratio: float, what: str) -> Fault:
    """A lasting loss of packets, requests, connections or pings, from some time in the first half on."""

    def make(night: Night, stated: Stated) -> Truth | None:
        del stated
        since = night.at_s >= night.rng.uniform(0.05, 0.5) * night.length_s
        kind, size = f"{100 * ratio:g} % of {what} lost", Size(f"{what} lost", 100 * ratio, "%")
        if what == "packets" and night.has("load.tx.packets"):
            sent = np.diff(night.of("load.tx.packets"), prepend=0.0)
            gone = np.cumsum(np.where(since, night.rng.binomial(sent.astype(np.int64), ratio), 0))
            night.of("load.rx.packets")[:] -= gone
            port_loses(night, gone)
        elif what == "requests" and night.has("load.requests"):
            asked = np.diff(night.of("load.requests"), prepend=0.0)
            failed = np.where(since, night.rng.binomial(asked.astype(np.int64), ratio), 0)
            night.of("load.requests")[:] -= np.cumsum(failed)
            night.of("load.failures")[:] += np.cumsum(failed)
            night.of("load.request.rate")[:] *= np.where(since, 1 - ratio, 1.0)
        elif what == "connections" and night.has("load.connections.opened"):
            asked = np.diff(night.of("load.connections.opened"), prepend=0.0)
            failed = np.where(since, night.rng.binomial(asked.astype(np.int64), ratio), 0)
            night.of("load.connections.opened")[:] -= np.cumsum(failed)
            night.of("load.connections.failed")[:] += np.cumsum(failed)
        elif what == "pings" and night.has("reach.up"):
            pings_lost(night, since & (night.rng.random(since.size) < ratio))
            enough = since.sum() * ratio >= 10
            small = ratio < 0.01 or not enough
            return Truth(kind, gross=ratio >= 0.01 and enough, rules=DEAD, small=small, size=size)
        else:
            return None
        return Truth(kind, gross=ratio >= 0.01, rules=LOST, size=size)

    return make


def port_loses(night: Night, gone: Floats) -> None:
    """What the device lost it did not send."""
    name = "interface=eth2,direction=transmit"
    if name in night.objects("system.network.packets"):
        of = night.of("system.network.packets", name)
        wraps = float(np.diff(of).min(initial=0)) < 0
        of[:] = (of - gone) % 2.0**32 if wraps or float(of.max()) < 2.0**32 else of - gone


def pings_lost(night: Night, gone: Mask) -> None:
    name = night.objects("reach.up")[0]
    night.of("reach.up", name)[gone] = 0.0
    night.of("reach.lost", name)[:] += np.cumsum(gone)
    night.of("reach.round_trip", name)[gone] = np.nan


def back_stops(night: Night, gone: Mask) -> bool:
    """Nothing comes back of the load in these polls, though it is offered; False where there is no load."""
    if night.has("load.rx.packets"):
        back = np.diff(night.of("load.rx.packets"), prepend=0.0)
        night.of("load.rx.packets")[:] = np.cumsum(np.where(gone, 0.0, back))
        port_loses(night, np.cumsum(np.where(gone, back, 0.0)))
        return True
    if night.has("load.requests"):
        done = np.diff(night.of("load.requests"), prepend=0.0)
        night.of("load.requests")[:] = np.cumsum(np.where(gone, 0.0, done))
        night.of("load.request.rate")[gone] = 0.0
        return True
    return False


def stops(seconds: float) -> Fault:
    """Traffic stops for so long; ``inf``: and does not come back."""

    def make(night: Night, stated: Stated) -> Truth | None:
        del stated
        if math.isfinite(seconds) and seconds > 0.2 * night.length_s:
            return None
        since = night.rng.uniform(0.25, 0.75) * night.length_s
        if math.isfinite(seconds) and night.is_announced(since, since + seconds):
            return None
        gone = (night.at_s > since) & (night.at_s <= since + seconds)
        kind = f"traffic stops for {seconds:g} s" if math.isfinite(seconds) else "traffic stops to the end"
        if seconds < night.cadence_s:
            return _part_of_a_poll(night, since, seconds, kind)
        if not back_stops(night, gone):
            return None
        small = seconds < min(10, 0.001 * night.length_s)
        return Truth(kind, gross=seconds >= 10, rules=LOST, small=small, size=_standstill(seconds))

    return make


def _standstill(seconds: float) -> Size:
    return Size("traffic stops", seconds, "s")


def _part_of_a_poll(night: Night, since: float, seconds: float, kind: str) -> Truth | None:
    """A stop that is shorter than a poll: the poll after it lacks that part."""
    index = int(np.searchsorted(night.at_s, since))
    part = seconds / night.cadence_s
    for metric in ("load.rx.packets", "load.requests"):
        if night.has(metric):
            each = np.diff(night.of(metric), prepend=0.0)
            night.of(metric)[index:] -= round(part * each[index])
            if metric == "load.requests":
                night.of("load.request.rate")[index] *= 1 - part
            else:
                gone = np.zeros(each.size)
                gone[index:] = round(part * each[index])
                port_loses(night, gone)
            seen = seconds >= 10 and part >= 0.15
            return Truth(kind, gross=seen, rules=LOST, small=not seen, size=_standstill(seconds))
    return None


def latency(times: float) -> Fault:
    """Answers take so many times as long from some time on."""

    def make(night: Night, stated: Stated) -> Truth | None:
        del stated
        since = night.at_s >= night.rng.uniform(0.3, 0.7) * night.length_s
        if night.length_s < 600:
            return None
        if night.has("load.latency"):
            for name in night.objects("load.latency"):
                night.of("load.latency", name)[since] *= times
        elif night.has("reach.round_trip"):
            name = night.objects("reach.round_trip")[0]
            night.of("reach.round_trip", name)[since] = (
                night.of("reach.round_trip", name)[since] * times + 0.002 * times
            )
        else:
            return None
        rules = ("latency", "step_change", "recovery", "growth")
        return Truth(f"latency x{times:g}", gross=False, rules=rules, size=Size("latency", times, "times as long"))

    return make


def slower(share: float, course: str) -> Fault:
    """Throughput falls by a step or by a decline; where an offered rate is known, the rest is lost."""

    def make(night: Night, stated: Stated) -> Truth | None:
        del stated
        if night.hours < 4:
            return None
        begin = night.rng.uniform(0.3, 0.7)
        done_share = night.at_s / night.length_s
        fall = share * (done_share >= begin if course == "step" else done_share)
        kind = f"throughput -{100 * share:g} % by {course}"
        if night.has("load.rx.packets"):
            back = np.diff(night.of("load.rx.packets"), prepend=0.0)
            less = np.round(back * fall)
            night.of("load.rx.packets")[:] -= np.cumsum(less)
            port_loses(night, np.cumsum(less))
        elif night.has("load.requests"):
            done = np.diff(night.of("load.requests"), prepend=0.0)
            night.of("load.requests")[:] -= np.cumsum(np.round(done * fall))
            night.of("load.request.rate")[:] *= 1 - fall
        else:
            return None
        requests = not night.has("load.tx.packets")  # packets that do not come back are lost, requests may be not asked
        unknown = requests and not night.has("load.offered.rate") and "daily load" in night.traits
        small = requests and share <= (0.3 if unknown else 0.05)
        size = Size(f"throughput lower by a {course}", 100 * share, "%")
        return Truth(kind, gross=False, rules=(*LOST, "run_difference", "level"), small=small, size=size)

    return make


def lying_generator(night: Night, stated: Stated) -> Truth | None:
    """The generator says that all came back; the device's own port sent a tenth less than it took in."""
    del stated
    if "port counters" not in night.traits:
        return None
    sent = np.diff(night.of("load.tx.packets"), prepend=0.0)
    port_loses(night, np.cumsum(np.round(0.1 * sent)))
    return Truth("generator lies", gross=False, rules=(*LOST, "generator_health"))


def dropping(night: Night, stated: Stated) -> Truth | None:
    """A port drops packets now and then, from some time on."""
    del stated
    names = night.objects("system.network.packet.dropped")
    if not names:
        return None
    name = names[0]
    since = night.at_s >= night.rng.uniform(0.2, 0.6) * night.length_s
    night.of("system.network.packet.dropped", name)[:] = counter(night, floats(since * 5.0 * night.cadence_s))
    return Truth("drops at a port", gross=False, rules=("drops", "loss"), objects=(name,))
