"""When the flight recorder's samples are worth fetching, and what they are in the record."""

from __future__ import annotations

import statistics
from collections import deque

from soakwatch.poller import SourceFailed
from soakwatch_agent.framing import Object
from soakwatch_agent.sample import Answer, Event, Sample

REACH_NS = 30_000_000_000  # the window begins so long before what happened, and ends so long after
_QUIET_NS = 120_000_000_000  # between two windows
_MOST_WINDOWS = 200  # a run
_MEMORY = 60  # looks that make the usual level of CPU
_ENOUGH = 10
_JUMP = 0.3  # busy share above the usual level
_A_TIME = 2000  # samples that go into one poll
_OLD_NEWS = frozenset({"core.present", "device.identity"})
_CPU = "system.cpu.utilization"


class Windows:
    """Watches the answers of an agent for what is worth a closer look: an event, a jump of the CPU, a lost look."""

    def __init__(self) -> None:
        self._usual: deque[float] = deque(maxlen=_MEMORY)
        self._wanted: tuple[int, str] | None = None  # when, why
        self._next_ns = 0
        self._count = 0
        self._waiting: deque[Sample] = deque()

    def consider(self, answer: Answer, now_ns: int) -> None:
        """Looks at an answer, in our time."""
        why = next((event.kind for event in answer.events if event.kind not in _OLD_NEWS), None)
        for sample in answer.samples:
            if sample.metric == _CPU:
                if len(self._usual) >= _ENOUGH and sample.value > statistics.median(self._usual) + _JUMP:
                    why = why or "jump of the CPU"
                self._usual.append(sample.value)
        if why is not None:
            self.want(now_ns, why)

    def want(self, now_ns: int, why: str) -> None:
        """Something happened: its window is fetched once it is whole, unless one was fetched lately."""
        if self._wanted is None and now_ns >= self._next_ns and self._count < _MOST_WINDOWS:
            self._wanted = (now_ns, why)

    def due(self, now_ns: int) -> tuple[int, int, str] | None:
        """Begin, end and reason of the window that is whole now, in our time; asked for once."""
        if self._wanted is None or now_ns < self._wanted[0] + REACH_NS:
            return None
        when, why = self._wanted
        self._wanted = None
        self._count += 1
        self._next_ns = when + _QUIET_NS
        return when - REACH_NS, when + REACH_NS, why

    def keep(self, body: Object, offset_ns: int, why: str) -> Event | None:
        """Takes the agent's answer; its samples go out with ``some``. The event says that they are there.

        Raises SourceFailed for what is no window.
        """
        columns, times, rows = body.get("columns"), body.get("times"), body.get("values")
        samples: list[Sample] = []
        try:
            assert isinstance(columns, list)
            assert isinstance(times, list)
            assert isinstance(rows, list)
            for time_ns, row in zip(times, rows, strict=True):
                assert isinstance(time_ns, int)
                assert isinstance(row, list)
                for column, value in zip(columns, row, strict=True):
                    if value is None:
                        continue
                    assert isinstance(column, list)
                    assert isinstance(value, int | float)
                    metric, name = column
                    assert isinstance(metric, str)
                    assert isinstance(name, str)
                    samples.append(Sample(metric, name, value, time_ns - offset_ns))
        except (AssertionError, ValueError):
            raise SourceFailed("the agent's flight recorder answered something that is no window") from None
        if not samples:
            return None
        begin, end = samples[0].time_ns, samples[-1].time_ns
        self._waiting += samples
        detail = {"reason": why, "samples": str(len(samples)), "every_s": str(body.get("every_s"))}
        return Event("recorder.window", "", begin, end, detail)

    def some(self) -> tuple[Sample, ...]:
        """The next samples for the record, a bounded number."""
        return tuple(self._waiting.popleft() for _ in range(min(_A_TIME, len(self._waiting))))
