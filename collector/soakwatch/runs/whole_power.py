"""Which sensors of power make up a target: machines measure the same watt at several places, and each counts once."""

from __future__ import annotations

import re
from collections.abc import Sequence

from soakwatch.record.source import SeriesKey
from soakwatch_model.sample import object_labels

_CHOICES = (
    re.compile(r"\btotal\b", re.IGNORECASE),  # what a controller or a rack PDU says of the whole
    re.compile(r"\b(?:input|inlet|p?in)\b", re.IGNORECASE),  # of each supply, at the wall
    re.compile(r"\b(?:output|p?out)\b", re.IGNORECASE),  # behind the supplies
    re.compile(r"^rapl psys$"),  # the platform, as its processor knows it
    re.compile(r"^rapl package-\d+(?: dram)?$"),  # core and uncore are parts of the package, its memory is not
)


def whole_power(keys: Sequence[SeriesKey]) -> tuple[SeriesKey, ...]:
    """Of the sensors of each target those that together are the whole of it, nearest to the wall first.

    Where no name says so all of them stay: an exporter's or a generator's sensors are of parts that add up.

    >>> key = lambda sensor: SeriesKey("dut", "system.power", f"sensor={sensor}")
    >>> names = ("rapl package-0", "rapl package-0 core", "rapl package-0 dram", "PSU 1 input", "PSU 1 output")
    >>> [each.object for each in whole_power([key(name) for name in names])]
    ['sensor=PSU 1 input']
    >>> [each.object for each in whole_power([key(name) for name in names[:3]])]
    ['sensor=rapl package-0', 'sensor=rapl package-0 dram']
    """
    chosen: list[SeriesKey] = []
    for target in dict.fromkeys(key.target for key in keys):
        own = [key for key in keys if key.target == target]
        best = next((found for choice in _CHOICES if (found := [k for k in own if choice.search(_sensor(k))])), own)
        chosen += best
    return tuple(chosen)


def _sensor(key: SeriesKey) -> str:
    return object_labels(key.object).get("sensor", "") if "=" in key.object else key.object
