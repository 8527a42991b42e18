"""Bits per second as people and iperf3 write them: ``20M``, ``1.5 Gbit/s``, ``500k``, or a bare number."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMGT]?)(?:bit/s|bits/s|bps)?")
_FACTOR = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def bits_per_second(value: object) -> float:
    """Bits per second; prefixes are decimal, as iperf3 takes them for rates. Raises ValueError with an example.

    >>> bits_per_second("20M"), bits_per_second("1.5 Gbit/s"), bits_per_second(64000)
    (20000000.0, 1500000000.0, 64000.0)
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    match = _RATE.fullmatch(str(value).strip())
    if match is None:
        raise ValueError(f"{value!r} is not a rate: write bits per second, such as 20M, 1.5Gbit/s or 64000")
    return float(match[1]) * _FACTOR[match[2]]


BitRate = Annotated[
    float,
    BeforeValidator(bits_per_second),
    WithJsonSchema({"type": ["string", "number"], "examples": ["20M", "1.5Gbit/s"]}),
]
"""A rate in a plan, in bits per second once parsed."""
