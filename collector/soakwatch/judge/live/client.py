"""Judges a run while it goes on, in a process of its own: polls are not delayed and the collector stays small.

The process lives as long as the run and keeps what it needs, so that an evaluation costs what is new in a minute, not
the length of the run. It is asked once a minute, and at once after an important event; only the next evaluation ever
waits for it. If it dies, another one restores its state from the record.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from soakwatch.core.event_kinds import DECIDED
from soakwatch.core.forked_child import ForkedChild
from soakwatch.core.installed_code import REPLACED, code_stamp
from soakwatch.core.log_throttle import ThrottledLog
from soakwatch.core.supervised_child import AsyncChild, python_module
from soakwatch.judge.rates import LiveSnapshot, Rate, rates_of
from soakwatch.plan.rule_plan import RulePlan, planned_rules
from soakwatch.record import finding_from_json
from soakwatch.record.findings import identity_of
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome

JUDGE_EVERY_S = 60.0
CONFIRM_S = 10.0
"""A failure on which a run is to stop must still stand after so long: a process that restarts is down for a moment."""
WOKEN_APART_S = 4.0
"""What happens sooner after a look that was woken, or took long, waits for so long, or for twice what it took."""
REST_PER_WORK = 10.0  # a look that takes long is followed by a longer rest
RECORD_EVERY_S = 600.0  # what is said is recorded when it says something else, and as often as this
JUDGE_TIMEOUT_S = 600.0  # a look that takes longer is given up
MAX_PAUSE_S = 3600.0


class AsksJudge(Protocol):
    """The one who judges, in whatever process."""

    async def look(self) -> list[str] | str:
        """The lines of an answer (see ``soakwatch.judge.live.answers``), after a line ``new`` where it begins anew; a
        string if there is none, which says why. Raises OSError and ValueError."""
        ...

    async def close(self) -> None:
        """End it; the next look begins anew."""
        ...


@contextmanager
def warm_judge(rules: tuple[RulePlan, ...]) -> Iterator[ForkedChild | None]:
    """A copy of this process that can become the live judge of a run, for ``JudgeProcess``; None if none can be made.

    It has loaded the rules. It must be made before the record is opened (see ``ForkedChild``). It ends with the block.
    """
    from soakwatch.judge.live.__main__ import become_judge

    planned_rules(rules)
    try:
        child = ForkedChild(become_judge, "soakwatch-judge")
    except OSError:
        yield None
        return
    try:
        yield child
    finally:
        child.close()


class JudgeProcess:
    """Runs the live judge as a process of its own: starts it at the first question, and again after it died.

    The first may be a ``warm`` one, which has loaded all that it needs.
    """

    def __init__(self, folder: Path, warm: ForkedChild | None = None) -> None:
        self._folder, self._warm = folder, warm
        self._child: AsyncChild | ForkedChild | None = None
        self._stamp = code_stamp()

    async def look(self) -> list[str] | str:
        """See ``AsksJudge``."""
        child = self._child
        fresh = child is None or child.exit_code is not None
        if child is None or fresh:
            if code_stamp() != self._stamp:  # what it would say may mean something else in the new version
                return f"{REPLACED}: its end is judged by the new version, and nothing before"
            child = self._child = await self._start()
        await child.write("look\n")
        lines: list[str] = ["new"] if fresh else []
        while (line := (await child.read_line()).rstrip("\n")) != ".":
            if line.startswith("! "):
                return line[2:]
            if not line:
                return f"the judge ended with exit code {await child.wait()}"
            lines.append(line)
        return lines

    async def _start(self) -> AsyncChild | ForkedChild:
        warm, self._warm = self._warm, None
        if warm is not None and warm.exit_code is None:
            await warm.write(f"{self._folder}\n")
            return warm
        return await AsyncChild.start(python_module("soakwatch.judge.live", str(self._folder)))

    async def close(self) -> None:
        """See ``AsksJudge``."""
        child, self._child = self._child, None
        if child is not None:
            await child.kill()


class LiveJudge:
    """The newest findings of a run that goes on.

    With ``confirm`` a failure is soon judged again, until it is ``confirmed``; ``rules`` are those whose failures
    count, if not every rule.
    """

    def __init__(
        self,
        judge: AsksJudge,
        now_ns: Callable[[], int],
        *,
        confirm: bool = False,
        rules: Collection[str] | None = None,
        stopwatch: Callable[[], float] = time.monotonic,
    ) -> None:
        self._judge, self._now_ns, self._confirm, self._rules, self._stopwatch = (
            judge,
            now_ns,
            confirm,
            rules,
            stopwatch,
        )
        self._due_ns = now_ns() + int(JUDGE_EVERY_S * 1e9)
        self._complaint = ThrottledLog("live judging")
        self._findings: dict[str, tuple[Finding, ...]] = {}
        self._known = _number_of(())
        self._failing: dict[str, int] = {}  # when each failure was first seen
        self._failures = 0
        self._rested_ns = 0  # a look that is woken waits until then
        self.rates: tuple[Rate, ...] = ()
        self._recorded = _number_of(()), -(2**62)
        self.judged_ns: int | None = None
        self.findings: tuple[Finding, ...] = ()
        """The findings so far, worst first; sorted once, for displays ask every second."""
        self.decided: Event | None = None  # the final answer of the run, where its plan asks for one
        self.forgot = ""  # what the judge does not remember any more, in a sentence

    @property
    def confirmed(self) -> bool:
        """Whether a failure has stood for long enough to stop a run."""
        return self.judged_ns is not None and any(
            self.judged_ns - first_ns >= CONFIRM_S * 1e9 for first_ns in self._failing.values()
        )

    @property
    def unrecorded(self) -> bool:
        """Whether to record the findings: they changed, or it is long since they were recorded."""
        if self.judged_ns is None:
            return False
        known, recorded_ns = self._recorded
        return self._known != known or self.judged_ns - recorded_ns >= RECORD_EVERY_S * 1e9

    def recorded(self) -> None:
        """The record has them."""
        self._recorded = self._known, self.judged_ns or 0

    @property
    def snapshot(self) -> LiveSnapshot | None:
        """When it judged last, and the growth rates so far; None before the first evaluation."""
        return None if self.judged_ns is None else LiveSnapshot(self.judged_ns, self.rates)

    def wake(self) -> None:
        """Judge now, not at the end of the minute: something important is in the record.

        A judge that has just finished pauses first, and one that fails is not woken.
        """
        if not self._failures:
            self._due_ns = min(self._due_ns, max(self._now_ns(), self._rested_ns))

    async def judge_when_due(self) -> bool:
        """Judge if it is time; True if there are new findings."""
        if self._now_ns() < self._due_ns:
            return False
        judged_ns, began, self._due_ns = self._now_ns(), self._stopwatch(), 2**62
        answer: list[str] | str
        try:
            async with asyncio.timeout(JUDGE_TIMEOUT_S):
                answer = await self._judge.look()
        except (OSError, ValueError, TimeoutError) as error:
            answer = str(error) or f"no answer in {JUDGE_TIMEOUT_S:g} s"
        except BaseException:
            await self.close()  # what it would still say is nobody's answer
            raise
        worked_s = self._stopwatch() - began
        pause_s = max(JUDGE_EVERY_S, REST_PER_WORK * worked_s)
        self._rested_ns = judged_ns + round(1e9 * max(WOKEN_APART_S, 2 * worked_s))
        if isinstance(answer, str):
            await self.close()
            self._failures += 1
            pause_s = min(MAX_PAUSE_S, max(pause_s, JUDGE_EVERY_S * 2.0 ** (self._failures - 1)))
            self._due_ns = self._now_ns() + int(1e9 * pause_s)
            self._complaint.failed(judged_ns, f"{answer}; the run goes on")
            return False
        self._complaint.well()
        self._failures = 0
        self._hear(answer, judged_ns)
        soon = self._confirm and bool(self._failing) and not self.confirmed
        due_ns = self._now_ns() + int(1e9 * (CONFIRM_S if soon else pause_s))
        self._due_ns = max(min(self._due_ns, due_ns), self._rested_ns)  # it may have been woken while it looked
        return True

    async def close(self) -> None:
        """End the judge, if there is one."""
        await self._judge.close()

    def _hear(self, lines: list[str], judged_ns: int) -> None:
        if lines[:1] == ["new"]:
            self._findings = {}
            del lines[0]
        lines.reverse()
        while lines:  # tens of thousands of findings: their text goes as they come
            message = json.loads(lines.pop())
            if "forgot" in message:
                self.forgot = str(message["forgot"])
                continue
            if "decided" in message:
                at_ns, detail = int(message["decided"]["at_ns"]), message["decided"]["detail"]
                self.decided = Event(DECIDED, "", "", at_ns, at_ns, {str(k): str(v) for k, v in detail.items()})
                continue
            if "rates" in message:
                self.rates = rates_of(message["rates"])
                continue
            findings = tuple(finding_from_json(text) for text in message["findings"])
            if findings:
                self._findings[message["of"]] = findings
            else:
                self._findings.pop(message["of"], None)
        every = [finding for findings in self._findings.values() for finding in findings]
        self.findings = tuple(sorted(every, key=lambda f: (f.outcome.rank, f.target, f.rule, f.metric, f.object)))
        self._known = _number_of(every)
        self.judged_ns = judged_ns
        failing = {
            identity_of(f)
            for f in self.findings
            if f.outcome is Outcome.FAIL and (self._rules is None or f.rule in self._rules)
        }
        self._failing = {identity: self._failing.get(identity, judged_ns) for identity in failing}


def _number_of(findings: Iterable[Finding]) -> int:
    """A number for the identities of some findings: tens of thousands of texts, for a fleet, tell no more."""
    return hash(frozenset(identity_of(finding) for finding in findings))
