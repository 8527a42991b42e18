"""Judging one record in several processes: each cuts and judges a part of the cases. The findings are those of one
process, bit for bit: a case is judged from the record alone, and findings are put into the order of the cases."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from soakwatch.core.c_allocator import freed_memory_kept
from soakwatch.core.memory_limit import memory_limit
from soakwatch.core.workers.executor import ClusterError, Executor, JobLostError
from soakwatch.judge.cases import CaseBuilder
from soakwatch.judge.judge import CaseOfRule, RuleUse, cases_of, found_in
from soakwatch.judge.plausible import Sifted
from soakwatch.plan.tenant_plan import TenantPlan
from soakwatch.record import RecordView
from soakwatch_model.finding import Finding

_WORTH_S = 4.0  # CPU seconds of judging from which it pays: a process takes one to start and to read what all share
_READING_S = 4e-8  # CPU seconds of a reading
_TREND_S = 6e-3  # of the shapes that a series may have, in a case of a rule that judges trends
_TREND = "minutes"
_SPARE_MIB = 1024  # memory limit from which there is room for more than one process
_HEAD_START_S = 1.0  # by which the others begin later


@dataclass(frozen=True, slots=True)
class PartOfRecord:
    """The cases of a record, by their places, that one process judges."""

    path: Path
    earlier: tuple[Path, ...]
    uses: tuple[RuleUse, ...]
    tenants: tuple[TenantPlan, ...]
    places: frozenset[int]


@dataclass(frozen=True, slots=True)
class FoundInPart:
    """Its findings by the place of their case, and what was impossible of the series that it read."""

    findings: Mapping[int, Sequence[Finding]]
    sifted: Sifted


def judged_part(part: PartOfRecord) -> FoundInPart:
    """Judges a part; the work of one process. Raises RecordError."""
    with ExitStack() as stack:
        view = stack.enter_context(RecordView.open(part.path))
        earlier = [stack.enter_context(RecordView.open(path)) for path in part.earlier]
        stack.enter_context(freed_memory_kept())
        case_builder = CaseBuilder(view, earlier, part.tenants)
        own = [case for case in cases_of(case_builder, part.uses, None) if case.place in part.places]
        return FoundInPart(found_in(case_builder, own, None), case_builder.plausible.sifted)


@dataclass(frozen=True, slots=True)
class InParts:
    """Judges a record that is not written any more, in a process a processor if that pays."""

    view: RecordView
    earlier: tuple[RecordView, ...]
    tenants: tuple[TenantPlan, ...]

    def __call__(
        self, case_builder: CaseBuilder, uses: Sequence[RuleUse], progress: Callable[[str], None] | None
    ) -> Mapping[int, Sequence[Finding]]:
        """The findings by the place of their case. What a process that ends early leaves is judged here."""
        cases = cases_of(case_builder, uses, None)
        seconds = self._seconds(cases)
        limit = memory_limit()
        room = os.name == "posix" and (limit is None or limit.mib >= _SPARE_MIB)  # Windows passes no sockets on
        if sum(seconds.values()) < _WORTH_S or not room:
            return found_in(case_builder, cases, progress)
        from soakwatch.core.workers.local import LocalProcesses, processors

        parts = divided(cases, seconds, processors())
        with LocalProcesses(max(1, len(parts) - 1)) as executor:
            others = [(part, self._begun(executor, part, uses)) for part in parts[1:]]
            found: dict[int, Sequence[Finding]] = found_in(case_builder, parts[0], progress)
            for part, future in others:
                try:
                    ready = None if future is None else future.result()
                except (ClusterError, JobLostError):
                    ready = None
                if ready is None:
                    found |= found_in(case_builder, part, progress)
                else:
                    found |= ready.findings
                    case_builder.plausible.adopt(ready.sifted)
        return found

    def _seconds(self, cases: Sequence[CaseOfRule]) -> dict[int, float]:
        """About how long each case takes, by its place."""
        series = len(self.view.keys()) or 1
        reading_s = _READING_S * self.view.counts().samples / series
        return {
            case.place: reading_s * len(case.about.keys)
            + (
                _TREND_S
                if case.rule.spec.live == _TREND and case.about.window.seconds >= case.rule.spec.shortest_s
                else 0
            )
            for case in cases
        }

    def _begun(
        self, executor: Executor, part: Sequence[CaseOfRule], uses: Sequence[RuleUse]
    ) -> Future[FoundInPart] | None:
        places = frozenset(case.place for case in part)
        earlier = tuple(view.path for view in self.earlier)
        try:
            return executor.submit(
                judged_part, PartOfRecord(self.view.path, earlier, tuple(uses), self.tenants, places), label="judging"
            )
        except ClusterError:
            return None


def divided(cases: Sequence[CaseOfRule], seconds: Mapping[int, float], most: int) -> list[list[CaseOfRule]]:
    """The cases in up to ``most`` parts that take about as long, each in the order of reading. Cases of one series stay
    together. The first part is begun first, so it has more."""
    ordered = sorted(cases, key=lambda case: case.reading_order)
    whole = sum(seconds.values())
    number = max(1, min(most, int(2 * whole / _WORTH_S)))
    share_s = (whole - _HEAD_START_S) / number
    parts: list[list[CaseOfRule]] = [[]]
    left_s = share_s + _HEAD_START_S
    for case, before in zip(ordered, [None, *ordered[:-1]], strict=True):
        apart = before is None or case.reading_order[:4] != before.reading_order[:4] or case.reading_order[0]
        if left_s <= 0 and apart and len(parts) < number:
            parts.append([])
            left_s += share_s
        parts[-1].append(case)
        left_s -= seconds[case.place]
    return parts
