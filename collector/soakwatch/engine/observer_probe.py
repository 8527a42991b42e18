"""Pauses the polling of devices repeatedly, as the plan's key ``observer`` asks, to measure what polling costs.

Each pause is an event ``observer.rest`` with begin and end; its details tell the rule ``observer_cost`` which window
with polls to compare it with.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from soakwatch.engine.phases import PhaseTimeline
from soakwatch.engine.polling import PolledSource
from soakwatch.engine.run_record import RunRecord
from soakwatch.plan.observer_plan import ObserverPlan
from soakwatch_model.event import Event
from soakwatch_rules.management.poll_pauses import REST

_CPU_READS = 10  # in the compared part of a pause
_LATE = 0.5  # of the settling time: a pause that would begin later is skipped


@dataclass(frozen=True, slots=True)
class Rest:
    """One pause; if ``behind``, the window with polls that it is compared with follows it, else precedes it."""

    pair: int
    begin_ns: int
    end_ns: int
    behind: bool

    @property
    def over_ns(self) -> int:
        """When both windows of the pair are over, UTC ns."""
        return self.end_ns + (self.end_ns - self.begin_ns if self.behind else 0)


def rests(plan: ObserverPlan, begin_ns: int, seed: int) -> tuple[Rest, ...]:
    """The pauses of all pairs, after a first window with polls from ``begin_ns`` on.

    Which window of a pair comes first is random, half of them each way, so that no trend or rhythm of the device
    favours one side. The same seed gives the same pauses, also in a resumed run.
    """
    first = [index % 2 == 0 for index in range(plan.pairs)]
    random.Random(seed).shuffle(first)  # noqa: S311 - no secret
    length_ns = round(plan.probe_s * 1e9)
    begins = [begin_ns + (1 + 2 * pair + (not rests_first)) * length_ns for pair, rests_first in enumerate(first)]
    return tuple(
        Rest(pair + 1, begin, begin + length_ns, rests_first)
        for pair, (begin, rests_first) in enumerate(zip(begins, first, strict=True))
    )


class ObserverProbe:
    """The pauses of one run. Call ``begin_due`` at every time of ``due_ns``, and regularly in between."""

    def __init__(
        self, plan: ObserverPlan | None, seed: int, phases: PhaseTimeline, out: RunRecord, now_ns: Callable[[], int]
    ) -> None:
        self._plan, self._seed, self._phases, self._out, self._now_ns = plan, seed, phases, out, now_ns
        self._done = 0  # pauses begun or skipped

    def due_ns(self) -> tuple[int, ...]:
        """When the next pauses begin, as planned now."""
        return tuple(rest.begin_ns for rest in self._to_come())

    async def begin_due(self, sources: Iterable[PolledSource]) -> None:
        """Begins a due pause: records its event, then pauses the devices' sources.

        A source that does not answer is not paused; if the event cannot be recorded, there is no pause.
        """
        now_ns = self._now_ns()
        due = [rest for rest in self._to_come() if rest.begin_ns <= now_ns]
        if not due or self._plan is None:
            return
        self._done += len(due)
        rest = due[-1]
        if now_ns - rest.begin_ns > _LATE * self._plan.settle_s * 1e9:
            return  # the monitor was late, or not running
        listed = tuple(sources)
        for target in self._plan.targets:
            mine = [source for source in listed if source.spec.label.partition("/")[0] == target]
            if any(source.reads_cpu for source in mine):
                await self._begin(self._plan, rest, now_ns, target, mine)

    async def _begin(
        self, plan: ObserverPlan, rest: Rest, now_ns: int, target: str, sources: Sequence[PolledSource]
    ) -> None:
        renewal_s = max(source.cpu_renewal_s for source in sources)
        detail = {
            "pair": f"{rest.pair} of {plan.pairs}",
            "seconds": f"{plan.probe_s:g}",
            "not compared": f"{plan.settle_s:g}",
            "polled": "after" if rest.behind else "before",
            **({"renewal": f"{renewal_s:g}"} if renewal_s else {}),
        }
        if await self._out.notes.event(Event(REST, target, "", now_ns, rest.end_ns, detail)) is None:
            return
        every_ns = round((plan.probe_s - plan.settle_s) * 1e9 / _CPU_READS)
        for source in sources:
            source.rest(rest.end_ns, every_ns)

    def _to_come(self) -> Sequence[Rest]:
        """The pauses not yet begun that end within their phase, as planned now."""
        if self._plan is None:
            return ()
        stretch = next((each for each in self._phases.stretches if each.name == self._plan.phase), None)
        if stretch is None:
            return ()
        planned = rests(self._plan, stretch.window.begin_ns, self._seed)[self._done :]
        return tuple(rest for rest in planned if rest.over_ns <= stretch.window.end_ns)
