"""Names of series in sentences."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from soakwatch_model.label import label
from soakwatch_model.metric_queries import words_of
from soakwatch_model.series import Series

_SAID: Final = ("quantile", "flow", "peer", "protocol")
"""Labels that have words of their own in a name."""


def thing_of(series: Series, but: Collection[str] = ()) -> str:
    """What a series is about: the values of its object's labels except ``but``.

    >>> import numpy as np
    >>> from soakwatch_rules.signals import readings
    >>> thing_of(readings("system.network.packets", np.zeros(0), 1.0, object="interface=eth1,direction=receive"))
    'eth1 receive'
    """
    return thing_in(series.object, but)


def thing_in(object_: str, but: Collection[str] = ()) -> str:
    """The values of an object's labels except ``but``; an only instance is not numbered.

    >>> thing_in("process=web,instance=0"), thing_in("process=web,instance=2")
    ('web', 'web #2')
    """
    keyed = [part.partition("=")[::2] for part in object_.split(",")]
    labels = ((key, "" if value == "0" else f"#{value}") if key == "instance" else (key, value) for key, value in keyed)
    return " ".join(value for key, value in labels if value and key not in but)


def name_of(series: Series) -> str:
    """The name of a series: percentile, metric, object, flow, peer.

    >>> import numpy as np
    >>> from soakwatch_rules.signals import readings
    >>> def named(metric, object):
    ...     return name_of(readings(metric, np.zeros(0), 1.0, object=object))
    >>> named("system.temperature", "sensor=board"), named("load.latency", "quantile=p99")
    ('temperature of board', 'p99 latency')
    >>> named("system.cpu.core.utilization", "core=0")
    'CPU core 0'
    >>> named("load.latency", "flow=3,quantile=0.999"), named("reach.round_trip", "peer=gw,protocol=icmp")
    ('p99.9 latency of flow 3', 'round trip to gw (icmp)')
    """
    quantile, flow, peer, protocol = (label(series.object, key) for key in _SAID)
    thing = thing_of(series, _SAID)
    parts = (
        percentile(quantile) if quantile else "",
        words_of(series.metric),
        "" if not thing else thing if series.object == f"core={thing}" else f"of {thing}",
        f"of flow {flow}" if flow else "",
        f"to {peer}" if peer else "",
        f"({protocol})" if protocol else "",
    )
    return " ".join(part for part in parts if part)


def percentile(quantile: str) -> str:
    """A quantile as engineers write it.

    >>> [percentile(text) for text in ("0.5", "0.99", "p95", "max")]
    ['p50', 'p99', 'p95', 'max']
    """
    try:
        share = float(quantile)
    except ValueError:
        return quantile
    return f"p{100 * share:.6g}" if 0 < share < 1 else quantile
