"""Rates of the flows in an Open Traffic Generator's configuration: their offered load, and scaling to a level.

A rate is ``pps``, ``bps``, ``kbps``, ``mbps``, ``gbps`` or ``percentage`` of the line (Flow.Rate of the model, with its
defaults). Bit rates become ``bps``, so that a tenth of 1 ``gbps`` can be set.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from soakwatch.sources.abc import SourceError
from soakwatch_model.tree import Tree
from soakwatch_otg.metrics import Row, number

_BITS = {"bps": 1, "kbps": 1_000, "mbps": 1_000_000, "gbps": 1_000_000_000}
_DEFAULTS: Mapping[str, float] = {
    "pps": 1000,
    "bps": 10**9,
    "kbps": 10**6,
    "mbps": 1000,
    "gbps": 1,
    "percentage": 100,
}
_MIN_BITS_PER_SECOND = 672  # the model's minimum: one frame of 84 bytes on the wire


def flows_of(config: Tree, wanted: Collection[str] | None) -> tuple[Row, ...]:
    """The flows of a configuration, or the ``wanted`` ones.

    Raises SourceError if a wanted flow is missing, or there are no flows.
    """
    flows = config.get("flows") if isinstance(config, Mapping) else None
    rows = [row for row in flows if isinstance(row, Mapping)] if isinstance(flows, list) else []
    if not rows:
        raise SourceError("the generator has no flows to drive: push the test's configuration first")
    names = {row.get("name") for row in rows}
    missing = sorted(set(wanted or ()) - {name for name in names if isinstance(name, str)})
    if missing:
        raise SourceError(f"the generator has no flow {missing[0]!r}: correct flows, or push the test's configuration")
    return tuple(row for row in rows if wanted is None or row.get("name") in wanted)


def scaled(flow: Row, level: float) -> dict[str, Tree]:
    """The flow at a level of its rate. Raises SourceError for an unreadable rate, or above the line rate."""
    unit, value = _rate(flow)
    if unit == "percentage":
        if value * level > 100:
            raise SourceError(f"flow {flow.get('name')!r} cannot send {value * level:g} % of its line: lower its rate")
        return {**flow, "rate": {"choice": "percentage", "percentage": value * level}}
    if unit == "pps":
        return {**flow, "rate": {"choice": "pps", "pps": max(1, round(value * level))}}
    return {**flow, "rate": {"choice": "bps", "bps": max(_MIN_BITS_PER_SECOND, round(value * _BITS[unit] * level))}}


def offered(flows: Sequence[Row], level: float) -> tuple[str, float] | None:
    """The offered load of all flows, with its metric; None if a flow has a limited duration, or units differ.

    >>> offered([{"rate": {"choice": "mbps", "mbps": "10"}}], 0.5)
    ('load.offered.bit.rate', 5000000.0)
    """
    units, total = set(), 0.0
    for flow in flows:
        duration = flow.get("duration")
        if isinstance(duration, Mapping) and duration.get("choice", "continuous") != "continuous":
            return None
        unit, value = _rate(flow)
        units.add("pps" if unit == "pps" else "bit" if unit in _BITS else unit)
        total += value * _BITS.get(unit, 1)
    if units == {"pps"}:
        return "load.offered.packet.rate", total * level
    return ("load.offered.bit.rate", total * level) if units == {"bit"} else None


def _rate(flow: Row) -> tuple[str, float]:
    rate = flow.get("rate")
    if not isinstance(rate, Mapping):
        return "pps", _DEFAULTS["pps"]
    unit = rate.get("choice")
    if unit is None:
        unit = next((known for known in _DEFAULTS if known in rate), "pps")
    if isinstance(unit, str) and unit in _DEFAULTS:
        value = number(rate.get(unit, _DEFAULTS[unit]))
        if value is not None and value > 0:
            return unit, value
    raise SourceError(f"flow {str(flow.get('name'))[:80]!r} has a rate that cannot be read: {str(rate)[:80]}")
