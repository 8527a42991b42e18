"""When the flight recorder's samples are worth fetching, and what they are in the record."""

from __future__ import annotations

import json
import math
import statistics
from collections import deque
from dataclasses import dataclass, field

from soakwatch.core.event_kinds import REACH_NS, WINDOW, FindingKey, event_name, is_internal
from soakwatch.sources.abc import SourceError
from soakwatch_agent.framing import Object
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Sample, object_labels
from soakwatch_model.window import Window

QUIET_NS = 120_000_000_000  # from one window that is fetched to the next
RING_NS = 600_000_000_000  # what the recorder keeps
MAX_WINDOWS = 200  # a run
MAX_WAITING = 4  # with the quiet time between them, what the ring keeps for so long
MAX_REASONS = 8  # named in one window; the others are counted
_MEMORY = 60  # polls that make the usual level of CPU
_ENOUGH = 10
_JUMP = 0.3  # busy share above the usual level
_USUAL = 0.9  # a core is seldom busier than this share of its polls
_LASTS = 2  # polls: a burst of one poll on one core is normal
_MAX_CORES = 256
_TRIES = 2  # to fetch one window
_SAMPLES_PER_POLL = 2000  # samples that go into one poll
_CPU, _CORE = "system.cpu.utilization", "system.cpu.core.utilization"


@dataclass(frozen=True, slots=True)
class CaptureMoment:
    """When something happened that is worth capturing, and why; ``finding`` where a live finding is the reason."""

    time_ns: int
    why: str
    finding: FindingKey | None = None


@dataclass(frozen=True, slots=True)
class RecorderWindow:
    """A window (in our time) worth fetching; ``moments`` say when and why, ``more`` counts those not named."""

    window: Window
    moments: tuple[CaptureMoment, ...]
    more: int = 0
    tries: int = 0

    @property
    def reason(self) -> str:
        """Why, in one line."""
        return "; ".join(moment.why for moment in self.moments)


@dataclass(slots=True)
class _PendingWindow:
    begin_ns: int
    end_ns: int
    moments: list[CaptureMoment]
    more: int = 0
    tries: int = 0

    def name(self, moment: CaptureMoment) -> None:
        if any(moment.why == known.why for known in self.moments):
            return
        if len(self.moments) < MAX_REASONS:
            self.moments.append(moment)
        else:
            self.more += 1

    def cut_to(self, begin_ns: int, end_ns: int) -> RecorderWindow:
        window = Window(max(self.begin_ns, begin_ns), min(self.end_ns, end_ns))
        return RecorderWindow(window, tuple(self.moments), self.more, self.tries)


@dataclass(slots=True)
class _Level:
    """How busy a core usually is, and since when it is far busier."""

    usual: deque[float] = field(default_factory=lambda: deque(maxlen=_MEMORY))
    since_ns: int = 0
    polls: int = 0

    def jumped(self, share: float, now_ns: int, lasts: int, *, seldom: bool) -> bool:
        """Takes a reading; True if it completes a jump."""
        if len(self.usual) >= _ENOUGH and share > _JUMP and share > self._usually(seldom=seldom) + _JUMP:
            self.since_ns = self.since_ns if self.polls else now_ns
            self.polls += 1
        else:
            self.polls = 0
        self.usual.append(share)
        return self.polls == lasts

    def _usually(self, *, seldom: bool) -> float:
        if not seldom:
            return statistics.median(self.usual)
        ranked = sorted(self.usual)
        return ranked[math.ceil(_USUAL * len(ranked)) - 1]


class Windows:
    """Collects what is worth the recorder's samples: requested moments, and jumps of the CPU in an agent's answers.

    What happens while a window is waiting, and within it, is named in it; what happens beyond gets a window of its
    own, which waits for the quiet time: the ring keeps it meanwhile. Windows never overlap.
    """

    def __init__(self) -> None:
        self._machine = _Level()
        self._cores: dict[str, _Level] = {}
        self._waits: deque[_PendingWindow] = deque()
        self._taken: deque[Window] = deque(maxlen=16)  # those that were fetched
        self._gone: list[str] = []
        self._now_ns: int | None = None
        self._next_ns = 0
        self._count = 0
        self._samples: deque[Sample] = deque()
        self._failing = False

    def poll_failed(self, now_ns: int) -> None:
        """A poll was lost: the first one of a row is worth a window."""
        if not self._failing:
            self.want(now_ns, "a poll failed")
        self._failing = True

    def poll_answered(self) -> None:
        """A poll was handed over."""
        self._failing = False

    def consider(self, answer: Answer, now_ns: int) -> None:
        """Examines an answer, in our time."""
        self._now_ns = now_ns
        for event in answer.events:
            if not is_internal(event.kind):
                self.want(event.begin_ns, event_name(event.kind, event.object))
        for sample in answer.samples:
            if sample.metric == _CPU and self._machine.jumped(sample.value, now_ns, 1, seldom=False):
                self.want(now_ns, "jump of the CPU")
            elif sample.metric == _CORE:
                self._consider_core(sample, now_ns)

    def want(self, when_ns: int, why: str, finding: FindingKey | None = None) -> None:
        """Something happened at that time: the window around it is fetched when the window is over."""
        moment = CaptureMoment(when_ns, why, finding)
        now_ns = when_ns if self._now_ns is None else self._now_ns
        far = when_ns + REACH_NS <= now_ns - RING_NS or when_ns > now_ns + RING_NS
        if far or any(each.begin_ns <= when_ns < each.end_ns for each in self._taken):
            return
        waits = next((each for each in self._waits if each.begin_ns <= when_ns < each.end_ns), None)
        if waits is not None or (waits := self._lengthened(when_ns)) is not None:
            waits.name(moment)
        elif len(self._waits) >= MAX_WAITING:
            self._waits[-1].more += 1
        elif self._count + len(self._waits) < MAX_WINDOWS:
            self._add(moment)

    def due(self, now_ns: int) -> RecorderWindow | None:
        """The window that is whole now and may be fetched; asked for once."""
        self._now_ns = now_ns
        while self._waits and self._waits[0].end_ns <= now_ns - RING_NS:
            self._gone += [moment.why for moment in self._waits.popleft().moments]
        if not self._waits or now_ns < max(self._waits[0].end_ns, self._next_ns):
            return None
        wanted = self._waits.popleft()
        self._next_ns = now_ns + QUIET_NS
        return self._took(wanted.cut_to(now_ns - RING_NS, wanted.end_ns))

    def last(self, end_ns: int) -> RecorderWindow | None:
        """At the end of a run: the next window, cut there and without the quiet time; None when there is none."""
        while self._waits:
            cut = self._waits.popleft().cut_to(end_ns - RING_NS, end_ns)
            if cut.window.begin_ns < cut.window.end_ns:
                return self._took(cut)
        return None

    def give_back(self, fetched: RecorderWindow) -> None:
        """The connection was lost during the fetch of this window: it is fetched again when the connection is back."""
        window = fetched.window
        if fetched.tries < _TRIES - 1 and window in self._taken:
            self._taken.remove(window)
            again = list(fetched.moments), fetched.more, fetched.tries + 1
            self._waits.appendleft(_PendingWindow(window.begin_ns, window.end_ns, *again))
            self._count -= 1
            self._next_ns = 0

    def take_gone(self) -> tuple[str, ...]:
        """The reasons of windows that left the recorder's ring before they could be fetched, since the last call."""
        gone, self._gone = tuple(self._gone), []
        return gone

    def keep(self, body: Object, offset_ns: int, window: RecorderWindow) -> Event | None:
        """Takes the agent's answer; its samples go out with ``some``. The event says that they are there.

        Raises SourceError for an unreadable answer.
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
            raise SourceError("the agent's flight recorder sent an unreadable answer") from None
        if not samples:
            return None
        start, end = samples[0].time_ns, samples[-1].time_ns
        self._samples += samples
        detail = {
            "reason": window.reason,
            "at_ns": " ".join(str(moment.time_ns) for moment in window.moments),
            "findings": json.dumps([moment.finding for moment in window.moments]),
            "samples": str(len(samples)),
            "every_s": str(body.get("every_s")),
        }
        if window.more:
            detail["more"] = str(window.more)
        return Event(WINDOW, "", "", start, end, detail)

    def some(self) -> tuple[Sample, ...]:
        """The next samples for the record, a bounded number."""
        return tuple(self._samples.popleft() for _ in range(min(_SAMPLES_PER_POLL, len(self._samples))))

    def _consider_core(self, sample: Sample, now_ns: int) -> None:
        level = self._cores.get(sample.object)
        if level is None:
            if len(self._cores) >= _MAX_CORES:
                return
            level = self._cores[sample.object] = _Level()
        if level.jumped(sample.value, now_ns, _LASTS, seldom=True):
            core = object_labels(sample.object).get("core", sample.object)
            self.want(level.since_ns, f"jump of the CPU: core {core}")

    def _lengthened(self, when_ns: int) -> _PendingWindow | None:
        """The last window, if it was cut short by its predecessor and can be lengthened to hold this time."""
        last = self._waits[-1] if self._waits else None
        if last is None or not last.end_ns <= when_ns < min(last.end_ns + REACH_NS, last.begin_ns + 2 * REACH_NS):
            return None
        last.end_ns = min(when_ns + REACH_NS, last.begin_ns + 2 * REACH_NS)
        return last

    def _add(self, moment: CaptureMoment) -> None:
        """A window of its own, as far as no other has it."""
        when_ns = moment.time_ns
        others = [(each.begin_ns, each.end_ns) for each in self._taken]
        others += [(each.begin_ns, each.end_ns) for each in self._waits]
        begin_ns = max([when_ns - REACH_NS, *(end for _, end in others if end <= when_ns)])
        end_ns = min([when_ns + REACH_NS, *(start for start, _ in others if start > when_ns)])
        self._waits.append(_PendingWindow(begin_ns, end_ns, [moment]))
        self._waits = deque(sorted(self._waits, key=lambda each: each.begin_ns))

    def _took(self, fetched: RecorderWindow) -> RecorderWindow:
        self._taken.append(fetched.window)
        self._count += 1
        return fetched
