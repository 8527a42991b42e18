"""The formats of a report: for each its option, its usual file, and what it is. Commands and runs share them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReportFormat:
    """One format: the word of its option, its file in the folder of a run, and what it is, for ``--help``."""

    kind: str
    file: str
    what: str

    @property
    def option(self) -> str:
        """As it is written on a command line."""
        return f"--{self.kind}"


FORMATS: Mapping[str, ReportFormat] = {
    each.kind: each
    for each in (
        ReportFormat("html", "report.html", "the HTML report, one file that opens offline"),
        ReportFormat("json", "verdict.json", "verdict.json"),
        ReportFormat("junit", "junit.xml", "JUnit XML"),
        ReportFormat("md", "report.md", "Markdown, such as for the summary of a job"),
        ReportFormat("ctrf", "ctrf.json", "CTRF, the Common Test Report Format"),
        ReportFormat("attest", "test-result.intoto.json", "an in-toto statement with the test-result predicate"),
        ReportFormat("badge", "badge.svg", "a badge (SVG) with name, verdict and length"),
        ReportFormat("csv", "figures.csv", "a line for each cell and figure"),
        ReportFormat("annotations", "annotations.txt", "workflow commands of GitHub Actions that annotate what failed"),
    )
}
ALL = "reports"
"""The option that asks for every format, each by its usual name in one folder."""
OF_RUNS = ("html", "json", "junit", "md", "ctrf", "attest", "badge", "annotations")
OF_CAMPAIGNS = ("html", "md", "csv", "json", "junit", "ctrf", "badge", "annotations")
IN_EVERY_RUN = ("json", "junit", "md", "html")
"""What the end of a run leaves in its folder without being asked."""
