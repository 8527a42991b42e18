"""The answer of one poll of a load: its samples and faults, and figures of the whole generator out of its parts."""

from __future__ import annotations

from collections.abc import Iterable

from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Fault, Sample, object_text

_MAX_FAULTS = 100  # a poll of a generator with a thousand broken flows says enough with these


class AnswerBuilder:
    """Collects the samples and faults of one poll, in the order in which they were put; all samples of ``time_ns``.

    It knows no poll but this one. The probes of a host, which report a fault only when it changes, have
    ``soakwatch_agent.context.ProbeAnswer``.
    """

    def __init__(self, time_ns: int) -> None:
        self.time_ns = time_ns
        self._samples: list[Sample] = []
        self._faults: list[Fault] = []

    def put(self, metric: str, value: float | None, *, scale: float = 1.0, **labels: object) -> None:
        """A sample of ``value`` times ``scale`` in the unit of the catalogue; None puts nothing: missing is never zero.

        ``labels`` are those of the object, in the order of the catalogue.
        """
        if value is not None:
            exact = value if scale == 1.0 else value * scale  # a counter stays an int
            self._samples.append(Sample(metric, object_text(**labels), exact, self.time_ns))

    def fault(self, metric: str, text: str, **labels: object) -> None:
        """Why a sample is missing; beyond a bound of faults in one poll, nothing."""
        if len(self._faults) < _MAX_FAULTS:
            self._faults.append(Fault(metric, object_text(**labels), text))

    def extend(self, other: AnswerBuilder) -> None:
        """What another builder collected, whose samples may be of another time."""
        self._samples += other._samples
        self._faults += other._faults[: _MAX_FAULTS - len(self._faults)]

    def answer(self, *events: Event) -> Answer:
        """The answer so far, with these events."""
        return Answer(tuple(self._samples), events, tuple(self._faults))


def whole(parts: Iterable[float | None]) -> float | None:
    """The sum of the parts, or None where there is none or one is missing: half a generator is not the generator.

    >>> whole([2**60, 1]), whole([1, None]), whole([])
    (1152921504606846977, None, None)
    """
    total: float = 0
    some = False
    for part in parts:
        if part is None:
            return None
        total += part
        some = True
    return total if some else None


def mean_by(weighted: Iterable[tuple[float | None, float | None]]) -> float | None:
    """The mean of values, each with its weight; None where a value or a weight is missing or nothing weighs.

    >>> mean_by([(1.0, 3), (5.0, 1)]), mean_by([(1.0, None)]), mean_by([(0.0, 0)])
    (2.0, None, None)
    """
    total = weights = 0.0
    for value, weight in weighted:
        if value is None or weight is None:
            return None
        total += value * weight
        weights += weight
    return total / weights if weights > 0 else None


def rests(answer: Answer) -> bool:
    """Whether a poll says that the generator does not send."""
    return any(sample.metric == "load.sending" and sample.value == 0 for sample in answer.samples)


def restarted(answer: Answer, now_ns: int, ordered: str) -> Answer:
    """The answer with the event that the generator came back at rest, and was ordered again to send ``ordered``."""
    detail = {"found": "at rest after it had not answered", "told": ordered}
    return Answer(
        answer.samples, (*answer.events, Event("generator.restart", "", "", now_ns, None, detail)), answer.faults
    )
