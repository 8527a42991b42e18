"""Outages of known length for the tests of ``event_impact``: traffic, probes, and the event that was reported."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from soakwatch_model.case import Case, Ledger
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.detectors.event_impact import EventImpact
from soakwatch_rules.signals import readings
from soakwatch_testing.rule_checks import check_complete

S = 10**9
N = 1200
AT = 300.4  # when the path breaks, in seconds


def stopped(begin: float, lasts: float, share: float = 1.0, n: int = N) -> np.ndarray:
    """The share of each second in which nothing comes through."""
    edge = np.arange(n + 1.0)
    inside = np.clip(np.minimum(edge[1:], begin + lasts) - np.maximum(edge[:-1], begin), 0, 1)
    return np.asarray(share * inside)


def packets(down: np.ndarray, rate: float = 1000.0) -> tuple[Series, Series]:
    """Counters of what is sent and comes back, read each second."""
    sent = np.append(0.0, np.cumsum(np.full(down.size, rate)))
    back = np.append(0.0, np.cumsum(rate * (1 - down)))
    return readings("load.tx.packets", np.round(sent), 1.0), readings("load.rx.packets", np.round(back), 1.0)


def pings(begin: float, lasts: float, interval: float = 0.2, peer: str = "gw", each: int = 1) -> tuple[Series, ...]:
    """Probes of one peer: whether it answered, how many were sent and lost."""
    positions = np.arange(int(N / interval)) * interval
    up = np.where((positions >= begin) & (positions < begin + lasts), 0.0, 1.0)
    name = f"peer={peer},protocol=icmp"
    counts = each * np.arange(1.0, positions.size + 1), each * np.cumsum(1 - up)
    return (
        readings("reach.up", up, interval, object=name),
        readings("reach.sent", counts[0], interval, object=name),
        readings("reach.lost", counts[1], interval, object=name),
    )


def failover(at_s: float = 300.0, **more: object) -> Event:
    """An event that a tester recorded."""
    return replace(Event("failover", "dut", "", round(at_s * S), None), **more)  # type: ignore[arg-type]


def judge(
    *events: Event,
    load: tuple[Series, ...] = (),
    series: tuple[Series, ...] = (),
    rule: EventImpact | None = None,
    phases: tuple[Phase, ...] = (),
    devices: int = 1,
    ledgers: tuple[Ledger, ...] = (),
    end: int = N,
) -> Finding:
    """The one finding on the device."""
    case = Case(
        "dut", "", Window(0, end * S), series, phases=phases, events=events, load=load, devices=devices, ledgers=ledgers
    )
    result = rule or EventImpact()
    (finding,) = result.judge(case)
    check_complete(result, case, finding)
    return finding
