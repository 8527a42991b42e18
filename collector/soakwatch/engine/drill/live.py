"""A live drill: injects faults one after the other during a run, marks each in its record, and sees who noticed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event as Flag
from typing import Final

from soakwatch.core.errors import RecordError, SoakwatchError
from soakwatch.core.event_kinds import DRILL
from soakwatch.engine.drill.faults import LiveFault, end_script, held_by
from soakwatch.engine.hooks.capturing import host_of
from soakwatch.engine.hooks.evidence import EvidenceSource
from soakwatch.engine.hooks.trigger import HookFailedError
from soakwatch.plan import Plan
from soakwatch.record import RecordView
from soakwatch.record.external_events import external_events
from soakwatch.runs.run_state import StateReader
from soakwatch.runs.stop_run import stop_run
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, FindingName, Outcome

_COMMAND_S: Final = 30.0
_LOOK_S: Final = 1.0
_READY_S: Final = 120.0
SPARE_S: Final = 1800.0
"""Added to the time of the faults, for a device that answers slowly: the drill ends the run itself."""
_SLACK_NS: Final = 2 * 10**9
_TREND: Final = 2.0  # a mark longer than this times the fault is a trend, not a moment
_ALARMS: Final = frozenset({Outcome.FAIL, Outcome.WARN})


@dataclass(frozen=True, slots=True)
class Pace:
    """How long the run rests before the first fault and after each, seconds."""

    rest_s: float

    def total_s(self, faults: Sequence[LiveFault]) -> float:
        """Duration of all faults with their rests, seconds."""
        return 2 * self.rest_s + sum(fault.lasts_s + self.rest_s for fault in faults)


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """A fault that was injected, or in ``trouble`` why it could not be. Times are UTC ns."""

    fault: LiveFault
    begin_ns: int
    end_ns: int
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Detection:
    """A rule that saw a fault: seconds from the fault's begin to the moment it marks, and to its live finding (None if
    only the final judgment has it)."""

    rule: str
    outcome: Outcome
    after_s: float
    live_after_s: float | None
    reason: str


@dataclass(slots=True)
class LiveDrill:
    """Injects faults during the run in ``folder``. ``tell`` gets a sentence for each; setting ``over`` ends the drill
    early and undoes the current fault at once."""

    plan: Plan
    folder: Path
    faults: Sequence[LiveFault]
    pace: Pace
    tell: Callable[[str], None]
    over: Flag = field(default_factory=Flag)
    made: list[InjectedFault] = field(default_factory=list)
    noticed: dict[FindingName, int] = field(default_factory=dict)  # when the live judge first reported it, UTC ns
    trouble: str = ""

    def run(self) -> None:
        """Runs the drill to its end; blocks, so use a thread. Never raises: ``trouble`` says what went wrong."""
        try:
            asyncio.run(self._run())
        except (SoakwatchError, OSError) as error:
            self.trouble = str(error)

    async def _run(self) -> None:
        async with AsyncExitStack() as stack:
            hosts: dict[str, EvidenceSource] = {}
            if not await self._until(self._begun, _READY_S):
                return
            troubles: dict[str, str] = {}
            for target in self.plan.targets:
                place = host_of(target, self.folder) if target.drill is not None else None
                if place is not None:
                    try:
                        host = await stack.enter_async_context(place)
                        troubles[target.name] = await _unfit(host)
                        hosts[target.name] = host
                    except HookFailedError as failure:
                        troubles[target.name] = str(failure)
            await self._rest(self.pace.rest_s)
            for fault in self.faults:
                if self.over.is_set():
                    return
                await self._make(fault, hosts.get(fault.target), troubles.get(fault.target, ""))
                await self._rest(self.pace.rest_s)
            await self._rest(self.pace.rest_s)
            if not self.over.is_set():
                now_ns = time.time_ns()
                stop_run(self.folder, StateReader(self.folder).read(now_ns), "the drill is over", "soakwatch drill")

    async def _make(self, fault: LiveFault, host: EvidenceSource | None, trouble: str) -> None:
        begin_ns = time.time_ns()
        labels = {"fault": fault.kind, "what": fault.words}
        with external_events(self.folder) as kept:
            stored = kept.add(Event(DRILL, fault.target, fault.object, begin_ns, None, labels))
        self.tell(f"{fault.target}: {fault.words}")
        held: tuple[int, ...] = ()
        if host is None:
            trouble = trouble or "it cannot be reached"
        elif not trouble:
            try:
                output, trouble = await host.run(fault.inject, _COMMAND_S)
                held = held_by(output)
                said = output.decode("utf-8", "replace").strip().splitlines()
                trouble = trouble and f"{said[-1] if said else 'no word'} ({trouble})"
            except HookFailedError as failure:
                trouble = str(failure)
        if trouble:
            self.tell(f"{fault.target}: {fault.name} could not be made: {trouble}")
        else:
            await self._rest(fault.lasts_s)
        if host is not None and held and (trouble or self.over.is_set()):
            with suppress(HookFailedError):  # then the device's own dead-man switch does it
                await host.run(end_script(fault, held), _COMMAND_S)
        end_ns = time.time_ns()
        outcome = {"trouble": trouble} if trouble else {}
        with external_events(self.folder) as kept:
            kept.end(stored, end_ns, outcome)
        self.made.append(InjectedFault(fault, begin_ns, end_ns, trouble))

    def _begun(self) -> bool:
        with suppress(RecordError), RecordView.open(self.folder) as view:
            return view.counts().polls > 0
        return False

    async def _until(self, holds: Callable[[], bool], most_s: float) -> bool:
        deadline = time.monotonic() + most_s
        while time.monotonic() < deadline and not self.over.is_set():
            if holds():
                return True
            await asyncio.sleep(0.2)
        return False

    async def _rest(self, seconds: float) -> None:
        """Waits and watches the live findings; the end of the run ends the drill."""
        deadline = time.monotonic() + seconds
        while (left_s := deadline - time.monotonic()) > 0 and not self.over.is_set():
            await asyncio.sleep(min(_LOOK_S, left_s))
            self._look()

    def _look(self) -> None:
        now_ns = time.time_ns()
        with suppress(RecordError), RecordView.open(self.folder) as view:
            for finding in view.findings(live=True):
                if finding.outcome in _ALARMS:
                    self.noticed.setdefault(finding.name, now_ns)
            if view.meta("ended_ns") is not None:
                self.over.set()


async def _unfit(host: EvidenceSource) -> str:
    """Why faults cannot be injected there; "" if it is a Linux with a shell. Runs only ``uname``."""
    output, trouble = await host.run("uname -s", _COMMAND_S)
    if trouble or output.split() != [b"Linux"]:
        return f"{host.name} is no Linux with a shell" + (f" ({trouble})" if trouble else "")
    return ""


def detections_of(
    made: InjectedFault, findings: Sequence[Finding], noticed: Mapping[FindingName, int], rest_s: float
) -> tuple[Detection, ...]:
    """The rules that fail or warn on the fault's target at a moment between its begin and the end of the rest after
    it."""
    first_ns, last_ns = made.begin_ns - _SLACK_NS, made.end_ns + round(rest_s * 1e9)
    longest_ns = _TREND * (last_ns - first_ns)
    seen: dict[str, Detection] = {}
    for finding in findings:
        if finding.target != made.fault.target or finding.outcome not in _ALARMS:
            continue
        for mark in finding.marks:
            lasts_ns = 0 if mark.end_ns is None else mark.end_ns - mark.begin_ns
            if not first_ns <= mark.begin_ns < last_ns or lasts_ns > longest_ns:
                continue
            live_ns = noticed.get(finding.name)
            live_s = None if live_ns is None or live_ns < first_ns else (live_ns - made.begin_ns) * 1e-9
            after_s = max(0.0, (mark.begin_ns - made.begin_ns) * 1e-9)
            now = Detection(finding.rule, finding.outcome, after_s, live_s, finding.sentence)
            known = seen.get(finding.rule)
            if known is None or after_s < known.after_s:
                seen[finding.rule] = now
    return tuple(sorted(seen.values(), key=lambda each: (each.outcome is not Outcome.FAIL, each.after_s, each.rule)))
