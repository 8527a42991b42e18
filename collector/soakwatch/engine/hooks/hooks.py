"""The hooks of a run: which finding triggers them, the storm limit, and their actions, one at a time per hook."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol

from soakwatch.core.redaction import Redaction
from soakwatch.core.run_command import RunsCommand, run_command
from soakwatch.engine.hooks.trigger import HELD_BACK, HookFailedError, Trigger
from soakwatch.engine.promises import Promises, hook_action
from soakwatch.plan.hook import FINDINGS, CapturePlan, HookPlan
from soakwatch.record import Artifact, artifact_name
from soakwatch.record.findings import identity_of
from soakwatch.record.queue import Notes
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding

if TYPE_CHECKING:
    from soakwatch.judge.verdict import Verdict

FAILED: Final = "hook.failed"
"""Kind of the event that says that a hook failed."""
MAX_WAITING = 50
FINISH_S = 60.0
"""How long hooks may go on after the run: a failure at the very end still gets its evidence."""
IN_DOUBT: Final = "it had been started when the monitor was killed and may have run: it is not run again"
_MAX_REPORTED = 8


class TakesEvidence(Protocol):
    """Collects evidence."""

    async def take(self, planned: CapturePlan, trigger: Trigger) -> list[str]:
        """Stores the evidence; returns sentences on what of it could not be had."""
        ...


class Hooks:
    """Triggers the plan's hooks on findings. Nothing here raises, and only ``finish`` and ``conclude`` wait.

    ``known`` are the identities of findings that triggered hooks before the monitor was restarted; start and end
    actions that ``promises`` say were or may have been done are not done again.
    """

    def __init__(
        self,
        planned: Iterable[HookPlan],
        run: str,
        environment: Mapping[str, str],
        notes: Notes,
        capturing: TakesEvidence,
        redaction: Redaction,
        now_ns: Callable[[], int],
        known: Collection[str] = (),
        promises: Promises | None = None,
        command: RunsCommand = run_command,
    ) -> None:
        self._run, self._now_ns, self._serials = run, now_ns, count(1)
        marks = promises or Promises(None)
        self._known = frozenset(known)
        self._triggered: set[str] = set(known)
        self._hooks = [
            _Hook(number, hook, run, environment, notes, capturing, redaction, now_ns, self._serials, marks, command)
            for number, hook in enumerate(planned, 1)
        ]

    def start(self) -> None:
        """The run begins: triggers the hooks on the start."""
        for hook in self._hooks:
            if "start" in hook.planned.on:
                hook.set_off(Trigger("start", self._run, self._now_ns(), serial=next(self._serials), once="start"))

    def on_findings(self, findings: Iterable[Finding]) -> None:
        """Takes the current findings: one that did not fail or warn before triggers its hooks."""
        now = {identity_of(f): f for f in findings if f.outcome.value in FINDINGS}
        for identity, finding in now.items():
            if identity not in self._known:
                self._tell(finding)
                self._triggered.add(identity)
        self._known = frozenset(now)

    async def finish(self, longest_s: float = FINISH_S) -> None:
        """The run is over: waits for triggered hooks up to ``longest_s``, then stops them."""
        for hook in self._hooks:
            hook.release()
        if self._hooks:
            await asyncio.gather(*(hook.finish(longest_s) for hook in self._hooks))

    async def conclude(self, verdict: Verdict, longest_s: float = FINISH_S) -> None:
        """The run is judged: triggers hooks for new findings and the verdict, then waits as ``finish`` does."""
        for finding in verdict.findings:
            if finding.outcome.value in FINDINGS and identity_of(finding) not in self._triggered:
                self._tell(finding, once=identity_of(finding))
        for hook in self._hooks:
            if "end" in hook.planned.on:
                serial = next(self._serials)
                hook.set_off(Trigger("end", self._run, self._now_ns(), verdict=verdict, serial=serial, once="end"))
        await self.finish(longest_s)

    def _tell(self, finding: Finding, once: str = "") -> None:
        serial = next(self._serials)
        trigger = Trigger(finding.outcome.value, self._run, self._now_ns(), finding, serial=serial, once=once)
        for hook in self._hooks:
            if hook.matches(finding):
                hook.trigger(trigger, finding.rule)


class StormLimit:
    """At most ``count`` triggers in any ``seconds``."""

    def __init__(self, count: int, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self._count, self._seconds, self._clock = count, seconds, clock
        self._taken: deque[float] = deque()
        self._held: Counter[str] = Counter()

    def take(self, rule: str) -> bool:
        """True if one more may pass now; else counts it under its rule."""
        if self.opens_in() > 0:
            self._held[rule] += 1
            return False
        self._taken.append(self._clock())
        return True

    def opens_in(self) -> float:
        """Seconds until one more may pass; 0 if it may now."""
        now = self._clock()
        while self._taken and now - self._taken[0] >= self._seconds:
            self._taken.popleft()
        return 0.0 if len(self._taken) < self._count else self._taken[0] + self._seconds - now

    @property
    def holds(self) -> bool:
        """True if findings were held back."""
        return bool(self._held)

    def release(self) -> Mapping[str, int]:
        """Findings held back by rule since the last release; reporting them counts as one trigger."""
        held, self._held = dict(sorted(self._held.items())), Counter()
        self._taken.append(self._clock())
        return held


class _Hook:
    """One hook with its queue, worked off by a task that exists while the queue is not empty."""

    def __init__(
        self,
        number: int,
        planned: HookPlan,
        run: str,
        environment: Mapping[str, str],
        notes: Notes,
        capturing: TakesEvidence,
        redaction: Redaction,
        now_ns: Callable[[], int],
        serials: Iterator[int],
        promises: Promises,
        command: RunsCommand,
    ) -> None:
        self.planned, self._number, self._run, self._serials = planned, number, run, serials
        self._environment, self._notes, self._capturing = dict(environment), notes, capturing
        self._redaction, self._now_ns, self._promises, self._command = redaction, now_ns, promises, command
        self._limit = StormLimit(*planned.limit)
        self._waiting: deque[Trigger] = deque()
        self._work: asyncio.Task[None] | None = None
        self._release_timer: asyncio.TimerHandle | None = None
        self._over = asyncio.Event()

    def matches(self, finding: Finding) -> bool:
        """True if a finding triggers it."""
        return (
            self.planned.about(finding.outcome.value)
            and fnmatchcase(finding.rule, self.planned.rule)
            and self.planned.target in {None, finding.target}
        )

    def trigger(self, trigger: Trigger, rule: str) -> None:
        """Triggers on a finding, or counts it if the storm limit is reached."""
        if self._limit.take(rule):
            self.set_off(trigger)
        elif self._release_timer is None:
            self._release_timer = asyncio.get_running_loop().call_later(self._limit.opens_in(), self.release)

    def release(self) -> None:
        """Triggers once for all findings held back by the storm limit."""
        if self._release_timer is not None:
            self._release_timer.cancel()
            self._release_timer = None
        if self._limit.holds:
            held = self._limit.release()
            self.set_off(Trigger(HELD_BACK, self._run, self._now_ns(), held=held, serial=next(self._serials)))

    def set_off(self, trigger: Trigger) -> None:
        """Queues a trigger; the current action is finished first."""
        if len(self._waiting) < MAX_WAITING:
            self._waiting.append(trigger)
        if self._work is None or self._work.done():
            self._over = asyncio.Event()
            self._work = asyncio.create_task(self._do_all())

    async def finish(self, longest_s: float) -> None:
        """See ``Hooks.finish``."""
        if self._work is None:
            return
        await asyncio.wait([self._work], timeout=longest_s)
        if not self._work.done():
            given_up = len(self._waiting) + 1
            self._waiting.clear()
            self._over.set()  # kills a running command; its output is kept
            await asyncio.wait([self._work], timeout=5.0)
            self._work.cancel()
            await asyncio.wait([self._work])
            await self._failed("", f"the run was over: {given_up} queued actions were given up")
        self._work = None  # triggers of the verdict run on another event loop

    async def _do_all(self) -> None:
        while self._waiting:
            trigger = self._waiting.popleft()
            action = hook_action(self._number, trigger.once)
            if not trigger.once:
                await self._do(trigger)
            elif await self._notes.do(self._promises.begin, action):
                await self._do(trigger)
                await self._notes.do(self._promises.done, action)
            elif self._promises.in_doubt(action):
                self._promises.doubts.append(f"hook {self._number}, {trigger.about}: {IN_DOUBT}")
                await self._failed(trigger.target, f"{trigger.about}: {IN_DOUBT}")
                await self._notes.do(self._promises.done, action)

    async def _do(self, trigger: Trigger) -> None:
        # Evidence first: it fades, and who is notified may need it.
        capture, run, webhook = self.planned.capture, self.planned.run, self.planned.webhook
        if capture is not None and trigger.on != HELD_BACK:
            troubles = await self._failures_of(self._captured(capture, trigger))
            for trouble in troubles[:_MAX_REPORTED]:
                await self._failed(trigger.target, f"capture: {trouble}")
            if len(troubles) > _MAX_REPORTED:
                more = f"capture: and {len(troubles) - _MAX_REPORTED} more that could not be captured"
                await self._failed(trigger.target, more)
        if run is not None:
            for trouble in await self._failures_of(self._commanded(run, trigger)):
                await self._failed(trigger.target, f"{run[0]}: {trouble}")
        if webhook is not None:
            for trouble in await self._failures_of(self._posted(trigger)):
                await self._failed(trigger.target, f"webhook: {trouble}")

    async def _failures_of(self, work: Coroutine[None, None, list[str]]) -> list[str]:
        try:
            return await work
        except HookFailedError as failure:
            return [str(failure)]
        except Exception as defect:  # noqa: BLE001 - a hook must not end the run; its text may hold a secret
            return [f"it raised {type(defect).__name__}"]

    async def _captured(self, planned: CapturePlan, trigger: Trigger) -> list[str]:
        return await self._capturing.take(planned, trigger)

    async def _commanded(self, words: tuple[str, ...], trigger: Trigger) -> list[str]:
        environment = {**self._environment, **trigger.environment()}
        result = await self._command(words, environment, self.planned.timeout, self._over, self._redaction)
        troubles = [result.failure] if result.failure else []
        if result.output:
            what = trigger.on if trigger.finding is None else f"{trigger.on}-{trigger.finding.rule}"
            name = artifact_name("hooks", f"{trigger.stamp}-{what}-{self._number}.txt")
            kept = Artifact(name, "text/plain", result.output, trigger.time_ns, "hook", trigger.about)
            trouble = await self._notes.keep(kept)
            troubles += [f"its output was not kept: {trouble}"] if trouble else []
        return troubles

    async def _posted(self, trigger: Trigger) -> list[str]:
        from soakwatch.engine.hooks.webhook import post  # imports httpx, which few runs need

        assert self.planned.webhook is not None
        await post(self.planned.webhook, trigger.document())
        return []

    async def _failed(self, target: str, reason: str) -> None:
        now_ns = self._now_ns()
        shown = await asyncio.to_thread(self._redaction.text, reason)
        await self._notes.event(Event(FAILED, target, "", now_ns, now_ns, {"hook": str(self._number), "reason": shown}))
