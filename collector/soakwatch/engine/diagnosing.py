"""Looks at processes under suspicion while a run goes on: at suspicion, evenly in between, and at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from soakwatch.core.errors import RecordError
from soakwatch.core.redaction import Redaction
from soakwatch.core.units import show_seconds
from soakwatch.diagnose.allowance import Allowance
from soakwatch.diagnose.kept import artifacts_of, by_process, looks_of, process_name
from soakwatch.diagnose.look import CPU, Look
from soakwatch.diagnose.take import About, take
from soakwatch.engine.hooks.evidence import EvidenceSource
from soakwatch.engine.hooks.trigger import HookFailedError
from soakwatch.engine.scripts import stamp
from soakwatch.plan import Plan, TargetPlan
from soakwatch.plan.diagnose_plan import DiagnosePlan
from soakwatch.record import RecordView, SeriesKey
from soakwatch.record.queue import Notes
from soakwatch_model.event import Event
from soakwatch_model.fact import Certainty
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.roles import DUT
from soakwatch_model.sample import object_labels, object_text

LOOK: Final = "diagnose.look"
FAILED: Final = "diagnose.failed"
MAX_PROCESSES: Final = 5
"""Processes that are looked at for a host that grows."""
MAX_SUSPECTS: Final = 8
"""Suspects of one run: more are not looked at."""
LONGEST_S: Final = 180.0
"""A look that takes longer is given up."""
_SURE: Final = 0.95
"""Probability of a growth from which on an undecided finding is a suspicion too."""
_PID: Final = "process.pid"
_RECENT_NS: Final = 15 * 60 * 10**9
_GROWS: Final = ("process.memory.", "process.open_files", "process.threads")
_OF_THE_HOST: Final = ("system.memory.", "system.swap.")


class HostAtHand:
    """A host on which commands run; what goes wrong is an answer, never raised."""

    def __init__(self, source: EvidenceSource) -> None:
        self._source = source

    async def run(self, command: str, timeout_s: float) -> tuple[bytes, str]:
        """See ``shell.Host``."""
        try:
            return await self._source.run(command, timeout_s)
        except HookFailedError as failure:
            return b"", str(failure)


def allowance_of(planned: DiagnosePlan, *, last: bool) -> Allowance:
    """What a plan allows a look to do."""
    return Allowance(planned.stop_s, planned.debugger, tuple(planned.pprof), last)


@dataclass(slots=True)
class _Suspect:
    """A process under suspicion: its target, object, the finding's rule and metric, its looks, when the others are due
    (UTC ns)."""

    target: TargetPlan
    process: str
    rule: str
    metric: str
    due_ns: list[int]
    tried: int = 0

    @property
    def of_cpu(self) -> bool:
        """True if stacks are sampled, once."""
        return self.metric.startswith(CPU)


class Diagnosing:
    """The looks of one run. Nothing here raises; only ``finish`` waits."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        notes: Notes,
        redaction: Redaction,
        now_ns: Callable[[], int],
        host: Callable[[TargetPlan, Path], AbstractAsyncContextManager[EvidenceSource] | None] | None = None,
    ) -> None:
        self._planned, self._folder, self._notes, self._redaction = plan.diagnose, folder, notes, redaction
        self._now_ns, self._host = now_ns, host
        self._targets = {target.name: target for target in plan.targets if target.role == DUT}
        self._suspects: dict[tuple[str, str, bool], _Suspect] = {}
        self._work: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """True if looks at the end of the run are to come."""
        return bool(self._suspects)

    def on_findings(self, findings: Iterable[Finding], end_ns: int) -> None:
        """Takes the current findings; a growth that is new among them sets off looks until ``end_ns``."""
        if self._planned is None:
            return
        for finding in findings:
            if finding.target in self._targets and _suspicious(finding):
                self._suspect(finding, end_ns)
        self._go_on()

    def tick(self) -> None:
        """Begins the looks that are due."""
        if self._suspects:
            self._go_on()

    async def finish(self, longest_s: float = LONGEST_S) -> None:
        """The run ended: takes the last look at each process, and ends what looks began in it."""
        if self._work is not None:
            await asyncio.wait([self._work], timeout=longest_s)
            self._work.cancel()
            await asyncio.wait([self._work])
        for suspect in list(self._suspects.values()):
            if self._planned is not None and not suspect.of_cpu and (self._planned.at_most > 1 or suspect.tried == 0):
                await self._bounded(suspect, longest_s, last=True)

    async def close(self) -> None:
        """Stops a look that still runs."""
        if self._work is not None and not self._work.done():
            self._work.cancel()
            await asyncio.wait([self._work])

    def _suspect(self, finding: Finding, end_ns: int) -> None:
        now_ns, planned = self._now_ns(), self._planned
        assert planned is not None
        process, of_cpu = _process(finding.object), finding.metric.startswith(CPU)
        key = finding.target, process, of_cpu
        if key in self._suspects or len(self._suspects) >= MAX_SUSPECTS:
            return
        between = 1 if of_cpu else max(planned.at_most - 1, 1)
        due = [now_ns + max(0, end_ns - now_ns) * number // between for number in range(between)]
        target = self._targets[finding.target]
        self._suspects[key] = _Suspect(target, process, finding.rule, finding.metric, due)

    def _go_on(self) -> None:
        now_ns = self._now_ns()
        if (self._work is None or self._work.done()) and any(
            s.due_ns and s.due_ns[0] <= now_ns for s in self._suspects.values()
        ):
            self._work = asyncio.create_task(self._take_due())

    async def _take_due(self) -> None:
        for suspect in list(self._suspects.values()):
            if suspect.due_ns and suspect.due_ns[0] <= self._now_ns():
                suspect.due_ns.pop(0)
                await self._bounded(suspect, LONGEST_S, last=False)

    async def _bounded(self, suspect: _Suspect, longest_s: float, *, last: bool) -> None:
        suspect.tried += 1
        try:
            async with asyncio.timeout(longest_s):
                await self._look(suspect, last=last)
        except TimeoutError:
            await self._failed(suspect, f"it took longer than {show_seconds(longest_s)}")
        except (HookFailedError, RecordError) as failure:
            await self._failed(suspect, str(failure))
        except Exception as defect:  # noqa: BLE001 - a look must not end the run; its text may hold a secret
            await self._failed(suspect, f"it raised {type(defect).__name__}")

    async def _look(self, suspect: _Suspect, *, last: bool) -> None:
        planned, begin_ns = self._planned, self._now_ns()
        assert planned is not None
        pids = await asyncio.to_thread(_pids, self._folder, suspect.target.name, begin_ns)
        if suspect.of_cpu and not suspect.process:
            pids = {"": 0}
        wanted = [suspect.process] if suspect.process or suspect.of_cpu else list(pids)[:MAX_PROCESSES]
        if not any(process in pids for process in wanted):
            raise HookFailedError(
                f"{process_name(suspect.process) or 'no watched process'} is not running, or its pid is not read"
            )
        opened = self._opened(suspect.target)
        if opened is None:
            raise HookFailedError(f"{suspect.target.name} has no source local, ssh or agent over SSH")
        async with opened as source:
            for process in wanted:
                earlier = await self._earlier(suspect.target.name, process)
                about = About(
                    len(earlier) + 1, suspect.target.name, process, pids[process], suspect.rule, suspect.metric
                )
                look, kept = await take(
                    HostAtHand(source),
                    about,
                    allowance_of(planned, last=last),
                    self._now_ns(),
                    earlier[-1] if earlier else None,
                )
                await self._keep(look, kept)

    def _opened(self, target: TargetPlan) -> AbstractAsyncContextManager[EvidenceSource] | None:
        if self._host is not None:
            return self._host(target, self._folder)
        from soakwatch.engine.hooks.capturing import host_of  # imports SSH, which few runs need

        return host_of(target, self._folder)

    async def _earlier(self, target: str, process: str) -> list[Look]:
        grouped = await asyncio.to_thread(_looks, self._folder)
        return grouped.get((target, process), [])

    async def _keep(self, look: Look, kept: Mapping[str, bytes]) -> None:
        whole, files = await asyncio.to_thread(
            artifacts_of, look, kept, f"{stamp(look.time_ns)}-{look.number}", self._redaction
        )
        troubles = [trouble for artifact in files if (trouble := await self._notes.keep(artifact))]
        detail = {"number": str(whole.number), "took_s": f"{whole.cost.seconds:.3f}"}
        if whole.cost.stopped_s is not None:
            detail["stopped_s"] = f"{whole.cost.stopped_s:.4f}"
        if troubles:
            detail["trouble"] = troubles[0]
        end_ns = look.time_ns + round(whole.cost.seconds * 1e9)
        await self._notes.event(Event(LOOK, look.target, look.process, look.time_ns, end_ns, detail))

    async def _failed(self, suspect: _Suspect, reason: str) -> None:
        now_ns = self._now_ns()
        shown = await asyncio.to_thread(self._redaction.text, reason)
        await self._notes.event(Event(FAILED, suspect.target.name, suspect.process, now_ns, now_ns, {"reason": shown}))


def _suspicious(finding: Finding) -> bool:
    """A growth or a use of CPU that fails or warns so far; a growth that is nearly certain though it is too early to
    judge."""
    metric = finding.metric
    if metric.startswith(CPU):
        return finding.outcome in {Outcome.FAIL, Outcome.WARN}
    if not metric.startswith(_GROWS) and not (metric.startswith(_OF_THE_HOST) and not finding.object):
        return False
    if finding.outcome in {Outcome.FAIL, Outcome.WARN}:
        return True
    certain = finding.fact(Certainty)
    return finding.outcome is Outcome.INCONCLUSIVE and certain is not None and certain.probability >= _SURE


def _process(labels_text: str) -> str:
    """The object of a process of a finding's object; "" if it is of none."""
    labels = object_labels(labels_text)
    return (
        object_text(**{name: labels[name] for name in ("process", "instance") if name in labels})
        if "process" in labels
        else ""
    )


def _pids(folder: Path, target: str, now_ns: int) -> dict[str, int]:
    """The newest pid of each watched process of a target by its object, the one whose memory grew most first; without
    those that are not running."""
    with RecordView.open(folder) as view:
        pids, grown = {}, {}
        for key in view.only_keys({_PID}):
            if key.target != target:
                continue
            series = view.series(key, now_ns - _RECENT_NS, now_ns + 1).finite()
            up = view.series(SeriesKey(target, "process.up", key.object), now_ns - _RECENT_NS, now_ns + 1).finite()
            if len(series) and (not len(up) or up.values[-1] > 0):
                memory = view.series(SeriesKey(target, "process.memory.usage", key.object)).finite()
                pids[key.object] = int(series.values[-1])
                grown[key.object] = float(memory.values[-1] - memory.values[0]) if len(memory) else 0.0
        return {process: pids[process] for process in sorted(pids, key=lambda each: -grown[each])}


def _looks(folder: Path) -> Mapping[tuple[str, str], list[Look]]:
    with RecordView.open(folder) as view:
        return by_process(looks_of(view.artifact_entries(), view.artifact))
