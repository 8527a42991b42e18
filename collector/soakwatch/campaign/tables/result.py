"""A campaign with everything that is said of it: its verdict, findings, doubts and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from soakwatch.campaign.campaign_model import CampaignState, CellRun
from soakwatch.campaign.tables.campaign_findings import CampaignFinding, findings_of
from soakwatch.campaign.tables.cell_figures import CellData, Readings, cells_of, ended_runs, read_figures, usual_figures
from soakwatch.campaign.tables.comparisons import Earlier, against, comparisons
from soakwatch.campaign.tables.derived import with_derived
from soakwatch.campaign.tables.parse import filled, tables_of
from soakwatch.campaign.tables.pivot import View, views_of
from soakwatch.campaign.tables.spec import FIGURES, VERDICT, Measured, TablesSpec, takes
from soakwatch.core.errors import EXIT_FAIL, EXIT_INCONCLUSIVE, EXIT_PASS
from soakwatch.core.yaml import parse, read_text
from soakwatch_model.finding import Outcome
from soakwatch_rules.stats.repetitions import fewest
from soakwatch_rules.wording.quantities import counted, first_few

CAMPAIGN_FILE = "campaign.yaml"
DEFINITION = (
    "fail: a run failed, or a limit, claim or comparison of the campaign failed; "
    "inconclusive: a run is inconclusive, lost or not run, or one of those is not decided; else pass"
)
"""What the verdict of a campaign means."""
_EXIT = {Outcome.FAIL: EXIT_FAIL, Outcome.INCONCLUSIVE: EXIT_INCONCLUSIVE, Outcome.PASS: EXIT_PASS}
Reader = Callable[[Sequence[CellRun], Sequence[Measured]], Readings]


@dataclass(frozen=True, slots=True)
class CampaignResult:
    """A campaign with its verdict, findings, doubts and tables. ``outcome`` is fail, inconclusive or pass; ``reason``
    says why in one sentence.

    ``tables`` are the views of each table. ``doubts`` are what a reader must know before believing a table. ``states``
    counts the last attempts by state; ``again`` is how many attempts were repeated. ``earlier`` is the name of the
    campaign that this one was compared with.
    """

    state: CampaignState
    spec: TablesSpec
    cells: tuple[CellData, ...]
    tables: tuple[tuple[View, ...], ...]
    findings: tuple[CampaignFinding, ...]
    outcome: Outcome
    reason: str
    doubts: tuple[str, ...]
    states: Mapping[str, int]
    again: int
    earlier: str = ""

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 inconclusive."""
        return _EXIT[self.outcome]

    @property
    def goes_on(self) -> bool:
        """Whether runs are waiting or going on."""
        return bool(self.states.get("waiting") or self.states.get("running"))


def verdict_words(result: CampaignResult) -> str:
    """The verdict in a word; while runs wait, how it stands so far."""
    if not result.goes_on:
        return result.outcome.value
    return "fails so far" if result.outcome is Outcome.FAIL else "goes on"


def extent_words(result: CampaignResult) -> str:
    """How large the campaign is, and how many runs are in which state."""
    axes = " × ".join(f"{len(axis.values)} {axis.name}" for axis in result.state.axes)
    counts = sorted({len(data.runs) for data in result.cells})
    each = "" if not counts else f" of {counts[0]}" + (f" to {counts[-1]}" if len(counts) > 1 else "")
    cells = counted(len(result.cells), "cell")
    states = ", ".join(f"{number} {state}" for state, number in result.states.items())
    runs = "run" if counts == [1] else "runs"
    return f"{axes}: {cells}{each} {runs} each; {states}" if counts else f"{axes}: {cells}, no runs"


def spec_of(state: CampaignState) -> TablesSpec:
    """What the campaign's own file asks of its tables. Raises PlanError."""
    file = state.folder / CAMPAIGN_FILE
    return tables_of(parse(read_text(file), str(file)), state.axes) if file.is_file() else TablesSpec()


def result_of(
    state: CampaignState,
    spec: TablesSpec,
    read: Reader = read_figures,
    earlier: Earlier | None = None,
) -> CampaignResult:
    """Reads the figures of all runs that have ended, and judges the campaign.

    Raises CampaignError if ``earlier`` has no cell in common with it.
    """
    runs = ended_runs(state)
    asks_usual = not spec.named and not any(table.figures for table in spec.tables)
    full = filled(spec, state.axes, state.cells, usual_figures(runs) if asks_usual else ())
    cells = with_derived(cells_of(state, full.measured, read(runs, full.measured)), full.figures)
    findings = findings_of(full, cells) + comparisons(full, cells)
    if earlier is not None:
        findings += against(full, cells, earlier, read(ended_runs(earlier.state), full.measured))
    tables = tuple(views_of(table, state.axes, cells) for table in full.tables)
    findings = tuple(sorted(findings, key=lambda finding: finding.outcome.rank))  # the worst first
    outcome, reason = _verdict(cells, findings)
    states = Counter(run.state for data in cells for run in data.runs)
    again = len(state.runs) - sum(states.values())
    doubts = _doubts(full, cells, again)
    name = "" if earlier is None else earlier.names[1]
    return CampaignResult(state, full, cells, tables, findings, outcome, reason, doubts, states, again, name)


def _verdict(cells: Sequence[CellData], findings: Sequence[CampaignFinding]) -> tuple[Outcome, str]:
    """The worst of runs and findings, and the reasons for it."""
    runs: Counter[Outcome] = Counter()
    without = 0
    for data in cells:
        runs.update(data.verdict.counts)
        without += data.verdict.planned - data.verdict.ended
    found = Counter(finding.outcome for finding in findings)
    total = sum(data.verdict.planned for data in cells)
    reasons = []
    if runs[Outcome.FAIL] or found[Outcome.FAIL]:
        outcome = Outcome.FAIL
        if runs[Outcome.FAIL]:
            failed = sum(bool(data.verdict.counts.get(Outcome.FAIL)) for data in cells)
            reasons.append(
                f"{runs[Outcome.FAIL]} of {counted(total, 'run')} failed, in {failed} of {counted(len(cells), 'cell')}"
            )
    elif runs[Outcome.INCONCLUSIVE] or without or found[Outcome.INCONCLUSIVE]:
        outcome = Outcome.INCONCLUSIVE
        if runs[Outcome.INCONCLUSIVE]:
            reasons.append(f"{runs[Outcome.INCONCLUSIVE]} of {counted(total, 'run')} inconclusive")
        if without:
            reasons.append(f"{without} of {counted(total, 'run')} without a verdict")
    elif not total:
        return Outcome.INCONCLUSIVE, "it has no run"
    else:
        checks = f"all {len(findings)} checks" if len(findings) > 1 else "the check"
        said = f", and {checks} of the campaign" if findings else ""
        whole = f"all {total} runs" if total > 1 else "the run"
        return Outcome.PASS, f"{whole} passed{said}"
    if found[outcome]:
        kinds = list(dict.fromkeys(finding.kind for finding in findings if finding.outcome is outcome))
        word = "failed" if outcome is Outcome.FAIL else "not decided"
        reasons.append(
            f"{found[outcome]} of {counted(len(findings), 'check')} of the campaign {word} ({', '.join(kinds)})"
        )
    return outcome, "; ".join(reasons)


def _doubts(spec: TablesSpec, cells: Sequence[CellData], again: int) -> tuple[str, ...]:
    """What a reader must know before believing a table, most important first."""
    doubts = []
    for state, words in (("lost", "lost"), ("running", "going on"), ("waiting", "not run yet")):
        of = {data.cell.id: sum(run.state == state for run in data.runs) for data in cells}
        ids = [cell for cell, number in of.items() if number]
        if ids:
            doubts.append(
                f"{counted(sum(of.values()), 'run')} {words}, in {counted(len(ids), 'cell')}: {first_few(ids, 2)}"
            )
    inconclusive = [data for data in cells if data.verdict.counts.get(Outcome.INCONCLUSIVE)]
    if inconclusive:
        n = sum(data.verdict.counts[Outcome.INCONCLUSIVE] for data in inconclusive)
        first = inconclusive[0]
        doubts.append(f"{counted(n, 'run')} inconclusive, first {first.cell.id}: {first.verdict.reason}")
    counts = sorted({len(data.runs) for data in cells})
    if counts and counts[0] < fewest():
        shown = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        if counts == [1]:
            doubts.append("one run a cell: the spread between runs is unknown; no difference is proven")
        else:
            doubts.append(f"{shown} runs a cell: the median has an interval from {fewest()} runs on; ranges are shown")
    names = {name for table in spec.tables for name in table.figures} - {VERDICT, FIGURES}
    for name in (figure.name for figure in spec.figures if figure.name in names):
        asked = [table.where for table in spec.tables if name in table.figures]
        meant = [data for data in cells if any(takes(where, data.cell) for where in asked)]
        empty = [data for data in meant if data.verdict.ended and data.figures[name].median is None]
        if empty:
            reasons = list(dict.fromkeys(data.figures[name].reason for data in empty))
            doubts.append(f"{name} is missing in {counted(len(empty), 'cell')}: {first_few(reasons, 1)}")
    beds = sorted({run.testbed for data in cells for run in data.runs if run.testbed})
    if len(beds) > 1:
        doubts.append(f"runs on {len(beds)} testbeds ({first_few(beds)}): intervals hold the differences between them")
    if again:
        doubts.append(f"{counted(again, 'attempt')} made again: the last one counts")
    return tuple(doubts)
