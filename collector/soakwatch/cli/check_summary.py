"""The first line of ``soakwatch check``, and its summary of a fleet: similar targets are one block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from soakwatch.core.formatting import quantity
from soakwatch.engine.plan_check import SourceCheck
from soakwatch.engine.sensitivity import smallest_leak
from soakwatch.plan import Plan
from soakwatch.sources.abc import Facts
from soakwatch_rules.wording.quantities import counted

FLEET = 3
"""From this many similar targets on they are shown as one block."""
_MAX_NAMED = 4


def first_line(plan: Plan, checks: Sequence[SourceCheck], problems: int, warnings: int) -> str:
    """Whether the run can begin, and the smallest leak that it will detect."""
    answered = sum(check.error is None for check in checks)
    if answered < len(checks):
        sources = f"{answered} of {counted(len(checks), 'source')} can be polled"
    else:
        sources = counted(len(checks), "source")
    parts = [sources, *([counted(problems, "problem")] if problems else [])]
    parts += [counted(warnings, "warning")] if warnings else []
    leak = smallest_leak(plan, checks)
    seen = "" if leak is None else f"; leaks of {quantity(leak.per_hour, 'By/h')} and more of {leak.of} will be seen"
    return f"{'not ready' if problems else 'ready'}: {', '.join(parts)}{seen}"


def warnings_in(checks: Iterable[SourceCheck]) -> int:
    """The number of different warnings: values not read, profile metrics that the device lacks, notes of a source."""
    return len(
        {
            words
            for check in checks
            for words in (
                *(f"{fault.metric} {fault.text}" for fault in check.faults),
                *check.lacking,
                *(check.facts.notes if check.facts else ()),
            )
        }
    )


def alike(checks: Sequence[SourceCheck]) -> list[tuple[SourceCheck, ...]]:
    """The checks in groups that are shown as one block, in order: single ones, or at least ``FLEET`` of one kind."""
    groups: dict[object, list[SourceCheck]] = {}
    for check in checks:
        groups.setdefault(_kind(check), []).append(check)
    done: dict[object, None] = {}
    found: list[tuple[SourceCheck, ...]] = []
    for check in checks:
        kind = _kind(check)
        if len(groups[kind]) < FLEET or check.error is not None:
            found.append((check,))
        elif kind not in done:
            done[kind] = None
            found.append(tuple(groups[kind]))
    return found


def _kind(check: SourceCheck) -> object:
    """What two targets must have in common to share a block."""
    metrics = frozenset(sample.metric for sample in check.samples)
    return check.target.role, check.source.poller, check.interval_s, metrics, check.error


def merge_checks(group: Sequence[SourceCheck]) -> SourceCheck:
    """One check for a whole group: all samples, the slowest poll, each fault once with its count."""
    first = group[0]
    if len(group) == 1:
        return first
    times = Counter((fault.metric, fault.object, fault.text) for check in group for fault in check.faults)
    faults = {(fault.metric, fault.object, fault.text): fault for check in group for fault in check.faults}
    costs = [check.device_cpu_s for check in group if check.device_cpu_s is not None]
    return replace(
        first,
        seconds=max(check.seconds for check in group),
        per_poll=max(check.per_poll for check in group),
        samples=tuple(sample for check in group for sample in check.samples),
        faults=tuple(
            replace(fault, text=fault.text if times[key] == len(group) else f"{fault.text} ({times[key]} targets)")
            for key, fault in faults.items()
        ),
        facts=_common_facts(group),
        device_cpu_s=max(costs, default=None),
    )


def _common_facts(group: Sequence[SourceCheck]) -> Facts | None:
    facts = [check.facts for check in group if check.facts is not None]
    if not facts:
        return None
    values = {key: list(dict.fromkeys(each.identity.get(key, "") for each in facts)) for key in facts[0].identity}
    identity = {key: texts[0] if len(texts) == 1 else f"{len(texts)} different" for key, texts in values.items()}
    notes = tuple(dict.fromkeys(note for each in facts for note in each.notes))
    return replace(facts[0], identity=identity, notes=notes)


def names_of(group: Sequence[SourceCheck]) -> str:
    """The targets of a block, by name.

    >>> from types import SimpleNamespace as N
    >>> names_of([N(target=N(name=f"fw{n}")) for n in range(1, 21)])
    'fw1 to fw20 (20 targets)'
    """
    names = [check.target.name for check in group]
    if len(names) == 1:
        return names[0]
    if len(names) <= _MAX_NAMED:
        return ", ".join(names)
    return f"{names[0]} to {names[-1]} ({len(names)} targets)"


def merge_sentences(sentences: Iterable[tuple[str, str]]) -> list[str]:
    """Sentences about sources ("fw1 snmp", what can be seen there), each once for all sources that share it."""
    by_text: dict[str, list[str]] = {}
    for who, text in sentences:
        by_text.setdefault(text, []).append(who)
    lines = []
    for text, sources in by_text.items():
        subject = ", ".join(sources) if len(sources) < FLEET else f"{sources[0]} and {len(sources) - 1} more like it"
        lines.append(f"{subject}: {text}" if subject else text)
    return lines
