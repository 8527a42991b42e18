"""Leaves devices alone for a while, again and again, as the plan's ``observer`` asks, and announces each pause.

Each pause is an event ``observer.rest`` with a begin and an end: by its details the rule ``observer_cost`` finds the
window with polls that it is compared with.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from soakwatch.engine.phases import PhaseTimeline
from soakwatch.engine.polling import PolledSource
from soakwatch.engine.run_record import RunRecord
from soakwatch.plan.observer import ObserverPlan
from soakwatch_model.event import Event
from soakwatch_rules.management.pauses import REST

_CPU_READS = 10  # in what is compared of a pause
_LATE = 0.5  # of the part that is not compared: a pause that begins later is left out


@dataclass(frozen=True, slots=True)
class Rest:
    """One pause; ``behind`` says whether the window with polls lies behind it, else it lies before it."""

    pair: int
    begin_ns: int
    end_ns: int
    behind: bool

    @property
    def over_ns(self) -> int:
        """When both windows of the pair are over."""
        return self.end_ns + (self.end_ns - self.begin_ns if self.behind else 0)


def rests(plan: ObserverPlan, begin_ns: int, seed: int) -> tuple[Rest, ...]:
    """The pauses of all pairs from a time on, behind one window with polls.

    Which window of a pair comes first is drawn by lot, half of them each way, so that neither a trend nor a rhythm of
    the device falls on the same side in all of them. The same seed gives the same pauses: a resumed run goes on.
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
    """The pauses of one run. ``begin_due`` is called at every time of ``due_ns``, and now and then in between."""

    def __init__(
        self, plan: ObserverPlan | None, seed: int, phases: PhaseTimeline, out: RunRecord, now_ns: Callable[[], int]
    ) -> None:
        self._plan, self._seed, self._phases, self._out, self._now_ns = plan, seed, phases, out, now_ns
        self._done = 0  # pauses that were begun or left out

    def due_ns(self) -> tuple[int, ...]:
        """When the pauses to come begin, as it is known now."""
        return tuple(rest.begin_ns for rest in self._to_come())

    async def begin_due(self, sources: Iterable[PolledSource]) -> None:
        """Begin the pause whose time has come: announce it, and let the sources of the devices rest.

        A source that does not answer does not rest, and a pause that the record did not take is none.
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
        """None once their phase is known to end before them."""
        if self._plan is None:
            return ()
        stretch = next((each for each in self._phases.stretches if each.name == self._plan.phase), None)
        if stretch is None:
            return ()
        planned = rests(self._plan, stretch.window.begin_ns, self._seed)[self._done :]
        return tuple(rest for rest in planned if rest.over_ns <= stretch.window.end_ns)
