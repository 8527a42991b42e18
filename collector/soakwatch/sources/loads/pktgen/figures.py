"""Pktgen's tables as figures of the catalogue; the names that its versions since 2014 have used.

``portStats(ports, "port")`` are the totals since the last ``clr``, ``portStats(ports, "rate")`` those of the last
second. Since 2026 there is one ``portStats(ports)`` with ``curr`` and ``ext``, and no rates (they follow from the
counters). Bits are those of frames as DPDK counts them: without preamble, gap and mostly without the checksum.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from soakwatch.sources.answer_builder import AnswerBuilder, mean_by, whole
from soakwatch.sources.loads.pktgen.lua_text import Said, Table, Value

TOTALS, RATES, LINKS, SENDING, PACKETS, INFO = "totals", "rates", "links", "sending", "packets", "info"
"""Names under which the tables are asked for."""

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


def ports_of(said: Said) -> Ports:
    """The tables that an answer holds; those that it lacks are empty."""
    totals = _tables(said, TOTALS)
    extended = {port: table["ext"] for port, table in totals.items() if isinstance(table.get("ext"), dict)}
    return Ports(
        {port: _inner(table, "curr") for port, table in totals.items()},
        _tables(said, RATES),
        _tables(said, PACKETS) or {port: table for port, table in extended.items() if isinstance(table, dict)},
        _tables(said, INFO),
        _numbered(said, LINKS),
        _numbered(said, SENDING),
    )


def counts_nothing(ports: Ports) -> bool:
    """Whether it says that it sends and has not counted one packet on any port.

    Right for a moment after the start; for longer it is the fault of versions 23.10 to 24.03, whose Lua library read
    figures that nothing wrote (issue 235 of the project).
    """
    counted = [table.get(key) for table in ports.totals.values() for key in ("opackets", "ipackets")]
    return is_sending(ports) is True and bool(counted) and all(count == 0 for count in counted)


def is_sending(ports: Ports) -> bool | None:
    """Whether any port sends; None where that is not known of all."""
    states = [_truth(state) for state in ports.sending.values()]
    if True in states:
        return True
    return False if states and None not in states else None


def put_counters(figures: AnswerBuilder, ports: Ports) -> None:
    """Counters and errors of ports and of the whole."""
    for metric, key in _PORT_COUNTERS.items():
        counts = {port: _count(figures, metric, port, table, key) for port, table in ports.totals.items()}
        for port, count in counts.items():
            figures.put(metric, count, port=port)
        figures.put(metric.replace(".port", ""), whole(counts.values()))
    for port, table in ports.totals.items():
        for direction, keys in _ERRORS:
            parts = [_count(figures, "load.port.errors", port, table, key, direction) for key in keys if key in table]
            figures.put("load.port.errors", whole(parts), port=port, direction=direction)
    failed = [
        _count(figures, "load.queue_full", None, table, "tx_failed")
        for table in ports.packets.values()
        if "tx_failed" in table
    ]
    figures.put("load.queue_full", whole(failed))


def put_rates(figures: AnswerBuilder, ports: Ports) -> None:
    """Rates of ports and of the whole; nothing from versions that say none."""
    for way, keys in (("tx", ("pkts_tx", "opackets")), ("rx", ("pkts_rx", "ipackets"))):
        metric = f"load.port.{way}.packet.rate"
        rates = {port: _gauge(figures, metric, port, table, keys) for port, table in ports.rates.items()}
        for port, rate in rates.items():
            figures.put(metric, rate, port=port)
        figures.put(f"load.{way}.packet.rate", whole(rates.values()))
    for way, key, millions in (("tx", "obytes", "mbits_tx"), ("rx", "ibytes", "mbits_rx")):
        metric = f"load.{way}.bit.rate"
        figures.put(metric, whole(_bits(figures, metric, table, key, millions) for table in ports.rates.values()))


def put_state(figures: AnswerBuilder, ports: Ports) -> None:
    """Links, and whether it sends."""
    for port, state in ports.links.items():
        if isinstance(state, str) and state:
            up = _LINK.search(state) is not None
            figures.put("load.port.up", int(up), port=port)
        else:
            figures.fault("load.port.up", f"{state!r} is no state of a link", port=port)
    sending = is_sending(ports)
    if sending is None:
        figures.fault("load.sending", "Pktgen does not say of every port whether it sends")
    else:
        figures.put("load.sending", int(sending))


def put_latency(figures: AnswerBuilder, ports: Ports) -> None:
    """Latency over all ports that measure it (``latency all enable``); a zero is one that was not measured.

    The smallest and the largest are those since Pktgen's last ``clr``. Older versions say whole microseconds, and their
    smallest and largest are those of the means that were asked for.
    """
    low, high, means = [], [], []
    for table in ports.packets.values():
        inner = table.get("latency")
        at = inner if isinstance(inner, dict) else table
        low.append(_seconds(at, ("min_us", "min_latency", "min_avg_latency")))
        high.append(_seconds(at, ("max_us", "max_latency", "max_avg_latency")))
        packets = at.get("num_pkts")
        weight = packets if isinstance(packets, int) and packets > 0 else 1
        means.append((_seconds(at, ("avg_us", "avg_latency")), weight))
    figures.put("load.latency", min(_known(low), default=None), quantile="min")
    figures.put("load.latency", mean_by((mean, weight) for mean, weight in means if mean is not None), quantile="mean")
    figures.put("load.latency", max(_known(high), default=None), quantile="max")


def put_offered(figures: AnswerBuilder, ports: Ports) -> None:
    """Packets per second that the sending ports are set to, as Pktgen works it out of rate and size of one packet.

    Wrong for mixed sizes (sequences, ranges, PCAP files): it is only asked for where the plan wants it.
    """
    parts = []
    for port, state in ports.sending.items():
        if _truth(state) is None:
            return
        if _truth(state):
            found = _find(ports.info.get(port, {}), "tx_pps")
            parts.append(found if _is_number(found) and found > 0 else None)
    figures.put("load.offered.packet.rate", whole(parts) if parts else 0)


def rates_set(ports: Ports) -> dict[int, float]:
    """The percentage to which each port is set, as far as it is said."""
    found = {port: _find(table, "tx_rate") for port, table in ports.info.items()}
    return {port: float(rate) for port, rate in found.items() if _is_number(rate)}


def _count(
    figures: AnswerBuilder, metric: str, port: int | None, table: Table, key: str, direction: str | None = None
) -> float | None:
    """A counter; older Lua writes large ones as reals. Below zero (unset memory was seen) it is a fault."""
    value = table.get(key)
    if _is_number(value) and value >= 0:
        return int(value) if isinstance(value, int) or value.is_integer() else value
    labels: dict[str, object] = {} if port is None else {"port": port}
    if direction is not None:
        labels["direction"] = direction
    why = "Pktgen does not say it" if key not in table else f"{_short(value)} is no count"
    figures.fault(metric, f"{key}: {why}", **labels)
    return None


def _gauge(figures: AnswerBuilder, metric: str, port: int, table: Table, keys: tuple[str, ...]) -> float | None:
    value = next((table[key] for key in keys if key in table), None)
    if _is_number(value) and value >= 0:
        return value
    figures.fault(metric, f"{keys[0]}: {_short(value)} is no rate", port=port)
    return None


def _bits(figures: AnswerBuilder, metric: str, table: Table, key: str, millions: str) -> float | None:
    for name, factor in ((key, 8), (millions, 1_000_000)):
        value = table.get(name)
        if _is_number(value) and value >= 0:
            return value * factor
    figures.fault(metric, f"{key}: {_short(table.get(key))} is no rate")
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


def _numbered(said: Said, name: str) -> dict[int, Value]:
    table = said.tables.get(name, {})
    return {key: value for key, value in table.items() if isinstance(key, int) and 0 <= key < 4096}


def _tables(said: Said, name: str) -> dict[int, Table]:
    return {key: value for key, value in _numbered(said, name).items() if isinstance(value, dict)}


def _find(table: Table, key: str) -> Value:
    """A key of a table or of a table in it (where ``tx_pps`` stands has changed); depth is bounded by the reader."""
    if key in table:
        return table[key]
    for value in table.values():
        if isinstance(value, dict):
            found = _find(value, key)
            if found is not None:
                return found
    return None
