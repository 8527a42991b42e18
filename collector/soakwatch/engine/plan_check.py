"""Checks before a run what its plan names: which sources answer, with which metrics and values."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from soakwatch.core.clock import SteadyClock
from soakwatch.core.errors import SoakwatchError
from soakwatch.core.registry import INSTALLED, Registry, loads
from soakwatch.core.units import show_seconds
from soakwatch.plan import Plan, SourcePlan, TargetPlan
from soakwatch.sources.abc import (
    Explains,
    Facts,
    Identifies,
    Poller,
    SourceContext,
    SourceError,
    SourceUnreadyError,
    timing,
)
from soakwatch.sources.source_modules import poller_module
from soakwatch_model.metric import BY_NAME
from soakwatch_model.metric_entry import PRESENCE
from soakwatch_model.metric_load import HEARD
from soakwatch_model.metric_queries import telling
from soakwatch_model.roles import GENERATOR
from soakwatch_model.sample import Answer, Fault, Sample, object_labels

BYTES_PER_SAMPLE = 3.0  # maximum that a compacted sample takes in the record (tests/bench)
BETWEEN_POLLS_S = 1.0  # rates need two polls; the planned interval may be an hour
DEVICE_CPU = "source.device.cpu.time"
GETTING_READY_S = 150.0  # the first survey of a large and slow device
BETWEEN_TRIES_S = 0.1
FIRST_ANSWER_S = 10.0  # a source may take this long to its first reading
PATIENCE_S = 2.0  # pause before a source without a reading is polled again
MAX_RENEWAL_S = 8.0  # metrics that the device renews less often are not waited for
AFTER_RENEWAL_S = 0.5
LATE_LOOKS = 3  # how often a poll that took longer than its interval is repeated: a busy machine delays one, not all


@dataclass(frozen=True, slots=True)
class SourceCheck:
    """The result of checking one source.

    ``error`` says why it cannot be polled, else None; ``seconds`` is how long a poll takes (of several late ones, the
    quickest), ``per_poll`` the number of samples of the last poll; ``samples`` has one per series of all polls,
    ``facts`` are the facts about its device; ``device_cpu_s`` is the CPU time that the last poll cost the device, if
    known.
    """

    target: TargetPlan
    source: SourcePlan
    error: str | None
    seconds: float = 0.0
    per_poll: int = 0
    samples: tuple[Sample, ...] = ()
    faults: tuple[Fault, ...] = ()
    facts: Facts | None = None
    device_cpu_s: float | None = None

    @property
    def interval_s(self) -> float:
        """The planned poll interval, seconds."""
        return self.source.config.interval

    @property
    def lacking(self) -> tuple[str, ...]:
        """Metrics that the source's profile promises and the device did not report."""
        brought = {sample.metric for sample in self.samples} | self.slow.keys()
        return tuple(name for name in (self.facts.promised if self.facts else ()) if name not in brought)

    @property
    def slow(self) -> Mapping[str, float]:
        """Metrics this check was too short for, with the seconds after which the device renews them."""
        known = {sample.metric for sample in self.samples} | {fault.metric for fault in self.faults}
        return {name: s for name, s in (self.facts.cadences if self.facts else {}).items() if name not in known}

    def polls(self, duration_s: float) -> int:
        """Number of polls due in a run."""
        return max(1, int(duration_s / self.interval_s))


async def check_sources(plan: Plan, folder: Path, registry: Registry = INSTALLED) -> tuple[SourceCheck, ...]:
    """Polls every source twice, all at once, and a third time if its device renews counters some seconds later; results
    in the order of the plan. ``folder`` is the sources' temporary folder."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_poll_source(target, source, folder, registry))
            for target in plan.targets
            for source in target.sources
        ]
    return tuple(task.result() for task in tasks)


async def _poll_source(target: TargetPlan, source: SourcePlan, folder: Path, registry: Registry) -> SourceCheck:
    clock = SteadyClock()
    interval = source.config.interval
    limit = timing(0, interval, source.config.timeout).timeout_s
    site = SourceContext(
        target.name, target.role, target.processes, target.interfaces, folder, clock.now_ns, interval, trial=True
    )
    patient = max(limit, FIRST_ANSWER_S)
    answers: list[Answer] = []
    took_ns = begin_ns = 0
    try:
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(patient):
                poller = await poller_module(source.poller, registry).start(source.config, site, stack)
            begin_ns = clock.now_ns()
            while len(answers) < 2 or not any(answer.samples for answer in answers):
                if answers and clock.now_ns() - begin_ns > FIRST_ANSWER_S * 1e9:
                    break
                await asyncio.sleep((0.0, min(interval, BETWEEN_POLLS_S), PATIENCE_S)[min(len(answers), 2)])
                answer, took_ns = await _answer(poller, clock, limit if answers else patient)
                patient = limit
                answers.append(answer)
            if (renewal_s := _renewal_s(poller, answers)) > 0:
                await asyncio.sleep(max(0.0, renewal_s + AFTER_RENEWAL_S - (clock.now_ns() - begin_ns) * 1e-9))
                answer, took_ns = await _answer(poller, clock, limit)
                answers.append(answer)
            for _ in range(LATE_LOOKS):
                if took_ns <= interval * 1e9:
                    break
                answer, again_ns = await _answer(poller, clock, limit)
                answers.append(answer)
                took_ns = min(took_ns, again_ns)
            facts = poller.facts() if isinstance(poller, Identifies) else None
    except TimeoutError:
        return SourceCheck(target, source, f"no answer within {patient:g} s")
    except (SourceError, SoakwatchError) as failure:
        return SourceCheck(target, source, str(failure))
    except Exception as defect:  # noqa: BLE001 - one broken source must not hide the others
        # Its type only: an unforeseen exception may quote a secret.
        return SourceCheck(target, source, f"the {source.poller} poller raised {type(defect).__name__}")
    series = {(sample.metric, sample.object): sample for answer in answers for sample in answer.samples}
    # A source may report a fault only once: a fault of an earlier poll holds until its metric has a value.
    well = {(sample.metric, sample.object) for sample in answers[-1].samples}
    earlier = {(fault.metric, fault.object): fault for answer in answers[:-1] for fault in answer.faults}
    faults = {key: fault for key, fault in earlier.items() if key not in well}
    faults |= {(fault.metric, fault.object): fault for fault in answers[-1].faults}
    return SourceCheck(
        target,
        source,
        None,
        took_ns * 1e-9,
        len(answers[-1].samples),
        tuple(series.values()),
        tuple(faults.values()),
        facts,
        _device_cpu_s(answers),
    )


async def _answer(poller: Poller, clock: SteadyClock, limit_s: float) -> tuple[Answer, int]:
    """One poll and its duration in ns; a source that is not ready is polled again for ``GETTING_READY_S``, as in a
    run."""
    deadline_ns = clock.now_ns() + round(GETTING_READY_S * 1e9)
    while True:
        begin_ns = clock.now_ns()
        try:
            async with asyncio.timeout(limit_s):
                return await poller.poll(begin_ns), clock.now_ns() - begin_ns
        except SourceUnreadyError:
            if clock.now_ns() > deadline_ns:
                raise
            await asyncio.sleep(BETWEEN_TRIES_S)
        except SourceError:
            cause = await poller.cause() if isinstance(poller, Explains) else None
            if cause is None:
                raise
            raise cause from None


def _renewal_s(poller: Poller, answers: Sequence[Answer]) -> float:
    """Seconds until a third poll sees increases that the device renews slowly; 0 if none is needed."""
    if not isinstance(poller, Identifies):
        return 0.0
    brought = {sample.metric for answer in answers for sample in answer.samples}
    waited = [s for name, s in poller.facts().cadences.items() if name not in brought and s <= MAX_RENEWAL_S]
    return max(waited, default=0.0)


def _device_cpu_s(answers: Sequence[Answer]) -> float | None:
    spent = [[s.value for s in answer.samples if s.metric == DEVICE_CPU] for answer in answers]
    totals = [sum(values) for values in spent if values]
    return totals[-1] - totals[-2] if len(totals) > 1 and totals[-1] >= totals[-2] else None


def live_values(check: SourceCheck) -> Mapping[str, tuple[float, float]]:
    """The smallest and largest reading of each metric over its objects."""
    ranges: dict[str, tuple[float, float]] = {}
    for sample in check.samples:
        low, high = ranges.get(sample.metric, (sample.value, sample.value))
        ranges[sample.metric] = min(low, sample.value), max(high, sample.value)
    return ranges


def by_metric(check: SourceCheck) -> Mapping[str, int]:
    """Number of objects of each metric, in the order of the catalogue; unknown metrics come last."""
    counted: dict[str, int] = {}
    for sample in check.samples:
        counted[sample.metric] = counted.get(sample.metric, 0) + 1
    return {name: counted[name] for name in [*BY_NAME, *sorted(counted.keys() - BY_NAME.keys())] if name in counted}


def absent_processes(checks: tuple[SourceCheck, ...]) -> tuple[tuple[TargetPlan, str], ...]:
    """Watched processes that no source of their target saw running, if one could have."""
    targets = {check.target.name: check.target for check in checks if check.error is None and _sees_hosts(check)}
    absent = []
    for name, target in targets.items():
        seen = {
            object_labels(sample.object).get("process")
            for check in checks
            if check.target.name == name
            for sample in check.samples
            if sample.metric not in telling(PRESENCE) or sample.value > 0
        }
        absent += [(target, watch.name) for watch in target.processes if watch.name not in seen]
    return tuple(absent)


def silent_generators(checks: Sequence[SourceCheck], now_s: float) -> tuple[str, ...]:
    """A sentence for each generator whose load sources report no figure of the load. ``now_s`` is wall clock time.

    No fault before the run: most generators start later. A run in which one stays silent is inconclusive.
    """
    sentences = []
    for target in {check.target.name: check.target for check in checks if check.target.role == GENERATOR}.values():
        own = [check for check in checks if check.target.name == target.name and check.error is None]
        if not any(check.source.poller in loads() for check in own):
            continue
        if any(sample.metric in HEARD for check in own for sample in check.samples):
            continue
        if all(getattr(check.source.config, "drive", False) for check in own if check.source.poller in loads()):
            continue  # it rests until the run sets its level
        files = [getattr(check.source.config, "file", None) for check in own]
        ages = [
            f" ({path} was last written {show_seconds(max(0.0, now_s - path.stat().st_mtime))} ago)"
            for path in files
            if isinstance(path, Path) and path.is_file()
        ]
        sentences.append(
            f"{target.name} reports no figure of the load yet{''.join(ages[:1])}: a run in which it stays silent is "
            "inconclusive"
        )
    return tuple(sentences)


def _sees_hosts(check: SourceCheck) -> bool:
    return any(sample.metric.startswith(("system.", "process.")) for sample in check.samples)


def disk_bytes(checks: tuple[SourceCheck, ...], duration_s: float) -> float:
    """Estimated size of the record: samples of the whole run times ``BYTES_PER_SAMPLE``."""
    return sum(check.per_poll * check.polls(duration_s) for check in checks) * BYTES_PER_SAMPLE


def free_bytes(folder: Path) -> int:
    """Free space where ``folder`` is, or would be created."""
    existing = folder.absolute()
    while not existing.exists():
        existing = existing.parent
    return shutil.disk_usage(existing).free
