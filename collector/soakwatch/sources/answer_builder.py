"""What one look at a generator brought: its samples and faults, and figures of the whole out of those of its parts."""

from __future__ import annotations

from collections.abc import Iterable

from soakwatch_agent.sample import Answer, Event, Fault, Sample, object_text

_MOST_FAULTS = 100  # a look at a generator with a thousand broken flows says enough with these


class Figures:
    """Samples and faults of one look, in the order in which they were found."""

    def __init__(self, now_ns: int) -> None:
        self._now_ns = now_ns
        self._samples: list[Sample] = []
        self._faults: list[Fault] = []

    def put(self, metric: str, value: float | None, **labels: object) -> None:
        """A reading; None is none, and nothing is put (missing is never zero)."""
        if value is not None:
            self._samples.append(Sample(metric, object_text(**labels), value, self._now_ns))

    def fault(self, metric: str, text: str, **labels: object) -> None:
        """Why a reading is missing."""
        if len(self._faults) < _MOST_FAULTS:
            self._faults.append(Fault(metric, object_text(**labels), text))

    def answer(self, *events: Event) -> Answer:
        """The look."""
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
    """Whether a look says that the generator does not send."""
    return any(sample.metric == "load.sending" and sample.value == 0 for sample in answer.samples)


def restarted(answer: Answer, now_ns: int, told: str) -> Answer:
    """The look, and with it the event that the generator came back at rest and was told again what to send."""
    event = Event("generator.restart", "", now_ns, None, {"found": "at rest after it had not answered", "told": told})
    return Answer(answer.samples, (*answer.events, event), answer.faults)
