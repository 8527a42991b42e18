"""Converts port and flow metrics of an Open Traffic Generator to metrics of the catalogue.

Numbers may be JSON numbers or strings: protobuf's JSON quotes 64-bit integers, and some controllers use its camelCase
keys. ``loss`` is a percentage, latencies are nanoseconds. Some controllers send a row for each port that receives a
flow; these are merged into one flow.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from soakwatch.sources.answer_builder import AnswerBuilder, mean_by, whole
from soakwatch_model.tree import Tree

MAX_ROWS = 4096
"""Maximum number of ports, and of flows, that are sampled; with more the total is unknown."""
_MAX_NAME = 200
_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_NUMBER = re.compile(r"\s*-?\d{1,40}(?:\.\d{0,40})?(?:[eE][-+]?\d{1,3})?\s*")
_WAYS = ("tx", "rx")

Row = Mapping[str, Tree]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of an answer by port or flow, and whether some were cut off."""

    named: Mapping[str, Sequence[Row]]
    cut: bool


def rows_of(answer: Tree, key: str) -> Rows | None:
    """The rows under ``port_metrics`` or ``flow_metrics``; None if the answer is not of that kind."""
    if not isinstance(answer, Mapping):
        return None
    listed = _snake(answer).get(key, [])
    if not isinstance(listed, list):
        return None
    named: dict[str, list[Row]] = {}
    for row in listed:
        if not isinstance(row, Mapping):
            return None
        keyed = _snake(row)
        name = keyed.get("name")
        if isinstance(name, str) and name:
            short = " ".join(name.split())[:_MAX_NAME]
            if short in named or len(named) < MAX_ROWS:
                named.setdefault(short, []).append(keyed)
    kept = sum(map(len, named.values()))
    return Rows(named, kept < len(listed))


def is_sending(ports: Rows, flows: Rows | None) -> bool | None:
    """Whether traffic is sent: by the states of flows, else of ports, else by the ports' rates."""
    for rows in (flows, ports):
        states = [row["transmit"] for row in _all(rows) if isinstance(row.get("transmit"), str)]
        if states:
            return "started" in states
    rates = [number(row.get("frames_tx_rate")) for row in _all(ports)]
    known = [rate for rate in rates if rate is not None]
    return any(rate > 0 for rate in known) if known and len(known) == len(rates) else None


def put_ports(builder: AnswerBuilder, ports: Rows) -> None:
    """Put the metrics of each port."""
    for name, rows in ports.named.items():
        row = rows[-1]  # a name belongs to one port: of two rows, take the later
        for side in _WAYS:
            for what, unit in (("frames", "packets"), ("bytes", "bytes")):
                metric = f"load.port.{side}.{unit}"
                builder.put(metric, _count(builder, metric, row, f"{what}_{side}", port=name), port=name)
            metric = f"load.port.{side}.packet.rate"
            builder.put(metric, _rate(builder, metric, row, f"frames_{side}_rate", port=name), port=name)
        link = row.get("link")
        if isinstance(link, str) and link in {"up", "down"}:
            builder.put("load.port.up", int(link == "up"), port=name)


def put_flows(builder: AnswerBuilder, flows: Rows) -> None:
    """Put the metrics of each flow."""
    for name, rows in flows.named.items():
        for side in _WAYS:
            metric = f"load.flow.{side}.packets"
            builder.put(
                metric, whole(_count(builder, metric, row, f"frames_{side}", flow=name) for row in rows), flow=name
            )
        loss = _loss(rows)
        if loss is None and any(
            row.get("loss") is not None and _whole_number(row.get("frames_tx")) != 0 for row in rows
        ):
            builder.fault("load.flow.loss", f"loss: {repr(rows[0].get('loss'))[:60]} is not a percentage", flow=name)
        builder.put("load.flow.loss", loss, flow=name)
        for quantile, value in _latency(rows).items():
            builder.put("load.flow.latency", value, flow=name, quantile=quantile)


def put_whole(builder: AnswerBuilder, rows: Rows, *, flows: bool) -> None:
    """Put the totals of the generator, over its flows or over its ports.

    Totals over ports include what protocols send; totals over flows only flows with enabled metrics.
    """
    if rows.cut:
        builder.fault("load.tx.packets", f"the generator reports more than {MAX_ROWS} parts: the whole is unknown")
        return
    parts = list(_all(rows))
    sums: dict[str, float | None] = {}
    for side in _WAYS:
        for what, unit in (("frames", "packets"), ("bytes", "bytes")):
            sums[f"load.{side}.{unit}"] = whole(_whole_number(row.get(f"{what}_{side}")) for row in parts)
        sums[f"load.{side}.packet.rate"] = whole(number(row.get(f"frames_{side}_rate")) for row in parts)
        sums[f"load.{side}.bit.rate"] = whole(_bits(row, side) for row in parts)
    for metric, value in sums.items():
        builder.put(metric, value)
    if not flows:
        return
    sent, got = sums["load.tx.packets"], sums["load.rx.packets"]
    if sent is not None and got is not None:
        builder.put("load.drop.estimate", sent - got)
    builder.put("load.loss", _loss(parts))
    for quantile, value in _latency(parts).items():
        builder.put("load.latency", value, quantile=quantile)


def number(value: Tree) -> float | None:
    """A number, also from a string; None for anything else, including NaN and infinity.

    >>> number("18446744073709551615"), number(2.5), number("NaN"), number(True)
    (18446744073709551615, 2.5, None, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        if _NUMBER.fullmatch(value) is None:
            return None
        text = value.strip()
        value = int(text) if text.lstrip("-").isdecimal() else float(text)
    if isinstance(value, int):
        return value if abs(value) < 2**64 else None
    return value if isinstance(value, float) and math.isfinite(value) else None


def _whole_number(value: Tree) -> float | None:
    """A counter: not negative, and an int if integral."""
    plain = number(value)
    if plain is None or plain < 0:
        return None
    return int(plain) if plain == int(plain) and plain < 2**64 else None


def _count(builder: AnswerBuilder, metric: str, row: Row, key: str, **labels: object) -> float | None:
    value = row.get(key)
    if value is None:
        return None  # columns can be left out, and not every controller has all
    count = _whole_number(value)
    if count is None:
        builder.fault(metric, f"{key}: {repr(value)[:60]} is not a count", **labels)
    return count


def _rate(builder: AnswerBuilder, metric: str, row: Row, key: str, **labels: object) -> float | None:
    value = row.get(key)
    if value is None:
        return None
    rate = number(value)
    if rate is None or rate < 0:
        builder.fault(metric, f"{key}: {repr(value)[:60]} is not a rate", **labels)
        return None
    return rate


def _bits(row: Row, side: str) -> float | None:
    """Bits of frames per second, without preamble and gap."""
    for key, factor in ((f"bytes_{side}_rate", 8), (f"{side}_rate_bps", 1), (f"{side}_rate_bytes", 8)):
        rate = number(row.get(key))
        if rate is not None and rate >= 0:
            return rate * factor
    return None


def _loss(rows: Sequence[Row]) -> float | None:
    """The loss ratio that the generator reports, weighted by sent packets; None before anything was sent."""
    if len(rows) == 1:
        share, sent = number(rows[0].get("loss")), _whole_number(rows[0].get("frames_tx"))
        return None if share is None or sent == 0 else _share(share)
    mean = mean_by((number(row.get("loss")), _whole_number(row.get("frames_tx"))) for row in rows)
    return None if mean is None else _share(mean)


def _share(percent: float) -> float | None:
    """A percentage as a share; None if negative (more came back than was sent)."""
    return percent / 100 if 0 <= percent <= 100 else None


def _latency(rows: Sequence[Row]) -> dict[str, float]:
    """Latency over rows in seconds; empty if no packet came back, or all values are zero (not measured)."""
    measured = []
    for row in rows:
        inner = row.get("latency")
        if isinstance(inner, Mapping) and _whole_number(row.get("frames_rx")) != 0:
            fields = _snake(inner)
            low, mean, high = (_nanoseconds(fields.get(f"{word}_ns")) for word in ("minimum", "average", "maximum"))
            if any((low, mean, high)):
                measured.append((low, mean, high, _whole_number(row.get("frames_rx")) or 1))
    lows = [low for low, *_ in measured if low is not None]
    highs = [high for _, _, high, _ in measured if high is not None]
    figures = {
        "min": min(lows, default=None),
        "mean": mean_by((mean, got) for _, mean, _, got in measured),
        "max": max(highs, default=None),
    }
    return {quantile: value for quantile, value in figures.items() if value is not None}


def _nanoseconds(value: Tree) -> float | None:
    duration = number(value)
    return None if duration is None or duration < 0 else duration * 1e-9


def _snake(row: Row) -> dict[str, Tree]:
    return {_CAMEL.sub(r"_\1", key).lower(): value for key, value in row.items()}


def _all(rows: Rows | None) -> Iterable[Row]:
    return () if rows is None else (row for same in rows.named.values() for row in same)
