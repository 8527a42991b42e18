"""The first polls of a new run: a plan that cannot work ends it within seconds instead of after a night.

It ends for what a poll reports about the plan (``PlanError``: an unset variable, an unknown profile), and for a
generator that cannot be reached: without its data the load is unknown. A device that does not answer, or a secret whose
file disappears later, is a failing source.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from soakwatch.core.errors import PlanError
from soakwatch.core.text import prefixed
from soakwatch.plan import SourcePlan
from soakwatch.sources.abc import SourceUnreadyError

OPENS_S = 10.0
"""How long a generator may take to open, whatever its interval: on a busy machine a command starts slowly."""
GRACE_S = 3.0
"""How long the other sources may take to report their problems after the first one did."""


FirstPollEnded = Callable[[Exception | None], bool]
"""Takes why the first poll of a source failed, or None; returns whether the run ends because of it."""


class PlanRefusedError(PlanError):
    """The sources could not be opened as planned: the run ended before it started."""


class FirstPolls:
    """Which sources were polled once, and the problems of the plan, in its order."""

    def __init__(self) -> None:
        self._expected = 0
        self._polled = 0
        self._problems: dict[int, tuple[str, ...]] = {}
        self._wrong, self._complete = asyncio.Event(), asyncio.Event()

    def expect(self, target: str, label: str, planned: SourcePlan, *, insist: bool = False) -> FirstPollEnded:
        """Adds a source; call the returned function with why its first poll failed, or None.

        It returns whether the run ends: for a PlanError, and if ``insist``, for any failure but not being ready yet.
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
        """Raises PlanRefusedError with all problems if the plan is wrong."""
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
