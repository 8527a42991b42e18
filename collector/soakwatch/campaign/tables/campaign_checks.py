"""A campaign for continuous integration: a check for each run of each cell, and for each limit, claim or comparison."""

from __future__ import annotations

from collections.abc import Callable

from soakwatch.campaign.campaign_model import ENDED, CellRun
from soakwatch.campaign.tables.campaign_findings import CampaignFinding
from soakwatch.campaign.tables.campaign_report import beside, render_html, render_markdown
from soakwatch.campaign.tables.data import render_csv, render_json
from soakwatch.campaign.tables.result import CampaignResult
from soakwatch.core.formatting import printable
from soakwatch.report.annotations import annotations_of
from soakwatch.report.badge import badge, render_badge
from soakwatch.report.check_list import STATES, CheckList, CheckState, CheckSuite, ReportedCheck
from soakwatch.report.ctrf import ctrf_of
from soakwatch.report.files import ReportPlace
from soakwatch.report.junit import junit_of
from soakwatch_model.finding import Outcome
from soakwatch_model.window import Window
from soakwatch_rules.wording.quantities import counted


class CampaignRendering:
    """A campaign in every format. ``places`` are where they are wanted: the page links to the runs from there."""

    def __init__(self, result: CampaignResult, places: tuple[ReportPlace, ...]) -> None:
        self.result = result
        pages = (place.file for place in places if place.kind == "html")
        self._page = next((file for file in pages if file is not None), result.state.folder)

    def text(self, kind: str) -> str:
        """The text of a format."""
        result = self.result
        size = counted(sum(result.states.values()), "run")
        makers: dict[str, Callable[[], str]] = {
            "html": lambda: render_html(result, beside(self._page)),
            "md": lambda: render_markdown(result),
            "csv": lambda: render_csv(result),
            "json": lambda: render_json(result),
            "junit": lambda: junit_of(campaign_checks(result)),
            "ctrf": lambda: ctrf_of(campaign_checks(result)),
            "annotations": lambda: annotations_of(campaign_checks(result)),
            "badge": lambda: render_badge(badge(result.state.name, result.outcome, size, goes_on=result.goes_on)),
        }
        return makers[kind]()


def campaign_checks(result: CampaignResult) -> CheckList:
    """A suite for each cell with a check for each of its runs, and one for what the campaign asks beyond them. A run
    without a verdict holds back a pass."""
    every = [run for data in result.cells for run in data.runs]
    begins = [run.begin_ns for run in every if run.begin_ns is not None]
    ends = [run.end_ns for run in every if run.end_ns is not None]
    whole = Window(min(begins, default=0), max([*begins, *ends], default=0))
    suites = [
        CheckSuite(printable(data.cell.id), whole, tuple(_of_run(data.cell.id, run) for run in data.runs))
        for data in result.cells
    ]
    if result.findings:
        suites.append(CheckSuite("campaign", whole, tuple(map(_of_finding, result.findings))))
    held_back = any(check.state.holds_back for suite in suites for check in suite.checks)
    if result.outcome is not Outcome.PASS and not held_back:
        only = ReportedCheck("campaign", "judged", STATES[result.outcome], result.outcome, printable(result.reason))
        suites.append(CheckSuite("campaign", whole, (only,)))
    facts = {printable(name): printable(text) for name, text in result.state.labels.items()}
    return CheckList(
        printable(result.state.name), result.outcome, printable(result.reason), whole, tuple(suites), facts
    )


def _of_run(cell: str, run: CellRun) -> ReportedCheck:
    outcome = Outcome(run.verdict) if run.state == ENDED and run.verdict else Outcome.INCONCLUSIVE
    window = None if run.begin_ns is None or run.end_ns is None else Window(run.begin_ns, run.end_ns)
    state = STATES[outcome]
    reason = run.reason or ("" if run.state == ENDED else f"the run is {run.state}: it has no verdict")
    folder = "" if run.folder is None or state is CheckState.PASSED else f"run: {run.folder.name}"
    return ReportedCheck(
        printable(cell), f"run {run.repetition}", state, outcome, printable(reason), printable(folder), window=window
    )


def _of_finding(found: CampaignFinding) -> ReportedCheck:
    name = printable(f"{found.kind}: {found.asked}, {found.subject}")
    return ReportedCheck("campaign", name, STATES[found.outcome], found.outcome, printable(found.reason))
