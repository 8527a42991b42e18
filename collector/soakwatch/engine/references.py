"""What a run is compared with besides its own samples: its generators' reference and an earlier run's baseline."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from soakwatch.judge import calibration as reference
from soakwatch.judge import imported_baseline as baseline_lent
from soakwatch.judge.baseline import PHASE
from soakwatch.judge.calibration import ReferenceChoice
from soakwatch.judge.imported_baseline import ImportedBaseline
from soakwatch.plan import Plan
from soakwatch.plan.rule_plan import planned_rules
from soakwatch.record import Record
from soakwatch.runs.catalog import find_run


@dataclass(frozen=True, slots=True)
class References:
    """The chosen references, and warnings about those not used."""

    reference: ReferenceChoice = reference.NONE
    baseline: ImportedBaseline | None = None
    warnings: tuple[str, ...] = ()

    def sentences(self, now_s: float) -> tuple[str, ...]:
        """What is used, in sentences."""
        lines = []
        if self.reference.reference is not None:
            used = ", ".join(sorted(self.reference.ceilings))
            age = self.reference.reference.age(now_s)
            lines.append(f"reference: {self.reference.reference.file}, {age} old, for {used}")
        if self.baseline is not None:
            lines.append(f"baseline: {len(self.baseline.series)} series of the run {self.baseline.run}")
        return tuple(lines)

    def keep(self, record: Record, plan: Plan, start_ns: int) -> None:
        """Stores it in the record of a new run. Raises RecordError."""
        reference.keep(record, self.reference, plan, start_ns)
        if self.baseline is not None:
            baseline_lent.keep(record, self.baseline)


NOTHING = References()


def choose_references(plan: Plan, named: Path | None, baseline: str | None, runs: Path, now_s: float) -> References:
    """Chooses what a run of ``plan`` is compared with: ``named`` and ``baseline`` of the command line override the
    plan's keys.

    Raises PlanError for an unusable reference, RecordError for an unusable baseline.
    """
    choice = reference.choose_reference(plan, named, now_s)
    run = baseline or plan.baseline
    if not run:
        return References(choice, None, choice.warnings)
    folder = find_run(run, runs)
    if any(phase.name == PHASE for phase in plan.phases):
        warning = f"the plan has a baseline phase of its own: that of {folder.name} is not used"
        return References(choice, None, (*choice.warnings, warning))
    imported_baseline = baseline_lent.import_baseline(folder, plan, planned_rules(plan.rules))
    return References(choice, imported_baseline, (*choice.warnings, *imported_baseline.warnings))
