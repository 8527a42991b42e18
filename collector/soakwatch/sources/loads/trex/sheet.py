"""Where the figures of one look are put: samples of what can be read, faults for what cannot."""

from __future__ import annotations

from soakwatch.sources.loads.trex.histogram import QUANTILES, Window, quantile
from soakwatch.sources.loads.trex.plain import number
from soakwatch_agent.sample import Fault, Sample, object_text


class AnswerBuilder:
    """The samples and faults of one look, all of one time."""

    def __init__(self, time_ns: int) -> None:
        self.time_ns = time_ns
        self.samples: list[Sample] = []
        self.faults: list[Fault] = []

    def put(self, metric: str, value: float | None, thing: str = "", scale: float = 1.0) -> None:
        """A value, times ``scale``; nothing if there is none."""
        if value is not None:
            self.samples.append(Sample(metric, thing, value if scale == 1.0 else value * scale, self.time_ns))

    def take(self, metric: str, raw: object, thing: str = "", scale: float = 1.0) -> None:
        """A value as it stands in a message; one that is no number is a fault. What is missing must not get here."""
        value = number(raw)
        if value is None:
            self.fault(metric, f"TRex says {str(raw)[:40]!r}, which is no number", thing)
        self.put(metric, value, thing, scale)

    def fault(self, metric: str, why: str, thing: str = "") -> None:
        """A metric that could not be read."""
        self.faults.append(Fault(metric, thing, why))

    def latency(self, metric: str, part: Window, **labels: object) -> None:
        """The latency of a window under ``metric``: mean, max, and quantiles of the buckets."""
        figures = {"mean": part.mean_us, "max": part.max_us}
        figures.update({name: quantile(part, share) for name, share in QUANTILES.items()})
        for name, value in figures.items():
            self.put(metric, value, object_text(**labels, quantile=name), 1e-6)
