"""Objects for simulated series, from the labels that the catalogue gives a metric."""

from __future__ import annotations

from typing import Final

from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import object_text

_NAMES: Final = {
    "interface": "eth3",
    "direction": "receive",
    "module": "linecard 2",
    "service": "bgpd",
    "flow": "voice",
    "quantile": "0.99",
    "sensor": "board",
    "core": "3",
    "minutes": "5",
    "table": "nat",
}


def object_of(metric: str) -> str:
    """An object for a metric, with a name for each of its labels.

    >>> object_of("system.network.packets"), object_of("system.cpu.utilization")
    ('interface=eth3,direction=receive', '')
    """
    return object_text(**{label: _NAMES[label] for label in BY_NAME[metric].labels})
