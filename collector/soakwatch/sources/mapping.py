"""Checks of a mapping from a foreign value to a metric of the catalogue."""

from __future__ import annotations

import math
from collections.abc import Collection

from soakwatch.core.suggest import hint
from soakwatch_model.metric import BY_NAME


def check_mapping(metric: str, labels: Collection[str], scale: float | None) -> None:
    """Raises ValueError, in a sentence, for an unknown metric, other labels than its own, and a factor of nothing."""
    known = BY_NAME.get(metric)
    if known is None:
        raise ValueError(f"unknown metric {metric!r}{hint(metric, BY_NAME)}")
    if set(labels) != set(known.labels):
        raise ValueError(f"{metric} has the labels {', '.join(known.labels) or 'none'}: give just these")
    if scale is not None and (not math.isfinite(scale) or scale == 0):
        raise ValueError("scale is a number other than 0")
