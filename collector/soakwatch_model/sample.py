"""What crosses every seam of Soakwatch: Sample, Fault, Answer and Poll.

Times are nanoseconds since 1970 UTC on the steady clock of a run (see ``soakwatch.core.clock``); durations are
nanoseconds of a monotonic clock. A value that could not be read is a Fault, never a number.

The classes run on Python 3.9, where a dataclass with slots can have no defaults: every field is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from soakwatch_model.event import Event


@dataclass(frozen=True)
class Sample:
    """One value of one metric of one object at one time.

    ``metric`` is a name of the catalogue (metric.py), ``object`` the canonical label text of what was
    measured (``object_text``; empty for the target as a whole), ``value`` in the unit of the catalogue; counters
    are raw, as the source keeps them (an int may exceed 2**53).
    """

    __slots__ = ("metric", "object", "time_ns", "value")
    metric: str
    object: str
    value: float
    time_ns: int


@dataclass(frozen=True)
class Fault:
    """One metric (of one object) that could not be read in a poll that otherwise worked: why, in one sentence."""

    __slots__ = ("metric", "object", "text")
    metric: str
    object: str
    text: str


@dataclass(frozen=True)
class Answer:
    """The result of one poll of one source. An empty answer is an answer; a failed poll raises instead."""

    __slots__ = ("events", "faults", "samples")
    samples: tuple[Sample, ...]
    events: tuple[Event, ...]
    faults: tuple[Fault, ...]


class PollOutcome(Enum):
    """How a due poll ended. Everything but OK is a gap in the series, and every gap is recorded."""

    OK = "ok"
    FAILED = "failed"  # the source answered with an error, or not at all
    LOSSY = "requests lost"  # the source answered some requests of the poll; others were lost on the way
    TIMEOUT = "timeout"  # the poll took longer than its timeout and was abandoned
    OVERRUN = "overrun"  # due while previous poll still running: skipped, never stacked
    MISSED = "missed"  # the monitor itself was late
    HELD_BACK = "held back"  # not polled, because a failing source is polled less often
    GAP = "gap"  # the monitor was not running (crash, resume)


@dataclass(frozen=True)
class Poll:
    """One poll of one source: when it was due, when it started, how long it took, how it ended, its answer.

    ``source`` is the id that the record gave the source; ``duration_ns`` is 0 for a poll that never started
    (overrun, missed, held back, gap). ``error`` is one sentence, or None where the outcome is OK.
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
    r"""The labels of a canonical object text; the inverse of ``object_text``.

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
