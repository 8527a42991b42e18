"""ASTF's own statistics besides the totals: counters of its TCP and UDP stacks, and latency of its probes.

Counters are sent by number, without those that are zero; a description maps names to numbers. TRex plays both ends:
connections are counted at the clients, where they begin, retransmitted segments at both.
"""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.sources.answer_builder import AnswerBuilder
from soakwatch_trex.histogram import Delay, LatencyDelta, buckets, merged, put_latency, window
from soakwatch_trex.json_values import count, listing, mapping, number, word
from soakwatch_trex.totals import put_number

_OPENED = ("tcps_connects", "udps_connects")
_FAILED = ("tcps_conndrops", "tcps_drops", "udps_keepdrops")
_RETRANSMITS = ("tcps_sndrexmitpack",)
_MAX_COUNTERS = 4096
_MAX_PORT_DIGITS = 4


def described(reply: object) -> dict[str, int]:
    """Counter numbers by name, from ``get_counter_desc``; empty before any traffic."""
    items = [mapping(item) for item in listing(mapping(reply).get("data"))[:_MAX_COUNTERS]]
    pairs = [(word(item.get("name")), count(item.get("id"))) for item in items]
    return {name: number for name, number in pairs if name and number is not None}


def put_counters(builder: AnswerBuilder, reply: object, numbers: Mapping[str, int]) -> dict[str, int]:
    """Put connections and retransmitted segments; returns them by metric, empty before any traffic."""
    raw = mapping(reply)
    clients, servers = mapping(raw.get("client")), mapping(raw.get("server"))
    if not numbers or not raw:
        return {}
    sums = {
        "load.connections.opened": _put_sum(builder, "load.connections.opened", _OPENED, numbers, clients),
        "load.connections.failed": _put_sum(builder, "load.connections.failed", _FAILED, numbers, clients),
        "load.retransmits": _put_sum(builder, "load.retransmits", _RETRANSMITS, numbers, clients, servers),
    }
    return {metric: value for metric, value in sums.items() if value is not None}


def put_open(builder: AnswerBuilder, reply: object, numbers: Mapping[str, int], whole: Mapping[str, object]) -> None:
    """Put open connections: those of the clients, or of the totals if the counters lack them."""
    if "m_active_flows" in numbers and mapping(reply):
        _put_sum(builder, "load.connections", ("m_active_flows",), numbers, mapping(mapping(reply).get("client")))
    elif "m_active_flows" in whole:
        put_number(builder, "load.connections", whole["m_active_flows"])
    if "m_tx_cps" in whole:
        put_number(builder, "load.connection.rate", whole["m_tx_cps"])


def _put_sum(
    builder: AnswerBuilder,
    metric: str,
    names: tuple[str, ...],
    numbers: Mapping[str, int],
    *sides: Mapping[str, object],
) -> int | None:
    """Put the sum of the counters that the description has; one that is not sent is zero."""
    raw = [side.get(str(numbers[name]), 0) for side in sides for name in names if name in numbers]
    values = [value for value in map(count, raw) if value is not None]
    if len(values) < len(raw):
        builder.fault(metric, "TRex sent a counter that is not a whole number")
        return None
    if not raw:
        return None
    builder.put(metric, sum(values))
    return sum(values)


class Probes:
    """The latency probes of all ports; remembers the previous poll."""

    def __init__(self) -> None:
        self._before: dict[str, Delay] = {}

    def put(self, builder: AnswerBuilder, reply: object) -> None:
        """Put latency and jitter of the packets since the previous poll, if the probes are on."""
        now = {
            name: _delay(mapping(part))
            for name, part in mapping(mapping(reply).get("data")).items()
            if name.startswith("port-") and len(name) < len("port-") + _MAX_PORT_DIGITS
        }
        parts: list[LatencyDelta] = []
        jitters: list[float] = []
        for name, delay in now.items():
            part = window(self._before[name], delay) if name in self._before else None
            if part is not None:
                parts.append(part)
                jitters += [delay.jitter_us] if delay.jitter_us is not None else []
        self._before = now
        if parts:
            put_latency(builder, "load.latency", merged(parts))
        if jitters:
            builder.put("load.jitter", max(jitters), scale=1e-6)


def _delay(raw: Mapping[str, object]) -> Delay:
    part = mapping(raw.get("hist"))
    pairs = [mapping(item) for item in listing(part.get("histogram"))]
    counts = buckets({str(item.get("key"))[:8]: item.get("val") for item in pairs})
    packets, slow = count(part.get("cnt")), count(part.get("high_cnt"))
    if packets is not None and slow is not None and packets > slow:
        counts[0] = packets - slow
    average, last_max, total_max = (number(part.get(key)) for key in ("s_avg", "s_max", "max_usec"))
    return Delay(counts, packets, average, last_max, total_max, number(mapping(raw.get("stats")).get("m_jitter")))
