"""The first polls of a new run: a plan that cannot work ends it within seconds instead of after a night.

What counts is what a poll reports about the plan (``PlanError``: an unset variable, an unknown profile), and a
generator that cannot be reached: without its data the load is unknown. A device that does not answer is a failing
source, and so is a plan that breaks later, such as by a secret whose file is removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from soakwatch.core.errors import PlanError
from soakwatch.core.text import prefixed
from soakwatch.plan import SourcePlan
from soakwatch.sources.abc import SourceUnreadyError

OPENS_S = 10.0
"""How long a generator may take to open, however often it is read: on a busy machine a command takes its time."""
GRACE_S = 3.0
"""How long the other sources may take to say what is wrong with them, once one has."""


FirstPollEnded = Callable[[Exception | None], bool]
"""Takes how the first poll of a source ended (why it failed, or None); whether the run ends for it."""


class PlanRefusedError(PlanError):
    """The sources could not be opened as the plan says: the run ended before it started."""


class FirstPolls:
    """Which sources were polled for the first time, and what is wrong with the plan, in its order."""

    def __init__(self) -> None:
        self._expected = 0
        self._polled = 0
        self._problems: dict[int, tuple[str, ...]] = {}
        self._wrong, self._complete = asyncio.Event(), asyncio.Event()

    def expect(self, target: str, label: str, planned: SourcePlan, *, insist: bool = False) -> FirstPollEnded:
        """Add a source; the function returned takes how its first poll ended: why it failed, or None.

        It returns whether the run ends because of that: for a PlanError, and for any failure of a source that is
        ``insist``ed on, unless it is only getting ready.
        """
        number = self._expected
        self._expected += 1
        where = f"{planned.location}: " if planned.location else ""

        def ended(failure: Exception | None) -> bool:
            self._polled += 1
            problems = _problems(failure, insist=insist)
            if problems:
                self._problems[number] = tuple(f"{where}{prefixed(target, label, problem)}" for problem in problems)
                self._wrong.set()
            if self._polled == self._expected:
                self._complete.set()
            return bool(problems)

        return ended

    async def refused(self) -> None:
        """Returns once the plan is known to be wrong, and all sources were polled or ``GRACE_S`` have passed."""
        await self._wrong.wait()
        try:
            async with asyncio.timeout(GRACE_S):
                await self._complete.wait()
        except TimeoutError:
            return

    def check(self) -> None:
        """Raises PlanRefusedError with every sentence if the plan is wrong."""
        if self._problems:
            raise PlanRefusedError(
                *(sentence for _, problems in sorted(self._problems.items()) for sentence in problems)
            )


def _problems(failure: Exception | None, *, insist: bool) -> tuple[str, ...]:
    if isinstance(failure, PlanError):
        return failure.problems or (str(failure),)
    if failure is None or not insist or isinstance(failure, SourceUnreadyError):
        return ()
    return (f"{failure}: start the generator, or give this source required: false",)
