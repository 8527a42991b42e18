"""What is missing by the first polls of a run, reported at its start and not only in the morning.

An absent watched process, a source that does not answer, a reading without permission, a full file system: the run goes
on, since each may come right, and its findings say it again at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from soakwatch.core.text import prefixed
from soakwatch.plan import Plan, TargetPlan
from soakwatch.record import RecordView
from soakwatch.record.model import Source
from soakwatch_model.sample import Poll, PollOutcome, Sample, object_labels

FULL = 0.95
"""Share used from which a file system counts as full."""
_NOT_PERMITTED = ("permission", "permitted", "privilege", "denied", "CAP_")
_USED, _SIZE = "system.filesystem.usage", "system.filesystem.limit"


def start_warnings(plan: Plan, record: Path) -> tuple[str, ...]:
    """Warnings from the first polls in a record. Raises RecordError."""
    with RecordView.open(record) as view:
        return tuple(
            dict.fromkeys(_sentences(plan, {source.id: source for source in view.sources()}, view.first_polls()))
        )


def _sentences(plan: Plan, sources: Mapping[int, Source], first: Mapping[int, Poll]) -> Iterable[str]:
    for number, poll in sorted(first.items()):
        source = sources[number]
        if poll.outcome is not PollOutcome.OK:
            yield prefixed(source.target, source.name, poll.error or poll.outcome.value)
        for fault in poll.answer.faults:
            if any(word in fault.text for word in _NOT_PERMITTED):
                yield prefixed(source.target, source.name, f"not read: {fault.text}")
    samples: dict[str, list[Sample]] = {}
    for number, poll in first.items():
        samples.setdefault(sources[number].target, []).extend(poll.answer.samples)
    for target in plan.targets:
        yield from _absent(target, samples.get(target.name, ()))
        yield from _full(target.name, samples.get(target.name, ()))


def _absent(target: TargetPlan, samples: Iterable[Sample]) -> Iterable[str]:
    counts: dict[str, float] = {}
    for sample in samples:
        if sample.metric == "process.count" and (name := object_labels(sample.object).get("process")):
            counts[name] = max(sample.value, counts.get(name, 0.0))
    for watched in target.processes:
        if counts.get(watched.name) == 0:
            yield f"{target.name}: no process {watched.name!r} is running: its findings will be inconclusive"


def _full(target: str, samples: Iterable[Sample]) -> Iterable[str]:
    used = {sample.object: sample.value for sample in samples if sample.metric == _USED}
    sizes = {sample.object: sample.value for sample in samples if sample.metric == _SIZE}
    for name, size in sorted(sizes.items()):
        if size > 0 and used.get(name, 0.0) >= FULL * size:
            where = object_labels(name).get("mountpoint") or name
            yield f"{target}: the file system {where} is {used[name] / size:.0%} full".replace("%", " %")
