"""Converts Pktgen's tables to metrics of the catalogue, with the names of all versions since 2014.

``portStats(ports, "port")`` are totals since the last ``clr``, ``portStats(ports, "rate")`` those of the last second.
Since 2026 there is one ``portStats(ports)`` with ``curr`` and ``ext``, and no rates. Bits are those of frames as DPDK
counts them: without preamble and gap, and mostly without the checksum.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from soakwatch.sources.answer_builder import AnswerBuilder, mean_by, whole
from soakwatch_model.tree import Tree
from soakwatch_pktgen.lua_text import LuaTables, Table, Value

TOTALS, RATES, LINKS, SENDING, PACKETS, INFO = "totals", "rates", "links", "sending", "packets", "info"
"""Names under which the tables are requested."""

_SETTINGS = ("pkt_size", "tx_count", "tx_burst", "rx_burst", "mac_addr", "pci_addr", "vlanid")
_PORT_COUNTERS = {
    "load.port.tx.packets": "opackets",
    "load.port.rx.packets": "ipackets",
    "load.port.tx.bytes": "obytes",
    "load.port.rx.bytes": "ibytes",
}
_ERRORS = (("rx", ("ierrors",)), ("tx", ("oerrors",)), ("missed", ("imissed", "rx_nombuf")))
_LINK = re.compile(r"up(?:-(\d+))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Ports:
    """The tables of an answer, each by port."""

    totals: Mapping[int, Table]
    rates: Mapping[int, Table]
    packets: Mapping[int, Table]
    info: Mapping[int, Table]
    links: Mapping[int, Value]
    sending: Mapping[int, Value]


def ports_of(answer: LuaTables) -> Ports:
    """The tables in an answer; missing ones are empty."""
    totals = _tables(answer, TOTALS)
    extended = {port: table["ext"] for port, table in totals.items() if isinstance(table.get("ext"), dict)}
    return Ports(
        {port: _inner(table, "curr") for port, table in totals.items()},
        _tables(answer, RATES),
        _tables(answer, PACKETS) or {port: table for port, table in extended.items() if isinstance(table, dict)},
        _tables(answer, INFO),
        _numbered(answer, LINKS),
        _numbered(answer, SENDING),
    )


def counts_nothing(ports: Ports) -> bool:
    """Whether it reports that it sends but has counted no packet on any port.

    Normal for a moment after the start. If it lasts, it is the defect of versions 23.10 to 24.03, whose Lua library
    reads variables that nothing writes (Pktgen bug 235).
    """
    counted = [table.get(key) for table in ports.totals.values() for key in ("opackets", "ipackets")]
    return is_sending(ports) is True and bool(counted) and all(count == 0 for count in counted)


def is_sending(ports: Ports) -> bool | None:
    """Whether any port sends; None if some states are unknown."""
    states = [_truth(state) for state in ports.sending.values()]
    if True in states:
        return True
    return False if states and None not in states else None


def put_counters(builder: AnswerBuilder, ports: Ports) -> None:
    """Put counters and errors of ports, and the totals."""
    for metric, key in _PORT_COUNTERS.items():
        counts = {port: _count(builder, metric, port, table, key) for port, table in ports.totals.items()}
        for port, count in counts.items():
            builder.put(metric, count, port=port)
        builder.put(metric.replace(".port", ""), whole(counts.values()))
    for port, table in ports.totals.items():
        for direction, keys in _ERRORS:
            parts = [_count(builder, "load.port.errors", port, table, key, direction) for key in keys if key in table]
            builder.put("load.port.errors", whole(parts), port=port, direction=direction)
    failed = [
        _count(builder, "load.queue_full", None, table, "tx_failed")
        for table in ports.packets.values()
        if "tx_failed" in table
    ]
    builder.put("load.queue_full", whole(failed))


def put_rates(builder: AnswerBuilder, ports: Ports) -> None:
    """Put rates of ports, and the totals; nothing for versions without rates."""
    for side, keys in (("tx", ("pkts_tx", "opackets")), ("rx", ("pkts_rx", "ipackets"))):
        metric = f"load.port.{side}.packet.rate"
        rates = {port: _gauge(builder, metric, port, table, keys) for port, table in ports.rates.items()}
        for port, rate in rates.items():
            builder.put(metric, rate, port=port)
        builder.put(f"load.{side}.packet.rate", whole(rates.values()))
    for side, key, millions in (("tx", "obytes", "mbits_tx"), ("rx", "ibytes", "mbits_rx")):
        metric = f"load.{side}.bit.rate"
        builder.put(metric, whole(_bits(builder, metric, table, key, millions) for table in ports.rates.values()))


def put_state(builder: AnswerBuilder, ports: Ports) -> None:
    """Put link states, and whether it sends."""
    for port, state in ports.links.items():
        if isinstance(state, str) and state:
            up = _LINK.search(state) is not None
            builder.put("load.port.up", int(up), port=port)
        else:
            builder.fault("load.port.up", f"{state!r} is not a link state", port=port)
    sending = is_sending(ports)
    if sending is None:
        builder.fault("load.sending", "Pktgen does not report of every port whether it sends")
    else:
        builder.put("load.sending", int(sending))


def put_latency(builder: AnswerBuilder, ports: Ports) -> None:
    """Put latency over all ports that measure it (``latency all enable``); zero means not measured.

    Minimum and maximum are since Pktgen's last ``clr``. Older versions report whole microseconds, and the minimum and
    maximum of the means that were read.
    """
    low, high, means = [], [], []
    for table in ports.packets.values():
        inner = table.get("latency")
        counters = inner if isinstance(inner, dict) else table
        low.append(_seconds(counters, ("min_us", "min_latency", "min_avg_latency")))
        high.append(_seconds(counters, ("max_us", "max_latency", "max_avg_latency")))
        packets = counters.get("num_pkts")
        weight = packets if isinstance(packets, int) and packets > 0 else 1
        means.append((_seconds(counters, ("avg_us", "avg_latency")), weight))
    builder.put("load.latency", min(_known(low), default=None), quantile="min")
    builder.put("load.latency", mean_by((mean, weight) for mean, weight in means if mean is not None), quantile="mean")
    builder.put("load.latency", max(_known(high), default=None), quantile="max")


def put_offered(builder: AnswerBuilder, ports: Ports) -> None:
    """Put the packet rate that the sending ports are set to, which Pktgen computes from rate and size of one packet.

    Wrong for mixed sizes (sequences, ranges, PCAP files), so it is only read if the plan asks for it.
    """
    parts = []
    for port, state in ports.sending.items():
        if _truth(state) is None:
            return
        if _truth(state):
            rate = _find(ports.info.get(port, {}), "tx_pps")
            parts.append(rate if _is_number(rate) and rate > 0 else None)
    builder.put("load.offered.packet.rate", whole(parts) if parts else 0)


def rates_set(ports: Ports) -> dict[int, float]:
    """The percentage that each port is set to, if reported."""
    settings = {port: _find(table, "tx_rate") for port, table in ports.info.items()}
    return {port: float(rate) for port, rate in settings.items() if _is_number(rate)}


def port_settings(table: Table) -> dict[str, Tree]:
    """Settings of a port that no phase changes: sizes, counts, addresses."""
    found = {name: _find(table, name) for name in _SETTINGS}
    return {name: value for name, value in found.items() if isinstance(value, str | int | float) and value != ""}


def _count(
    builder: AnswerBuilder, metric: str, port: int | None, table: Table, key: str, direction: str | None = None
) -> float | None:
    """A counter, which older Lua may write as a float. Negative values (uninitialised memory) are faults."""
    value = table.get(key)
    if _is_number(value) and value >= 0:
        return int(value) if isinstance(value, int) or value.is_integer() else value
    labels: dict[str, object] = {} if port is None else {"port": port}
    if direction is not None:
        labels["direction"] = direction
    why = "missing in Pktgen's answer" if key not in table else f"{_short(value)} is not a count"
    builder.fault(metric, f"{key}: {why}", **labels)
    return None


def _gauge(builder: AnswerBuilder, metric: str, port: int, table: Table, keys: tuple[str, ...]) -> float | None:
    value = next((table[key] for key in keys if key in table), None)
    if _is_number(value) and value >= 0:
        return value
    builder.fault(metric, f"{keys[0]}: {_short(value)} is not a rate", port=port)
    return None


def _bits(builder: AnswerBuilder, metric: str, table: Table, key: str, millions: str) -> float | None:
    for name, factor in ((key, 8), (millions, 1_000_000)):
        value = table.get(name)
        if _is_number(value) and value >= 0:
            return value * factor
    builder.fault(metric, f"{key}: {_short(table.get(key))} is not a rate")
    return None


def _seconds(table: Table, keys: tuple[str, ...]) -> float | None:
    value = next((table[key] for key in keys if key in table), None)
    return value * 1e-6 if _is_number(value) and value > 0 else None


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _truth(state: Value) -> bool | None:
    if isinstance(state, bool):
        return state
    return {"y": True, "yes": True, "n": False, "no": False}.get(state.lower()) if isinstance(state, str) else None


def _short(value: Value) -> str:
    return "a table" if isinstance(value, dict) else repr(value)[:40]


def _inner(table: Table, key: str) -> Table:
    inner = table.get(key)
    return inner if isinstance(inner, dict) else table


def _numbered(answer: LuaTables, name: str) -> dict[int, Value]:
    table = answer.tables.get(name, {})
    return {key: value for key, value in table.items() if isinstance(key, int) and 0 <= key < 4096}


def _tables(answer: LuaTables, name: str) -> dict[int, Table]:
    return {key: value for key, value in _numbered(answer, name).items() if isinstance(value, dict)}


def _find(table: Table, key: str) -> Value:
    """The value of a key in a table or its subtables (``tx_pps`` has moved); the parser bounds the depth."""
    if key in table:
        return table[key]
    for value in table.values():
        if isinstance(value, dict):
            inner = _find(value, key)
            if inner is not None:
                return inner
    return None
