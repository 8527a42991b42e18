"""Names of latency series, and ratios, as an engineer writes them."""

from __future__ import annotations

from soakwatch_rules.labels import label
from soakwatch_rules.latency_blocks import ROUND_TRIP
from soakwatch_rules.series import Series


def name_of(series: Series) -> str:
    """As an engineer calls it.

    >>> import numpy as np
    >>> from soakwatch_rules.scenarios.synthetic import readings
    >>> name_of(readings("load.latency", np.zeros(0), 1.0, object="quantile=p99"))
    'p99 latency'
    """
    if series.metric == ROUND_TRIP:
        peer, protocol = label(series.object, "peer"), label(series.object, "protocol")
        return f"round trip{f' to {peer}' if peer else ''}{f' ({protocol})' if protocol else ''}"
    flow, told = label(series.object, "flow"), label(series.object, "quantile")
    return f"{f'{told} ' if told else ''}latency{f' of flow {flow}' if flow else ''}"


def times_of(times: float) -> str:
    """A ratio, as "2.1 times".

    >>> times_of(2.13), times_of(30.0)
    ('2.1 times', '30 times')
    """
    return f"{times:.2g} times" if times < 10 else f"{times:.0f} times"
