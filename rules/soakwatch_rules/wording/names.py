"""What a sentence calls a series."""

from __future__ import annotations

from soakwatch_model.label import label
from soakwatch_model.metric_queries import words_of
from soakwatch_model.series import Series


def thing_of(series: Series) -> str:
    """What a series is about: what the labels of its object say.

    >>> import numpy as np
    >>> from soakwatch_rules.scenarios.synthetic import readings
    >>> thing_of(readings("system.network.packets", np.zeros(0), 1.0, object="interface=eth1,direction=receive"))
    'eth1 receive'
    """
    return " ".join(part.partition("=")[2] for part in series.object.split(",") if part)


def name_of(series: Series) -> str:
    """What a series is called, and of what it is; of a latency first which.

    >>> import numpy as np
    >>> from soakwatch_rules.scenarios.synthetic import readings
    >>> name_of(readings("system.temperature", np.zeros(0), 1.0, object="sensor=board"))
    'temperature of board'
    >>> name_of(readings("load.latency", np.zeros(0), 1.0, object="quantile=0.99"))
    '0.99 latency'
    """
    quantile, thing = label(series.object, "quantile"), thing_of(series)
    which = f"{quantile} " if quantile else ""
    rest = " ".join(thing.split()[:-1]) if quantile else thing
    return f"{which}{words_of(series.metric)}{f' of {rest}' if rest else ''}"
