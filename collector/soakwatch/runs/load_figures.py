"""The figures by which displays say what the generators do now: rates sent, received and failed, loss, latency."""

from __future__ import annotations

from dataclasses import dataclass

from soakwatch_model.flow import BACK, BITS, FAILED, LOST, PACKETS, REQUESTS, SENT, WHOLE
from soakwatch_model.metric import CATALOGUE, GAUGE
from soakwatch_model.metric_queries import shown_in
from soakwatch_model.shown import LATENCY

_WORDS = {(SENT, PACKETS): "sent", (BACK, PACKETS): "received", (SENT, BITS): "sent", (BACK, BITS): "received"}


@dataclass(frozen=True, slots=True)
class LoadFigure:
    """A rate, or a share of loss: ``what`` is counted, and the ``unit`` and ``word`` that follow its number."""

    metric: str
    what: str
    unit: str
    word: str


RATES = tuple(
    LoadFigure(
        metric.name,
        flow.what,
        "{failure}/s" if flow.side == FAILED else metric.unit,
        _WORDS.get((flow.side, flow.what), ""),
    )
    for metric in CATALOGUE
    if (flow := metric.flow) is not None and metric.kind == GAUGE and flow.scope == WHOLE
    if flow.side in {SENT, BACK, FAILED} and flow.what in {REQUESTS, PACKETS, BITS}
)
"""What passes a second, requests before packets before bits."""
SHARES = tuple(
    LoadFigure(metric.name, flow.what, metric.unit, "lost")
    for metric in CATALOGUE
    if (flow := metric.flow) is not None and metric.kind == GAUGE and (flow.side, flow.scope) == (LOST, WHOLE)
)
"""The share of it that is lost, as the generator says."""
LATE = shown_in(LATENCY)[0]
"""How late answers and packets come."""
METRICS = frozenset({LATE, *(figure.metric for figure in (*RATES, *SHARES))})
