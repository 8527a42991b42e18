"""The figures of the whole generator and of its ports, from a question or from what an older TRex publishes.

Rates are those of TRex (smoothed over about a second, times its platform factor); totals are its counters. Its own
``m_rx_drop_bps`` is left alone: TRex sets it to zero as long as less than a tenth is lost. What is under way counts
as lost in ``load.drop.estimate``, so the estimate falls again when the traffic stops and the rest arrives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from soakwatch.sources.answer_builder import AnswerBuilder
from soakwatch_trex.json_values import count, mapping, number, word

_WHOLE = {
    "m_total_tx_pkts": "load.tx.packets",
    "m_total_rx_pkts": "load.rx.packets",
    "m_total_tx_bytes": "load.tx.bytes",
    "m_total_rx_bytes": "load.rx.bytes",
    "m_tx_pps": "load.tx.packet.rate",
    "m_rx_pps": "load.rx.packet.rate",
    "m_tx_bps": "load.tx.bit.rate",
    "m_rx_bps": "load.rx.bit.rate",
}
_OFFERED = {"m_tx_expected_pps": "load.offered.packet.rate", "m_tx_expected_bps": "load.offered.bit.rate"}
_PORT = {
    "opackets": "load.port.tx.packets",
    "ipackets": "load.port.rx.packets",
    "obytes": "load.port.tx.bytes",
    "ibytes": "load.port.rx.bytes",
    "m_total_tx_pps": "load.port.tx.packet.rate",
    "m_total_rx_pps": "load.port.rx.packet.rate",
}
_ERRORS = {"oerrors": "transmit", "ierrors": "receive"}
_OF_PORT = re.compile(r"(\w+)-(\d{1,2})")
SENDING = frozenset({"TX", "PCAP_TX"})


def put_number(builder: AnswerBuilder, metric: str, raw: object, **labels: object) -> None:
    """A value as it stands in a message; one that is not a number is a fault. What is missing must not get here."""
    value = number(raw)
    if value is None:
        builder.fault(metric, f"TRex says {str(raw)[:40]!r}, which is not a number", **labels)
    builder.put(metric, value, scale=1.0, **labels)


def put_whole(builder: AnswerBuilder, raw: Mapping[str, object], ports: Mapping[int, Mapping[str, object]]) -> None:
    """The whole generator: rates, totals, offered rates where TRex knows them, queues, and the busiest of its cores."""
    for field, metric in _WHOLE.items():
        if field in raw:
            put_number(builder, metric, raw[field])
    for field, metric in _OFFERED.items():
        if number(raw.get(field)):  # 0 is "not known" in the interactive modes
            put_number(builder, metric, raw[field])
    sent, back = count(raw.get("m_total_tx_pkts")), count(raw.get("m_total_rx_pkts"))
    if sent is not None and back is not None:
        builder.put("load.drop.estimate", sent - back)
    full, dropped = count(raw.get("m_total_queue_full")), count(raw.get("m_total_queue_drop"))
    if full is not None:
        builder.put("load.queue_full", full + (dropped or 0))
    busy = [number(raw.get(field)) for field in ("m_cpu_util", "m_rx_cpu_util")]
    busy += [number(port.get("m_cpu_util")) for port in ports.values()]
    known = [share for share in busy if share is not None and share >= 0]
    if known:
        builder.put("load.cpu.utilization", min(max(known) / 100, 1.0))


def put_port(builder: AnswerBuilder, port: int, raw: Mapping[str, object]) -> None:
    """One port's totals, rates and errors."""
    for field, metric in _PORT.items():
        if field in raw:
            put_number(builder, metric, raw[field], port=port)
    for field, direction in _ERRORS.items():
        if field in raw:
            put_number(builder, "load.port.errors", raw[field], port=port, direction=direction)


def put_state(builder: AnswerBuilder, port: int, raw: Mapping[str, object]) -> bool | None:
    """One port's link; returns whether it sends, None if it does not report that."""
    up = mapping(mapping(raw.get("attr")).get("link")).get("up")
    if isinstance(up, bool):
        builder.put("load.port.up", int(up), port=port)
    state = word(raw.get("state"))
    return state in SENDING if state else None


def by_port(published: Mapping[str, object]) -> dict[int, dict[str, object]]:
    """The ports' part of the totals that an older TRex publishes, where fields end in the number of their port.

    >>> by_port({"opackets-0": 7, "m_tx_pps": 1.0, "opackets-1": 8})
    {0: {'opackets': 7}, 1: {'opackets': 8}}
    """
    ports: dict[int, dict[str, object]] = {}
    for name, value in published.items():
        match = _OF_PORT.fullmatch(name)
        if match is not None:
            ports.setdefault(int(match[2]), {})[match[1]] = value
    return ports
