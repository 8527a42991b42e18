"""Parses one line of a command's output: a JSON object, or pairs ``key value``."""

from __future__ import annotations

import json
import math

from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import Fault, Sample, object_labels, object_text


def parse_tick(line: str, now_ns: int) -> tuple[list[Sample], list[Fault]]:
    """The samples of one line, and a fault for each part that could not be read.

    >>> parse_tick('{"load.request.rate": 10.5, "load.latency{quantile=p99}": 0.25}', 7)[0][1]
    Sample(metric='load.latency', object='quantile=p99', value=0.25, time_ns=7)
    >>> parse_tick("load.requests 12, load.failures 0", 7)[0][0].value
    12.0
    >>> parse_tick("load.requests many", 7)[1][0].text
    "'many' is not a number"
    """
    text = line.strip()
    if not text:
        return [], []
    try:
        pairs = list(json.loads(text).items()) if text.startswith("{") else _pairs(text)
    except (ValueError, RecursionError):
        return [], [Fault("", "", f"not a JSON object and not `key value` pairs: {text[:80]!r}")]
    samples: list[Sample] = []
    faults: list[Fault] = []
    for key, raw in pairs:
        name, _, labels = str(key).partition("{")
        if name == "time":
            continue
        if name not in BY_NAME:
            faults.append(Fault("", "", f"{name[:80]!r} is not in the catalogue: see `soakwatch metrics load.*`"))
            continue
        if raw is None:
            continue
        obj, value = _object(name, labels.removesuffix("}")), _number(raw)
        if obj is None:
            known = ", ".join(BY_NAME[name].labels) or "none"
            faults.append(Fault(name, "", f"{str(key)[:80]!r} has labels that {name} does not: expected {known}"))
        elif value is None:
            faults.append(Fault(name, obj, f"{str(raw)[:80]!r} is not a number"))
        else:
            samples.append(Sample(name, obj, value, now_ns))
    return samples, faults


def _number(raw: object) -> float | None:
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        return None
    try:
        value = float(raw)
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(value):
        return None
    return raw if isinstance(raw, int) else value


def _object(name: str, text: str) -> str | None:
    """The object with labels in the catalogue's order; None if the metric does not have them."""
    if not text:
        return ""
    labels, known = object_labels(text), BY_NAME[name].labels
    if not labels.keys() <= set(known):
        return None
    return object_text(**{label: labels[label] for label in known if label in labels})


def _pairs(text: str) -> list[tuple[str, str]]:
    words = text.replace(",", " ").replace("}", "} ").split()
    if len(words) % 2:
        raise ValueError("an odd number of words")
    return list(zip(words[::2], words[1::2], strict=True))
