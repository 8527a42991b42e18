"""Loads with and without loss: lost shares and stops, in each form in which generators report them."""

from __future__ import annotations

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.signals import readings
from soakwatch_testing.scenarios.scenario import Scenario, Signal, Truth
from soakwatch_testing.scenarios.shapes import Floats, times

S = 10**9
_PER_S = 500.0
_PING = "peer=192.0.2.1,protocol=icmp"


def _counted(metric: str, each: Floats, apart: float, object_name: str = "") -> Series:
    return readings(metric, np.cumsum(each).astype(np.uint64), apart, object=object_name)


def _series_of(kind: str, sent: Floats, lost: Floats, apart: float) -> tuple[Series, ...]:
    """The series of a form of report: two counters, or the rate of what came back."""
    back = np.maximum(sent - lost, 0)
    if kind == "packets":
        return _counted("load.tx.packets", sent, apart), _counted("load.rx.packets", back, apart)
    if kind == "packet rates":
        return (
            readings("load.tx.packet.rate", sent / apart, apart),
            readings("load.rx.packet.rate", back / apart, apart),
        )
    if kind == "requests":
        return _counted("load.requests", back, apart), _counted("load.failures", lost, apart)
    if kind == "connections":
        return (_counted("load.connections.opened", back, apart), _counted("load.connections.failed", lost, apart))
    if kind == "pings":
        return (
            _counted("reach.sent", np.ones(sent.size, dtype=np.float64), apart, _PING),
            _counted("reach.lost", (lost > 0.5 * sent).astype(np.float64), apart, _PING),
        )
    return (readings("load.request.rate", back / apart, apart),)


def losses(
    name: str, kind: str = "packets", share: float = 0.0, stop_s: float = 0.0, where: str = "soak", shape: str = ""
) -> Scenario:
    """A load of which a share is lost in a phase, or nothing comes back for a time; ``shape`` is that of the load."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng, t = np.random.default_rng(seed), times(hours, apart)
        end, wanted = float(t[-1]) + apart, np.full(t.size, _PER_S)
        edges = [0.0, 0.2 * end, 0.8 * end, 0.9 * end, end]
        if shape == "ramp":
            wanted *= np.clip(t / (0.1 * end), 0.02, 1)
        if shape == "ends":
            wanted[t >= edges[3]] = 0
        if shape == "levels":
            wanted[(t >= edges[1]) & (t < 0.5 * end)] *= 0.3
        sent = rng.poisson(wanted * apart).astype(np.float64)
        begin, until = {"soak": edges[1:3], "stress": edges[2:4], "last": (0.9 * end, end)}.get(where, (0.0, end))
        inside = (t >= begin) & (t < until)
        if kind == "pings":
            lost = np.where(inside & (rng.random(t.size) < share), sent, 0.0)
        else:
            lost = np.where(inside, rng.binomial(sent.astype(np.int64), share), 0).astype(np.float64)
        if stop_s:
            at_s = float(rng.uniform(begin, max(begin, until - 2 * stop_s)))
            covered = np.clip(np.minimum(t + apart, at_s + stop_s) - np.maximum(t, at_s), 0, apart) / apart
            lost = np.maximum(lost, np.round(sent * covered) if kind != "pings" else sent * (covered > 0.5))
        reported = _series_of(kind, sent, lost, apart)
        names = ("baseline", "soak", "stress" if where == "stress" else "load", "cooldown")
        cut = tuple(Phase(names[i], Window(round(edges[i] * S), round(edges[i + 1] * S))) for i in range(4))
        probes, load = (
            tuple(s for s in reported if s.metric.startswith("reach.")),
            tuple(s for s in reported if not s.metric.startswith("reach.")),
        )
        case = Case("dut", "", Window(0, round(end * S)), probes, phases=cut, load=load)
        return Signal(case, Truth(lost=float(lost.sum()) / max(float(sent.sum()), 1.0)))

    return Scenario("losses", name, make, 6.0, 10.0)


KINDS = ("packets", "requests", "connections", "pings")

SCENARIOS = (
    *(losses(f"{kind}: none lost", kind) for kind in (*KINDS, "packet rates", "answers")),
    *(losses(f"{kind}: 0.005 % lost", kind, 5e-5) for kind in ("packets", "requests", "connections")),
    losses("pings: 1 in 2000 lost", "pings", 5e-4),
    losses("the load comes up", shape="ramp"),
    losses("the load has levels", "answers", shape="levels"),
    losses("the load ends in the cooldown", "packets", shape="ends"),
    losses("answers end in the cooldown", "answers", shape="ends"),
    losses("half is lost under stress", "packets", 0.5, where="stress"),
    *(losses(f"{kind}: 1 % lost", kind, 0.01) for kind in (*KINDS, "packet rates")),
    *(losses(f"{kind}: 99 % lost", kind, 0.99) for kind in (*KINDS, "packet rates")),
    *(losses(f"{kind}: none for 30 s", kind, stop_s=30.0) for kind in (*KINDS, "answers")),
    losses("0.05 % lost, none before", "packets", 5e-4),
    losses("nothing for 10 min", "answers", stop_s=600.0),
    losses("nothing for 2 s", "packets", stop_s=2.0),
)
