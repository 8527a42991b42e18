"""A text of the Prometheus formats as plain samples, within bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain

from soakwatch.sources.abc import SourceError

ACCEPT = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.9,*/*;q=0.1"
MAX_SAMPLES = 200_000
"""Samples of one page that are read at most."""


@dataclass(frozen=True, slots=True)
class PageSample:
    """One sample of a page; ``kind`` is gauge, counter, histogram, summary, info, stateset or unknown."""

    name: str
    labels: Mapping[str, str]
    value: float
    kind: str


def read_page(text: str, content_type: str) -> tuple[PageSample, ...]:
    """The samples of a page, in its order. Raises SourceError, in one sentence, for what is no such page."""
    parser = openmetrics if "openmetrics" in content_type.lower() else plain
    samples: list[PageSample] = []
    try:
        for family in parser(text):
            _take(family.samples, family.type, samples)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        reason = " ".join(str(error).split())[:120]
        raise SourceError(f"the page is not a metrics page: {reason or type(error).__name__}") from None
    return tuple(samples)


def _take(samples: Iterable[object], kind: str, into: list[PageSample]) -> None:
    for sample in samples:
        name, labels, value = getattr(sample, "name", ""), getattr(sample, "labels", {}), getattr(sample, "value", 0.0)
        if name.endswith("_created") and kind in {"counter", "histogram", "summary"}:
            continue  # a time, not a reading
        if len(into) >= MAX_SAMPLES:
            raise SourceError(f"the page holds more than {MAX_SAMPLES} samples: ask for fewer collectors")
        into.append(PageSample(name, labels, float(value), kind))
