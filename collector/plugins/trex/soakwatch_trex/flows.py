"""Flows (packet groups) of the stateless mode: counters, loss by sequence numbers, latency, jitter.

A newer TRex answers requests and uses short names; an older one publishes changes, with long names. Loss by sequence
numbers is corrected by late packets: it is a ratio over one window, never a counter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from soakwatch.sources.answer_builder import AnswerBuilder
from soakwatch_trex.histogram import Delay, LatencyDelta, buckets, merged, put_latency, window
from soakwatch_trex.json_values import count, mapping, number, total


@dataclass(frozen=True, slots=True)
class Flow:
    """One packet group so far. ``version`` changes when its counters restart; None: not reported."""

    group: int
    version: int | None
    sent: int | None
    received: int | None
    delay: Delay | None
    lost: int | None
    disordered: int | None


def parse_pgid_stats(reply: object) -> dict[int, Flow]:
    """Flows in an answer to ``get_pgid_stats``."""
    parts = mapping(reply)
    latency, versions = mapping(parts.get("latency")), mapping(parts.get("ver_id"))
    return {
        group: Flow(
            group,
            count(versions.get(name)),
            total(raw.get("tp")),
            total(raw.get("rp")),
            *_measured(mapping(latency.get(name)), "lat", "jit", "er", ("drp", "ooo"), total(raw.get("rp"))),
        )
        for group, name, raw in _groups(parts.get("flow_stats"))
    }


def published(flow_stats: Mapping[str, object], latency_stats: Mapping[str, object]) -> dict[int, Flow]:
    """Flows from the merged messages of an older TRex."""
    return {
        group: Flow(
            group,
            None,
            total(raw.get("tx_pkts")),
            total(raw.get("rx_pkts")),
            *_measured(
                mapping(latency_stats.get(name)),
                "latency",
                "jitter",
                "err_cntrs",
                ("dropped", "out_of_order"),
                total(raw.get("rx_pkts")),
            ),
        )
        for group, name, raw in _groups(flow_stats)
    }


def _groups(raw: object) -> Iterable[tuple[int, str, Mapping[str, object]]]:
    for name, value in mapping(raw).items():  # besides the groups there is an entry for all errors
        if name.isdecimal() and len(name) <= 10:
            yield int(name), name, mapping(value)


def _measured(
    raw: Mapping[str, object], latency: str, jitter: str, errors: str, names: tuple[str, str], received: int | None
) -> tuple[Delay | None, int | None, int | None]:
    if not raw:
        return None, None, None
    part, wrong = mapping(raw.get(latency)), mapping(raw.get(errors))
    delay = None
    if part:
        average, last_max, total_max = (number(part.get(key)) for key in ("average", "last_max", "total_max"))
        histogram = buckets(mapping(part.get("histogram")))
        delay = Delay(histogram, received, average, last_max, total_max, number(part.get(jitter)))
    lost, disordered = (count(wrong.get(name, 0)) for name in names)  # answers leave out zeros
    return delay, lost, disordered


class FlowHistory:
    """Turns flows into samples; remembers the previous poll."""

    def __init__(self) -> None:
        self._before: dict[int, Flow] = {}
        self._disordered = 0

    def put(self, builder: AnswerBuilder, flows: Mapping[int, Flow]) -> list[int]:
        """Put the samples of these flows; returns the groups whose counters restarted since the previous poll."""
        windows: list[LatencyDelta] = []
        jitters: list[float] = []
        anew = []
        for group, flow in flows.items():
            before = self._before.get(group)
            if before is not None and _restarted(before, flow):
                anew.append(group)
                before = None
            self._put_counters(builder, flow, before, anew=group in anew)
            if flow.delay is None:
                continue
            part = window(before.delay, flow.delay) if before is not None and before.delay is not None else None
            if part is None:
                continue
            windows.append(part)
            put_latency(builder, "load.flow.latency", part, flow=group)
            builder.put("load.flow.jitter", flow.delay.jitter_us, scale=1e-6, flow=group)
            jitters += [flow.delay.jitter_us] if flow.delay.jitter_us is not None else []
        if windows:
            put_latency(builder, "load.latency", merged(windows))
        if jitters:
            builder.put("load.jitter", max(jitters), scale=1e-6)
        if any(flow.disordered is not None for flow in flows.values()):
            builder.put("load.disordered.packets", self._disordered)
        self._before = dict(flows)
        return anew

    def _put_counters(self, builder: AnswerBuilder, flow: Flow, before: Flow | None, *, anew: bool) -> None:
        builder.put("load.flow.tx.packets", flow.sent, flow=flow.group)
        builder.put("load.flow.rx.packets", flow.received, flow=flow.group)
        if flow.disordered is not None:
            # Accumulated here: the sum of counters of flows that come and go would decrease.
            old = before.disordered if before is not None and before.disordered is not None else 0
            self._disordered += max(flow.disordered - old, 0)
        if before is None or anew or None in (flow.lost, before.lost, flow.received, before.received):
            return
        lost, came = (flow.lost or 0) - (before.lost or 0), (flow.received or 0) - (before.received or 0)
        if came >= 0 and lost + came > 0:
            builder.put("load.flow.loss", min(max(lost / (lost + came), 0.0), 1.0), flow=flow.group)


def _restarted(before: Flow, now: Flow) -> bool:
    if before.version is not None and now.version is not None:
        return before.version != now.version
    return (before.sent or 0) > (now.sent or 0)
