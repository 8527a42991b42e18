"""Totals of the generator and of its ports, requested or published by an older TRex.

Rates are TRex's (smoothed over about a second, times its platform factor); totals are its counters. Its
``m_rx_drop_bps`` is not used: TRex sets it to zero while less than a tenth is lost. ``load.drop.estimate`` counts
packets in transit as lost, so it falls again when the traffic stops and they arrive.
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
    """Put a value of a message; a value that is not a number is a fault. Do not call it for missing values."""
    value = number(raw)
    if value is None:
        builder.fault(metric, f"TRex says {str(raw)[:40]!r}, which is not a number", **labels)
    builder.put(metric, value, scale=1.0, **labels)


def put_whole(builder: AnswerBuilder, raw: Mapping[str, object], ports: Mapping[int, Mapping[str, object]]) -> None:
    """Put the generator's rates, totals, offered rates if TRex knows them, full queues, and its busiest core."""
    for field, metric in _WHOLE.items():
        if field in raw:
            put_number(builder, metric, raw[field])
    for field, metric in _OFFERED.items():
        if number(raw.get(field)):  # in the interactive modes 0 means unknown
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
    """Put one port's totals, rates and errors."""
    for field, metric in _PORT.items():
        if field in raw:
            put_number(builder, metric, raw[field], port=port)
    for field, direction in _ERRORS.items():
        if field in raw:
            put_number(builder, "load.port.errors", raw[field], port=port, direction=direction)


def put_state(builder: AnswerBuilder, port: int, raw: Mapping[str, object]) -> bool | None:
    """Put one port's link; returns whether it sends, None if it does not report that."""
    up = mapping(mapping(raw.get("attr")).get("link")).get("up")
    if isinstance(up, bool):
        builder.put("load.port.up", int(up), port=port)
    state = word(raw.get("state"))
    return state in SENDING if state else None


def by_port(published: Mapping[str, object]) -> dict[int, dict[str, object]]:
    """The fields of each port in an older TRex's totals, whose names end in the port's number.

    >>> by_port({"opackets-0": 7, "m_tx_pps": 1.0, "opackets-1": 8})
    {0: {'opackets': 7}, 1: {'opackets': 8}}
    """
    ports: dict[int, dict[str, object]] = {}
    for name, value in published.items():
        match = _OF_PORT.fullmatch(name)
        if match is not None:
            ports.setdefault(int(match[2]), {})[match[1]] = value
    return ports
