"""Key figures of runs: one number of a run by an expression such as ``max(load.latency{quantile="p99"})``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Better = Literal["higher", "lower", ""]


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """Which number: ``statistic`` of the series of ``metric`` that carry ``labels`` (``target``, ``phase`` and ``role``
    among them). ``text`` is the expression, ``name`` the words for people."""

    text: str
    statistic: str
    metric: str
    labels: Mapping[str, str] = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True, slots=True)
class FigureValue:
    """The number, in ``unit``; None with the ``reason`` where the run does not have it. ``better`` is the direction."""

    value: float | None
    unit: str
    better: Better = ""
    reason: str = ""
