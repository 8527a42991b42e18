"""The shape of the polls of a source: the order in which their readings are packed, and what may be left out."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from soakwatch.record.model import Ints
from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import Fault, Sample

EXACT = 2**53  # integers up to here are floats without loss
_MAX_FLOAT = float(np.finfo(np.float64).max)

Shape = tuple[int, tuple[str, ...], tuple[str, ...], tuple[type, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The order in which the readings of a poll are packed, with the bounds that the catalogue sets for each."""

    id: int
    series: NDArray[np.int64]
    packer: struct.Struct
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """A shape of polls of which some readings may be left out: all its series, and a layout for each choice so far."""

    series: Ints
    layouts: dict[bytes, Layout | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Packed:
    """The readings of one poll as they are kept: ``offsets`` are int64 nanoseconds from the poll's start, one for
    all readings or one each; None where all are 0."""

    layout: int
    count: int
    offsets: bytes | None
    data: bytes
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading that was admitted."""

    series: int
    kind: str
    value: float
    time_ns: int
    metric: str
    whole: bool  # it came as an integer
    plain: bool  # it came under the names and with the type that it is kept with


def bounds(reading: Reading) -> tuple[float, float]:
    """The lowest and the highest reading that the catalogue allows and a word of this kind can hold."""
    metric = BY_NAME[reading.metric]
    low = -_MAX_FLOAT if metric.low is None else metric.low
    high = _MAX_FLOAT if metric.high is None else metric.high
    if reading.whole and reading.kind == "d":  # a larger integer would lose digits here: it goes the slow way
        return max(low, float(-EXACT)), min(high, float(EXACT))
    return low, high


def times_of(samples: Sequence[Sample]) -> Ints:
    """When each was read; one time where it is the same for all."""
    stamps = [sample.time_ns for sample in samples]
    first = stamps[0]
    return np.array([first] if stamps.count(first) == len(stamps) else stamps, dtype=np.int64)


def offsets_of(times: NDArray[np.int64], start_ns: int) -> bytes | None:
    """The times of readings as a row keeps them; None where all are the start."""
    offsets = np.atleast_1d(times) - start_ns
    return offsets.astype("<i8").tobytes() if offsets.any() else None
