"""What all parts of Soakwatch exchange: Sample, Fault, Answer and Poll.

Times are ns since 1970 UTC on the run's steady clock (see ``soakwatch.core.clock``), durations ns of a monotonic clock.
A value that could not be read is a Fault, never a number.

It runs on Python 3.9, where a dataclass with slots cannot have defaults, so every field is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from soakwatch_model.event import Event


class Sample(NamedTuple):
    """One value of one metric of one object at one time.

    ``metric`` is a name of the catalogue (metric.py), ``object`` the canonical label text (``object_text``; empty for
    the target itself), ``value`` in the catalogue's unit; counters are raw (an int may exceed 2**53).

    A tuple, which is made in a quarter of the time of a frozen dataclass: a poll makes hundreds.
    """

    metric: str
    object: str
    value: float
    time_ns: int


@dataclass(frozen=True)
class Fault:
    """One metric (of one object) that could not be read in a poll that otherwise worked, and why in one sentence."""

    __slots__ = ("metric", "object", "text")
    metric: str
    object: str
    text: str


@dataclass(frozen=True)
class Answer:
    """The result of one poll of one source; may be empty. A failed poll raises instead."""

    __slots__ = ("events", "faults", "samples")
    samples: tuple[Sample, ...]
    events: tuple[Event, ...]
    faults: tuple[Fault, ...]


class PollOutcome(Enum):
    """How a due poll ended. Each but OK is a gap in the series and is recorded."""

    OK = "ok"
    FAILED = "failed"  # the source answered with an error, or not at all
    LOSSY = "requests lost"  # only some of the poll's requests were answered
    TIMEOUT = "timeout"  # the poll took longer than its timeout and was abandoned
    OVERRUN = "overrun"  # skipped: the previous poll was still running
    MISSED = "missed"  # the monitor itself was late
    HELD_BACK = "held back"  # not polled, because a failing source is polled less often
    GAP = "gap"  # the monitor was not running (crash, resume)


@dataclass(frozen=True)
class Poll:
    """One poll of one source: when it was due and started, how long it took, how it ended, its answer.

    ``source`` is the source's id in the record; ``duration_ns`` is 0 if it never started (overrun, missed, held back,
    gap). ``error`` is one sentence, None if OK.
    """

    __slots__ = ("answer", "due_ns", "duration_ns", "error", "outcome", "source", "start_ns")
    source: int
    due_ns: int
    start_ns: int
    duration_ns: int
    outcome: PollOutcome
    error: str | None
    answer: Answer


NOTHING = Answer((), (), ())

_ESCAPES = str.maketrans({"\\": "\\\\", ",": "\\,", "=": "\\="})


def object_text(**labels: object) -> str:
    r"""The canonical text of an object's labels: ``key=value`` pairs in the order given, joined by commas.

    Commas, equal signs and backslashes in values are escaped with a backslash.

    >>> object_text(process="nginx", instance=0)
    'process=nginx,instance=0'
    >>> object_text(process="a=b,c")
    'process=a\\=b\\,c'
    """
    return ",".join(f"{key}={str(value).translate(_ESCAPES)}" for key, value in labels.items())


def object_labels(text: str) -> dict[str, str]:
    r"""Parses a canonical object text; the inverse of ``object_text``.

    >>> object_labels("process=a\\=b\\,c,instance=0")
    {'process': 'a=b,c', 'instance': '0'}
    >>> object_labels("")
    {}
    """
    labels: dict[str, str] = {}
    if not text:
        return labels
    key, part, escaped = "", [], False
    in_value = False
    for char in text:
        if escaped:
            part.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == "=" and not in_value:
            key, part, in_value = "".join(part), [], True
        elif char == ",":
            labels[key] = "".join(part)
            key, part, in_value = "", [], False
        else:
            part.append(char)
    labels[key] = "".join(part)
    return labels
