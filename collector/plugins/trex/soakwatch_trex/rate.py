"""The full rate (level 1) of a driven TRex, in the notation of TRex's consoles."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

_RATE = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*([kmg]?)(pps|bpsl1|bps|%|)", re.IGNORECASE)
_TIMES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_KINDS = {"pps": "pps", "bps": "bps", "bpsl1": "bpsl1", "%": "percentage", "": "raw"}


@dataclass(frozen=True, slots=True)
class Rate:
    """A multiplier of TRex, per port: ``raw`` multiplies the streams' own rates, ``percentage`` is of the line rate."""

    kind: str
    value: float

    def at(self, level: float) -> dict[str, object]:
        """TRex's parameter for a level."""
        return {"type": self.kind, "op": "abs", "value": self.value * level}


def rate(text: object) -> Rate:
    """A rate such as ``1``, ``80%``, ``5mpps``, ``2.5gbps`` or ``10gbpsl1``. Raises ValueError for anything else.

    >>> rate("2.5Gbps"), rate(1), rate("80%")
    (Rate(kind='bps', value=2500000000.0), Rate(kind='raw', value=1.0), Rate(kind='percentage', value=80.0))
    """
    match = _RATE.fullmatch(str(text).strip()) if isinstance(text, str | int | float) else None
    if match is None or isinstance(text, bool) or (match[2] and match[3] in {"", "%"}) or not float(match[1]):
        raise ValueError(f"{text!r} is not a rate of TRex: write 1 (times the streams' own), 80%, 5mpps or 2.5gbps")
    return Rate(_KINDS[match[3].lower()], float(match[1]) * _TIMES[match[2].lower()])


def _checked(text: object) -> object:
    rate(text)
    return str(text)


_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "number"}]}
RateText = Annotated[str, BeforeValidator(_checked), WithJsonSchema(_SCHEMA)]
"""A rate in a plan."""
